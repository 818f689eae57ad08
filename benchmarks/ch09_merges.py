"""Chapter 09: how many merges, by length, vocabulary and BLEU.

The model of ``multi30k`` with vocabularies of 200 to 8000 merges, seed 0. Each reads
every sentence of the training set once, in batches of up to 1200 positions; so with
fewer merges it takes more steps, of less time each, and the seconds come out alike. The
recipe itself reads each sentence four times. Outputs are greedy, on the test set of
2016. A piece is rare if it occurs fewer than 20 times in the training set.

Bands, before the run: 200 merges are at least 1 BLEU below the best, and 8000 at most
0.5 above 4000. No training takes more than 200 CPU seconds. The reasons: outputs of
twice the length have twice as many places to go wrong, and nearly half of 8000 pieces
are rare.
"""

import time
from collections import Counter
from typing import Any

import torch
from sacrebleu.metrics import BLEU

from annotated.datasets import multi30k
from annotated.recipes.translation import (
    TRANSLATION_RECIPES,
    train_translation,
    translate,
    translation_batches,
    translation_model,
    translation_task,
)

SEED, MERGES, RARE = 0, (200, 1000, 4000, 8000), 20


def one(merges: int) -> dict[str, Any]:
    """Train with so many merges, and translate the test set."""
    recipe = TRANSLATION_RECIPES["multi30k"]._replace(merges=merges)
    task, pairs, steps = translation_task(recipe), 0, 0
    for batch in translation_batches(task, recipe.tokens, 10_000, SEED):
        pairs, steps = pairs + len(batch.source), steps + 1
        if pairs >= len(task.pairs):
            break
    recipe = recipe._replace(steps=steps)
    model = translation_model(recipe, task.cutter, SEED)
    half = {"precision": torch.bfloat16}
    history = train_translation(model, task, recipe, SEED, **half)
    texts, references = zip(*multi30k("test", *recipe.languages), strict=True)
    began = time.process_time()
    outputs = translate(model.eval(), task.cutter, texts)
    seconds = time.process_time() - began
    score = BLEU().corpus_score(outputs, [list(references)])
    occurs = Counter(piece for pair in task.pairs for side in pair for piece in side)
    symbols = task.cutter.target.symbols[3:]
    row = {"merges": merges, "symbols": len(task.cutter.target), "steps": steps}
    row |= {"parameters": sum(p.numel() for p in model.parameters())}
    row |= {"pieces": sum(len(target) for _, target in task.pairs) / len(task.pairs)}
    row |= {"rare": sum(occurs[one] < RARE for one in symbols) / len(symbols)}
    row |= {"cpu_seconds": history[-1]["cpu_seconds"], "search_seconds": seconds}
    row |= {"bleu": score.score, "length": score.sys_len / score.ref_len}
    row["loss"] = sum(record["loss"] for record in history[-50:]) / 50
    print(row, flush=True)
    return row


def run() -> dict[str, Any]:
    """Train once with each number of merges."""
    recipe = TRANSLATION_RECIPES["multi30k"]._asdict() | {"steps": "one pass"}
    return {"recipe": recipe, "seed": SEED, "rows": [one(n) for n in MERGES]}
