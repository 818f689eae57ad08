"""Chapter 19: the trained models that its benchmarks share.

A model is left in ``_build``, with its curve, and is used again by the next benchmark
if the first steps of today's code have the losses that it had.
"""

import sys
from math import isclose
from typing import Any

import torch

from annotated.recipes.refinement import refinement_model, train_refinement
from annotated.recipes.translation import Translations, spelling_task, translate
from annotated.training import evaluating
from annotated.transformer import Transformer
from benchmarks.record import ROOT, STEPS, TOLERANCE

FOLDER = ROOT / "_build" / "ch19"
DISTILLED = "distilled"  # mask-predict that learns what the autoregressive model wrote


def trained(kind: str, seed: int) -> tuple[Transformer, dict[str, Any]]:
    """Return a trained model in evaluation mode, and what its training took.

    Args:
        kind: one of ``annotated.recipes.refinement.STEPS``, or ``DISTILLED``.
    """
    path = FOLDER / f"{kind}-{seed}.pt".replace(" ", "_")
    task = written_task(seed) if kind == DISTILLED else spelling_task()
    kind = "mask-predict" if kind == DISTILLED else kind
    model = refinement_model(kind, task.cutter, seed)
    if path.exists():
        saved = torch.load(path, weights_only=True)
        # a benchmark begins with this one, whose first steps are recorded
        most = STEPS if (kind, seed) == ("autoregressive", 0) else 2
        again = train_refinement(kind, model, task, seed, most)
        pairs = zip(saved["first"], (one["loss"] for one in again), strict=False)
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


def written_task(seed: int) -> Translations:
    """Return the words for training with what the autoregressive model wrote, once."""
    task, path = spelling_task(), FOLDER / f"written-{seed}.pt"
    words = list(dict.fromkeys(word for word, _ in task.pairs))
    if path.exists():
        lines = torch.load(path, weights_only=True)
    else:
        model, _ = trained("autoregressive", seed)
        with evaluating(model):
            lines = translate(model, task.cutter, words, size=512)
        torch.save(lines, path)
    pairs = [(w, tuple(one.split())) for w, one in zip(words, lines, strict=True)]
    return task._replace(pairs=[pair for pair in pairs if pair[1]])


if __name__ == "__main__":
    for one in sys.argv[1:]:
        kind, _, seed = one.rpartition("-")
        print(one, trained(kind, int(seed))[1]["train_cpu_seconds"], flush=True)
