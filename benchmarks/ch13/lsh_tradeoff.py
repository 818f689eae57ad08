"""Chapter 13: error against time, LSH attention beside an exact fused kernel.

Vectors of 64 numbers in random order, eight on average around each direction, as in
section 13.6; four heads, causal, chunks of 64, batch 1, one thread; attention alone,
hashing and sorting included. Time: CPU seconds of a forward pass, all in turn, medians
of the rounds. Error: ‖found − exact‖ / ‖exact‖ of the first head's outputs for 512
queries spread over the sequence, with random values; exact is shared-QK attention over
all keys. The fused kernel is exact: its error is 0. Queries have a length of 8, as in
section 13.6, or of 16: sharper, so that a few keys carry the weight at any length.

Expected: at a length of 8 the light keys, each next to nothing, carry half of the
weight together, so errors are large and grow with the length.
"""

import statistics
import time
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from annotated.reformer import lsh_attention, lsh_buckets
from benchmarks.record import SEEDS

LENGTHS, ROUNDS, TURNS = (4096, 16384, 32768), (1, 2, 4, 8), 3
SHARPNESS = {8: 1.0, 16: 2.0}  # a query's length: what its scores are multiplied by
CHUNK, HEADS, WIDTH = 64, 4, 64


def vectors(length: int, seed: int) -> tuple[Tensor, Tensor, torch.Generator]:
    """Return queries (h, t, k), around t/8 directions each, values, what drew them."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(HEADS, length // 8, WIDTH, generator=generator)
    which = torch.randint(length // 8, (HEADS, length, 1), generator=generator)
    noise, value = torch.randn(2, HEADS, length, WIDTH, generator=generator)
    query = centres.gather(1, which.expand(-1, -1, WIDTH)) + 0.2 * noise
    return query, value, generator


def exact(query: Tensor, value: Tensor, asking: Tensor, scale: float) -> Tensor:
    """Return exact outputs (n, v) of the queries of a head at ``asking`` (n,)."""
    scores = scale * query[asking] @ F.normalize(query, dim=-1).T
    hidden = torch.arange(len(query)) >= asking[:, None]  # itself and later
    return scores.masked_fill(hidden, -torch.inf).softmax(dim=-1) @ value


def errors(length: int, seed: int) -> dict[str, dict[str, float]]:
    """Return the errors by length of the queries and number of rounds."""
    (query, *_), (value, *_), generator = vectors(length, seed)
    asking = torch.arange(64, length, (length - 64) // 512)
    ids = lsh_buckets(query, 2 * length // CHUNK, max(ROUNDS), generator)
    found: dict[str, dict[str, float]] = {}
    for size, scale in SHARPNESS.items():
        true = exact(query, value, asking, scale)
        for rounds in ROUNDS:
            some = lsh_attention(query, value, ids[:rounds], CHUNK, True, scale=scale)
            off = (some[asking] - true).norm() / true.norm()
            found.setdefault(str(size), {})[str(rounds)] = off.item()
    return found


def seconds(length: int) -> dict[str, float]:
    """Return the CPU seconds of the kernel and of LSH attention by rounds, in turn."""
    query, value, generator = vectors(length, 0)
    costs: dict[str, list[float]] = {}
    for _ in range(TURNS):
        began = time.process_time()
        given = (x[None] for x in (query, F.normalize(query, dim=-1), value))
        F.scaled_dot_product_attention(*given, is_causal=True, scale=1.0)
        costs.setdefault("fused", []).append(time.process_time() - began)
        for rounds in ROUNDS:
            began = time.process_time()
            ids = lsh_buckets(query, 2 * length // CHUNK, rounds, generator)
            lsh_attention(query, value, ids, CHUNK, True)
            costs.setdefault(str(rounds), []).append(time.process_time() - began)
    return {way: statistics.median(cost) for way, cost in costs.items()}


def run() -> dict[str, Any]:
    runs = []
    with torch.no_grad():
        for length in LENGTHS:
            entry: dict[str, Any] = {"length": length, "seconds": seconds(length)}
            entry["seeds"] = [errors(length, seed) for seed in SEEDS]
            runs.append(entry)
            print(entry, flush=True)
    return {"config": {"chunk": CHUNK, "heads": HEADS, "width": WIDTH}, "runs": runs}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, errors for every seed."""
    for run in record["runs"]:
        for blunt, sharp in (seed.values() for seed in run["seeds"]):
            for row in (blunt, sharp):
                assert [*row.values()] == sorted(row.values(), reverse=True)
            assert 0.05 < sharp["8"] < min(0.6, blunt["8"])
            assert blunt["8"] > (1 if run["length"] >= 16384 else 0.25)
    short, *_, long = (run["seconds"] for run in record["runs"])
    assert short["1"] < short["fused"] < short["8"] and long["4"] < long["fused"]
