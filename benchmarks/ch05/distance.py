"""Page 5c: biases by distance in chapter 5's experiment.

Readers that name the symbol one position before, trained on 8 to 32 symbols and tested
on longer sequences, after position 31.
"""

from typing import Any

import torch

from annotated.chapters.ch05.distance import (
    DISTANCE_KINDS,
    distance_reader,
    neighbours_named,
    train_distance,
)
from annotated.chapters.ch05.reading import POSITIONS
from benchmarks.record import SEEDS

LENGTHS = (32, 64, 128)


def run() -> dict[str, Any]:
    runs = []
    for kind in DISTANCE_KINDS:
        for seed in SEEDS:
            torch.manual_seed(seed)
            model = distance_reader(kind)
            seconds = train_distance(model, seed)
            entry = {"kind": kind, "seed": seed, "cpu_seconds": seconds}
            for length in LENGTHS:
                right, either = neighbours_named(model, length)
                edge = 31 if length > POSITIONS["longest"] else 0
                entry[f"right at {length}"] = right[edge:].mean().item()
                entry[f"either at {length}"] = either
            runs.append(entry)
            print(entry, flush=True)
    return {"config": POSITIONS, "runs": runs}


def bands(record: dict[str, Any]) -> None:
    """Check what page 5c says of each kind, for every seed."""
    assert record["config"] == POSITIONS
    assert {run["kind"] for run in record["runs"]} == {*DISTANCE_KINDS}

    def right(kind: str, length: int) -> list[float]:
        runs = (run for run in record["runs"] if run["kind"] == kind)
        return [run[f"right at {length}"] for run in runs]

    either = [run["either at 32"] for run in record["runs"] if run["kind"] == "ALiBi"]
    assert min(either) > 0.9  # it finds the two neighbours
    for length in LENGTHS:
        assert all(0.4 < share < 0.65 for share in right("ALiBi", length))
        assert min(right("rotary", length)) > 0.95
    wide, close = "T5's bias, furthest 128", "T5's bias, furthest 24"
    assert min(right(wide, 32) + right(close, 32) + right(close, 64)) > 0.9
    assert max(right(wide, 128)) < min(right(close, 128))
    assert max(right(wide, 64)) < 0.95
