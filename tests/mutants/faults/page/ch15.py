"""Faults of annotated/page/ch15.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "guessed": [
        ("ids[hidden] = words.mask", "pass", "unknown instead of masked"),
        ("list(words.special)", "[]", "special ones guessed"),
        ("sure.argmax()", "sure.argmin()", "the less sure one first"),
        ("ORDERS.index(order) - 1", "2 - ORDERS.index(order)", "the other one first"),
        ("ids[hidden[first]] = guess[first]", "pass", "nothing filled in"),
        ("before = guess[1 - first]", "before = guess[first]", "of the one filled in"),
        ("!= before.item()", "== before.item()", "the other way round"),
        ("len(hidden) == 2", "len(hidden)", "one alone is filled in"),
    ],
    "mask_guesser": [
        ("(rounded, words, text, order)", "(model, words, text, order)", "not rounded"),
        ('"hidden": HIDING[text]', '"hidden": ()', "nothing stood there"),
    ],
}
