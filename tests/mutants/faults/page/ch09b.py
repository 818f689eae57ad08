"""Faults of annotated/page/ch09b.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "answer": [
        ("len(finished) >= width", "finished", "the first one that ends is enough"),
        ("hope / most**alpha", "hope", "a bound that forgets the penalty"),
        ("log / n**alpha, path", "log, path", "no penalty"),
    ],
    "telling": [
        ("if before[i] else", "if not before[i] else", "mended and lost are swapped"),
    ],
    "sentence_tree": [
        ('"end" if piece == "<end>" else piece', "piece", "the end isn't one"),
    ],
    "penalties_figure": [
        ("alpha = ratio / growth", "alpha = ratio", "where the lines cross"),
    ],
    "steps_until": [
        ("best = max([best, *ends])", "best = max(ends, default=best)",
         "what was finished before is forgotten"),
    ],
    "exchanged": [
        ("pairs.count((False, True)), pairs.count((True, False))",
         "pairs.count((True, False)), pairs.count((False, True))",
         "won and lost are swapped"),
    ],
    "Forgetful": [
        ("len(rows) != len(self.tokens)", "True", "forgets nothing"),
    ],
    "draw": [
        (".softmax(dim=-1)", ".mul(2.0).softmax(dim=-1)", "sampled too coldly"),
        (".repeat_interleave(count, dim=0)", ".repeat(count, 1)",
         "rows of other words"),
    ],
    "price_table": [
        ("1000 * row", "row", "seconds are called milliseconds"),
    ],
}
