"""Chapter 07: the step of section 7.3 with gradient descent in place of Adam.

The model and the data of ``rates``, the rate that climbs and then falls, gradients
clipped at 1 as in 7.3; a momentum of 0.9.

Band, on the mean loss of the last twenty steps: for every seed, the least of all
heights is above what Adam reaches at 0.003 in ``rates``.
"""

from statistics import mean
from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR

from annotated.recipes.date_transformer import (
    DATE_RUN,
    SMALL,
    date_batches,
    date_model,
    label_loss,
)
from annotated.recipes.rates import RATE_SHAPES
from annotated.training import fit
from benchmarks.record import SEEDS

HEIGHTS = (0.1, 0.3, 1.0)


def one(height: float, seed: int) -> dict[str, Any]:
    model, shape = date_model(seed), RATE_SHAPES["climbing, then falling"]
    optimizer = torch.optim.SGD(model.parameters(), lr=height, momentum=0.9)
    history = fit(
        *(model, label_loss, date_batches(seed, DATE_RUN["steps"]), optimizer),
        schedule=LambdaLR(optimizer, lambda done: shape(done + 1)),
        clip=1.0,
    )
    end = mean(record["loss"] for record in history[-20:])
    row = {"height": height, "seed": seed, "end": end}
    print(row, flush=True)
    return row


def run() -> dict[str, Any]:
    rows = [one(height, seed) for height in HEIGHTS for seed in SEEDS]
    return {"config": SMALL, "training": DATE_RUN, "rows": rows}
