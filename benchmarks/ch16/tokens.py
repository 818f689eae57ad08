"""Chapter 16: bytes, and GPT-2's first ranks, read by models of the same blocks.

Each tokenizer has 256 (bytes), 512, 1024, 2048 or 4096 tokens. Steps are such that all
cost as many multiplications (six for each number of the blocks' matrices and of the
output, for each token). A control reads bytes with a context as long, in bytes, as that
of 1024 tokens.

Bands, for the means over the seeds, in bits per byte: 1024 tokens are better than bytes
by 0.15 or more, and than bytes with the longer context by 0.10 or more. The best number
of tokens is 1024 or 2048; 4096 is worse than the best by 0.01 or more, for its output
takes most of the multiplications.
"""

import time
from statistics import mean
from typing import Any

from annotated.recipes.gpt2 import (
    GPT2_RECIPE,
    bits_per_byte,
    short_tokenizer,
    small_gpt2,
    token_text,
)
from annotated.recipes.text import train_text
from benchmarks.record import SEEDS

SIZES = (256, 512, 1024, 2048, 4096)
PAGE = 1024  # whose recipe says the steps


def run() -> dict[str, Any]:
    texts = {size: token_text(short_tokenizer(size)) for size in SIZES}
    length = GPT2_RECIPE.model["max_len"]
    longer = round(length * len(texts[256].train) / len(texts[PAGE].train))
    rows = []
    for seed in SEEDS:
        for size, context in [*((size, length) for size in SIZES), (256, longer)]:
            fields = GPT2_RECIPE.model | {"max_len": context}
            steps = round(
                GPT2_RECIPE.steps * _cost(PAGE, length) / _cost(size, context)
            )
            recipe = GPT2_RECIPE._replace(model=fields, steps=steps)
            model, began = small_gpt2(size, recipe, seed), time.process_time()
            train_text(model, texts[size].train, recipe, seed)
            seconds = round(time.process_time() - began, 1)
            bits = bits_per_byte(model, texts[size], context)
            row = {"tokens": size, "context": context, "seed": seed, "bits": bits}
            row |= {"steps": steps, "cpu_seconds": seconds}
            print(row, flush=True)
            rows.append(row)
    counts = {str(size): len(text.validation) for size, text in texts.items()}
    size = texts[256].validation_bytes
    recipe = GPT2_RECIPE._asdict()
    return {"recipe": recipe, "rows": rows, "counts": counts, "bytes": size}


def _cost(tokens: int, context: int) -> int:
    fields = GPT2_RECIPE.model
    d, d_ff = fields["d_model"], fields["d_ff"]
    blocks = fields["layers"] * (4 * d * d + 2 * d * d_ff)
    return context * (blocks + tokens * d)


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands."""
    rows, length = record["rows"], record["recipe"]["model"]["max_len"]
    bits = {
        (size, usual): mean(
            row["bits"]
            for row in rows
            if row["tokens"] == size and (row["context"] == length) == usual
        )
        for size, usual in [*((size, True) for size in SIZES), (256, False)]
    }
    best = min(bits.values())
    assert best in (bits[1024, True], bits[2048, True]) and bits[4096, True] > best
    assert bits[256, True] - bits[1024, True] > 0.15
    # the page: the longer window doesn't help bytes
    assert bits[256, False] > bits[256, True]
