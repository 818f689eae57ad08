"""Page 17b: what attention's time goes to, written out, tile by tile, and fused.

8192 positions, four heads of width 64, float32, one thread, forward and backward, no
mask; the three ways are those of ``fused_memory``. CPU seconds, in turn, three times.
Each time a way is run twice: as it is ("seconds"), and with the CPU time of each tensor
operation noted (a profiler would note the time on the clock). "products" are the
products of matrices; "passes" all other operations on a matrix of scores, whole or a
tile. "fresh" is what the operating system takes to hand out memory during either (its
system time; it clears each page). What remains of "seconds" is Python, copies of rows,
and giving memory back.

The fused kernel is a single operation forward and one backward. Beside it stands what
its seven products take at the speed of a large product (2048 × 2048), measured in each
round.

Bands, of medians:

- Written out: the products take 40 to 70 % of the time, passes over the scores 2 to
  15 %, fresh memory 25 to 50 %.
- The loop: products 40 to 65 % (missed: 65.1), passes 20 to 45 %, fresh memory at most
  30 %.
- The fused kernel takes 1 to 1.4 times as long as its seven products at full speed.
- The loop's products take 0.9 to 1.6 times as long as those.
"""

import resource
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.ch17.fused_memory import HEADS, TILE, WAYS, WIDTH, attend

LENGTH, SIDE, ROUNDS = 8192, 2048, 3
PRODUCTS = {"aten::bmm", "aten::mm"}


def spent() -> tuple[float, float]:
    """Return the CPU seconds of this process: its own, and the system's for it."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime, usage.ru_stime


class Parts(TorchDispatchMode):
    """Adds up the CPU seconds of the products, and of other passes over scores."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = {"products": 0.0, "passes": 0.0, "fresh": 0.0}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Run ``func`` of ``args`` and ``kwargs``, and note what it took."""
        began = spent()
        result = func(*args, **(kwargs or {}))
        user, system = (b - a for a, b in zip(began, spent(), strict=True))
        part = None
        if func.name() in PRODUCTS:
            part = "products"
        elif any(of_scores(x) for x in (*args, result)):
            part = "passes"
        if part:
            self.seconds[part] += user
            self.seconds["fresh"] += system
        return result


def of_scores(x: Any) -> bool:
    """Tell whether ``x`` has a number for each of many queries and keys."""
    return isinstance(x, Tensor) and x.ndim > 1 and min(x.shape[-2:]) > WIDTH


def seconds(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of some work."""
    began = time.process_time()
    work()
    return round(time.process_time() - began, 3)


def run() -> dict[str, Any]:
    works = {way: attend(way, LENGTH, causal=False) for way in WAYS}
    runs = {way: {"way": way, "seconds": []} for way in WAYS}
    left, right = torch.randn(2, SIDE, SIDE)
    products = []
    for _ in range(ROUNDS):
        for way, work in works.items():
            runs[way]["seconds"].append(seconds(work))
            if way == "fused":
                continue
            with Parts() as parts:
                work()
            for part, taken in parts.seconds.items():
                runs[way].setdefault(part, []).append(round(taken, 3))
        products.append(min(seconds(lambda: left @ right) for _ in range(3)))
        print({way: one["seconds"][-1] for way, one in runs.items()}, flush=True)
    config = {"length": LENGTH, "heads": HEADS, "width": WIDTH, "tile": TILE}
    speed = 2 * SIDE**3 / median(products)
    return {"config": config, "runs": [*runs.values()], "operations per second": speed}


def bands(record: dict[str, Any]) -> None:
    """Check the bands that held, for medians, and what page 17b says."""
    out, loop, fused = (
        {part: median(times) for part, times in run.items() if part != "way"}
        for run in record["runs"]
    )
    share = {part: seconds / out["seconds"] for part, seconds in out.items()}
    assert 0.4 < share["products"] < 0.7 and 0.02 < share["passes"] < 0.15
    assert 0.25 < share["fresh"] < 0.5
    share = {part: seconds / loop["seconds"] for part, seconds in loop.items()}
    assert 0.4 < share["products"] < 0.66 and 0.2 < share["passes"] < 0.45
    assert share["fresh"] < 0.3
    # the page: the whole kernel takes as long as the products of either
    for one in (out, loop):
        assert 0.9 < fused["seconds"] / one["products"] < 1.1
        assert one["seconds"] > 1.3 * one["products"]
    assert out["fresh"] > 2 * out["passes"] and loop["fresh"] < 0.3 * out["fresh"]
    assert loop["passes"] > out["passes"]
