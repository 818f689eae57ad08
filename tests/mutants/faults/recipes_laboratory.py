"""Faults of annotated/recipes_laboratory.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "laboratory_settings": [
        ("require.choice(settings, name=name)", "pass", "any name is taken"),
    ],
    "LaboratoryTransformer.decode": [
        ("if self.causal:", "if not self.causal:", "the mask is the wrong way round"),
    ],
    "laboratory_words": [
        ('settings["longest"] + 1', 'settings["longest"]', "none is of full length"),
    ],
    "laboratory_batch": [
        ("[PAD] * len(source) + labels", "source + labels", "the source is predicted"),
        ("[START, *answer]", "[*answer, END]", "the answer is given away"),
    ],
    "laboratory_rate": [
        ("rate * step / hold if", "rate if", "no warm-up"),
        ("(hold / step) ** 0.5", "1", "it never falls"),
    ],
    "laboratory_writes": [
        ("logits[:, [PAD, START]] = -torch.inf", "pass", "padding may be written"),
        ("row[: row.index(END)] if END in row else ", "", "it never ends"),
    ],
}
