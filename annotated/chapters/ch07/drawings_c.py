"""Page 07c, the small print: its drawings, and its longest proofs."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn

from annotated.chapters.ch07.drawings import SYMBOLS
from annotated.page.frames import Html
from annotated.page.notebook import check_close, show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import OTHER, THIS, plot_lines
from annotated.page.svg import COLOURS
from annotated.training import LabelSmoothing


def left_out(missed: Mapping[str, tuple[float, float]]) -> Html:
    """Show by how much losses are off after a break, by what was left out."""
    for part, (gap, _) in missed.items():
        assert (gap == 0) == (part == "nothing"), f"{part}: off by {gap}"
    return show_table(
        ["left out", "losses off by up to", "last loss"],
        [
            [part, f"{gap:.4f}" if gap else "0", f"{last:.2f}"]
            for part, (gap, last) in missed.items()
        ],
    )


def check_lost_bits() -> None:
    """Prove what bfloat16 and float16 lose, and that a factor saves the latter."""
    weight = torch.tensor(1.0, dtype=torch.bfloat16)
    assert weight + 1e-3 == weight  # why parameters stay in 32 bits
    slight = torch.tensor(1e-8)
    assert slight.half() == 0 and slight.bfloat16() > 0
    saved = (slight * 65536).half().float().item() / 65536
    assert abs(saved / 1e-8 - 1) < 0.01
    print(
        "✓ 1e-8 is 0 in float16; multiplied by 65536 and divided again it's "
        f"{saved:.1e}"
    )


def bits(x: Tensor) -> str:
    """Return the bits of a number: its sign, its exponent, its fraction."""
    size = 8 * x.element_size()
    whole = x.view(torch.int32 if size == 32 else torch.int16).item() % 2**size
    text, end = f"{whole:0{size}b}", 6 if x.dtype == torch.float16 else 9
    return f"bits: {text[0]} {text[1:end]} {text[end:]}"


def who_shares(labels: Tensor, v: int, epsilon: float) -> dict[str, Tensor]:
    """Return the targets of ``labels`` under the three meanings of ε."""
    rows = torch.full((*labels.shape, v), epsilon / (v - 1))
    return {
        "ε/v": LabelSmoothing(v, 0, epsilon, "all").distribution(labels),
        "ε/(v − 1)": rows.scatter(-1, labels[..., None], 1 - epsilon),
        "ε/(v − 2)": LabelSmoothing(v, 0, epsilon).distribution(labels),
    }


def three_targets() -> Html:
    """Show one label's target under the three meanings of ε."""
    found = who_shares(torch.tensor([2]), 5, 0.4)
    table = torch.cat([*found.values()])
    return chain(Matrix(table, rows=[*found], columns=SYMBOLS, weights=True, digits=3))


def check_conventions() -> None:
    """Prove which convention is PyTorch's, and that two of them are one family."""
    v, labels = 7, torch.tensor([[3, 1, 5, 0, 0], [6, 2, 2, 4, 1]])
    logits = torch.randn(2, 5, v, dtype=torch.double, requires_grad=True)
    real, e = labels != 0, 0.1
    for epsilon in (0.0, 0.1, 0.4):
        smooth = LabelSmoothing(v, 0, epsilon, spread="all")
        theirs = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=epsilon)
        entropy = torch.special.entr(smooth.distribution(labels)[real]).sum(-1).mean()
        losses = smooth(logits, labels), theirs(logits.mT, labels) - entropy
        check_close(
            f"ε = {epsilon}, shared by all: nn.CrossEntropyLoss − the target's entropy",
            *([x, *torch.autograd.grad(x, logits)] for x in losses),
            1e-5,
        )
    same = who_shares(labels[real], v, e * v / (v - 1))["ε/v"]
    less = who_shares(labels[real], v, e)["ε/(v − 1)"]
    check_close("ε/(v − 1) = ε/v with ε · v/(v − 1)", less, same)
    asked = {size: 0.9 + 0.1 / size for size in (5, 37_000)}
    assert asked[5] > 0.919 and asked[37_000] < 0.90001
    print(
        f"✓ “all” asks for {asked[5]:.3f} with 5 symbols, {asked[37_000]:.5f} with "
        "37,000"
    )


def check_lost_labels() -> None:
    """Prove that the class of the page fails, and how it says so."""

    class Batch:
        def __init__(self, target: Tensor, pad: int = 0):
            self.trg = target[:, :-1]
            self.trg_mask = target[:, 1:]  # meant: trg_y
            self.trg_mask = self.trg != pad
            self.tokens = (self.trg_y != pad).sum()

    try:
        Batch(torch.tensor([[1, 3, 4, 5, 2]]))
    except AttributeError as error:
        assert "trg_y" in str(error)
        print(f"✓ at least it fails on the first batch: {error}")


def reliability_diagram(bins: Mapping[tuple, Sequence], seeds: Sequence[int]) -> Html:
    """Plot the share right against confidence, where examples repeat and are fresh."""
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.6), sharey=True)
    titles = {"repeated": "200 examples, repeated", "fresh": "fresh examples"}
    looks = {0.0: OTHER, 0.1: (THIS, 0.5), 0.2: THIS}
    for ax, (world, title) in zip(axes, titles.items(), strict=True):
        lines, colors = {}, {}
        for epsilon, colour in looks.items():
            for seed in seeds:
                label = f"_{epsilon} {seed}" if seed else f"ε = {epsilon:g}"
                points = bins[world, epsilon, seed]
                lines[label] = {sure: right for sure, right, n in points if n > 0.01}
                colors[label] = colour
        limits = {"xlim": (0.1, 1.02), "ylim": (0.1, 1.02)}
        plot_lines(lines, ax, colors=colors, title=title, xlabel="confidence", **limits)
        plt.setp(ax.lines, marker=".", lw=1.5)
        ax.plot([0, 1], [0, 1], color=COLOURS["muted"], lw=1)
    axes[1].text(0.72, 0.58, "honest", color=COLOURS["muted"])  # below the diagonal
    return show(
        figure,
        title="Smoothing corrects a model that memorised, and spoils an honest one",
        caption="Upwards: the share right. On the diagonal, confidence is honest. "
        "Below it the model is overconfident, above it underconfident.",
    )


def check_underconfident(v: int = 10) -> None:
    """Prove that an uncertain answer's mean loss is lowest at the mean target."""
    truth = torch.linspace(0.02, 0.98, 49).double()[:, None]
    chances = ((1 - truth) / (v - 2)).repeat(1, v)
    chances[:, :1], chances[:, 1:2] = 0.0, truth  # no padding; the rest share the rest
    for epsilon in (0.1, 0.2):
        formula = (1 - epsilon) * truth + epsilon * (1 - truth) / (v - 2)
        best = ((1 - formula) / (v - 2)).repeat(1, v)
        best[:, :1], best[:, 1:2] = 1e-30, formula
        logits = best.log().requires_grad_()
        smooth = LabelSmoothing(v, 0, epsilon)
        for label in range(1, v):  # weighed by how often it comes
            loss = torch.stack([smooth(x, torch.tensor(label)) for x in logits])
            (loss * chances[:, label]).sum().backward()
        assert logits.grad.abs().max() < 1e-6, f"ε = {epsilon}: it could be lower"
    print(
        "✓ on average over what comes, no logit is pushed where p̂ follows the formula"
    )
