"""Faults of annotated/page/ch18b.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "hero": [
        ("shade = (0.12, 0.35)[rank]", "shade = 0.12", "two processes, one half"),
    ],
    "sends": [
        ("(n if wait else layer)", "layer", "nobody waits"),
        ("(n if wait else layer)", "(layer if wait else n)", "the other way round"),
        ("max(ready, starts[-1] + send)", "ready", "two buckets at once on the wire"),
    ],
    "buckets": [
        ("start < layers * compute", "start <= layers * compute",
         "the last one looks hidden"),
        ("= starts[-1] + send", "= starts[-1]", "an update before its gradient"),
        ("sends(layers, compute, send, wait=wait)",
         "sends(layers, compute, send, wait=True)", "no time is saved"),
        ('f"{layers - i}"', 'f"{i + 1}"', "a backward pass that begins at the first"),
    ],
    "gaps": [
        ("abs(a - b) / abs(a)", "(a - b) / a", "signs cancel"),
        ("abs(a - b) / abs(a)", "abs(a - b)", "not relative"),
    ],
    "bytes_exchanged": [
        ("2 * (n - 1) / n", "(n - 1) / n", "half the way"),
        ("2 * (n - 1) / n", "2 * (n - 1)", "not in pieces"),
    ],
    "held": [
        ("size / n if what in split else size", "size / n", "everything divided"),
    ],
    "flips": [
        ("        seen[2] += not all", "        seen[2] += 0 * all",
         "unnoticed changes aren't counted"),
        ("    copy.unlink()\n", "", "a damaged file is left behind"),
    ],
    "ring": [
        ("if step < n - 1 else 0", "if step < n else 0", "the first sum added twice"),
        ("(p - step) % n, held[p][(p - step) % n]",
         "(p + step) % n, held[p][(p + step) % n]", "the wrong piece is sent"),
    ],
    "ring_explorer": [
        ('"sent": step / n', '"sent": step', "pieces, not gradients"),
    ],
    "holds_explorer": [
        ("0 if what in MODES[mode] else values[what]", "values[what]",
         "the least is what there is"),
        ("size * BILLIONS for", "size * BILLIONS / n for", "divided twice"),
        ("(str(made.text) + holds_answer())", "(str(made.text))", "no answer"),
    ],
    "holds_answer": [
        ("_, first, _, third = MODES", "first, _, _, third = MODES", "DDP is no stage"),
        ("each(third, n) < few", "each(third, n) < 30", "one process too few"),
        ("for n in COUNTS", "for n in COUNTS[::-1]", "more processes than needed"),
    ],
    "gains": [
        ('min(row["one, wall"]) / min(row["two, wall"])',
         'min(row["two, wall"]) / min(row["one, wall"])', "upside down"),
        ('min(row["one, wall"])', 'max(row["one, wall"])', "the most disturbed step"),
    ],
    "speed_said": [
        ("(max(found), min(found))", "(min(found), max(found))", "the other batch"),
        ("1 / found[size]", "found[size]", "slower by the faster's number"),
        ("> 1.05", "> 1.0", "a gain of nothing"),
    ],
}
