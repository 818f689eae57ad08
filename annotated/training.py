"""Training: one loop for every chapter."""

import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm


def fit(
    model: nn.Module,
    loss: Callable[[nn.Module, Any], Tensor],
    batches: Iterable[Any],
    optimizer: torch.optim.Optimizer,
    *,
    schedule: torch.optim.lr_scheduler.LRScheduler | None = None,
    clip: float | None = None,
    after: Callable[[int], None] | None = None,
) -> list[dict[str, int | float]]:
    """Take one optimiser step for each batch.

    Args:
        model: what to train; left in training mode.
        loss: ``loss(model, batch)`` gives the scalar to lower.
        batches: one batch a step.
        optimizer: steps the parameters.
        schedule: stepped after each optimiser step.
        clip: largest norm of the whole gradient; no clipping if not given.
        after: called with the number of steps taken, after each of them.

    Returns:
        A record a step: ``step`` (from 1), ``loss``, ``gradient_norm`` (before
        clipping) and ``cpu_seconds`` spent so far in the steps themselves, without
        ``after``.

    Raises:
        FloatingPointError: if the loss is no longer finite, with the step.
        ValueError: if ``batches`` is empty, or ``clip`` is not positive.
    """
    if clip is not None and not clip > 0:  # NaN included
        raise ValueError(f"clip must be positive, got {clip}")
    model.train()
    history: list[dict[str, int | float]] = []
    spent = 0.0
    bar = tqdm(batches, desc="training", unit=" steps", mininterval=1.0)
    for step, batch in enumerate(bar, start=1):
        began = time.process_time()
        optimizer.zero_grad()
        value = loss(model, batch)
        if not math.isfinite(value.item()):
            raise FloatingPointError(
                f"the loss is {value.item()} at step {step}; a learning rate that is "
                "too large or a softmax over nothing are the likely causes"
            )
        value.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), clip or math.inf)
        optimizer.step()
        if schedule is not None:
            schedule.step()
        spent += time.process_time() - began
        history.append(
            {
                "step": step,
                "loss": value.item(),
                "gradient_norm": norm.item(),
                "cpu_seconds": spent,
            }
        )
        if after is not None:
            after(step)
            model.train()
    if not history:
        raise ValueError("batches must hold at least one batch, got none")
    return history
