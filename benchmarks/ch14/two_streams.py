"""Chapter 14: does a model lose anything by being reversible?

Two models of chapter 11's text with the very same parts, a third of chapter 11's steps.
"two streams" is a Reformer with full attention: F reads one stream and adds to the
other. "one stream" has the same F and G in an ordinary residual stream, x + F(x), then
x + G(x), which it hands to the output twice. Told are the bits per character of the
held-out modules.

Chapter 11's GPT reaches 2.4 bits with all steps; the paper (section 5) finds no
difference by reversing.
"""

import statistics
import time
from functools import partial
from typing import Any

import torch
from torch import Tensor

from annotated.attention import MultiHeadAttention
from annotated.recipes.text import (
    TEXT_RECIPES,
    bits_per_character,
    read_text,
    train_text,
)
from annotated.reformer import Reformer, ReformerConfig

RECIPE, SEEDS = TEXT_RECIPES["library"]._replace(steps=1000), (0, 1, 2)


class OneStream(Reformer):
    """The parts of a Reformer in an ordinary residual stream."""

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of what comes after each of the ``tokens``, ``(b, t)``."""
        x = self.positions(self.embedding(tokens))
        for block in self.blocks.blocks:
            x = x + block.f(x)
            x = x + block.g(x)
        return self.output(self.norm(torch.cat([x, x], dim=-1)))


WAYS = {"two streams": Reformer, "one stream": OneStream}


def run() -> dict[str, Any]:
    text, runs, length = read_text("library"), [], RECIPE.model["max_len"]
    config = ReformerConfig(text.size, **RECIPE.model)
    for seed in SEEDS:
        for way, make in WAYS.items():
            torch.manual_seed(seed)
            sizes = config.d_model, config.heads
            model = make(config, partial(MultiHeadAttention, *sizes, causal=True))
            began = time.process_time()
            train_text(model, text.train, RECIPE, seed)
            seconds = time.process_time() - began
            bits = bits_per_character(model, text.validation, length)
            runs.append({"way": way, "seed": seed, "bits": bits, "seconds": seconds})
            print(runs[-1], flush=True)
    means = {
        way: statistics.mean(run["bits"] for run in runs if run["way"] == way)
        for way in WAYS
    }
    parameters = sum(p.numel() for p in model.parameters())
    return {"parameters": parameters, "runs": runs, "mean bits": means}


def bands(record: dict[str, Any]) -> None:
    assert all(2.4 < run["bits"] < 3 for run in record["runs"])
    two, one = record["mean bits"].values()
    assert abs(two - one) < 0.1
