"""Training: one loop for every chapter, and the recipe of the Transformer.

Letters: b batch, t target length, v vocabulary (``book/notation.md``).
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from operator import length_hint
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR, LRScheduler
from tqdm import tqdm

from annotated import require
from annotated.checkpoints import Record, resume_checkpoint, save_checkpoint
from annotated.devices import device_of, to_device

Loss = Callable[[nn.Module, Any], Tensor]
Weight = Callable[[Any], float]


def noam_rate(step: int, d_model: int, warmup: int, factor: float = 1.0) -> float:
    """Return the learning rate of a step: up in a straight line, then down as 1/√step.

    Vaswani et al. (2017), equation 3. Both regimes meet at ``step = warmup``, where
    the rate is ``factor / √(d_model · warmup)``.

    Args:
        step: number of the step, from 1.
        d_model: width of the model.
        warmup: number of steps on the way up.
        factor: multiplies the rate.
    """
    require.count(step=step, d_model=d_model, warmup=warmup)
    require.positive(factor=factor)
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def noam_schedule(
    optimizer: torch.optim.Optimizer, d_model: int, warmup: int, factor: float = 1.0
) -> LambdaLR:
    """Return a schedule that gives step n of an optimiser the rate ``noam_rate(n)``.

    ``LambdaLR`` counts from 0 and multiplies the optimiser's own rate, which must be 1.

    Arguments as :func:`noam_rate`.

    Args:
        optimizer: made with ``lr=1.0``.

    Raises:
        ValueError: if the optimiser's rate is not 1.
    """
    rates = {group["lr"] for group in optimizer.param_groups}
    if rates != {1.0}:
        raise ValueError(f"optimizer must be made with lr=1.0, got {sorted(rates)}")
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
    """

    def __init__(
        self, size: int, pad: int = 0, smoothing: float = 0.1, spread: str = "others"
    ):
        super().__init__()
        require.count(least=3, size=size)
        require.count(least=0, most=size - 1, pad=pad)
        require.probability(smoothing=smoothing)
        require.choice(("others", "all"), spread=spread)
        self.size, self.pad = size, pad
        self.smoothing, self.spread = smoothing, spread
        self.share = smoothing / (size if spread == "all" else size - 2)
        self.own = 1 - smoothing + (self.share if spread == "all" else 0.0)

    @require.shapes
    def distribution(self, target: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch v"]:
        """Return the smoothed target of each position; zeros where it is padding.

        Args:
            target: ids, ``(…)``.
        """
        require.ids(self.size, target=target)
        rows = torch.full((*target.shape, self.size), self.share, device=target.device)
        if self.spread == "others":
            rows[..., self.pad] = 0.0
        rows.scatter_(-1, target[..., None].long(), self.own)
        return rows.masked_fill((target == self.pad)[..., None], 0.0)

    @require.shapes(v="size")
    def forward(
        self, logits: Float[Tensor, "*batch v"], target: Int[Tensor, "*batch"]
    ) -> Float[Tensor, ""]:
        """Return the mean divergence over the real targets, in nats per token.

        As all others have the same share, their log-probabilities are added up first,
        and :meth:`distribution` isn't needed.

        Args:
            logits: scores of all symbols at each position, ``(…, v)``.
            target: ids, ``(…)``; if all of them are padding, the divergence is 0.
        """
        require.ids(self.size, target=target)
        wide = torch.promote_types(logits.dtype, torch.float32)
        logs = logits.to(wide).log_softmax(dim=-1)
        right = target[..., None].long()
        divergence = self.own * (math.log(self.own) - logs.gather(-1, right)[..., 0])
        if self.share:
            apart = right  # from the others
            if self.spread == "others":
                apart = F.pad(right, (0, 1), value=self.pad)
            others = logs.scatter(-1, apart, 0.0).sum(dim=-1)
            wanted = (self.size - apart.shape[-1]) * math.log(self.share)
            divergence = divergence + self.share * (wanted - others)
        real = target != self.pad
        return torch.where(real, divergence, 0.0).sum() / real.sum().clamp(min=1)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Return a block that evaluates ``model``: in evaluation mode, without gradients.

    Afterwards every part has its own mode again: some may be frozen on purpose.
    """
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def evaluate(
    model: nn.Module,
    loss: Loss,
    batches: Iterable[Any],
    *,
    weight: Weight | None = None,
) -> float:
    """Return the mean loss over batches: in evaluation mode, without gradients.

    Args:
        model: all its parts keep their modes.
        loss: ``loss(model, batch)``, as for :func:`fit`.
        batches: at least one; moved to the model's device.
        weight: what a batch counts, as for :func:`fit`.

    Raises:
        ValueError: if there is no batch, or none that counts.
    """
    weight = weight or getattr(loss, "batch_weight", lambda batch: 1.0)
    device, total, counted = device_of(model), 0.0, 0.0
    with evaluating(model):
        for batch in batches:
            if size := weight(batch):
                total += size * loss(model, to_device(batch, device)).item()
                counted += size
    require.that(counted, "batches must hold at least one of weight > 0, got none")
    return total / counted


def fit(
    model: nn.Module,
    loss: Loss,
    batches: Iterable[Any],
    optimizer: torch.optim.Optimizer,
    *,
    schedule: LRScheduler | None = None,
    clip: float = math.inf,
    on_step: Callable[[int], None] | None = None,
    accumulate: int = 1,
    weight: Weight | None = None,
    precision: torch.dtype | None = None,
    checkpoint: str | os.PathLike | None = None,
    save_every: int | None = None,
) -> list[Record]:
    """Train: one optimiser step for each group of batches.

    Args:
        model: what to train; batches are moved to its device. In evaluation mode it is
            set to training; otherwise its parts keep their modes (some may be frozen).
        loss: ``loss(model, batch)`` gives the scalar to lower, a mean over the batch.
            ``loss.batch_weight(batch)``, if there is one, says over how many tokens. If
            it has a ``state_dict``, checkpoints hold that too.
        batches: tensors, or tuples, lists and dictionaries of them. To resume, pass the
            same ones again: if they're random, from a generator of their own.
        optimizer: updates the parameters that it holds.
        schedule: stepped after each step of the optimiser.
        clip: largest norm of the whole gradient; no clipping by default.
        on_step: called with the number of each step after it, in evaluation mode.
        accumulate: batches per step; the last group may hold fewer.
        weight: what a batch counts in its group, for example its number of real
            tokens: the step is then that of one large batch. A batch that counts 0,
            such as one of nothing but padding, is left out. By default it's the loss's
            own ``batch_weight``, or all count 1.
        precision: ``torch.bfloat16`` or ``torch.float16`` for mixed precision. The
            latter scales the loss up, and leaves out a step whose gradient overflows.
        checkpoint: file to save to at the end. If it exists, training resumes from it,
            and has the losses of a run that was never interrupted. If it's damaged,
            a line says so, and training resumes from the one saved before.
        save_every: also save after every so many steps; at the end only by default.

    Returns:
        A record of each step: ``step`` (from 1), ``loss``, ``learning_rate`` (of the
        first group of parameters), ``gradient_norm`` (before clipping), and the
        ``batches`` used and ``cpu_seconds`` spent so far, without those in ``on_step``.

    Raises:
        FloatingPointError: if the loss or the gradient isn't finite; it names the step.
        ValueError: if there is no batch, none that counts in a step, the optimiser
            holds no parameter that the loss uses, or the checkpoint is of another run.
    """
    weight = weight or getattr(loss, "batch_weight", lambda batch: 1.0)
    require.count(accumulate=accumulate)
    require.choice((None, torch.bfloat16, torch.float16), precision=precision)
    device, half = device_of(model), precision == torch.float16
    scaler = torch.amp.GradScaler(device.type, enabled=half)
    state = {"model": model, "optimizer": optimizer, "schedule": schedule}
    state["scaler"] = scaler if half else None
    state["loss"] = loss if hasattr(loss, "state_dict") else None
    held = [p for group in optimizer.param_groups for p in group["params"]]
    history, remaining = [], iter(batches)
    if checkpoint is not None:
        Path(checkpoint).parent.mkdir(parents=True, exist_ok=True)
        history = resume_checkpoint(checkpoint, **state, skip=remaining)
    last = history[-1] if history else {"batches": 0, "cpu_seconds": 0.0}
    used, seconds = last["batches"], last["cpu_seconds"]
    if not model.training:
        model.train()
    groups = iter(lambda: list(islice(remaining, accumulate)), [])
    total = math.ceil(length_hint(batches) / accumulate) or None
    with tqdm(groups, "training", total, initial=len(history), unit=" steps") as bar:
        for step, group in enumerate(bar, start=len(history) + 1):
            began = time.process_time()
            optimizer.zero_grad()
            weighed = [(b, size) for b in group if (size := weight(b))]
            require.that(weighed, f"weight must not be 0 throughout step {step}")
            whole, mean = sum(size for _, size in weighed), 0.0
            for batch, size in weighed:
                with torch.autocast(device.type, precision, enabled=bool(precision)):
                    part = loss(model, to_device(batch, device)) * (size / whole)
                scaler.scale(part).backward()
                mean += part.item()
            if all(parameter.grad is None for parameter in held):
                raise ValueError("optimizer must hold parameters that the loss uses")
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(held, clip).item()
            # scaled up, a gradient may overflow: that halves the scale, down to 1
            fits = math.isfinite(norm) or scaler.get_scale() > 1
            if not (math.isfinite(mean) and fits):
                raise FloatingPointError(
                    f"loss {mean:.3g}, gradient norm {norm:.3g} at step {step}: likely "
                    "a learning rate that is too large, a log of 0 or a division by 0"
                )
            rate = float(optimizer.param_groups[0]["lr"])
            scaler.step(optimizer)  # leaves out a step that overflowed
            scaler.update()
            if schedule is not None and math.isfinite(norm):
                schedule.step()
            used += len(group)
            seconds += time.process_time() - began
            record = {"step": step, "loss": mean, "learning_rate": rate}
            record |= {"gradient_norm": norm, "batches": used, "cpu_seconds": seconds}
            history.append(record)
            if on_step is not None:
                with evaluating(model):
                    on_step(step)
            # last of all: what `on_step` draws at random belongs to this step
            if save_every is not None and step % save_every == 0:
                save_checkpoint(checkpoint, **state, history=history)
    require.that(history, "batches must hold at least one batch, got none")
    if checkpoint is not None:
        save_checkpoint(checkpoint, **state, history=history)
    return history
