"""Faults of page/ch17_cost.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "draw_line": [
        ('f"_{name}" if early else name', "name",
         "a name in the way of lines that go on"),
        ("    if early:\n", "    if not early:\n", "a short line has no name"),
    ],
    "lengths_axis": [
        ("t // 1024", "t // 512", "1k is 2k"),
    ],
    "share": [
        (" * 2 * length / (length + 1)", "", "of all pairs, later keys too"),
    ],
    "windows": [
        ('r["pattern"].startswith("window")', 'r["pattern"]',
         "strided patterns are windows"),
    ],
    "crossing": [
        ("log(row[kind][way]", "log(row['both'][way]", "with backward, always"),
        ("exp(x0 - y0", "exp(x0 + y0", "beyond the windows"),
        ('["to fused"][1]', '["to fused"][2]', "the slowest turn"),
    ],
    "cost_figure": [
        ('("masked", *BLOCKS)', "BLOCKS", "no mask to compare with"),
        ('for name in ("written out", "masked", "fused", "blocks of 64")',
         'for name in ("written out", "masked", "fused")', "no blocks by length"),
        ("if at is not None", "if at is None", "the claim is the wrong one"),
    ],
    "span": [
        ("min(values), max(values)", "max(values), min(values)", "from high to low"),
        ("low if low == high else ", "", "one number twice"),
    ],
    "cost_said": [
        ('["to fused"][1]\n    timed', '["seconds"][1]\n    timed',
         "seconds, not ratios"),
        ('    timed += [row["both"] for _, row in windows(record)]\n', "",
         "one window only"),
    ],
    "ends_said": [
        ('"fixed, 2"', '"window 64"', "another pattern"),
        ("share(row, length)", "row['allowed']", "of all pairs, later keys too"),
    ],
    "flex_said": [
        ("times['flex'] / times['fused']", "times['fused'] / times['flex']",
         "upside down"),
        ('if flex["backward raises"]:', "if True:", "an error that wasn't raised"),
    ],
    "crossing_said": [
        ('"blocks of 64"', '"blocks of 32"', "other blocks"),
        ("if at is None", "if at is not None", "who always wins doesn't"),
    ],
    "learned_bits": [
        ("mean(item[1])", "-mean(item[1])", "the worst comes first"),
    ],
    "short_is_best": [
        ("max(short) < min(rest)", "min(short) < min(rest)", "one seed is enough"),
        ("if way not in EXPLAINED", "", "short pieces are to lead themselves"),
    ],
    "draw_learned": [
        ("reversed(bits.items())", "bits.items()", "dots in others' rows"),
        ("min(each), max(each), color", "min(each), mean(each), color",
         "half of the range"),
        ("mean(each):.2f", "min(each):.2f", "the best seed for the mean"),
        ("if short_is_best(bits)", "if True", "a claim that the record denies"),
    ],
    "chart_figure": [
        ('last["seconds"][way][1])', '-last["seconds"][way][1])', "the slowest"),
        ("fast == small", "fast != small", "one way told as two"),
    ],
    "named": [
        ('.get(way, way)', ".get(way, '')", "a way without a name"),
    ],
    "chart_said": [
        ('{three[1]:.2f}', '{three[2]:.2f}', "the slowest turn"),
        ("max(least) < min(most)", "min(least) < min(most)",
         "seeds that overlap are told apart"),
    ],
}
