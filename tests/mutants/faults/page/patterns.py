"""Faults of page/patterns.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "named": [
        ("dilated_pattern(stride, 2, causal)", "dilated_pattern(stride, 3, causal)",
         "other gaps"),
        ("Pattern(0) if causal else Pattern()", "Pattern(0)",
         "full, but not both ways"),
        ("[0, length // 2]", "[0]", "one global token"),
    ],
    "share": [
        ("min(99, round(100 * part / whole))", "round(100 * part / whole)",
         "nearly all is all"),
    ],
    "board": [
        ("past & ~mask", "~mask", "the future looks skipped"),
        ("drawing.cells(1, 1, mask, size=size)",
         "drawing.cells(1, 1, mask.T, size=size)",
         "rows are keys"),
    ],
    "gallery": [
        ("require_alt(alt)", "alt", "says nothing"),
    ],
    "hero": [
        ("length * (length + 1) // 2", "length**2", "a share of the future, too"),
    ],
    "one_query": [
        ("set(asked), heard", "set(asked), set(asked)", "nobody hears the text"),
        ("near[j].nonzero()", "every[j].nonzero()", "the far step twice"),
        ("dashed=i > query", "dashed=i < query", "the past is still to come"),
    ],
    "compared": [
        ("global_pattern([0], causal)", "global_pattern([0])",
         "the first token never hears"),
    ],
    "reach_figure": [
        ("if causal else length**2", "if causal else length * (length + 1) // 2",
         "more than all"),
        ("(fast, \"window, window + first\")", "(\"window\", fast)",
         "names at the wrong lines"),
    ],
    "uses": [
        ('"one step per layer": [a, b]',
         '"one step per layer": [a]',
         "one step alone"),
    ],
}
