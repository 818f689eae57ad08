"""Chapter 14: a reversible stack whose buckets aren't those of the forward pass.

Eight blocks with LSH attention (two rounds, chunks of 32), width 64, 2048 positions.
"kept" is what the module does: buckets are those of the forward pass. "hashed again"
hashes the rebuilt vectors by the same maps. "new maps" draws maps from a generator of
its own, whose state nobody puts back. Told are the share of buckets in which a rebuilt
vector would land elsewhere, and the error of the gradients against a stack that stores.
"""

import statistics
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from annotated import reformer
from annotated.chapters.ch14.reversible import STACKS, layers

D, HEADS, D_FF, DEPTH, LENGTH, CHUNK, SEEDS = 64, 4, 128, 8, 2048, 32, (0, 1, 2)
BACKWARD = ("kept", "hashed again", "new maps")


def gradient(way: str, backward: str, dtype: torch.dtype, seed: int):
    """Return the gradient of all parameters, and the share of buckets that change."""
    own, changed = torch.Generator().manual_seed(seed), []
    keep, hashed = reformer.repeated, reformer.lsh_buckets

    def repeated(buckets: Tensor) -> Tensor:
        kept = keep(buckets)
        changed.append((kept != buckets).double().mean().item())
        return kept if backward == "kept" else buckets

    def lsh_buckets(vectors, buckets, rounds):
        new = backward == "new maps"
        return hashed(vectors, buckets, rounds, generator=own if new else None)

    torch.manual_seed(seed)
    attention = partial(reformer.LSHSelfAttention, D, HEADS, CHUNK, 2, causal=True)
    stack = layers(DEPTH, D, HEADS, D_FF, attention=attention).to(dtype)
    x, weights = torch.randn(2, 1, LENGTH, D).to(dtype)
    torch.manual_seed(seed)
    with (
        patch.object(reformer, "repeated", repeated),
        patch.object(reformer, "lsh_buckets", lsh_buckets),
    ):
        y1, y2 = STACKS[way](stack, x, x)
        loss = ((y1 + y2) * weights).float().mean()
        parts = torch.autograd.grad(loss, list(stack.parameters()))
    # the first half of the calls is the forward pass
    share = statistics.mean(changed[DEPTH:]) if way == "reversible" else 0.0
    return torch.cat([part.flatten().double() for part in parts]), share


def run() -> dict[str, Any]:
    runs = []
    for dtype in (torch.float32, torch.bfloat16):
        for backward in BACKWARD:
            for seed in SEEDS:
                entry = {"dtype": str(dtype).removeprefix("torch.")}
                entry |= {"backward": backward, "seed": seed}
                # stored once, with the same maps: new ones begin where these do
                wanted, _ = gradient("stored", backward, dtype, seed)
                try:
                    found, share = gradient("reversible", backward, dtype, seed)
                    error = ((found - wanted).norm() / wanted.norm()).item()
                    entry |= {"changed buckets": share, "error": error}
                except RuntimeError as error:
                    entry["refused"] = str(error).partition(":")[0]
                runs.append(entry)
                print(entry, flush=True)
    config = {"d_model": D, "heads": HEADS, "d_ff": D_FF, "depth": DEPTH}
    config |= {"length": LENGTH, "chunk": CHUNK, "rounds": 2}
    return {"config": config, "runs": runs}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, for every seed."""
    runs = {(run["backward"], run["dtype"], run["seed"]): run for run in record["runs"]}
    for (way, dtype, seed), run in runs.items():
        if way == "new maps":
            assert "refused" in run
        elif dtype == "float32":
            assert run["changed buckets"] < 1e-4
        else:
            assert 0.003 < run["changed buckets"] < 0.03
            if way == "hashed again":
                assert run["error"] > 3 * runs["kept", dtype, seed]["error"]
