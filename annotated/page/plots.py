"""One style for all figures, and the figures that several chapters draw.

Colours are those of ``static/tokens.css``, each with its meaning; attention weights are
always ``WEIGHTS``, from 0 to 1.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
from jaxtyping import Float
from matplotlib.colors import LinearSegmentedColormap, to_rgb, to_rgba
from torch import Tensor

from annotated import require
from annotated.page.svg import COLOURS, LINE_END

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THIS, OTHER = COLOURS["this"], COLOURS["other"]  # a model, what it is compared with
PALETTE = [
    to_rgb(COLOURS[name])
    for name in "this other key query value minus right wrong".split()
]
LINES = ("-", "--", ":", "-.")  # lines can be told apart without colour
MARKERS = ("o", "s", "^", "D")
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


def learning_curve(
    histories: Mapping[str, Sequence[Mapping[str, int | float]]],
    *,
    quantity: str = "loss",
    label: str = "loss (nats per symbol)",
    ax: "Axes | None" = None,
    log: bool = True,
) -> "Axes":
    """Draw a quantity of several training histories against the step.

    Args:
        histories: what :func:`annotated.training.fit` returned, by name.
        quantity: key of the quantity.
        label: label of its axis, with the unit.
        ax: where to draw; a new figure if not given.
        log: logarithmic axis.

    Returns:
        The axes that were drawn on.

    Raises:
        ValueError: if there is no history, or one is empty.
    """
    if not histories or not all(histories.values()):
        raise ValueError("histories must hold at least one history with one record")
    if ax is None:
        _, ax = plt.subplots()
    for i, (name, history) in enumerate(histories.items()):
        steps = [record["step"] for record in history]
        ax.plot(
            steps,
            [record[quantity] for record in history],
            LINES[i % len(LINES)],
            color=PALETTE[i % len(PALETTE)],
            label=name,
        )
    ax.set_xlabel("training step")
    ax.set_ylabel(label)
    if log:
        ax.set_yscale("log")
    ax.legend()
    return ax
