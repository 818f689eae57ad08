"""Checkpoints: what a training needs to go on as if it had never stopped."""

import os
import random
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

Record = dict[str, int | float]  #: what `fit` records of a step


def save_checkpoint(
    path: str | os.PathLike,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    schedule: LRScheduler | None = None,
    scaler: torch.amp.GradScaler | None = None,
    history: Iterable[Record] = (),
) -> None:
    """Save all that training needs to go on, random states included.

    The file is written beside its place and moved there when it is complete. If the
    process is killed halfway, the previous checkpoint is still there.

    Args:
        path: where to save; the folder must exist.
        model: its parameters and buffers are saved.
        optimizer: its state is saved.
        schedule: its state is saved.
        scaler: its state is saved.
        history: the records so far, as :func:`annotated.training.fit` returns them.
    """
    parts = _present(model, optimizer, schedule, scaler)
    content = {name: part.state_dict() for name, part in parts.items()}
    content |= {"kinds": _kinds(parts), "history": list(history)}
    content |= {"random": _random_state()}
    path = Path(path)
    beside = path.with_name(path.name + ".part")
    with beside.open("wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())  # on the disk before it replaces the old one
    beside.replace(path)


def load_checkpoint(
    path: str | os.PathLike,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    schedule: LRScheduler | None = None,
    scaler: torch.amp.GradScaler | None = None,
    skip: Iterable[Any] = (),
) -> list[Record]:
    """Load a checkpoint into a model and into what trains it.

    Only tensors and plain values are read (``weights_only=True``), so that a
    stranger's file cannot run code.

    Args:
        path: what :func:`save_checkpoint` wrote.
        model: gets the parameters and buffers, on its own device.
        optimizer: gets its state, and then the random states are restored too; leave
            it out to load a model for use.
        schedule: gets its state.
        scaler: gets its state.
        skip: an iterator over the training batches; those already used are drawn
            from it, before the random states are restored.

    Returns:
        The records so far.

    Raises:
        ValueError: if the file is damaged or no checkpoint, was saved with another
            config, optimiser or schedule, or ``skip`` ends too early.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        history, saved = content["history"], content["kinds"]
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged file can raise anything
        message = f"{path} is no checkpoint, or a damaged one: {error}"
        raise ValueError(message) from error
    parts = _present(model, optimizer, schedule, scaler)
    kinds = _kinds(parts)
    for name in saved | kinds if optimizer else kinds:
        if saved.get(name) != kinds.get(name):
            raise ValueError(
                f"{path} is of another {name}: it was saved with {saved.get(name)}, "
                f"but this one is {kinds.get(name)}"
            )
    used = history[-1]["batches"] if history else 0
    if skip and sum(1 for _ in islice(skip, used)) < used:
        raise ValueError(f"batches end before step {len(history)} of {path}")
    for name, part in parts.items():
        part.load_state_dict(content[name])
    if optimizer is not None:
        _restore_random_state(content["random"])
    return history


def _present(*parts: Any) -> dict[str, Any]:
    names = ("model", "optimizer", "schedule", "scaler")
    return {n: part for n, part in zip(names, parts, strict=True) if part is not None}


def _kinds(parts: dict[str, Any]) -> dict[str, str]:
    """Describe each part, so that no state is loaded into something else."""
    kinds = {name: type(part).__name__ for name, part in parts.items()}
    # of a model the config: its shapes do not show the number of heads
    return kinds | {"model": str(getattr(parts["model"], "config", None))}


def _random_state() -> dict[str, Any]:
    kind, keys, *rest = numpy.random.get_state()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all(),
        "numpy": (kind, keys.tolist(), *rest),
        "python": random.getstate(),
    }


def _restore_random_state(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    # there may have been more GPUs where it was saved
    torch.cuda.set_rng_state_all(state["cuda"][: torch.cuda.device_count()])
    numpy.random.set_state(state["numpy"])
    random.setstate(state["python"])
