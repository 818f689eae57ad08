"""Faults of recipes/ladder.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "ladder_pairs": [
        ('"en_US"', '"en_GB"', "another language"),
    ],
    "ladder_vocabularies": [
        ('"".join(months) + DIGITS', '"".join(months)', "digits are missing"),
    ],
    "train_rung": [
        ("if part not in parts", "if part in parts", "upside down"),
        ("manual_seed(seed)", "manual_seed(0)", "seed ignored"),
    ],
    "translations": [
        ("rung.target.decode", "rung.source.decode", "symbols of the other side"),
        ("start=Vocabulary.start", "start=Vocabulary.end", "begins with the end"),
    ],
    "rung_scores": [
        ('"test", 0', '"test", 1', "other dates"),
    ],
}
