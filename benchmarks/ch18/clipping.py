"""Chapter 18: the gradient is clipped before it's unscaled, and after.

A loss is multiplied by 65,536, ``GradScaler``'s first factor, and gradients are clipped
at a norm of 1: after they were divided by the factor again, or before. Everything is in
float32, where a power of two changes no digit, so the order is all that differs. AdamW
at 0.003, and SGD with momentum at 0.1; 400 steps. An untrained model has about 7 bits.

Expected: SGD learns next to nothing in the wrong order. AdamW divides by the gradient's
own size, so a factor hardly matters: but its ε, 1e-8, isn't divided. The control has an
ε that is divided by 65,536, too.
"""

from typing import Any

import torch

from annotated.chapters.ch18.large import (
    LARGE_RECIPE,
    held_out_bits,
    large_model,
    rule_of,
    scaled_step,
    training,
)
from annotated.recipes.text import read_text
from benchmarks.record import SEEDS

RATES = {"SGD": 0.1, "AdamW": LARGE_RECIPE.rate}


def trained(rule: str, first: bool, seed: int, epsilon: float) -> dict[str, Any]:
    """Train in one order; the optimiser's ε is multiplied by ``epsilon``."""
    text, model = read_text(LARGE_RECIPE.text), large_model(seed)
    optimizer, scaler = rule_of(rule, model, RATES[rule]), torch.amp.GradScaler("cpu")
    if epsilon != 1:
        optimizer.param_groups[0]["eps"] *= epsilon
    step = scaled_step(model, optimizer, scaler, first)
    losses = training(model, text.train, step, optimizer, RATES[rule], seed)
    row = {"rule": rule, "unscaled first": first, "seed": seed}
    row["bits"] = held_out_bits(model, text.validation)
    row["losses"] = [round(x, 4) for x in losses[9::10]]
    row["scale"] = scaler.get_scale()
    print(row, flush=True)
    return row


def run() -> dict[str, Any]:
    validation = read_text(LARGE_RECIPE.text).validation
    untrained = [held_out_bits(large_model(seed), validation) for seed in SEEDS]
    rows = [
        trained(rule, first, seed, 1.0)
        for rule in RATES
        for seed in SEEDS
        for first in (True, False)
    ]
    control = [trained("AdamW", False, seed, 1 / 65536) for seed in SEEDS]
    result = {"recipe": LARGE_RECIPE._asdict(), "rates": RATES}
    return result | {"untrained": untrained, "rows": rows, "small epsilon": control}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, for every seed, and the control."""
    bits: dict[tuple[str, bool], list[float]] = {}
    for row in record["rows"]:
        bits.setdefault((row["rule"], row["unscaled first"]), []).append(row["bits"])
    assert max(bits["SGD", True]) < 3.6 and min(bits["SGD", False]) > 6.3
    small = [row["bits"] for row in record["small epsilon"]]
    adam = bits["AdamW", True], bits["AdamW", False], small
    for right, wrong, control in zip(*adam, strict=True):
        assert 0 < wrong - right < 0.2
        assert control < right  # the page: they "even end ahead"
