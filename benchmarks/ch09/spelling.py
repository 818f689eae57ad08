"""Chapter 09: spelling to sound, ours beside ``nn.Transformer``.

The page's recipe and a model of PyTorch's own layers (same sizes, batches and rates)
learn in turn, step by step. Both write 2000 words of the test split greedily; a word is
right if any pronunciation in the dictionary is met, and of several the nearest counts.

Bands: for every seed ours has from 9 to 11.5 % of phonemes and from 37 to 43 % of words
wrong. The mean over the seeds is at most 0.5 % of phonemes and 1.5 % of words above
PyTorch's, which is the same function of other weights at the beginning.
"""

from statistics import mean
from typing import Any

import torch

from annotated.recipes.translation import (
    TRANSLATION_RECIPES,
    TranslationLoss,
    spelling_errors,
    spelling_task,
    train_translation,
    translation_model,
)
from annotated.search import DecoderCache, Rereader
from benchmarks.record import SEEDS
from benchmarks.translation_peer import Beside, Peer

TESTED = 2000


def one(seed: int) -> list[dict[str, Any]]:
    task, recipe = spelling_task(), TRANSLATION_RECIPES["spelling"]
    cutter = task.cutter
    ours = translation_model(recipe, cutter, seed)
    torch.manual_seed(seed)
    beside = Beside(
        Peer(ours.config),
        TranslationLoss(recipe, cutter),
        task,
        recipe,
        recipe.steps,
        seed,
    )
    history = train_translation(ours, task, recipe, seed, on_step=beside)
    losses = [record["loss"] for record in history]
    seconds = history[-1]["cpu_seconds"]
    rows = []
    for name, model, taken, curve, reader in (
        ("ours", ours, seconds, losses, DecoderCache),
        ("nn.Transformer", beside.model, beside.cpu_seconds, beside.losses, Rereader),
    ):
        rates = spelling_errors(model.eval(), cutter, most=TESTED, reader=reader)
        row = {"name": name, "seed": seed, **rates, "cpu_seconds": taken}
        row["parameters"] = sum(p.numel() for p in model.parameters())
        means = torch.tensor(curve).view(-1, 50).mean(dim=1).tolist()
        row["losses"] = [round(loss, 4) for loss in means]
        print(row, flush=True)
        rows.append(row)
    return rows


def run() -> dict[str, Any]:
    recipe = TRANSLATION_RECIPES["spelling"]
    facts = {"recipe": recipe._asdict(), "tested": TESTED}
    return facts | {"rows": [row for seed in SEEDS for row in one(seed)]}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands."""
    for kind, least, most, room in (
        ("phonemes", 0.09, 0.115, 0.005),
        ("words", 0.37, 0.43, 0.015),
    ):
        ours, theirs = (
            [row[kind] for row in record["rows"] if row["name"] == name]
            for name in ("ours", "nn.Transformer")
        )
        assert least <= min(ours) and max(ours) <= most
        assert mean(ours) <= mean(theirs) + room
