"""Chapter 12: two controls for ``segments``.

- Relative positions without a memory, for 1,200 steps: how much of the gain of a long
  training is the memory's? Band, every seed, from its 600 steps and what the others
  gain in another 600: 2.35 to 2.55 bits, and at least 0.05 above Transformer-XL.
- Numbered positions with a memory that is marked: each layer adds a learned vector to
  what it remembers. If numbers that belong to two characters are what harms, a mark
  cures most of it. Band, every seed: at least 0.4 bits below the unmarked model (3.50).
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from annotated.chapters.ch12.segments import (
    MODELS,
    SEGMENTS,
    RememberingGPT,
    bits_by_segment_position,
    train_on_segments,
)
from annotated.data.text import library_facts
from annotated.gpt import GPTConfig
from benchmarks.record import SEEDS, read


class MarkedGPT(RememberingGPT):
    """A GPT with a memory of numbered positions that can be told from the segment.

    The mark stays for one segment: the memory is no longer than that.
    """

    def __init__(self, config: GPTConfig):
        super().__init__(config)
        self.mark = nn.Parameter(torch.zeros(config.layers, 1, 1, config.d_model))

    def loss(
        self,
        tokens: Int[Tensor, "b t"],
        target: Int[Tensor, "b t"],
        memories: Float[Tensor, "_ b _ d"] | None = None,
    ) -> tuple[Float[Tensor, "b t"], Float[Tensor, "_ b _ d"]]:
        """Return the losses and new memories, as the unmarked model does."""
        marked = None if memories is None else memories + self.mark
        return super().loss(tokens, target, marked)


def run() -> dict[str, Any]:
    config = MODELS["vanilla"]().config
    MODELS["numbered, marked memory"] = lambda: MarkedGPT(config)
    kinds = {"relative, no memory": 2, "numbered, marked memory": 1}
    runs = []
    for seed in SEEDS:
        for kind, times in kinds.items():
            steps = times * SEGMENTS["steps"]
            model, seconds = train_on_segments(kind, seed, steps)
            bits = bits_by_segment_position(model)
            entry = {"kind": kind, "seed": seed, "steps": steps}
            entry["parameters"] = sum(p.numel() for p in model.parameters())
            entry |= {"cpu_seconds": seconds, "bits": bits.mean().item()}
            runs.append(entry | {"bits by position": bits.tolist()})
            print(entry, flush=True)
    return {"config": SEGMENTS, "text": library_facts(), "runs": runs}


def bands(record: dict[str, Any]) -> None:
    """Check what chapter 12 says of these models beside those of ``segments``."""
    runs = [*record["runs"], *read("segments")["runs"]]
    for seed in SEEDS:
        bits = {(r["kind"], r["steps"]): r["bits"] for r in runs if r["seed"] == seed}
        longer = bits["relative, no memory", 1200]
        assert longer - bits["Transformer-XL", 1200] > 0.05
        numbered = bits["numbered, with memory", 600]
        assert numbered - bits["numbered, marked memory", 600] > 0.4
