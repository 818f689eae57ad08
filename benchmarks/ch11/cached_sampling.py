"""Chapter 11, deeper: what the cache of keys and values saves.

A GPT (d 256, 4 layers) writes symbols after a prompt of one, in 16 sequences, with the
cache and without, in turn.

Without the cache the time grows with the square of the length.
"""

import time
from statistics import median
from typing import Any

import torch

from annotated.decoding import sample
from annotated.gpt import GPT, GPTConfig

MODEL = {"d_model": 256, "heads": 8, "layers": 4, "d_ff": 1024, "max_len": 257}
VOCAB, BATCH, LENGTHS, REPEATS = 96, 16, (16, 32, 64, 128, 256), 3


def run() -> dict[str, Any]:
    torch.manual_seed(0)
    model = GPT(GPTConfig(VOCAB, **MODEL)).eval()
    prompt, rows = torch.zeros(BATCH, 1, dtype=torch.long), []
    for length in LENGTHS:
        seconds: dict[bool, list[float]] = {True: [], False: []}
        same = True
        for repeat in range(REPEATS):
            written = []
            for cache in (True, False):
                generator = torch.Generator().manual_seed(repeat)
                began = time.process_time()
                written.append(
                    sample(
                        model,
                        prompt,
                        max_new_tokens=length,
                        generator=generator,
                        cache=cache,
                    )
                )
                seconds[cache].append(time.process_time() - began)
            same = same and torch.equal(*written)
        row = {"length": length, "identical": same}
        row |= {"cached": median(seconds[True]), "plain": median(seconds[False])}
        row["times"] = row["plain"] / row["cached"]
        row["all"] = {"cached": seconds[True], "plain": seconds[False]}
        print(row, flush=True)
        rows.append(row)
    return {"model": MODEL, "batch": BATCH, "vocabulary": VOCAB, "rows": rows}


def bands(record: dict[str, Any]) -> None:
    assert all(row["identical"] for row in record["rows"])
    assert record["rows"][-1]["times"] > 6
