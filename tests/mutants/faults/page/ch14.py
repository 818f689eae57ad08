"""Faults of annotated/page/ch14.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "peaks_by_length": [
        ('if run["way"] == "checkpointed"', "",
         "stored layers are those of one stream"),
    ],
    "megabytes_saved": [
        ("if place not in weights", "", "weights count"),
        ("kept[storage.data_ptr()]", "kept[len(kept)]", "a view counts again"),
    ],
    "for_one_layer": [
        ("/ (b - a)", "", "all layers count as one"),
    ],
    "scaled": [
        ("- 2 * long[way]", "", "two layers count as what is there once"),
    ],
    "gigabytes": [
        ("layers * 12 * width**2 * 16", "layers * 12 * width * 16",
         "weights grow with the width alone"),
    ],
    "check_undo": [
        ("assert one.equal(other)", "assert one.shape == other.shape",
         "other numbers pass"),
    ],
    "toy_stack": [
        ("if redrawn else first", "if False else first", "dropout always replays"),
        ("(f * d1).sum()", "(f * d2).sum()", "F's gradient is taken from G's stream"),
        ("d1 = d1 + y1.grad", "d1 = d1", "the path through G is lost"),
    ],
    "remembered": [
        ("block + 1 if method == \"stored\"", "1 if method == \"stored\"",
         "stored insides are forgotten"),
    ],
    "check_stack": [
        ("check_close(\"Forgetful", "print(\"Forgetful",
         "a notebook's function isn't compared"),
    ],
    "check_pitfalls": [
        ("raise AssertionError(", "print(", "a pitfall that doesn't stop passes"),
    ],
    "relative": [
        ("(found - true)", "found", "the error isn't the difference"),
    ],
    "plot_hashed": [
        ("ids[0] != ids[1]", "ids[0] == ids[1]", "those that stay count"),
    ],
}
