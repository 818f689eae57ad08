"""Chapter 09: Multi30k, English to German, ours beside ``nn.Transformer``.

The recipe of ``annotated.train translation``, in bfloat16, on one core. Beside the
first seed a model of PyTorch's own layers learns from the same batches at the same
rates, step by step in turn. The test set of 2016 is written greedily, by ours also with
a beam of 5; BLEU is sacrebleu's, cased.

Multi30k may be used for research and education, so neither texts nor merges nor weights
are recorded.

Bands: for every seed at least 28 BLEU, greedily, in at most 600 CPU seconds; PyTorch's
at most 1 BLEU above ours of the same seed; a beam of 5 adds 0 to 2 BLEU.
"""

import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from annotated.data.datasets import multi30k
from annotated.metrics import sacrebleu_score
from annotated.recipes.translation import (
    TRANSLATION_RECIPES,
    Cutter,
    Recipe,
    TranslationLoss,
    Translations,
    train_translation,
    translate,
    translation_model,
    translation_task,
)
from annotated.search import DecoderCache, Rereader
from benchmarks.record import SEEDS
from benchmarks.translation_peer import Beside, Peer

HALF = torch.bfloat16


def scored(
    model: nn.Module,
    cutter: Cutter,
    languages: tuple[str, str],
    beam: int = 1,
    reader: type = DecoderCache,
) -> dict[str, Any]:
    """Return BLEU on the test set, its signature, and what the search took."""
    texts, references = zip(*multi30k("test", *languages), strict=True)
    began = time.process_time()
    outputs = translate(model.eval(), cutter, texts, beam, reader=reader)
    seconds = time.process_time() - began
    bleu, signature = sacrebleu_score(outputs, references)
    return {"bleu": bleu, "signature": signature, "search_seconds": seconds}


def one(task: Translations, recipe: Recipe, seed: int) -> list[dict[str, Any]]:
    cutter, first = task.cutter, seed == SEEDS[0]
    ours = translation_model(recipe, cutter, seed)
    torch.manual_seed(seed)
    peer, loss = Peer(ours.config), TranslationLoss(recipe, cutter)
    beside = Beside(peer, loss, task, recipe, recipe.steps, seed, HALF)
    options = {"precision": HALF, "on_step": beside if first else None}
    history = train_translation(ours, task, recipe, seed, **options)
    losses = [record["loss"] for record in history]
    seconds = history[-1]["cpu_seconds"]
    models = [("ours", ours, losses, seconds, DecoderCache)]
    if first:
        others = beside.losses, beside.cpu_seconds
        models.append(("nn.Transformer", peer, *others, Rereader))
    rows = []
    for name, model, curve, taken, reader in models:
        row = {"name": name, "seed": seed, "cpu_seconds": taken}
        row["parameters"] = sum(p.numel() for p in model.parameters())
        row |= scored(model, cutter, recipe.languages, reader=reader)
        if name == "ours":
            row["beam 5"] = scored(model, cutter, recipe.languages, beam=5)
        means = torch.tensor(curve).view(-1, 50).mean(dim=1).tolist()
        row["losses"] = [round(mean, 4) for mean in means]
        print(row, flush=True)
        rows.append(row)
    return rows


def translated(languages: tuple[str, str], seeds: Sequence[int]) -> dict[str, Any]:
    """Learn one language from another with every seed."""
    recipe = TRANSLATION_RECIPES["multi30k"]._replace(languages=languages)
    began = time.process_time()
    task = translation_task(recipe)
    facts = {"recipe": recipe._asdict(), "precision": "bfloat16"}
    facts |= {"symbols": len(task.cutter.source), "pairs": len(task.pairs)}
    facts |= {"prepare_seconds": time.process_time() - began}
    return facts | {"rows": [row for seed in seeds for row in one(task, recipe, seed)]}


def run() -> dict[str, Any]:
    return translated(("en", "de"), SEEDS)
