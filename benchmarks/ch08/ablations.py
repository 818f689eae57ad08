"""Chapter 08: what each part of the model and of the recipe is worth.

The copy task, one thing changed at a time: the page's model of one layer, and one of
four, with smaller batches and more steps (those of ``copy_depth``). Then the published
setting, whose 200 steps copy nothing, with a warm-up of 40 steps to several rates.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from annotated.decoding import greedy_decode
from annotated.recipes.copy_task import (
    COPY,
    COPY_START,
    COPY_TRAINING,
    VOCAB,
    SeesAhead,
    copy_batches,
    exact_copies,
    train_copy,
)
from annotated.recipes.parts import take_away
from annotated.training import LabelSmoothing, fit, noam_schedule
from annotated.transformer import Transformer, TransformerConfig
from benchmarks.ch08.copy_depth import CHANGED
from benchmarks.ch08.copy_task import (
    COUNT,
    FRESH,
    SOURCE,
    SOURCE_STEPS,
    source_setting,
    told,
)
from benchmarks.record import SEEDS

WATCHED = [COPY_START, *map("·abcdefghij".index, "bigfachej")]
LOOKS = (0, 20, 30, 40, 50, 60, 80, 100, 250)
PEAKS = (0.005, 0.01, 0.02, 0.03)  # of the published setting, after 40 steps
PEAK_WARMUP = 40


def whole_recipe(
    model: Transformer, steps: int, seed: int, smoothing: float, clip: float
) -> list[dict]:
    """Train with the schedule of chapter 07, to the same highest rate."""
    width, warmup = COPY["d_model"], COPY_TRAINING["warmup"]
    optimizer = torch.optim.Adam(
        model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9
    )
    factor = COPY_TRAINING["rate"] * (width * warmup) ** 0.5
    schedule = noam_schedule(optimizer, width, warmup, factor)
    smoothed = LabelSmoothing(VOCAB, pad=0, smoothing=smoothing)

    def loss(model, batch):
        source, target = batch
        return smoothed(model(source, target[:, :-1]), target[:, 1:])

    batches = copy_batches(seed, steps, COPY_TRAINING["batch"])
    return fit(model, loss, batches, optimizer, schedule=schedule, clip=clip)


def one(
    name: str,
    seed: int,
    *,
    without: str = "",
    kind: type[Transformer] = Transformer,
    layers: int = COPY["layers"],
    heads: int = COPY["heads"],
    trainer: Callable | None = None,
    watch: list | None = None,
    **recipe: Any,
) -> dict[str, Any]:
    torch.manual_seed(seed)
    sizes = COPY | {"layers": layers, "heads": heads}
    model = kind(TransformerConfig(VOCAB, VOCAB, **sizes))
    if without:
        take_away(model, without)
    many = CHANGED if layers > 1 else COPY_TRAINING
    steps, batch = many["steps"], many["batch"]
    if watch is not None:
        watch.append(look(model, 0))

    def on_step(step: int) -> None:
        if watch is not None and step in LOOKS:
            watch.append(look(model, step))

    began = time.process_time()
    try:
        if trainer:
            history = trainer(model, steps, seed)
        else:
            batches = copy_batches(seed, steps, batch)
            history = train_copy(model, batches, steps, on_step=on_step, **recipe)
    except FloatingPointError as error:  # it has exploded: measured as it stands
        exact = [exact_copies(model, fresh, COUNT) for fresh in FRESH]
        row = {"name": name, "seed": seed, "layers": layers, "exact": exact}
        print(row | {"stopped": str(error)}, flush=True)
        return row | {"stopped": str(error)}
    seconds = time.process_time() - began
    norms = [record["gradient_norm"] for record in history]
    extra = {"layers": layers, "largest_gradient_norm": max(norms)}
    return told(name, seed, (model, history, seconds), **extra)


def look(model: Transformer, step: int) -> dict[str, Any]:
    """Return what a model writes for one sequence after a number of steps."""
    source = torch.tensor([WATCHED])
    most = len(WATCHED) - 1
    written = greedy_decode(model, source, start=COPY_START, max_new_tokens=most)
    return {"step": step, "written": written[0].tolist()}


ONE_LAYER: dict[str, dict[str, Any]] = {
    "as it is": {},
    "no residual": {"without": "residual"},
    "no norm": {"without": "norm"},
    "no network": {"without": "network"},
    "no positions": {"without": "positions"},
    "no causal mask": {"kind": SeesAhead},
    "no warm-up": {"warmup": 1},
    "one head": {"heads": 1},
    "decay as 1/√n": {"trainer": partial(whole_recipe, smoothing=0.0, clip=math.inf)},
    "whole recipe": {"trainer": partial(whole_recipe, smoothing=0.1, clip=1.0)},
}
FOUR_LAYERS = ("as it is", "no residual", "no norm", "no network", "no warm-up")


def run() -> dict[str, Any]:
    watched: list[dict[str, Any]] = []
    rows = []
    for name, options in ONE_LAYER.items():
        for seed in SEEDS:
            watch = watched if (name, seed) == ("as it is", SEEDS[0]) else None
            rows.append(one(name, seed, **options, watch=watch))
    for name in FOUR_LAYERS:
        for seed in SEEDS:
            rows.append(one(name, seed, **ONE_LAYER[name], layers=4))
    factors = [peak * (SOURCE["d_model"] * PEAK_WARMUP) ** 0.5 for peak in PEAKS]
    return {
        "config": COPY,
        "recipe": COPY_TRAINING,
        "deep_recipe": CHANGED,
        "count": COUNT,
        "watched": {"source": WATCHED, "looks": watched},
        "rows": rows,
        "peaks": [
            {"peak": peak, **row}
            for peak, factor in zip(PEAKS, factors, strict=True)
            for row in source_setting(PEAK_WARMUP, SOURCE_STEPS[:1], factor)
        ],
    }


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, and what the page says of each part."""
    assert (record["config"], record["recipe"]) == (COPY, COPY_TRAINING)
    bounds = {
        **dict.fromkeys(("as it is", "no norm", "no network"), (990, 1000)),
        **dict.fromkeys(("one head", "no warm-up", "whole recipe"), (990, 1000)),
        **dict.fromkeys(("no residual", "decay as 1/√n"), (950, 1000)),
        **{"no positions": (0, 10), "no causal mask": (0, 200)},
    }
    deep = {"no residual": (0, 100), "no norm": (0, 500), "no warm-up": (900, 1000)}
    deep |= dict.fromkeys(("as it is", "no network"), (950, 1000))
    for row in record["rows"]:
        low, high = (bounds if row["layers"] == 1 else deep)[row["name"]]
        assert low <= row["exact"][0] <= high, row["name"]
        if (row["name"], row["layers"]) == ("no norm", 4):
            assert "gradient norm inf" in row["stopped"]
    assert max(row["exact"] for row in record["peaks"]) <= 20
