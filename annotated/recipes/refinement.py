"""Chapter 19: spelling to sound by models that write symbol by symbol, or all at once.

All have the same parts and read the same batches, and each trains for about as many CPU
seconds. As in ``annotated.recipes``: ``python -m benchmarks`` trains them, and ``python
-m annotated.train`` those of two kinds from a terminal.
"""

import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from annotated import require
from annotated.batches import Batch, Vocabulary, pad_sequences
from annotated.checkpoints import Record
from annotated.data.spelling import spelling_words
from annotated.devices import device_of
from annotated.metrics import error_rates
from annotated.recipes.common import one_cycle
from annotated.recipes.translation import (
    Cutter,
    Recipe,
    TranslationLoss,
    Translations,
    translation_batches,
    translation_model,
)
from annotated.refinement import (
    MaskedTransformer,
    diffusion_loss,
    mask_predict,
    mask_predict_loss,
)
from annotated.training import Loss, fit
from annotated.transformer import Transformer, TransformerConfig

REFINEMENT = Recipe(
    "spelling",
    {"d_model": 128, "heads": 4, "layers": 2, "d_ff": 384, "dropout": 0.0}
    | {"norm": "pre", "max_len": 64},
    tokens=1400,
    steps=800,
    rate=3e-3,
)
DEEP = 4, 1  # layers of a deep encoder and of a shallow decoder (Kasai et al., 2021)
CANVAS = 16  # positions that are written where end symbols fill up what is left
FOUR_ROUNDS = partial(mask_predict, rounds=4)
#: steps of each kind that take about 85 CPU seconds
STEPS = {
    "autoregressive": 800,
    "deep encoder": 700,
    "mask-predict": 850,
    "diffusion": 850,
    "canvas": 350,  # diffusion on a canvas, end symbols in the loss
    "one end": 350,  # diffusion that learns one end symbol, and nothing behind it
}
MASKED = tuple(STEPS)[2:]  # kinds that write all at once


def refinement_model(kind: str, cutter: Cutter, seed: int = 0) -> Transformer:
    """Return an untrained model; where it has ``[MASK]``, that is its last symbol.

    Args:
        kind: one of ``STEPS``.
    """
    require.choice(STEPS, kind=kind)
    if kind in MASKED:
        torch.manual_seed(seed)
        sizes = len(cutter.source), len(cutter.target) + 1
        return MaskedTransformer(TransformerConfig(*sizes, **REFINEMENT.model))
    if kind == "autoregressive":
        return translation_model(REFINEMENT, cutter, seed)
    deep, shallow = DEEP
    recipe = REFINEMENT._replace(model=REFINEMENT.model | {"layers": deep})
    model = translation_model(recipe, cutter, seed)
    model.decoder.layers = model.decoder.layers[:shallow]
    return model


def without_end(labels: Int[Tensor, "b t"]) -> Int[Tensor, "b _"]:
    """Return ``labels`` without their end symbols, for a model that has lengths."""
    target = labels[:, :-1]  # behind the longest stands its end symbol
    return target.masked_fill(target == Vocabulary.end, Vocabulary.pad)


def on_canvas(labels: Int[Tensor, "b t"], size: int = CANVAS) -> Int[Tensor, "b _"]:
    """Return ``labels`` on ``size`` positions or more, filled up with end symbols."""
    room = labels.new_full((len(labels), max(size, labels.shape[1])), Vocabulary.end)
    real = labels != Vocabulary.pad
    room[:, : labels.shape[1]] = labels.where(real, Vocabulary.end)
    return room


class MaskedLoss:
    """The loss of one of the kinds ``MASKED``."""

    def __init__(self, kind: str):
        require.choice(MASKED, kind=kind)
        self.kind = kind

    def __call__(self, model: MaskedTransformer, batch: Batch) -> Float[Tensor, ""]:
        """Return the loss of a ``model`` on a ``batch``."""
        source, labels = batch.source, batch.labels
        if self.kind == "mask-predict":
            return mask_predict_loss(model, source, without_end(labels))
        if self.kind == "diffusion":
            return diffusion_loss(model, source, without_end(labels))
        target = on_canvas(labels) if self.kind == "canvas" else labels
        return diffusion_loss(model, source, target, lengths=False)

    def batch_weight(self, batch: Batch) -> int:
        """Return how many symbols but ends the targets of a ``batch`` have."""
        return (batch.labels > Vocabulary.end).sum().item()


def refinement_loss(kind: str, cutter: Cutter) -> Loss:
    """Return the loss of a ``kind``, one of ``STEPS``."""
    return MaskedLoss(kind) if kind in MASKED else TranslationLoss(REFINEMENT, cutter)


def train_refinement(
    kind: str,
    model: Transformer,
    task: Translations,
    seed: int = 0,
    most: int | None = None,
    **options: Any,
) -> list[Record]:
    """Return the history of a ``model`` that learned to write in the way of its kind.

    Args:
        kind: one of ``STEPS``.
        most: number of steps to stop at; the kind's if not given.
        options: of :func:`annotated.training.fit`.
    """
    steps = STEPS[kind]
    optimizer, schedule = one_cycle(model, REFINEMENT.rate, steps)
    batches = translation_batches(task, REFINEMENT.tokens, steps, seed)
    batches = islice(batches, most)
    loss, options = refinement_loss(kind, task.cutter), {"clip": 1.0} | options
    torch.manual_seed(seed)  # of masks
    return fit(model, loss, batches, optimizer, schedule=schedule, **options)


def refine(
    model: MaskedTransformer,
    cutter: Cutter,
    texts: Sequence[str],
    size: int = 64,
    write: Callable[..., Any] = FOUR_ROUNDS,
) -> list[str]:
    """Return what is written for each text, in their order; of an empty one nothing.

    Args:
        texts: words to pronounce.
        size: of a batch; texts of about one length are written together.
        write: ``write(model, source)`` returns a ``Refinement``.

    Raises:
        ValueError: if a text has more pieces than the model has positions for.
    """
    pieces, written = [cutter.cut(text) for text in texts], [""] * len(texts)
    order = [i for i, one in enumerate(pieces) if one]
    order.sort(key=lambda i: len(pieces[i]))
    for first in range(0, len(order), size):
        rows = order[first : first + size]
        source, _ = pad_sequences([cutter.source.encode(pieces[i]) for i in rows])
        found = write(model, source.to(device_of(model))).tokens.tolist()
        for i, ids in zip(rows, found, strict=True):
            written[i] = cutter.join(cutter.target.decode(ids))
    return written


def refinement_errors(
    model: MaskedTransformer,
    cutter: Cutter,
    most: int = 2000,
    write: Callable[..., Any] = FOUR_ROUNDS,
) -> dict[str, float]:
    """Return the phoneme and the word error rate on held-out words.

    Those of :func:`annotated.recipes.translation.spelling_errors`.
    """
    known = spelling_words("test")
    words = random.Random(0).sample(sorted(known), min(most, len(known)))
    outputs = [tuple(one.split()) for one in refine(model, cutter, words, 256, write)]
    rates = error_rates(outputs, [known[word] for word in words])
    return {"phonemes": rates["symbols"], "words": rates["whole"]}
