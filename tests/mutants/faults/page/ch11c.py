"""Faults of annotated/page/ch11c.py: (text, what replaces it, what is wrong then)."""

TESTS = ("ch11",)

# fmt: off
FAULTS = {
    "readable": [
        ("size /= 1000", "size /= 1024", "other units"),
    ],
    "check_memory": [
        ('held == cache_bytes(*MODELS["the page\'s model"])', "held",
         "any size may be computed"),
    ],
    "check_loop": [
        ("by_hand, whole[0], 2e-5", "by_hand, by_hand, 2e-5", "compared with itself"),
    ],
}
