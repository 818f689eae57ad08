"""Checkpoints: what a training needs to go on as if it had never stopped."""

import ast
import os
import random
import re
import shutil
import warnings
from collections.abc import Iterable
from dataclasses import MISSING, asdict, fields, is_dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy
import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

Record = dict[str, int | float]  #: what `fit` records of a step


class DamagedError(ValueError):
    """A file that isn't a checkpoint, or no longer a whole one."""


def previous(path: str | os.PathLike) -> Path:
    """Return where the checkpoint before the one at ``path`` is kept."""
    return Path(path).with_name(Path(path).name + ".before")


def save_checkpoint(
    path: str | os.PathLike,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    schedule: LRScheduler | None = None,
    scaler: torch.amp.GradScaler | None = None,
    history: Iterable[Record] = (),
    loss: Any = None,
) -> None:
    """Save all that training needs to go on, random states included.

    The file is written beside its place and moved there when it is complete. The one
    that was there is kept as :func:`previous`. If the process is killed halfway, both
    are still whole.

    Args:
        path: where to save; the folder must exist, with room for three such files.
        model: its parameters and buffers are saved, and the fields of its ``config``.
            If it's compiled or parallel, under the names of the model inside.
        optimizer: its state is saved.
        schedule: its state is saved.
        scaler: its state is saved.
        history: the records so far, as :func:`annotated.training.fit` returns them.
        loss: its state is saved, for a loss that remembers something.
    """
    parts = _present(model, optimizer, schedule, scaler, loss)
    content = {name: part.state_dict() for name, part in parts.items()}
    content["model"] = {_inner(n): value for n, value in content["model"].items()}
    content |= {"kinds": _kinds(parts), "history": list(history)}
    content |= {"random": _random_state()}
    path = Path(path)
    beside = path.with_name(path.name + ".part")
    with beside.open("wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())  # on the disk before it replaces the old one
    if path.exists():
        _copy(path, previous(path))
    else:
        previous(path).unlink(missing_ok=True)  # of another run
    beside.replace(path)


def load_checkpoint(
    path: str | os.PathLike,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    schedule: LRScheduler | None = None,
    scaler: torch.amp.GradScaler | None = None,
    skip: Iterable[Any] = (),
    loss: Any = None,
) -> list[Record]:
    """Load a checkpoint into a model and into what trains it.

    Only tensors and plain values are read (``weights_only=True``), so that a
    stranger's file cannot run code.

    Args:
        path: what :func:`save_checkpoint` wrote.
        model: gets the parameters and buffers, on its own device; compiled, parallel or
            plain, whichever was saved.
        optimizer: gets its state, and then the random states are restored too; leave
            it out to load a model for use.
        schedule: gets its state.
        scaler: gets its state.
        skip: an iterator over the training batches; those already used are drawn
            from it, before the random states are restored.
        loss: gets its state. An old file has none: the loss stays as it is, with a
            warning.

    Returns:
        The records so far.

    Raises:
        DamagedError: if the file is damaged or not a checkpoint.
        ValueError: if it was saved with another config, optimiser, schedule or loss,
            or ``skip`` ends too early. A field that the config got since then must
            have its default.
    """
    try:
        with ZipFile(path) as archive:  # torch.load compares no checksums
            if changed := archive.testzip():
                raise ValueError(f"its {changed} fails the checksum")
        content = torch.load(path, map_location="cpu", weights_only=True)
        history, saved = content["history"], content["kinds"]
        config = _config(model)
        saved["model"], wanted = _differing(saved["model"], config)
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged file can raise anything
        message = f"{path} is not a checkpoint, or a damaged one: {error}"
        raise DamagedError(message) from error
    if loss is not None and "loss" not in saved:
        warnings.warn(f"{path} holds no state of the loss", stacklevel=2)
        loss = None
    parts = _present(model, optimizer, schedule, scaler, loss)
    kinds = _kinds(parts) | {"model": wanted}
    for name in saved | kinds if optimizer else parts:
        if saved.get(name) != kinds.get(name):
            raise ValueError(
                f"{path} is of another {name}: it was saved with {saved.get(name)}, "
                f"but this one is {kinds.get(name)}"
            )
    used = history[-1]["batches"] if history else 0
    if skip and sum(1 for _ in islice(skip, used)) < used:
        raise ValueError(f"batches end before step {len(history)} of {path}")
    own = {_inner(name): name for name in model.state_dict()}
    state = content["model"].items()  # older files have the names of what was saved
    content["model"] = {own.get(_inner(n), n): value for n, value in state}
    for name, part in parts.items():
        part.load_state_dict(content[name])
    if optimizer is not None:
        _restore_random_state(content["random"])
    return history


def resume_checkpoint(
    path: str | os.PathLike, *args: Any, **parts: Any
) -> list[Record]:
    """Load the checkpoint at ``path``, or the one before it if that's damaged.

    It prints which one it goes on from, and why. A damaged file is kept beside, as
    ``….damaged``, and the one before takes its place.

    Args:
        path: as for :func:`save_checkpoint`.
        args: as for :func:`load_checkpoint`.
        parts: likewise.

    Returns:
        The records so far; none if there is no checkpoint yet.

    Raises:
        DamagedError: if it's damaged, and so is the one before, or there is none.
        ValueError: as for :func:`load_checkpoint`.
    """
    path, start = Path(path), Path(path)
    if not path.exists():
        return []
    try:
        history = load_checkpoint(path, *args, **parts)
    except DamagedError as error:
        start = previous(path)
        if not start.exists():
            raise
        print(f"{error}\ngoing on from the one before, {start}")
        history = load_checkpoint(start, *args, **parts)
        _copy(path, path.with_name(path.name + ".damaged"))
        _copy(start, path)
    print(f"resuming after step {len(history)} of {start}")
    return history


def _copy(source: Path, target: Path) -> None:
    beside = target.with_name(target.name + ".part")
    shutil.copyfile(source, beside)
    beside.replace(target)


def _present(*parts: Any) -> dict[str, Any]:
    names = ("model", "optimizer", "schedule", "scaler", "loss")
    return {n: part for n, part in zip(names, parts, strict=True) if part is not None}


def _kinds(parts: dict[str, Any]) -> dict[str, Any]:
    """Describe each part, so that no state is loaded into something else."""
    kinds = {name: type(part).__name__ for name, part in parts.items()}
    # of a model the config: its shapes don't show the number of heads
    kinds["model"] = _fields(_config(parts["model"]))
    return {"loss": None} | kinds


def _inner(name: str) -> str:
    """Return a parameter's ``name`` in the model that's compiled or parallel."""
    return name.replace("_orig_mod.", "").removeprefix("module.")


def _config(model: nn.Module) -> Any:
    return getattr(getattr(model, "module", model), "config", None)


def _fields(config: Any) -> dict[str, Any] | str:
    """Return the fields of a config; of one that isn't a dataclass its text."""
    if not is_dataclass(config):
        return str(config)
    return asdict(config, dict_factory=lambda pairs: {n: _plain(v) for n, v in pairs})


def _plain(value: Any) -> Any:
    """Return ``value``, or the name of a function or class: no code is loaded."""
    if value is None or isinstance(value, int | float | str | tuple | list | dict):
        return value
    return getattr(value, "__qualname__", str(value))


def _differing(saved: dict[str, Any] | str, config: Any) -> tuple[Any, Any]:
    """Return the fields that differ between a saved config and this one, of each."""
    now = _fields(config)
    if isinstance(now, str):
        return saved, now
    if isinstance(saved, str):  # an older version wrote `Config(heads=4, …)`
        text = re.fullmatch(r"[\w.<>]+(\(.*\))", saved)
        if text is None:
            return saved, now
        call = ast.parse("dict" + text[1], mode="eval").body
        saved = {field.arg: ast.literal_eval(field.value) for field in call.keywords}
    # a field that's newer than the file had its default
    newer = (field for field in fields(config) if field.default is not MISSING)
    saved = {field.name: _plain(field.default) for field in newer} | saved
    names = [name for name in now if name in saved and saved[name] != now[name]]
    return {name: saved[name] for name in names}, {name: now[name] for name in names}


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
