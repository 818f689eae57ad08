"""Faults of annotated/page/ch06b.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "check_fading": [
        ("post[0] / post[-1] < 1e-3", "True", "nothing needs to fade"),
    ],
    "law": [
        ("/ last[0]\n", "\n", "not relative to two layers"),
    ],
    "nearly_table": [
        ("< 1e-3", "< 1", "any size will do"),
    ],
    "check_passed": [
        ('post["cross-attention"] < 0.85', "True", "it may let all through"),
        ("layer**31", "layer", "one layer for 31"),
    ],
    "ends_table": [
        ('(norm, depth) != ("post", 32)', "True", "nothing needs to collapse"),
    ],
}
