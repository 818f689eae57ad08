"""Chapter 07: how many small first steps does a run at 0.01 need, and how small?

The runs of ``beginnings`` on a grid: a number of first steps at a small rate, then 0.01
up to step 60. A loss near 2.27 at the end means that it stuck.
"""

from collections.abc import Callable
from typing import Any

from annotated.recipes.date_transformer import DATE_RUN, SMALL
from benchmarks.ch07.beginnings import EVERY, watched
from benchmarks.record import SEEDS

SIZES = (2.5e-4, 1e-3, 3e-3)
NUMBERS = (0, 1, 2, 5, 10, 20)
STEPS = 60


def high_after(number: int, size: float) -> Callable[[int], float]:
    """Return a rate that is ``size`` for a ``number`` of steps, then 0.01."""
    return lambda n: size if n <= number else 1e-2


def run() -> dict[str, Any]:
    rows = []
    for size in SIZES:
        for number in NUMBERS:
            if number == 0 and size != SIZES[0]:
                continue  # no small steps: the same runs, whatever their size
            for seed in SEEDS:
                seen = watched(high_after(number, size), seed, STEPS)
                row = {"size": size, "number": number, "seed": seed}
                rows.append(row | seen)
                print(row, seen["losses"][-1], seen["differ"][-1], flush=True)
    made = {"steps": STEPS, "every": EVERY}
    return {"config": SMALL, "training": DATE_RUN, **made, "rows": rows}
