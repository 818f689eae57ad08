"""One style for all figures, and the figures that several chapters draw.

Colours come from seaborn's colour-blind palette; one colour map a meaning: attention
weights are always ``WEIGHTS``, from 0 to 1.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import seaborn as sns
from jaxtyping import Float
from torch import Tensor

from annotated import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WEIGHTS = "Blues"
PALETTE = sns.color_palette("colorblind")
LINES = ("-", "--", ":", "-.")  # lines can be told apart without colour
MARKERS = ("o", "s", "^", "D")


def use_style() -> None:
    """Set the book's figure style for the rest of the session."""
    sns.set_theme(
        context="notebook",
        style="ticks",
        palette="colorblind",
        rc={
            "figure.figsize": (7.0, 3.6),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": "medium",
            "axes.titleweight": "bold",
            "legend.frameon": False,
            "figure.constrained_layout.use": True,
        },
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
    if ax is None:
        _, ax = plt.subplots(figsize=(1.6 + 0.3 * len(keys), 1.2 + 0.28 * len(queries)))
    sns.heatmap(
        weights.detach().float().cpu().numpy(),
        vmin=0.0,
        vmax=1.0,
        cmap=WEIGHTS,
        ax=ax,
        cbar=bar,
        cbar_kws={"label": "weight"},
        xticklabels=[visible(k) for k in keys],
        yticklabels=[visible(q) for q in queries],
        linewidths=0.3,
        linecolor="#dddddd",
    )
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
