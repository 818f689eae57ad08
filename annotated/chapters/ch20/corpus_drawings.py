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

    A share is of those that the probe could be asked of; NaN where there's none.

    Args:
        record: that of the benchmark ``probes``.
    """
    faults: dict[str, list[Mapping[str, Any]]] = {}
    for row in record["faults"]:
        faults.setdefault(row["family"], []).append(row)
    families = [name for name in NAMES if name in faults]
    states = [
        [[row["states"][n] for row in faults[f]] for n in NAMES] for f in families
    ]
    failed = [[one.count("failed") for one in family] for family in states]
    asked = [[len(one) - one.count("not asked") for one in family] for family in states]
    return families, torch.tensor(failed) / torch.tensor(asked)


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
    for i, j in zip(*asked.nonzero(), strict=True):  # a NaN isn't zero either
        ink = "w" if asked[i, j] > 0.5 else COLOURS["ink"]
        full = asked[i, j] == 1  # three digits are too wide for a phone
        number = "" if full else f"{100 * asked[i, j]:.0f}".replace("nan", "–")
        ax.text(j, i, number, ha="center", va="center", color=ink, size=9)
    ax.set_xticks(range(len(probes)), probes, rotation=35, ha="left")
    ax.set_yticks(range(len(families)), [SHORT.get(f, f) for f in families])
    ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    ax.grid(visible=False)
    return show(
        figure,
        title="Each probe finds its own family of faults, and some of others",
        caption="Recorded. Down: a family of faults; across: a probe, and which per "
        "cent it found of those that it was asked of (full colour: all; –: of none).",
        alt="A square of eleven families of faults by eleven probes: 100% on the "
        "diagonal. " + corpus_words(record),
    )


def failing(record: Mapping[str, Any], family: str, probe: str) -> str:
    """Return of how many faults of a family a probe failed: "7 of 8" that it asked."""
    states = [f["states"][probe] for f in record["faults"] if f["family"] == family]
    return f"{states.count('failed')} of {len(states) - states.count('not asked')}"


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
