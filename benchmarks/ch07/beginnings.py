"""Chapter 07: what the first steps decide. Five beginnings around a rate of 0.01.

The post-norm model of the benchmark ``rates`` reads dates: for 60 steps where the rate
stays at 0.01, for 160 where it comes down again. (The first sixty steps of ``sixty high
steps`` are those of a run at 0.01 from the start.) Each row holds the mean loss of
every five steps, and beside it how far the decoder's outputs still differ: their
standard deviation over all positions of 64 new dates, divided by their root mean
square. It is 0 if every position of every date gets the same vector.

Bands, for every seed, from a pilot run with seed 0 (2.28 and below 0.001 at once, 1.07
and 0.79 after five small steps):

- after sixty high steps: loss above 2.2 to the end, differences below 0.05;
- at step 60, after five small steps: loss below 1.6, differences above 0.4.

One small step and five tiny ones were expected to be as good as none. They were with
seeds 0 and 1; with seed 2 both come loose before step 60, later than after five small
ones.
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
    """Train after each beginning, three seeds each."""
    rows = []
    for name, rate in FIRST_STEPS.items():
        for seed in SEEDS:
            seen = watched(rate, seed, STEPS[name])
            rows.append({"beginning": name, "seed": seed} | seen)
            print(name, seed, seen["losses"][-1], seen["differ"][-1], flush=True)
    made = {"steps": STEPS, "every": EVERY}
    return {"config": SMALL, "training": DATE_RUN, **made, "rows": rows}
