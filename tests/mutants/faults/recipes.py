"""Faults of annotated/recipes.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "one_cycle": [
        ("pct_start=0.1", "pct_start=0.3", "climbs for longer"),
    ],
    "date_symbols": [
        ("text for text, _ in pairs", "iso for _, iso in pairs", "the other side's"),
    ],
    "date_reader": [
        ("torch.manual_seed(seed)", "torch.manual_seed(0)", "seed ignored"),
        ('else (way, "previous")', 'else (None, "previous")', "a class left out"),
    ],
    "train_dates": [
        ("seed=seed + epoch", "seed=epoch", "seed ignored"),
        ('"on_step": on_step', '"on_step": None', "nobody looks on"),
    ],
    "read_dates": [
        ("with evaluating(model):", "if model.eval():", "left in evaluation mode"),
    ],
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
