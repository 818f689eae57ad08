"""Training: one loop for every chapter, and the recipe of the Transformer.

Letters: b batch, t target length, v vocabulary (``book/notation.md``).
"""

import copy
import dataclasses
import math
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from numbers import Integral, Real
from operator import length_hint
from pathlib import Path
from typing import Any

import numpy
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, ReduceLROnPlateau
from tqdm import tqdm

from annotated.masks import _require_whole

MOST_LEFT_OUT = 20  # steps in a row: no scale is small enough for such a gradient
Loss = Callable[[nn.Module, Any], Tensor]
Record = dict[str, int | float]


def noam_rate(step: int, d_model: int, warmup: int, factor: float = 1.0) -> float:
    """Return the learning rate of a step: up in a straight line, then down as 1/√step.

    Vaswani et al. (2017), equation 3. Both regimes meet at ``step = warmup``, where
    the rate is ``factor / √(d_model · warmup)``.

    Args:
        step: number of the step, from 1.
        d_model: width of the model.
        warmup: number of steps upwards.
        factor: multiplies the rate.

    Raises:
        ValueError: if ``step``, ``d_model`` or ``warmup`` is no whole number from 1 on,
            or ``factor`` is not positive and finite.
    """
    for name, value in (("step", step), ("d_model", d_model), ("warmup", warmup)):
        _require_count(name, value)
    if not _is_number(factor) or not 0 < factor < math.inf:
        raise ValueError(f"factor must be positive and finite, got {factor!r}")
    return float(factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def noam_schedule(
    optimizer: torch.optim.Optimizer, d_model: int, warmup: int, factor: float = 1.0
) -> LambdaLR:
    """Let an optimiser follow :func:`noam_rate`.

    ``LambdaLR`` counts from 0 and multiplies the optimiser's own rate: the n-th step
    of the optimiser gets ``noam_rate(n)``, and its own rate must be 1.

    Args:
        optimizer: made with ``lr=1.0``.
        d_model: width of the model.
        warmup: number of steps upwards.
        factor: multiplies the rate.

    Returns:
        The schedule, to be stepped after each step of the optimiser.

    Raises:
        ValueError: if the optimiser's rate is not 1, or a number is out of range.
    """
    rates = sorted({float(group["lr"]) for group in optimizer.param_groups})
    if rates != [1.0]:
        raise ValueError(
            "optimizer must be made with lr=1.0, which the schedule multiplies by the "
            f"rate of the step; got {rates}"
        )
    noam_rate(1, d_model, warmup, factor)  # says now what is wrong with its arguments
    for group in optimizer.param_groups:
        group["initial_lr"] = 1.0  # an earlier schedule may have left another one
    return LambdaLR(
        optimizer, lambda done: noam_rate(done + 1, d_model, warmup, factor)
    )


class LabelSmoothing(nn.Module):
    """Cross-entropy against targets that are a little unsure, per real token.

    Szegedy et al. (2016), section 7; Vaswani et al. (2017), section 5.4. The right
    symbol keeps ``1 − ε``; the loss is the Kullback–Leibler divergence from the
    smoothed target, which is 0 where the prediction equals it. (It differs from the
    cross-entropy by the target's own entropy, a constant.)

    Args:
        size: number v of symbols.
        pad: id of padding; positions with this target count for nothing.
        smoothing: ε, in [0, 1).
        spread: who shares ε. "others": all symbols but the right one and the padding,
            ``ε / (v − 2)`` each. "all": every symbol, ``ε / v`` each, the right one
            and the padding too, as ``nn.CrossEntropyLoss(label_smoothing=ε)`` does.

    Raises:
        ValueError: if a number is out of range or ``spread`` is unknown.
    """

    def __init__(
        self, size: int, pad: int = 0, smoothing: float = 0.1, spread: str = "others"
    ):
        super().__init__()
        _require_count("size", size, least=3)
        if not _is_whole(pad) or not 0 <= pad < size:
            raise ValueError(f"pad must be an id from 0 to {size - 1}, got {pad!r}")
        if not _is_number(smoothing) or not 0 <= smoothing < 1:
            raise ValueError(f"smoothing must be in [0, 1), got {smoothing!r}")
        if spread not in ("others", "all"):
            raise ValueError(f'spread must be "others" or "all", got {spread!r}')
        self.size, self.pad = size, pad
        self.smoothing, self.spread = smoothing, spread

    def distribution(self, target: Int[Tensor, "b t"]) -> Float[Tensor, "b t v"]:
        """Return the smoothed target of each position; zeros where it is padding.

        Args:
            target: ids, ``(b, t)``.

        Returns:
            ``(b, t, v)``; the rows of real targets sum to 1.

        Raises:
            TypeError: if ``target`` does not hold whole numbers.
            ValueError: if an id is outside the vocabulary.
        """
        self._require_ids(target)
        share = self.smoothing / (self.size if self.spread == "all" else self.size - 2)
        own = 1 - self.smoothing + (share if self.spread == "all" else 0.0)
        rows = torch.full((*target.shape, self.size), share, device=target.device)
        if self.spread == "others":
            rows[..., self.pad] = 0.0
        rows.scatter_(-1, target[..., None].long(), own)
        return rows.masked_fill((target == self.pad)[..., None], 0.0)

    def forward(
        self, logits: Float[Tensor, "b t v"], target: Int[Tensor, "b t"]
    ) -> Float[Tensor, ""]:
        """Return the mean divergence over the real targets, in nats a token.

        Args:
            logits: ``(b, t, v)``.
            target: ids, ``(b, t)``.

        Returns:
            One number; 0 if there is no real target.

        Raises:
            TypeError: if ``target`` does not hold whole numbers.
            ValueError: if shapes do not fit, or an id is outside the vocabulary.
        """
        if logits.shape != (*target.shape, self.size):
            raise ValueError(
                f"logits must have the shape {(*target.shape, self.size)}, "
                f"got {tuple(logits.shape)}"
            )
        wide = torch.promote_types(logits.dtype, torch.float32)
        goal = self.distribution(target).to(wide)
        logs = logits.to(wide).log_softmax(dim=-1)
        # a symbol that nobody asks for adds nothing, be it impossible: 0 · log 0 = 0
        cross = torch.where(goal > 0, goal * logs, 0.0)
        divergence = torch.xlogy(goal, goal) - cross
        return divergence.sum() / (target != self.pad).sum().clamp(min=1)

    def _require_ids(self, target: Tensor) -> None:
        _require_whole("target", target)
        if target.numel() and not 0 <= target.min() <= target.max() < self.size:
            raise ValueError(
                f"target must hold ids from 0 to {self.size - 1}, "
                f"got {target.min().item()} to {target.max().item()}"
            )


def evaluate(
    model: nn.Module,
    loss: Loss,
    batches: Iterable[Any],
    *,
    weight: Callable[[Any], float] | None = None,
) -> float:
    """Return the mean loss over batches: in evaluation mode, without gradients.

    Args:
        model: all its parts are left in the mode that they were in.
        loss: ``loss(model, batch)``, as for :func:`fit`.
        batches: at least one; moved to the model's device.
        weight: what a batch counts, for example its number of real tokens; all batches
            alike if not given. A batch that weighs 0 is not run.

    Returns:
        The mean; NaN if a loss is.

    Raises:
        TypeError: if ``loss`` returns no tensor.
        ValueError: if it returns more than one number, a weight is negative or not
            finite, or nothing weighs more than 0.
    """
    device, total, counted = _device(model), 0.0, 0.0
    with evaluating(model):
        for batch in batches:
            size = _weight_of(batch, weight)
            if size:
                found = _one_number(loss(model, _moved(batch, device)))
                total += size * found.item()
                counted += size
    if not counted:
        raise ValueError(
            f"batches must hold something that counts, got a weight of {counted} in all"
        )
    return total / counted


def fit(
    model: nn.Module,
    loss: Loss,
    batches: Iterable[Any],
    optimizer: torch.optim.Optimizer,
    *,
    schedule: LRScheduler | None = None,
    clip: float | None = None,
    after: Callable[[int], None] | None = None,
    accumulate: int = 1,
    weight: Callable[[Any], float] | None = None,
    precision: torch.dtype | None = None,
    checkpoint: str | os.PathLike | None = None,
    save_every: int | None = None,
) -> list[Record]:
    """Train: one optimiser step for each group of batches.

    Args:
        model: what to train. Batches go to its device. If it is in evaluation mode, all
            of it is set to training; if not, its parts keep their modes, so that what
            was frozen stays so, whatever ``after`` does.
        loss: ``loss(model, batch)`` gives the scalar to lower, a mean over the batch.
        batches: tensors, or tuples, lists and dictionaries of them. For going on from a
            checkpoint they must come again in the same order: if it is drawn, then from
            a generator of its own, seeded anew by whoever resumes, since batches that
            are skipped draw no other random numbers.
        optimizer: steps the parameters that it holds; the gradient is that of these.
        schedule: stepped after each step that the optimiser took.
        clip: largest norm of the whole gradient; no clipping if not given.
        after: called with the number of steps so far, after each of them.
        accumulate: batches a step. The last group may hold fewer.
        weight: what a batch counts in its group, for example its number of real
            tokens: the step is then that of one big batch, whatever the sizes of the
            small ones. All alike if not given; a batch that weighs 0 is not run.
        precision: ``torch.bfloat16`` or ``torch.float16`` for mixed precision; with
            the latter the loss is scaled up so that small gradients survive. A step
            whose gradient then overflows is recorded and left out: neither parameters
            nor schedule move.
        checkpoint: file to save to. If it is there already, training goes on from it:
            as many batches as it has used are skipped, and losses are those of a run
            that was never interrupted.
        save_every: steps between two savings; at the end only if not given.

    Returns:
        A record a step: ``step`` (from 1), ``loss``, ``learning_rate`` (of the first
        group of parameters), ``gradient_norm`` (before clipping), and, so far,
        ``batches`` used and ``cpu_seconds`` spent in the steps themselves, without
        ``after``.

    Raises:
        FloatingPointError: if loss or gradient is no longer finite, with the step; for
            overflows in ``torch.float16``, after 20 steps left out in a row.
        FileNotFoundError: if the folder of ``checkpoint`` does not exist.
        PermissionError: if that folder cannot be written to.
        TypeError: if ``loss`` returns no tensor.
        ValueError: if ``batches`` is empty or ends before the checkpoint's step, the
            checkpoint is of another run, or an argument is out of range.
    """
    _require_parts_fit(model, optimizer, schedule, precision)
    _require_numbers(clip, accumulate, save_every, checkpoint)
    device = _device(model)
    mixed = precision is not None
    scaler = torch.amp.GradScaler(device.type, enabled=precision == torch.float16)
    state = {"model": model, "optimizer": optimizer}
    state |= {"schedule": schedule, "scaler": scaler}
    history: list[Record] = []
    known, walk = length_hint(batches), chain(batches)
    if checkpoint is not None and Path(checkpoint).exists():
        history = load_checkpoint(checkpoint, **state, skip=walk)
        print(f"going on from step {len(history)} of {checkpoint}")
    last = history[-1] if history else {"batches": 0, "cpu_seconds": 0.0}
    used, spent = last["batches"], last["cpu_seconds"]
    if not model.training:
        model.train()
    bar = _bar(_groups(walk, accumulate), len(history), (known - used) / accumulate)
    with bar:  # closes it after an exception, too
        for step, group in enumerate(bar, start=len(history) + 1):
            began = time.process_time()
            optimizer.zero_grad()
            sizes = [_weight_of(batch, weight) for batch in group]
            if not sum(sizes):
                raise ValueError(f"the batches of step {step} weigh 0.0 in all")
            mean = 0.0
            for batch, size in zip(group, sizes, strict=True):
                if not size:
                    continue
                with torch.autocast(device.type, precision, enabled=mixed):
                    part = _one_number(loss(model, _moved(batch, device)), learned=True)
                    part = part * (size / sum(sizes))
                mean += part.item()
                scaler.scale(part).backward()
            if not math.isfinite(mean):
                raise FloatingPointError(
                    f"the loss is {mean} at step {step}; a learning rate that is too "
                    "large, a log of 0 or a softmax over nothing are the likely causes"
                )
            scaler.unscale_(optimizer)
            norm = _clip_gradient(optimizer, clip)
            if not math.isfinite(norm):
                _require_overflow(optimizer, scaler, history, norm, mean)
            rate = float(optimizer.param_groups[0]["lr"])
            scale = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            # a step that overflowed in half precision is left out, and lowers the scale
            if schedule is not None and scaler.get_scale() >= scale:
                schedule.step()
            used += len(group)
            spent += time.process_time() - began
            record = {"step": step, "loss": mean, "learning_rate": rate}
            record |= {"gradient_norm": norm, "batches": used, "cpu_seconds": spent}
            history.append(record)
            if after is not None:
                with _modes_kept(model):
                    after(step)
            # last of all: ``after`` may draw random numbers, which belong to this step
            if save_every is not None and step % save_every == 0:
                save_checkpoint(checkpoint, **state, history=history)
    if not history:
        raise ValueError("batches must hold at least one batch, got none")
    if checkpoint is not None:
        save_checkpoint(checkpoint, **state, history=history)
    return history


def save_checkpoint(
    path: str | os.PathLike,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    schedule: LRScheduler | None = None,
    scaler: torch.amp.GradScaler | None = None,
    history: list[Record] | None = None,
) -> None:
    """Save all that training needs to go on, random numbers included, at once or not.

    The file is written beside its place and moved there when it is complete: whoever
    is killed in the middle leaves the previous checkpoint as it was. (A link that
    stands there is replaced by the file.)

    Args:
        path: where to; its folder must exist.
        model: its parameters and buffers; of its ``config``, if that is a dataclass,
            the fields that are numbers, texts, booleans or None.
        optimizer: its state.
        schedule: its state.
        scaler: its state, if it is enabled.
        history: the records so far, as :func:`fit` returns them.

    Raises:
        FileNotFoundError: if the folder does not exist.
        PermissionError: if the folder cannot be written to.
        ValueError: if a state holds something that :func:`load_checkpoint` would not
            read again.
    """
    path = Path(path)
    _require_place("path", path)
    parts = _present(model, optimizer, schedule, scaler)
    content = {name: _plain(part.state_dict()) for name, part in parts.items()}
    content |= {"kinds": _kinds(parts), "config": _config(model)}
    content |= {"history": _plain(history or []), "random": _random_state()}
    beside = path.with_name(path.name + ".part")
    try:
        with beside.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())  # on the disk before it takes the old one's place
        _require_readable(beside)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def load_checkpoint(
    path: str | os.PathLike,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    schedule: LRScheduler | None = None,
    scaler: torch.amp.GradScaler | None = None,
    skip: Iterator[Any] | None = None,
) -> list[Record]:
    """Put a checkpoint back into a model, and into what trains it.

    Nothing but tensors and plain numbers is read (``weights_only=True``): a file from
    somebody else cannot run code.

    A checkpoint that is refused changes nothing: what was loaded of it is put back.

    Args:
        path: what :func:`save_checkpoint` wrote.
        model: gets the parameters, on the device where it is.
        optimizer: gets its state, if given; then random numbers go on too.
        schedule: gets its state, if given; it must be, if there is one to go on with.
        scaler: gets its state, if given and enabled.
        skip: batches; as many as were used are left out. They are drawn before random
            numbers are set back.

    Returns:
        The records so far.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no checkpoint, misses a part that is asked for, is of
            another model, optimiser or schedule, or ``skip`` ends too early.
    """
    path = Path(path)
    parts = _present(model, optimizer, schedule, scaler)
    content = _read_checkpoint(path, parts)
    history = content["history"]
    before = {name: copy.deepcopy(part.state_dict()) for name, part in parts.items()}
    random_before = _random_state()
    try:
        if skip is not None:
            _skip_used(path, skip, history)
        for name, part in parts.items():
            problem = f"{path} is of another {name}"
            _put_back(problem, part.load_state_dict, content[name])
        if optimizer is not None:
            problem = f"{path} holds random states that cannot be set"
            _put_back(problem, _set_random_state, content["random"])
    except BaseException:
        for name, part in parts.items():
            part.load_state_dict(before[name])
        _set_random_state(random_before)
        raise
    return history


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluate: without gradients, and in evaluation mode for the time of a block.

    Afterwards every part has the mode that it had before, so that what was frozen
    on purpose stays so.

    Args:
        model: all its parts are set to evaluation.
    """
    with _modes_kept(model), torch.no_grad():
        model.eval()
        yield


@contextmanager
def _modes_kept(model: nn.Module) -> Iterator[None]:
    modes = {module: module.training for module in model.modules()}
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def _is_whole(value: object) -> bool:
    # numpy's whole numbers count as well; bool is one of Python's, and no number
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _require_count(name: str, value: object, least: int = 1) -> None:
    if not _is_whole(value) or value < least:
        raise ValueError(
            f"{name} must be a whole number from {least} on, got {value!r}"
        )


def _require_parts_fit(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    schedule: LRScheduler | None,
    precision: torch.dtype | None,
) -> None:
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("optimizer must step without a closure, got LBFGS")
    if isinstance(schedule, ReduceLROnPlateau):
        raise ValueError(
            "schedule must step without a measure, got ReduceLROnPlateau; "
            "step that one in `after`"
        )
    if getattr(schedule, "optimizer", optimizer) is not optimizer:
        raise ValueError(
            "schedule must move the rate of optimizer, got one of another optimizer"
        )
    if precision not in (None, torch.bfloat16, torch.float16):
        raise ValueError(
            "precision must be torch.bfloat16, torch.float16 or None, "
            f"got {precision!r}"
        )
    halves = any(p.dtype == torch.float16 for p in model.parameters())
    if precision == torch.float16 and halves:
        raise ValueError(
            "precision=torch.float16 needs parameters in single precision, which it "
            "rounds by itself; got some in torch.float16"
        )


def _require_numbers(
    clip: object, accumulate: object, save_every: object, checkpoint: object
) -> None:
    if clip is not None and not (_is_number(clip) and clip > 0):  # NaN included
        raise ValueError(f"clip must be positive, got {clip!r}")
    _require_count("accumulate", accumulate)
    if save_every is not None:
        _require_count("save_every", save_every)
        if checkpoint is None:
            raise ValueError(f"save_every={save_every} needs a checkpoint to save to")
    if checkpoint is not None:
        _require_place("checkpoint", Path(checkpoint))


def _require_place(name: str, path: Path) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{name} must lie in a folder that exists, got {path}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{name} must lie in a folder that can be written to, got {path}"
        )


def _weight_of(batch: Any, weight: Callable[[Any], float] | None) -> float:
    size = 1.0 if weight is None else float(weight(batch))
    if not 0 <= size < math.inf:  # NaN included
        raise ValueError(f"weight must give a finite number from 0 on, got {size}")
    return size


def _one_number(found: object, learned: bool = False) -> Tensor:
    if not isinstance(found, Tensor):
        raise TypeError(f"loss must return a tensor, got {type(found).__name__}")
    if found.numel() != 1:
        raise ValueError(
            f"loss must return one number, got the shape {tuple(found.shape)}"
        )
    if learned and not found.requires_grad:
        raise ValueError(
            "loss must depend on parameters that are learned, got a number without "
            "a gradient"
        )
    return found


def _clip_gradient(optimizer: torch.optim.Optimizer, clip: float | None) -> float:
    """Return the norm of the gradient, and shorten it to ``clip`` if that is given."""
    held = [p for group in optimizer.param_groups for p in group["params"]]
    held = [p for p in held if p.grad is not None]
    if not held:
        raise ValueError(
            "optimizer must hold parameters that the loss depends on; none of its own "
            "got a gradient"
        )
    if clip is None:  # by hand: nothing is multiplied, be the norm infinite
        norms = [torch.linalg.vector_norm(g) for g in _gradients(optimizer)]
        norms = [norm.to(norms[0].device) for norm in norms]
        return torch.linalg.vector_norm(torch.stack(norms)).item()
    if any(p.grad.is_sparse for p in held):
        raise ValueError(f"clip must be None for sparse gradients, got {clip!r}")
    return nn.utils.clip_grad_norm_(held, clip).item()


def _gradients(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    held = [p for group in optimizer.param_groups for p in group["params"]]
    found = [p.grad for p in held if p.grad is not None]
    return [g.coalesce().values() if g.is_sparse else g for g in found]


def _require_overflow(
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    history: list[Record],
    norm: float,
    mean: float,
) -> None:
    """Raise unless it is the gradient of a scaled loss that is no longer finite."""
    step = len(history) + 1
    finite = all(g.isfinite().all() for g in _gradients(optimizer))
    if finite or not scaler.is_enabled():
        raise FloatingPointError(
            f"the gradient's norm is {norm} at step {step}, though the loss is "
            f"{mean:.3g}; a root or a division at 0 is the likely cause"
        )
    recent = [r["gradient_norm"] for r in history[1 - MOST_LEFT_OUT :]]
    if len(recent) == MOST_LEFT_OUT - 1 and not any(map(math.isfinite, recent)):
        raise FloatingPointError(
            f"the gradient's norm is {norm} at step {step}, and {MOST_LEFT_OUT} steps "
            "in a row were left out: no smaller scale of the loss will help"
        )


def _bar(groups: Iterator[list[Any]], done: int, left: float) -> tqdm:
    total = done + math.ceil(left) if left > 0 else None  # 0: of unknown length
    shown = {"desc": "training", "unit": " steps", "mininterval": 1.0}
    return tqdm(groups, initial=done, total=total, **shown)


def _present(
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None,
    schedule: LRScheduler | None,
    scaler: torch.amp.GradScaler | None,
) -> dict[str, Any]:
    """Return what a checkpoint has to hold: parts that are there and have a state."""
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
    if scaler is not None and scaler.is_enabled():
        parts["scaler"] = scaler
    return {name: part for name, part in parts.items() if part is not None}


def _kinds(parts: dict[str, Any]) -> dict[str, str]:
    named = ("optimizer", "schedule")  # a model may be wrapped in another class
    return {name: type(parts[name]).__name__ for name in named if name in parts}


def _config(model: nn.Module) -> dict[str, Any]:
    config = getattr(model, "config", None)
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        return {}
    values = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
    values = {name: _plain(value) for name, value in values.items()}
    plain = str | int | float | None
    return {name: value for name, value in values.items() if isinstance(value, plain)}


def _plain(state: Any) -> Any:
    """Return a state with Python's numbers for numpy's, which would not be read."""
    if isinstance(state, numpy.generic):
        return state.item()
    if isinstance(state, dict):
        plain = copy.copy(state)  # with the attributes that a model's state has
        plain.update((name, _plain(part)) for name, part in state.items())
        return plain
    if type(state) in (list, tuple):
        return type(state)(map(_plain, state))
    return state


def _require_readable(path: Path) -> None:
    try:  # mapped: numbers are not read, and it costs little
        torch.load(str(path), map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:
        raise ValueError(
            "states must hold tensors and plain numbers, or the checkpoint could not "
            f"be loaded again: {error}"
        ) from error


def _read_checkpoint(path: Path, parts: dict[str, Any]) -> dict[str, Any]:
    """Read a checkpoint, and check what can be checked before anything is loaded."""
    if not path.exists():
        raise FileNotFoundError(
            f"path must be a checkpoint, and there is none at {path}"
        )
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a spoiled file may raise anything
        raise ValueError(
            f"{path} is no checkpoint, or a damaged one: {error}"
        ) from error
    known = content if isinstance(content, dict) else {}
    wanted = dict.fromkeys([*parts, "config", "kinds", "random"], dict)
    wanted["history"] = list
    missing = sorted(n for n, k in wanted.items() if not isinstance(known.get(n), k))
    if missing:
        raise ValueError(f"{path} holds no {', no '.join(missing)}")
    if "optimizer" in parts and "schedule" in content and "schedule" not in parts:
        raise ValueError(
            f"{path} holds a schedule, and none is given that could go on with it"
        )
    for name, kind in _kinds(parts).items():
        if content["kinds"].get(name) != kind:
            raise ValueError(
                f"{path} is of another {name}: it holds the state of "
                f"{content['kinds'].get(name)}, and this one is {kind}"
            )
    one, other = content["config"], _config(parts["model"])
    differ = sorted(n for n in one | other if one.get(n) != other.get(n))
    if differ:
        pairs = [f"{n}={one.get(n)!r} and not {other.get(n)!r}" for n in differ]
        raise ValueError(
            f"{path} is of another model: it has the config {', '.join(pairs)}"
        )
    return content


def _skip_used(path: Path, batches: Iterator[Any], history: list[Any]) -> None:
    if not history:
        return
    last = history[-1] if isinstance(history[-1], dict) else {}
    if not _is_whole(last.get("batches")) or not _is_number(last.get("cpu_seconds")):
        raise ValueError(f"{path} has records without batches and cpu_seconds")
    used = last["batches"]
    if sum(1 for _ in islice(batches, used)) < used:
        raise ValueError(f"batches end before step {len(history)} of {path}")


def _put_back(problem: str, load: Callable[[Any], object], state: Any) -> None:
    try:
        load(state)
    except Exception as error:  # states from elsewhere may raise anything
        raise ValueError(f"{problem}: {type(error).__name__}: {error}") from error


def _groups(walk: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while group := list(islice(walk, size)):
        yield group


def _device(model: nn.Module) -> torch.device:
    first = next(model.parameters(), None)
    return torch.device("cpu") if first is None else first.device


def _moved(batch: Any, device: torch.device) -> Any:
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {name: _moved(part, device) for name, part in batch.items()}
    if isinstance(batch, tuple | list):
        parts = [_moved(part, device) for part in batch]
        named = hasattr(batch, "_fields")  # a NamedTuple takes its parts one by one
        return type(batch)(*parts) if named else type(batch)(parts)
    return batch


def _random_state() -> dict[str, Any]:
    kind, keys, *rest = numpy.random.get_state()
    version, numbers, gauss = random.getstate()
    state = {
        "torch": torch.get_rng_state(),
        "numpy": [kind, torch.from_numpy(keys.astype("int64")), *rest],
        "python": [version, list(numbers), gauss],
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def _set_random_state(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    kind, keys, *rest = state["numpy"]
    numpy.random.set_state((kind, keys.numpy().astype("uint32"), *rest))
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    # there may have been more GPUs, or fewer, where it was saved
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    for device, numbers in zip(range(count), state.get("cuda", ()), strict=False):
        torch.cuda.set_rng_state(numbers, device)
