"""Recipes that a page and its recorded runs share, so that they cannot differ.

A chapter trains one seed while you watch; ``python -m benchmarks`` trains the others,
with the same models, data, losses and rates.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR

from annotated.attention import MultiHeadAttention
from annotated.checkpoints import Record
from annotated.data import sequence_task
from annotated.decoding import greedy_decode
from annotated.masks import length_mask, padding_mask
from annotated.positions import (
    LearnedPositionalEmbedding,
    PositionalEncoding,
    RotaryMultiHeadAttention,
)
from annotated.training import fit
from annotated.transformer import Transformer, TransformerConfig


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


# ---- chapters 07 and 08: the copy task -----------------------------------------

START, END, VOCAB = 1, 11, 11  # the end symbol, where there is one, is one more


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
        seed: of the sequences.
        steps: number of batches.
        size: sequences in a batch.
        end: whether targets say where they end.
        task: what :func:`annotated.data.sequence_task` takes, such as ``length``.

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
    return target.scatter(1, last, END)


# chapter 07: four post-norm layers, which a rate that is too high keeps from learning
DEEP = {"d_model": 32, "heads": 2, "layers": 4, "d_ff": 64, "dropout": 0.0}
DEEP |= {"max_len": 16}
CLIMB = 40
RATE_SHAPES: dict[str, Callable[[int], float]] = {  # the share of the rate in step n
    "constant": lambda n: 1.0,
    "climbing, then constant": lambda n: min(1.0, n / CLIMB),
    "falling": lambda n: min(1.0, (CLIMB / n) ** 0.5),
    "climbing, then falling": lambda n: min(n / CLIMB, (CLIMB / n) ** 0.5),
}


def train_deep(
    rate: Callable[[int], float], seed: int, steps: int, device: torch.device | str
) -> list[Record]:
    """Return the history of the four post-norm layers under a learning rate.

    Args:
        rate: the rate of step n, from 1.
        seed: of model and data.
        steps: number of steps.
        device: where to train.
    """
    torch.manual_seed(seed)
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **DEEP)).to(device)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9
    )
    # LambdaLR counts finished steps from 0; step n comes after n - 1 of them
    schedule = LambdaLR(optimizer, lambda done: rate(done + 1))
    batches = copy_batches(seed, steps, 32, length=8)
    return fit(model, next_symbol_loss, batches, optimizer, schedule=schedule)


# chapter 08: one pre-norm layer, which copies
COPY = {"d_model": 64, "heads": 4, "layers": 1, "d_ff": 256, "dropout": 0.0}
COPY |= {"norm": "pre", "max_len": 32}
# the rate rises for 50 steps, stays, and falls to 0 in the last 40 % of the steps
COPY_TRAINING = {"rate": 5e-3, "warmup": 50, "batch": 128, "steps": 250, "fall": 0.4}


def copy_rate(done: int, steps: int, fall: float = COPY_TRAINING["fall"]) -> float:
    """Return the share of the rate that the next step gets: up, level, down.

    Args:
        done: number of finished steps.
        steps: number of all steps.
        fall: share of the steps in which the rate falls; 0 for none.
    """
    up = min(1.0, (done + 1) / COPY_TRAINING["warmup"])
    return min(up, (steps - done) / (steps * fall)) if fall else up


def train_copy(
    model: Transformer,
    batches: Iterable[tuple[Tensor, Tensor]],
    steps: int = COPY_TRAINING["steps"],
    *,
    rate: float = COPY_TRAINING["rate"],
    fall: float = COPY_TRAINING["fall"],
    on_step: Callable[[int], None] | None = None,
) -> list[Record]:
    """Return the history of a model that learned to copy.

    Args:
        model: what to train.
        batches: sources ``(b, s)`` and targets ``(b, t)``, as many as ``steps``.
        steps: number of steps.
        rate: the highest learning rate; ``fall`` is as for :func:`copy_rate`.
        on_step: as for :func:`annotated.training.fit`.
    """
    optimizer = torch.optim.Adam(model.parameters(), rate, betas=(0.9, 0.98))
    schedule = LambdaLR(optimizer, lambda done: copy_rate(done, steps, fall))
    extras = {"schedule": schedule, "on_step": on_step}
    return fit(model, next_symbol_loss, batches, optimizer, **extras)


def exact_copies(model: Transformer, seed: int, count: int = 1000) -> int:
    """Return how many of ``count`` fresh sequences a ``model`` copies without a fault.

    ``seed`` is that of the sequences.
    """
    device = model.output.weight.device
    source, target = sequence_task("copy", count, torch.Generator().manual_seed(seed))
    written = greedy_decode(
        model, source.to(device), start=START, max_new_tokens=target.shape[1] - 1
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
