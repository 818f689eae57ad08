"""Faults of recipes/pronouns.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "sentences": [
        ("pairs[: unseen - 1]", "pairs[:unseen]", "one pair too many kept apart"),
        ("(animal, place) in apart", "animal == 'cat'", "words never seen"),
    ],
    "meant": [
        ("in MOODS", "in LOOKS", "upside down"),
    ],
    "encode": [
        ("genders[meant(choice)]", "genders[choice[0]]", "always the animal"),
    ],
    "PronounReader.__init__": [
        ('roles != "one"', 'roles == "three"', "no value of its own"),
        ('0.0 if roles == "equal" else None', "None", "weights differ"),
    ],
    "PronounReader.forward": [
        ("asking = asking + seen", "asking = asking", "the first look is lost"),
    ],
    "train_reader": [
        ("pronouns[batch]", "pronouns[batch.roll(1)]", "the answers of others"),
        ("optimizer.zero_grad()", "", "old gradients stay"),
    ],
}
