"""Chapter 14: how far off is what is rebuilt, by depth and dtype?

A stack as in ``reversible_cost``, smaller (width 64, 256 positions), with random
weights. Rounding happens in the forward pass (x + F can't hold all digits) and again
backwards. Told are, each relative by norms and for three seeds: the error of the input
that ``inverse`` gives back; the error of the gradients of all parameters against those
of the same stack that stores, in the same dtype; and, to compare, how far those of the
stored one are from double precision, which is the dtype's own doing. "raises" says
whether the sequence itself refused: it does if half of the digits are lost.

Bands, written before the final run, from one seed at three depths. The error of the
input begins below the dtype's ε (2e-16, 1e-7, 8e-3, 1e-3) and grows with depth, by less
than 100 times up to 32 blocks: each sum rounds once and passes on what it got. Reversed
gradients differ from stored ones by no more than twice what stored ones of the same
dtype differ from double precision: what reversing adds is no worse than what the dtype
does anyway. The sequence refuses nowhere: no error reaches √ε.
"""

import statistics
from typing import Any

import torch
from torch import Tensor

from annotated.chapters.ch14.reversible import layers, reversible, stored

D, HEADS, D_FF, LENGTH, SEEDS = 64, 4, 256, 256, (0, 1, 2)
DEPTHS = (1, 2, 4, 8, 16, 32)
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def relative(one: Tensor, other: Tensor) -> float:
    """Return the norm of the difference by that of the other, in double precision."""
    one, other = one.double(), other.double()
    return ((one - other).norm() / other.norm()).item()


def gradient(run, stack, x: Tensor, weights: Tensor) -> Tensor:
    """Return the gradient of all parameters, as one vector."""
    y1, y2 = run(stack, x, x)
    loss = ((y1 + y2) * weights).float().mean()
    parts = torch.autograd.grad(loss, list(stack.parameters()))
    return torch.cat([part.flatten().double() for part in parts])


def errors(dtype: torch.dtype, depth: int, seed: int) -> dict[str, Any]:
    """Return the three errors of one stack."""
    torch.manual_seed(seed)
    stack = layers(depth, D, HEADS, D_FF)
    x, weights = torch.randn(2, 1, LENGTH, D).to(dtype)
    exact = gradient(stored, stack.double(), x.double(), weights.double())
    stack = stack.to(dtype)
    with torch.no_grad():
        y1, y2 = stored(stack, x, x)
        for block in reversed(stack.blocks):
            y1, y2 = block.inverse(y1, y2)
    kept = gradient(stored, stack, x, weights)
    result = {"input": relative(torch.cat([y1, y2]), torch.cat([x, x]))}
    result["stored gradients from exact"] = relative(kept, exact)
    try:
        rebuilt = gradient(reversible, stack, x, weights)
        result |= {"gradients": relative(rebuilt, kept), "raises": False}
    except RuntimeError as error:
        result |= {"gradients": None, "raises": str(error)[:45]}
    return result


def run() -> dict[str, Any]:
    """Measure each dtype and depth, three seeds."""
    runs = []
    for dtype in DTYPES:
        for depth in DEPTHS:
            of_seeds = [errors(dtype, depth, seed) for seed in SEEDS]
            entry = {"dtype": str(dtype).removeprefix("torch."), "depth": depth}
            for name in ("input", "gradients", "stored gradients from exact"):
                numbers = [of_seed[name] for of_seed in of_seeds]
                numbers = [number for number in numbers if number is not None]
                entry[f"{name}, seeds"] = [float(f"{n:.3g}") for n in numbers]
                if numbers:
                    entry[name] = float(f"{statistics.median(numbers):.3g}")
            entry["raises"] = sum(bool(of_seed["raises"]) for of_seed in of_seeds)
            runs.append(entry)
            print(entry, flush=True)
    config = {"d_model": D, "heads": HEADS, "d_ff": D_FF, "length": LENGTH}
    return {"config": config, "seeds": SEEDS, "runs": runs}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, and what page 14b says of 32 blocks."""
    for run in record["runs"]:
        assert not run["raises"]
        if run["dtype"] in ("float16", "bfloat16"):
            assert run["gradients"] < 2 * run["stored gradients from exact"]
    # the page: within a thousandth, and mostly far closer
    (single,) = (
        run["gradients, seeds"]
        for run in record["runs"]
        if (run["dtype"], run["depth"]) == ("float32", 32)
    )
    assert max(single) < 1e-3 and statistics.median(single) < 1e-4
