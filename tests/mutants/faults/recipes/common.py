"""Faults of recipes/common.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "one_cycle": [
        ("pct_start=0.1", "pct_start=0.3", "climbs for longer"),
    ],
    "paper_adam": [
        ("rate(done + 1)", "rate(done)", "one step late"),
        ("0.98", "0.999", "PyTorch's default"),
    ],
}
