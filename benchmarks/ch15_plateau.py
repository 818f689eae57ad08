"""Chapter 15: the loss that stays at the entropy of single tokens, and what keeps it.

A BERT learns from docstrings. The line is the loss of guessing each token by its share
of the text, which is what a model knows before it looks at the context. Measured is the
step at which the loss on held-out text is first 0.3 nats below that line, looked at
every 20 steps; 0 if it never is. The learning rate rises for as many steps as a tenth
of all, and stays.

Bands, before the run, after a look at the training loss of one seed with another
beginning (it was 0.5 nats below the line after 400 steps): as it is, the line is left
after 150 to 600 steps with every seed. A third of the rate takes at least 1.5 times as
many steps (or never leaves), a quarter of the batch at least 1.3 times. Without
warm-up nothing is gained: it isn't left sooner than with it by more than 60 steps.
Three times the rate is too much for norms after each sum: it leaves later than as it
is, or never, and without warm-up it never does with two seeds or more. Whatever
stays, stays at the line: its last loss is within 0.3 of it.
"""

from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR

from annotated.recipes.pretraining import (
    PRETRAINING_RECIPES,
    guess,
    make_bert,
    masked_batches,
    masked_loss,
    prose_texts,
    questions,
    unigram_loss,
)
from annotated.training import fit
from benchmarks.record import SEEDS

STEPS, EVERY, BELOW, RATE, SIZE = 900, 20, 0.3, 3e-3, 32
KINDS = {  # rate, texts in a batch, steps of warming up
    "as it is": (RATE, SIZE, STEPS // 10),
    "a third of the rate": (RATE / 3, SIZE, STEPS // 10),
    "three times the rate": (3 * RATE, SIZE, STEPS // 10),
    "three times the rate, no warm-up": (3 * RATE, SIZE, 0),
    "no warm-up": (RATE, SIZE, 0),
    "a quarter of the batch": (RATE, SIZE // 4, STEPS // 10),
}


def run() -> dict[str, Any]:
    """Train every kind with every seed."""
    texts, rows = prose_texts(), []
    recipe = PRETRAINING_RECIPES["prose"]._replace(steps=STEPS, masked=0.15)
    asked = questions(texts.validation[:128], texts.words)
    line = unigram_loss(texts, asked)
    for seed in SEEDS:
        for kind, (rate, size, warmup) in KINDS.items():
            model = make_bert(texts.words, recipe, seed)
            optimizer = torch.optim.Adam(model.parameters(), rate, betas=(0.9, 0.98))
            schedule = LambdaLR(
                optimizer, lambda done, up=warmup: min(1.0, (done + 1) / (up + 1))
            )
            batches = masked_batches(texts, recipe._replace(size=size), seed)
            losses = []

            def look(step: int, model=model, losses=losses) -> None:
                if step % EVERY == 0:
                    losses.append(round(guess(model, asked)["loss"], 4))

            options = {"schedule": schedule, "clip": 1.0, "on_step": look}
            history = fit(model, masked_loss, batches, optimizer, **options)
            below = (i for i, loss in enumerate(losses, 1) if loss < line - BELOW)
            row = {"kind": kind, "seed": seed, "left": EVERY * next(below, 0)}
            row |= {"last": losses[-1], "losses": losses}
            row["cpu_seconds"] = round(history[-1]["cpu_seconds"], 1)
            print({**row, "losses": "…"}, flush=True)
            rows.append(row)
    return {
        "recipe": recipe._asdict(),
        "kinds": {kind: list(given) for kind, given in KINDS.items()},
        "every": EVERY,
        "below": BELOW,
        "line": round(line, 4),
        "vocabulary": len(texts.words),
        "rows": rows,
    }
