"""Chapter 08: does one mistake lead to others if the decoder can't look back?

Section 8.4's model, with all parts and without the decoder's self-attention. In each of
1000 sequences the first mistake is corrected; how many of the later ones are left?

Bands, every seed: with all parts at most three quarters, as on the page; without
self-attention, where a wrong symbol reaches nothing but the next step, at least nine
tenths.
"""

from typing import Any

import torch

from annotated.decoding import greedy_decode
from annotated.recipes.copy_task import (
    COPY,
    COPY_START,
    VOCAB,
    copy_batches,
    train_copy,
)
from annotated.recipes.parts import take_away
from annotated.transformer import Transformer, TransformerConfig
from benchmarks.record import SEEDS

STEPS, BATCH = 80, 64


@torch.no_grad()
def mistakes(model: Transformer, seed: int) -> dict[str, int]:
    """Count flawed sequences, their later mistakes, and what a correction leaves."""
    source, target = next(copy_batches(1001 + seed, 1, 1000))
    wanted, t = target[:, 1:], target.shape[1] - 1
    alone = greedy_decode(model, source, start=COPY_START, max_new_tokens=t)
    missed = alone != wanted
    flawed = missed.any(dim=1)
    written, helped = target[:, :1], torch.zeros_like(flawed)
    for i in range(t):
        symbol = model(source, written)[:, -1].argmax(dim=-1)
        first = (symbol != wanted[:, i]) & ~helped
        symbol = symbol.where(~first, wanted[:, i])
        written = torch.cat([written, symbol[:, None]], dim=1)
        helped |= first
    return {
        "flawed": int(flawed.sum()),
        "later": int(missed.sum() - flawed.sum()),
        "left": int((written != target).sum()),
    }


def run() -> dict[str, Any]:
    rows = []
    for parts in ((), ("self-attention",)):
        for seed in SEEDS:
            torch.manual_seed(seed)
            model = take_away(
                Transformer(TransformerConfig(VOCAB, VOCAB, **COPY)), *parts
            )
            train_copy(model, copy_batches(seed, STEPS, BATCH), STEPS)
            row = {"without": [*parts], "seed": seed} | mistakes(model.eval(), seed)
            rows.append(row)
            print(row, flush=True)
    return {"config": COPY, "steps": STEPS, "batch": BATCH, "rows": rows}
