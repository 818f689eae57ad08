"""Faults of annotated/page/ch11b.py: (text, what replaces it, what is wrong then)."""

TESTS = ("ch11",)

# fmt: off
FAULTS = {
    "steps_up": [
        ("min(4, distance // jump)", "min(5, distance // jump)",
         "a layer reaches too far"),
        ("return moved[::-1]", "return moved", "from above"),
    ],
    "check_steps": [
        ("assert all(s and s <= 60 for s in direct)", "pass",
         "attention may take any time"),
    ],
}
