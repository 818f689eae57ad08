"""Chapter 11: Tiny Shakespeare by characters, in three minutes on a CPU.

nanoGPT's example for a CPU (4 layers, width 128, context 64, 2000 steps of 12 windows)
is said to reach 1.88 nats in about three minutes.
"""

from math import log
from typing import Any

from annotated.recipes.text import TEXT_RECIPES, run_text_recipe

NAME, SEEDS = "shakespeare, CPU", (0, 1, 2)


def one(seed: int) -> dict[str, Any]:
    model, history, bits = run_text_recipe(NAME, seed=seed)
    row = {
        "seed": seed,
        "parameters": sum(p.numel() for p in model.parameters()),
        "nats": bits * log(2),
        "bits": bits,
        "cpu_seconds": history[-1]["cpu_seconds"],
    }
    print(row, flush=True)
    return row


def run() -> dict[str, Any]:
    recipe = TEXT_RECIPES[NAME]
    training = {"batch": recipe.batch, "steps": recipe.steps, "rate": recipe.rate}
    rows = [one(seed) for seed in SEEDS]
    return {"model": recipe.model, "training": training, "rows": rows}


def bands(record: dict[str, Any]) -> None:
    for row in record["rows"]:
        assert row["nats"] <= 1.88 and row["cpu_seconds"] <= 180
