"""What attention takes at 8192 positions: materialised, LSH, fused.

Forward and backward of one causal attention, batch 1, width 256, 4 heads. Materialised
attention writes out scores and weights, as chapter 2 derives them; LSH attention has
chunks of 64 and 1 or 4 rounds; fused is PyTorch's kernel, which never forms the scores.
Memory is the peak of a fresh process (``benchmarks/memory.py``), times are CPU seconds
on one thread, once each.

Bands, written before the final run, from measurements of others (3229 MB, 622 with four
rounds, 107 fused): materialised 2.5 to 4.5 GB (a matrix of scores is 1.07 GB, and its
softmax and their gradients are alive together); LSH with four rounds at most 622 MB,
and less with one; fused at most 120 MB, below both. So LSH saves memory only against
attention that is written out.
"""

import time
from collections.abc import Callable
from typing import Any

import torch

from annotated.attention import MultiHeadAttention
from annotated.masks import causal_mask
from annotated.reformer import LSHSelfAttention
from benchmarks.memory import peak

LENGTH, D, HEADS, CHUNK = 8192, 256, 4, 64
WAYS = ("materialised", "LSH, 4 rounds", "LSH, 1 round", "fused")


class Materialised(MultiHeadAttention):
    """Causal attention written out: scores, mask, softmax, values."""

    def attend(self, q, k, v, mask=None):
        """Return what each position makes of those so far."""
        scores = q @ k.mT * q.shape[-1] ** -0.5
        mask = causal_mask(q.shape[2])
        weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
        return self.output_map((weights @ v).transpose(1, 2).flatten(2))


def attention(way: str) -> Callable[[], Any]:
    """Return a forward and backward pass, after a short one."""
    torch.manual_seed(0)
    if way.startswith("LSH"):
        rounds = int(way.split()[1])
        model = LSHSelfAttention(D, HEADS, CHUNK, rounds=rounds, causal=True)
    else:
        kind = {"materialised": Materialised, "fused": MultiHeadAttention}[way]
        model = kind(D, HEADS, causal=True)

    def work(length: int = LENGTH) -> None:
        model.zero_grad()
        model(torch.randn(1, length, D, requires_grad=True)).sum().backward()

    work(4 * CHUNK)
    model.zero_grad()
    return work


def run() -> dict[str, Any]:
    """Measure all in turn."""
    runs = []
    for way in WAYS:
        entry = {"way": way, "MB": round(peak(attention, way=way), 1)}
        work, began = attention(way), time.process_time()
        work()
        runs.append(entry | {"seconds": round(time.process_time() - began, 3)})
        print(runs[-1], flush=True)
    return {
        "length": LENGTH,
        "d_model": D,
        "heads": HEADS,
        "chunk": CHUNK,
        "runs": runs,
    }
