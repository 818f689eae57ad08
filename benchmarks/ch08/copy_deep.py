"""Chapter 08: four layers without positions, without the causal mask, with one head.

The parts that ``ablations`` took from one layer alone, taken from four: the same
recipe, and the smaller batches and more steps of its deep models, three seeds each.

Bands, written before the first run, from what one layer did: of 1000 sequences, without
positions at most 10, without the causal mask at most 200, with one head at least 950.
"""

from typing import Any

from benchmarks.ch08.ablations import ONE_LAYER, one
from benchmarks.record import SEEDS

NAMES = ("one head", "no positions", "no causal mask")


def run() -> dict[str, Any]:
    """Run all three."""
    rows = [
        one(name, seed, **ONE_LAYER[name], layers=4) for name in NAMES for seed in SEEDS
    ]
    return {"rows": rows}
