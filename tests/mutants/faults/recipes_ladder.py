"""Faults of annotated/recipes_ladder.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "ladder_pairs": [
        ('"en_US"', '"en_GB"', "another language"),
    ],
    "label_loss": [
        (", ignore_index=Vocabulary.pad", "", "padding counts"),
    ],
    "train_rung": [
        ("if part not in parts", "if part in parts", "upside down"),
        ("manual_seed(seed)", "manual_seed(0)", "seed ignored"),
    ],
    "rung_scores": [
        ('"test", 0', '"test", 1', "other dates"),
    ],
}
