"""Faults of recipes/text.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "Recipe": [
        ("decay: float = 0.0", "decay: float = 0.1", "decay by default"),
    ],
    "Corpus": [
        ("    train: Tensor  #: ``(n,)``\n    validation: Tensor",
         "    validation: Tensor\n    train: Tensor", "parts swapped"),
    ],
    "read_text": [
        ('"library" else "".join(texts)', '"library" else texts[0]',
         "characters of one part"),
        ('in ("train", "validation")]\n    characters',
         'in ("validation", "train")]\n    characters', "parts swapped"),
    ],
    "train_text": [
        ("r.batch, r.steps, seed)", "r.batch, r.steps, 0)", "seed ignored"),
        ("weight_decay=r.decay", "weight_decay=0.0", "no decay"),
        ("precision=r.precision", "precision=None", "precision ignored"),
        ('r.model["max_len"]', "64", "windows of another length"),
        ("pct_start=0.1", "pct_start=0.9", "rises nearly to the end"),
        ("clip=1.0,", "clip=9e9,", "not clipped"),
    ],
    "bits_per_character": [
        ("nats / log(2)", "nats", "nats"),
        ("weight=lambda b: b[1].numel()", "weight=lambda b: 1.0", "mean of batches"),
    ],
    "bits_by_position": [
        ("require.at_most(length=length, targets=len(ids) - 1)", "pass", "too short"),
        ("count += len(window)", "count += 1", "batches counted"),
        ("* log(2)", "", "nats"),
        ("if window.shape[1] == length", "if window.shape[1]", "a shorter one, too"),
    ],
    "text_model": [
        ("manual_seed(seed)", "manual_seed(0)", "seed ignored"),
        ('way == "average"', "False", "asks all the same"),
        (", causal=True", "", "the average of the future, too"),
        ("GRUText(size, WIDTHS[way])", "GRUText(size, 48)", "too few parameters"),
    ],
    "run_text_recipe": [
        ("text.validation, length", "text.train, length", "tested on what it learned"),
        ("text.size, seed, recipe", "text.size, 0, recipe", "seed ignored"),
        ("recipe, seed)\n    length", "recipe)\n    length", "windows of seed 0"),
    ],
    "seconds_by_length": [
        ('"max_len": max(lengths)', '"max_len": 64', "no positions"),
        ("torch.randint(len(CHARACTERS), (1, length + 1))",
         "torch.randint(len(CHARACTERS), (1, 65))", "one length for all"),
    ],
}
