"""Chapter 07: is it the shape of the falling rate that helps, or that it is lower?

A rate that climbs and then falls is on average 0.57 times one that climbs to the same
peak and stays. So the runs of ``rates`` that climb and stay, at 0.57 times the heights
where the fall made the difference.

Band, on the mean loss of the last twenty steps, every seed: at a mean rate as of 0.01
and falling, worse by more than 0.05 than the run of ``rates`` that falls. Otherwise a
lower rate would do as well.
"""

from statistics import mean, median
from typing import Any

from annotated.recipes.date_transformer import DATE_RUN, SMALL
from annotated.recipes.rates import RATE_SHAPES
from benchmarks.ch07.rates import HIGH, one
from benchmarks.record import SEEDS, read

STAYS, FALLS = "climbing, then constant", "climbing, then falling"


def lower() -> float:
    """Return the mean of the falling rate as a share of the one that stays."""
    steps = range(1, DATE_RUN["steps"] + 1)
    falls, stays = (
        mean(RATE_SHAPES[shape](n) for n in steps) for shape in (FALLS, STAYS)
    )
    return falls / stays


def run() -> dict[str, Any]:
    rows = [
        one("post", STAYS, lower() * height, seed) | {"as": height}
        for height in HIGH
        for seed in SEEDS
    ]
    return {"config": SMALL, "training": DATE_RUN, "lower": lower(), "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check what the page says, as the band was missed: a lower rate does as well."""
    falls = [
        row["end"]
        for row in read("rates")["rows"]
        if (row["norm"], row["shape"], row["height"]) == ("post", FALLS, 1e-2)
    ]
    as_low = [row["end"] for row in record["rows"] if row["as"] == 1e-2]
    assert abs(median(as_low) - median(falls)) < 0.1
