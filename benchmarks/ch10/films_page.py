"""Chapter 10: the two models that the built page loads to judge a reader's sentence.

A bag of embeddings and the encoder, as `ch10_films` trains them with seed 0. The page
gets a weight for each word of the bag, which is what its vector does to the logit, and
eight bits a number of the encoder's matrices, with a scale for each row. The script is
left in ``_build/films_page.js``, of which ``annotated/page/static/films_model.js`` is a
copy. The sentences for testing are also read with their words shuffled.

Bands: in full precision 0.72 to 0.81 of the test sentences are right. Collapsing the
bag changes no answer but by rounding: at most one in a thousand. With eight bits the
encoder's accuracy changes by at most 0.005; the script has at most 1.3 MB. Shuffled,
the bag gives every answer again; the encoder gives another one to 2 to 15 of a hundred,
and is right at most 0.03 less often, as without positions.
"""

import hashlib
import random
from typing import Any

from annotated.page.packed import pack_films, unpack_films
from annotated.recipes.classification import (
    CLASSIFICATION_RECIPES,
    classify,
    cross_entropy,
    films_task,
    make_classifier,
    train_classifier,
)
from benchmarks.record import ROOT

SEED = 0
SCRIPT = ROOT / "_build" / "films_page.js"


def run() -> dict[str, Any]:
    task, recipe = films_task(), CLASSIFICATION_RECIPES["films"]
    models, seconds = {}, {}
    for kind in ("bag", "encoder"):
        model = make_classifier(kind, task, recipe, SEED)
        history = train_classifier(model, task, recipe, SEED)
        models[kind, "full"] = model.eval()
        seconds[kind] = round(history[-1]["cpu_seconds"], 2)
    bag, encoder = (models[kind, "full"] for kind in seconds)
    script = pack_films("films", bag, encoder, task.words)
    SCRIPT.parent.mkdir(exist_ok=True)
    SCRIPT.write_text(script, "utf-8")
    models["bag", "packed"], models["encoder", "packed"], _ = unpack_films(script)
    draw = random.Random(SEED)
    shuffled = [tuple(draw.sample(text, len(text))) for text in task.texts["test"]]
    rows, answers = [], task.answers["test"]
    for (kind, precision), model in models.items():
        logits = classify(model, task, task.texts["test"])
        others = classify(model, task, shuffled)
        right, still = (
            ((some > 0) == answers.bool()).float().mean().item()
            for some in (logits, others)
        )
        row = {"kind": kind, "precision": precision, "accuracy": round(right, 4)}
        row |= {"nats": round(cross_entropy(logits, answers), 4)}
        changed = ((logits > 0) != (others > 0)).float().mean().item()
        row |= {"shuffled": round(still, 4), "changed": round(changed, 4)}
        print(row, flush=True)
        rows.append(row)
    return {
        "recipe": recipe._asdict(),
        "seed": SEED,
        "learned": len(task.texts["train"]),
        "tested": len(answers),
        "words": len(task.words),
        "cpu_seconds": seconds,
        "bytes": len(script.encode()),
        "sha256": hashlib.sha256(script.encode()).hexdigest(),
        "rows": rows,
    }
