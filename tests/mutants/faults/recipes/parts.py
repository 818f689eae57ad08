"""Faults of recipes/parts.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "Replaces.forward": [
        ("return sublayer", "return x + sublayer", "the addition is still there"),
    ],
    "take_away": [
        ("            stack.norm = nn.Identity()\n", "            pass\n",
         "the last norms are left"),
    ],
    "_take_from": [
        (" and decodes", "", "the encoder's attention is gone too"),
        ("layer.residuals[-1] = None, Skips()", "layer.residuals[0] = None, Skips()",
         "the attention is skipped, and the network called"),
        (" and isinstance(residual, Residual)", "", "what is skipped comes back"),
    ],
    "Skips.forward": [
        ("return x", "return sublayer(x)", "the sublayer is called"),
    ],
    "Raw.forward": [
        ("return x", "return x * 0", "the source is gone"),
    ],
}
