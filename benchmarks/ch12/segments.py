"""Chapter 12: memory and relative positions on the standard library, three seeds.

All models read the same segments of 32 characters in the same order; the validation
loss is over the same characters. The vanilla model and Transformer-XL are trained once
more with twice the steps; for the vanilla one that takes at least the CPU seconds of
Transformer-XL with the usual number.

Bands, written before the final run, from single runs of one or two seeds (vanilla 2.83
and 2.84 bits, with twice the steps 2.59; no memory 2.68; Transformer-XL 2.49 to 2.55):

- Transformer-XL ends at least 0.2 bits per character below the vanilla model of equal
  steps, and at least 0.02 below that of twice the steps, with each seed.
- Memory alone is worth at least 0.05 bits at equal steps.
- It helps most where a segment begins: against the model without memory, Transformer-XL
  gains more than twice as much at the first four positions as at the last sixteen.

Of the two kinds that were added to the run later, with their reasons, before any of
their runs:

- The vanilla model with a memory of numbered positions gains at least 0.2 bits at the
  first position: the key before it is the memory's number 31, and the segment has none
  of that number yet. At the last sixteen it loses at least 0.05 bits against the
  vanilla model, because to a query number i, the segment's number j and the memory's
  look alike for each j up to i, and a weight meant for one is shared with the other.
- It ends at least 0.1 bits above Transformer-XL, with each seed.
- With twice the steps, too, Transformer-XL ends at least 0.1 bits below the vanilla
  model: where a segment begins, no training helps a model that sees nothing.
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
    """Train each kind with each seed."""
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
    """Check this record's bands."""
    for seed in (0, 1, 2):
        runs = {(r["kind"], r["steps"]): r for r in record["runs"] if r["seed"] == seed}
        assert len(runs) == 6
        xl = runs["Transformer-XL", 600]
        alone = runs["relative, no memory", 600]
        assert xl["bits"] < runs["vanilla", 600]["bits"] - 0.2
        assert xl["bits"] < runs["vanilla", 1200]["bits"] - 0.02
        assert xl["bits"] < alone["bits"] - 0.05
        gain = torch.tensor(alone["bits by position"]) - torch.tensor(
            xl["bits by position"]
        )
        assert gain[:4].mean() > 2 * gain[-16:].mean()
        numbered = runs["numbered, with memory", 600]
        lost = torch.tensor(numbered["bits by position"]) - torch.tensor(
            runs["vanilla", 600]["bits by position"]
        )
        assert lost[0] < -0.2
        assert lost[-16:].mean() > 0.05
        assert numbered["bits"] > xl["bits"] + 0.1
        longer = runs["Transformer-XL", 1200]
        assert longer["bits"] < runs["vanilla", 1200]["bits"] - 0.1
