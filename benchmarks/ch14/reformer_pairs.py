"""Chapter 14: the window of 16 384 and its pieces once more, with all pairs.

In ``reformer_steps``, cutting the long window into 256 of 64 changes two things: how
far a character sees, and whether it sees all of that or only some that hash alike. Here
LSH attention is replaced by all pairs (PyTorch's kernel), so that only the first
changes. One seed; the control takes six CPU minutes, the pieces one.

If hashing is what costs the long window its bits, the two come within 0.15 of each
other; if the long window does, they stay at least 0.15 apart.
"""

import time
from typing import Any

from annotated.chapters.ch14.reversible import REFORMER_RECIPES, reformer
from annotated.data.text import library_facts
from annotated.recipes.text import bits_per_character, read_text, train_text
from benchmarks.ch14.reformer_steps import LONG, SHORT, Cut
from benchmarks.record import read


def run() -> dict[str, Any]:
    text, runs, recipe, seed = read_text("library"), [], REFORMER_RECIPES["16k"], 0
    for window in (SHORT, LONG):
        began = time.process_time()
        model = reformer(recipe, text.size, "all", seed)
        reads = Cut(model) if window == SHORT else model
        train_text(reads, text.train, recipe, seed)
        bits = {
            wide: bits_per_character(model, text.validation, wide, LONG // wide)
            for wide in {window, SHORT}
        }
        runs.append({"attention": "all", "window": window, "in a row": LONG})
        runs[-1] |= {"batch": 1, "steps": recipe.steps, "seed": seed}
        runs[-1] |= {"characters": LONG * recipe.steps}
        runs[-1] |= {"bits": bits[window], "bits in windows of 64": bits[SHORT]}
        runs[-1]["seconds"] = time.process_time() - began
        print(runs[-1], flush=True)
    return {"text": library_facts(), "runs": runs}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, and that hashing isn't what costs the long window."""
    cut, long = record["runs"]
    hashed_long, hashed_cut, *_ = read("reformer_steps")["runs"]
    assert 3.2 < long["bits"] < 3.8 and 3.17 < cut["bits"] < 3.57
    # the page: with full attention, the bits are the same
    assert abs(long["bits"] - hashed_long["bits"]) < 0.02
    assert abs(cut["bits"] - hashed_cut["bits"]) < 0.02
    assert 0 < long["bits in windows of 64"] - long["bits"] < 0.05
