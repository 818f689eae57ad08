"""Chapter 17, what sparse attention costs: two recorded runs, drawn and said."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, log
from statistics import mean
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt

from annotated.page.frames import Html
from annotated.page.notebook import show
from annotated.page.plots import LINES, OTHER, THIS, name_lines
from annotated.page.records import grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Record = Mapping[str, Any]
BLOCKS = tuple(f"blocks of {c}" for c in (32, 64, 128))
#: the lines of both figures: colour, dashes, marker
LOOKS: dict[str, tuple[str, str, str]] = {
    "written out": (OTHER, LINES[2], "s"),
    "masked": (OTHER, LINES[1], "^"),
    "fused": (OTHER, LINES[0], "o"),
    "blocks of 64": (THIS, LINES[0], "o"),
    "blocks of 32": (THIS, LINES[1], "^"),
    "blocks of 128": (THIS, LINES[2], "s"),
    "sparse": (THIS, LINES[0], "o"),
    "LSH": (OTHER, LINES[1], "^"),
    "Transformer-XL": (OTHER, LINES[3], "D"),
    "reversible": (OTHER, LINES[1], "v"),
    "fused, short": (OTHER, LINES[0], "o"),
}
#: fused attention on windows as short as Transformer-XL's segments
CONTROL = "fused, short"


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
    right.set(ylabel="fused = 1", title=f"a length of {length:,}")
    name_lines(right)

    at = crossing(record, "blocks of 64")
    return show(
        figure,
        title=f"At {length:,} positions, blocks of 64 win with up to {at:.0%} of pairs",
        caption="Forward and backward, medians: one CPU thread, one text, "
        f"{record['config']['heads']} heads {record['config']['width']} wide. Right: "
        "time as a multiple of the fused kernel's, by the share of causal pairs that a "
        "window leaves.",
    )


def span(values: Sequence[float], style: str = ".2f") -> str:
    """Write the least and the most of some values, once if they look the same."""
    low, high = (f"{value:{style}}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def cost_said(record: Record) -> str:
    """Say what the recorded times and memory show, in Markdown."""
    long, window = record["by length"][-1], record["config"]["window"]
    ratio = long["both"]["blocks of 64"]["to fused"][1]
    timed = [row["both"] for row in record["by length"] if "masked" in row["both"]]
    timed += [row["both"] for _, row in windows(record)]
    masked = [both["masked"]["to fused"][1] for both in timed]
    return "\n".join(
        (
            f"- **Blocks pay where texts are long and windows narrow.** With a window "
            f"of {window} at {long['length']:,} positions, blocks of 64 take "
            f"{ratio:.2f} of the time of full causal attention, fused. "
            f"At {record['config']['length']:,} positions, they win with up to "
            f"{crossing(record, 'blocks of 64'):.0%} of the pairs.",
            f"- **A mask saves nothing.** At the lengths and windows of the charts, "
            f"the kernel takes {span(masked, '.1f')} times as long with a mask as "
            "without. (Without one, it knows that all later keys are hidden, and can "
            "skip them.)",
            f"- **What counts is blocks, not pairs.** {ends_said(record)}",
            "",
            flex_said(record),
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
        "causal attention. (It would be cheap to collect those few keys first, but our "
        "module doesn't.)"
    )


def flex_said(record: Record) -> str:
    """Say what became of ``flex_attention``, in Markdown."""
    flex, formed = record["flex"], record["flex"]["MB, forward"]
    times = {name: three[1] for name, three in flex["forward"].items()}
    words = flex["backward raises"].partition(". ")[0].rstrip(".")
    return (
        "PyTorch's own tool, `flex_attention`, makes a kernel from a rule such as "
        "`lambda b, h, i, j: (j <= i) & (i - j < 256)`. Compiled, it takes "
        f"{times['flex'] / times['fused']:.2f} of the fused kernel's time forward at "
        f"{record['config']['length']:,} positions, where our blocks of 64 take "
        f"{times['blocks of 64'] / times['fused']:.2f}. But on a CPU you can't train "
        f"with it: `{words}`. And if you forget to compile it, it makes all the "
        f"scores, and takes {formed['flex, uncompiled']:.0f} MB instead of "
        f"{formed['fused']:.0f}."
    )


# ---- the one chart -------------------------------------------------------------------


def learned_bits(record: Record) -> dict[str, list[float]]:
    """Return the bits of each way, a number for each seed; the best way comes first."""
    found = {
        way: [run["bits"] for run in runs]
        for (way,), runs in grouped(record["learned"], "way").items()
    }
    return dict(sorted(found.items(), key=lambda item: mean(item[1])))


def draw_learned(ax: "Axes", record: Record) -> None:
    """Draw a dot for each seed, their range, and their mean at the end of the row."""
    config, bits = record["config"], learned_bits(record)
    for place, (way, each) in enumerate(reversed(bits.items())):
        color, _, marker = LOOKS[way]
        ax.hlines(place, min(each), max(each), color=color)
        ax.plot(each, [place] * len(each), marker, color=color, ms=7)
        ax.annotate(
            f"{mean(each):.2f}",
            (1, place),
            (8, 0),
            xycoords=ax.get_yaxis_transform(),
            textcoords="offset points",
            color=color,
            va="center",
        )
    ax.set_yticks(range(len(bits)), reversed(bits))
    ax.set(ylim=(-0.6, len(bits) - 0.4))
    ax.set(xlabel=f"bits per character after {config['seconds']:.0f} CPU seconds")
    ax.set(title="short pieces, fewest bits")


def chart_figure(record: Record) -> Html:
    """Plot time and memory by length, and what is learned in equal time."""
    figure, (time, memory, loss) = plt.subplots(3, 1, figsize=(8.6, 9))
    rows, config, bits = record["by length"], record["config"], learned_bits(record)
    for way in record["parameters"]:
        known = [row for row in rows if way in row["seconds"]]
        seconds = [(row["length"], row["seconds"][way][1]) for row in known]
        MB = [(row["length"], row["MB"][way]) for row in known]
        draw_line(time, way, seconds, rows[-1]["length"])
        draw_line(memory, way, MB, rows[-1]["length"])
    for ax, label in ((time, "seconds for 1,000 characters"), (memory, "MB")):
        lengths_axis(ax, [row["length"] for row in rows][::-2])
        ax.margins(y=0.15)
        ax.set(ylabel=label)
        name_lines(ax)
    ticks = (0.03, 0.1, 0.3)
    time.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    time.set(title="time of a training step")
    memory.set(title="memory of a training step")
    draw_learned(loss, record)

    last = rows[-1]
    fast = min(last["seconds"], key=lambda way: last["seconds"][way][1])
    small = min(last["MB"], key=last["MB"].__getitem__)
    at = f"{last['length']:,}"
    told = "; ".join(
        f"{named(way)} {last['seconds'][way][1]:.2f} seconds, {last['MB'][way]:.0f} MB"
        for way in last["seconds"]
    )
    ends = ", ".join(f"{named(way)} {span(each)}" for way, each in bits.items())
    return show(
        figure,
        title=f"At {at} characters {named(fast)} is fastest, {named(small)} needs "
        "least memory",
        alt="Three panels. Seconds for 1,000 characters and MB against length, six "
        f"ways; at {at}: {told}. Bits per character after equal time: {ends}.",
        caption=f"One CPU thread, the same {config['layers']} layers, "
        f"{config['d_model']} wide. Sparse: a head with a window of "
        f"{config['stride']}, and one with a stride of {config['stride']}. LSH: one "
        f"round, chunks of {config['chunk']}. "
        f"Transformer-XL: segments of {config['segment']}. Reversible: with fused "
        f"attention. Below: {config['length']:,} characters at a time, short pieces "
        f'of {config["segment"]} for Transformer-XL and "{CONTROL}"; a dot for each '
        "seed, and their mean.",
    )


def named(way: str) -> str:
    """Return a way as a sentence calls it."""
    return {"LSH": "LSH attention", "sparse": "sparse attention"}.get(way, way)


def chart_said(record: Record) -> str:
    """Say what the chart shows, in Markdown."""
    long, config = record["by length"][-1], record["config"]
    bits, at = learned_bits(record), f"{long['length']:,}"
    took = {way: f"{three[1]:.2f}" for way, three in long["seconds"].items()}
    MB = {way: f"{value:.0f}" for way, value in long["MB"].items()}
    least, most = bits["Transformer-XL"], bits[CONTROL]
    return "\n".join(
        (
            f"- **Time.** In a text of {at} characters, 1,000 of them take "
            f"{took['fused']} seconds with the fused kernel, {took['LSH']} with LSH "
            f"attention and {took['sparse']} with sparse attention.",
            f"- **Memory.** At {at}, a step takes {MB['Transformer-XL']} MB with "
            f"Transformer-XL and {MB['reversible']} with reversible layers, against "
            f"{MB['fused']} with the fused kernel alone, {MB['LSH']} with LSH and "
            f"{MB['sparse']} with sparse attention.",
            f"- **Loss.** Each reads held-out text the way it read in its "
            f"{config['seconds']:.0f} seconds of training. On {config['length']:,} "
            f"characters at a time, sparse attention has {span(bits['sparse'])} bits "
            f"per character and the fused model {span(bits['fused'])}; on pieces of "
            f"{config['segment']}, Transformer-XL has {span(least)} and the fused "
            f"model {span(most)}. So reading short pieces from many places is enough "
            "to explain its lead.",
        )
    )
