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


def bands(record: dict[str, Any]) -> None:
    """Check what the page says of runs that get stuck, and of those that don't."""
    runs: dict[tuple[int, float], list[dict]] = {}
    for row in record["rows"]:
        runs.setdefault((row["number"], row["size"]), []).append(row)
    for row in runs[0, 2.5e-4]:  # within fifteen steps, all get the same vector
        assert min(row["losses"][5:]) > 2.2 and max(row["differ"][3:]) < 1e-3
    for row in runs[5, 1e-3]:
        assert 1.122 < row["losses"][-1] < 1.5
        assert 5e-3 < min(row["differ"]) < row["differ"][-1] / 5
    alike = {
        setting: sum(row["differ"][-1] < 0.01 for row in rows)
        for setting, rows in runs.items()
    }
    stuck = {(1, 1e-3): 2, (5, 2.5e-4): 2, (20, 2.5e-4): 0, (5, 1e-3): 0, (5, 3e-3): 1}
    assert {setting: alike[setting] for setting in stuck} == stuck
    for size in SIZES:
        lost = [alike[number, size] for number in NUMBERS[1:]]
        assert lost == sorted(lost, reverse=True) and lost[-1] == 0
