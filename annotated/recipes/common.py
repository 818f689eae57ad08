"""Learning rates that several recipes use."""

from collections.abc import Callable

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR

from annotated import require


def one_cycle(
    model: nn.Module, rate: float, steps: int
) -> tuple[torch.optim.Adam, OneCycleLR]:
    """Return Adam for a ``model``, and a schedule for its learning rate.

    The rate rises to ``rate`` for a tenth of the ``steps``, at least two of them, and
    then falls.
    """
    require.count(3, steps=steps)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    rise = max(0.1, 2 / steps)  # with a single step, OneCycleLR divides by zero
    return optimizer, OneCycleLR(optimizer, rate, total_steps=steps, pct_start=rise)


def paper_adam(
    model: nn.Module, rate: Callable[[int], float]
) -> tuple[torch.optim.Adam, LambdaLR]:
    """Return the Adam of Vaswani et al. (2017) for a ``model``, and its schedule.

    ``rate`` gives the learning rate of step n, from 1.
    """
    optimizer = torch.optim.Adam(
        model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9
    )
    # LambdaLR counts finished steps from 0; step n comes after n - 1 of them
    return optimizer, LambdaLR(optimizer, lambda done: rate(done + 1))
