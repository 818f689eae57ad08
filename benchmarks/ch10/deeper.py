"""Chapter 10: is it one layer that keeps the encoder from comparing names?

The encoder of ``functions`` with two layers, as written and in disguise: to see that a
name stood somewhere before is what a second layer is for (chapter 11).

Bands: macro F1, the means over the seeds, differs by less than 0.05 from one layer's,
both ways. In disguise *ignores a parameter* and *calls its own name* gain at most 0.1:
four thousand functions are too few to learn to compare names.
"""

from typing import Any

from annotated.recipes.classification import (
    CLASSIFICATION_RECIPES,
    functions_task,
    make_classifier,
    measure,
    reader,
    train_classifier,
)
from benchmarks.record import SEEDS


def one(disguise: bool, seed: int) -> dict[str, Any]:
    task = functions_task(disguise)
    recipe = CLASSIFICATION_RECIPES["disguised" if disguise else "functions"]
    recipe = recipe._replace(layers=2)
    model = make_classifier("encoder", task, recipe, seed)
    history = train_classifier(model, task, recipe, seed)
    row = {"disguise": disguise, "seed": seed, **measure(reader(model, task), task)}
    row |= {"cpu_seconds": round(history[-1]["cpu_seconds"], 1)}
    print(row, flush=True)
    return row


def run() -> dict[str, Any]:
    rows = [one(disguise, seed) for disguise in (False, True) for seed in SEEDS]
    return {"labels": functions_task().labels, "rows": rows}
