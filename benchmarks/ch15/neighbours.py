"""Chapter 15: what a model learns that can't look at its neighbours, or only at them.

The page's recipe, its short texts alone, for 400 steps: as it is; with the tokens on
the left and right hidden from each token in both layers ("hidden"); and with all but
these and itself hidden ("alone"). The loss is that of masks in held-out texts of 32
tokens.

Bands, for the means over the seeds: as it is, 1.9 to 2.4 after 400 steps. Alone, the
line is left sooner (at 160 steps at least 0.3 lower) and the end is no worse than 0.2
above. Hidden, 160 steps make no difference of more than 0.2, for what is learned until
then needs no place; but after 400 it is still above 2.9 (missed: 2.4 to 2.5).
"""

from typing import Any

import torch

from annotated.masks import padding_mask
from annotated.recipes.common import one_cycle
from annotated.recipes.pretraining import (
    PRETRAINING_RECIPES,
    code_texts,
    cut_texts,
    guess,
    make_bert,
    masked_batches,
    masked_loss,
    questions,
    unigram_loss,
)
from annotated.training import fit
from benchmarks.record import SEEDS

STEPS, EVERY = 400, 20
KINDS = "as it is", "hidden", "alone"


def only(model: torch.nn.Module, kind: str) -> None:
    """Let a model see what its ``kind`` may."""
    whole = model.forward

    def forward(tokens, segments=None, mask=None):
        places = torch.arange(tokens.shape[1])
        far = (places[:, None] - places).abs()
        seen = {"as it is": far >= 0, "hidden": far != 1, "alone": far <= 1}[kind]
        return whole(tokens, segments, padding_mask(tokens) & seen)

    model.forward = forward


def run() -> dict[str, Any]:
    texts, rows = code_texts(), []
    recipe = PRETRAINING_RECIPES["code"]._replace(long_steps=0)
    gaps = questions(cut_texts(texts.validation, recipe.short)[:256], texts.words)
    for seed in SEEDS:
        for kind in KINDS:
            model = make_bert(texts.words, recipe, seed)
            only(model, kind)
            losses = []

            def look(step: int, model=model, losses=losses) -> None:
                if step % EVERY == 0:
                    losses.append(round(guess(model, gaps)["loss"], 4))

            optimizer, schedule = one_cycle(model, recipe.rate, recipe.steps)
            batches = (
                batch
                for batch, _ in zip(
                    masked_batches(texts, recipe, seed), range(STEPS), strict=False
                )
            )
            options = {"schedule": schedule, "clip": 1.0, "on_step": look}
            history = fit(model, masked_loss, batches, optimizer, **options)
            row = {"kind": kind, "seed": seed, "losses": losses}
            row["cpu_seconds"] = round(history[-1]["cpu_seconds"], 1)
            print(kind, seed, losses[7], losses[-1], flush=True)
            rows.append(row)
    return {
        "recipe": recipe._asdict(),
        "every": EVERY,
        "line": round(unigram_loss(texts, gaps), 4),
        "rows": rows,
    }


def bands(record: dict[str, Any]) -> None:
    """Check what page 15 says of all seeds: alone it doesn't wait, hidden it does."""
    losses = {(row["kind"], row["seed"]): row["losses"] for row in record["rows"]}
    early, late = (
        {
            kind: [losses[kind, seed][step // EVERY - 1] for seed in SEEDS]
            for kind in KINDS
        }
        for step in (160, STEPS)
    )
    assert max(early["alone"]) < min(early["as it is"]) - 1
    assert max(late["alone"]) < min(late["as it is"])
    both = zip(early["as it is"], early["hidden"], strict=True)
    assert max(abs(usual - hidden) for usual, hidden in both) < 0.1
    assert min(late["hidden"]) > max(late["as it is"]) + 0.3
