"""Chapter 06: a baseline that runs, and one part more at each rung of a ladder.

The page trains one seed, ``python -m benchmarks ladder`` trains the others.
"""

import datetime
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch

from annotated import require
from annotated.batches import (
    LOCALES,
    STYLES,
    Vocabulary,
    batches,
    date_pairs,
    make_batch,
    write_date,
)
from annotated.checkpoints import Record
from annotated.decoding import greedy_decode
from annotated.devices import device_of, to_device
from annotated.recipes.common import one_cycle
from annotated.recipes.date_transformer import label_loss
from annotated.recipes.parts import take_away
from annotated.training import evaluate, fit
from annotated.transformer import Transformer, TransformerConfig

LADDER = {
    "d_model": 64,
    "heads": 4,
    "layers": 2,
    "d_ff": 256,
    "dropout": 0.0,
    "norm": "pre",
    "max_len": 64,
}
LADDER_TRAINING = {"batch": 64, "steps": 300, "rate": 5e-3}
# what each rung has beyond the rung before it, which begins with cross-attention alone
LADDER_PARTS = ("residual", "network", "encoder", "norm", "self-attention")
WEEK, DIGITS = range(1, 8), "0123456789"


def ladder_pairs(count: int, split: str, seed: int) -> list[tuple[str, str]]:
    """Return dates in many languages, translated: ``("7 mars 2024", "March 7, 2024")``.

    Args:
        split: "train", "validation" or "test".
    """
    return [
        (text, write_date(datetime.date.fromisoformat(iso), "en_US", "long"))
        for text, iso in date_pairs(count, split, seed)
    ]


@cache
def ladder_vocabularies() -> tuple[Vocabulary, Vocabulary]:
    """Return the symbols of all sources, and those of all targets."""
    week = [datetime.date(2013, month, day) for month in range(1, 13) for day in WEEK]
    texts = [
        write_date(day, locale, style)
        for day in week
        for locale in LOCALES
        for style in STYLES
    ]
    months = [write_date(day, "en_US", "long") for day in week]
    return Vocabulary("".join(texts) + DIGITS), Vocabulary("".join(months) + DIGITS)


class Rung(NamedTuple):
    """A model with some parts of the ladder, and how it was trained."""

    model: Transformer  #: in training mode
    source: Vocabulary  #: symbols that it reads
    target: Vocabulary  #: symbols that it writes
    history: list[Record]  #: of its training


def train_rung(
    parts: Collection[str],
    seed: int,
    steps: int = LADDER_TRAINING["steps"],
    **changes: Any,
) -> Rung:
    """Train the model that has some of the ladder's parts.

    Args:
        parts: names from ``LADDER_PARTS``; cross-attention is there without.
        changes: fields of the config that differ from ``LADDER``.

    Returns:
        The trained model with its vocabularies and its history.

    Raises:
        ValueError: if ``parts`` is a text, or names a part that there isn't.
    """
    require.that(
        not isinstance(parts, str),
        f"parts must be several names, such as ('residual',), got {parts!r}",
    )
    for part in parts:
        require.choice(LADDER_PARTS, part=part)
    batch = LADDER_TRAINING["batch"]
    pairs = ladder_pairs(steps * batch, "train", seed)
    source, target = ladder_vocabularies()
    torch.manual_seed(seed)
    config = TransformerConfig(len(source), len(target), **LADDER | changes)
    missing = [part for part in LADDER_PARTS if part not in parts]
    model = take_away(Transformer(config), *missing)
    optimizer, schedule = one_cycle(model, LADDER_TRAINING["rate"], steps)
    training = batches(pairs, source, target, batch, seed)
    history = fit(model, label_loss, training, optimizer, schedule=schedule)
    return Rung(model, source, target, history)


def translations(rung: Rung, texts: Sequence[str]) -> list[str]:
    """Return what a ``rung`` writes for ``texts``, symbol by symbol, greedily.

    Raises:
        ValueError: if ``texts`` is one text, whose letters would be translated.
    """
    require.that(
        not isinstance(texts, str), f"texts must be a list of texts, got {texts!r}"
    )
    pairs = [(text, "") for text in texts]
    source = make_batch(pairs, rung.source, rung.target).source
    source = to_device(source, device_of(rung.model))
    written = greedy_decode(
        rung.model,
        source,
        start=Vocabulary.start,
        end=Vocabulary.end,
        max_new_tokens=LADDER["max_len"] // 2,
    )
    return ["".join(rung.target.decode(row)) for row in written]


def rung_scores(rung: Rung, count: int = 1000) -> tuple[float, int]:
    """Return the loss per symbol on ``count`` unseen dates, and how many are exact.

    ``rung`` is what :func:`train_rung` gave; the dates are the same for each.
    """
    pairs = ladder_pairs(count, "test", 0)
    unseen = batches(pairs, rung.source, rung.target, 250)
    loss = evaluate(
        rung.model,
        label_loss,
        unseen,
        weight=lambda batch: (batch.labels != Vocabulary.pad).sum().item(),
    )
    written = translations(rung, [text for text, _ in pairs])
    return loss, sum(w == right for w, (_, right) in zip(written, pairs, strict=True))
