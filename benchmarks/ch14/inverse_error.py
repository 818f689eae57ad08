"""Chapter 14: how far off is what is rebuilt, by depth and dtype?

A stack as in ``reversible_cost``, smaller, with random weights. Rounding happens in the
forward pass (x + F can't hold all digits) and again backwards. Told are, each relative
by norms: the error of the input that ``inverse`` gives back; of the gradients of all
parameters against those of the stack that stores, in the same dtype; and how far those
are from double precision. "raises" says whether the sequence itself refused: it does if
half of the digits are lost.

Expected: each sum rounds once and passes on what it got, so the error of the input
grows with depth, and what reversing adds to the gradients is no worse than what the
dtype does anyway.
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
