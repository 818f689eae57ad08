"""Chapter 20: does training profit from the sort of LSH attention, which sees ahead?

A Reformer with chunks of four and one round, and a GPT, on random text of four symbols,
three seeds each. Below ln 4 = 1.3863 there is nothing but the future.

Expected: both end at ln 4, within a hundredth: the sort's future has no gradient.
"""

from typing import Any

import torch

from annotated.chapters.ch20.leaks import chance, held_out, learn, reader, reformer
from benchmarks.record import SEEDS

SYMBOLS, STEPS = 4, 600


def run() -> dict[str, Any]:
    rows = []
    for seed in SEEDS:
        for name in ("reformer", "gpt"):
            torch.manual_seed(seed)
            model = reformer(SYMBOLS, chunk=4) if name == "reformer" else reader()
            learn(model, seed, STEPS, SYMBOLS)
            loss = held_out(model, SYMBOLS, rows=2000)
            row = {"model": name, "seed": seed, "loss": loss}
            print(row, flush=True)
            rows.append(row)
    return {"symbols": SYMBOLS, "steps": STEPS, "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check that nobody falls below chance, and all come near it."""
    for row in record["rows"]:
        assert -1e-3 < row["loss"] - chance(record["symbols"]) < 0.01, row
