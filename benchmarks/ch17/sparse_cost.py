"""Chapter 17: what a window costs by length and by sparsity, dense and in blocks.

One text, 2 heads of width 64, one thread. "written out" is the equation with a mask,
"masked" is PyTorch's kernel with a dense boolean mask, "fused" the same kernel without
one, told that attention is causal (it sees more, so it's the price to beat), and
"blocks of 64" our ``block_sparse_attention``. Masks and layouts are made before. At
each length and window all are timed in turn; seconds are medians of the turns with the
least and the most, and so are ratios to "fused" of the same turn. MB is the peak of a
forward and backward pass in a fresh process (``benchmarks/memory.py``).
"multiplications" are those of scores, forward.

By length the window is 256. Left out is what takes gigabytes: "written out" beyond 4096
and "masked" beyond 8192. By sparsity there are 4096 positions, and so there are for
strided and fixed patterns of √4096 = 64, whose "useful" is the share of computed pairs
that may attend. ``flex_attention``: the same window, forward, compiled and not; what
the backward pass of the compiled one raises is kept in words.

Bands:

- At 16,384 positions, forward and backward, blocks of 32, 64 and 128 take at most a
  quarter of "fused"'s time, and of blocks of 64 at most a quarter of its time forward.
- "masked" takes at least 1.3 times as long as "fused", whatever the window.
- At 4096 positions, forward and backward, blocks of 64 win up to a window of 512 and
  lose at a window of 4096.
- The second fixed pattern is slower than "fused" with blocks of 64, the other three
  are faster.
- Uncompiled flex takes at least ten times the memory of "fused" at 4096 positions;
  compiled is faster forward than "fused" and than blocks of 64, and refuses the
  backward pass.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from annotated.attention import scaled_dot_product_attention
from annotated.sparse import (
    Pattern,
    block_layout,
    block_sparse_attention,
    fixed_patterns,
    local_pattern,
    strided_patterns,
)
from benchmarks.memory import peak

HEADS, WIDTH, BLOCKS = 2, 64, (32, 64, 128)
LENGTHS, WINDOW = (1024, 2048, 4096, 8192, 16384), 256
LENGTH, WINDOWS, STRIDE = 4096, (64, 128, 256, 512, 1024, 2048, 4096), 64
UP_TO = {"written out": 4096, "masked": 8192}  # beyond, gigabytes
ROUNDS = 5
Work = Callable[[Tensor, Tensor, Tensor], Tensor]


def patterns() -> dict[str, Pattern]:
    """Return the two steps of strided and of fixed attention."""
    kinds = {"strided": strided_patterns(STRIDE), "fixed": fixed_patterns(STRIDE)}
    return {f"{k}, {i + 1}": pair[i] for k, pair in kinds.items() for i in (0, 1)}


def way(name: str, pattern: Pattern, length: int) -> Work:
    """Return how to attend, with its mask or layout made."""
    if name == "fused":
        return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    if name.startswith("blocks"):
        layout = block_layout(pattern, int(name.split()[-1]), length)
        return lambda q, k, v: block_sparse_attention(q, k, v, layout)
    if name.startswith("flex"):
        sizes = None, None, length, length
        mask = create_block_mask(lambda b, h, i, j: pattern(i, j), *sizes, device="cpu")
        flex = torch.compile(flex_attention) if "uncompiled" not in name else None
        return lambda q, k, v: (flex or flex_attention)(q, k, v, block_mask=mask)
    mask = pattern.mask(length)
    if name == "masked":
        return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return lambda q, k, v: scaled_dot_product_attention(q, k, v, mask)[0]


def names(length: int) -> list[str]:
    """Return the ways that a length is tried with."""
    dense = [name for name in UP_TO if length <= UP_TO[name]]
    return [*dense, "fused", *(f"blocks of {c}" for c in BLOCKS)]


def inputs(length: int, learned: bool = True) -> list[Tensor]:
    """Return queries, keys and values; ``learned`` ones want a gradient."""
    torch.manual_seed(0)
    return [
        torch.randn(1, HEADS, length, WIDTH, requires_grad=learned) for _ in range(3)
    ]


def seconds(work: Work, qkv: list[Tensor]) -> list[float]:
    """Return the CPU seconds of a forward pass, and of one with a backward pass."""
    began = time.process_time()
    with torch.no_grad():
        work(*qkv)
    middle = time.process_time()
    torch.autograd.grad(work(*qkv).sum(), qkv)
    return [middle - began, time.process_time() - middle]


def middle(times: list[float]) -> list[float]:
    """Return the least, the median and the most."""
    chosen = min(times), statistics.median(times), max(times)
    return [float(f"{t:.4g}") for t in chosen]


def timed(ways: dict[str, Work], length: int) -> dict[str, Any]:
    """Time all in turn, forward alone and with the backward pass."""
    qkv, rounds = inputs(length), ROUNDS if length <= LENGTH else 3
    turns = [
        {name: seconds(work, qkv) for name, work in ways.items()}
        for _ in range(rounds + 1)  # the first one warms up
    ][1:]
    found: dict[str, Any] = {"rounds": rounds}
    for part, kind in enumerate(("forward", "both")):
        found[kind] = {
            name: {
                "seconds": middle([turn[name][part] for turn in turns]),
                "to fused": middle(
                    [turn[name][part] / turn["fused"][part] for turn in turns]
                ),
            }
            for name in ways
        }
    return found


def computed(name: str, pattern: Pattern, length: int) -> int:
    """Return the pairs whose scores a way computes, at least."""
    if name.startswith("blocks"):
        return block_layout(pattern, int(name.split()[-1]), length).computed
    return length * (length + 1) // 2 if name == "fused" else length**2


def multiplications(found: list[str], pattern: Pattern, length: int) -> dict[str, int]:
    """Return the multiplications of scores, forward."""
    each = HEADS * WIDTH
    return {name: each * computed(name, pattern, length) for name in found}


def attend(name: str, length: int, backward: bool = True) -> Callable[[], Any]:
    """Return a pass at window 256, to be measured, after a small one."""
    pattern = local_pattern(WINDOW)

    def passing(length: int) -> Callable[[], Any]:
        work, qkv = way(name, pattern, length), inputs(length, backward)

        def run() -> None:
            if backward:
                torch.autograd.grad(work(*qkv).sum(), qkv)
            else:
                with torch.no_grad():
                    work(*qkv)

        return run

    passing(256)()
    return passing(length)


def by_length() -> list[dict[str, Any]]:
    """Measure all ways at window 256."""
    rows = []
    for length in LENGTHS:
        pattern, found = local_pattern(WINDOW), names(length)
        entry = {"length": length, "multiplications": {}, "MB": {}}
        entry |= timed({name: way(name, pattern, length) for name in found}, length)
        entry["multiplications"] = multiplications(found, pattern, length)
        for name in found:
            entry["MB"][name] = round(peak(attend, name=name, length=length), 1)
        rows.append(entry)
        print(entry, flush=True)
    return rows


def by_sparsity() -> list[dict[str, Any]]:
    """Measure all ways at 4096 positions; "allowed" is the share of t² pairs."""
    kinds = {f"window {w}": local_pattern(w) for w in WINDOWS} | patterns()
    rows = []
    for kind, pattern in kinds.items():
        allowed, found = int(pattern.mask(LENGTH).sum()), names(LENGTH)
        if "window" not in kind:
            found = found[2:]  # a mask costs the same, whatever it says
        entry = {"pattern": kind, "allowed": allowed / LENGTH**2}
        entry |= timed({name: way(name, pattern, LENGTH) for name in found}, LENGTH)
        entry["multiplications"] = multiplications(found, pattern, LENGTH)
        entry["useful"] = {
            name: allowed / computed(name, pattern, LENGTH)
            for name in found
            if name.startswith("blocks")
        }
        rows.append(entry)
        print(entry, flush=True)
    return rows


def of_flex() -> dict[str, Any]:
    """Measure ``flex_attention`` at 4096 positions, or tell what it raises."""
    pattern, qkv = local_pattern(WINDOW), inputs(LENGTH, learned=False)
    wanted = way("masked", pattern, LENGTH)(*qkv)
    found: dict[str, Any] = {"length": LENGTH, "window": WINDOW}
    ways = {"fused": way("fused", pattern, LENGTH)}
    ways["blocks of 64"] = way("blocks of 64", pattern, LENGTH)
    try:
        ways["flex"] = way("flex", pattern, LENGTH)
        torch.testing.assert_close(ways["flex"](*qkv), wanted, rtol=1e-4, atol=1e-5)
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, work in ways.items():
                began = time.process_time()
                work(*qkv)
                times[name].append(time.process_time() - began)
        found["forward"] = {name: middle(t) for name, t in times.items()}
    except Exception as error:  # no compiler, or no such kernel here
        found["compiled raises"] = first_line(error)
    try:
        ways["flex"](*inputs(LENGTH)).sum().backward()
        found["backward raises"] = ""
    except Exception as error:
        found["backward raises"] = first_line(error)
    cases = {"fused": "fused", "flex, uncompiled": "flex, uncompiled"}
    found["MB, forward"] = {
        name: round(peak(attend, name=name, length=LENGTH, backward=False), 1)
        for name in cases
    }
    print(found, flush=True)
    return found


def first_line(error: Exception) -> str:
    """Return the kind of an error, and the first line of its message."""
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"


def run() -> dict[str, Any]:
    config = {"heads": HEADS, "width": WIDTH, "window": WINDOW, "stride": STRIDE}
    left_out = {f"{name}, beyond": most for name, most in UP_TO.items()}
    result = {"config": config | {"length": LENGTH}, "left out": left_out}
    result |= {"by length": by_length(), "by sparsity": by_sparsity()}
    return result | {"flex": of_flex()}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, for medians."""

    def ratio(row: dict[str, Any], way: str, kind: str = "both") -> float:
        return row[kind][way]["to fused"][1]

    last, flex = record["by length"][-1], record["flex"]
    assert all(ratio(last, f"blocks of {c}") < 0.25 for c in BLOCKS)
    assert ratio(last, "blocks of 64", "forward") < 0.25
    by = {row["pattern"]: row for row in record["by sparsity"]}
    assert min(ratio(by[f"window {w}"], "masked") for w in WINDOWS) > 1.3
    assert all(ratio(by[f"window {w}"], "blocks of 64") < 1 for w in (64, 256, 512))
    assert ratio(by["window 4096"], "blocks of 64") > 1
    assert ratio(by["fixed, 2"], "blocks of 64") > 1
    for kind in ("strided, 1", "strided, 2", "fixed, 1"):
        assert ratio(by[kind], "blocks of 64") < 1
    formed, times = flex["MB, forward"], flex["forward"]
    assert formed["flex, uncompiled"] > 10 * formed["fused"]
    assert times["flex"][1] < min(times[way][1] for way in ("fused", "blocks of 64"))
    assert flex["backward raises"]
