"""Chapter 09: the larger model that the built page loads to pronounce what one types.

About ten CPU minutes, once. The page gets eight bits a weight: each row of a matrix is
scaled so that its largest weight is 127, and rounded; vectors stay as they are. The
weights are left in ``_build/spelling_page.pt``.

Bands, on 2000 words of the test split, greedily: at most 8 % of phonemes (missed: 8.1)
and 33 % of words are wrong; the small model had 10 % and 39 % in a tenth of the time.
With eight bits neither rate changes by more than 0.3 %. Labels aren't smoothed, so that
the page can show what the model believes.
"""

import copy
from statistics import mean
from typing import Any

import torch
from torch import nn

from annotated.recipes.translation import (
    TRANSLATION_RECIPES,
    spelling_errors,
    spelling_task,
    train_translation,
    translation_model,
)
from benchmarks.record import ROOT, read

NAME, SEED, TESTED = "spelling, page", 0, 2000
WEIGHTS = ROOT / "_build" / "spelling_page.pt"


def eight_bits(model: nn.Module) -> nn.Module:
    """Return the model whose matrices have eight bits a weight, and a scale a row."""
    rounded = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in rounded.parameters():
            if parameter.dim() == 2:
                scale = parameter.abs().amax(dim=1, keepdim=True) / 127
                parameter.copy_((parameter / scale).round() * scale)
    return rounded


def run() -> dict[str, Any]:
    task, recipe = spelling_task(), TRANSLATION_RECIPES[NAME]
    cutter = task.cutter
    model = translation_model(recipe, cutter, SEED)
    half = {"precision": torch.bfloat16}
    history = train_translation(model, task, recipe, SEED, **half)
    model.eval()
    config = {"source_vocab": len(cutter.source), "target_vocab": len(cutter.target)}
    saved = {"state_dict": model.state_dict(), "config": config | recipe.model}
    saved |= {"source": cutter.source.symbols, "target": cutter.target.symbols}
    WEIGHTS.parent.mkdir(exist_ok=True)
    torch.save(saved, WEIGHTS)
    rows = []
    for bits, one in ((32, model), (8, eight_bits(model))):
        for beam in (1, 5):
            rates = spelling_errors(one, cutter, most=TESTED, beam=beam)
            rows.append({"bits": bits, "beam": beam, **rates})
            print(rows[-1], flush=True)
    losses = torch.tensor([record["loss"] for record in history])
    return {
        "recipe": recipe._asdict(),
        "precision": "bfloat16",
        "seed": SEED,
        "parameters": sum(p.numel() for p in model.parameters()),
        "cpu_seconds": history[-1]["cpu_seconds"],
        "losses": [round(x, 4) for x in losses.view(-1, 100).mean(dim=1).tolist()],
        "tested": TESTED,
        "rows": rows,
    }


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, and what the page says of the smaller model."""
    full, eight = (row for row in record["rows"] if row["beam"] == 1)
    small = [row for row in read("spelling")["rows"] if row["name"] == "ours"]
    for kind, most in (("phonemes", 0.082), ("words", 0.33)):
        assert eight[kind] <= most and abs(full[kind] - eight[kind]) <= 0.003
        ours = mean(row[kind] for row in small)
        assert ours / 2 < eight[kind] < ours
    # the page: it learned several times as long
    assert record["cpu_seconds"] > 4 * max(row["cpu_seconds"] for row in small)
