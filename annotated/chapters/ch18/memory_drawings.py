"""Chapter 18, where the memory goes: predicted, counted, and drawn moment by moment.

The record is that of ``benchmarks/ch18/memory_use.py``.
"""

from collections.abc import Mapping
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import matplotlib.pyplot as plt
import torch

from annotated.gpt import GPT, GPTConfig, next_token_loss
from annotated.gpt2 import SIZES, count_parameters
from annotated.memory import kept_activations, kept_bytes, memory_timeline
from annotated.page.frames import Html
from annotated.page.notebook import show, show_table
from annotated.page.plots import THIS
from annotated.page.svg import COLOURS

Record = Mapping[str, Any]
#: part, its name, its colour and how strong that is, from the bottom up
LOOKS = (
    ("parameters", "parameters", THIS, 1.0),
    ("optimizer", "Adam's two numbers", THIS, 0.66),
    ("gradients", "gradients", THIS, 0.36),
    ("activations", "activations", COLOURS["ink"], 0.42),
    ("temporary", "temporary", COLOURS["ink"], 0.24),
)
NAMES = {"float32": "float32", "mixed": "autocast", "bfloat16": "bfloat16 alone"}
PHASES = {"forward": 0.45, "backward": 0.45, "update": 0.1}  # of the width


def ways(options: Mapping[str, Any]) -> str:
    """Return in words how a run of the record was trained, by its ``options``."""
    words = {
        "checkpointed": "checkpoints",
        "accumulating": "accumulating",
        "optimizer": "SGD",
    }
    named = [words.get(key) or NAMES[value] for key, value in options.items()]
    return ", ".join(named) or "as it is"


# ---- one step ------------------------------------------------------------------------


def timeline_figure(record: Record) -> Html:
    """Draw memory through a step: what is predicted, by parts, and what was counted."""
    told = record["timeline"]
    moments = list(told["moments"].items())
    rest = moments[0][1] | {"activations": 0, "temporary": 0}
    figure, ax = plt.subplots(figsize=(8.6, 3.9))
    edges = [0.0, *accumulate(PHASES.values())]
    fullest = []
    for (start, end), seen in zip(pairwise(edges), told["seen"].values(), strict=True):
        places = [start + (end - start) * (i + 1) / len(seen) for i in range(len(seen))]
        counted = [(told["held before"] + size) / 1e6 for size in seen]
        ax.plot(places, counted, color=COLOURS["ink"], linewidth=1.1)
        top = 0.99 * max(seen)  # where it is reached; it may stay there for a while
        fullest.append(next(x for x, n in zip(places, seen, strict=True) if n > top))
    logits, loss, update = fullest
    n = sum("forward" in name for name, _ in moments)  # blocks take equal shares
    xs = [0.0, *(logits * 0.98 * (i + 1) / n for i in range(n)), logits, loss]
    xs += [loss + (edges[2] - loss) * (i + 0.2) / n for i in range(n)]
    xs += [edges[2], update, update + 0.004, 1.0, 1.0]  # a copy of one tensor, briefly
    after = moments[-1][1] | {"temporary": 0}
    uses = [rest, *(use for _, use in moments), after, after, rest]
    heights = [[use[part] / 1e6 for use in uses] for part, *_ in LOOKS]
    stack = ax.stackplot(xs, *heights, colors=[color for *_, color, _ in LOOKS])
    for (_, name, _, alpha), area in zip(LOOKS, stack, strict=True):
        area.set(alpha=alpha, linewidth=0, label=name)
    ax.set(xlim=(0, 1), xticks=[0.225, 0.675, 0.95], ylabel="MB")
    ax.set_xticklabels(PHASES)
    handles, names = ax.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2)
    name, use = max(moments, key=lambda one: sum(one[1].values()))
    peak = {part: round(size / 1e6) for part, size in use.items()}
    total = sum(use.values()) / 1e6
    return show(
        figure,
        title="Memory peaks where the backward pass begins",
        alt=f"Areas by part, MB, through one training step. Activations grow block by "
        f"block in the forward pass and shrink in the backward pass, while gradients "
        f"grow. The highest point is at the {name}: {total:.0f} MB, "
        f"{peak['activations']} of activations, {peak['temporary']} temporary.",
        caption=f"A training step of a GPT-2 with {n} blocks. Areas: predicted. Line: "
        "what PyTorch's profiler counted, from one allocation to the next. Areas are "
        "computed where a block or the loss begins or ends, and joined up between.",
    )


# ---- predicted and measured ----------------------------------------------------------


def memory_said(record: Record) -> str:
    """Return in words how far predictions were from what was measured."""
    counted, resident = (
        max(abs(row["off"][key]) for row in record["rows"])
        for key in ("counted", "resident")
    )
    plain, mixed = (
        round(row["resident"] / 1e6)
        for row in record["rows"]
        if row["model"] == "GPT-2 small" and not row["options"].get("checkpointed")
    )
    return (
        f"In {len(record['rows'])} runs, the prediction is at most {counted:.1%} from "
        f"what PyTorch's profiler counts, and at most {resident:.1%} from how far the "
        "process's memory really rose. "
        f"With a single text, GPT-2 small takes more memory with autocast, {mixed:,} "
        f"MB instead of {plain:,}: the copies of its weights outweigh what activations "
        "save."
    )


# ---- counted here --------------------------------------------------------------------


def check_kept(config: GPTConfig, batch: int, length: int) -> None:
    """Prove that what autograd keeps is as predicted, to the byte."""
    tokens = torch.randint(config.vocab_size, (batch, length))
    pair = tokens, tokens.roll(-1, dims=1)
    for name, words in NAMES.items():
        model = GPT(config).to(torch.bfloat16 if name == "bfloat16" else torch.float32)
        with torch.autocast("cpu", torch.bfloat16, enabled=name == "mixed"):
            counted = kept_bytes(model, partial(next_token_loss, model, pair))
        parts = kept_activations(config, batch, length, name)
        predicted = sum(parts.values()) + (config.layers - 1) * parts["block"]
        assert predicted == counted, (words, predicted, counted)
        print(f"✓ {words}: {counted:,} bytes kept, as predicted")


def block_table(config: GPTConfig, batch: int, length: int) -> Html:
    """Show what autograd keeps of one block, tensor by tensor, and of them all."""
    stream = 4 * batch * length * config.d_model
    inner = 4 * batch * length * config.d_ff
    rows = [
        ("what the two norms read", "2 · b · t · d", 2 * stream),
        ("what attention and network read", "2 · b · t · d", 2 * stream),
        ("queries, keys, values", "3 · b · t · d", 3 * stream),
        ("what attention gives", "b · t · d", stream),
        ("what enters the GELU, what leaves it", "2 · b · t · 4d", 2 * inner),
    ]
    kept, n = kept_activations(config, batch, length), config.layers
    whole = kept["block"]
    small = whole - sum(size for *_, size in rows)
    rows.append(("means, deviations, sums of softmaxes", "b · t · (4 + h)", small))
    rows.append(("one block", "≈ 16 · b · t · d", whole))
    rows.append((f"{n} blocks", f"≈ {16 * n} · b · t · d", n * whole))
    rows.append(("last norm, logits", "≈ b · t · (2d + v)", kept["output"]))
    return show_table(
        ("kept for the backward pass", "numbers", "MB"),
        [(name, formula, f"{size / 1e6:,.1f}") for name, formula, size in rows],
        caption=f"Width {config.d_model}, {batch} texts of {length:,} tokens, 4 bytes "
        f"per number. The vocabulary has v = {config.vocab_size:,} words. Attention is "
        "fused; written out, it keeps tables of b · h · t · t numbers besides, "
        f"{4 * batch * config.heads * length**2 / 1e9:.1f} GB each.",
    )


def bytes_table() -> Html:
    """Show the bytes that a parameter takes in each precision, with Adam."""
    rows = []
    config = SIZES["small"]
    number = count_parameters(config)
    for name, label in NAMES.items():
        use = memory_timeline(config, 1, 1, precision=name)["update"]
        each = [round(size / number) for size in use[:3]]
        rows.append((label, *each, sum(each)))
    rows.append(("bfloat16, float32 copy", "2 + 4", 2, 8, 16))
    return show_table(
        ("", "parameter", "gradient", "Adam", "together"),
        rows,
        caption="Bytes per parameter, without activations, among which we count "
        "autocast's copies. In the last row the model computes with a half-precision "
        "copy of its parameters, as in Rajbhandari et al. (2020).",
    )
