"""Faults of recipes/date_transformer.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "dates": [
        ("date_pairs(pairs, split)", "every[:pairs]", "tested on what was seen"),
    ],
    "date_batches": [
        ("1000 * seed + i", "1000 * seed", "every pass in the same order"),
    ],
    "date_model": [
        ("manual_seed(seed)", "manual_seed(0)", "seed ignored"),
        ("norm=norm, ", "", "always post-norm"),
    ],
    "train_date_transformer": [
        ("date_batches(seed, steps)", "date_batches(0, steps)", "seed ignored"),
    ],
    "label_loss": [
        (", ignore_index=Vocabulary.pad", "", "padding counts"),
    ],
    "train_on_few": [
        ('"pre", dropout', '"pre"', "dropout forgotten"),
    ],
    "begin": [
        ("n <= steps", "n < steps", "a small step too few"),
    ],
    "differences": [
        ("x - x.mean(dim=0)", "x", "the mean counts, too"),
        ("model.decoder", "model.encoder", "the other stack"),
    ],
    "how_well": [
        ("sure.exp()[real]", "sure.exp()", "padding counts in the confidence"),
        ("(correct | ~real).all", "(correct | ~real).any", "one symbol is enough"),
    ],
}
