"""Chapters 07 and 08: a Transformer learns to copy, and how it can fail."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR

from annotated.batches import sequence_task
from annotated.checkpoints import Record
from annotated.decoding import greedy_decode
from annotated.devices import device_of, to_device
from annotated.masks import padding_mask
from annotated.positions import PositionalEncoding
from annotated.training import fit
from annotated.transformer import Transformer

COPY_START, COPY_END, VOCAB = (
    1,
    11,
    11,
)  # the end symbol, where there is one, is one more


def next_symbol_loss(
    model: Transformer, batch: tuple[Tensor, Tensor]
) -> Float[Tensor, ""]:
    """Return the cross-entropy of every next symbol that is not padding.

    ``model`` reads a ``batch`` of sources ``(b, s)`` and targets ``(b, t)``.
    """
    source, target = batch
    logits = model(source, target[:, :-1])
    labels = target[:, 1:].flatten()
    return F.cross_entropy(logits.flatten(0, 1), labels, ignore_index=0)


def copy_batches(
    seed: int, steps: int, size: int, *, end: bool = False, **task: Any
) -> Iterator[tuple[Tensor, Tensor]]:
    """Draw batches of the copy task.

    Args:
        end: whether targets say where they end.
        task: what :func:`annotated.batches.sequence_task` takes, such as ``length``.

    Yields:
        Sources ``(b, s)`` and targets ``(b, t)``.
    """
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        source, target = sequence_task("copy", size, generator, **task)
        yield source, with_end(target) if end else target


def with_end(target: Int[Tensor, "b t"]) -> Int[Tensor, "b _"]:
    """Return a ``target`` with the end symbol after its last real one."""
    target = F.pad(target, (0, 1))
    last = (target != 0).sum(dim=1, keepdim=True)
    return target.scatter(1, last, COPY_END)


# chapter 08: one pre-norm layer, which copies
COPY = {
    "d_model": 64,
    "heads": 4,
    "layers": 1,
    "d_ff": 256,
    "dropout": 0.0,
    "norm": "pre",
    "max_len": 32,
}


# the rate rises for 50 steps, stays, and falls to 0 in the last 40 % of the steps
COPY_TRAINING = {"rate": 5e-3, "warmup": 50, "batch": 128, "steps": 250, "fall": 0.4}


def copy_rate(
    done: int,
    steps: int,
    fall: float = COPY_TRAINING["fall"],
    warmup: int = COPY_TRAINING["warmup"],
) -> float:
    """Return the share of the rate that the next step gets: up, level, down.

    Args:
        fall: share of the steps in which the rate falls; 0 for none.
        warmup: number of steps on the way up; 1 for none.
    """
    up = min(1.0, (done + 1) / warmup)
    return min(up, (steps - done) / (steps * fall)) if fall else up


def train_copy(
    model: Transformer,
    batches: Iterable[tuple[Tensor, Tensor]],
    steps: int = COPY_TRAINING["steps"],
    *,
    rate: float = COPY_TRAINING["rate"],
    fall: float = COPY_TRAINING["fall"],
    warmup: int = COPY_TRAINING["warmup"],
    on_step: Callable[[int], None] | None = None,
) -> list[Record]:
    """Return the history of a model that learned to copy.

    Args:
        batches: sources ``(b, s)`` and targets ``(b, t)``, as many as ``steps``.
        rate: the highest learning rate; ``fall`` and ``warmup`` are those of
            :func:`copy_rate`.
    """
    optimizer = torch.optim.Adam(model.parameters(), rate, betas=(0.9, 0.98))
    schedule = LambdaLR(optimizer, lambda done: copy_rate(done, steps, fall, warmup))
    return fit(
        model, next_symbol_loss, batches, optimizer, schedule=schedule, on_step=on_step
    )


def exact_copies(model: Transformer, seed: int, count: int = 1000) -> int:
    """Return how many of ``count`` fresh sequences a ``model`` copies without a fault.

    ``seed`` is that of the sequences.
    """
    source, target = sequence_task("copy", count, torch.Generator().manual_seed(seed))
    written = greedy_decode(
        model,
        to_device(source, device_of(model)),
        start=COPY_START,
        max_new_tokens=target.shape[1] - 1,
    )
    return int((written.cpu() == target[:, 1:]).all(dim=1).sum())


class SeesAhead(Transformer):
    """The mistake: a decoder without its causal mask (chapter 08)."""

    def decode(self, target, memory, memory_mask=None):
        """Return logits from the whole ``target``; ``memory_mask`` is ``memory``'s."""
        mask = padding_mask(target, self.config.pad)
        x = self.target_embedding(target) * self.config.d_model**0.5
        x = self.decoder(self.positions(x), memory, mask, memory_mask)
        return self.output(x)


class Shifted(PositionalEncoding):
    """Positions that begin somewhere else in every batch of training (chapter 08)."""

    offset = 0

    def forward(self, x, start=0):
        """Return ``x`` with positions from ``start`` on; in training from later on."""
        return super().forward(x, start + self.offset * self.training)
