"""Faults of annotated/page/ch09c.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "sizes_table": [
        ("not known.issuperset", "known.issuperset", "what is known counts as unknown"),
    ],
    "examples_table": [
        ("merges[:n]", "merges", "the same vocabulary three times"),
        ('"▁" + word in set(learned)', "True", "each word was read"),
    ],
    "amounts": [
        ("met[one] < 20", "met[one] < 0", "nothing is rare"),
        ("* times for w, times", "for w, times", "each word counted once"),
    ],
    "across_table": [
        ('("may cross spaces", "▁")', '("may cross spaces", " ▁")', "none crosses one"),
    ],
    "merges_figure": [
        ("max(rows", "min(rows", "the worst is called the best"),
    ],
    "others_table": [
        ('pieces.count("[UNK]")', "len(pieces)", "all pieces count as unknown"),
    ],
}
