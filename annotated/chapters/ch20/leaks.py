"""Chapter 20: a run that looks like a triumph, and pictures of who sees whom."""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from statistics import mean

import matplotlib.pyplot as plt
import torch
from matplotlib.colors import ListedColormap
from torch import Tensor, nn

from annotated.attention import MultiHeadAttention
from annotated.chapters.ch20.clinic import CHUNK, NormOver, SummaryAttention, reach  # noqa: F401, the page
from annotated.gpt import GPT, GPTConfig, next_token_loss
from annotated.page.frames import Html
from annotated.page.notebook import show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import COLOURS, OTHER, plot_lines
from annotated.reformer import Reformer, ReformerConfig

DIGITS, LENGTH, STEPS, ROWS, RATE = 10, 32, 500, 32, 5e-3


def digits(rows: int, seed: int, symbols: int = DIGITS) -> Tensor:
    """Return random symbols, (rows, 33): nobody can know the next one."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(symbols, (rows, LENGTH + 1), generator=generator)


def reader(attention: Callable[[], nn.Module] | None = None) -> GPT:
    """Return a small GPT of digits; ``attention`` makes that of each block."""
    return GPT(GPTConfig(DIGITS, 32, 4, 2, 128, max_len=LENGTH), attention)


def with_summaries(may_read: Callable) -> GPT:
    """Return a GPT that also attends to means of chunks, which it ``may_read``."""
    return reader(partial(SummaryAttention, 32, 4, CHUNK, may_read))


class SoftlyMasked(MultiHeadAttention):
    """Attention whose mask takes 20 off a later key's score, and not infinity."""

    def score_bias(self, q, k):
        later = torch.ones(q.shape[2], k.shape[2]).triu(1)
        return -20 * later


def softly_masked() -> GPT:
    return reader(partial(SoftlyMasked, 32, 4))


def normed_over_time() -> GPT:
    """Return a GPT whose last norm is over positions, not over numbers."""
    model = reader()
    model.blocks.norm = NormOver(32, 1)
    return model


def learn(
    model: nn.Module, seed: int = 0, steps: int = STEPS, symbols: int = DIGITS
) -> list[float]:
    """Train a ``model`` on random symbols, fresh ones at every step.

    Returns:
        The loss at every step, in nats per symbol.
    """
    adam, losses = torch.optim.Adam(model.parameters(), RATE), []
    text = digits(ROWS * steps, 100 + seed, symbols)
    for batch in text.split(ROWS):
        loss = next_token_loss(model, (batch[:, :-1], batch[:, 1:]))
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    model.eval()
    return losses


@torch.no_grad()
def held_out(model: nn.Module, symbols: int = DIGITS, rows: int = 500) -> float:
    """Return the loss on symbols that no training has read."""
    text = digits(rows, 7, symbols)
    return next_token_loss(model, (text[:, :-1], text[:, 1:])).item()


@cache  # the first screen and a cell further down show the same run
def triumph() -> tuple[GPT, GPT, dict[str, list[float]]]:
    """Train the model of the first screen, and one that is honest.

    Returns:
        Both models, and their losses by name.
    """
    torch.manual_seed(0)
    model = with_summaries(operator.le)
    torch.manual_seed(0)
    honest = reader()
    losses = {"yours": learn(model), "a plain GPT": learn(honest)}
    return model, honest, losses


def triumph_figure(losses: Mapping[str, Sequence[float]]) -> Html:
    """Plot the losses, and what no loss can honestly fall below."""
    lines = {
        name: {i + 5: mean(values[i : i + 10]) for i in range(0, STEPS, 10)}
        for name, values in losses.items()
    }
    ax = plot_lines(
        lines,
        colors={"a plain GPT": OTHER},
        xlabel="training step",
        ylabel="loss, nats per digit",
        ylim=(0, 2.75),
        xlim=(0, STEPS),
    )
    return show(
        ax.figure,
        title="A triumph",
        caption="Trained on this page, on digits that nobody has seen before: means of "
        "ten steps.",
    )


# ---- who sees whom -------------------------------------------------------------------


def reach_figure(
    found: Mapping[str, Tensor], title: str, caption: str, alt: str
) -> Html:
    """Draw who sees whom, a panel for each model: later tokens are red.

    Args:
        found: by name, what :func:`reach` returns.
        title: of the figure.
        caption: below it.
        alt: what is to be seen, in words.
    """
    figure, axes = plt.subplots(1, len(found), figsize=(8.6, 3.5), squeeze=False)
    colors = ListedColormap(["none", OTHER, COLOURS["wrong"]])
    for ax, (name, seen) in zip(axes[0], found.items(), strict=True):
        kinds = seen.int() + seen.triu(1).int()  # 2: a later token
        ax.pcolormesh(kinds, cmap=colors, vmin=0, vmax=2)
        ax.axline((0, 0), slope=1, color=COLOURS["muted"], lw=1)
        ax.set(title=name, xlim=(0, len(seen)), ylim=(len(seen), 0), aspect="equal")
        ax.set(xlabel="across: token j", xticks=(), yticks=())
        ax.grid(visible=False)
    return show(figure, title=title, caption=caption, alt=alt)


def summaries_picture(seen: Tensor, repaired: Tensor) -> Html:
    """Draw which token reads which summary, (n, t), as it stood and as it should be."""
    n, t = seen.shape
    both = torch.cat([seen, repaired])  # one matrix, so that columns line up
    matrix = Matrix(
        both.float(),
        rows=[f"{i} {sign} own" for sign in ("<=", "<") for i in range(n)],
        columns=[f"{i}" for i in range(t)],
        wrong=torch.cat([seen & ~repaired, torch.zeros_like(seen)]),
        narrow=True,
        digits=0,
        weights=True,
    )
    caption = "Down: a chunk; across: eight tokens. 1: the token reads its summary."
    return chain(matrix, caption=caption)


# ---- why equal shapes, and why no tolerance ------------------------------------------


@torch.no_grad()
def differences(model: nn.Module, tokens: Tensor, i: int) -> tuple[float, float]:
    """Return how far logits up to i move, at equal shapes and read alone.

    Args:
        model: gives logits (b, t, v).
        tokens: digits, (b, t).
        i: the last position whose logits are compared.
    """
    before = model(tokens)[:, : i + 1]
    changed = tokens.clone()
    changed[:, i + 1 :] = (changed[:, i + 1 :] + 1) % DIGITS
    after, alone = model(changed)[:, : i + 1], model(tokens[:, : i + 1])
    return (before - after).abs().max().item(), (before - alone).abs().max().item()


def shapes_table(
    models: Mapping[str, nn.Module], tokens: Tensor, i: int
) -> tuple[Html, dict[str, tuple[float, float]]]:
    """Show what two ways of asking say of each model; and return it.

    Args:
        models: by name.
        tokens: digits, (b, t).
        i: the last position whose logits are compared.
    """
    found = {name: differences(model, tokens, i) for name, model in models.items()}
    rows = [(name, *map(readable, each)) for name, each in found.items()]
    header = "", "another future, same length", "no future, shorter"
    caption = f"How far logits up to position {i} move."
    return show_table(header, rows, caption), found


def readable(x: float) -> str:
    """Return a difference: exactly 0.0, or in two digits."""
    if not x:
        return "0.0"
    if x >= 0.01:
        return f"{x:.2f}"
    digit, power = f"{x:.0e}".split("e")
    small = str(-int(power)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digit} · 10⁻{small}"


# ---- the book's own error ------------------------------------------------------------


def reformer(symbols: int = DIGITS, chunk: int = 8, length: int = LENGTH) -> Reformer:
    """Return a small Reformer whose attention hashes once."""
    config = ReformerConfig(
        symbols, 32, 2, 2, 64, max_len=length, chunk=chunk, rounds=1
    )
    return Reformer(config)


def chance(symbols: int) -> float:
    """Return the best loss on random symbols: their logarithm."""
    return math.log(symbols)


def cut_lines(text: Tensor, other: Tensor, change: Tensor, after: int) -> str:
    """Return two texts, and below them which logits moved, (t,) each.

    Args:
        text: ids below ten.
        other: the same up to ``after``.
        change: how far each logit moved.
        after: the last position that is the same.
    """

    def line(name: str, signs: Sequence) -> str:
        cells = [f"{sign}" for sign in signs]
        return (
            f"{name:8}{' '.join(cells[: after + 1])} | {' '.join(cells[after + 1 :])}"
        )

    moved = ["x" if one else "." for one in change.tolist()]
    early = change[: after + 1]
    return "\n".join(
        [
            line("text", text.tolist()),
            line("other", other.tolist()),
            line("logits", [*moved[: after + 1], *" " * (len(moved) - after - 1)]),
            f"{int((early > 0).sum())} of {after + 1} logits before the cut move, "
            f"by {readable(early.max().item())} at most",
        ]
    )
