"""Faults of annotated/page/ch07c.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "bits": [
        ("6 if x.dtype == torch.float16 else 9", "9", "an exponent of eight bits"),
    ],
    "check_lost_bits": [
        ("(slight * 65536).half()", "slight.half()", "nothing is saved"),
    ],
    "left_out": [
        ("(gap == 0) == (part", "(gap >= 0) or (part", "a break need not show"),
    ],
    "who_shares": [
        ("epsilon / (v - 1)", "epsilon / v", "another share"),
    ],
}
