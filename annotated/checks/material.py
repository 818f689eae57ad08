"""What the cases of all chapters are made of: random arguments, and gradients."""

from collections.abc import Callable

import torch
from torch import Tensor

from annotated.checks import Differentiated, expect, upstream

# How near an answer must come in each precision, when the right one is computed wide.
TOLERANCES = {torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float64: 1e-9}


def draw(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normal numbers, the same ones for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype)


def tolerance_of(dtype: torch.dtype) -> float:
    return TOLERANCES.get(dtype, 1e-5)


def differentiated(right: Callable, *arguments: Tensor) -> Differentiated:
    """What a case with ``gradients=True`` hands its judge for the right answer."""

    def held(a: object) -> bool:
        return isinstance(a, Tensor) and a.is_floating_point()

    given = [a.clone().requires_grad_() if held(a) else a for a in arguments]
    value = right(*given)
    (value * upstream(value)).sum().backward()
    gradients = [a.grad for a in given if held(a)]
    return Differentiated(value.detach(), gradients)


def expect_gradients(
    result: Differentiated, right: Callable, *arguments: Tensor, names: str, hint: str
) -> None:
    """Fail unless value and gradients are those of the function ``right``.

    Args:
        result: what the judge was handed.
        right: the right answer.
        arguments: those of the case.
        names: what its floating-point tensors are called, in order, with spaces.
        hint: said where a gradient is missing, NaN or another one.
    """
    expected = differentiated(right, *arguments)
    expect(
        result.value,
        expected.value,
        hint="the values differ already; the checks above say more",
        tolerance=1e-4,
    )
    pairs = zip(names.split(), result.gradients, expected.gradients, strict=True)
    for name, gradient, wanted in pairs:
        if gradient is None:
            raise AssertionError(f"no gradient reaches {name}; {hint}")
        if gradient.isnan().any() and not wanted.isnan().any():
            raise AssertionError(f"the gradient of {name} holds NaN; {hint}")
        expect(
            gradient,
            wanted,
            hint=f"the gradient of {name} is another one; {hint}",
            tolerance=1e-4,
        )
