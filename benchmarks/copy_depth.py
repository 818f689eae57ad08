"""Chapter 08: the copy task by norm order, depth and learning rate.

Batches are smaller and steps more than in ``copy_task``, so that four layers stay
affordable; the rest of the recipe is the same.

Bands, written before the final run, after exploring four layers with seed 10. Of 1000
sequences of the first set, for every seed: pre-norm at least 950 at every depth and
rate. Post-norm, four layers: at the high rate at most 700, and at the low rate more
than at the high one. No band for post-norm elsewhere. With twice the steps, post-norm
and four layers: at the low rate at least 900, at the high rate at most 800.
"""

from itertools import product
from typing import Any

from benchmarks.copy_task import CONFIG, COUNT, RECIPE, SEEDS, told, train

DEPTHS, RATES, NORMS = (1, 2, 4), (5e-3, 1e-3), ("pre", "post")
CHANGED = {"batch": 32, "steps": 400}
LONGER = CHANGED | {"steps": 800}


def one(layers: int, rate: float, norm: str, seed: int, **recipe: Any) -> dict:
    """Train one model and return what is worth recording."""
    extra = {"layers": layers, "rate": rate, "norm": norm}
    return told("depth", seed, train(seed, **extra, **recipe), **extra)


def longer() -> list[dict[str, Any]]:
    """Give the deepest post-norm models twice the steps."""
    return [one(4, rate, "post", seed, **LONGER) for rate in RATES for seed in SEEDS]


def run() -> dict[str, Any]:
    """Cross the three, three seeds each; then go on where post-norm was not done."""
    rows = [
        one(layers, rate, norm, seed, **CHANGED)
        for layers, rate, norm in product(DEPTHS, RATES, NORMS)
        for seed in SEEDS
    ]
    recipe = RECIPE | CHANGED
    result = {"config": CONFIG, "recipe": recipe, "count": COUNT, "rows": rows}
    return result | {"longer": longer(), "longer_steps": LONGER["steps"]}
