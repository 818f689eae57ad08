"""Chapter 17: what attention takes by length: written out, tile by tile, and fused.

Four heads of width 64, batch 1, float32, one thread; forward and backward; causal, and
with every key in sight. "written out" is ``scaled_dot_product_attention`` of this
package, "tiled" a loop in Python over tiles of 256 × 256 (``recipes/tiles.py``), and
"fused" PyTorch's kernel. "tiles" is that loop with other sizes, every key in sight: the
last is one tile, the whole matrix. Memory is the peak of a fresh process
(``benchmarks/memory.py``), above queries, keys and values; times are CPU seconds, in
turn, three times.

Bands, causal, at 8192 positions:

- Written out takes 2.5 to 4.5 GB, and about four times what it takes at 4096 (3.5 to
  4.5): it grows with the square.
- Fused takes at most 0.1 GB, tiled at most 0.15, and both about twice what they take at
  4096 (1.5 to 2.6): they grow with the length.
- Fused is at least twice as fast as written out. The loop in Python skips half of the
  tiles, and lies between the two.

With every key in sight:

- At 8192, tiled is at least 1.3 times faster than written out (missed: hardly), and
  fused is the fastest.
- Of the tile sizes, at 4096, the fastest lies between 64 and 512: small tiles are many
  steps of Python, large ones leave the cache. One tile of 4096 takes at least 1.3 times
  as long as the fastest.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from annotated.attention import scaled_dot_product_attention
from annotated.chapters.ch17.tiles import TiledAttention
from annotated.masks import causal_mask
from annotated.sparse import Pattern
from benchmarks.memory import peak

LENGTHS, HEADS, WIDTH, TILE, ROUNDS = (1024, 2048, 4096, 8192), 4, 64, 256, 3
WAYS = ("written out", "tiled", "fused")
SIZES, TILES_AT = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096), 4096


def written_out(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """Return attention of ``q``, ``k`` and ``v``, its weights written out."""
    mask = causal_mask(q.shape[-2]) if causal else None
    return scaled_dot_product_attention(q, k, v, mask)[0]


def attend(way: str, length: int, causal: bool, size: int = TILE) -> Callable[[], Any]:
    """Return a forward and backward pass of one way, after a short one.

    Args:
        way: one of ``WAYS``.
        length: number of positions.
        causal: whether later keys are hidden.
        size: of the tiles.
    """
    torch.manual_seed(0)
    sees = Pattern(low=0) if causal else Pattern()
    compute = {
        "written out": partial(written_out, causal=causal),
        "tiled": lambda *qkv: TiledAttention.apply(*qkv, sees, size),
        "fused": partial(F.scaled_dot_product_attention, is_causal=causal),
    }[way]

    def inputs(t: int) -> list[Tensor]:
        return [torch.randn(1, HEADS, t, WIDTH, requires_grad=True) for _ in range(3)]

    def work(qkv: list[Tensor]) -> None:
        for x in qkv:
            x.grad = None
        compute(*qkv).sum().backward()

    work(inputs(64))
    qkv = inputs(length)
    return lambda: work(qkv)


def compare(several: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Measure several settings of :func:`attend` in turn, and each one's memory."""
    works = [attend(**one) for one in several]
    seconds = [[] for _ in several]
    for _ in range(ROUNDS):
        for work, times in zip(works, seconds, strict=True):
            began = time.process_time()
            work()
            times.append(round(time.process_time() - began, 3))
    runs = []
    for one, times in zip(several, seconds, strict=True):
        runs.append(one | {"seconds": times, "MB": round(peak(attend, **one), 1)})
        print(runs[-1], flush=True)
    return runs


def run() -> dict[str, Any]:
    runs = []
    for causal in (True, False):
        for length in LENGTHS:
            settings = {"length": length, "causal": causal}
            runs += compare([{"way": way} | settings for way in WAYS])
    settings = {"way": "tiled", "length": TILES_AT, "causal": False}
    tiles = compare([settings | {"size": size} for size in SIZES])
    config = {"heads": HEADS, "width": WIDTH, "tile": TILE}
    return {"config": config, "runs": runs, "tiles": tiles}


def bands(record: dict[str, Any]) -> None:
    """Check the bands that held, for medians, and what page 17b says."""
    runs = {(run["way"], run["length"], run["causal"]): run for run in record["runs"]}
    MB = {(way, t): run["MB"] for (way, t, causal), run in runs.items() if causal}
    out = MB["written out", 8192]
    assert 2500 < out < 4500 and 3.5 < out / MB["written out", 4096] < 4.5
    for way, most in (("tiled", 150), ("fused", 100)):
        assert MB[way, 8192] < most and 1.5 < MB[way, 8192] / MB[way, 4096] < 2.3
    for causal, least in ((False, 1.3), (True, 4)):
        out, loop, fused = (median(runs[way, 8192, causal]["seconds"]) for way in WAYS)
        assert out > least * fused and fused < loop < out
    seconds = {run["size"]: median(run["seconds"]) for run in record["tiles"]}
    best = min(seconds, key=seconds.get)
    assert 64 <= best <= 512 and seconds[max(seconds)] > 1.3 * seconds[best]
