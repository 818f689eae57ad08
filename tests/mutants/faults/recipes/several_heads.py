"""Faults of recipes/several_heads.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "giving_sentences": [
        ("tokens[:, [WHO, WHAT, WHOM]]", "tokens[:, [WHO, WHOM, WHAT]]", "exchanged"),
    ],
    "Giving.forward": [
        ("x[:, VERB : VERB + 1], x)", "x[:, WHO : WHO + 1], x)", "another one asks"),
        (" + self.positions)", ")", "no positions"),
    ],
    "WordNetwork.forward": [
        ("x + self.second", "self.second", "the word itself is lost"),
    ],
    "with_network": [
        ("model.before = WordNetwork()", "WordNetwork()", "built and not used"),
    ],
    "train_giving": [
        ("nouns.flatten()", "nouns.mT.flatten()", "the answers of others"),
        ("manual_seed(seed)", "manual_seed(0)", "seed ignored"),
    ],
    "answers_right": [
        ("mean(dim=0)", "mean(dim=1)[:3]", "sentences, not questions"),
    ],
    "library_prose": [
        ('re.sub(" +", " ", re', 're.sub(" +", "  ", re', "gaps"),
    ],
    "letter_codes": [
        ('BLANK if c == "_"', 'BLANK if c == "-"', "a hyphen is a blank"),
    ],
    "MissingLetter.forward": [
        ("x[:, SIDE : SIDE + 1], x)", "x[:, -1:], x)", "another one asks"),
        (" + self.positions", "", "no positions"),
    ],
    "letter_loss": [
        ("model(hidden)", "model(windows)", "the letter is in sight"),
    ],
    "train_letters": [
        ("train, _ =", "_, train =", "trained on the test"),
        ("manual_seed(seed)", "manual_seed(0)", "seed ignored"),
    ],
    "letters_right": [
        ("model(hidden)", "model(chosen)", "the letter is in sight"),
        ("_, test =", "test, _ =", "tested on what was seen"),
    ],
    "letter_windows": [
        ("windows[cut + 2 * SIDE :]", "windows[cut:]", "test letters seen in training"),
    ],
    "hide_letter": [
        ("windows.clone()", "windows", "the letter is lost"),
    ],
    "right_without_each": [
        ("columns.copy_(kept)", "columns.add_(0)", "heads stay away"),
        ("chunk(attention.heads, dim=1)", "chunk(attention.heads, dim=0)", "its rows"),
    ],
}
