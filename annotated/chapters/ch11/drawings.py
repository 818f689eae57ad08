"""Chapter 11, text generation: its drawings, tables, explorers, longest proofs."""

import ast
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import pairwise
from statistics import mean
from typing import Any

import matplotlib.pyplot as plt
import numpy
import torch
from markupsafe import Markup
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.attention import record_attention, scaled_dot_product_attention
from annotated.data.text import CHARACTERS, Characters, all_windows
from annotated.decoding import keep_top_p, sample, tempered
from annotated.devices import device_of
from annotated.gpt import GPT, GPTConfig
from annotated.masks import causal_mask
from annotated.page.diagrams import GAP, NOTE, Drawing
from annotated.page.frames import Choice, Html, Slider, Text, explorer, render, static
from annotated.page.notebook import check_close, show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import OTHER, THIS, name_lines, visible
from annotated.page.records import Rows, grouped
from annotated.page.references import torch_weights

After = Callable[[str], Counter]
TEMPERATURES = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3]


def sign(character: str) -> str:
    """Return a character as a figure shows it."""
    return "↵" if character == "\n" else visible(character)


# ---- what comes next -----------------------------------------------------------------


def writing(counted_after: After, typed: str) -> Html:
    """Draw five steps of writing; each appends the likeliest after the last four."""
    drawing, said = Drawing(350, 154), []
    for top in range(0, 150, 31):
        counts = counted_after(typed[-4:])
        shares = [(c, n / counts.total()) for c, n in counts.most_common(3)]
        ends = [164 - 9 * i for i in range(len(typed))][::-1]
        drawing.text(ends, top + 19, typed, code=True, size=14)
        drawing.line((ends[-4] - 4, top + 25), (168, top + 25))
        for i, (character, share) in enumerate(shares):
            if share >= 0.005:
                left, shade = 183 + 56 * i, 0.0 if i else 0.25
                drawing.frame(left, top + 1, 53, 26, shade=shade)
                drawing.text(left + 9, top + 19, sign(character), code=True, size=14)
                drawing.text(
                    left + 49, top + 19, f"{share:.0%}", anchor="end", size=NOTE
                )
        said.append(f"{typed}: {sign(shares[0][0])} {shares[0][1]:.0%}")
        typed += shares[0][0]
    return drawing.figure(
        alt="Five lines, each one character longer than the one above, with the "
        f"likeliest next characters beside it: {'; '.join(said)}. The first of them is "
        "shaded, and stands at the end of the line below.",
        caption="How often each character followed the last four (underlined), in two "
        "million characters of Python code. The most frequent one is appended.",
    )


def contexts(counted_after: After, library: str, fresh: str, begun: str) -> Html:
    """Show how often a text's endings occur, and what share of new text never did."""
    rows, unseen = [], []
    for n in (1, 2, 4, 5, 7, 10):
        counts, ends = counted_after(begun[-n:]), range(n, len(fresh))
        seen = {library[end - n : end] for end in range(n, len(library))}
        unseen.append(sum(fresh[e - n : e] not in seen for e in ends) / len(ends))
        sure = f"{counts['('] / counts.total():.0%}"
        context = begun[-n:].replace(" ", "␣")
        rows.append((context, f"{counts.total():,}", sure, f"{unseen[-1]:.0%}"))
    assert unseen[0] < unseen[2] < unseen[5]
    return show_table(
        ("context", "seen", "then (", "unseen"),
        rows,
        caption="How often each context occurs, and what follows. Unseen: of the "
        "contexts of this length in new modules, the share that was never counted.",
    )


def questions(read: str, after: str) -> Html:
    """Draw a window as questions: what may be ``read``, and what comes ``after``."""
    drawing, n = Drawing(350, 26 * len(read) + 22), len(read)
    drawing.text(26 * n / 2, 14, "what may be read")
    drawing.text(300, 14, "target")
    for i in range(n):
        y = 22 + 26 * i
        for j in range(n):
            drawing.frame(
                26 * j + 1, y, 23, 23, dashed=j > i, shade=0.25 * float(j <= i)
            )
            if j <= i:
                drawing.text(26 * j + 12.5, y + 16, sign(read[j]), code=True)
        drawing.arrow((26 * n + 8, y + 11.5), (280, y + 11.5))
        drawing.frame(288, y, 23, 23)
        drawing.text(299.5, y + 16, sign(after[i]), code=True)
    return drawing.figure(
        alt="Eight rows. In row i the first i characters of the window stand in shaded "
        "cells; the others are empty. An arrow leads to the target, the character "
        f"after them. The window: {read!r}, the targets: {after!r}.",
        caption="The beginning of a window. Each row is a question: from the shaded "
        "characters, predict the one on the right. Dashed: hidden by the mask.",
    )


# ---- averages and attention ----------------------------------------------------------


def mixed(weights: Tensor, x: Tensor, *, caption: str = "") -> Html:
    """Show weights (t, t) times the vectors (t, 2) of ``f(ab``; lit, the last row."""
    letters, features = [*"f(ab"], ["letter", "bracket"]
    look = {"mask": torch.ones(4, 4).tril() > 0, "weights": True}
    return chain(
        *(Matrix(weights, "who looks at whom", letters, letters, row=3, **look), "·"),
        *(Matrix(x, "vectors", letters, features), "="),
        Matrix(weights @ x, "what comes out", letters, features, row=3),
        caption=caption,
    )


def check_mixing(attend: Callable[[float], tuple[Tensor, Tensor]], x: Tensor) -> None:
    """Check a notebook's attention for a score against chapter 2's, and its numbers."""
    mask = causal_mask(4)[0, 0]
    for claim, score in (("at a score of 4", 4.0), ("at 0, the average", 0.0)):
        query, key = torch.tensor([[0.0, score]] * 4), x
        theirs, _ = scaled_dot_product_attention(query, key, x, mask, scale=1.0)
        check_close(f"ours = chapter 2's, {claim}", attend(score)[1], theirs)
    later = torch.cat([x, x[:1].repeat(30, 1)])  # thirty letters more
    far = (later @ torch.tensor([0.0, 4.0])).softmax(dim=-1)[1].item()
    assert abs(far - 0.62) < 0.01 and abs(1 / len(later) - 0.03) < 0.005
    print(f"✓ thirty letters later: {far:.2f}, and in the average {1 / len(later):.2f}")


def architecture() -> Html:
    """Draw a GPT: the stream, and the two branches of a layer."""
    drawing, stream = Drawing(350, 400), 86
    drawing.text(stream, 14, "characters (b, t)")
    drawing.arrow((stream, 20), (stream, 34))
    y = drawing.box(stream, 34, 136, "embedding", "+ position")
    drawing.text(stream + 8, y + 20, "stream (b, t, d)", anchor="start", size=NOTE)
    drawing.text(12, y + 50, "one layer,", anchor="start", size=NOTE)
    drawing.text(12, y + 66, "repeated", anchor="start", size=NOTE)
    points, top = [(stream, y)], y + 40
    for name in (["causal attention"], ["feed-forward", "network"]):
        plus = drawing.branch(stream, 252, top, 150, ["norm"], name)
        drawing.arrow(*points, (stream, plus - 8), width=4)
        points, top = [(stream, plus + 8)], plus + 24
    drawing.frame(4, y + 30, 342, plus - y - 14, dashed=True)
    drawing.arrow(*points, (stream, plus + 34), width=4)
    end = drawing.box(stream, plus + 34, 136, "norm, output")
    drawing.arrow((stream, end), (stream, end + GAP + 2))
    drawing.text(stream + 70, end + 28, "what comes next: logits (b, t, v)")
    drawing.height = round(end + 34)
    return drawing.figure(
        alt="A flow from top to bottom: characters, embedding plus position; then, in "
        "a frame that says one layer, repeated: two branches leave the stream and are "
        "added to it again, norm and causal attention, norm and feed-forward network; "
        "then norm and output, logits of what comes next.",
        caption="A GPT. b windows, t characters, d model width, v characters in the "
        "vocabulary.",
    )


@torch.no_grad()
def check_small(small_gpt: Callable[..., nn.Module]) -> None:
    """Check the page's own GPT against the module, with the same parameters."""
    sizes = {"d_model": 8, "heads": 2, "layers": 3, "max_len": 7}
    ours = small_gpt(13, *sizes.values()).double()
    ships = GPT(GPTConfig(13, d_ff=32, **sizes)).double()
    for own, shipped in zip(ours.parameters(), ships.parameters(), strict=True):
        own.copy_(shipped.normal_(std=0.5))
    tokens = torch.randint(13, (3, 5))
    check_close("SmallGPT = the book's GPT", ours(tokens), ships(tokens), 1e-9)


def check_gpt() -> None:
    """Check the module against chapter 6's layers and against PyTorch's own encoder."""
    sizes = {"d_model": 8, "heads": 2, "layers": 3, "d_ff": 12, "max_len": 7}
    small = GPT(GPTConfig(13, **sizes)).double()
    layer = nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True, norm_first=True)
    norm = nn.LayerNorm(8)
    peer = nn.TransformerEncoder(layer, 3, norm, enable_nested_tensor=False).double()
    peer.load_state_dict(torch_weights(small.blocks))
    tokens, hidden = torch.randint(13, (3, 5)), torch.ones(5, 5).triu(1).bool()
    stacked = entering = small.embedding.weight[tokens] + small.positions.table[:5]
    for ours in small.blocks.layers:
        stacked = ours(stacked, causal_mask(5))
    tables, answers = [small.embedding.weight, small.positions.table], []
    for states in (None, small.blocks.norm(stacked), peer(entering, mask=hidden)):
        logits = small(tokens) if states is None else states @ tables[0].T
        total = logits.square().sum()
        answers.append([logits, *torch.autograd.grad(total, tables, retain_graph=True)])
    ours, layers, torchs = answers
    check_close("GPT = chapter 6's layers under a causal mask", ours, layers, 1e-9)
    check_close("GPT = nn.TransformerEncoder, gradients as well", ours, torchs, 1e-9)


# ---- how good it gets ----------------------------------------------------------------


def learning(history: Rows, held_out: float) -> Html:
    """Plot the training loss in bits, averaged over 50 steps, and the held-out one."""
    losses = numpy.array([record["loss"] for record in history]) / math.log(2)
    losses = losses[: len(losses) // 50 * 50].reshape(-1, 50).mean(1)
    steps = 50 * numpy.arange(1, len(losses) + 1)
    figure, ax = plt.subplots(figsize=(8.6, 2.8))
    ax.plot(steps, losses, color=THIS, label=f"training batches {losses[-1]:.2f}")
    name = f"held-out modules {held_out:.2f}"
    ax.plot(steps[-1:], [held_out], "o", color=OTHER, clip_on=False, label=name)
    ax.set(xlabel="training step", ylabel="bits per character", xlim=(0, steps[-1]))
    name_lines(ax)
    return show(
        figure,
        title="Most is learned early, and new modules stay harder",
        caption="Each point is the mean of 50 batches. The held-out modules were read "
        "once, at the end.",
    )


@torch.no_grad()
def window_bits(model: nn.Module, ids: Tensor, length: int = 64) -> Any:
    """Return the bits, (windows, length), of each character; windows lie end to end.

    Args:
        model: in evaluation mode.
        ids: the text; what is left over at its end is left out.
    """
    found = []
    for window, following in all_windows(ids, length, 64):
        if window.shape[1] == length:
            logits = model(window.to(device_of(model))).cpu().mT
            nats = F.cross_entropy(logits, following, reduction="none")
            found.append(nats / math.log(2))
    return torch.cat(found).numpy()


def by_position(runs: Rows, way: str) -> Any:
    """Return bits by position, (seeds, 64), of the recorded models of one kind."""
    chosen = (row["by_position"] for row in runs if row["way"] == way)
    return numpy.array([*chosen])


def back_off_bits(train: Tensor, fresh: Tensor, most: int, size: int) -> list[float]:
    """Return the bits per character of counting, by the characters of context.

    Where a context of ``k`` characters is rare, its last ``k − 1`` decide (Witten and
    Bell's interpolation); up to ``most``, all over the same characters of ``fresh``.
    """
    chances = torch.full((len(fresh) - most,), 1 / size, dtype=torch.double)
    bits = []
    for k in range(most + 1):
        place = size ** torch.arange(k, -1, -1)
        grams, times = (train.unfold(0, k + 1, 1) @ place).unique(return_counts=True)
        contexts, at, kinds = (grams // size).unique(
            return_inverse=True, return_counts=True
        )
        totals = torch.zeros_like(contexts).index_add(0, at, times)
        met = (fresh.unfold(0, k + 1, 1) @ place)[most - k :]
        counted = []
        for keys, values, wanted in (
            (grams, times, met),
            (contexts, totals, met // size),
            (contexts, kinds, met // size),
        ):
            i = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
            counted.append(torch.where(keys[i] == wanted, values[i], 0))
        here, total, different = counted
        mixed = (here + different * chances) / (total + different)
        chances = torch.where(total > 0, mixed, chances)
        bits.append(-chances.log2().mean().item())
    return bits


def counting_said(bits: Sequence[float], ours: float, larger: float) -> str:
    """Say how far counting gets with back-off, beside two models."""
    best = min(range(len(bits)), key=bits.__getitem__)
    return (
        "**Is counting beaten, then?** Not yet. Counting with *back-off* (where a "
        "context is rare, a shorter one decides, after Witten and Bell) reaches "
        f"{bits[best]:.2f} bits with {best} characters of context, and our model "
        f"{ours:.2f}. But with {best + 1} characters counting gets worse again, "
        f"{bits[best + 1]:.2f}. Attention doesn't stop there: the larger model of "
        f"section 11.7 reaches {larger:.2f}."
    )


def position_figure(runs: Rows, held_out: Any, trigrams: float) -> Html:
    """Plot bits by position of four kinds of model; ``held_out``, ours: (windows, 64).

    A band is the range of seeds, widened by twice the standard error of the mean.
    """
    groups = [[0], [1], [2], [3], *numpy.arange(4, 64).reshape(-1, 4)]
    middle, windows = [mean(map(int, g)) + 1 for g in groups], len(held_out)
    noise = [2 * held_out[:, g].mean(1).std() / windows**0.5 for g in groups]
    figure, ax = plt.subplots(figsize=(8.6, 4.0))
    for way in ("average", "convolution", "recurrent", "attention"):
        lines = by_position(runs, way)
        grouped = numpy.stack([lines[:, g].mean(1) for g in groups], axis=1)
        color = THIS if way == "attention" else OTHER
        name = "GRU" if way == "recurrent" else way
        if way in ("attention", "average"):
            ends = grouped.min(0) - noise, grouped.max(0) + noise
            ax.fill_between(middle, *ends, color=color, alpha=0.2, lw=0)
        width = 2.4 if way == "attention" else 1.4
        ax.plot(middle, grouped.mean(0), color=color, lw=width, label=name)
    ax.plot((4, middle[-1]), [trigrams] * 2, color=OTHER, lw=1, label="trigrams")
    ax.set(xlabel="characters read so far", ylabel="bits per character", xlim=(1, 64))
    ax.set(ylim=(2.2, 3.9), xticks=(1, 8, 16, 32, 48, 64))
    name_lines(ax)
    return show(
        figure,
        title="The average loses wherever there is much to read",
        alt="Loss against the number of characters read. All fall steeply over the "
        "first four. Attention, recurrent and convolution go on falling for a while "
        "and then stay level, close together. The average turns round and climbs.",
        caption="Means of three recorded seeds each; from the fifth position on, of "
        "four positions. Bands: range of seeds, and twice the standard error of "
        f"{windows:,} windows.",
    )


def check_positions(runs: Rows) -> None:
    """Check what the page says of recorded losses."""
    attention, average = (by_position(runs, way) for way in ("attention", "average"))
    gains = (average - attention).mean(1)
    assert min(gains) > 0.64 and max(gains) < 0.68
    for lines, rises in ((average, True), (attention, False)):
        early, late = lines[:, 3], lines[:, -8:].mean(1)
        assert ((late > early + 0.2) if rises else (late < early - 0.1)).all()
    for way in ("recurrent", "convolution"):
        behind = (by_position(runs, way) - attention).mean(1)
        assert abs(behind).max() < 0.1 < gains.min()
    print(f"recorded: attention is {gains.round(2)} bits below the average, by seed")


def bracket_pairs(rows: Iterable[str], least: int = 20) -> list[list[Tensor]]:
    """Return which characters have an open bracket before them, and which a closed one.

    Args:
        rows: windows of code.
        least: how many pairs of either kind it takes to compare them at a distance.

    Returns:
        For open and for closed brackets, a tensor ``(3, pairs)`` for each distance from
        8 to 63 that is compared: row, position, and position of the bracket.
    """
    pairs = {"open": {}, "closed": {}}  # by distance
    for b, row in enumerate(rows):
        opened, closed = [], []
        for i, character in enumerate(row):
            if character == "(":
                opened.append(i)
            elif character == ")" and opened:
                closed.append(opened.pop())
            for kind, before in (("open", opened), ("closed", closed)):
                for j in before:
                    pairs[kind].setdefault(i - j, []).append((b, i, j))
    enough = [
        distance
        for distance in range(8, 64)
        if min(len(found.get(distance, [])) for found in pairs.values()) >= least
    ]
    return [[torch.tensor(found[d]).T for d in enough] for found in pairs.values()]


@torch.no_grad()
def last_weights(model: GPT, ids: Tensor) -> Tensor:
    """Return the weights (b, h, t, t) of the second layer, on the CPU."""
    with record_attention(model) as maps:
        model(ids.to(device_of(model)))
    return maps["blocks.layers.1.attention"][0].cpu()


def weight_on_brackets(
    model: GPT, windows: Tensor, pairs: Sequence[Sequence[Tensor]]
) -> list[Tensor]:
    """Return the weight (h,) on open brackets, and on closed; the average's is 1.

    ``pairs`` are those of :func:`bracket_pairs` in ``windows``; each distance counts as
    much as any other.
    """
    # the average puts 1 / (i + 1) on each of the i + 1 characters that it sees
    weights, means = last_weights(model, windows), []
    for kind in pairs:
        each = [weights[b, :, i, j] * (i + 1)[:, None] for b, i, j in kind]
        means.append(torch.stack([one.mean(dim=0) for one in each]).mean(dim=0))
    return means


def brackets(on_open: Tensor, on_closed: Tensor, before: Sequence[float]) -> Html:
    """Plot heads' weights on brackets; ``before``: the chosen one's, untrained."""
    figure, ax = plt.subplots(figsize=(8.6, 2.6))
    heads = range(len(on_open))
    for x, kind, color in ((on_open, "open", THIS), (on_closed, "closed", OTHER)):
        ax.plot(x, heads, "o", ms=9, color=color)
        best = int((on_open - on_closed).argmax())
        ax.annotate(
            f"{kind} {x[best]:.1f} ×", (x[best], best), (0, 10),
            textcoords="offset points", color=color, ha="center",
        )  # fmt: skip
    ax.axvline(1, color=OTHER, lw=1)
    ax.text(1, -0.75, " the average", color=OTHER, va="center")
    ax.set_yticks(heads, [f"head {h}" for h in heads])
    ax.set(
        xlabel="attention relative to a uniform head (= 1)",
        xlim=(0, None),
        ylim=(3.5, -1.2),
    )
    ax.grid(axis="x")
    said = [
        f"head {h}: open {a:.1f}, closed {b:.1f}"
        for h, (a, b) in enumerate(zip(on_open, on_closed, strict=True))
    ]
    return show(
        figure,
        title="Open brackets get more weight than closed ones",
        alt="Weights on brackets, in units of the average's: " + "; ".join(said),
        caption="Second layer, new code, brackets that are equally far back. Before "
        f"training, head {best}: {before[0]:.1f} × and {before[1]:.1f} ×.",
    )


@torch.no_grad()
def surprises(model: GPT, ids: Tensor, text: str) -> Html:
    """Show a method in a held-out ``text`` of these ids, each character by its bits."""
    method = r"    def __delitem__\(self, key\):\n        del self.dict.*?pass\n"
    found = re.search(method, text, re.DOTALL)
    places = torch.arange(*found.span())
    before = ids[places[:, None] + torch.arange(-64, 0)]  # the 64 before each
    logits = model(before.to(device_of(model)))[:, -1].cpu()
    nats = F.cross_entropy(logits, ids[places], reduction="none")
    return shaded(found.group(), nats / math.log(2))


def letter_bits(rows: Sequence[str], bits: Any) -> tuple[float, float]:
    """Return the mean cost of first and of later letters; ``bits``: (windows, t)."""
    begins, goes_on = [], []
    for row, values in zip(rows, bits, strict=True):
        for i in range(1, len(row)):  # what comes before the first isn't known
            if row[i].isalpha():
                kind = goes_on if row[i - 1].isalpha() else begins
                kind.append(values[i])
    return float(numpy.mean(begins)), float(numpy.mean(goes_on))


def ending_bits(rows: Sequence[str], bits: Any, word: str) -> float:
    """Return what the last two letters of a ``word`` cost in the mean, in such rows."""
    ends = []
    for row, values in zip(rows, bits, strict=True):
        for found in re.finditer(rf"\b{word}\b", row):
            ends += values[found.end() - 2 : found.end()].tolist()
    return float(numpy.mean(ends))


def shaded(piece: str, costs: Tensor) -> Html:
    """Show a piece of code, each character shaded by its bits."""
    cell = Markup(
        '<span style="background: color-mix(in srgb, var(--at-minus) {:.0f}%, '
        'transparent)" title="{:.1f} bits">{}</span>'
    )
    shown = [
        cell.format(100 * min(bits / 14, 0.6), bits, "↵\n" if c == "\n" else c)
        for c, bits in zip(piece, costs.tolist(), strict=True)
    ]
    return Html(
        render(
            "figure",
            image=_pre(Markup("").join(shown)),
            title="What begins a word costs more than what continues it",
            caption=f"The stronger, the more bits: {costs.mean():.2f} on average, "
            f"{costs.max():.1f} at the strongest. (Point at a character for its own.)",
        )
    )


def _pre(text: str) -> Markup:
    style = "white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.7"
    style += "; background: none; color: inherit; font-size: 14px"
    return Markup('<pre style="{}">{}</pre>').format(style, text)


def scaling(counting: Rows, runs: Rows, *larger: Rows) -> Html:
    """Plot bits against stored numbers: counts, and models of three sizes."""
    trained = grouped(runs, "way")["attention",], *larger
    sizes = [rows[0]["parameters"] for rows in trained]
    losses = [mean(row["bits"] for row in rows) for rows in trained]
    counts = [(row["numbers"], row["cut"]) for row in counting[2:]]
    figure, ax = plt.subplots(figsize=(8.6, 4.2))
    ax.plot(*zip(*counts, strict=True), "o-", color=OTHER)
    ax.plot(sizes, losses, "o-", color=THIS)
    settings = (
        "width 48,\n3,000 steps",
        "width 96,\n6,000 steps",
        "width 128,\n3 layers",
    )
    marks = {"textcoords": "offset points", "color": OTHER}
    for at, row in zip(counts, counting[2:], strict=True):
        ax.annotate(
            f"{row['back']}" + " back" * (row["back"] == 2), at, (6, 5), **marks
        )
    marks |= {"xytext": (-8, -4), "color": THIS, "va": "top"}
    for *at, name in zip(sizes, losses, settings, strict=True):
        side = "left" if "layers" in name else "right"
        ax.annotate(name, at, ha=side, **marks)
    ax.text(2.4e5, 2.62, "counting", color=OTHER, weight="bold")
    ax.text(3.2e4, 2.2, "attention", color=THIS, weight="bold")
    ax.set(xscale="log", xlabel="stored numbers", ylabel="bits per character")
    ax.set(xlim=(2e4, 2.6e6), ylim=(1.85, 2.9))
    ax.set_xticks([1e5, 1e6], ["100,000", "a million"])
    said = [f"{x:,} numbers {y:.2f}" for x, y in zip(sizes, losses, strict=True)]
    return show(
        figure,
        title="A larger model overtakes counting (one seed)",
        alt="Bits per character against stored numbers. Counting from 2 to 7 "
        f"characters back: {', '.join(f'{y:.2f}' for _, y in counts)}, ever flatter. "
        f"Attention: {', '.join(said)}.",
        caption="Held-out modules, cut into windows of 64 characters. Recorded: three, "
        "three and one seed, the larger two trained for 6,000 steps.",
    )


def check_scaling(counting: Rows, runs: Rows, larger: Rows, deeper: Rows) -> None:
    """Check what the page says of counts and of recorded models of three sizes."""
    ours = grouped(runs, "way")["attention",]
    cuts, (grown,), longest = [row["cut"] for row in counting], deeper, counting[-1]
    first, second = ([row["bits"] for row in rows] for rows in (ours, larger))
    sizes = [rows[0]["parameters"] for rows in (ours, larger)]
    assert max(first) < cuts[2] - 0.3 and min(first) > cuts[3] + 0.04
    assert max(second) < cuts[4] - 0.02 and sizes[1] < counting[4]["numbers"]
    assert 2.4 < counting[3]["numbers"] / sizes[0] < 2.6
    assert grown["bits"] < min(cuts) - 0.02
    assert grown["overlapping"] < min(row["bits"] for row in counting) - 0.02
    assert grown["parameters"] < 0.34 * longest["numbers"]
    won = [a - b for a, b in pairwise(cuts)]
    assert all(a > b > 0 for a, b in pairwise(won)) and won[6] < 0.01
    print(
        f"recorded: a fifth, sixth and seventh character of context improve the count "
        f"by {won[4]:.2f}, {won[5]:.2f} and {won[6]:.3f} bits; on unbroken text it "
        f"reaches {longest['bits']:.2f}, the model {grown['overlapping']:.2f}"
    )


# ---- sampling ------------------------------------------------------------------------


def distributions(kinds: Sequence[Tensor], symbols: Sequence[str]) -> Html:
    """Show distributions (v,) over the five likeliest characters, and all others."""
    names = ["as it is", "temperature 0.5", "top-k, 3", "top-p, 0.75"]
    order = kinds[0].argsort(descending=True)
    rows = [torch.cat([d[order[:5]], d[order[5:]].sum()[None]]) for d in kinds]
    columns = [*(sign(symbols[i]) for i in order[:5].tolist()), "rest"]
    return chain(
        Matrix(torch.stack(rows), rows=names, columns=columns, weights=True),
        # given: 0.005
        caption="One distribution of our model, and what becomes of it. 0: less than "
        f"0.005, or cut. Last column: the {len(symbols) - 5} other characters.",
    )


def next_character(
    logits: Mapping[str, Tensor],
    cut_at: Callable[[float, float, str], dict[str, Any]],
    symbols: Sequence[str],
) -> Html:
    """Show temperature and top-p on logits (v,) by prompt; ``cut_at`` is the check."""
    first, sure, other = logits
    left = [cut_at(t, 0.9, first)["kept"] for t in (0.5, 1, 2)]
    assert left[0] <= left[1] <= left[2]  # flatter, so more are needed
    return explorer(
        static("ch11/next_character.js"),
        {
            "logits": {after: z.tolist() for after, z in logits.items()},
            "characters": "".join(symbols),
        },
        [
            Choice("after", "after", list(logits)),
            Slider("temperature", "temperature", TEMPERATURES, 1),
            Slider("top_p", "top-p", [0.25, 0.5, 0.75, 0.9, 0.95, 1], 1),
        ],
        label="Temperature and top-p on one distribution",
        checks=[
            ({"temperature": t, "top_p": p, "after": after}, cut_at(t, p, after))
            for t, p, after in (
                *((1, 1, first), (0.25, 0.5, other), (0.5, 0.9, first)),
                *((1.5, 0.95, sure), (3, 0.75, first), (1, 0.9, other)),
            )
        ],
        # given: 0.9
        question="Set top-p to 0.9. How many characters does it leave after def, after "
        "retur, after self._? And if you raise the temperature to 2, more or fewer?",
        caption="Outlines: the model's own distribution. Bars: what is drawn from. "
        "Paler, on the right: all the others together.",
    )  # fmt: skip


def check_write(write: Callable[..., str], model: GPT, ids: Tensor) -> None:
    """Check that a notebook's loop writes what ``sample`` does, with a cache or not."""
    given = {"max_new_tokens": 40, "temperature": 0.8, "top_p": 0.9}
    symbols = Characters(CHARACTERS)
    prompt = "".join(symbols.decode(ids[0].tolist()))
    for cache in (True, False):
        generator = torch.Generator().manual_seed(0)
        new = sample(model, ids, cache=cache, generator=generator, **given)[0]
        wrote = prompt + "".join(symbols.decode(new.tolist()))
        assert wrote == write(prompt, 40, 0.8, 0.9)
    print("✓ the module's sample(…) writes what our loop writes, cache or not")


WORD = re.compile(r"(?<![A-Za-z_])[A-Za-z_]{3,}(?![A-Za-z_]|$)")


def words_of(pieces: Iterable[str]) -> list[str]:
    """Return the words of three letters or more, without those that an end may cut."""
    return [word for piece in pieces for word in WORD.findall(piece)]


def pieces_of(code: str, begun: str, seed: int) -> list[str]:
    """Return sixty pieces of 56 characters that follow a beginning somewhere in code.

    So they begin as samples do, and are as long. The ``seed`` draws them.
    """
    ends = [found.end() for found in re.finditer(re.escape(begun), code)]
    order = torch.randperm(len(ends), generator=torch.Generator().manual_seed(seed))
    return [code[ends[i] :][:56] for i in order[:60].tolist()]


def word_counts(words: Sequence[str], known: Set[str]) -> tuple[float, int, int]:
    """Return the share of words that are known, and how many are distinct.

    And how many distinct ones are ``known``: occur in the training text.
    """
    share = sum(word in known for word in words) / max(len(words), 1)
    return share, len(set(words)), len(known.intersection(words))


def words_table(
    taken: int,
    share: Mapping[tuple, float],
    variety: Mapping[tuple, int],
    blank: Mapping[tuple, float],
    real: tuple[float, Sequence[int], float],
) -> Html:
    """Show what words are like at each setting, and in ``real`` code."""
    rows = [
        (
            f"temperature {temperature}" + f", top-p {cut}" * (cut < 1),
            f"{share[temperature, cut]:.0%}",
            str(variety[temperature, cut]),
            f"{blank[temperature, cut]:.0%}",
        )
        for temperature, cut in share
    ]
    known, distinct, spaces = real
    row = f"{known:.0%}", f"{numpy.median(distinct):.0f}", f"{spaces:.0%}"
    return show_table(
        ("", "known", "distinct", "spaces"),
        [*rows, ("held-out modules", *row)],
        caption=f"{taken} words at each setting, of three letters or more; spaces: "
        "their share of all characters. Distinct words of held-out modules: the "
        f"median of ten draws of {taken}.",
    )


# ---- in the browser, and larger ------------------------------------------------------


def answers(
    model: GPT, symbols: Characters, draws: Sequence[Sequence[float]]
) -> Callable[..., tuple[dict[str, Any], dict[str, Any]]]:
    """Return a function that computes what the explorer of section 11.6 has to show."""

    @torch.no_grad()
    def in_the_browser(prompt: str, temperature: float, top_p: float, seed: int) -> Any:
        ids, first = symbols.encode(prompt.replace("\\n", "\n")), None
        begun = len(ids)
        for draw in draws[seed - 1]:
            logits = model(torch.tensor([ids[-64:]]))[0, -1]
            kept = keep_top_p(tempered(logits, temperature), top_p)
            shown = {"chances": kept.tolist(), "kept": int((kept > 0).sum())}
            first = first or shown
            ids.append(int((kept.cumsum(0) > draw).int().argmax()))
        state = {"prompt": prompt, "temperature": temperature, "top_p": top_p}
        written = "".join(symbols.decode(ids[begun:]))
        return state | {"seed": seed}, first | {"written": written}

    return in_the_browser


def text_writer(model: GPT, packed: Mapping[str, Any], symbols: Characters) -> Html:
    """Show a model, with the weights that a browser has, that continues a text."""
    draws = torch.rand(5, 70, generator=torch.Generator().manual_seed(0)).tolist()
    answer, sizes = answers(model, symbols, draws), {"heads": 4, "layers": 2}
    data = {"weights": packed, "characters": "".join(symbols.symbols), "draws": draws}
    return explorer(
        static("ch11/text_writer.js"),
        data | sizes | {"context": 64},
        [
            Text("prompt", "you begin", "    return se", most=64),
            Slider("temperature", "temperature", [0.25, 0.5, 0.75, 1, 1.5], 1),
            Slider("top_p", "top-p", [0.5, 0.75, 0.9, 0.95, 1], 0.9),
            Slider("seed", "another try", [1, 2, 3, 4, 5], 1),
        ],
        label="Our model continues your text",
        checks=[
            answer("    return se", 1, 0.9, 1),
            answer("    for i in ra", 1, 1, 2),
            answer("def f(x):\\n", 0.75, 0.9, 4),
            answer("What is the meaning of life? ", 0.5, 0.9, 3),
        ],
        question="You write the beginning. What comes next, and how sure is it?",
        caption="↵: a real line break. Other breaks are only wrapping.",
    )


def first_lines(begun: str, written: Mapping[str, str]) -> Html:
    """Show, by title, the first ten lines of what was written after a beginning."""
    blocks = []
    for title, text in written.items():
        rest = "\n".join(text.split("\n")[:10]).rstrip()
        code = _pre(Markup("<strong>{}</strong>{}").format(begun, rest))
        blocks.append(Markup('<p class="annotated-title">{}</p>').format(title) + code)
    caption = (
        "Bold: what was given. The first lines of 400 characters each, with seed 0."
    )
    caption += " The larger model is recorded."
    return Html(render("figure", image=Markup("").join(blocks), caption=caption))


def side_by_side(
    begun: str, model: GPT, deeper: Mapping[str, Any], symbols: Characters
) -> Html:
    """Show how a model and the ``deeper``, recorded one continue a line."""
    given, last = deeper["sampling"], (begun, deeper["steps"])
    new = sample(
        model, torch.tensor([symbols.encode(begun)], device=device_of(model)),
        max_new_tokens=400, slide=True,
        temperature=given["temperature"], top_p=given["top_p"],
        generator=torch.Generator().manual_seed(given["seed"]),
    )  # fmt: skip
    ours = (
        f"This page's model, {sum(p.numel() for p in model.parameters()):,} parameters"
    )
    grown = {(row["prompt"], row["step"]): row["written"] for row in deeper["written"]}
    large = f"{deeper['rows'][0]['parameters']:,} parameters"
    written = {ours: "".join(symbols.decode(new[0].tolist())), large: grown[last]}
    return first_lines(begun, written)


def check_larger(deeper: Mapping[str, Any], begun: str, parameters: int) -> None:
    """Check what the page says of the largest model, and of what it wrote."""
    steps, (grown,) = deeper["steps"], deeper["rows"]
    ends = {r["prompt"]: r for r in deeper["written"] if r["step"] == steps}
    final, lost = ends[begun], ends["    def "]["written"]
    lines = (begun + final["written"]).split("\n")[:10]
    assert lines[0].lstrip().startswith("for i in range(")
    assert final["likeliest"]["n"] > 0.85
    assert all(row.count("(") == row.count(")") for row in lines)
    unclosed = [row for row in lines if row.count("[") > row.count("]")]
    assert len(unclosed) == 1 and lines[3].lstrip().startswith("elif")
    assert lines[7] == "" and lines[8].startswith("    def __exit__(")
    assert lost.rstrip().count("\n") == 3 and len(lost) - len(lost.rstrip()) > 100
    assert 8.5 < grown["parameters"] / parameters < 9.5
    try:
        ast.parse("def f():\n" + "\n".join(lines[:7]))
    except SyntaxError as error:
        print(f"recorded: after for i in ra, n {final['likeliest']['n']:.2f}")
        print(f"  of what it writes, Python says: {error.msg}")
    else:
        raise AssertionError("Python accepts what the larger model wrote")


def slid() -> Html:
    """Draw two windows of eight characters, the second a step further."""
    drawing = Drawing(350, 118)
    for row, window in enumerate(("def f(ab", "ef f(ab)")):
        y = 6 + 58 * row
        drawing.text(66, y + 18, ("before", "after")[row], anchor="end")
        drawing.text(66, y + 44, "position", anchor="end", size=NOTE)
        for i, character in enumerate(window):
            shade = 0.25 * float(character == "(")
            drawing.frame(78 + 33 * i, y, 30, 26, shade=shade)
            drawing.text(93 + 33 * i, y + 18, sign(character), code=True)
            drawing.text(93 + 33 * i, y + 44, str(i), size=NOTE)
    return drawing.figure(
        alt="Two rows of eight characters over the positions 0 to 7. Before: d e f "
        "space f bracket a b; the bracket is at position 5. After: e f space f bracket "
        "a b bracket; the same bracket is at position 4, every other one a step to the "
        "left.",
        caption="A window of eight slides by one. The same bracket changes position.",
    )
