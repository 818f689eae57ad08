"""Chapter 18: a training run in float32, in mixed precision, and in bfloat16 alone.

Six ways (``annotated.chapters.ch18.large.WAYS``), highest rates of 0.003 and 0.0003, 400
steps. All are measured in float32, on text that wasn't read.

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
