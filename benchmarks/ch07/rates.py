"""Chapter 07: the model of chapter 06 reads dates, under many learning rates.

Post-norm, as in the paper, for 300 steps: five heights of the rate, constant or after a
climb of 40 steps, which then stays or falls as 1/√n. Falling without a climb, and the
same model in pre-norm, at the heights where it matters.

Bands, on the mean loss of the last twenty steps, for every seed:

- at 1e-2 without a climb, constant or falling, more than 1.8 nats (missed by seed 2);
- at 1e-2, climbing and then falling, less than 0.5;
- the least of all heights: climbing and then falling lower than constant (missed by
  seed 1).
"""

from statistics import mean, median
from typing import Any

from annotated.recipes.date_transformer import DATE_RUN, SMALL, train_date_transformer
from annotated.recipes.rates import CLIMB, RATE_SHAPES
from benchmarks.record import SEEDS

HEIGHTS = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
HIGH = HEIGHTS[3:]
PLAN = [
    ("post", "constant", HEIGHTS),
    ("post", "climbing, then constant", HEIGHTS),
    ("post", "climbing, then falling", HEIGHTS),
    ("post", "falling", (1e-2,)),
    ("pre", "constant", HIGH),
    ("pre", "climbing, then falling", HIGH),
]


def one(norm: str, shape: str, height: float, seed: int) -> dict[str, Any]:
    history = train_date_transformer(
        lambda n: height * RATE_SHAPES[shape](n), seed, norm=norm
    )
    row = {"norm": norm, "shape": shape, "height": height, "seed": seed}
    row["end"] = mean(record["loss"] for record in history[-20:])
    row["cpu_seconds"] = history[-1]["cpu_seconds"]
    print(row, flush=True)
    return row


def run() -> dict[str, Any]:
    rows = [
        one(norm, shape, height, seed)
        for norm, shape, heights in PLAN
        for height in heights
        for seed in SEEDS
    ]
    return {"config": SMALL, "training": DATE_RUN, "climb": CLIMB, "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check what the page says of the cliff, of falling rates and of pre-norm."""
    ends: dict[tuple[str, str, float], list[float]] = {}
    for row in record["rows"]:
        run = row["norm"], row["shape"], row["height"]
        ends.setdefault(run, []).append(row["end"])
    constant, warm, falls = (
        [ends["post", shape, height] for height in HEIGHTS]
        for shape in ("constant", "climbing, then constant", "climbing, then falling")
    )
    for seed in range(3):
        assert min(e[seed] for e in warm) < min(e[seed] for e in constant)
    line = 2.274  # what knowing the frequencies of symbols costs
    assert sum(abs(end - line) < 0.02 for end in constant[3]) == 1
    assert sum(end > line - 0.1 for end in ends["post", "falling", 1e-2]) == 2
    assert max(falls[3]) < 0.5
    middle, spread = map(median, falls), [max(seeds) - min(seeds) for seeds in falls]
    *_, three, ten, thirty = middle
    assert abs(three - ten) < 0.01 and thirty > 1 and spread[3] > 1.5 * spread[2]
    best = [min(map(median, way)) for way in (warm, falls)]
    assert best[1] in (three, ten) and abs(best[0] - best[1]) < 0.05
    assert median(ends["pre", "constant", 1e-2]) < 1
