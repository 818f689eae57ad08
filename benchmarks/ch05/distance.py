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
