"""Learning rates that several recipes use."""

from collections.abc import Callable

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR


def one_cycle(
    model: nn.Module, rate: float, steps: int
) -> tuple[torch.optim.Adam, OneCycleLR]:
    """Return Adam for a ``model``, and a schedule for its learning rate.

    The rate rises to ``rate`` for a tenth of the ``steps``, at least two of them, and
    then falls.
    """
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    total = max(steps, 3)  # two up and one down: with less, OneCycleLR divides by zero
    options = {"total_steps": total, "pct_start": max(0.1, 2 / total)}
    return optimizer, OneCycleLR(optimizer, rate, **options)


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
