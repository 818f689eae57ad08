"""Chapter 14: sixteen layers on 8192 positions, checkpointed and reversible.

The layers of ``one_stream`` and the blocks of ``reversible_length``, deep and long at
once: the peak of a forward and backward pass, in a fresh process each.

Bands, from the slopes (8.43 and 3.21 MB a layer) and the peaks of six layers (217 and
212 MB): checkpointed 290 to 315 MB, reversible 235 to 255.
"""

from typing import Any

from benchmarks.ch14.one_stream import ordinary
from benchmarks.ch14.reversible_cost import ours
from benchmarks.memory import peak


def run() -> dict[str, Any]:
    case = {"depth": 16, "length": 8192}
    megabytes = {
        "checkpointed": round(peak(ordinary, way="checkpointed", **case), 2),
        "reversible": round(peak(ours, way="reversible", **case), 2),
    }
    print(megabytes, flush=True)
    return {**case, "MB": megabytes}
