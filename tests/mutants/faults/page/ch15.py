"""Faults of annotated/page/ch15.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "gap": [
        ("row and i > len(before)", "False", "both sides, twice"),
    ],
    "hidden_row": [
        ('"right" if read[i] == tokens[i] else "wrong"', '"wrong"', "what stays, too"),
        ("tokens[i] if answers", "read[i] if answers", "asked for what is read"),
    ],
    "check_hide": [
        ("assert not asked[tokens == 0].any()", "assert True", "padding asked for"),
    ],
    "inputs_picture": [
        ("[0, 0, 0, 0, 1, 1, 1]", "[0, 0, 0, 1, 1, 1, 1]", "an end of the other one"),
    ],
    "check_bert": [
        ('{"src_key_padding_mask": ~real}', "{}", "padding is seen"),
    ],
    "parameter_count": [
        ("c.layers * layer", "layer", "one layer"),
        ("+ 2 * norm", "+ norm", "one norm a layer"),
        ("+ (2 * d + 2)", "", "no second task"),
    ],
    "counts_table": [
        ('there - parts["heads"]', "there", "heads in both"),
    ],
    "plateau_figure": [
        ("losses[-1]", "losses[0]", "where it began"),
        ("share > 0.2", "share > 0.05", "from the start"),
    ],
    "neighbour_shares": [
        ("w.diagonal(1, 2, 3)", "w.diagonal(0, 2, 3)", "itself"),
        ("tokens.shape[1]", "(tokens.shape[1] - 1)", "of the others"),
        ("evaluating(model), ", "", "with dropout"),
    ],
    "delays_figure": [
        ('run["last"] for run in runs[kind,]', 'run["left"] for run in runs[kind,]',
         "when, not where"),
    ],
    "delays_said": [
        ("left[bare].count(0) == 2", "True", "never, whatever was found"),
    ],
    "neighbours_figure": [
        ("run['losses'][-1]", "run['losses'][0]", "at the beginning"),
    ],
    "neighbours_said": [
        ('record["every"] - 1]', 'record["every"]]', "one look later"),
        ("min(without) > max(end) + 0.3", "True", "whatever was found"),
    ],
    "masking_table": [
        ('("shown", "accuracy", ".0%")', '("masks", "accuracy", ".0%")', "hidden ones"),
    ],
    "masking_said": [
        ("{shown[1]:.0%}", "{shown[0]:.0%}", "of BERT's way"),
    ],
    "pairs_table": [
        ('("topic", "model")', '("model", "topic")', "exchanged"),
    ],
    "pairs_said": [
        ("max(model) < 0.65", "True", "as though topics won, whatever was found"),
    ],
    "few_labels_figure": [
        ("(kind, sizes[0]) not in means", 'kind == "encoder"', "one line fewer"),
    ],
    "few_labels_said": [
        ("(\"shuffled\", \"pretrained\", \"scratch\")",
         "(\"scratch\", \"pretrained\", \"shuffled\")", "exchanged"),
    ],
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
