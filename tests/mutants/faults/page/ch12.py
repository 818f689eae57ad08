"""Faults of annotated/page/ch12.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "by_position": [
        ('(run["kind"], run["steps"]) == (kind, steps)', 'run["kind"] == kind',
         "runs of another length"),
    ],
    "results_table": [
        ("part.mean(1)", "part.mean(0)", "means over seeds, not positions"),
    ],
    "recall_table": [
        ("8 + memory", "32 + memory", "words that no layer sees count as seen"),
    ],
    "check_gains": [
        ("slice(16, 32)", "slice(4)", "the beginning twice"),
        ("assert (early > 2 * late).all()", "pass", "nothing is compared"),
    ],
    "check_memory": [
        ("kept.shape == wanted.shape", "True", "too much may be kept"),
        ("assert not kept.requires_grad", "assert True",
         "memory need not be detached"),
        ("kept.equal(wanted)", "True", "any states may be kept"),
    ],
    "check_reach": [
        ("felt.equal(named)", "True", "any states may be named"),
    ],
    "check_shifts": [
        ("row[:keys] == wanted", "row[:1] == wanted[:1]",
         "only beginnings of rows are compared"),
        ("row[:keys] == wanted", "row == wanted",
         "cells behind the mask are compared"),
    ],
    "staircase": [
        ('"cut": 5', '"cut": 6', "cuts at the ends of rows"),
    ],
    "tall_view": [
        ("view(6, 3)", "view(3, 6)", "not tall"),
    ],
    "check_attention": [
        (".flip(0)", "", "distances the wrong way round"),
    ],
    "check_loop": [
        ("options.AttachedXL, mem_len", "TransformerXL, mem_len",
         "a loop that detaches is said to stop"),
        ("(segments(library_ids(\"validation\"), 4, 8), 3)",
         "(segments(library_ids(\"validation\"), 4, 8), 0)", "no step is compared"),
    ],
    "weights": [
        ("mask=table > 0", "mask=torch.ones(3, 5).tril(2).bool()",
         "weights that were not masked are hatched"),
    ],
    "reach": [
        ("(n - 1) // segment * segment", "n - segment",
         "the frame of a short last segment is too wide"),
        ("len(used) == n", "True", "levels of another text"),
        ("min(memory, begin)", "memory", "a memory before the text"),
    ],
}
