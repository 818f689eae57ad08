"""Chapter 02: more parameters instead of roles, and words put in between.

One vector in all three roles, so wide that it has as many parameters as three roles of
width 16. And 0 to 40 words that don't matter between *street* and *because*, drawn anew
for each batch: a reader with three roles, which has no positions, and a GRU that
answers after the last word.

Bands, after 600 steps: attention at least 90 % with any number of words; the GRU all
right with none, and at most 90 % in two of three seeds with 40.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from annotated.chapters.ch02.pronouns import (
    IDS,
    PRONOUNS,
    SENTENCE,
    PronounReader,
    encode,
    sentences,
    settled,
)
from benchmarks.record import SEEDS

STEPS, EVERY = 600, 20
FILLERS, BETWEEN = 8, (0, 10, 20, 40)
BECAUSE = SENTENCE.split().index("because")
WIDE = 62  # 2,048 parameters; three roles of width 16 have 2,066


def _embedding(start: float, width: int = 16) -> nn.Embedding:
    embedding = nn.Embedding(len(IDS) + FILLERS, width)
    embedding.weight.data *= start
    return embedding


class FarReader(PronounReader):
    """Three roles, and a vocabulary with words that don't matter."""

    def __init__(self):
        super().__init__("three")
        self.embedding = _embedding(0.3)

    def forward(self, tokens):
        # what stands in between goes to the end, so that *it* is where it always is
        parts = tokens[:, :BECAUSE], tokens[:, -5:], tokens[:, BECAUSE:-5]
        return super().forward(torch.cat(parts, dim=1))[0]


class FarGRU(nn.Module):
    """Answers from its state after the last word."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.embedding = _embedding(1.0)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.answer = nn.Linear(width, len(PRONOUNS))

    def forward(self, tokens):
        return self.answer(self.gru(self.embedding(tokens))[1][0])


def far(tokens: torch.Tensor, between: int) -> torch.Tensor:
    """Put words that don't matter in front of *because*."""
    words = torch.randint(len(IDS), len(IDS) + FILLERS, (len(tokens), between))
    return torch.cat([tokens[:, :BECAUSE], words, tokens[:, BECAUSE:]], dim=1)


def train(make: Callable[[], nn.Module], between: int, seed: int) -> list[float]:
    """Return what a model gets right, trained as ``train_reader`` trains."""
    torch.manual_seed(seed)
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    (tokens, answers), (unseen, truth) = map(encode, sentences())
    right = []
    for step in range(1, STEPS + 1):
        batch = torch.randint(len(tokens), (64,))
        loss = F.cross_entropy(model(far(tokens[batch], between)), answers[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % EVERY == 0:
            with torch.no_grad():
                said = model(far(unseen, between)).argmax(dim=-1)
            right.append((said == truth).float().mean().item())
    return right


class Wide(PronounReader):
    """One vector in all three roles, and as many parameters as three have."""

    def __init__(self):
        super().__init__("one", WIDE)

    def forward(self, tokens):
        return super().forward(tokens)[0]


def run() -> dict[str, Any]:
    rows, distances = [], []
    for seed in SEEDS:
        rows.append({"roles": "one", "seed": seed, "right": train(Wide, 0, seed)})
        print("wide", seed, rows[-1]["right"], flush=True)
    models = {"attention": FarReader, "GRU": FarGRU}
    for between, (name, make), seed in product(BETWEEN, models.items(), SEEDS):
        row = {"between": between, "model": name, "seed": seed}
        distances.append(row | {"right": train(make, between, seed)})
        print(row, distances[-1]["right"][-1], flush=True)
    steps = list(range(EVERY, STEPS + 1, EVERY))
    return {"width": WIDE, "steps": steps, "rows": rows, "distances": distances}


def bands(record: dict[str, Any]) -> None:
    """Check what page 2 says of a wide vector and of distances, for every seed."""
    assert {*settled(record, "one", None)} == {200, 220}
    for row in record["distances"]:
        if row["model"] == "attention" or row["between"] == 0:
            assert row["right"][-1] == 1
        elif row["between"] == 40:
            assert row["right"][-1] < 0.6
