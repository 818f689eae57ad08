"""Chapter 20: how many faults of the corpus each probe found."""

from collections.abc import Mapping
from typing import Any

import torch

from annotated.page.frames import Html
from annotated.page.pictures import Matrix, chain
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
    asked = [i for i, name in enumerate(NAMES) if name != "call"]
    short = {name: SHORT.get(name, name) for name in NAMES}
    return chain(
        Matrix(
            shares[:, asked],
            rows=[short[name] for name in families],
            columns=[short[NAMES[i]] for i in asked],
            weights=True,
        ),
        caption="Recorded. A row for each family of faults, a column for each probe: "
        "the share that it found.",
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
