"""Chapter 16: the same as ``planks`` at half the rate.

Bands: those of ``planks`` (missed by QK-norm, 0.08 behind). What is better by more than
0.02 at one rate is better at the other, too (missed by the larger control).
"""

from typing import Any

from annotated.chapters.ch16.planks import PLANKS_RECIPE
from benchmarks.ch16.planks import run as run_at


def run() -> dict[str, Any]:
    return run_at(PLANKS_RECIPE.rate / 2)
