"""Chapter 07b: do full running means replace small steps?

Four post-norm layers copy, as in ``warmup``. Before the rate of 0.01 come 300 steps of
practically no size, which fill Adam's means and leave the model where it is (after
Adam-2k of Liu et al., ICLR 2020), or forty steps at a tenth of the rate.
"""

from statistics import mean
from typing import Any

from annotated.recipes.date_transformer import BEGINNINGS, begin
from annotated.recipes.rates import DEEP, train_deep
from benchmarks.record import SEEDS


def run() -> dict[str, Any]:
    rows = []
    for name, (small, steps) in BEGINNINGS.items():
        for seed in SEEDS:
            history = train_deep(begin(small, steps), seed, steps + 120, "cpu")
            end = mean(record["loss"] for record in history[-20:])
            rows.append({"beginning": name, "seed": seed, "end": end})
            print(rows[-1], flush=True)
    return {"config": DEEP, "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands."""
    full, small = (
        [row["end"] for row in record["rows"] if row["beginning"] == beginning]
        for beginning in BEGINNINGS
    )
    assert min(full) > 2.05 and max(small) < 1.95
