"""Chapter 05: an encoder names the symbol one position before each."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.attention import MultiHeadAttention
from annotated.masks import length_mask
from annotated.positions import (
    LearnedPositionalEmbedding,
    PositionalEncoding,
    RotaryMultiHeadAttention,
)

POSITIONS = {
    "symbols": 16,
    "d_model": 64,
    "heads": 4,
    "layers": 2,
    "max_len": 128,
    # the spread of the symbols' embeddings at the beginning is 1 / √d_model
    "spread": 0.125,
    "batch": 32,
    "steps": 300,
    "rate": 3e-3,
    "clip": 1.0,
    # lengths; in the second experiment 4 plus an exponential of mean 12, cut at 80
    "shortest": 8,
    "longest": 32,
    "usual": 12,
    "most": 80,
}


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


def guessing(length: int, count: int = 300) -> float:
    """Return the share of the commonest other symbol: what order-blind scores.

    The mean over ``count`` random sequences of this ``length``.
    """
    generator = torch.Generator().manual_seed(0)
    symbols = POSITIONS["symbols"]
    tokens = torch.randint(symbols, (count, length), generator=generator)
    own = F.one_hot(tokens, symbols)  # (b, t, symbols)
    others = own.sum(dim=1, keepdim=True) - own
    return others.amax(dim=-1).double().mean().item() / (length - 1)


# ---- what was recorded ---------------------------------------------------------------

Runs = Sequence[Mapping[str, Any]]
ZONES = ("often", "between", "rarely", "never")


def runs_of(
    record: Mapping[str, Any],
    experiment: str,
    way: str,
    spread: float = 0.125,
    steps: int = 300,
) -> Runs:
    """Return the runs of an ``experiment`` of ``record``, "longer" or "rarely".

    ``way``, ``spread`` and ``steps`` are theirs.
    """
    wanted = (way, spread, steps)
    return [
        run
        for run in record[experiment]
        if (run["way"], run["spread"], run["steps"]) == wanted
    ]


def zone(seen: int) -> str:
    """Return the name of lengths that ``seen`` training sequences reached."""
    if seen == 0:
        return "never"
    return "often" if seen >= 1000 else "rarely" if seen <= 100 else "between"


def by_zone(runs: Runs, part: str = "ends") -> dict[str, list[float]]:
    """Return the share of right answers in each zone, a number for each of ``runs``.

    ``part`` is "ends" or "beginnings".
    """
    table = defaultdict(list)
    for run in runs:
        zones = defaultdict(list)
        for length, share in run[part].items():
            zones[zone(run["seen"][int(length) - 1])].append(share)
        for name, shares in zones.items():
            table[name].append(sum(shares) / len(shares))
    return table
