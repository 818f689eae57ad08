"""Chapter 09: five sentences of the book's own, by the model that learned Multi30k.

The recipe of ``multi30k``, seed 0, greedily. The sentences were written before the
model saw any of them: captions, one with its verb in two places in German, one that is
no caption, one with words that captions lack. It shows what a BLEU of 30 looks like.

Multi30k may be used for research and education, so weights and merges aren't recorded.
"""

from typing import Any

import torch

from annotated.chapters.ch09.drawings import cross_maps
from annotated.recipes.translation import (
    TRANSLATION_RECIPES,
    train_translation,
    translate,
    translation_model,
    translation_task,
)

SEED = 0
SENTENCES = (
    "A man in a red coat is walking his dog through the park.",
    "Two children are playing football in the rain.",
    "The woman has seen a brown dog on the beach.",
    "An old lady doesn't like the soup that her grandson has cooked.",
    "The machine translates every caption, whether it has understood it or not.",
)


def run() -> dict[str, Any]:
    recipe = TRANSLATION_RECIPES["multi30k"]
    task = translation_task(recipe)
    cutter, model = task.cutter, translation_model(recipe, task.cutter, SEED)
    half = {"precision": torch.bfloat16}
    history = train_translation(model, task, recipe, SEED, **half)
    outputs = translate(model.eval(), cutter, SENTENCES)
    rows = []
    for text, said in zip(SENTENCES, outputs, strict=True):
        maps, written = cross_maps(model, cutter, text)
        means = maps.mean(dim=1).tolist()  # a map for each layer
        rounded = [[[round(w, 3) for w in row] for row in one] for one in means]
        row = {"source": text, "said": said, "pieces": cutter.cut(text)}
        row |= {"written": written}
        print(row, flush=True)
        rows.append(row | {"maps": rounded})
    facts = {"recipe": recipe._asdict(), "precision": "bfloat16", "seed": SEED}
    return facts | {"cpu_seconds": history[-1]["cpu_seconds"], "rows": rows}
