"""Chapter 06: the whole model of the ladder, trained ten times as long, with one seed.

``benchmarks/ladder.py`` takes 300 steps. No band: the run shows what the model of the
page lacks, parts or steps.
"""

from typing import Any

from annotated.recipes_ladder import (
    LADDER,
    LADDER_PARTS,
    LADDER_TRAINING,
    rung_scores,
    train_rung,
    translations,
)

LETTERS = ["7 mars 2024", "giovedì 7 marzo 2024", "1936. márc. 20.", "20 Oca 1973"]


def run() -> dict[str, Any]:
    """Train the whole model for 3000 steps."""
    training = LADDER_TRAINING | {"steps": 3000}
    rung = train_rung(LADDER_PARTS, seed=0, steps=training["steps"])
    loss, exact = rung_scores(rung)
    return {
        "config": LADDER,
        "training": training,
        "seed": 0,
        "tested": 1000,
        "loss": loss,
        "exact": exact,
        "cpu_seconds": rung.history[-1]["cpu_seconds"],
        "written": dict(zip(LETTERS, translations(rung, LETTERS), strict=True)),
    }
