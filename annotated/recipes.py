"""Recipes of Part I that a page and its recorded runs share, so they cannot differ.

A chapter trains one seed while you watch; ``python -m benchmarks`` trains the others,
with the same models, data, losses and rates.
"""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import OneCycleLR

from annotated.attention import MultiHeadAttention
from annotated.checkpoints import Record
from annotated.data import Vocabulary, batches, make_batch
from annotated.devices import device_of, to_device
from annotated.masks import length_mask
from annotated.positions import (
    LearnedPositionalEmbedding,
    PositionalEncoding,
    RotaryMultiHeadAttention,
)
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


def one_cycle(
    model: nn.Module, rate: float, steps: int
) -> tuple[torch.optim.Adam, OneCycleLR]:
    """Return Adam for a ``model``, and a schedule for its learning rate.

    The rate rises to ``rate`` for a tenth of the ``steps`` and then falls.
    """
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    return optimizer, OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)


# ---- chapter 01: dates ---------------------------------------------------------

DATES = {"embedding": 32, "hidden": 64, "pairs": 25_600, "batch": 64}
DATES |= {"rate": 8e-3, "clip": 1.0}

# name: (attention, which state asks)
WAYS: dict[str, tuple[type[ScoredAttention] | None, str]] = {
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
        way: one of ``WAYS``, or a class that takes the widths of additive attention.
        source: symbols that it reads.
        target: symbols that it writes.
        seed: of its parameters.
    """
    torch.manual_seed(seed)
    kind, query = WAYS[way] if isinstance(way, str) else (way, "previous")
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


def train_dates(
    model: Seq2Seq,
    pairs: Sequence[tuple[str, str]],
    symbols: tuple[Vocabulary, Vocabulary],
    epochs: int = 1,
    seed: int = 0,
    on_step: Callable[[int], None] | None = None,
) -> list[Record]:
    """Return the history of a ``model`` that learned to read dates.

    Args:
        model: from :func:`date_reader`.
        pairs: dates with their ISO forms.
        symbols: from :func:`date_symbols`.
        epochs: how often it reads all ``pairs``.
        seed: of their order.
        on_step: as for :func:`annotated.training.fit`.
    """
    size = DATES["batch"]
    steps = epochs * math.ceil(len(pairs) / size)
    optimizer, schedule = one_cycle(model, DATES["rate"], steps)
    shuffled = (
        batch
        for epoch in range(epochs)
        for batch in batches(pairs, *symbols, size, seed=seed + epoch)
    )
    extras = {"schedule": schedule, "clip": DATES["clip"], "on_step": on_step}
    return fit(model, teacher_forcing_loss, shuffled, optimizer, **extras)


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


# ---- chapter 05: the symbol one position before --------------------------------

POSITIONS = {"symbols": 16, "d_model": 64, "heads": 4, "layers": 2, "max_len": 128}
# the spread of the symbols' embeddings at the beginning is 1 / √d_model
POSITIONS |= {"spread": 0.125, "batch": 32, "steps": 300, "rate": 3e-3, "clip": 1.0}
# lengths; in the second experiment 4 plus an exponential of mean 12, cut at 80
POSITIONS |= {"shortest": 8, "longest": 32, "usual": 12, "most": 80}


class ReaderLayer(nn.Module):
    """``attention`` and a feed-forward network, each normed and added (chapter 06)."""

    def __init__(self, attention: type[MultiHeadAttention]):
        super().__init__()
        d = POSITIONS["d_model"]
        self.attention = attention(d, POSITIONS["heads"])
        self.norms = nn.ModuleList([nn.LayerNorm(d), nn.LayerNorm(d)])
        self.feed = nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))

    def forward(
        self, x: Float[Tensor, "b t d"], mask: Bool[Tensor, "..."]
    ) -> Float[Tensor, "b t d"]:
        """Return ``x`` after attention under ``mask`` and the network."""
        x = x + self.attention(self.norms[0](x), mask=mask)
        return x + self.feed(self.norms[1](x))


class Reader(nn.Module):
    """A bidirectional encoder with an answer at every position (chapter 05).

    Args:
        way: "sinusoidal", "learned", "learned, large" (as large as the sinusoids),
            "rotary" or "none".
        spread: standard deviation of the symbols' embeddings at the beginning.
    """

    def __init__(self, way: str, spread: float = POSITIONS["spread"]):
        super().__init__()
        d, symbols, size = (POSITIONS[k] for k in ("d_model", "symbols", "max_len"))
        self.embedding = nn.Embedding(symbols, d)
        nn.init.normal_(self.embedding.weight, std=spread)
        self.positions = nn.Identity()
        if way == "sinusoidal":
            self.positions = PositionalEncoding(d, size)
        elif way.startswith("learned"):
            self.positions = LearnedPositionalEmbedding(size, d)
            if way == "learned, large":  # the root mean square of sine and cosine
                nn.init.normal_(self.positions.table, std=0.5**0.5)
        kind = RotaryMultiHeadAttention if way == "rotary" else MultiHeadAttention
        self.layers = nn.ModuleList(
            ReaderLayer(kind) for _ in range(POSITIONS["layers"])
        )
        self.answer = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, symbols))

    def forward(
        self, tokens: Int[Tensor, "b t"], mask: Bool[Tensor, "..."]
    ) -> Float[Tensor, "b t v"]:
        """Return the logits of the symbol before each of ``tokens``, under ``mask``."""
        x = self.positions(self.embedding(tokens))
        for layer in self.layers:
            x = layer(x, mask)
        return self.answer(x)


def uniform_lengths(generator: torch.Generator) -> Int[Tensor, "b"]:
    """Return lengths drawn with a ``generator``, from 8 to 32 equally likely."""
    low, high = POSITIONS["shortest"], POSITIONS["longest"]
    return torch.randint(low, high + 1, (POSITIONS["batch"],), generator=generator)


def skewed_lengths(generator: torch.Generator) -> Int[Tensor, "b"]:
    """Return lengths drawn with a ``generator``: most are short, few are long."""
    chances = torch.rand(POSITIONS["batch"], generator=generator)
    lengths = 4 - POSITIONS["usual"] * torch.log1p(-chances)
    return lengths.long().clamp(max=POSITIONS["most"])


def reading_task(
    lengths: Int[Tensor, "b"], generator: torch.Generator
) -> tuple[Int[Tensor, "b t"], Bool[Tensor, "b 1 1 t"]]:
    """Return symbols drawn with a ``generator``, of these ``lengths``, and the mask."""
    shape = (len(lengths), int(lengths.max()))
    tokens = torch.randint(POSITIONS["symbols"], shape, generator=generator)
    return tokens, length_mask(lengths, shape[1])


def previous_symbol_loss(
    model: Reader, batch: tuple[Tensor, Tensor]
) -> Float[Tensor, ""]:
    """Return the cross-entropy of the symbol before, at all positions but the first.

    ``model`` reads a ``batch`` of tokens ``(b, t)`` with their mask ``(b, 1, 1, t)``.
    """
    tokens, mask = batch
    asked = mask[:, 0, 0, 1:]
    return F.cross_entropy(model(tokens, mask)[:, 1:][asked], tokens[:, :-1][asked])
