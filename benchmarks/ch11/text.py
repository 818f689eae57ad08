"""Chapter 11: what attention to the past is worth, beside counting and averaging it.

Python's own source, by characters. The page's model, against the same model with
queries and keys of zeros, whose attention is the mean of the past; both on whole
modules that they have not seen.
"""

from typing import Any

import torch

from annotated.data.text import library_facts, ngram_bits
from annotated.decoding import sample
from annotated.recipes.text import (
    TEXT_RECIPES,
    bits_by_position,
    bits_per_character,
    read_text,
    text_model,
    train_text,
)
from benchmarks.record import SEEDS

SAMPLED = 160  # characters, at each temperature
PROMPT = "def "


def one(way: str, seed: int) -> dict[str, Any]:
    text, recipe = read_text("library"), TEXT_RECIPES["library"]
    model = text_model(way, text.size, seed)
    history = train_text(model, text.train, recipe, seed)
    length = recipe.model["max_len"]
    row = {
        "way": way,
        "seed": seed,
        "parameters": sum(p.numel() for p in model.parameters()),
        "bits": bits_per_character(model, text.validation, length),
        "cpu_seconds": history[-1]["cpu_seconds"],
    }
    print(row, flush=True)
    by_position = bits_by_position(model, text.validation, length)
    row["by_position"] = [round(bits, 4) for bits in by_position.tolist()]
    losses = torch.tensor([record["loss"] for record in history])
    row["losses"] = [round(x, 4) for x in losses.view(-1, 20).mean(dim=1).tolist()]
    if way == "attention":
        prompt = torch.tensor([text.characters.encode(PROMPT)])
        given = {"max_new_tokens": SAMPLED, "slide": True}
        row["written"] = {
            str(temperature): "".join(
                text.characters.decode(
                    sample(
                        model,
                        prompt,
                        temperature=temperature,
                        generator=torch.Generator().manual_seed(seed),
                        **given,
                    )[0]
                )
            )
            for temperature in (0.5, 0.8, 1.0, 1.5)
        }
    return row


def facts() -> dict[str, Any]:
    """Return the recipe, the text's facts and the bits of counting."""
    text, recipe = read_text("library"), TEXT_RECIPES["library"]
    return {
        "text": library_facts(),
        "model": recipe.model,
        "training": {"batch": recipe.batch, "steps": recipe.steps, "rate": recipe.rate},
        "counting": {
            order: ngram_bits(text.train, text.validation, order, text.size)
            for order in (1, 2, 3)
        },
    }


def run() -> dict[str, Any]:
    ways = ("attention", "average")
    return facts() | {"rows": [one(way, seed) for seed in SEEDS for way in ways]}


def bands(record: dict[str, Any]) -> None:
    bits = {(row["way"], row["seed"]): row["bits"] for row in record["rows"]}
    counting = record["counting"]
    for seed in SEEDS:
        attention, average = bits["attention", seed], bits["average", seed]
        assert 2.30 < attention < 2.50
        assert attention < counting["3"] - 0.3 and attention < average - 0.5
        assert average < counting["2"] - 0.3
