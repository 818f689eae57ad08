"""Faults of annotated/page/ch12.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "check_memory": [
        ("kept.shape != wanted.shape", "False", "too much may be kept"),
        ("if kept.requires_grad:", "if False:", "memory need not be detached"),
        ("not kept.equal(wanted)", "False", "any states may be kept"),
    ],
    "check_reach": [
        ("if not felt.equal(named):", "if False:", "any states may be named"),
    ],
    "check_shifts": [
        ("if row[:keys] != wanted:", "if row[:1] != wanted[:1]:",
         "only beginnings of rows are compared"),
        ("if row[:keys] != wanted:", "if row != wanted:",
         "cells behind the mask are compared"),
    ],
    "check_attention": [
        ("parameter.normal_(generator=generator)", "parameter.zero_()",
         "without u and v all are alike"),
    ],
    "error_of": [
        ("except RuntimeError", "except Exception", "other errors are hidden"),
    ],
    "_weights": [
        ("mask=weights > 0", "mask=torch.ones(3, 5).tril(2).bool()",
         "weights that were not masked are hatched"),
    ],
    "reach": [
        ("(n - 1) // segment * segment", "n - segment",
         "the frame of a short last segment is too wide"),
        ("len(used) == n", "True", "levels of another text"),
        ("min(memory, begin)", "memory", "a memory before the text"),
    ],
}
