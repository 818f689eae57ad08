"""Chapter 13: error against time, LSH attention beside an exact fused kernel.

Vectors of 64 numbers in random order, eight on average around each direction, as in
section 13.6; four heads, causal, chunks of 64, batch 1, one thread; attention alone,
hashing and sorting included. Time: CPU seconds of a forward pass, all in turn, medians
of the rounds. Error: ‖found − exact‖ / ‖exact‖ of the first head's outputs for 512
queries spread over the sequence, with random values; exact is shared-QK attention over
all keys. The fused kernel is exact: its error is 0.

Bands, written before the first recorded run, from ``lsh_cost`` (a whole layer: one
round is faster from 2048 on, four from 16,384 on) and a trial of 1024 vectors (errors
of 0.72, 0.38, 0.16 and 0.07 with 1, 2, 4 and 8 rounds): at 4096 one round is faster
than the kernel and eight aren't; at 32,768 four rounds are faster. Errors fall from one
number of rounds to the next, and grow with the length, because more buckets have more
borders; none is below 0.05.
"""

import statistics
import time
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from annotated.reformer import lsh_attention, lsh_buckets
from benchmarks.record import SEEDS

LENGTHS, ROUNDS, CHUNK, HEADS, WIDTH, TURNS = (
    (4096, 16384, 32768),
    (1, 2, 4, 8),
    64,
    4,
    64,
    3,
)


def vectors(length: int, seed: int) -> tuple[Tensor, Tensor, torch.Generator]:
    """Return queries (h, t, k), around t/8 directions each, values, what drew them."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(HEADS, length // 8, WIDTH, generator=generator)
    which = torch.randint(length // 8, (HEADS, length, 1), generator=generator)
    noise, value = torch.randn(2, HEADS, length, WIDTH, generator=generator)
    query = centres.gather(1, which.expand(-1, -1, WIDTH)) + 0.2 * noise
    return query, value, generator


def exact(query: Tensor, value: Tensor, asking: Tensor) -> Tensor:
    """Return exact outputs (n, v) of the queries of a head at ``asking`` (n,)."""
    scores = query[asking] @ F.normalize(query, dim=-1).T
    hidden = torch.arange(len(query)) >= asking[:, None]  # itself and later
    return scores.masked_fill(hidden, -torch.inf).softmax(dim=-1) @ value


def by_rounds(query: Tensor, value: Tensor, buckets: Tensor) -> Tensor:
    """Return LSH attention, (h, t, v)."""
    return lsh_attention(query, value, buckets, CHUNK, causal=True)


def run() -> dict[str, Any]:
    """Measure errors with each seed, and times with the first."""
    runs = []
    with torch.no_grad():
        for length in LENGTHS:
            errors: dict[int, list[float]] = {rounds: [] for rounds in ROUNDS}
            asking = torch.arange(64, length, (length - 64) // 512)
            number = 2 * length // CHUNK
            for seed in SEEDS:
                query, value, generator = vectors(length, seed)
                true = exact(query[0], value[0], asking)
                for rounds in ROUNDS:
                    ids = lsh_buckets(query[:1], number, rounds, generator)
                    found = by_rounds(query[:1], value[:1], ids)[0, asking]
                    errors[rounds].append(((found - true).norm() / true.norm()).item())
            query, value, generator = vectors(length, 0)
            seconds: dict[str, list[float]] = {}
            for _ in range(TURNS):
                began = time.process_time()
                key = F.normalize(query, dim=-1)
                F.scaled_dot_product_attention(
                    query[None], key[None], value[None], is_causal=True, scale=1.0
                )
                seconds.setdefault("fused", []).append(time.process_time() - began)
                for rounds in ROUNDS:
                    began = time.process_time()
                    ids = lsh_buckets(query, number, rounds, generator)
                    by_rounds(query, value, ids)
                    took = time.process_time() - began
                    seconds.setdefault(str(rounds), []).append(took)
            entry = {"length": length, "errors": {str(r): e for r, e in errors.items()}}
            entry["seconds"] = {n: statistics.median(t) for n, t in seconds.items()}
            runs.append(entry)
            print(entry, flush=True)
    return {"config": {"chunk": CHUNK, "heads": HEADS, "width": WIDTH}, "runs": runs}
