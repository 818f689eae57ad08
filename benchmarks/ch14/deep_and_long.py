"""Chapter 14: sixteen layers on 8192 positions, checkpointed and reversible.

The layers of ``one_stream`` and the blocks of ``reversible_length``, deep and long at
once: the peak of a forward and backward pass, in a fresh process each.

Bands, from the slopes (8.43 and 3.21 MB a layer) and the peaks of six layers (217 and
212 MB): checkpointed 290 to 315 MB, reversible 235 to 255.
"""

from typing import Any

from annotated.chapters.ch14.drawings import gigabytes, peaks_by_length, scaled
from benchmarks.ch14.one_stream import ordinary
from benchmarks.ch14.reversible_cost import ours
from benchmarks.memory import peak
from benchmarks.record import read


def run() -> dict[str, Any]:
    case = {"depth": 16, "length": 8192}
    megabytes = {
        "checkpointed": round(peak(ordinary, way="checkpointed", **case), 2),
        "reversible": round(peak(ours, way="reversible", **case), 2),
    }
    print(megabytes, flush=True)
    return {**case, "MB": megabytes}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, and what page 14 estimates from four records."""
    MB = record["MB"]
    assert 290 < MB["checkpointed"] < 315 and 235 < MB["reversible"] < 255
    names = "reversible_cost", "one_stream", "reversible_length"
    peaks = peaks_by_length(
        {name: read(name) for name in names} | {"deep_and_long": record}
    )
    fits = scaled(peaks)
    deep = gigabytes(fits, 48, 2**16, 1024)
    # the page: with seven groups of seven, 14 states are there instead of 48
    in_groups = deep["checkpointed"] - 34 * fits["checkpointed"]["layer"] * 128 / 1000
    assert max(deep["reversible"], in_groups) < 24 < deep["checkpointed"]
    # the page: the calculator's answer
    assert max(gigabytes(fits, 12, 2048, 1024).values()) < 24
    shallow = gigabytes(fits, 12, 2**16, 1024)
    assert max(shallow["checkpointed"], shallow["reversible"]) < 24
    assert (
        shallow["stored"] > 40 and min(gigabytes(fits, 96, 2**16, 1024).values()) > 24
    )
