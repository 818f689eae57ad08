"""Chapter 12: what a guess costs in evaluation, with the same least context.

Every guess sees at least 801 characters. A vanilla model of 4 layers and width 256
reads windows of 800 + n, scores the last n guesses and advances by n; Transformer-XL of
the same widths has 800 characters in memory and reads segments of n. Batch 1, one
thread, CPU milliseconds a guess, all in turn, medians of the rounds. "written out"
computes attention as models of that time did; "fused" calls the kernel, told that
attention is causal: it skips half of the scores.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from annotated.attention import MultiHeadAttention
from annotated.gpt import GPT, GPTConfig
from annotated.masks import causal_mask
from annotated.training import evaluating
from annotated.transformer_xl import TransformerXL, TransformerXLConfig

CONFIG = {"vocab_size": 96, "d_model": 256, "heads": 4, "layers": 4, "d_ff": 1024}
BEFORE, STEPS, ROUNDS = 800, (1, 128, 800), 7


class PlainAttention(MultiHeadAttention):
    """Attention written out as chapter 2 derives it: scores, mask, softmax, values."""

    def attend(self, q, k, v, mask=None):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        mask = causal_mask(q.shape[2])
        heads = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1) @ v
        return self.output_map(heads.transpose(1, 2).flatten(2))


def window(step: int, attention: type[MultiHeadAttention]) -> Callable[[], Tensor]:
    """Return what a vanilla model does for ``step`` guesses."""
    torch.manual_seed(0)
    make = partial(attention, CONFIG["d_model"], CONFIG["heads"], causal=True)
    model = GPT(GPTConfig(**CONFIG, max_len=BEFORE + step), make)
    tokens = torch.randint(CONFIG["vocab_size"], (1, BEFORE + step))

    def read() -> Tensor:
        with evaluating(model):
            x = model.blocks(model.embed(tokens))
            return model.output(x[:, -step:])  # no other position is asked

    return read


def segment(step: int) -> Callable[[], Tensor]:
    """Return what Transformer-XL does for a segment, with its memory full."""
    torch.manual_seed(0)
    model = TransformerXL(TransformerXLConfig(**CONFIG, mem_len=BEFORE))
    tokens = torch.randint(CONFIG["vocab_size"], (1, step))
    memories = torch.randn(CONFIG["layers"], 1, BEFORE, CONFIG["d_model"])

    def read() -> Tensor:
        with evaluating(model):
            return model(tokens, memories)[0]

    return read


def milliseconds(read: Callable[[], Tensor], times: int = 1) -> float:
    """Return the CPU milliseconds of a call, the mean of several."""
    began = time.process_time()
    for _ in range(times):
        read()
    return (time.process_time() - began) / times * 1000


def run() -> dict[str, Any]:
    ways: dict[tuple[str, int], Callable[[], Tensor]] = {}
    for step in STEPS:
        ways["window, written out", step] = window(step, PlainAttention)
        ways["window, fused", step] = window(step, MultiHeadAttention)
        ways["memory", step] = segment(step)
    for step in STEPS:
        same = (ways[f"window, {name}", step]() for name in ("written out", "fused"))
        torch.testing.assert_close(*same, rtol=0, atol=1e-4)
        ways["memory", step]()  # the first call loads what it needs
    costs: dict[tuple[str, int], list[float]] = {at: [] for at in ways}
    for _ in range(ROUNDS):
        for at, read in ways.items():
            times = 4 if at[0] == "memory" else 1
            costs[at].append(milliseconds(read, times) / at[1])
    by_128 = costs["memory", 128]
    runs = []
    for (way, step), cost in costs.items():
        ratios = [mine / ours for mine, ours in zip(cost, by_128, strict=True)]
        entry = {"way": way, "step": step, "milliseconds": statistics.median(cost)}
        runs.append(entry | {"to memory by 128": statistics.median(ratios)})
        print(runs[-1], flush=True)
    return {"config": CONFIG, "before": BEFORE, "rounds": ROUNDS, "runs": runs}


def bands(record: dict[str, Any]) -> None:
    ratios = {(r["way"], r["step"]): r["to memory by 128"] for r in record["runs"]}
    assert ratios["window, fused", 1] > 100
    assert ratios["window, written out", 1] > 250
    assert 1.5 < ratios["window, fused", 128] < 3
    assert ratios["window, fused", 800] < 1
