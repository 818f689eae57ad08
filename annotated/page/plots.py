"""One style for all figures, and the figures that several chapters draw.

Colours are those of ``static/tokens.css``, each with its meaning; attention weights are
always ``WEIGHTS``, from 0 to 1.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from jaxtyping import Float
from matplotlib.colors import LinearSegmentedColormap, to_rgb, to_rgba
from matplotlib.container import BarContainer
from torch import Tensor

from annotated import require
from annotated.page.svg import COLOURS, LINE_END

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

THIS, OTHER = COLOURS["this"], COLOURS["other"]  # a model, what it is compared with
PALETTE = [
    to_rgb(COLOURS[name])
    for name in "this other key query value minus right wrong".split()
]
LINES = ("-", "--", ":", "-.")  # lines can be told apart without colour
MARKERS = ("o", "s", "^", "D")
DOTS = 8  # of a line, at most: one with more points is drawn without
# a weight of 0 is the page itself, in the dark, too
WEIGHTS = LinearSegmentedColormap.from_list(
    "weights", [to_rgba(COLOURS["weight"], alpha) for alpha in (0.0, 1.0)]
)


def use_style() -> None:
    """Set the book's figure style for the rest of the session."""
    plt.rcParams.update(
        {
            "figure.figsize": (8.6, 3.4),
            "figure.constrained_layout.use": True,
            "font.family": "DejaVu Sans",
            "font.size": 13,
            **dict.fromkeys(
                ("xtick.labelsize", "ytick.labelsize", "axes.labelsize"), 13
            ),
            "axes.prop_cycle": plt.cycler(color=PALETTE),
            "axes.titlesize": 13.5,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "legend.frameon": False,
            "legend.fontsize": 13,
            "legend.title_fontsize": 12,
            # a line to stand on and a few to measure by
            **{f"axes.spines.{side}": False for side in ("top", "right", "left")},
            "axes.grid": True,
            "axes.grid.axis": "y",
            "axes.axisbelow": True,
            "axes.linewidth": 1.25,
            "grid.color": COLOURS["rule"],
            "grid.linewidth": 1,
            "lines.linewidth": 2,
            "lines.solid_capstyle": "round",
            "patch.edgecolor": "w",
            "patch.force_edgecolor": True,
            **dict.fromkeys(("text.color", "axes.labelcolor"), COLOURS["ink"]),
            **dict.fromkeys(("xtick.color", "ytick.color"), COLOURS["muted"]),
            "axes.edgecolor": COLOURS["other"],
            **{f"{a}tick.{kind}.size": 0 for a in "xy" for kind in ("major", "minor")},
        }
    )


def name_lines(ax: "Axes") -> None:
    """Write the label of each line at its right end, in its colour.

    Args:
        ax: axes whose lines have labels; of two ends that are close, one moves away.
    """
    for line in ax.lines:
        if not line.get_label().startswith("_"):
            ax.annotate(
                line.get_label(),
                (line.get_xdata()[-1], line.get_ydata()[-1]),
                (8, 0),
                textcoords="offset points",
                color=line.get_color(),
                va="center",
                annotation_clip=False,
                gid=LINE_END,
            )


def plot_lines(
    lines: Mapping[str, Mapping[float, float]],
    ax: "Axes | None" = None,
    *,
    colors: Mapping[str, str] | None = None,
    **axes: Any,
) -> "Axes":
    """Draw lines with their names at their ends, and with dots if they are short.

    Args:
        lines: by name, what to draw: y by x.
        ax: where to draw; a new figure if not given.
        colors: of the lines that aren't drawn in ``THIS``, by name.
        axes: labels, limits, scales and ticks, as ``Axes.set`` takes them. A
            logarithmic x axis has its ticks where the dots are, if not given.

    Returns:
        The axes that were drawn on.
    """
    ax = ax or plt.subplots()[1]
    for name, points in lines.items():
        color = (colors or {}).get(name, THIS)
        style = "o-" if len(points) <= DOTS else "-"
        heights = [float(y) for y in points.values()]
        ax.plot([*points], heights, style, ms=5, color=color, label=name)
    ax.set(**axes)
    if axes.get("xscale") == "log":
        every = sorted(set().union(*lines.values()))
        places = axes.get("xticks", every if len(every) <= DOTS else ())
        if len(places):
            ax.set_xticks([], minor=True)
            ax.set_xticks(places, [f"{x:,g}" for x in places])
    name_lines(ax)
    return ax


def plot_bars(
    parts: Mapping[str, Mapping[str, float]],
    ax: "Axes | None" = None,
    *,
    colors: Mapping[str, Any] | None = None,
    upright: bool = True,
    **axes: Any,
) -> "Axes":
    """Draw bars, of one part each or of several, one on the other.

    Args:
        parts: by name of the part, its size in each bar, by name of the bar.
        ax: where to draw; a new figure if not given.
        colors: of the parts that aren't drawn in ``THIS``, by name.
        upright: or from left to right, the first bar on top.
        axes: labels, limits, scales and ticks, as ``Axes.set`` takes them.

    Returns:
        The axes that were drawn on.
    """
    ax = ax or plt.subplots()[1]
    ends = dict.fromkeys(next(iter(parts.values())), 0.0)
    for name, sizes in parts.items():
        style = {"label": name, "color": (colors or {}).get(name, THIS)}
        starts, lengths = [ends[bar] for bar in sizes], [*map(float, sizes.values())]
        if upright:
            ax.bar([*sizes], lengths, 0.6, starts, **style)
        else:
            ax.barh([*sizes], lengths, 0.6, starts, **style)
        ends |= {bar: ends[bar] + float(size) for bar, size in sizes.items()}
    if not upright and not ax.yaxis_inverted():
        ax.invert_yaxis()
    ax.set(**axes)
    return ax


def described(figure: "Figure") -> str:
    """Say what a figure shows, for those who cannot see it.

    Args:
        figure: with or without panels.

    Returns:
        Of each panel its axes, where each line that has a label begins and ends, the
        size of each bar, and what else is written into it.
    """
    return " ".join(sentence for ax in figure.axes for sentence in _sentences(ax))


def _sentences(ax: "Axes") -> Iterator[str]:
    axes = " against ".join(filter(None, (ax.get_ylabel(), ax.get_xlabel())))
    if heading := ": ".join(filter(None, (ax.get_title("left"), axes))):
        yield f"{heading[0].upper()}{heading[1:]}."
    said = {}
    for line in ax.lines:
        ends = [(line.get_xdata()[i], line.get_ydata()[i]) for i in (0, -1)]
        words = (f"{_number(y)} at {_number(x)}" for x, y in ends)
        said[line.get_label()] = " to ".join(dict.fromkeys(words))
    for bars in ax.containers:
        if isinstance(bars, BarContainer):
            sizes = (f"{_number(size)} at {at}" for at, size in _sizes(bars, ax))
            said[bars.get_label()] = ", ".join(sizes)
    yield from (f"{name}: {words}." for name, words in said.items() if name[0] != "_")
    texts = [t.get_text().replace("\n", " ") for t in ax.texts]
    if texts := [text for text in texts if text not in said]:
        yield f"Written in it: {'; '.join(texts)}."


def _sizes(bars: BarContainer, ax: "Axes") -> Iterator[tuple[str, float]]:
    """Yield the name and the size of each bar."""
    upright = bars.orientation == "vertical"
    axis = ax.xaxis if upright else ax.yaxis
    places = axis.get_majorticklocs()
    names = axis.get_major_formatter().format_ticks(places)
    named = dict(zip(places, names, strict=True))
    for bar, size in zip(bars, bars.datavalues, strict=True):
        x, y = bar.get_center()
        at = round(x if upright else y, 6)
        yield named.get(at, _number(at)), size


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def visible(symbol: str) -> str:
    """Return a ``symbol`` as an axis can show it: a space becomes ``␣``."""
    return "␣" if symbol == " " else symbol


@require.shapes
def attention_heatmap(
    weights: Float[Tensor, "t s"],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    ax: "Axes | None" = None,
    title: str = "",
    bar: bool = True,
) -> "Axes":
    """Draw attention weights, a row for each query, on the scale from 0 to 1.

    Args:
        weights: ``(t, s)``.
        queries: a name for each row.
        keys: a name for each column.
        ax: where to draw; a new figure if not given.
        title: title of the panel.
        bar: draw the colour bar.

    Returns:
        The axes that were drawn on.

    Raises:
        ValueError: if names and weights do not fit.
    """
    if tuple(weights.shape) != (len(queries), len(keys)):
        raise ValueError(
            f"weights of shape {tuple(weights.shape)} need as many names: got "
            f"{len(queries)} queries and {len(keys)} keys"
        )
    import seaborn  # with pandas and scipy: a second of each page that needs none

    if ax is None:
        _, ax = plt.subplots(figsize=(1.6 + 0.3 * len(keys), 1.2 + 0.28 * len(queries)))
    seaborn.heatmap(
        weights.detach().float().cpu().numpy(),
        vmin=0.0,
        vmax=1.0,
        cmap=WEIGHTS,
        ax=ax,
        cbar=bar,
        cbar_kws={"label": "weight"},
        xticklabels=[visible(k) for k in keys],
        yticklabels=[visible(q) for q in queries],
        linewidths=1,
        linecolor=COLOURS["rule"],
    )
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.set_xticklabels(ax.get_xticklabels(), rotation=0)
    ax.set_yticklabels(ax.get_yticklabels(), rotation=0)
    ax.set_title(title)
    return ax
