"""Chapter 14: a language model that reads 16 384 characters at once, on a CPU.

Chapter 11's text, two Reformers of the same widths, about 80 CPU seconds each: one with
LSH attention (one round), 100 windows; one with attention to all by PyTorch's kernel,
25 windows. A GPT of those widths reads in windows of 64 as many characters as the
first. One seed. Bits per character are those of the held-out modules, in windows as
long as those of training. Memory is the peak of one training step in a fresh process
(``benchmarks/memory.py``), for the Reformers reversible as they are, and with all
blocks stored, two layers and eight.

Expected: these are few updates, so both Reformers end about where counting pairs does
(3.59); the GPT, with sixteen times as many updates, ends below both.
"""

import time
from collections.abc import Callable
from math import exp, log
from typing import Any

import torch

from annotated.chapters.ch14.reversible import (
    REFORMER_RECIPES,
    reformer,
    run_reformer_recipe,
    stored,
)
from annotated.data.text import library_facts
from annotated.gpt import GPT, GPTConfig, next_token_loss
from annotated.recipes.text import bits_per_character, read_text, train_text
from benchmarks.memory import peak

RECIPE, LENGTH, WINDOW = (
    REFORMER_RECIPES["16k"],
    REFORMER_RECIPES["16k"].model["max_len"],
    64,
)
STEPS = {"LSH": RECIPE.steps, "all": 25}


def step(attention: str, forget: bool, layers: int) -> Callable[[], Any]:
    """Return a forward and backward pass of one window, after a short one."""
    recipe = RECIPE._replace(model=RECIPE.model | {"layers": layers})
    model = reformer(recipe, 96, attention, seed=0)
    if not forget:
        blocks = model.blocks
        blocks.forward = lambda x1, x2: stored(blocks, x1, x2)

    def work(length: int = LENGTH) -> None:
        model.zero_grad()
        row = torch.arange(length + 1)[None] % 96
        next_token_loss(model, (row[:, :-1], row[:, 1:])).backward()

    work(256)
    model.zero_grad()
    return work


def gpt() -> float:
    """Return the bits of a GPT that read as many characters in short windows."""
    text = read_text("library")
    torch.manual_seed(0)
    widths = {
        name: RECIPE.model[name] for name in ("d_model", "heads", "layers", "d_ff")
    }
    model = GPT(GPTConfig(text.size, **widths, max_len=WINDOW))
    batch = 16
    steps = RECIPE.steps * LENGTH // (WINDOW * batch)
    recipe = RECIPE._replace(model={"max_len": WINDOW}, batch=batch, steps=steps)
    train_text(model, text.train, recipe, seed=0)
    return bits_per_character(model, text.validation, WINDOW)


def run() -> dict[str, Any]:
    peaks, runs = [], []
    for attention in STEPS:
        for forget in (True, False):
            for layers in (2, 8):
                case = {"attention": attention, "layers": layers, "forget": forget}
                peaks.append(case | {"MB": round(peak(step, **case), 1)})
                print(peaks[-1], flush=True)
    began = time.process_time()
    runs.append({"model": "GPT", "length": WINDOW, "seed": 0, "bits": gpt()})
    runs[-1]["seconds"] = time.process_time() - began
    for attention, steps in STEPS.items():
        began = time.process_time()
        _, history, bits = run_reformer_recipe("16k", attention, steps=steps)
        entry = {"model": f"Reformer, attention: {attention}", "length": LENGTH}
        entry |= {"seed": 0, "steps": len(history), "bits": bits}
        entry["seconds"] = time.process_time() - began
        entry["losses, bits"] = [round(h["loss"] / log(2), 3) for h in history[4::5]]
        runs.append(entry)
        print(entry, flush=True)
    for entry in runs:
        entry["perplexity"] = exp(entry["bits"] * log(2))
    return {"text": library_facts(), "runs": runs, "one step": peaks}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, and what page 14c says of depth."""
    bits = {run["model"].split()[-1]: run["bits"] for run in record["runs"]}
    assert all(3.4 < bits[attention] < 4.2 for attention in STEPS)
    assert bits["LSH"] <= bits["all"] + 0.1
    assert bits["GPT"] < min(bits["LSH"], bits["all"])
    MB = {
        (run["attention"], run["forget"], run["layers"]): run["MB"]
        for run in record["one step"]
    }
    for attention in STEPS:
        two, eight = (
            [MB[attention, forget, layers] for forget in (True, False)]
            for layers in (2, 8)
        )
        assert 1.1 < two[1] / two[0] < 1.5 and eight[1] > 3 * eight[0]
        assert eight[0] < 1.1 * two[0]  # the page: at any depth
    assert MB["all", True, 8] < MB["LSH", True, 8]
