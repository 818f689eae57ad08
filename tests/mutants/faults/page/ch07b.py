"""Faults of annotated/page/ch07b.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "weights_present": [
        ("beta ** ages", "beta ** (ages + 1)", "one step older"),
    ],
}
