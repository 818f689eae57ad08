"""Faults of recipes/reading.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "ReaderLayer.forward": [
        ("self.norms[0](x), mask=mask", "self.norms[0](x)", "padding seen"),
    ],
    "Reader.__init__": [
        ('if way == "rotary" else', 'if way != "rotary" else', "rotary elsewhere"),
        ('way.startswith("learned")', 'way == "learned"', "no positions"),
    ],
    "uniform_lengths": [
        ("high + 1", "high", "longest never drawn"),
    ],
    "skewed_lengths": [
        ('.clamp(max=POSITIONS["most"])', "", "longer than there are positions"),
    ],
    "reading_task": [
        ("length_mask(lengths, shape[1])", "~length_mask(lengths, shape[1])",
         "mask inverted"),
    ],
    "previous_symbol_loss": [
        ("tokens[:, :-1][asked]", "tokens[:, 1:][asked]", "asks for the symbol itself"),
        ("mask[:, 0, 0, 1:]", "mask[:, 0, 0, :-1]", "asks at padding"),
    ],
}
