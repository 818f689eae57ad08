"""Chapter 18: a training run in float32, in mixed precision, and in bfloat16 alone.

Six ways (``ch18.large.WAYS``), highest rates of 0.003 and 0.0003, 400
steps, three seeds. All are measured in float32, on text that wasn't read.

Expected: bfloat16 alone is worse at the lower rate, as the smaller the updates are, the
more of them round to nothing. "Nearest" is a control: is it the weights, or Adam's
averages, which "bfloat16" rounds, too?
"""

from typing import Any

from annotated.chapters.ch18.large import (
    LARGE_RECIPE,
    WAYS,
    held_out_bits,
    train_halves,
)
from annotated.recipes.text import read_text
from benchmarks.record import SEEDS

RATES = (3e-3, 3e-4)


def run() -> dict[str, Any]:
    text, rows = read_text(LARGE_RECIPE.text), []
    for rate in RATES:
        for seed in SEEDS:
            for way in WAYS:
                model, _ = train_halves(way, text.train, rate, seed)
                bits = held_out_bits(model, text.validation)
                row = {"rate": rate, "way": way, "seed": seed, "bits": bits}
                print(row, flush=True)
                rows.append(row)
    return {"recipe": LARGE_RECIPE._asdict(), "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, for every seed, and the control."""
    rows = record["rows"]
    bits = {(row["rate"], row["way"], row["seed"]): row["bits"] for row in rows}
    for seed in SEEDS:
        fast, slow = (
            {way: bits[rate, way, seed] - bits[rate, "float32", seed] for way in WAYS}
            for rate in RATES
        )
        for way in ("autocast", "stochastic", "master"):
            assert abs(fast[way]) < 0.06 and abs(slow[way]) < 0.06
        assert 0.01 < fast["bfloat16"] < 0.2 and slow["bfloat16"] > 0.15
        # the page: it's the weights that matter
        assert slow["nearest"] > max(0.15, 0.8 * slow["bfloat16"])
