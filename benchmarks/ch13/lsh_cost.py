"""Chapter 13: CPU seconds of an attention layer by length, forward and backward.

Width 256, 4 heads, causal, batch 1, chunks of 64, one thread. "plain" writes attention
out, "fused" calls the kernel, told that attention is causal; LSH by ours,
`transformers` and `reformer-pytorch`, with 1 and 4 rounds. All have maps for queries,
values and output, and the first two one for keys besides. At each length all are timed
in turn; ratios are medians of those of the turns. ``make bench NAME=lsh_cost`` installs
the peers.
"""

import statistics
import time
from typing import Any

import torch
from torch import Tensor, nn

from annotated.attention import MultiHeadAttention
from annotated.reformer import LSHSelfAttention
from benchmarks.ch12.evaluation_cost import PlainAttention
from benchmarks.lsh_peers import TransformersLayer, reformer_pytorch_layer

D_MODEL, HEADS, CHUNK, HASHES = 256, 4, 64, (1, 4)
LENGTHS = (1024, 2048, 4096, 8192, 16384, 32768)
PLAIN_UP_TO = 4096  # its matrices take 2 GB at 8192, and ten times that backward
BACKWARD_UP_TO = 8192


def ways(length: int) -> dict[str, nn.Module]:
    """Return the layers to be timed at a length."""
    torch.manual_seed(0)
    found = {"fused": MultiHeadAttention(D_MODEL, HEADS, causal=True)}
    if length <= PLAIN_UP_TO:
        found["plain"] = PlainAttention(D_MODEL, HEADS)
    for rounds in HASHES:
        sizes = D_MODEL, HEADS, CHUNK, rounds
        found[f"ours, {rounds}"] = LSHSelfAttention(*sizes, causal=True)
        found[f"ours, {rounds}, repeats"] = LSHSelfAttention(
            *sizes, causal=True, repeats=True
        )
        found[f"transformers, {rounds}"] = TransformersLayer(*sizes)
        found[f"reformer-pytorch, {rounds}"] = reformer_pytorch_layer(*sizes)
    return {name: layer.eval() for name, layer in found.items()}


def seconds(layer: nn.Module, x: Tensor, backward: bool) -> float:
    """Return the CPU seconds of one pass."""
    began = time.process_time()
    if backward:
        layer(x).sum().backward()
    else:
        with torch.no_grad():
            layer(x)
    return time.process_time() - began


def run() -> dict[str, Any]:
    runs = []
    for length in LENGTHS:
        layers = ways(length)
        x = torch.randn(1, length, D_MODEL, requires_grad=True)
        rounds = 5 if length <= 4096 else 3
        for backward in (False, True) if length <= BACKWARD_UP_TO else (False,):
            costs = {name: [] for name in layers}
            for _ in range(rounds + 1):
                for name, layer in layers.items():
                    costs[name].append(seconds(layer, x, backward))
            costs = {name: times[1:] for name, times in costs.items()}  # one warms up
            entry = {"length": length, "backward": backward, "rounds": rounds}
            entry["seconds"] = {n: statistics.median(t) for n, t in costs.items()}
            entry["quartiles"] = {
                n: statistics.quantiles(t, n=4)[::2] for n, t in costs.items()
            }
            entry["ratios"] = {
                f"{name} / {other}": statistics.median(
                    a / b for a, b in zip(costs[name], costs[other], strict=True)
                )
                for name in costs
                if name.startswith("ours")
                for other in costs
                if not other.startswith("ours")
                and (other.endswith(name.split(", ")[1]) or ", " not in other)
            }
            runs.append(entry)
            print(entry, flush=True)
    config = {"d_model": D_MODEL, "heads": HEADS, "chunk": CHUNK, "hashes": HASHES}
    return {"config": config, "runs": runs}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, and what chapter 13 says of it."""
    for run in record["runs"]:
        ratios, seconds = run["ratios"], run["seconds"]
        if run["length"] >= 4096:
            most = 0.9 if run["backward"] else 1.0
            for rounds in HASHES:
                for peer in ("transformers", "reformer-pytorch"):
                    assert ratios[f"ours, {rounds} / {peer}, {rounds}"] <= most
            assert run["backward"] or ratios["ours, 1 / fused"] < 1
    assert ratios["ours, 4 / fused"] < 1  # of the longest
    early = next(run["seconds"] for run in record["runs"] if run["length"] == 4096)
    grown = {way: seconds[way] / early[way] for way in ("fused", "ours, 1", "ours, 4")}
    assert grown["fused"] > 3 * max(grown["ours, 1"], grown["ours, 4"])
