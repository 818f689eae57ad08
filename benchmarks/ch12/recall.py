"""Chapter 12: which of the characters that a memory reaches are used.

The text: words of n random letters out of 16, each written twice. Transformer-XL of two
layers reads segments of 16, with a memory of 0, 16 or 32. Its outputs depend on
characters up to 16, 48 and 80 back (chapter 12.2), but each layer sees 16, 32 and 48 at
most, and at positions 9 to 16 of a segment, where right guesses are counted in second
copies, 8, 24 and 40 at least.

Bands, every seed: a word of n letters is recalled (at least 0.9 right) if a layer sees
n back: 8 always, 24 with a memory of 16, 40 with one of 32. Otherwise guesses are near
chance, 1/16 (below 0.2): 24 without a memory, and 40 with a memory of 16, though its
outputs depend on characters that far back, because no gradient tells a state what a
later segment will need.
"""

from itertools import islice
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from annotated.recipes.common import one_cycle
from annotated.segments import SegmentLoss, segments
from annotated.training import evaluating, fit
from annotated.transformer_xl import TransformerXL, TransformerXLConfig
from benchmarks.record import SEEDS

LETTERS, SEGMENT, BATCH, STEPS, RATE = 16, 16, 32, 800, 5e-3
WORDS, MEMORIES, LATE = (8, 24, 40), (0, 16, 32), 8
WIDTHS = {"d_model": 32, "heads": 4, "layers": 2, "d_ff": 64}


def doubled(
    word: int, length: int, seed: int
) -> tuple[Int[Tensor, "n"], Bool[Tensor, "n"]]:
    """Return a text of words written twice, and where the second copies are."""
    generator = torch.Generator().manual_seed(seed)
    count = length // (2 * word) + 1
    words = torch.randint(LETTERS, (count, word), generator=generator)
    text = torch.cat([words, words], dim=1).flatten()[:length]
    again = (torch.arange(2 * word) >= word).repeat(count)[:length]
    return text, again


def one(word: int, mem_len: int, seed: int) -> float:
    torch.manual_seed(seed)
    model = TransformerXL(TransformerXLConfig(LETTERS, **WIDTHS, mem_len=mem_len))
    text, _ = doubled(word, (STEPS + 1) * BATCH * SEGMENT, seed)
    batches = list(islice(segments(text, BATCH, SEGMENT), STEPS))
    optimizer, schedule = one_cycle(model, RATE, STEPS)
    fit(model, SegmentLoss(), batches, optimizer, schedule=schedule, clip=1.0)

    text, again = doubled(word, 50 * BATCH * SEGMENT + 1, seed + 100)
    tested = segments(text, BATCH, SEGMENT)
    # as segments gives targets, so it gives whether they are second copies
    copies = (target for _, target in segments(again.long(), BATCH, SEGMENT))
    memories, right = None, []
    for (tokens, target), copy in zip(tested, copies, strict=True):
        with evaluating(model):
            logits, memories = model(tokens, memories)
        hit = (logits.argmax(dim=-1) == target)[:, LATE:]
        right.append(hit[copy[:, LATE:].bool()])
    return torch.cat(right).float().mean().item()


def run() -> dict[str, Any]:
    runs = []
    for word in WORDS:
        for mem_len in MEMORIES:
            for seed in SEEDS:
                entry = {"word": word, "mem_len": mem_len, "seed": seed}
                runs.append(entry | {"right": one(word, mem_len, seed)})
                print(runs[-1], flush=True)
    config = {"letters": LETTERS, "segment": SEGMENT, "batch": BATCH, **WIDTHS}
    return {"config": config | {"steps": STEPS, "rate": RATE}, "runs": runs}
