"""Faults of annotated/page/packed.py: (text, what replaces it, what is wrong then)."""

TESTS = ("ch09",)

# fmt: off
FAULTS = {
    "pack_model": [
        ("amax(dim=1)", "amax(dim=0)[: len(weight)]", "scales of columns"),
        ("/ 127", "/ 63", "seven bits"),
        ("weight = scales", "weight = weight[:, 0]", "scales lost"),
    ],
    "answers_text": [
        ("sorted(known)", "known", "words in any order"),
    ],
    "unpack_model": [
        ("then += rows", "then += 0", "the same scales for all"),
        ("at += size", "at += 0", "the same numbers for all"),
        ("* weights[part][:, None]", "* 1", "without scales"),
    ],
}
