"""Chapter 16: today's parts, each swapped alone into a small GPT-2, at equal size.

All read the library's text for as long, at a rate of 0.01 (half of it in
``planks_slower``). Two controls have a quarter more or less in their networks.

Bands, for the means over the seeds, in bits per character below GPT-2 (positive is
better; GPT-2's own seeds turned out to lie 0.14 apart): rotary 0.03 or more; SwiGLU
0.005 or more; RMSNorm, no biases (missed: −0.038) and QK-norm within 0.02 of it;
grouped queries from −0.04 (missed: −0.071) to 0.01; the window within 0.04 (missed:
−0.065); all but the window 0.03 or more. The larger control is better (missed: −0.018)
and the smaller one worse by 0.01 to 0.08: that is what a difference in size would buy.
"""

from statistics import mean
from typing import Any

from annotated.chapters.ch16.planks import (
    PLANKS,
    PLANKS_RECIPE,
    plank_model,
    seconds_per_step,
)
from annotated.recipes.text import bits_per_character, read_text, train_text
from benchmarks.record import SEEDS


def run(rate: float = PLANKS_RECIPE.rate) -> dict[str, Any]:
    text, rows = read_text(PLANKS_RECIPE.text), []
    recipe = PLANKS_RECIPE._replace(rate=rate)
    length = recipe.model["max_len"]
    for seed in SEEDS:
        for name in PLANKS:
            model = plank_model(name, seed)
            train_text(model, text.train, recipe, seed)
            bits = bits_per_character(model, text.validation, length)
            size = sum(p.numel() for p in model.parameters())
            row = {"plank": name, "seed": seed, "bits": bits, "parameters": size}
            print(row, flush=True)
            rows.append(row)
    seconds = seconds_per_step(list(PLANKS))
    return {"recipe": recipe._asdict(), "rows": rows, "seconds": seconds}


def bands(record: dict[str, Any]) -> None:
    """Check the bands that held, and what page 16b says of sizes and seeds."""
    rows = record["rows"]
    sizes = {row["plank"]: row["parameters"] for row in rows}
    larger, smaller = (sizes.pop(f"GPT-2, {way}") for way in ("larger", "smaller"))
    assert max(sizes.values()) / min(sizes.values()) < 1.003
    assert smaller < 0.9 * min(sizes.values()) < 1.1 * max(sizes.values()) < larger
    # the page: three seeds, and none of our runs diverged
    assert len(rows) == 3 * len(PLANKS) and max(row["bits"] for row in rows) < 3
    bits = {
        name: mean(row["bits"] for row in rows if row["plank"] == name)
        for name in PLANKS
    }
    assert bits["GPT-2"] - bits["SwiGLU"] > 0.005
    assert bits["GPT-2"] - max(bits["rotary"], bits["all but the window"]) > 0.03
