"""Faults of annotated/notebook.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "setup": [
        ("    torch.manual_seed(seed)\n", "", "torch not seeded"),
        ("    numpy.random.seed(seed)\n", "", "numpy not seeded"),
        ("    random.seed(seed)\n    use", "    use", "random not seeded"),
        ("    use_style()\n", "", "no style"),
        ('wanted or ("cuda" if found else "cpu")',
         '"cuda" if found else "cpu"', "environment ignored"),
        ('wanted or ("cuda" if found else "cpu")', 'wanted or "cpu"', "GPU unused"),
    ],
    "show_source": [
        ("textwrap.dedent(source)", "source", "not dedented"),
        ("textwrap.dedent(source)", "inspect.cleandoc(source)", "indentation lost"),
        ("for thing in things:\n        try",
         "for thing in things[:1]:\n        try", "first thing only"),
    ],
    "_docstrings_shortened": [
        ("thing.lineno, reverse=True", "thing.lineno", "lines move under the cutter"),
        ("if len(kept) < end - first:", "if len(kept) < 0:", "docstring never ends"),
        ("if len(kept) < end - first:", "if kept:", "docstring ends twice"),
        ("list(takewhile(str.strip, lines[first:end]))",
         "lines[first:end]", "whole docstring"),
    ],
    "check_shape": [
        ("tuple(tensor.shape) != tuple(axes.values())",
         "tuple(tensor.shape) == tuple(axes.values())", "not dropped"),
        ("tuple(tensor.shape) != tuple(axes.values())",
         "sorted(tensor.shape) != sorted(axes.values())", "axes in any order"),
        ("tuple(tensor.shape) != tuple(axes.values())",
         "tensor.shape[: len(axes)] != tuple(axes.values())", "axes left out"),
    ],
    "check_close": [
        ("gap.max() > tolerance", "gap.mean() > tolerance", "mean"),
        ("gap.max() > tolerance", "gap.min() > tolerance", "best difference"),
        ("gap.max() > tolerance", "gap.max() >= tolerance", "limit refused"),
        ("gap.max() > tolerance",
         "gap.max() > tolerance * (1 + other.abs().max())", "relative"),
        (".cpu()).abs()", ".cpu())", "sign"),
        ("gap.isfinite().all()", "gap.isfinite().any()", "NaN accepted"),
        ("not gap.isfinite().all()", "gap.isnan().any()", "infinity accepted"),
        ("one.shape != other.shape", "one.numel() != other.numel()", "broadcast"),
        ("if one.numel() == 0", "if False", "empty accepted"),
        ("len(pairs[0]) != len(pairs[1]) or", "", "count ignored"),
        (" or not pairs[0]", "", "nothing accepted"),
        ("one.detach().double()", "one.detach().half()", "half precision"),
        ("worst = max(worst, gap.max().item())",
         "worst = gap.max().item()", "last difference printed"),
    ],
    "_as_list": [
        ("[tensors] if isinstance(tensors, Tensor) else", "", "rows for tensors"),
    ],
    "cost": [
        ("time.process_time()", "time.perf_counter()", "seconds of the clock"),
        ("else 2**20", "else 2**30", "unit"),
        ('if importlib.util.find_spec("resource")', "if True", "Windows"),
    ],
    "show": [
        ("<figcaption>{html.escape(caption)}",
         "<figcaption>{caption}", "caption not escaped"),
        ('</figcaption>" if caption else ""', '</figcaption>"', "empty caption"),
    ],
}
