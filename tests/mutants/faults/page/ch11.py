"""Faults of annotated/page/ch11.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "writing": [
        ("typed += shares[0][0]", "typed += shares[-1][0]",
         "the least likely is appended"),
    ],
    "window_bits": [
        (".cpu().mT", ".cpu().mT.roll(1, 2)", "another character's bits"),
        ("math.log(2)", "math.log(10)", "not bits"),
    ],
    "bracket_pairs": [
        ("closed.append(opened.pop())", "closed.append(opened.pop(0))",
         "the first bracket is closed"),
        (">= least", "> least", "one too few isn't enough"),
        ('("closed", closed)):', '("closed", closed[:-1])):', "the last is forgotten"),
    ],
    "last_weights": [
        ("layers.1", "layers.0", "the first layer"),
    ],
    "weight_on_brackets": [
        ("(i + 1)[:, None]", "i[:, None]", "the average sees the character itself"),
        ("weights[b, :, i, j]", "weights[b, :, i, 0 * j]", "the first character"),
        ("torch.stack([one.mean(dim=0) for one in each])", "torch.cat(each)",
         "each pair counts the same, not each distance"),
    ],
    "strip": [
        ("[0, head, -1]", "[0, 0, -1]", "another head"),
    ],
    "letter_bits": [
        ("row[i - 1]", "row[i]", "no letter begins a word"),
        ("range(1, len(row))", "range(len(row))", "its last is before the first"),
    ],
    "ending_bits": [
        ("found.end() - 2", "found.start()", "all of its letters"),
        (r'rf"\b{word}\b"', "word", "in other words, too"),
    ],
    "words_of": [
        ("WORD.findall", 're.compile("[A-Za-z_]{3,}").findall', "half a word counts"),
    ],
    "pieces_of": [
        ("found.end()", "found.start()", "the beginning counts, too"),
        ("manual_seed(seed)", "manual_seed(0)", "the same ones are drawn"),
    ],
    "word_counts": [
        ("len(set(words))", "len(words)", "repeats count"),
        ("known.intersection(words)", "known", "all that the text has"),
    ],
    "by_position": [
        ('row["way"] == way', 'row["way"] != way', "all other models"),
    ],
    "check_mixing": [
        ("mask, scale=1.0", "None, scale=1.0", "compared without a mask"),
    ],
    "check_write": [
        ("assert wrote == write(", "assert wrote or write(", "nothing is compared"),
    ],
    "answers": [
        ("seed - 1", "seed - 2", "another try's draws"),
    ],
    "text_writer": [
        ("manual_seed(0)", "manual_seed(1)", "other draws than those of the check"),
    ],
    "first_lines": [
        ("[:10]", "[:11]", "a line more"),
    ],
    "side_by_side": [
        ("grown[last]", "grown[begun, 100]", "what it wrote after 100 steps"),
    ],
    "surprises": [
        ("torch.arange(-64, 0)", "torch.arange(-63, 1)", "it reads the character"),
    ],
    "shaded": [
        ("0.6)", "0.9)", "the strongest hide their letter"),
    ],
    "check_scaling": [
        ("assert max(first) < cuts[2] - 0.3 and min(first) > cuts[3] + 0.04", "pass",
         "any model may be the small one"),
    ],
}
