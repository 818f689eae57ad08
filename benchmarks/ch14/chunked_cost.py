"""Chapter 14: what a feed-forward network takes at its peak, whole and in chunks.

Width 256, 4096 between the maps, 8192 positions: the inner vectors of all positions are
134 MB. "cut" maps 256 positions at a time and stores all inner vectors, in pieces.
"chunked" is :class:`ChunkedFeedForward`, which computes them again. Memory is the peak
of a fresh process (``benchmarks/memory.py``); times are CPU seconds, in turn.

Expected, from what is alive at once: without gradients, whole has two inner tensors;
forward and backward, three. Chunked runs forward once more.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from annotated.reversible import ChunkedFeedForward
from annotated.transformer import FeedForward
from benchmarks.memory import peak

LENGTH, D, D_FF, CHUNK, ROUNDS = 8192, 256, 4096, 256, 3


class Cut(ChunkedFeedForward):
    """Chunks that are all stored."""

    def forward(self, x):
        """Return each chunk of ``x``, (b, t, d), mapped."""
        chunks = x.split(self.chunk_size, dim=-2)
        return torch.cat([FeedForward.forward(self, chunk) for chunk in chunks], -2)


def network(way: str, backward: bool) -> Callable[[], Any]:
    """Return one pass of a network, after a short one."""
    torch.manual_seed(0)
    kinds = {"whole": FeedForward, "cut": Cut, "chunked": ChunkedFeedForward}
    more = {} if way == "whole" else {"chunk_size": CHUNK}
    model = kinds[way](D, D_FF, **more)

    def work(length: int = LENGTH) -> None:
        model.zero_grad()
        x = torch.randn(1, length, D, requires_grad=backward)
        with torch.set_grad_enabled(backward):
            y = model(x)
        if backward:
            y.sum().backward()

    work(CHUNK // 4)
    model.zero_grad()
    return work


def run() -> dict[str, Any]:
    runs = []
    for backward in (False, True):
        ways = ("whole", "cut", "chunked")
        works = {way: network(way, backward) for way in ways}
        times = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way in ways:
                began = time.process_time()
                works[way]()
                times[way].append(round(time.process_time() - began, 3))
        for way in ways:
            entry = {"way": way, "backward": backward, "seconds": times[way]}
            entry["MB"] = round(peak(network, way=way, backward=backward), 1)
            pairs = zip(times[way], times["whole"], strict=True)
            entry["time to whole"] = statistics.median(a / b for a, b in pairs)
            runs.append(entry)
            print(entry, flush=True)
    config = {"length": LENGTH, "d_model": D, "d_ff": D_FF, "chunk_size": CHUNK}
    return {"config": config, "runs": runs}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands."""
    runs = {(run["way"], run["backward"]): run for run in record["runs"]}
    MB = {at: run["MB"] for at, run in runs.items()}
    assert 260 < MB["whole", False] < 300 and 400 < MB["whole", True] < 450
    assert max(MB["cut", False], MB["chunked", False]) < 30
    assert 134 < MB["cut", True] < 200 and MB["chunked", True] < 60
    assert 1.1 < runs["chunked", True]["time to whole"] < 1.5
