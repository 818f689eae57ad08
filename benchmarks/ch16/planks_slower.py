"""Chapter 16: the same as ``planks`` at half the rate.

Bands: those of ``planks`` (missed by QK-norm, 0.08 behind). What is better by more than
0.02 at one rate is better at the other, too (missed by the larger control).
"""

from typing import Any

from annotated.chapters.ch16.drawings_b import BOTH, told
from annotated.chapters.ch16.planks import PLANKS, PLANKS_RECIPE
from benchmarks.ch16 import planks
from benchmarks.ch16.planks import run as run_at
from benchmarks.record import read


def run() -> dict[str, Any]:
    return run_at(PLANKS_RECIPE.rate / 2)


def bands(record: dict[str, Any]) -> None:
    """Check those of the other rate, and what stands out at both, as page 16b says."""
    planks.bands(record)
    both = [read("planks"), record]
    found = {name: told(both, name) for name in PLANKS}
    assert {name for name in PLANKS if found[name]} == {"rotary", *BOTH}
    assert all(told(both, name, "rotary") == "better" for name in BOTH)
