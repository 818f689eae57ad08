"""Page 17b: the same steps on a matrix at once, and on a band of its rows at a time.

A matrix of 8192 × 8192 in float32 (268 MB), one thread, in place, so that no memory is
asked for. A band goes through all steps before the next one begins. Operations and
numbers are the same for all sizes of bands, to the last bit, and so is the place where
the result ends; only how soon a number is needed again differs. "softmax" is
``softmax_in_bands`` (``recipes/tiles.py``), "signs" turns the sign of each number eight
times, as little as can be done between reading a number and writing it. CPU seconds,
the sizes in turn, seven times; the page compares the fastest of each.

Beside them, how fast the core is: operations per second in a product of two matrices of
2048 × 2048 (an addition and a multiplication count two), and bytes per second, in and
out, when the large matrix is copied.

Bands, written after two trials with fewer sizes and rounds, before the recorded run:

- "signs": the fastest size holds 0.25 to 16 MB, and is at least 1.7 times as fast as
  the whole matrix: the bytes decide.
- "softmax": its fastest size is 1.1 to 1.7 times as fast as the whole matrix, and gains
  less than "signs": an exponential is many operations.
- One row at a time is slower than the fastest size in both, at least 1.4 times: 8192
  times a step of Python.
- The core does 1.5 to 8 operations while it moves a byte.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from annotated.recipes.tiles import softmax_in_bands

LENGTH, SIDE, SIGNS, ROUNDS = 8192, 2048, 8, 7
SIZES = tuple(2**i for i in range(14))  # rows of a band, up to the whole matrix


def signs_in_bands(z: Tensor, size: int) -> None:
    """Turn the sign of each number of ``z`` an even number of times, in bands."""
    for band in z.split(size):
        for _ in range(SIGNS):
            band.neg_()


STEPS: dict[str, Callable[[Tensor, int], Any]] = {
    "signs": signs_in_bands,
    "softmax": softmax_in_bands,
}


def seconds(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of some work."""
    began = time.process_time()
    work()
    return round(time.process_time() - began, 4)


def caches() -> dict[str, float]:
    """Return the MB of the first core's caches for data, by level; none if not told."""
    found = {}
    for one in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind, level, size = (
            (one / name).read_text().strip() for name in ("type", "level", "size")
        )
        if kind != "Instruction":
            found[f"L{level}"] = int(size.removesuffix("K")) * 1024 / 1e6
    return found


def run() -> dict[str, Any]:
    """Measure both kinds of steps with all sizes of bands, and the core's speed."""
    torch.manual_seed(0)
    given = torch.randn(LENGTH, LENGTH)
    z = given.clone()
    found: dict[str, dict[int, list[float]]] = {
        name: {size: [] for size in SIZES} for name in STEPS
    }
    wanted: dict[str, Tensor] = {}
    for _ in range(ROUNDS):
        for size in reversed(SIZES):
            for name, step in STEPS.items():
                z.copy_(given)
                found[name][size].append(seconds(lambda step=step, n=size: step(z, n)))
                assert torch.equal(z, wanted.setdefault(name, z.clone()))
    assert torch.equal(wanted["signs"], given)
    torch.testing.assert_close(wanted["softmax"], given.softmax(dim=-1))
    left, right = torch.randn(2, SIDE, SIDE)
    product = [seconds(lambda: left @ right) for _ in range(ROUNDS)]
    copy = [seconds(lambda: z.copy_(given)) for _ in range(ROUNDS)]
    return {
        "config": {"length": LENGTH, "side": SIDE, "caches": caches()},
        "runs": [
            {"steps": name, "size": size, "seconds": times}
            for name, by_size in found.items()
            for size, times in by_size.items()
        ],
        "operations per second": 2 * SIDE**3 / min(product),
        "bytes per second": 2 * 4 * LENGTH**2 / min(copy),
    }
