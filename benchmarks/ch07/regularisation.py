"""Chapter 07: dropout and label smoothing for a model that sees few dates.

The model of chapter 06, pre-norm, 500 steps on 1000 pairs, each of them 32 times; tried
on them, and on dates that it has never seen.
"""

from typing import Any

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
