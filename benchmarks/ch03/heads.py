"""Chapter 03: our multi-head attention beside PyTorch's, forward and backward.

Same weights, same inputs, calls of the two in turn: every pair gives one ratio of CPU
seconds, of which the median is told. PyTorch's module is asked for its output alone
(``need_weights=False``), which is its fast way.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from annotated.attention import MultiHeadAttention
from annotated.masks import causal_mask, length_mask

CONFIG = {"d_model": 256, "heads": 8, "tokens": 4096}
LENGTHS = (16, 64, 256, 1024)
KINDS = ("self", "self, padded", "causal", "cross")
PAIRS = 31  # of calls, for each length and kind, after three to warm up


def build(seed: int = 0) -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
    """Return ours and PyTorch's with the same weights."""
    torch.manual_seed(seed)
    width, heads = CONFIG["d_model"], CONFIG["heads"]
    ours = MultiHeadAttention(width, heads)
    theirs = nn.MultiheadAttention(width, heads, batch_first=True)
    maps = (ours.query_map, ours.key_map, ours.value_map)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([m.weight for m in maps]))
        theirs.in_proj_bias.copy_(torch.cat([m.bias for m in maps]))
        theirs.out_proj.weight.copy_(ours.output_map.weight)
        theirs.out_proj.bias.copy_(ours.output_map.bias)
    return ours, theirs


def calls(kind: str, length: int) -> tuple[Callable[[], Tensor], Callable[[], Tensor]]:
    """Return one forward pass of ours and of PyTorch's, on the same inputs."""
    ours, theirs = build()
    batch = max(1, CONFIG["tokens"] // length)
    x = torch.randn(batch, length, CONFIG["d_model"], requires_grad=True)
    memory = torch.randn(batch, length, CONFIG["d_model"], requires_grad=True)
    lengths = torch.linspace(length // 2, length, batch).long()
    if kind == "self":
        return lambda: ours(x), lambda: theirs(x, x, x, need_weights=False)[0]
    if kind == "self, padded":
        mask = length_mask(lengths, length)
        hidden = ~mask[:, 0, 0]
        return (
            lambda: ours(x, mask=mask),
            lambda: theirs(x, x, x, key_padding_mask=hidden, need_weights=False)[0],
        )
    if kind == "causal":
        mask = causal_mask(length)
        hidden = ~mask[0, 0]
        return (
            lambda: ours(x, mask=mask),
            lambda: theirs(x, x, x, attn_mask=hidden, need_weights=False)[0],
        )
    return (
        lambda: ours(x, memory),
        lambda: theirs(x, memory, memory, need_weights=False)[0],
    )


def cpu_seconds(forward: Callable[[], Tensor], pull: Tensor) -> float:
    """Return the CPU seconds of one forward and one backward pass."""
    began = time.process_time()
    forward().backward(pull)
    return time.process_time() - began


def compare(kind: str, length: int) -> dict[str, Any]:
    """Time both in turn; a ratio above 1 says that ours is faster."""
    ours, theirs = calls(kind, length)
    with torch.no_grad():
        gap = (ours() - theirs()).abs().max().item()
        pull = torch.randn_like(ours())
    if gap > 1e-5:
        raise AssertionError(f"{kind}, length {length}: outputs differ by {gap:.1e}")
    seconds = {"ours": [], "theirs": []}
    for pair in range(-3, PAIRS):
        order = [("ours", ours), ("theirs", theirs)]
        for name, forward in order if pair % 2 else order[::-1]:
            taken = cpu_seconds(forward, pull)
            if pair >= 0:
                seconds[name].append(taken)
    pairs = zip(seconds["theirs"], seconds["ours"], strict=True)
    ratios = sorted(theirs / ours for theirs, ours in pairs)
    row = {
        "kind": kind,
        "length": length,
        "pairs": PAIRS,
        "ratio": statistics.median(ratios),
        "quartiles": [ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]],
        "ours_cpu_seconds": statistics.median(seconds["ours"]),
        "theirs_cpu_seconds": statistics.median(seconds["theirs"]),
        "largest_difference": gap,
    }
    low, high = row["quartiles"]
    print(
        f"{kind:13} length {length:5}: ours {1e3 * row['ours_cpu_seconds']:7.1f} ms, "
        f"PyTorch's {1e3 * row['theirs_cpu_seconds']:7.1f} ms, "
        f"ratio {row['ratio']:.2f} ({low:.2f} to {high:.2f})"
    )
    return row


def run() -> dict[str, Any]:
    rows = [compare(kind, length) for kind in KINDS for length in LENGTHS]
    overall = statistics.median(row["ratio"] for row in rows)
    print(f"median of all: {overall:.2f}")
    return {"config": CONFIG, "overall": overall, "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check that ours is about as fast as PyTorch's, and nowhere much slower."""
    assert record["overall"] >= 0.95
    assert min(row["ratio"] for row in record["rows"]) >= 0.9
