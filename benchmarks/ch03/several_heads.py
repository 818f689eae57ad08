"""Chapter 03: what several heads earn, in two tasks where one position asks the others.

- ``giving``: who gave what to whom, with 1 to 8 heads; ``network``: one head for three
  times as long at a lower rate, with and without a network on each word before it.
- ``letters``: a missing letter in real prose, with 1 to 16 heads of the same width in
  all, and what is left when one head's output is lost.
- ``grouped``: the same with 8 query heads that share heads of keys and values.
"""

from statistics import mean
from typing import Any

import torch

from annotated.attention import MultiHeadAttention
from annotated.recipes.several_heads import (
    GIVING,
    MISSING_LETTER,
    NETWORK,
    Giving,
    MissingLetter,
    answers_right,
    letters_right,
    right_without_each,
    train_giving,
    train_letters,
    with_network,
)
from benchmarks.record import SEEDS


def giving(heads: int, seed: int) -> dict[str, Any]:
    """Train one model of the giving task."""
    torch.manual_seed(seed)
    model = train_giving(Giving(heads), seed)
    return {"heads": heads, "seed": seed, "right": answers_right(model)}


def network(has_network: bool, seed: int) -> dict[str, Any]:
    """Train one head of the giving task for longer, with a network before it or not."""
    torch.manual_seed(seed)
    model = with_network(Giving(1)) if has_network else Giving(1)
    train_giving(model, seed, NETWORK["steps"], NETWORK["rate"])
    return {"network": has_network, "seed": seed, "right": answers_right(model)}


def letters(attention: MultiHeadAttention, seed: int, **setting: Any) -> dict[str, Any]:
    """Train one model of the missing letter."""
    model = MissingLetter(attention)
    history = train_letters(model, seed)
    row = {
        **setting,
        "seed": seed,
        "right": letters_right(model),
        "parameters": sum(p.numel() for p in model.parameters()),
        "cpu_seconds": history[-1]["cpu_seconds"],
    }
    if setting == {"heads": 8}:
        row["without_one"] = right_without_each(model)
    print({**setting, "seed": seed, "right": row["right"]}, flush=True)
    return row


def run() -> dict[str, Any]:
    width = MISSING_LETTER["width"]
    results: dict[str, Any] = {
        "config": {"giving": GIVING, "network": NETWORK, "letters": MISSING_LETTER},
        "giving": [giving(h, s) for h in (1, 2, 3, 4, 8) for s in SEEDS],
        "network": [network(n, s) for n in (False, True) for s in SEEDS],
        "letters": [],
        "grouped": [],
    }
    for row in results["giving"] + results["network"]:
        print(row, flush=True)
    for heads in (1, 2, 4, 8, 16):
        for seed in SEEDS:
            torch.manual_seed(seed)
            attention = MultiHeadAttention(width, heads)
            results["letters"].append(letters(attention, seed, heads=heads))
    for shared in (4, 2, 1):  # 8 of 8 is plain multi-head attention
        for seed in SEEDS:
            torch.manual_seed(seed)
            attention = MultiHeadAttention(width, 8, kv_heads=shared)
            results["grouped"].append(letters(attention, seed, shared=shared))
    return results


def bands(record: dict[str, Any]) -> None:
    """Check the bands, and what pages 3 and 3c say of networks and groups."""

    def right(part: str, key: str, value: Any) -> list[Any]:
        return [row["right"] for row in record[part] if row[key] == value]

    for heads in (3, 4, 8):
        assert min(map(min, right("giving", "heads", heads))) >= 0.99
    assert all(mean(shares) <= 0.85 for shares in right("giving", "heads", 1))
    assert min(map(min, right("network", "network", True))) >= 0.99
    assert max(map(min, right("network", "network", False))) <= 0.9

    letters = {heads: right("letters", "heads", heads) for heads in (1, 2, 8, 16)}
    average = {heads: mean(shares) for heads, shares in letters.items()}
    assert min(letters[8]) > max(*letters[1], *letters[2])
    assert average[8] > max(average[1] + 0.2, average[2] + 0.1)
    assert min(letters[16]) > max(letters[8]) and 0.02 < average[16] - average[8] < 0.03
    # page 3c: shared heads of keys and values cost less than another seed
    grouped = [letters[8], *(right("grouped", "shared", n) for n in (4, 2, 1))]
    means = [mean(shares) for shares in grouped]
    spread = min(max(shares) - min(shares) for shares in grouped)
    assert max(means) - min(means) < min(0.01, spread)
