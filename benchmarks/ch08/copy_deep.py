"""Chapter 08: four layers without positions, without the causal mask, with one head.

The parts that ``ablations`` took from one layer alone, taken from its four.
"""

from typing import Any

from benchmarks.ch08.ablations import ONE_LAYER, one
from benchmarks.record import SEEDS

NAMES = ("one head", "no positions", "no causal mask")


def run() -> dict[str, Any]:
    rows = [
        one(name, seed, **ONE_LAYER[name], layers=4) for name in NAMES for seed in SEEDS
    ]
    return {"rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands."""
    bounds = dict(zip(NAMES, ((950, 1000), (0, 10), (0, 200)), strict=True))
    for row in record["rows"]:
        low, high = bounds[row["name"]]
        assert low <= row["exact"][0] <= high, row["name"]
