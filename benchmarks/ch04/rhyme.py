"""Chapter 04: a nursery rhyme learnt with the causal mask and without it.

Section 4.7's model, data and steps. Each model then writes on from three beginnings;
what it writes counts if it stands in the rhyme as it is.
"""

from statistics import mean
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from annotated.masks import causal_mask
from annotated.transformer import Encoder, TransformerConfig
from benchmarks.record import SEEDS

STEPS, RATE, WINDOW, WIDTH = 300, 5e-3, 48, 64
BEGINNINGS = ("This is the ", "the cat ", "the dog that ")
VERSES = (
    ("malt", "lay in"),
    ("rat", "ate"),
    ("cat", "killed"),
    ("dog", "worried"),
    ("cow with the crumpled horn", "tossed"),
    ("maiden all forlorn", "milked"),
    ("man all tattered and torn", "kissed"),
)


def nursery_rhyme() -> str:
    """Return the verses, each of which holds the one before."""
    ending = "the house that Jack built.\n"
    text = "This is " + ending
    for who, did in VERSES:
        ending = f"the {who} that {did} {ending}"
        text += "This is " + ending
    return text


RHYME = nursery_rhyme()
CHARACTERS = sorted(set(RHYME))


class Rhymer(nn.Module):
    """Guesses the next character at every position."""

    def __init__(self, masked: bool):
        super().__init__()
        self.masked = masked
        v = len(CHARACTERS)
        self.embed = nn.Embedding(v, WIDTH)
        self.positions = nn.Embedding(WINDOW, WIDTH)
        sizes = {"heads": 4, "layers": 2, "d_ff": 128, "dropout": 0.0, "norm": "pre"}
        self.layers = Encoder(TransformerConfig(v, v, WIDTH, **sizes))
        self.logits = nn.Linear(WIDTH, v)

    def forward(self, tokens):
        t = tokens.shape[1]
        x = self.embed(tokens) + self.positions.weight[:t]
        return self.logits(self.layers(x, causal_mask(t) if self.masked else None))


def train(masked: bool, seed: int) -> tuple[Rhymer, list[float]]:
    """Return a trained model and its losses."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Rhymer(masked)
    data = torch.tensor([CHARACTERS.index(c) for c in RHYME])
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, RATE, total_steps=STEPS, pct_start=0.1
    )
    losses = []
    for _ in range(STEPS):
        starts = torch.randint(len(data) - WINDOW, (16,), generator=generator)
        text = data[starts[:, None] + torch.arange(WINDOW + 1)]
        loss = F.cross_entropy(model(text[:, :-1]).transpose(1, 2), text[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return model, losses


@torch.no_grad()
def write(model: Rhymer, text: str) -> str:
    """Write on until the window is full, the likeliest character each time."""
    while len(text) < WINDOW:
        tokens = torch.tensor([[CHARACTERS.index(c) for c in text]])
        text += CHARACTERS[model(tokens)[0, -1].argmax()]
    return text


def one(masked: bool, seed: int) -> dict[str, Any]:
    model, losses = train(masked, seed)
    lines = [write(model, beginning) for beginning in BEGINNINGS]
    row = {
        "masked": masked,
        "seed": seed,
        "end": mean(losses[-20:]),
        "in_rhyme": sum(line in RHYME for line in lines),
        "lines": lines,
    }
    print(row, flush=True)
    return row


def run() -> dict[str, Any]:
    rows = [one(masked, seed) for masked in (True, False) for seed in SEEDS]
    return {"steps": STEPS, "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check the bands, for every seed."""
    for masked, without in zip(record["rows"][:3], record["rows"][3:], strict=True):
        assert masked["masked"] and masked["in_rhyme"] == 3
        assert not without["masked"] and without["in_rhyme"] == 0
        assert without["end"] <= masked["end"] / 3
