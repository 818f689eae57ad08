"""The laboratory's experiments in PyTorch.

``annotated/page/static/laboratory.json`` has them, with the band in which the words
written right at the end, and the loss, have to lie for every seed, here and in the
browser. As there, a run ends as soon as 99 % of 1000 fresh words are right.
"""

import json
import time
from typing import Any

import torch

from annotated.page.frames import static
from annotated.page.laboratory_runs import laboratory_settings, train_laboratory
from benchmarks.record import SEEDS


def one(name: str, seed: int) -> dict[str, Any]:
    began = time.process_time()
    run = train_laboratory(laboratory_settings(name, seed=seed))
    row = {"experiment": name, "seed": seed, "steps": len(run.losses)}
    row |= {"exact": run.exact, "loss": sum(run.losses[-20:]) / 20}
    row["cpu_seconds"] = round(time.process_time() - began, 1)
    print(row, flush=True)
    row["tests"] = run.tests
    return row


def run() -> dict[str, Any]:
    torch.set_num_threads(1)
    names = json.loads(static("laboratory.json"))["experiments"]
    return {
        "settings": {name: laboratory_settings(name) for name in names},
        "tested": 1000,
        "rows": [one(name, seed) for name in names for seed in SEEDS],
    }


def bands(record: dict[str, Any]) -> None:
    """Check what page 2 says of the scale, for every seed."""
    ends = [row for row in record["rows"] if row["experiment"] == "scale"]
    assert {row["steps"] for row in ends} == {300, 500}
    assert min(row["exact"] for row in ends) > 0.97
