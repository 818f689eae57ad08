"""Chapter 17: what attention takes by length: written out, tile by tile, and fused.

Causal, four heads of width 64, batch 1, float32, one thread; forward and backward.
"written out" is ``scaled_dot_product_attention`` of this package with a mask, "tiled" a
loop in Python over tiles of 256 × 256 (``recipes/tiles.py``), "fused" PyTorch's kernel,
told that attention is causal. Memory is the peak of a fresh process
(``benchmarks/memory.py``), above queries, keys and values; times are CPU seconds, in
turn, three times.

Bands, written before the final run. From an earlier record of a whole layer: at 8192
positions, written out 3.2 GB, fused 0.1 GB. So, at 8192:

- Written out takes 2.5 to 4.5 GB, and about four times what it takes at 4096 (3.5 to
  4.5): it grows with the square.
- Fused takes at most 0.1 GB, tiled at most 0.15, and both about twice what they take at
  4096 (1.5 to 2.6): they grow with the length.
- Fused is at least twice as fast as written out. The loop in Python skips half of the
  tiles, and lies between the two.

The multiplications of the two loops are those of page 17b's table.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional as F

from annotated.attention import scaled_dot_product_attention
from annotated.masks import causal_mask
from annotated.recipes.tiles import TiledAttention
from annotated.sparse import Pattern
from benchmarks.memory import peak

LENGTHS, HEADS, WIDTH, TILE, ROUNDS = (1024, 2048, 4096, 8192), 4, 64, 256, 3
WAYS = ("written out", "tiled", "fused")


def attend(way: str, length: int) -> Callable[[], Any]:
    """Return a forward and backward pass of one way, after a short one.

    Args:
        way: one of ``WAYS``.
        length: number of positions.
    """
    torch.manual_seed(0)
    ways = {
        "written out": lambda q, k, v: scaled_dot_product_attention(
            q, k, v, causal_mask(q.shape[-2])
        )[0],
        "tiled": lambda q, k, v: TiledAttention.apply(q, k, v, Pattern(low=0), TILE),
        "fused": lambda q, k, v: F.scaled_dot_product_attention(
            q, k, v, is_causal=True
        ),
    }

    def inputs(t: int) -> list[torch.Tensor]:
        return [torch.randn(1, HEADS, t, WIDTH, requires_grad=True) for _ in range(3)]

    def work(qkv: list[torch.Tensor]) -> None:
        for x in qkv:
            x.grad = None
        ways[way](*qkv).sum().backward()

    work(inputs(64))
    qkv = inputs(length)
    return lambda: work(qkv)


def run() -> dict[str, Any]:
    """Measure all ways at all lengths."""
    runs = []
    for length in LENGTHS:
        works = {way: attend(way, length) for way in WAYS}
        seconds = {way: [] for way in WAYS}
        for _ in range(ROUNDS):
            for way, work in works.items():
                began = time.process_time()
                work()
                seconds[way].append(round(time.process_time() - began, 3))
        for way in WAYS:
            entry = {"way": way, "length": length, "seconds": seconds[way]}
            entry["MB"] = round(peak(attend, way=way, length=length), 1)
            runs.append(entry)
            print(entry, flush=True)
    return {"heads": HEADS, "width": WIDTH, "tile": TILE, "runs": runs}
