"""Chapter 14: what a layer takes in a sequence four times as long.

The stacks of ``reversible_cost``, at 8192 positions: a forward and backward pass of two
and of six blocks, each in a fresh process. The slope is what a layer takes.

Bands, written before the final run, from the slopes at 2048 positions (25.3, 4.25 and
3.2 MB): what stored and checkpointed blocks take grows with the length, to about 101
and 17 MB (two streams of 8192 × 256 numbers are 16.8 MB); what a reversible block
takes doesn't, since it is the gradients of its own weights: 3.2 MB, at most 4.
"""

from typing import Any

from benchmarks.ch14.reversible_cost import ours
from benchmarks.memory import peak

LENGTH, DEPTHS, WAYS = 8192, (2, 6), ("stored", "checkpointed", "reversible")


def run() -> dict[str, Any]:
    """Measure each way at both depths."""
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
