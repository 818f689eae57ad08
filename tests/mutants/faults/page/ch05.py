"""Faults of annotated/page/ch05.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "percent": [
        ("if low == high", "if low", "always one number"),
    ],
    "similarity": [
        ("angles.cos()", "angles.sin()", "equal positions aren't alike"),
    ],
    "likeness": [
        (">= 8", ">= 2", "a neighbour is the twin"),
    ],
    "as_complex": [
        ("double() / factor", "double()", "nothing is squeezed"),
    ],
    "check_rotary": [
        ("loops, x", "lambda x: ours(x)[1, 2], x",
         "the module is compared with itself"),
    ],
    "check_half_split": [
        ("half_split(q, 4), wanted", "wanted, wanted", "no layout is refused"),
    ],
    "guessing": [
        ("own.sum(dim=1, keepdim=True) - own", "own.sum(dim=1, keepdim=True) + 0 * own",
         "the symbol itself is counted, too"),
    ],
    "check_beyond": [
        ("assert low <= run", "assert 0 <= run", "rotary may fail"),
    ],
    "new_angles": [
        ("(trained < 2 * math.pi) & ", "", "who has been round meets new angles"),
        ("now > trained", "now >= trained", "the same angle is new"),
    ],
    "angles_plot": [
        ("now / trained / longer", "now / trained", "not per token"),
    ],
    "check_longer": [
        ("== 0 < new[30_000, 1], new", "< 99", "any factor will do"),
    ],
    "zone": [
        ("seen <= 100", "seen < 100", "a hundred is between"),
        ("seen >= 1000", "seen > 1000", "a thousand is between"),
    ],
    "by_zone": [
        ("int(length) - 1", "int(length)", "one position too far"),
    ],
    "check_distances": [
        ("assert max(right(wide, 128)) < min(right(close, 128))", "pass",
         "untrained buckets may be better"),
    ],
}
