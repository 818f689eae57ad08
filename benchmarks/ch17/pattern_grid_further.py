"""Chapter 17: the grid of patterns, with every 8th token global and a window of 1.

The explorer's puzzle asks for the fewest pairs that connect everything: every 8th token
global, and who looks for it tries a window of 1; neither is in ``pattern_grid``, whose
models, text and steps these are. Every window with every 8th token global, and a window
of 1 with the other global tokens, each with every stride; two more seeds for the answer
and for a window of 1 alone. Rows are as there, "every 8th" as another "global".

Bands:

- If every 8th token is global, a window of 2 or more ends less than 0.06 bits from the
  same window and stride without global tokens (missed once: a window of 4 without a
  stride, 0.09 better).
- Under every pattern with a window of 1 a model is worse by more than 0.3 bits than
  under all with a wider one: the character just before is hidden from most queries.
- Seeds of one point are within 0.06 bits of each other.
"""

from itertools import product
from typing import Any

from annotated.chapters.ch17.patterns import GRID, grid_pattern, train_grid
from annotated.data.text import library_facts
from annotated.recipes.text import TEXT_RECIPES, read_text
from annotated.sparse import global_pattern
from benchmarks.record import SEEDS

EVERY = "every 8th"
#: window, stride and global tokens of what is trained with every seed
AGAIN = ((4, None, EVERY), (1, None, False))


def run() -> dict[str, Any]:
    text, strides = read_text("library"), GRID["strides"]
    points = list(product((1, *GRID["windows"]), strides, (EVERY,)))
    points += product((1,), strides, (False, True))
    points = [(*point, SEEDS[0]) for point in points]
    points += [(*point, seed) for seed in SEEDS[1:] for point in AGAIN]
    every = global_pattern(range(0, TEXT_RECIPES["library"].model["max_len"], 8))
    rows = []
    for window, stride, some, seed in points:
        pattern = grid_pattern(window, stride, some is True)
        if some == EVERY:
            pattern |= every
        bits = train_grid(pattern, text, seed)
        rows.append({"window": window, "stride": stride, "global": some})
        rows[-1] |= {"seed": seed, "bits": round(bits, 4)}
        print(rows[-1], flush=True)
    return {"steps": GRID["steps"], "text": library_facts(), "rows": rows}
