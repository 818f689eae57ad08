"""Chapter 11: is counting ever beaten? The page's GPT, deeper still.

Counting with Kneser–Ney smoothing reaches 2.03 bits (``text_counts``), at 1.6 million
numbers; twice the page's width with twice its steps gives 2.12 (``text_larger``).

Band, before the run: below 2.03 bits, that is below counting at its best, though every
window begins with nothing. The reason: twice the width and steps were worth 0.29 bits.
Here the width grows by a third more and the layers double, at the same steps. After
``for i in ra`` the letter n, of ``range``, comes first.
"""

from typing import Any

import torch

from annotated.decoding import sample
from annotated.recipes_text import RECIPES, read_text, run_recipe
from annotated.text import library_facts

MODEL = RECIPES["shakespeare, CPU"].model
CHANGES = {"model": MODEL, "steps": 6000, "rate": 4e-3}
PROMPTS = ("    for i in ra", "    for i in range")


def run() -> dict[str, Any]:
    """Train with one seed, and see what it makes of the chapter's first line."""
    model, history, bits = run_recipe("library", seed=0, **CHANGES)
    model.eval()
    characters, lines = read_text("library").characters, []
    for prompt in PROMPTS:
        ids = torch.tensor([characters.encode(prompt)])
        with torch.no_grad():
            likely = model(ids)[0, -1].softmax(dim=-1).topk(3)
        written = sample(model, ids, max_new_tokens=24, top_k=1)[0].tolist()
        firsts = characters.decode(likely.indices.tolist())
        chances = dict(zip(firsts, likely.values.tolist(), strict=True))
        written = "".join(characters.decode(written))
        lines.append({"prompt": prompt, "chances": chances, "greedy": written})
    row = {
        "seed": 0,
        "parameters": sum(p.numel() for p in model.parameters()),
        "bits": bits,
        "cpu_seconds": history[-1]["cpu_seconds"],
        "lines": lines,
    }
    print(row, flush=True)
    return {"text": library_facts(), **CHANGES, "rows": [row]}
