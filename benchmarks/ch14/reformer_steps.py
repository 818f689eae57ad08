"""Chapter 14: one Reformer, its window long or short, in as many steps.

The model of ``reformer_text``, with LSH attention of one round, on chapter 11's text.
Each step reads 16 384 characters: in one window; the very same ones, cut into 256
windows of 64; or 256 windows of 64 from all over the text. Then windows of 64 in
batches of 16, for as many steps, and for as many characters. Windows of 64 are shorter
than two chunks, so each character attends to all before it. Bits per character are
those of the held-out modules, in windows as long as those of training; the model of
the long window is also asked in windows of 64. One seed: about four CPU minutes.
"""

import time
from typing import Any

from torch import Tensor, nn

from annotated.chapters.ch14.reversible import REFORMER_RECIPES, reformer
from annotated.data.text import library_facts
from annotated.recipes.text import bits_per_character, read_text, train_text
from benchmarks.record import read

LONG, SHORT = REFORMER_RECIPES["16k"].model["max_len"], 64
CASES = [
    # characters in a window, windows in a batch, steps, whether a window is cut
    (LONG, 1, 100, False),
    (LONG, 1, 100, True),
    (SHORT, 256, 100, False),
    (SHORT, 16, 100, False),
    (SHORT, 16, 1600, False),
]


class Cut(nn.Module):
    """A model that reads each window in pieces of ``SHORT``."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of all pieces, ``(b, t, v)``, of ``tokens``, ``(b, t)``."""
        return self.model(tokens.view(-1, SHORT)).view(*tokens.shape, -1)


def run() -> dict[str, Any]:
    text, runs = read_text("library"), []
    for length, batch, steps, cut in CASES:
        began, reads = time.process_time(), SHORT if cut else length
        sizes = REFORMER_RECIPES["16k"].model | {"max_len": length}
        recipe = REFORMER_RECIPES["16k"]._replace(model=sizes, batch=batch, steps=steps)
        model = reformer(recipe, text.size, "LSH", seed=0)
        train_text(Cut(model) if cut else model, text.train, recipe, seed=0)
        bits = {
            wide: bits_per_character(model, text.validation, wide, LONG // wide)
            for wide in {reads, SHORT}
        }
        runs.append({"window": reads, "in a row": length, "batch": batch})
        runs[-1] |= {"steps": steps, "characters": length * batch * steps}
        runs[-1] |= {"bits": bits[reads], "bits in windows of 64": bits[SHORT]}
        runs[-1]["seconds"] = time.process_time() - began
        print(runs[-1], flush=True)
    return {"text": library_facts(), "runs": runs}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, and what page 14c says of steps and characters."""
    long, cut, scattered, few, many = record["runs"]
    bits = [run["bits"] for run in record["runs"]]
    wanted = zip(bits[0:1] + bits[2:], (3.68, 3.17, 3.46, 2.38), strict=True)
    assert all(abs(found - trial) < 0.1 for found, trial in wanted)
    assert 3.0 < cut["bits"] < long["bits"] - 0.2
    assert scattered["bits"] < cut["bits"] - 0.1
    # the page: behind a count of pairs, and hardly worse in windows of 64
    counted = read("text_counts")["rows"][1]["bits"]
    assert cut["bits"] < counted < long["bits"]
    assert 0 < long["bits in windows of 64"] - long["bits"] < 0.05
    assert scattered["characters"] == many["characters"] == 16 * few["characters"]
    assert 0 < few["bits"] - scattered["bits"] < (scattered["bits"] - many["bits"]) / 2
