"""Chapter 19: the trained models that its benchmarks share.

A model is left in ``_build``, with its curve, and is used again by the next benchmark
if the first steps of today's code have the losses that it had.
"""

import sys
from math import isclose
from typing import Any

import torch

from annotated.recipes.refinement import refinement_model, train_refinement
from annotated.recipes.translation import Translations, spelling_task
from annotated.transformer import Transformer
from benchmarks.record import ROOT, STEPS, TOLERANCE

FOLDER = ROOT / "_build" / "ch19"


def trained(
    kind: str, seed: int, task: Translations | None = None, name: str = ""
) -> tuple[Transformer, dict[str, Any]]:
    """Return a trained model in evaluation mode, and what its training took.

    Args:
        kind: one of ``annotated.recipes.refinement.STEPS``.
        task: what it learns from; the dictionary if not given.
        name: of the file; the ``kind`` if not given.
    """
    task = task or spelling_task()
    path = FOLDER / f"{name or kind}-{seed}.pt".replace(" ", "_")
    model = refinement_model(kind, task.cutter, seed)
    if path.exists():
        again = train_refinement(kind, model, task, seed, STEPS)
        saved = torch.load(path, weights_only=True)
        pairs = zip(saved["first"], (one["loss"] for one in again), strict=True)
        if all(isclose(*pair, rel_tol=TOLERANCE) for pair in pairs):
            model.load_state_dict(saved["state_dict"])
            return model.eval(), saved["facts"]
        model = refinement_model(kind, task.cutter, seed)
    history = train_refinement(kind, model, task, seed)
    losses = torch.tensor([one["loss"] for one in history])
    facts = {
        "steps": len(history),
        "train_cpu_seconds": round(history[-1]["cpu_seconds"], 1),
        "parameters": sum(p.numel() for p in model.parameters()),
        "losses": [round(x, 4) for x in losses.view(-1, 50).mean(dim=1).tolist()],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    saved = {"state_dict": model.state_dict(), "facts": facts}
    torch.save(saved | {"first": losses[:STEPS].tolist()}, path)
    return model.eval(), facts


if __name__ == "__main__":
    for one in sys.argv[1:]:
        kind, _, seed = one.rpartition("-")
        print(one, trained(kind, int(seed))[1]["train_cpu_seconds"], flush=True)
