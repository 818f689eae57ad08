"""Chapter 20: how many faults of the corpus each probe found."""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import torch

from annotated.page.frames import Html
from annotated.page.notebook import show
from annotated.page.plots import COLOURS, WEIGHTS
from annotated.probes import NAMES

SHORT = {"modes and numbers": "modes"}


def corpus_shares(record: Mapping[str, Any]) -> tuple[list[str], torch.Tensor]:
    """Return families of faults, and which share of each (f) every probe (n) found.

    Args:
        record: that of the benchmark ``probes``.
    """
    faults: dict[str, list[Mapping[str, Any]]] = {}
    for row in record["faults"]:
        faults.setdefault(row["family"], []).append(row)
    families = [name for name in NAMES if name in faults]
    shares = [
        [sum(n in row["said"] for row in faults[f]) / len(faults[f]) for n in NAMES]
        for f in families
    ]
    return families, torch.tensor(shares)


def corpus_picture(record: Mapping[str, Any]) -> Html:
    """Draw the share of each family's faults that every probe found.

    Args:
        record: that of the benchmark ``probes``.
    """
    families, shares = corpus_shares(record)
    probes = [SHORT.get(name, name) for name in NAMES if name != "call"]
    figure, ax = plt.subplots(figsize=(8.4, 4.2))
    asked = shares[:, [name != "call" for name in NAMES]].numpy()
    ax.imshow(asked, cmap=WEIGHTS, vmin=0, vmax=1, aspect="auto")
    for i, j in zip(*asked.nonzero(), strict=True):
        ink = "w" if asked[i, j] > 0.5 else COLOURS["ink"]
        number = f"{100 * asked[i, j]:.0f}" if asked[i, j] < 1 else ""
        ax.text(j, i, number, ha="center", va="center", color=ink, size=9)
    ax.set_xticks(range(len(probes)), probes, rotation=35, ha="left")
    ax.set_yticks(range(len(families)), [SHORT.get(f, f) for f in families])
    ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    ax.grid(visible=False)
    return show(
        figure,
        title="Each probe finds its own family, and what it does elsewhere",
        caption="Recorded. Down: a family of faults; across: a probe, and how many of "
        "them it found, in per cent. Dark: all.",
        alt="A square of eleven families of faults by eleven probes: 100% on the "
        "diagonal. " + corpus_words(record),
    )


def corpus_words(record: Mapping[str, Any]) -> str:
    """Return how many faults were found, false alarms, and seconds, as a sentence."""
    faults, sound = record["faults"], record["sound"]
    found = sum(row["family"] in row["said"] for row in faults)
    alarms = [row["name"] for row in sound if row["said"]]
    off = (
        f"{len(alarms)} set off a probe ({', '.join(alarms)})"
        if alarms
        else "none set off a probe"
    )
    seconds = sorted(row["seconds"] for row in sound)
    return (
        f"Of {len(faults)} faults, the probe of their family finds {found}. Of "
        f"{len(sound)} sound models, {off}. A model takes "
        f"{seconds[len(seconds) // 2]:.1f} CPU seconds, the slowest {seconds[-1]:.1f}."
    )
