"""Chapter 18: checkpointing with and without the state of the random generator.

Dropout of 0.1, each block checkpointed, 400 steps at 0.003.

Expected: stored and checkpointed have the same losses, bit for bit; with new masks on
the way back, it is worse.
"""

from typing import Any

from annotated.chapters.ch18.large import (
    LARGE_RECIPE,
    STORING,
    held_out_bits,
    train_checkpointed,
)
from annotated.recipes.text import read_text
from benchmarks.record import SEEDS


def run() -> dict[str, Any]:
    text, rows, same = read_text(LARGE_RECIPE.text), [], []
    for seed in SEEDS:
        losses = {}
        for way in STORING:
            model, losses[way] = train_checkpointed(way, text.train, seed)
            bits = held_out_bits(model, text.validation)
            row = {"way": way, "seed": seed, "bits": bits}
            print(row, flush=True)
            rows.append(row)
        same.append(losses["stored"] == losses["checkpointed"])
    return {"recipe": LARGE_RECIPE._asdict(), "same": same, "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, for every seed."""
    assert len(record["same"]) == len(SEEDS) and all(record["same"])
    bits = {(row["way"], row["seed"]): row["bits"] for row in record["rows"]}
    gaps = [bits["drawn again", seed] - bits["stored", seed] for seed in SEEDS]
    assert min(gaps) > 0.03
