"""Chapter 10: four ways to pool, and the slip of pooling padding as well.

The page's functions and recipe: mean over real tokens, first token, maximum, attention;
and a model that attends to padding and averages it, in training and after. Of that one
(and of the mean) it is counted how many of 300 functions for testing get other labels
if they are padded to 128 tokens, as they are beside a longer neighbour.

Bands: the means over the seeds of macro F1 of all poolings but the first token's differ
by less than 0.05, which is about what seeds differ by; the first token, which has to
fetch all by one attention, is at most 0.03 above the best. The slip costs less than
0.05 of F1, as training has shown it padding, too; but it flips from 1 to 30 functions
in a hundred (missed by one seed: 31), and the mean none.
"""

from typing import Any

from annotated.recipes.classification import (
    CLASSIFICATION_RECIPES,
    flips,
    functions_task,
    make_classifier,
    measure,
    reader,
    train_classifier,
)
from benchmarks.record import SEEDS

KINDS = ("encoder", "first", "max", "attention", "unmasked")
PADDED = 300


def run() -> dict[str, Any]:
    task, recipe, rows = functions_task(), CLASSIFICATION_RECIPES["functions"], []
    texts = task.texts["test"][:PADDED]
    for seed in SEEDS:
        for kind in KINDS:
            model = make_classifier(kind, task, recipe, seed)
            history = train_classifier(model, task, recipe, seed)
            row = {"kind": kind, "seed": seed, **measure(reader(model, task), task)}
            row["cpu_seconds"] = round(history[-1]["cpu_seconds"], 1)
            if kind in ("encoder", "unmasked"):
                row["flips"] = flips(model, task, texts, recipe.max_len)
            print(row, flush=True)
            rows.append(row)
    return {"recipe": recipe._asdict(), "padded": PADDED, "rows": rows}
