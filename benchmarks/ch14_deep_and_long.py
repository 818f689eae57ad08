"""Chapter 14: many layers on 8192 positions, checkpointed and reversible.

The layers of ``one_stream`` and the blocks of ``reversible_length``, deep and long at
once: the peak of a forward and backward pass, in a fresh process each.

Bands, written before the final run, from the slopes (8.43 and 3.21 MB a layer) and the
peaks of six layers (217 and 212 MB): with 16 layers checkpointed 290 to 315 MB,
reversible 235 to 255; with 48, before its first run, 555 to 590 and 335 to 360.
"""

from typing import Any

from benchmarks.ch14_one_stream import ordinary
from benchmarks.ch14_reversible_cost import ours
from benchmarks.memory import peak

LENGTH, DEPTHS = 8192, (16, 48)


def run() -> dict[str, Any]:
    """Measure both at each depth."""
    peaks = []
    for way, make in (("checkpointed", ordinary), ("reversible", ours)):
        for depth in DEPTHS:
            case = {"way": way, "depth": depth, "length": LENGTH}
            peaks.append(case | {"MB": round(peak(make, **case), 2)})
            print(peaks[-1], flush=True)
    return {"peaks": peaks}
