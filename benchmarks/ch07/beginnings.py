"""Chapter 07: what the first steps decide. Five beginnings around a rate of 0.01.

The post-norm model of ``rates``, for 60 steps where the rate stays at 0.01, for 160
where it comes down again. Each row holds the mean loss of every five steps, and how far
the decoder's outputs still differ: their standard deviation over all positions of 64
new dates, divided by their root mean square.

Bands, every seed:

- after sixty high steps: loss above 2.2 to the end, differences below 0.05;
- at step 60, after five small steps: loss below 1.6, differences above 0.4.
"""

from collections.abc import Callable
from statistics import mean
from typing import Any

from annotated.recipes.common import paper_adam
from annotated.recipes.date_transformer import (
    DATE_RUN,
    FIRST_STEPS,
    SMALL,
    date_batches,
    date_model,
    differences,
    label_loss,
)
from annotated.training import fit
from benchmarks.record import SEEDS

STEPS = {name: 160 if "high" in name else 60 for name in FIRST_STEPS}
EVERY = 5


def watched(
    rate: Callable[[int], float], seed: int, steps: int
) -> dict[str, list[float]]:
    """Train one model under a rate; return losses and differences, every five steps."""
    model = date_model(seed)
    optimizer, schedule = paper_adam(model, rate)
    (new,) = date_batches(900 + seed, 1)
    differ = [differences(model, new)]

    def watch(step: int) -> None:
        if step % EVERY == 0:
            differ.append(differences(model, new))

    history = fit(
        model,
        label_loss,
        date_batches(seed, steps),
        optimizer,
        schedule=schedule,
        on_step=watch,
    )
    losses = [record["loss"] for record in history]
    every = [mean(losses[i : i + EVERY]) for i in range(0, len(losses), EVERY)]
    return {
        "losses": [round(loss, 4) for loss in every],
        "differ": [round(share, 5) for share in differ],
    }


def run() -> dict[str, Any]:
    rows = []
    for name, rate in FIRST_STEPS.items():
        for seed in SEEDS:
            seen = watched(rate, seed, STEPS[name])
            rows.append({"beginning": name, "seed": seed} | seen)
            print(name, seed, seen["losses"][-1], seen["differ"][-1], flush=True)
    made = {"steps": STEPS, "every": EVERY}
    return {"config": SMALL, "training": DATE_RUN, **made, "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check what the page says of runs that recover, and of those that don't."""
    rows = record["rows"]
    five, sixty = (
        [row["losses"] for row in rows if row["beginning"] == f"{number} high steps"]
        for number in ("five", "sixty")
    )
    below = [next(i for i, loss in enumerate(run) if loss < 2) for run in five]
    assert (EVERY * min(below), EVERY * max(below)) == (65, 125)
    assert all(min(run[5:]) > 2.2 for run in sixty)
