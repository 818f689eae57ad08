"""Faults of annotated/page/ch04.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "said_of": [
        ("row[3:].sum()", "row[3]", "one pad for all"),
    ],
    "build": [
        ("torch.arange(t) < length", "torch.arange(t) <= length", "a pad too few"),
        ("mask[-1] = False", "mask[0] = False", "the wrong row begins empty"),
        ("== CAUSALITY[0]", "== CAUSALITY[1]", "causal when it shouldn't be"),
        ("mask[i, j] = ~mask[i, j]", "mask[i, j] = False", "a click never shows"),
        ("j if j < length else t", "j", "padding with the scores of words"),
        ("vectors.shape[2] ** 0.5", "vectors.shape[2]", "scores too small"),
        ("== HIDING[0]", "in HIDING[:2]", "no NaN where there is one"),
        ("== HIDING[2]", "== HIDING[1]", "the two fills mixed up"),
    ],
    "check_fills": [
        ("[2] == wanted", "[2] >= 0", "any weight"),
        ("precision)[2] == 0", "precision)[2] >= 0", "a leak passes"),
    ],
    "slip": [
        ("right = guess == name", "right = guess != name", "wrong guesses praised"),
        ("SYMPTOMS[guess]", "SYMPTOMS[name]", "gives the answer away"),
    ],
    "check_slips": [
        ("> 0.02", ">= 0", "slips may look alike"),
    ],
    "judged": [
        ("if w == when", "", "the mean of all models"),
    ],
    "nothing_left": [
        ('"numbers" if y.any() else "zeros"', '"zeros"', "numbers are called zeros"),
    ],
}
