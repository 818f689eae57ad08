"""Chapter 11, deeper: a recurrent and a convolutional model beside the GPT.

As many parameters (within 2 %), the same text, windows, steps and rate as the runs of
``text``; then the time of a forward and backward pass over one window, by its length.

Bands, after exploring with seed 0 (attention 2.41, recurrent 2.41): for every seed the
recurrent and the convolutional model have from 2.25 to 2.60 bits per character, within
0.2 of attention with the same seed: at this size nobody wins by much. Of times nothing
is asserted.
"""

from typing import Any

from annotated.recipes.text import seconds_by_length
from benchmarks.ch11.text import facts, one
from benchmarks.record import SEEDS, read

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
WAYS = ("recurrent", "convolution")


def run() -> dict[str, Any]:
    """Train both models with every seed; measure times of all three."""
    seconds = {
        way: seconds_by_length(way, LENGTHS, repeats=5) for way in ("attention", *WAYS)
    }
    rows = [one(way, seed) for seed in SEEDS for way in WAYS]
    return facts() | {"lengths": LENGTHS, "seconds": seconds, "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands."""
    rows = read("text")["rows"] + record["rows"]
    bits = {(row["way"], row["seed"]): row["bits"] for row in rows}
    for seed in SEEDS:
        for way in WAYS:
            assert 2.25 < bits[way, seed] < 2.60
            assert abs(bits[way, seed] - bits["attention", seed]) < 0.2
