"""Chapter 16: deep GPTs that begin with and without the factor 1 / √N.

Models of 4 and 32 blocks, width 48, read the library's text by 1024 tokens for 300
steps, with two rates.

Bands: with 4 blocks, the factor makes less than 0.03 bits per byte, at both rates
(missed: it is ahead by 0.08 to 0.38). With 32 blocks, the model with the factor is
ahead by 0.02 or more at the higher rate, and not behind by more than 0.02 at the lower.
"""

from typing import Any

import torch

from annotated.gpt import GPT, GPTConfig
from annotated.gpt2 import initialise
from annotated.recipes.gpt2 import (
    GPT2_RECIPE,
    STD,
    bits_per_byte,
    short_tokenizer,
    token_text,
)
from annotated.recipes.text import train_text
from benchmarks.record import SEEDS

DEPTHS, RATES = (4, 32), (1e-2, 3e-3)
SMALLER = {"d_model": 48, "d_ff": 192}


def run() -> dict[str, Any]:
    tokenizer, rows = short_tokenizer(), []
    text = token_text(tokenizer)
    for seed in SEEDS:
        for layers in DEPTHS:
            fields = GPT2_RECIPE.model | SMALLER | {"layers": layers}
            recipe = GPT2_RECIPE._replace(model=fields, steps=300, batch=8)
            for rate in RATES:
                for scaled in (True, False):
                    torch.manual_seed(seed)
                    model = GPT(GPTConfig(tokenizer.vocab_size, **fields))
                    initialise(model, STD / fields["d_model"] ** 0.5, scaled)
                    history = train_text(model, text.train, recipe, seed, rate=rate)
                    bits = bits_per_byte(model, text, fields["max_len"])
                    row = {"layers": layers, "rate": rate, "scaled": scaled}
                    row |= {"seed": seed, "bits": bits}
                    row["losses"] = [round(one["loss"], 3) for one in history]
                    print({k: row[k] for k in row if k != "losses"}, flush=True)
                    rows.append(row)
    return {"recipe": recipe._asdict(), "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check the bands of 32 blocks, and that a shallow model is helped as much."""
    bits = {
        (row["layers"], row["rate"], row["seed"], row["scaled"]): row["bits"]
        for row in record["rows"]
    }
    ahead: dict[int, list[float]] = {layers: [] for layers in DEPTHS}
    for (layers, rate, seed, scaled), without in bits.items():
        if not scaled:
            ahead[layers].append(without - bits[layers, rate, seed, True])
    assert min(ahead[32]) > 0.02
    # the page: with the same seed it is better in every pair
    assert min(ahead[4]) > 0 and max(ahead[4]) > max(ahead[32])
