"""Faults of annotated/page/ch17_learning.py: (text, replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "limit": [
        ("(1 - reach) / symbols", "1 / symbols", "guesses where it's heard, too"),
    ],
    "percent": [
        ("low == high", "False", "the same number twice"),
        ("min(shares), max(shares)", "max(shares), min(shares)", "highest first"),
    ],
    "copy_live_table": [
        ("limit(reach, symbols):.0%", "reach:.0%", "guesses don't count"),
    ],
    "copy_figure": [
        ("0 < reach < 1", "reach < 1", "what isn't heard has a limit, too"),
        ("None if reach else", "None if reach < 1 else", "partly heard is hatched"),
        ("runs[layers, name, distance]", "runs[1, name, distance]", "one layer twice"),
    ],
    "steps_said": [
        ("(_, one), (_, two)", "(_, two), (_, one)", "layers change places"),
    ],
    "copy_facts": [
        ('r["layers"] == 1 and r["distance"]', 'r["distance"]', "two layers, too"),
        ("r[\"reach\"] == 0", "r[\"reach\"] < 1", "partly heard is unheard"),
        ("- r[\"right\"]", "- r[\"reach\"]", "nobody looks at what was learned"),
        ("r not in fixed", "r in fixed", "the exception is the rule"),
        ("fixed if r[\"distance\"] > stride", "fixed if r[\"distance\"] > 0",
         "near ones, too"),
    ],
    "copy_said": [
        ("max(facts['short'])", "min(facts['short'])", "the best is the worst"),
        ("percent(facts['longer'])", "percent(facts['fixed'])",
         "time changes nothing"),
    ],
    "sight_figure": [
        ("row * SIDE + column", "column * SIDE + row", "another pixel"),
        ("image, read=target", "image", "the future isn't pale"),
    ],
    "seen_pixels": [
        ("target - 1", "target", "it sees what it should predict"),
        ("if any(", "if all(", "what both heads see"),
    ],
    "image_bits": [
        ("[name, times]", "[name, 1]", "never longer"),
    ],
    "stride_bits": [
        ("\"stride\").items()", "\"seed\").items()", "sorted by seed"),
    ],
    "gains": [
        ("a - b", "b - a", "better is worse"),
        ("(image_bits(record, name, times)", "(image_bits(record, name)",
         "never longer"),
    ],
    "check_copies": [
        ("> 0.8", "> 0.0", "anything is most"),
        ("< 0.6", "< 1.6", "whatever is gained"),
        ("< 0.4 < min", "< 1.4 and min", "the fixed pattern may learn as well"),
    ],
    "check_strides": [
        ("< min(others) - 0.01", "< max(others) + 1", "any stride will do"),
    ],
    "images_figure": [
        ("image_bits(record, name)", "image_bits(record, \"row\")", "always the row"),
        ("stride == SIDE", "stride != SIDE", "wrong ones look right"),
    ],
    "later_said": [
        ("min(longer) > 0", "True", "a lead even where there's none"),
        ("row and column\", times)", "row and column\")", "not longer at all"),
    ],
    "images_said": [
        ("wrong = min(min(bits)", "wrong = max(max(bits)", "the worst wrong one"),
        ("{max(strides[SIDE]):.3f}", "{min(strides[SIDE]) / 2:.3f}", "half the bits"),
    ],
}
