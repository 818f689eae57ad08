"""Chapter 17, what sparse attention costs: two recorded runs, drawn and said."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, log
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn import functional as F

from annotated.memory import kept_bytes
from annotated.page.frames import Html
from annotated.page.notebook import show, show_table
from annotated.page.plots import LINES, OTHER, THIS, name_lines
from annotated.page.records import grouped, span
from annotated.sparse import block_layout, block_sparse_attention, local_pattern

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Record = Mapping[str, Any]
BLOCKS = tuple(f"blocks of {c}" for c in (32, 64, 128))
#: the lines of the figure: colour, dashes, marker
LOOKS: dict[str, tuple[str, str, str]] = {
    "written out": (OTHER, LINES[2], "s"),
    "masked": (OTHER, LINES[1], "^"),
    "fused": (OTHER, LINES[0], "o"),
    "blocks of 64": (THIS, LINES[0], "o"),
    "blocks of 32": (THIS, LINES[1], "^"),
    "blocks of 128": (THIS, LINES[2], "s"),
}
#: the ways of the table, in words
WAYS = {
    "fused": "full attention, fused",
    "sparse": "sparse: a window, a stride",
    "LSH": "LSH, one round",
    "reversible": "full and fused, reversible",
    "Transformer-XL": "Transformer-XL, segments of 128",
    "fused, short": "full and fused, windows of 128",
}


def draw_line(
    ax: "Axes", name: str, points: Sequence[tuple[float, float]], last: float
) -> None:
    """Draw a line through points (x, y), in the look of its ``name``.

    If it ends before x = ``last``, its name stands above its end, where others go on.
    """
    color, dashes, marker = LOOKS[name]
    look = {"color": color, "ls": dashes, "marker": marker, "ms": 5}
    early = points[-1][0] < last
    ax.plot(*zip(*points, strict=True), **look, label=f"_{name}" if early else name)
    if early:
        place = {"xytext": (-6, 2), "textcoords": "offset points"}
        ax.annotate(name, points[-1], **place, color=color, ha="right", va="bottom")


def lengths_axis(ax: "Axes", lengths: Sequence[int]) -> None:
    """Make both axes logarithmic, with ``lengths`` along the lower one."""
    ax.set(xscale="log", yscale="log", xlabel="length")
    ax.set_xticks(lengths, [f"{t // 1024}k" if t >= 1024 else f"{t}" for t in lengths])
    ax.minorticks_off()


# ---- the cost of a window ------------------------------------------------------------


def share(row: Record, length: int) -> float:
    """Return the share of causal pairs that a recorded pattern allows."""
    return row["allowed"] * 2 * length / (length + 1)


def windows(record: Record) -> list[tuple[float, Record]]:
    """Return the recorded windows: their shares of causal pairs, and their rows."""
    length = record["config"]["length"]
    rows = (r for r in record["by sparsity"] if r["pattern"].startswith("window"))
    return [(share(row, length), row) for row in rows]


def crossing(record: Record, way: str, kind: str = "both") -> float | None:
    """Return the share of causal pairs at which blocks take as long as "fused".

    Between two measured windows the logarithms are joined by a line. None if blocks
    win with every window.
    """
    points = [
        (log(s), log(row[kind][way]["to fused"][1])) for s, row in windows(record)
    ]
    for (x0, y0), (x1, y1) in pairwise(points):
        if y0 < 0 <= y1:
            return exp(x0 - y0 * (x1 - x0) / (y1 - y0))
    return None


def widest(record: Record) -> tuple[float, str]:
    """Return up to which share of pairs blocks win, and the blocks that do."""
    return max((crossing(record, way) or 1.0, way) for way in BLOCKS)


def cost_figure(record: Record) -> Html:
    """Plot time by length at one window, and by the share of pairs at one length."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.8))
    by_length, window = record["by length"], record["config"]["window"]
    for name in ("written out", "masked", "fused", "blocks of 64"):
        rows = [row for row in by_length if name in row["both"]]
        points = [(r["length"], r["both"][name]["seconds"][1]) for r in rows]
        draw_line(left, name, points, by_length[-1]["length"])
    lengths_axis(left, [row["length"] for row in by_length][::2])
    left.set(ylabel="seconds", title=f"a window of {window}")
    name_lines(left)

    for name in ("masked", *BLOCKS):
        points = [(s, row["both"][name]["to fused"][1]) for s, row in windows(record)]
        draw_line(right, name, points, points[-1][0])
    right.axhline(1, color=OTHER)
    ticks = (0.03, 0.1, 0.3, 1)
    right.set(xscale="log", yscale="log", xlabel="pairs that may attend")
    right.set_xticks(ticks, [f"{tick:.0%}" for tick in ticks])
    ticks = (0.1, 0.25, 0.5, 1, 2, 4)
    right.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    right.minorticks_off()
    length = record["config"]["length"]
    right.set(ylabel="multiple of fused", title=f"a length of {length:,}")
    name_lines(right)

    at, best = widest(record)
    return show(
        figure,
        title=f"On a CPU, at {length:,} positions, {best} win with up to {at:.0%} of "
        "pairs",
        caption="Forward and backward, medians: one CPU thread, one text, "
        f"{record['config']['heads']} heads {record['config']['width']} wide. Right: "
        "time as a multiple of the fused kernel's, by the share of causal pairs that a "
        "window leaves.",
    )


def cost_said(record: Record) -> str:
    """Say what the recorded times and memory show, in Markdown."""
    long, window = record["by length"][-1], record["config"]["window"]
    ratio = long["both"]["blocks of 64"]["to fused"][1]
    timed = [row["both"] for row in record["by length"] if "masked" in row["both"]]
    timed += [row["both"] for _, row in windows(record)]
    masked = [both["masked"]["to fused"][1] for both in timed]
    at, best = widest(record)
    return "\n".join(
        (
            f"- **Blocks pay where texts are long and windows narrow.** With a window "
            f"of {window} at {long['length']:,} positions, blocks of 64 take "
            f"{ratio:.2f} of the time of full causal attention, fused. "
            f"At {record['config']['length']:,} positions, they win with up to "
            f"{crossing(record, 'blocks of 64'):.0%} of the pairs, and {best} with up "
            f"to {at:.0%}.",
            f"- **A mask saves nothing.** At the lengths and windows of the charts, "
            f"the kernel takes {span(masked, '.1f')} times as long with a mask as "
            "without. (Without one, it knows that all later keys are hidden, and can "
            "skip them.) On a GPU, it also rules out FlashAttention (17b).",
            f"- **What counts is blocks, not pairs.** {ends_said(record)}",
        )
    )


def ends_said(record: Record) -> str:
    """Say what blocks of 64 make of the ends of stretches, in Markdown."""
    row = next(r for r in record["by sparsity"] if r["pattern"] == "fixed, 2")
    length, stride = record["config"]["length"], record["config"]["stride"]
    return (
        f"At {length:,} positions with stretches of {stride}, their ends are "
        f"{share(row, length):.1%} of the pairs. But every block of 64 holds one, so "
        f"none is skipped, and blocks of 64 take "
        f"{row['both']['blocks of 64']['to fused'][1]:.1f} times as long as full "
        "causal attention."
    )


def flex_said(record: Record) -> str:
    """Say what became of ``flex_attention``, in Markdown."""
    flex, formed = record["flex"], record["flex"]["MB, forward"]
    times = {name: three[1] for name, three in flex["forward"].items()}
    return (
        "Compiled, it takes "
        f"{times['flex'] / times['fused']:.2f} of the fused kernel's time at "
        f"{record['config']['length']:,} positions, for the forward pass alone, where "
        f"our blocks of 64 take {times['blocks of 64'] / times['fused']:.2f}. On a CPU "
        "you can't train with it (it has no backward pass there). And if you forget to "
        "compile it, it makes all the scores, and takes "
        f"{formed['flex, uncompiled']:.0f} MB instead of {formed['fused']:.0f}."
    )


# ---- five ways -----------------------------------------------------------------------


def chart_table(record: Record) -> Html:
    """Show time and memory of each way at the longest length, and what it learns."""
    last, config = record["by length"][-1], record["config"]
    learned = grouped(record["learned"], "way")
    rows = []
    for way, words in WAYS.items():
        seconds, MB = ("", "")
        if way in last["MB"]:
            seconds = f"{last['seconds'][way][1]:.2f}"
            MB = f"{last['MB'][way]:.0f}"
        bits = span([row["bits"] for row in learned[(way,)]], ".2f")
        rows.append((words, seconds, MB, bits))
    return show_table(
        ("way", "seconds", "MB", "bits"),
        rows,
        caption=f"On one CPU thread, {config['layers']} layers, {config['d_model']} "
        f"wide. A training step on {last['length']:,} characters: seconds for 1,000 of "
        "them, and memory. Bits per character on new text, after each way has trained "
        f"for {config['seconds']:.0f} seconds, in windows of {config['length']:,}, two "
        "per step; three seeds. Transformer-XL and the last row read 16 places of the "
        f"text at a time. Windows, strides and LSH's chunks are {config['stride']}.",
    )


def kept_bytes_of(t: int = 4096, window: int = 64, block: int = 32) -> dict[str, int]:
    """Return the bytes that autograd keeps of attention: fused, and with a window."""
    q, k, v = (torch.randn(1, 2, t, 32, requires_grad=True) for _ in range(3))
    layout = block_layout(local_pattern(window), block, t)
    ways = {
        "fused": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        "sparse": lambda: block_sparse_attention(q, k, v, layout),
    }
    return {name: kept_bytes(nn.Identity(), way) for name, way in ways.items()}


def kept_said(record: Record, t: int = 4096) -> str:
    """Say why sparse attention takes more memory than the kernel, in Markdown."""
    MB = record["by length"][-1]["MB"]
    kept = {name: size / 1e6 for name, size in kept_bytes_of(t).items()}
    return (
        f"Sparse attention saves pairs. So why does it take {MB['sparse']:.0f} MB "
        f"where the fused kernel takes {MB['fused']:.0f}? Our layer keeps the weights "
        "of its blocks for the backward pass, and a copy of the keys and values that "
        "each block gathered; the kernel keeps neither, and computes the weights "
        f"again (section 17b.3). For a window at {t:,} positions, "
        f"autograd keeps {kept['sparse']:.1f} MB of our layer and {kept['fused']:.1f} "
        "of the kernel. A kernel for windows wouldn't keep them, either."
    )
