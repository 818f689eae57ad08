"""Chapter 07: dropout and label smoothing for a model that sees few dates.

The model of chapter 06, pre-norm, 500 steps on 1000 pairs, each of them 32 times; tried
on them, and on dates that it has never seen.
"""

from typing import Any

import torch

from annotated.recipes.date_transformer import FEW, SMALL, dates, how_well, train_on_few
from benchmarks.record import SEEDS

SETTINGS = ((0.0, 0.0), (0.1, 0.0), (0.3, 0.0), (0.0, 0.1), (0.1, 0.1))


def one(dropout: float, smoothing: float, seed: int) -> dict[str, Any]:
    model = train_on_few(dropout, smoothing, seed)
    row: dict[str, Any] = {"dropout": dropout, "smoothing": smoothing, "seed": seed}
    row["seen"] = how_well(model, dates("train", FEW["pairs"]))
    row["unseen"] = how_well(model, dates("test", FEW["tested"]))
    print(row, flush=True)
    return row


def run() -> dict[str, Any]:
    rows = [one(*setting, seed) for setting in SETTINGS for seed in SEEDS]
    return {"config": SMALL, "training": FEW, "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check what the page says of dropout and smoothing, with every seed."""

    def ends(part: str, name: str) -> torch.Tensor:
        found = torch.tensor([row[part][name] for row in record["rows"]])
        return found.view(len(SETTINGS), len(SEEDS))

    plain, dropped, _, alone, both = ends("unseen", "loss")
    assert (dropped < plain / 2).all() and (both > dropped).all()
    assert alone.max() < plain.min()
    exact = ends("unseen", "exact")
    assert (exact[4] > exact[1]).all()
    over = ends("unseen", "confidence") - ends("unseen", "right")
    assert (over[0] > 0.05).all() and (over[4] < -0.04).all()
    assert (ends("seen", "loss")[2] > 0.3).all()
