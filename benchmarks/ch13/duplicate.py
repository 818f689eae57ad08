"""Chapter 13: the duplicate task, trained one way and asked in another.

Kitaev et al. (2020), table 2, at the size of a book: words of 31 symbols in place of
511, one layer of width 64. Each model reads 0 w 0 w and learns the second w; chunks of
4 positions among 63. The share of symbols foretold is over 256 fresh words.

Expected: whoever is asked to attend exactly is right, whatever it was trained by. (In
the paper, models trained by LSH are lost then: 0.8 %.)
"""

from itertools import pairwise
from typing import Any

from annotated.chapters.ch13.lsh import (
    DUPLICATE,
    TRAINED,
    duplicates_right,
    train_duplicate,
)
from benchmarks.record import SEEDS


def run() -> dict[str, Any]:
    runs = []
    for seed in SEEDS:
        for kind in TRAINED:
            model, seconds = train_duplicate(kind, seed)
            entry = {"trained": kind, "seed": seed, "cpu_seconds": seconds}
            entry["right"] = duplicates_right(model)
            runs.append(entry)
            print(entry, flush=True)
    return {"config": DUPLICATE, "runs": runs}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, for every seed."""
    right = {kind: [] for kind in TRAINED}
    for run in record["runs"]:
        shares = run["right"]
        right[run["trained"]].append(shares["LSH-1"])
        assert shares["full"] >= 0.99 and shares["LSH-8"] >= 0.97
        by_rounds = [shares[f"LSH-{rounds}"] for rounds in (1, 2, 4, 8)]
        assert all(b >= a - 0.01 for a, b in pairwise(by_rounds))
    assert all(0.4 <= share <= 0.85 for share in right["full"])
    assert min(right["LSH-1"]) > max(right["full"]) + 0.05
