"""Chapter 11, deeper: a recurrent and a convolutional model beside the GPT.

As many parameters (within 2 %), the same text, windows, steps and rate as the runs of
``text``; then the time of a forward and backward pass over one window, by its length.

At this size nobody is expected to win by much.
"""

from typing import Any

from annotated.recipes.text import seconds_by_length
from benchmarks.ch11.text import facts, one
from benchmarks.record import SEEDS, read

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
WAYS = ("recurrent", "convolution")


def run() -> dict[str, Any]:
    seconds = {
        way: seconds_by_length(way, LENGTHS, repeats=5) for way in ("attention", *WAYS)
    }
    rows = [one(way, seed) for seed in SEEDS for way in WAYS]
    return facts() | {"lengths": LENGTHS, "seconds": seconds, "rows": rows}


def bands(record: dict[str, Any]) -> None:
    attention = {
        row["seed"]: row["bits"]
        for row in read("text")["rows"]
        if row["way"] == "attention"
    }
    for row in record["rows"]:
        assert 2.25 < row["bits"] < 2.60
        assert abs(row["bits"] - attention[row["seed"]]) < 0.2
