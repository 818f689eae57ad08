"""Chapter 01: a recurrent network with attention reads dates.

What a page and its recorded runs share, so they cannot differ: a chapter trains one
seed while you watch, ``python -m benchmarks`` the others, with the same models, data,
losses and rates. That's so of all recipes.
"""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from annotated.batches import Vocabulary, batches, make_batch
from annotated.checkpoints import Record
from annotated.devices import device_of, to_device
from annotated.recipes.common import one_cycle
from annotated.recurrent_attention import (
    AdditiveAttention,
    DotAttention,
    LocationSensitiveAttention,
    ScoredAttention,
)
from annotated.seq2seq import (
    AttentionDecoder,
    RNNEncoder,
    Seq2Seq,
    teacher_forcing_loss,
)
from annotated.training import evaluating, fit

DATES = {
    "embedding": 32,
    "hidden": 64,
    "pairs": 25_600,
    "batch": 64,
    "rate": 8e-3,
    "clip": 1.0,
}


# name: (attention, which state asks)
DATE_READERS: dict[str, tuple[type[ScoredAttention] | None, str]] = {
    "none": (None, "previous"),
    "additive": (AdditiveAttention, "previous"),
    "additive, current state": (AdditiveAttention, "current"),
    "additive, state and output": (AdditiveAttention, "previous+output"),
    "dot": (DotAttention, "previous"),
    "general": (DotAttention, "previous"),
    "location-sensitive": (LocationSensitiveAttention, "previous"),
}


def date_symbols(pairs: Sequence[tuple[str, str]]) -> tuple[Vocabulary, Vocabulary]:
    """Return the symbols that the dates in ``pairs`` are read and written in."""
    source = Vocabulary("".join(text for text, _ in pairs))
    return source, Vocabulary("0123456789- ")  # a space between two dates


def date_reader(
    way: str | type[ScoredAttention],
    source: Vocabulary,
    target: Vocabulary,
    seed: int = 0,
) -> Seq2Seq:
    """Return an untrained model that reads dates.

    Args:
        way: one of ``DATE_READERS``, or a class that takes the widths of additive
            attention.
    """
    torch.manual_seed(seed)
    kind, query = DATE_READERS[way] if isinstance(way, str) else (way, "previous")
    embedding, hidden = DATES["embedding"], DATES["hidden"]
    memory = 2 * hidden  # the encoder reads in both directions
    # a plain dot product needs a state as wide as the encoder's
    state = memory if way == "dot" else hidden
    asked = state + (embedding if query == "previous+output" else 0)
    attention = None
    if way == "dot":
        attention = DotAttention()
    elif kind is DotAttention:
        attention = kind(asked, memory)
    elif kind is not None:
        attention = kind(asked, memory, hidden)
    encoder = RNNEncoder(len(source), embedding, hidden)
    decoder = AttentionDecoder(len(target), embedding, state, memory, attention, query)
    return Seq2Seq(encoder, decoder)


def train_date_reader(
    model: Seq2Seq,
    pairs: Sequence[tuple[str, str]],
    symbols: tuple[Vocabulary, Vocabulary],
    epochs: int = 1,
    seed: int = 0,
    on_step: Callable[[int], None] | None = None,
) -> list[Record]:
    """Return the history of a ``model`` that learned to read dates.

    Args:
        epochs: how often it reads all ``pairs``.
    """
    size = DATES["batch"]
    steps = epochs * math.ceil(len(pairs) / size)
    optimizer, schedule = one_cycle(model, DATES["rate"], steps)
    shuffled = (
        batch
        for epoch in range(epochs)
        for batch in batches(pairs, *symbols, size, seed=seed + epoch)
    )
    return fit(
        model,
        teacher_forcing_loss,
        shuffled,
        optimizer,
        schedule=schedule,
        clip=DATES["clip"],
        on_step=on_step,
    )


def read_dates(
    model: Seq2Seq,
    texts: Sequence[str],
    symbols: tuple[Vocabulary, Vocabulary],
    most: int = 12,
) -> tuple[list[str], Float[Tensor, "b t s"]]:
    """Return what a ``model`` writes for each of the ``texts``, and its weights.

    ``symbols`` are from :func:`date_symbols`; ``most`` ends what has no end.
    """
    batch = make_batch([(text, "") for text in texts], *symbols)
    batch = to_device(batch, device_of(model))
    ends = Vocabulary.start, Vocabulary.end
    with evaluating(model):
        tokens, weights = model.greedy(batch.source, batch.lengths, *ends, most)
    return ["".join(symbols[1].decode(row)) for row in tokens], weights.cpu()
