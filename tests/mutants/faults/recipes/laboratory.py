"""Faults of recipes/laboratory.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "laboratory_settings": [
        ("require.choice(settings, name=name)", "pass", "any name is taken"),
    ],
    "Unscaled": [
        ("** 0.5", "** 0", "scaled all the same"),
    ],
    "NoResidual": [
        ("return sublayer(self", "return x + sublayer(self", "pre-norm: x is added"),
        ("norm(sublayer(x))", "norm(x + sublayer(x))", "post-norm: x is added"),
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
    "laboratory_loss": [
        ('PAD, settings["smoothing"]', "PAD, 0.3", "smoothed all the same"),
        ('size, PAD', "size, START", "padding counts"),
    ],
    "laboratory_exact": [
        ("right.all(-1)", "right.any(-1)", "one right letter is enough"),
        ("| (labels == PAD)", "", "padding has to be right"),
        ("map(answer, words)", "words", "the word itself is expected"),
    ],
    "train_laboratory": [
        ("adam.zero_grad()", "pass", "gradients pile up"),
        ("laboratory_rate(settings, step)", 'settings["rate"]', "no schedule"),
        ("if step % 25 == 0:", "if step % 25 == 1:", "tested at other steps"),
    ],
    "laboratory_writes": [
        ("logits[:, [PAD, START]] = -torch.inf", "pass", "padding may be written"),
        ("row[: row.index(END)] if END in row else ", "", "it never ends"),
    ],
}
