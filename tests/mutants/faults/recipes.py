"""Faults of annotated/recipes.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "one_cycle": [
        ("pct_start=0.1", "pct_start=0.3", "climbs for longer"),
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
    "next_symbol_loss": [
        (", ignore_index=0", "", "padding counts"),
        ("target[:, 1:].flatten()", "target[:, :-1].flatten()", "not one step ahead"),
    ],
    "copy_batches": [
        ("manual_seed(seed)", "manual_seed(0)", "seed ignored"),
    ],
    "with_end": [
        ("(target != 0).sum(dim=1, keepdim=True)",
         "torch.full((len(target), 1), target.shape[1] - 1)", "end after the padding"),
    ],
    "train_deep": [
        ("rate(done + 1)", "rate(done)", "one step late"),
    ],
    "copy_rate": [
        ("(done + 1)", "done", "begins with a rate of 0"),
        ("(steps * fall)", "steps", "falls from the beginning"),
    ],
    "train_copy": [
        ('"schedule": schedule', '"schedule": None', "schedule forgotten"),
    ],
    "exact_copies": [
        (".all(dim=1)", ".any(dim=1)", "one right symbol is enough"),
    ],
    "SeesAhead.decode": [
        ("mask = padding_mask(target, self.config.pad)",
         "from annotated.masks import causal_mask\n"
         "        mask = causal_mask(target.shape[1])", "sees nothing ahead"),
    ],
    "Shifted.forward": [
        (" * self.training", "", "shifted in evaluation"),
    ],
}
