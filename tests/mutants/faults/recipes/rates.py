"""Faults of recipes/rates.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "train_deep": [
        ("rate(done + 1)", "rate(done)", "one step late"),
    ],
}
