"""Page 6b, norm order, depth and gradients: its plots, tables and proofs."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from statistics import mean
from typing import Any

import matplotlib.pyplot as plt
import torch
from numpy import format_float_positional
from torch import Tensor, nn

from annotated.page.frames import Html
from annotated.page.notebook import show, show_table
from annotated.page.plots import OTHER, THIS, name_lines, plot_lines

Slopes = Mapping[tuple[str, str, int, int], Tensor]
KINDS = ("self-attention", "cross-attention", "feed-forward")


def moves_table() -> Html:
    """Show how far a sentence moves, under each norm, when its batch changes."""
    sentence, rows = torch.randn(3, 8), []
    others = 3 + torch.randn(3, 8), torch.zeros(9, 8)  # a neighbour; padding
    for name, norm in (
        ("layer norm", nn.LayerNorm(8)),
        ("batch norm", nn.BatchNorm1d(8)),
    ):
        moved = [
            (norm(torch.cat([sentence, other]))[:3] - norm(sentence)).abs().max().item()
            for other in others
        ]
        assert max(moved) < 1e-5 if name == "layer norm" else min(moved) > 0.1
        rows.append([name, *(f"{m:.2f}" for m in moved)])
    caption = "How far a sentence moves when the batch changes"
    return show_table(["", "a neighbour", "padding"], rows, caption)


def nearly_table(nearly: Callable[[Tensor], Tensor]) -> Html:
    """Show what a layer norm that is ``nearly`` right gives, beside PyTorch's."""
    rows = []
    for d in (8, 64, 512):
        x = torch.randn(1000, d)
        size = (nearly(x).norm() / nn.LayerNorm(d)(x).norm()).item()
        assert abs(size - ((d - 1) / d) ** 0.5) < 1e-3
        rows.append([f"size at width {d}", f"{size:.1%}", "100%"])
    slopes = []
    for norm in (nearly, nn.LayerNorm(8)):
        flat = torch.zeros(1, 8, requires_grad=True)
        (slope,) = torch.autograd.grad(norm(flat)[0, 0], flat)
        slopes.append(slope[0, 0].item())
    assert slopes[0] > 1e5 and slopes[1] < 1e3
    rows.append(["gradient at a row of zeros", *(f"{slope:.0f}" for slope in slopes)])
    return show_table(["", "nearly", "nn.LayerNorm"], rows)


def by_depth(slopes: Slopes) -> Html:
    """Plot the gradient of each layer, in stacks of some depths, in both orders."""
    for seed in (0, 1, 2):
        pre, post = (slopes["decoder", norm, 32, seed] for norm in ("pre", "post"))
        assert 1 / 20 < pre[0] / pre[-1] < 20 and post[0] / post[-1] < 1e-3
        encoder = slopes["encoder", "post", 32, seed]
        assert encoder[0] / encoder[-1] > 1 / 50  # hardly fades there
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.6), sharey=True)
    for ax, norm in zip(axes, ("pre", "post"), strict=True):
        for stack, depths in (("encoder", [32]), ("decoder", [2, 8, 32])):
            for depth, seed in product(depths, (2, 1, 0)):
                y = slopes[stack, norm, depth, seed]
                name = f"{stack} of 32" if depth == 32 and seed == 0 else None
                look = {"color": THIS if stack == "decoder" else OTHER, "label": name}
                ax.semilogy(range(1, depth + 1), y, alpha=0.3 if seed else 1, **look)
        ax.set(title=f"{norm}-norm", xlabel="layer", xticks=(1, 8, 16, 24, 32))
        name_lines(ax)
    axes[0].set_ylabel("gradient")
    return show(
        figure,
        title="Under post-norm, the gradient fades on its way down a deep decoder",
        caption="Size of each layer's gradient in fresh models, one backward pass. "
        "Blue: decoders of 2, 8 and 32 layers. Grey: encoders. Pale: two more seeds.",
    )


def law(slopes: Slopes) -> Html:
    """Plot the gradient of a decoder's last layer against the depth, and 1/√L."""
    depths, lines = (2, 4, 8, 16, 32), {}
    for norm in ("post", "pre"):
        last = {
            depth: sum(slopes["decoder", norm, depth, seed][-1] for seed in (0, 1, 2))
            for depth in depths
        }
        lines[f"{norm}-norm"] = {depth: x / last[2] for depth, x in last.items()}
    lines["1/√L"] = {depth: (2 / depth) ** 0.5 for depth in depths}
    assert lines["pre-norm"][32] < 0.6 and 1 / 4 < lines["post-norm"][32] < 4
    ax = plot_lines(
        lines,
        colors={"post-norm": OTHER},
        xscale="log",
        yscale="log",
        xlabel="layers L",
        ylabel="gradient, 2 layers = 1",
    )
    ax.lines[-1].set(linestyle=":", marker="")
    ax.set_yticks([0.25, 0.5, 1, 2], ["0.25", "0.5", "1", "2"])
    ax.minorticks_off()
    return show(
        ax.figure,
        title="Under pre-norm, the last layer's gradient shrinks as the model deepens",
        caption="Mean of three seeds. The law counts a layer's network alone, at great "
        "width; we measure a whole layer, of width 32.",
    )


def passed_table(passed: Mapping[Any, Mapping[str, float]]) -> Html:
    """Show what share of the gradient each kind of sublayer lets through."""
    post, bare = passed["post", False], passed["post", True]
    assert post["cross-attention"] < 0.85 < 0.9 < passed["unlike"]["cross-attention"]
    assert min(post["self-attention"], post["feed-forward"]) > 0.9
    assert abs(post["cross-attention"] - bare["cross-attention"]) < 0.05
    assert post["self-attention"] - bare["self-attention"] > 0.1
    names = {
        ("pre", False): "pre-norm",
        ("pre", True): "pre-norm, the addition alone",
        ("post", False): "post-norm",
        ("post", True): "post-norm, the addition alone",
        "unlike": "post-norm, a memory of unlike words",
    }
    return show_table(
        ["", *KINDS],
        [
            [name, *(f"{passed[key][kind]:.2f}" for kind in KINDS)]
            for key, name in names.items()
        ],
        "Share of the gradient that each sublayer lets through",
    )


def ends_table(ends: Mapping[tuple[str, int], Sequence[Mapping[str, float]]]) -> Html:
    """Show how different words are after each stack, of some depths, three seeds."""
    rows = []
    for (norm, depth), several in ends.items():
        for at_end in several:
            assert max(at_end.values()) < 1e-2 or (norm, depth) != ("post", 32)
            assert min(at_end.values()) > 0.01 or (norm, depth) == ("post", 32)
        stacks = [
            # 0.0000002, not 2e-07
            format_float_positional(
                mean(at_end[stack] for at_end in several), 1, fractional=False
            )
            for stack in ("encoder", "decoder")
        ]
        rows.append([f"{norm}-norm, {depth} layers", *stacks])
    heads = ["", "after the encoder", "after the decoder"]
    return show_table(heads, rows, "Difference between words, the mean of three seeds")
