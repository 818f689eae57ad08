"""Chapter 12: memory and relative positions on the standard library.

All models read the same segments of 32 characters in the same order; the validation
loss is over the same characters. The vanilla model and Transformer-XL are trained once
more with twice the steps; for the vanilla one that takes at least the CPU seconds of
Transformer-XL with the usual number.

Expected: where a segment begins, no training helps a model that sees nothing, so the
memory helps most there. With numbered positions, the segment's number j and the
memory's look alike to a query, except at the first position, where the segment has no
key of the memory's number 31 yet.
"""

from typing import Any

import torch

from annotated.chapters.ch12.segments import (
    MODELS,
    SEGMENTS,
    bits_by_segment_position,
    train_on_segments,
)
from annotated.data.text import library_facts
from benchmarks.record import SEEDS


def run() -> dict[str, Any]:
    runs = []
    for seed in SEEDS:
        longer = [("vanilla", 2), ("Transformer-XL", 2)]
        for kind, times in [*((kind, 1) for kind in MODELS), *longer]:
            model, seconds = train_on_segments(kind, seed, times * SEGMENTS["steps"])
            bits = bits_by_segment_position(model)
            entry = {"kind": kind, "seed": seed, "steps": times * SEGMENTS["steps"]}
            entry["parameters"] = sum(p.numel() for p in model.parameters())
            entry |= {"cpu_seconds": seconds, "bits": bits.mean().item()}
            entry["bits by position"] = bits.tolist()
            runs.append(entry)
            print(entry, flush=True)
    return {"config": SEGMENTS, "text": library_facts(), "runs": runs}


def bands(record: dict[str, Any]) -> None:
    for seed in SEEDS:
        runs = {(r["kind"], r["steps"]): r for r in record["runs"] if r["seed"] == seed}
        xl, longer = runs["Transformer-XL", 600], runs["Transformer-XL", 1200]
        vanilla, alone = runs["vanilla", 600], runs["relative, no memory", 600]
        assert xl["bits"] < vanilla["bits"] - 0.2
        assert xl["bits"] < runs["vanilla", 1200]["bits"] - 0.02
        assert longer["bits"] < runs["vanilla", 1200]["bits"] - 0.1
        assert xl["bits"] < alone["bits"] - 0.05
        gain = _above(alone, xl)
        assert gain[:4].mean() > 2 * gain[-16:].mean()
        numbered = runs["numbered, with memory", 600]
        lost = _above(numbered, vanilla)
        assert lost[0] < -0.2 and lost[-16:].mean() > 0.05
        assert lost[:4].mean() > 0.1
        assert numbered["bits"] > vanilla["bits"] + 0.5


def _above(run: dict[str, Any], other: dict[str, Any]) -> torch.Tensor:
    by_position = (torch.tensor(r["bits by position"]) for r in (run, other))
    return torch.sub(*by_position)
