"""Training: one loop for every chapter, and the recipe of the Transformer.

Letters: b batch, t target length, v vocabulary (``book/notation.md``).
"""

import math
import os
import pickle
import random
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR, LRScheduler
from tqdm import tqdm

# what torch.load raises for files that somebody or something has spoiled
DAMAGE = (RuntimeError, EOFError, OSError, LookupError, ValueError, OverflowError)
DAMAGE += (pickle.UnpicklingError,)
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
        ValueError: if a whole number is below 1, or ``factor`` is not positive.
    """
    for name, value in (("step", step), ("d_model", d_model), ("warmup", warmup)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number from 1 on, got {value!r}")
    if not factor > 0:
        raise ValueError(f"factor must be positive, got {factor!r}")
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


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
        if not isinstance(size, int) or size < 3:
            raise ValueError(f"size must be a whole number from 3 on, got {size!r}")
        if not isinstance(pad, int) or not 0 <= pad < size:
            raise ValueError(f"pad must be an id from 0 to {size - 1}, got {pad!r}")
        if not 0 <= smoothing < 1:
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
            ValueError: if an id is outside the vocabulary.
        """
        self._require_ids(target)
        share = self.smoothing / (self.size if self.spread == "all" else self.size - 2)
        own = 1 - self.smoothing + (share if self.spread == "all" else 0.0)
        rows = torch.full((*target.shape, self.size), share, device=target.device)
        if self.spread == "others":
            rows[..., self.pad] = 0.0
        rows.scatter_(-1, target[..., None], own)
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
            alike if not given.

    Raises:
        ValueError: if there is no batch, or the weights are not positive together.
    """
    modes, device = training_modes(model), _device(model)
    total = counted = 0.0
    model.eval()
    try:
        with torch.no_grad():
            for batch in batches:
                size = 1.0 if weight is None else float(weight(batch))
                total += size * loss(model, _moved(batch, device)).item()
                counted += size
    finally:
        restore_modes(modes)
    if not counted > 0:
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
        model: what to train; left in training mode. Batches go to its device.
        loss: ``loss(model, batch)`` gives the scalar to lower, a mean over the batch.
        batches: tensors, or tuples, lists and dictionaries of them.
        optimizer: steps the parameters.
        schedule: stepped after each optimiser step.
        clip: largest norm of the whole gradient; no clipping if not given.
        after: called with the number of steps taken, after each of them.
        accumulate: batches a step. The last group may hold fewer.
        weight: what a batch counts in its group, for example its number of real
            tokens: the step is then that of one big batch, whatever the sizes of the
            small ones. All alike if not given.
        precision: ``torch.bfloat16`` or ``torch.float16`` for mixed precision; with
            the latter the loss is scaled up so that small gradients survive.
        checkpoint: file to save to. If it is there already, training goes on from it:
            as many batches as it has used are skipped, and losses are those of a run
            that was never interrupted.
        save_every: steps between two savings; at the end only if not given.

    Returns:
        A record a step: ``step`` (from 1), ``loss``, ``learning_rate``,
        ``gradient_norm`` (before clipping) and ``cpu_seconds`` spent so far in the
        steps themselves, without ``after``.

    Raises:
        FloatingPointError: if loss or gradient is no longer finite, with the step.
        ValueError: if ``batches`` is empty or ends before the checkpoint's step, or an
            argument is out of range.
    """
    if clip is not None and not clip > 0:  # NaN included
        raise ValueError(f"clip must be positive, got {clip}")
    for name, value in (("accumulate", accumulate), ("save_every", save_every or 1)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number from 1 on, got {value!r}")
    if precision not in (None, torch.bfloat16, torch.float16):
        raise ValueError(
            "precision must be torch.bfloat16, torch.float16 or None, "
            f"got {precision!r}"
        )
    if save_every is not None and checkpoint is None:
        raise ValueError(f"save_every={save_every} needs a checkpoint to save to")
    model.train()
    device = _device(model)
    scaler = torch.amp.GradScaler(device.type, enabled=precision == torch.float16)
    state = {"model": model, "optimizer": optimizer, "schedule": schedule}
    history: list[Record] = []
    groups = _groups(batches, accumulate)
    if checkpoint is not None and Path(checkpoint).exists():
        history = load_checkpoint(checkpoint, **state, scaler=scaler, skip=groups)
        print(f"going on from step {len(history)} of {checkpoint}")
    spent = history[-1]["cpu_seconds"] if history else 0.0
    bar = tqdm(groups, desc="training", unit=" steps", mininterval=1.0)
    for step, group in enumerate(bar, start=len(history) + 1):
        began = time.process_time()
        optimizer.zero_grad()
        sizes = [1.0 if weight is None else float(weight(batch)) for batch in group]
        if not sum(sizes) > 0:
            raise ValueError(f"the batches of step {step} weigh {sum(sizes)} in all")
        mean = 0.0
        for batch, size in zip(group, sizes, strict=True):
            with torch.autocast(device.type, precision, enabled=precision is not None):
                part = loss(model, _moved(batch, device)) * (size / sum(sizes))
            mean += part.item()
            scaler.scale(part).backward()
        if not math.isfinite(mean):
            raise FloatingPointError(
                f"the loss is {mean} at step {step}; a learning rate that is too "
                "large, a log of 0 or a softmax over nothing are the likely causes"
            )
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), clip or math.inf).item()
        if not math.isfinite(norm) and not scaler.is_enabled():
            raise FloatingPointError(
                f"the gradient's norm is {norm} at step {step}, though the loss is "
                f"{mean:.3g}; a root or a division at 0 is the likely cause"
            )
        rate = optimizer.param_groups[0]["lr"]
        scaler.step(optimizer)  # leaves a step out that overflowed in half precision
        scaler.update()
        if schedule is not None:
            schedule.step()
        spent += time.process_time() - began
        record = {"step": step, "loss": mean, "learning_rate": float(rate)}
        history.append(record | {"gradient_norm": norm, "cpu_seconds": spent})
        if after is not None:
            after(step)
            model.train()
        # last of all: ``after`` may draw random numbers, which belong to this step
        if save_every is not None and step % save_every == 0:
            save_checkpoint(checkpoint, **state, scaler=scaler, history=history)
    if not history:
        raise ValueError("batches must hold at least one batch, got none")
    if checkpoint is not None:
        save_checkpoint(checkpoint, **state, scaler=scaler, history=history)
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
    is killed in the middle leaves the previous checkpoint as it was.

    Args:
        path: where to; its folder must exist.
        model: its parameters and buffers.
        optimizer: its state.
        schedule: its state.
        scaler: its state.
        history: the records so far, as :func:`fit` returns them.

    Raises:
        FileNotFoundError: if the folder does not exist.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"path must lie in a folder that exists, got {path}")
    parts = {"model": model, "optimizer": optimizer}
    parts |= {"schedule": schedule, "scaler": scaler}
    content = {
        name: part.state_dict() for name, part in parts.items() if part is not None
    }
    content |= {"history": history or [], "random": _random_state()}
    beside = path.with_name(path.name + ".part")
    with beside.open("wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())  # on the disk before it takes the old one's place
    beside.replace(path)


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

    Args:
        path: what :func:`save_checkpoint` wrote.
        model: gets the parameters, on the device where it is.
        optimizer: gets its state, if given; then random numbers go on too.
        schedule: gets its state, if given.
        scaler: gets its state, if given.
        skip: groups of batches; as many as there were steps are left out. They are
            drawn before random numbers are set back.

    Returns:
        The records so far.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no checkpoint, misses a part that is asked for, fits
            another model, or ``skip`` ends too early.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"path must be a checkpoint, and there is none at {path}"
        )
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except DAMAGE as error:
        raise ValueError(
            f"{path} is no checkpoint, or a damaged one: {error}"
        ) from error
    parts = {"optimizer": optimizer, "schedule": schedule, "scaler": scaler}
    parts = {name: part for name, part in parts.items() if part is not None}
    known = content if isinstance(content, dict) else {}
    asked = {"model": dict, "history": list, "random": dict} | dict.fromkeys(
        parts, dict
    )
    missing = sorted(
        n for n, kind in asked.items() if not isinstance(known.get(n), kind)
    )
    if missing:
        raise ValueError(f"{path} holds no {', no '.join(missing)}")
    if optimizer is not None:  # before anything is overwritten
        _require_same_kind(path, content["optimizer"], optimizer.state_dict())
    try:
        model.load_state_dict(content["model"])
    except RuntimeError as error:
        raise ValueError(f"{path} is of another model: {error}") from error
    for name, part in parts.items():
        part.load_state_dict(content[name])
    history = content["history"]
    if skip is not None and sum(1 for _ in islice(skip, len(history))) < len(history):
        raise ValueError(f"batches end before step {len(history)} of {path}")
    if optimizer is not None:
        _set_random_state(content["random"])
    return history


def training_modes(model: nn.Module) -> dict[nn.Module, bool]:
    """Return which parts of a model are in training mode, for :func:`restore_modes`.

    A part may have been frozen on purpose; ``model.train()`` would not know of it.

    Args:
        model: the model.

    Returns:
        Each module of the model, and whether it is in training mode.
    """
    return {module: module.training for module in model.modules()}


def restore_modes(modes: dict[nn.Module, bool]) -> None:
    """Put the parts of a model back into the modes that :func:`training_modes` found.

    Args:
        modes: what it returned.
    """
    for module, mode in modes.items():
        module.training = mode


def _require_same_kind(path: Path, saved: dict, own: dict) -> None:
    settings = [
        [sorted(set(group) - {"initial_lr"}) for group in state.get("param_groups", [])]
        for state in (saved, own)
    ]
    if settings[0] != settings[1]:
        raise ValueError(
            f"{path} is of another kind of optimizer: it has the settings "
            f"{settings[0]}, and this one {settings[1]}"
        )


def _groups(batches: Iterable[Any], size: int) -> Iterator[list[Any]]:
    walk = iter(batches)
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
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
