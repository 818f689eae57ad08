"""Chapter 07: the model of chapter 06 reads dates, one rule at a time.

As in ``annotated.recipes``: one seed trains on the page, ``python -m benchmarks``
trains the others.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import count, islice
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from annotated.batches import Batch, Vocabulary, batches, date_pairs
from annotated.checkpoints import Record
from annotated.devices import device_of, to_device
from annotated.recipes.common import paper_adam
from annotated.recipes.rates import CLIMB, RATE_SHAPES
from annotated.training import LabelSmoothing, evaluating, fit
from annotated.transformer import Transformer, TransformerConfig

SMALL = {"d_model": 64, "heads": 4, "layers": 2, "d_ff": 256, "max_len": 64}
DATE_RUN = {"pairs": 25_600, "batch": 64, "steps": 300}
# so few pairs that the model sees each of them 32 times
FEW = {
    "pairs": 1000,
    "batch": 64,
    "steps": 500,
    "rate": 3e-3,
    "clip": 1.0,
    "tested": 1000,
}


class Dates(NamedTuple):
    """Pairs of texts, and the symbols of both sides."""

    pairs: list[tuple[str, str]]  #: a date as people write it, and in ISO form
    source: Vocabulary  #: symbols of the texts that are read
    target: Vocabulary  #: symbols of those that are written


@cache
def dates(split: str = "train", pairs: int = DATE_RUN["pairs"]) -> Dates:
    """Return ``pairs`` of the dates of chapter 01, from a ``split``.

    The vocabularies are always those of all pairs for training.
    """
    every = date_pairs(DATE_RUN["pairs"], "train")
    source = Vocabulary("".join(text for text, _ in every))
    chosen = every[:pairs] if split == "train" else date_pairs(pairs, split)
    return Dates(chosen, source, Vocabulary("0123456789-"))


def date_batches(seed: int, steps: int, data: Dates | None = None) -> Iterator[Batch]:
    """Return as many batches as ``steps``; ``data`` that is used up is shuffled again.

    Args:
        data: all pairs for training if not given.
    """
    data = data or dates()
    passes = (batches(*data, DATE_RUN["batch"], 1000 * seed + i) for i in count())
    return islice((batch for one in passes for batch in one), steps)


def date_model(
    seed: int, norm: str = "post", dropout: float = 0.0, device: str = "cpu"
) -> Transformer:
    """Return an untrained model that reads dates."""
    sizes = len(dates().source), len(dates().target)
    torch.manual_seed(seed)
    config = TransformerConfig(*sizes, **SMALL, norm=norm, dropout=dropout)
    return Transformer(config).to(device)


def label_loss(model: Transformer, batch: Batch) -> Float[Tensor, ""]:
    """Return the cross-entropy of a ``model`` per real label of a ``batch``."""
    logits = model(batch.source, batch.target)
    labels = batch.labels.flatten()
    return F.cross_entropy(logits.flatten(0, 1), labels, ignore_index=Vocabulary.pad)


def train_date_transformer(
    rate: Callable[[int], float],
    seed: int,
    steps: int = DATE_RUN["steps"],
    norm: str = "post",
    device: str = "cpu",
) -> list[Record]:
    """Return the history of a model that learns to read dates under a learning rate.

    Args:
        rate: the rate of step n, from 1.
    """
    model = date_model(seed, norm, device=device)
    optimizer, schedule = paper_adam(model, rate)
    return fit(
        model, label_loss, date_batches(seed, steps), optimizer, schedule=schedule
    )


def train_on_few(dropout: float, smoothing: float, seed: int) -> Transformer:
    """Return a pre-norm model that saw only a few pairs, again and again."""
    model = date_model(seed, "pre", dropout)
    data = dates("train", FEW["pairs"])
    smooth = LabelSmoothing(len(data.target), Vocabulary.pad, smoothing)
    shape = RATE_SHAPES["climbing, then falling"]
    optimizer, schedule = paper_adam(model, lambda n: FEW["rate"] * shape(n))
    fit(
        model,
        lambda model, batch: smooth(model(batch.source, batch.target), batch.labels),
        date_batches(seed, FEW["steps"], data),
        optimizer,
        schedule=schedule,
        clip=FEW["clip"],
    )
    return model


def how_well(model: Transformer, data: Dates) -> dict[str, float]:
    """Return what a ``model`` makes of ``data`` when it reads the right answers so far.

    Returns:
        Loss per symbol without smoothing, share of dates without an error, and mean
        confidence and share right of the symbols.
    """
    loss = confidence = right = symbols = exact = 0.0
    with evaluating(model):
        for batch in batches(*data, 250):
            batch = to_device(batch, device_of(model))
            logs = model(batch.source, batch.target).log_softmax(dim=-1)
            real = batch.labels != Vocabulary.pad
            sure, answer = logs.max(dim=-1)
            correct = answer == batch.labels
            own = logs.gather(-1, batch.labels[..., None])[..., 0]
            loss -= own[real].sum().item()
            confidence += sure.exp()[real].sum().item()
            right += correct[real].sum().item()
            symbols += real.sum().item()
            exact += (correct | ~real).all(dim=1).sum().item()
    return {
        "loss": loss / symbols,
        "exact": exact / len(data.pairs),
        "confidence": confidence / symbols,
        "right": right / symbols,
    }


# before the high rate: the rate of that many steps; both reach 0.01 with the next one
BEGINNINGS = {
    "300 steps of no size": (1e-12, 300),
    "40 steps at a tenth": (1e-3, 40),
}


def begin(small: float, steps: int) -> Callable[[int], float]:
    """Return a rate that is ``small`` for some ``steps``, then 0.01 and falling."""

    def rate(n: int) -> float:
        return small if n <= steps else 1e-2 * (CLIMB / (n - steps + CLIMB)) ** 0.5

    return rate


# how a run comes to the rate of 0.01, or leaves it: the rate of step n
FIRST_STEPS: dict[str, Callable[[int], float]] = {
    "one small step": lambda n: 1e-3 if n == 1 else 1e-2,
    "five small steps": lambda n: 1e-3 if n <= 5 else 1e-2,
    "five tiny steps": lambda n: 2.5e-4 if n <= 5 else 1e-2,
    "five high steps": lambda n: 1e-2 if n <= 5 else 1e-3,
    "sixty high steps": lambda n: 1e-2 if n <= 60 else 1e-3,
}


def differences(model: Transformer, batch: Batch) -> float:
    """Return how far the outputs of the decoder differ between positions and dates.

    Args:
        model: in any mode; evaluated without dropout.

    Returns:
        Standard deviation over all positions of the ``batch``, divided by the root mean
        square: 0 if every position gets the same vector.
    """
    kept = []
    hook = model.decoder.register_forward_hook(lambda part, given, x: kept.append(x))
    batch = to_device(batch, device_of(model))
    with evaluating(model):
        model(batch.source, batch.target)
    hook.remove()
    x = kept[0].flatten(0, 1)
    return ((x - x.mean(dim=0)).norm() / x.norm()).item()
