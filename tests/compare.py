"""How tests compare what we compute with what others do: values and gradients."""

from collections.abc import Sequence

import torch
from torch import Tensor


def assert_close(
    ours: Tensor | Sequence[Tensor],
    theirs: Tensor | Sequence[Tensor],
    why: str = "",
    single: float = 1e-5,
) -> None:
    """Tensors differ by 1e-10 in double precision, by ``single`` in another."""
    if isinstance(ours, Tensor):
        ours, theirs = (ours,), (theirs,)
    for one, other in zip(ours, theirs, strict=True):
        limit = 1e-10 if one.dtype == torch.float64 else single
        torch.testing.assert_close(
            one, other, rtol=0, atol=limit, msg=lambda text: f"{why}\n{text}"
        )


def gradients(
    outputs: Tensor | Sequence[Tensor], of: Sequence[Tensor], **options: bool
) -> tuple[Tensor, ...]:
    """Gradients of a random mixture of all that was computed."""
    generator = torch.Generator().manual_seed(1)
    mixture = sum(
        (out * torch.randn(out.shape, generator=generator).to(out)).sum()
        for out in ((outputs,) if isinstance(outputs, Tensor) else outputs)
    )
    return torch.autograd.grad(mixture, of, **options)
