"""Page 07b, Adam step by step: its drawings, and its longest proofs."""

from collections.abc import Callable, Mapping, Sequence
from math import log
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from annotated.chapters.ch07.drawings import ends
from annotated.page.frames import Html
from annotated.page.notebook import check_close, show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import OTHER, THIS, plot_lines
from annotated.page.records import grouped
from annotated.page.svg import COLOURS

Moves = Callable[..., Any]  # adam_moves of the page


def weights_present(beta: float = 0.9, steps: int = 4) -> Tensor:
    """Return what each gradient (column) weighs in a running mean after each step."""
    ages = torch.arange(steps)[:, None] - torch.arange(steps)
    return torch.where(ages >= 0, (1 - beta) * beta ** ages.clamp(min=0), 0.0)


def running_means() -> Html:
    """Show the weights in Adam's running mean, as they are and corrected."""
    present = weights_present()
    rows = [f"m after step {n}" for n in (1, 2, 3, 4)]
    look: dict[str, Any] = {"columns": ["g₁", "g₂", "g₃", "g₄"], "weights": True}
    look["mask"] = present > 0
    return chain(
        Matrix(present, "weights in m", rows, **look),
        Matrix(present / present.sum(1, keepdim=True), "÷ (1 − βⁿ)", rows, **look),
        caption="The rows on the left sum to 1 − βⁿ, the weight that is present. "
        "Divided by it, they sum to 1.",
    )


def check_adam(adam_moves: Moves) -> None:
    """Prove that ``adam_moves`` are PyTorch's; what cancels, and what eps leaves."""
    gradients = torch.randn(50, 6).double()
    for betas, eps in (((0.9, 0.98), 1e-9), ((0.9, 0.999), 1e-8)):
        parameter, moves = nn.Parameter(torch.zeros(6).double()), []
        optimizer = torch.optim.Adam([parameter], 1.0, betas, eps)
        for g in gradients:
            before, parameter.grad = parameter.detach().clone(), g.clone()
            optimizer.step()
            moves.append(before - parameter.detach())
        claim = f"by hand = torch.optim.Adam with β₂ {betas[1]} and eps {eps}"
        check_close(claim, list(adam_moves(gradients, betas, eps)), moves, 1e-12)
        for g in (1e-6, 1e-8, 1e-10):
            *_, share = adam_moves([g] * 5, betas, eps)
            assert abs(share - g / (g + eps)) < 1e-6, f"{g}: {share} of a move"
    larger, usual = (list(adam_moves(c * gradients)) for c in (1000, 1))
    check_close("a factor 1000 on all gradients changes no move", larger, usual, 1e-5)
    summed = 1 - 0.9 ** torch.arange(1, 5)
    check_close("the weights sum to 1 − βⁿ", weights_present().sum(1), summed, 1e-6)


def full_means(record: dict) -> Html:
    """Show what a high rate does after steps of no size, and after small ones."""
    named = {
        "300 steps of no size": "300 steps at almost zero rate",
        "40 steps at a tenth": "40 steps at a tenth of the rate",
    }
    return show_table(
        ["before the rate of 0.01", "seed 0", "seed 1", "seed 2"],
        [
            [named[beginning], *(f"{row['end']:.2f}" for row in rows)]
            for (beginning,), rows in grouped(record["rows"], "beginning").items()
        ],
        # exact: 2.30 = log(10)
        # given: 0.01
        caption="Loss after 120 steps at 0.01 (guessing: 2.30)",
    )


def useful_rates(useful: Mapping[str, Sequence], stops: Sequence[int]) -> Html:
    """Plot the highest rate at which the next step lowers the loss, run by run."""
    lines, colors = {}, {}
    for (name, runs), colour in zip(useful.items(), (THIS, OTHER), strict=True):
        for seed, values in enumerate(runs):
            label = f"_{name}" if seed else f"rate {name}"
            drawn = (max(value, 4e-4) for value in values)  # 0: none helped
            lines[label] = dict(zip(stops, drawn, strict=True))
            colors[label] = colour
    ax = plot_lines(
        lines,
        plt.subplots(figsize=(8.6, 3))[1],
        colors=colors,
        xlabel="steps so far",
        ylabel="highest rate that lowers the loss",
        yscale="log",
        ylim=(4e-4, 4e-2),
        xticks=stops,
    )
    plt.setp(ax.lines, clip_on=False)
    ax.axhline(1e-2, color=COLOURS["muted"], lw=1)
    ax.set_yticks([1e-3, 3e-3, 1e-2, 3e-2], ["0.001", "0.003", "0.01", "0.03"])
    ax.minorticks_off()
    return show(
        ax.figure,
        title="Under a growing rate, long steps go on lowering the loss",
        # given: 0.01
        caption="Two seeds each. The thin line: 0.01, which the climbing rate reaches "
        "at step 40. At the lower edge: no rate that was tried lowered the loss.",
    )


def copying_sweep(record: dict) -> Html:
    """Plot where runs end that copy, by rate, with a warm-up and without."""
    last = ends(record)
    rates = sorted({height for _, height in last})
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3), sharey=True)
    colors = {"at once": OTHER, "warm-up": THIS}
    for ax, name in zip(axes, ("constant", "falling"), strict=True):
        lines = {}
        for shape, label in ((name, "at once"), (f"climbing, then {name}", "warm-up")):
            table = torch.tensor([last[shape, rate] for rate in rates])
            low, middle, high = table.sort(dim=1).values.T
            ax.fill_between(rates, low, high, color=colors[label], alpha=0.2, lw=0)
            lines[label] = dict(zip(rates, middle, strict=True))
        look = {"xscale": "log", "xlabel": "peak learning rate", "ylim": (0, 2.6)}
        plot_lines(lines, ax, colors=colors, title=f"a {name} rate", **look)
        ax.axhline(log(10), color=COLOURS["muted"], lw=1)
    axes[0].text(rates[0], log(10), "guessing", va="bottom", color=COLOURS["muted"])
    return show(
        figure,
        title="The same cliff at 0.01 in another model, on another task",
        caption="Loss (nats) after 400 steps: medians and range of three seeds; the "
        "rate is reached at once, or after forty steps of warm-up.",
    )


def plot_moves(moves: Sequence[float]) -> Figure:
    """Plot moves around a spike, 50 steps before it and a thousand after."""
    figure, ax = plt.subplots(figsize=(8.2, 2.9))
    ax.plot(range(-50, len(moves) - 50), moves, color=THIS)
    ax.axhline(1, color=OTHER, lw=1)
    ax.set(xlabel="steps after the spike", ylabel="move (× the rate)", ylim=(0, 3.5))
    return figure


def spike_alt(beta_2: float, spike: float, clipped_at: float) -> str:
    """Say what the moves are around."""
    return f"Moves around a gradient of {min(spike, clipped_at)}, with β₂ = {beta_2}."


def check_memory(adam_moves: Moves) -> None:
    """Hold the page to what it says of one bad batch."""
    spike = [1.0] * 2000 + [100.0] + [1.0] * 3000
    moves = {b: list(adam_moves(spike, (0.9, b))) for b in (0.98, 0.999)}
    back = {
        b: 50 + next(i for i, move in enumerate(values[2050:]) if move > 0.5)
        for b, values in moves.items()  # by then the spike has left m
    }
    jump = {b: values[2000] for b, values in moves.items()}
    assert jump[0.98] < 1.1 < 2.5 < jump[0.999]
    assert back[0.98] < 400 and back[0.999] > 1000
    calm = max(adam_moves([min(g, 1.0) for g in spike], (0.9, 0.999)))
    assert calm < 1.01
    print(
        f"✓ at the spike {jump[0.999]:.1f} × the rate with 0.999, {jump[0.98]:.1f} × "
        f"with 0.98; half speed again after {back[0.999]} and {back[0.98]} steps\n"
        f"✓ with the gradient clipped at 1, at most {calm:.2f} × the rate"
    )


def check_key_biases(model: nn.Module, gradient_of: Callable, batch: Any) -> None:
    """Prove that keys' biases have no gradient, and count tiny ones elsewhere."""
    gradient_of(model.double(), batch)
    named = [(n, p.grad.abs().flatten()) for n, p in model.named_parameters()]
    keys, others = (
        torch.cat([g for n, g in named if n.endswith("key_map.bias") == of_keys])
        for of_keys in (True, False)
    )
    tiny = ((others > 0) & (others < 1e-8)).double().mean().item()
    assert keys.max() < 1e-12 and tiny < 1e-3
    print(
        f"✓ in float64 the gradients of the keys' biases are 0 to {keys.max():.0e};\n"
        f"  of the others {tiny:.2%} are smaller than 1e-8"
    )
