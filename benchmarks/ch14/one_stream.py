"""Chapter 14: what ordinary layers take, of one stream, stored and checkpointed.

The blocks of ``reversible_cost`` with the same F and G in one residual stream, x + F(x)
and then x + G(x): what people checkpoint. Memory is the peak of a fresh process
(``benchmarks/memory.py``) at two lengths; times are CPU seconds at depth 16 and 2048
positions, in turn, and the median of the rounds' ratios.

Bands, from what is alive: stored takes 24 to 27 MB a layer at 2048 positions.
Checkpointed takes the larger of states (2.1 MB a layer) and gradients (3.2 MB a layer):
2.1 to 3.4 MB at 2048, 8 to 9 MB at 8192, and 1.2 to 1.35 times the time of stored.
"""

import statistics
import time
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from annotated.chapters.ch14.reversible import layers
from benchmarks.ch14.reversible_cost import D_FF, HEADS, D, Work, _work
from benchmarks.memory import peak

DEPTHS = {2048: (1, 2, 4, 8, 16), 8192: (2, 6)}
ROUNDS = 5


class Layer(nn.Module):
    """F and G of a reversible block, in one stream."""

    def __init__(self, block: nn.Module):
        super().__init__()
        self.f, self.g = block.f, block.g

    def forward(self, x: Tensor) -> Tensor:
        """Return the stream after both have added to it."""
        x = x + self.f(x)
        return x + self.g(x)


def ordinary(way: str, depth: int, length: int) -> Work:
    """Return a forward and backward pass of ordinary layers, after a short one."""
    torch.manual_seed(0)
    blocks = layers(depth, D, HEADS, D_FF).blocks
    stack = nn.Sequential(*(Layer(block) for block in blocks))

    def run(x: Tensor) -> Tensor:
        for layer in stack:
            kept = way == "stored"
            x = layer(x) if kept else checkpoint(layer, x, use_reentrant=False)
        return x

    return _work(run, stack, length)


def run() -> dict[str, Any]:
    peaks, slopes = [], {}
    for length, depths in DEPTHS.items():
        for way in ("stored", "checkpointed"):
            mine = []
            for depth in depths if way == "checkpointed" else depths[-2:]:
                case = {"way": way, "depth": depth, "length": length}
                mine.append(case | {"MB": round(peak(ordinary, **case), 2)})
                print(mine[-1], flush=True)
            peaks += mine
            first, last = mine[-2:]
            slope = (last["MB"] - first["MB"]) / (last["depth"] - first["depth"])
            slopes[f"{way}, {length}"] = round(slope, 2)
    works = {way: ordinary(way, 16, 2048) for way in ("stored", "checkpointed")}
    ratios = []
    for _ in range(ROUNDS):
        times = {}
        for way, work in works.items():
            began = time.process_time()
            work()
            times[way] = time.process_time() - began
        ratios.append(times["checkpointed"] / times["stored"])
    ratio = round(statistics.median(ratios), 3)
    return {"peaks": peaks, "MB per layer": slopes, "time to stored": ratio}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands."""
    slopes = record["MB per layer"]
    assert 24 < slopes["stored, 2048"] < 27 and 2.1 < slopes["checkpointed, 2048"] < 3.4
    assert 8 < slopes["checkpointed, 8192"] < 9
    assert 1.2 < record["time to stored"] < 1.35
