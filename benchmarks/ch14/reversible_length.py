"""Chapter 14: what a layer takes in a sequence four times as long.

The stacks of ``reversible_cost``, at 8192 positions: a forward and backward pass of two
and of six blocks, each in a fresh process. The slope is what a layer takes.

Expected: what stored and checkpointed blocks take grows with the length; what a
reversible block takes doesn't, since it is the gradients of its own weights.
"""

from typing import Any

from benchmarks.ch14.reversible_cost import ours
from benchmarks.memory import peak

LENGTH, DEPTHS, WAYS = 8192, (2, 6), ("stored", "checkpointed", "reversible")


def run() -> dict[str, Any]:
    runs, slopes = [], {}
    for way in WAYS:
        few, many = (
            peak(ours, way=way, depth=depth, length=LENGTH) for depth in DEPTHS
        )
        slopes[way] = round((many - few) / (DEPTHS[1] - DEPTHS[0]), 2)
        for depth, megabytes in zip(DEPTHS, (few, many), strict=True):
            runs.append({"way": way, "depth": depth, "length": LENGTH})
            runs[-1]["MB"] = round(megabytes, 2)
        print(way, slopes[way], flush=True)
    return {"length": LENGTH, "peaks": runs, "MB per layer": slopes}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands."""
    slopes = record["MB per layer"]
    assert 95 < slopes["stored"] < 105 and 16 < slopes["checkpointed"] < 18
    assert 3.15 < slopes["reversible"] < 3.3  # the page: gradients, at any length
