"""Chapter 05: positions that training saw often, rarely and never.

A small bidirectional encoder says at each place which symbol stood one place before.

Bands, written before the final run, after one exploratory seed. At a token spread of
0.125 (one over the root of the width), for every seed:

- ``longer`` (lengths 8 to 32, all alike): sinusoidal, learned and rotary answer at
  least 99 % at length 32, without positions at most 25 % (guessing among the symbols
  that stand in the sequence gives more than 1 in 16). At length 64, behind position 31:
  learned at most 20 % (there is nothing that it could have learned), rotary at least
  95 %, sinusoidal at most 80 %.
- ``rarely`` (long sequences are rare): at places that 1000 training sequences or more
  reached, at least 99 % in all three ways; at places that none reached, learned at most
  20 %; rotary at least 99 % at places that 1 to 100 reached.

No band says whether learned or sinusoidal positions do better at places seen rarely:
that is the question.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.attention import MultiHeadAttention
from annotated.masks import length_mask
from annotated.positions import (
    LearnedPositionalEmbedding,
    PositionalEncoding,
    RotaryMultiHeadAttention,
)
from annotated.training import fit

SEEDS = (0, 1, 2)
CONFIG = {
    "symbols": 16,
    "d_model": 64,
    "heads": 4,
    "layers": 2,
    "spread": 0.125,  # of the symbols' embeddings at the beginning: 1 / √d_model
    "max_len": 128,
    "batch": 32,
    "steps": 300,
    "rate": 3e-3,
    "clip": 1.0,
    "shortest": 8,  # of the first experiment
    "longest": 32,
    "usual": 12,  # of the second: lengths are 4 plus an exponential of this mean,
    "most": 80,  # cut here
}
WAYS = ("sinusoidal", "learned", "rotary", "none")
# the second experiment, at several spreads; "learned, large" begins with vectors as
# large as the sinusoids are (0.71 is the root mean square of sine and cosine); some
# are repeated with twice the steps
SPREADS = (1.0, 0.125, 0.02)
RARE_WAYS = ("sinusoidal", "learned", "learned, large", "rotary")
TWICE = [(way, spread) for spread in (0.125, 0.02) for way in ("sinusoidal", "learned")]
LENGTHS = (8, 16, 24, 32, 40, 48, 64, 96, 128)
ENDS = tuple(range(8, 113, 4))


class Layer(nn.Module):
    """Attention and a feed-forward network, each behind a norm and beside a sum."""

    def __init__(self, attention: type[MultiHeadAttention]):
        super().__init__()
        d = CONFIG["d_model"]
        self.attention = attention(d, CONFIG["heads"])
        self.norms = nn.ModuleList([nn.LayerNorm(d), nn.LayerNorm(d)])
        self.feed = nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x), mask=mask)
        return x + self.feed(self.norms[1](x))


class Reader(nn.Module):
    """A bidirectional encoder with an answer at every place."""

    def __init__(self, way: str, spread: float):
        super().__init__()
        d = CONFIG["d_model"]
        self.embedding = nn.Embedding(CONFIG["symbols"], d)
        nn.init.normal_(self.embedding.weight, std=spread)
        self.positions = None
        if way == "sinusoidal":
            self.positions = PositionalEncoding(d, CONFIG["max_len"])
        elif way.startswith("learned"):
            self.positions = LearnedPositionalEmbedding(CONFIG["max_len"], d)
            if way == "learned, large":
                nn.init.normal_(self.positions.table, std=0.5**0.5)
        kind = RotaryMultiHeadAttention if way == "rotary" else MultiHeadAttention
        self.layers = nn.ModuleList(Layer(kind) for _ in range(CONFIG["layers"]))
        self.answer = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, CONFIG["symbols"]))

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        x = self.embedding(tokens)
        if self.positions is not None:
            x = self.positions(x)
        for layer in self.layers:
            x = layer(x, mask)
        return self.answer(x)


def uniform(generator: torch.Generator) -> Tensor:
    """Draw the lengths of a batch: all from the shortest to the longest alike."""
    low, high = CONFIG["shortest"], CONFIG["longest"]
    return torch.randint(low, high + 1, (CONFIG["batch"],), generator=generator)


def skewed(generator: torch.Generator) -> Tensor:
    """Draw the lengths of a batch: most are short, few are long."""
    chances = torch.rand(CONFIG["batch"], generator=generator)
    lengths = 4 - CONFIG["usual"] * torch.log1p(-chances)
    return lengths.long().clamp(max=CONFIG["most"])


def task(lengths: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return random symbols, and which of the places are real."""
    size = int(lengths.max())
    shape = (len(lengths), size)
    tokens = torch.randint(CONFIG["symbols"], shape, generator=generator)
    return tokens, length_mask(lengths, size)


def loss(model: Reader, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Cross-entropy of the symbol one place before, but for the first place."""
    tokens, mask = batch
    asked = mask[:, 0, 0, 1:]
    return F.cross_entropy(model(tokens, mask)[:, 1:][asked], tokens[:, :-1][asked])


@torch.no_grad()
def right(model: Reader, length: int, count: int = 100) -> list[float]:
    """Return the share of right answers at each place from the second on."""
    generator = torch.Generator().manual_seed(10_000 + length)
    tokens, mask = task(torch.full((count,), length), generator)
    guesses = model.eval()(tokens, mask).argmax(dim=-1)
    return (guesses[:, 1:] == tokens[:, :-1]).double().mean(dim=0).tolist()


def train(
    way: str,
    spread: float,
    seed: int,
    draw: Callable[[torch.Generator], Tensor],
    times: int = 1,
) -> tuple[Reader, dict[str, Any]]:
    """Train one model, ``times`` as long; return it with what is worth recording."""
    steps = times * CONFIG["steps"]
    torch.manual_seed(seed)
    model = Reader(way, spread)
    generator = torch.Generator().manual_seed(seed)  # the same data for every way
    seen = torch.zeros(CONFIG["max_len"], dtype=torch.long)

    def walk():
        for _ in range(steps):
            tokens, mask = batch = task(draw(generator), generator)
            seen[: tokens.shape[1]] += mask[:, 0, 0].sum(dim=0)
            yield batch

    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, CONFIG["rate"], total_steps=steps, pct_start=0.1
    )
    extras = {"schedule": schedule, "clip": CONFIG["clip"]}
    history = fit(model, loss, walk(), optimizer, **extras)
    return model, {
        "way": way,
        "spread": spread,
        "seed": seed,
        "steps": steps,
        "parameters": sum(p.numel() for p in model.parameters()),
        "final_loss": sum(r["loss"] for r in history[-20:]) / 20,
        "cpu_seconds": history[-1]["cpu_seconds"],
        "seen": seen.tolist(),  # how many training sequences reached each place
    }


def mean(shares: list[float]) -> float:
    """Return the mean of a list of shares."""
    return sum(shares) / len(shares)


def longer(way: str, spread: float, seed: int) -> dict[str, Any]:
    """Train on short sequences, test on longer ones."""
    model, run = train(way, spread, seed, uniform)
    shares = {length: right(model, length) for length in LENGTHS}
    edge = CONFIG["longest"] - 1  # the answer at place p stands at index p − 1
    run["right"] = {str(n): mean(shares[n]) for n in LENGTHS}
    run["beyond"] = {
        str(n): mean(shares[n][edge:]) for n in LENGTHS if n > CONFIG["longest"]
    }
    return run


def rarely(way: str, spread: float, seed: int, times: int = 1) -> dict[str, Any]:
    """Train where long sequences are rare; test how sequences of any length end."""
    model, run = train(way, spread, seed, skewed, times)
    shares = {length: right(model, length) for length in ENDS}
    run["ends"] = {str(n): mean(shares[n][-4:]) for n in ENDS}
    run["beginnings"] = {str(n): mean(shares[n][:4]) for n in ENDS}
    return run


def run() -> dict[str, Any]:
    """Run both experiments, each with all seeds."""
    results: dict[str, Any] = {"config": CONFIG, "longer": [], "rarely": []}
    settings = [(way, CONFIG["spread"]) for way in WAYS]
    settings += [("learned", 1.0), ("learned, large", 1.0)]
    for way, spread in settings:
        for seed in SEEDS:
            results["longer"].append(longer(way, spread, seed))
            print(results["longer"][-1], flush=True)
    rare = [(way, spread, 1) for spread in SPREADS for way in RARE_WAYS]
    rare += [(way, spread, 2) for way, spread in TWICE]
    for way, spread, times in rare:
        for seed in SEEDS:
            results["rarely"].append(rarely(way, spread, seed, times))
            print(results["rarely"][-1], flush=True)
    return results
