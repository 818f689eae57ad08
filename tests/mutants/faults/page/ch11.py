"""Faults of annotated/page/ch11.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "writing": [
        ("typed += shares[0][0]", "typed += shares[-1][0]",
         "the least likely is appended"),
    ],
    "by_position": [
        ('row["way"] == way', 'row["way"] != way', "all other models"),
    ],
    "check_mixing": [
        ("mask, scale=1.0", "None, scale=1.0", "compared without a mask"),
    ],
    "check_write": [
        ("assert wrote == write(", "assert wrote or write(", "nothing is compared"),
    ],
    "answers": [
        ("seed - 1", "seed - 2", "another try's draws"),
    ],
    "text_writer": [
        ("manual_seed(0)", "manual_seed(1)", "other draws than those of the check"),
    ],
    "first_lines": [
        ("[:10]", "[:11]", "a line more"),
    ],
    "side_by_side": [
        ("grown[last]", "grown[begun, 100]", "what it wrote after 100 steps"),
    ],
    "surprises": [
        ("torch.arange(-64, 0)", "torch.arange(-63, 1)", "it reads the character"),
    ],
    "shaded": [
        ("0.6)", "0.9)", "the strongest hide their letter"),
    ],
    "check_scaling": [
        ("assert max(first) < cuts[2] - 0.3 and min(first) > cuts[3] + 0.04", "pass",
         "any model may be the small one"),
    ],
}
