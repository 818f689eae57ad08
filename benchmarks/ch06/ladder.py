"""Chapter 06: what each part of the Transformer is worth, added one at a time.

Dates in sixteen languages, into American English, symbol by symbol. The lowest rung has
cross-attention alone; the last one is the whole model.
"""

from collections.abc import Collection
from typing import Any

from annotated.chapters.ch06.ladder import (
    LADDER,
    LADDER_PARTS,
    LADDER_TRAINING,
    ladder_pairs,
    rung_scores,
    train_rung,
    translations,
)
from annotated.chapters.ch06.ladder_records import by_parts
from benchmarks.record import SEEDS

WIDTHS = (64, 1024)  # of the networks; the ladder has 256
EXAMPLES = [text for text, _ in ladder_pairs(14, "test", 1)]


def one(name: str, parts: Collection[str], seed: int, **changes: Any) -> dict[str, Any]:
    rung = train_rung(parts, seed, **changes)
    loss, exact = rung_scores(rung)
    row = {
        "rung": name,
        "seed": seed,
        "parameters": sum(p.numel() for p in rung.model.parameters()),
        "loss": loss,
        "exact": exact,
        "cpu_seconds": rung.history[-1]["cpu_seconds"],
    }
    print(row, flush=True)
    row["written"] = translations(rung, EXAMPLES)
    row["losses"] = [round(record["loss"], 4) for record in rung.history]
    return row


def run() -> dict[str, Any]:
    rungs = {"cross-attention alone": ()}
    for count, part in enumerate(LADDER_PARTS, start=1):
        rungs[f"+ {part}"] = LADDER_PARTS[:count]
    rungs["all but the norm"] = [part for part in LADDER_PARTS if part != "norm"]
    return {
        "config": LADDER,
        "training": LADDER_TRAINING,
        "parts": list(LADDER_PARTS),
        "tested": 1000,
        "examples": EXAMPLES,
        "rows": [one(*rung, seed) for seed in SEEDS for rung in rungs.items()],
        "widths": [
            one(f"d_ff {width}", LADDER_PARTS, seed, d_ff=width)
            for seed in SEEDS
            for width in WIDTHS
        ],
    }


def bands(record: dict[str, Any]) -> None:
    """Check the bands, for every seed."""
    assert (record["config"], record["training"]) == (LADDER, LADDER_TRAINING)
    assert record["parts"] == [*LADDER_PARTS]
    runs = by_parts(record, {"rows": []})
    rungs = ["1" * count + "0" * (5 - count) for count in range(6)]
    sums = [sum(row["loss"] for row in runs[bits]) for bits in rungs]
    assert sums == sorted(sums, reverse=True)
    for rows in zip(*(runs[bits] for bits in ("00000", "11111", "11101")), strict=True):
        first, last, bare = (row["loss"] for row in rows)
        assert last < first / 3 and last < bare
