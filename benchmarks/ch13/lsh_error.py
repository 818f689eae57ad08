"""Chapter 13: how far LSH attention is from exact attention, by rounds of hashing.

1024 queries of 128 kinds, slightly noisy (``prototypes``),
chunks of 64. The error is ‖found − exact‖ / ‖exact‖, exact being shared-QK attention
over all pairs; recall is the share of the 1, 8 and 32 keys of the highest scores that a
query meets in the first so many rounds. Beside ours: ours counting a pair as often as
it meets, ours within buckets alone, `transformers` and `reformer-pytorch`, all with the
same scores and the same data. ``make bench NAME=lsh_error`` installs the peers.
"""

from itertools import product
from statistics import median
from typing import Any

import torch

from annotated.chapters.ch13.lsh import (
    exact_attention,
    lost_pairs,
    meetings,
    prototypes,
    recall,
)
from annotated.reformer import lsh_attention, lsh_buckets
from benchmarks.lsh_peers import PEERS, attend

SEEDS, ROUNDS, CHUNK, BUCKETS, TOPS = (
    (0, 1, 2, 3, 4),
    (1, 2, 4, 8, 16),
    64,
    32,
    (1, 8, 32),
)


def relative(found: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the length of the difference, against that of what is exact."""
    return ((found - exact).norm() / exact.norm()).item()


def one(seed: int, causal: bool) -> list[dict[str, Any]]:
    """Measure every way with one seed."""
    torch.manual_seed(seed)
    query, value = prototypes(seed)
    exact = exact_attention(query, value, causal=causal)
    buckets = lsh_buckets(query, BUCKETS, max(ROUNDS))
    met, inside = (meetings(buckets, CHUNK, within) for within in (False, True))
    recalls = {top: recall(query, met, top, causal) for top in TOPS}
    entries = []
    for rounds in ROUNDS:
        first = buckets[:rounds]
        options = CHUNK, causal
        found = {
            "ours": lsh_attention(query, value, first, *options),
            "ours, repeats": lsh_attention(query, value, first, *options, repeats=True),
            "ours, within buckets": exact_attention(
                query, value, inside[:rounds].any(dim=0), causal
            ),
        }
        for peer in PEERS:
            found[peer] = attend(peer, query[None], value[None], rounds, causal)[0]
        entry = {"seed": seed, "causal": causal, "rounds": rounds}
        entry["error"] = {way: relative(out, exact) for way, out in found.items()}
        entry["recall"] = {str(top): recalls[top][rounds - 1] for top in TOPS}
        entry["pairs of a bucket lost"] = lost_pairs(first, met[:rounds])
        entries.append(entry)
        print(entry, flush=True)
    return entries


def run() -> dict[str, Any]:
    with torch.no_grad():
        runs = [e for c in (False, True) for seed in SEEDS for e in one(seed, c)]
    config = {"chunk": CHUNK, "buckets": BUCKETS, "rounds": ROUNDS, "tops": TOPS}
    return {"config": config, "runs": runs}


def bands(record: dict[str, Any]) -> None:
    """Check medians over the seeds, and what page 13c says of each of them."""
    for causal, rounds in product((False, True), ROUNDS):
        runs = [
            run["error"]
            for run in record["runs"]
            if (run["causal"], run["rounds"]) == (causal, rounds)
        ]
        error = {way: median(run[way] for run in runs) for way in runs[0]}
        ours, peers = error["ours"], min(error[peer] for peer in PEERS)
        assert ours < 1.25 * peers or rounds > 1
        assert ours < peers or rounds < 4
        assert ours < peers / 3 or rounds < 16
        # transformers counts a pair as often as it meets
        assert abs(error["ours, repeats"] / error["transformers"] - 1) < 0.25
        assert error["ours, within buckets"] > ours
        if rounds == 16 and not causal:
            for run in runs:
                assert run["ours"] < 0.2 * min(run[peer] for peer in PEERS)
