"""Chapter 12: what a character costs in evaluation, by the length that it looks back.

A vanilla model of 4 layers and width 256 that has slid by one character reads its whole
window again: what stood at position i now stands at i − 1. Transformer-XL of the same
widths reads a segment of 64 or 128 characters at once and has the rest as memory; each
character sees at least as many keys as the window has. Batch 1, one thread, CPU
seconds; all are timed in turn, so that a busy machine slows all of them, and the median
of the rounds' ratios is told. "plain" writes attention out, as models of that time did;
"fused" calls the kernel, told that attention is causal: it skips half of the scores.

Bands, written before the final run, from measurements of others (309 and 716 times by
segments of 64) and ours on a busy machine (360 and 635 by 64, 422 and 959 by 128):
against the plain window at least 300 times at 800 and 700 at 1600 by segments of 128,
250 and 550 by 64; against the fused window at least 100 times at both.
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
LENGTHS, SEGMENTS, ROUNDS = (64, 256, 800, 1600), (64, 128), 7


class PlainAttention(MultiHeadAttention):
    """Attention written out as chapter 2 derives it: scores, mask, softmax, values."""

    def attend(self, q, k, v, mask=None):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        mask = causal_mask(q.shape[2])
        heads = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1) @ v
        return self.output_map(heads.transpose(1, 2).flatten(2))


def window(length: int, attention: type[MultiHeadAttention]) -> Callable[[], Tensor]:
    """Return what a vanilla model does for one character."""
    torch.manual_seed(0)
    make = partial(attention, CONFIG["d_model"], CONFIG["heads"], causal=True)
    model = GPT(GPTConfig(**CONFIG, max_len=length), make)
    tokens = torch.randint(CONFIG["vocab_size"], (1, length))

    def read() -> Tensor:
        with evaluating(model):
            x = model.blocks(model.embed(tokens))
            return model.output(x[:, -1])  # no other position is asked

    return read


def segment(length: int, characters: int) -> Callable[[], Tensor]:
    """Return what Transformer-XL does for a segment, with its memory full."""
    torch.manual_seed(0)
    model = TransformerXL(TransformerXLConfig(**CONFIG, mem_len=length))
    tokens = torch.randint(CONFIG["vocab_size"], (1, characters))
    memories = torch.randn(CONFIG["layers"], 1, length, CONFIG["d_model"])

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
    """Time the three at each length, in turn."""
    runs = []
    for length in LENGTHS:
        plain = window(length, PlainAttention)
        fused = window(length, MultiHeadAttention)
        torch.testing.assert_close(plain(), fused(), rtol=0, atol=1e-4)
        memory = {f"XL by {n}": (segment(length, n), n) for n in SEGMENTS}
        costs = {"plain": [], "fused": []} | {name: [] for name in memory}
        for read, _ in memory.values():
            read()
        for _ in range(ROUNDS):
            costs["plain"].append(milliseconds(plain))
            costs["fused"].append(milliseconds(fused))
            for name, (read, characters) in memory.items():
                costs[name].append(milliseconds(read, 8) / characters)
        entry = {"length": length}
        for name in memory:
            for other in ("plain", "fused"):
                pairs = zip(costs[other], costs[name], strict=True)
                ratios = [one / ours for one, ours in pairs]
                entry[f"{other} / {name}"] = statistics.median(ratios)
        for name, of_name in costs.items():
            entry[f"milliseconds, {name}"] = statistics.median(of_name)
        runs.append(entry)
        print(entry, flush=True)
    return {"config": CONFIG, "rounds": ROUNDS, "runs": runs}
