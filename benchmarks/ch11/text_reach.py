"""Chapter 11, deeper: how far back the text asks for, and how far models can learn.

In each model of ``text_rivals`` one character of the window is exchanged for one from
elsewhere: how many bits does the prediction at the last position lose? And fresh models
learn to name, at the last position, the first of some random symbols: in how many
steps, by the distance?

Bands, every seed: attention names the first symbol within 60 steps at all distances;
the convolution within 200 up to 48, and not at 63, where it does not reach; the
recurrent model within 200 up to 8, and not from 32 on. On the text, all three lose more
than 1 bit by the character just read, and less than 0.05 bits by one 32 or more back.
"""

from math import log
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import OneCycleLR

from annotated.data.text import all_windows
from annotated.recipes.text import (
    TEXT_RECIPES,
    bits_per_character,
    read_text,
    text_model,
    train_text,
)
from annotated.training import evaluating
from benchmarks.ch11.text import facts
from benchmarks.record import SEEDS

WAYS = ("attention", "recurrent", "convolution")
DISTANCES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 63)
SYMBOLS, BATCH, STEPS, RATE, LEARNED = 16, 64, 400, 1e-2, 0.1
FIRST = (4, 8, 16, 24, 32, 48, 60, 63)  # how far back the first symbol stands


def bits_lost(model: nn.Module, ids: Int[Tensor, "n"], seed: int = 0) -> list[float]:
    """Return the bits that the last prediction of a window loses, by distance."""
    length = TEXT_RECIPES["library"].model["max_len"]
    tokens, targets = next(all_windows(ids, length, len(ids)))
    generator = torch.Generator().manual_seed(seed)

    def bits(tokens: Tensor) -> float:
        logits = [model(part)[:, -1] for part in tokens.split(256)]
        return F.cross_entropy(torch.cat(logits), targets[:, -1]).item() / log(2)

    with evaluating(model):
        intact, lost = bits(tokens), []
        for distance in DISTANCES:
            changed = tokens.clone()
            other = torch.randperm(len(tokens), generator=generator)
            changed[:, -1 - distance] = tokens[other, -1 - distance]
            lost.append(bits(changed) - intact)
    return lost


def steps_to_first(way: str, distance: int, seed: int) -> int | None:
    """Return the step at which the loss of naming the first symbol is below 0.1."""
    model = text_model(way, SYMBOLS, seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), RATE, betas=(0.9, 0.98), weight_decay=0.0
    )
    schedule = OneCycleLR(optimizer, RATE, total_steps=STEPS, pct_start=0.1)
    generator = torch.Generator().manual_seed(seed)
    for step in range(1, STEPS + 1):
        size = (BATCH, distance + 1)
        tokens = torch.randint(SYMBOLS, size, generator=generator)
        loss = F.cross_entropy(model(tokens)[:, -1], tokens[:, 0])
        if loss < LEARNED:
            return step
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return None


def one(way: str, seed: int) -> dict[str, Any]:
    text, recipe = read_text("library"), TEXT_RECIPES["library"]
    row = {"way": way, "seed": seed}
    row["steps"] = {n: steps_to_first(way, n, seed) for n in FIRST}
    print(row, flush=True)
    model = text_model(way, text.size, seed)
    train_text(model, text.train, recipe, seed)
    length = recipe.model["max_len"]
    row["bits"] = bits_per_character(model, text.validation, length)
    row["lost"] = [round(bits, 4) for bits in bits_lost(model, text.validation)]
    print(row, flush=True)
    return row


def run() -> dict[str, Any]:
    task = {"symbols": SYMBOLS, "batch": BATCH, "steps": STEPS, "rate": RATE}
    rows = [one(way, seed) for seed in SEEDS for way in WAYS]
    return facts() | {"distances": DISTANCES, "first": task, "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check what page 11b says of each seed's steps."""
    for seed in SEEDS:
        steps = {r["way"]: r["steps"] for r in record["rows"] if r["seed"] == seed}
        for n, attention in steps["attention"].items():
            far, gru, conv = int(n), steps["recurrent"][n], steps["convolution"][n]
            assert attention and attention <= 60
            assert far > 48 or (conv and conv <= 200)
            assert far > 32 or conv <= attention + 1
            assert far > 8 or (gru and gru <= 200)
            assert far < 24 or not gru
            assert far < 63 or not conv
