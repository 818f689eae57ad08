"""Chapter 16: the same as ``ch16_planks`` at half the rate.

Bands, before the run: those of ``ch16_planks``. What is better by more than 0.02 at one
rate is better at the other, too.

Found: QK-norm is 0.08 behind, out of its band; the others are inside. The larger
control is 0.02 ahead here and not at the other rate, so that the last sentence holds
for rotary positions, SwiGLU and both models with all parts, and not for it.
"""

from typing import Any

from annotated.chapters.ch16.drawings_b import BOTH, told
from annotated.chapters.ch16.planks import PLANKS, PLANKS_RECIPE
from benchmarks.ch16 import planks
from benchmarks.ch16.planks import run as run_at
from benchmarks.record import read


def run() -> dict[str, Any]:
    """Train every model with every seed."""
    return run_at(PLANKS_RECIPE.rate / 2)


def bands(record: dict[str, Any]) -> None:
    """Check those of the other rate, and what stands out at both, as page 16b says."""
    planks.bands(record)
    both = [read("planks"), record]
    found = {name: told(both, name) for name in PLANKS}
    assert {name for name in PLANKS if found[name]} == {"rotary", *BOTH}
    assert all(told(both, name, "rotary") == "better" for name in BOTH)
