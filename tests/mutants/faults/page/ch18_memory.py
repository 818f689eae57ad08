"""Faults of annotated/page/ch18_memory.py: (text, replacement, what's wrong)."""

# fmt: off
FAULTS = {
    "ways": [
        ('or "as it is"', "", "no name"),
        ("words.get(key) or ", "", "checkpoints are a precision"),
    ],
    "timeline_figure": [
        ('told["held before"] + size', "size", "parameters aren't in the count"),
        ("fullest.append(places[seen.index(max(seen))])", "fullest.append(places[0])",
         "the areas' peak is elsewhere"),
        ("use[part] / 1e6", "use[part] / 2**20", "MiB"),
    ],
    "where_figure": [
        ('row["resident"] / 1e6] * 2', 'row["total"] / 1e6] * 2',
         "measured is predicted"),
        ("left = [a + b", "left = [a", "bars hide each other"),
        ('if r["options"] in drawn', "", "all runs"),
    ],
    "memory_said": [
        ('max(abs(row["off"][key])', 'min(abs(row["off"][key])', "the best run"),
        ('abs(row["off"][key])', 'row["off"][key]', "too little isn't seen"),
    ],
    "check_kept": [
        ("assert predicted == counted", "assert predicted", "nothing is compared"),
        ("config.layers - 1", "config.layers", "a block too many"),
    ],
    "block_table": [
        ("3 * stream", "stream", "queries alone"),
        ("whole - sum(size for *_, size in rows)", "whole", "the rest is everything"),
        ("n * whole", "whole", "one block for all of them"),
    ],
    "bytes_table": [
        ("precision=name", 'precision="float32"', "always single precision"),
    ],
    "attention_matrices": [
        ("one, found = 4 * b * h * t * t", "one, found = b * h * t * t", "bytes"),
    ],
    "source_arithmetic": [
        ("(most - kept) * layer", "most * layer", "what is kept counts twice"),
        ("layer = 16 * 4 * one", "layer = 16 * one", "one head"),
    ],
}
