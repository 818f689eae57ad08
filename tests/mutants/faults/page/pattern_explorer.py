"""Faults of page/pattern_explorer.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "pattern_of": [
        ('local_pattern(state["window"], causal)', 'local_pattern(state["window"])',
         "the window never shows later keys"),
        ("strided_patterns(stride, causal)[1]", "strided_patterns(stride, causal)[0]",
         "another window in place of far keys"),
        ("range(0, t, every)", "range(1, t, every)", "others are global"),
    ],
    "pairs_of": [
        ('torch.where(apart % every == 0, first, 0)', "0", "two globals count twice"),
        ("2 * pairs.sum() - pairs[0]", "2 * pairs.sum()", "the diagonal twice"),
        ('apart < state["window"]', 'apart <= state["window"]', "a window too wide"),
    ],
    "first_heard": [
        ("after > POSITIONS, 0", "after > POSITIONS, 1", "never is at once"),
        (".amin(0)", ".amax(0)", "the last layer"),
    ],
    "values_of": [
        ("pairs_of(state, long)", "pairs_of(state, POSITIONS)",
         "pairs of the short text"),
        ('first <= state["layers"]', 'first < state["layers"]', "a layer too few"),
    ],
    "trained": [
        ("row['stride'] or 0", "row['stride']", "none isn't none"),
        ("GLOBALS[some]", "0", "global or not is the same"),
    ],
    "fewest": [
        ("after <= layers", "after < layers", "in one layer less"),
        ("min(found", "max(found", "the most"),
    ],
    "said": [
        ('if stride != "none"', 'if some != "none"', "no far keys"),
    ],
    "pattern_explorer": [
        ("fewest(True), fewest(False)", "fewest(False), fewest(True)",
         "the answers change places"),
        ('"bits": {name: sorted(each)', '"bits": {name: each', "no span of seeds"),
    ],
    "grid_said": [
        ("if len(each) > 1", "if len(each) > 0", "one seed is several"),
        ('if name[:2] == "1 "', "", "a window of 1 is told with wider ones"),
        ('if name[:2] != "1 "', "", "wider ones are told with a window of 1"),
    ],
}
