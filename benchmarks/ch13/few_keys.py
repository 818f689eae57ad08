"""Chapter 13: how much of a query's weight its heaviest keys carry.

Chapter 11's model (recipe "library") reads the held-out text in windows of 64
characters. The last query of each window sees all 64 keys; its weights are sorted from
heavy to light and added up. Uniform weights would give the 8 heaviest 0.125.

And how far away are they? Expected: near ones carry more in the first layer than in the
second, which is where chapter 11 found a head that looks for brackets.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from annotated.attention import record_attention
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

WINDOWS, NEAR = 1024, 8


def last_looks(
    model: nn.Module, ids: Int[Tensor, "n"]
) -> Float[Tensor, "layers b h s"]:
    """Return the weights of the last query of each window."""
    length = TEXT_RECIPES["library"].model["max_len"]
    tokens, _ = next(all_windows(ids, length, WINDOWS))
    with evaluating(model), record_attention(model) as maps:
        model(tokens)
    return torch.stack([called[0][:, :, -1] for called in maps.values()])


def carried(weights: Float[Tensor, "layers b h s"]) -> Float[Tensor, "layers h s"]:
    """Return the mean share that the 1, 2, … heaviest keys carry."""
    heaviest = weights.sort(dim=-1, descending=True).values
    return heaviest.cumsum(dim=-1).mean(dim=1)


def one(seed: int) -> dict[str, Any]:
    """Train with one seed and measure."""
    text, recipe = read_text("library"), TEXT_RECIPES["library"]
    model = text_model("attention", text.size, seed)
    train_text(model, text.train, recipe, seed)
    length = recipe.model["max_len"]
    weights = last_looks(model, text.validation)
    shares, near = carried(weights), weights[..., -NEAR:].sum(dim=-1).mean(dim=1)
    row = {"seed": seed, "bits": bits_per_character(model, text.validation, length)}
    row["carried"] = [
        [[round(share, 4) for share in head] for head in layer]
        for layer in shares.tolist()
    ]
    row["near"] = [[round(share, 4) for share in head] for head in near.tolist()]
    print(seed, near)
    print(seed, row["bits"], shares.mean(dim=(0, 1))[[0, 3, 7, 15, 31]], flush=True)
    return row


def run() -> dict[str, Any]:
    return facts() | {"windows": WINDOWS, "rows": [one(seed) for seed in SEEDS]}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, and what the page says of it."""
    carried = torch.tensor([row["carried"] for row in record["rows"]])
    near = torch.tensor([row["near"] for row in record["rows"]]).mean(dim=-1)
    of_seed = carried[..., 7].mean(dim=(1, 2))
    assert of_seed.min() >= 0.7 and of_seed.max() < 0.99
    assert near[:, 0].min() >= 0.5 and (near[:, 1] < near[:, 0]).all()
    means = torch.cat([carried.mean(dim=(0, 1, 2))[None], carried.mean(dim=(0, 2))])
    needed = (means < 0.9).sum(dim=-1) + 1  # "seven or so, some four, a dozen"
    assert (needed - torch.tensor([7, 4, 12])).abs().max() <= 1
    assert 0.4 < carried[..., 0].mean() < 0.6 and carried[..., 31].mean() > 0.99
