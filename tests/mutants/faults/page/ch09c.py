"""Faults of annotated/page/ch09c.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "sizes_table": [
        ("not known.issuperset", "known.issuperset", "what is known counts as unknown"),
    ],
    "examples_drawing": [
        ("merges[:n]", "merges", "the same vocabulary three times"),
        ('"▁" + word in set(learned)', "True", "each word was read"),
    ],
    "amounts": [
        ("met[one] < 20", "met[one] < 0", "nothing is rare"),
        ("* times for w, times", "for w, times", "each word counted once"),
    ],
    "merges_figure": [
        ("max(rows", "min(rows", "the worst is called the best"),
        ('>= min(best["bleu"])', '>= max(best["bleu"])', "only the best is near"),
        ("max(points", "min(points", "the smallest share is called the largest"),
    ],
    "others_table": [
        ('pieces.count("[UNK]")', "len(pieces)", "all pieces count as unknown"),
    ],
}
