"""Faults of annotated/page/ch09.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "padding_share": [
        ("(batch.labels == 0).sum()", "0", "the targets' padding is forgotten"),
    ],
    "counted": [
        ("before[run[:-1]] += times", "before[run[:-1]] += 1", "contexts counted once"),
    ],
    "Control": [
        (".roll(1, 0)", "", "each word keeps its letters"),
    ],
    "as_unequal": [
        ("range(less + 1)", "range(less)", "as unequal doesn't count"),
    ],
    "pointing": [
        ("== said.count(letter.upper()) ", "", "a sound in doubt"),
    ],
    "steadily": [
        ("max(len(said) - 1, 1)", "len(said)", "never at the last letter"),
    ],
    "by_split": [
        ('max(wrong["random"]) < min(wrong["stem"])', "True", "no easier at all"),
    ],
    "sentence_map": [
        ('row["maps"][layer - 1]', 'row["maps"][0]', "another layer's map"),
    ],
    "distance_table": [
        ("table[i, j] > table[before]", "table[i, j] > 0", "what costs nothing is red"),
    ],
    "models_table": [
        ("ours[0] <= theirs[0] + 0.005 and ours[1] <= theirs[1] + 0.015", "True",
         "worse than PyTorch's"),
    ],
    "number_words": [
        ('run["name"] == "ours"', "True", "PyTorch's among ours"),
        ("min(exact) >= 0.99", "True", "less than 99 of 100"),
        ('one.startswith("soixante-deux mille")', "True", "another slip"),
    ],
    "mistakes": [
        ("found[wanted[i], output[j]] += 1", "found[output[j], wanted[i]] += 1",
         "turned round"),
    ],
    "changes": [
        ("if one != other", "if True", "what stayed counts as changed"),
    ],
    "relatives": [
        ("if word not in test", "", "each word is its own relative"),
    ],
    "check_refusals": [
        ('"a beam of 0", source, 0', '"a beam of 0", source[:0], 1', "nothing refused"),
    ],
    "bleu_words": [
        ("counts & allowed", "counts", "no word is missed"),
    ],
    "check_bleu": [
        ("torch.tensor(by_hand)", "torch.tensor(scores[0])", "compared with itself"),
    ],
}
