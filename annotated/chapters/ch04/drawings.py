"""Chapter 04, masks: its drawings, tables, explorer, longest proofs."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from annotated.attention import MultiHeadAttention, masked_softmax, record_attention
from annotated.masks import causal_mask, length_mask, padding_mask
from annotated.page.frames import (
    Choice,
    Grid,
    Html,
    Slider,
    explorer,
    plot_html,
    render,
    static,
)
from annotated.page.notebook import check_close, check_same, show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import OTHER, THIS, WEIGHTS, name_lines
from annotated.page.references import torch_weights
from annotated.page.svg import COLOURS, INCH

SENTENCE = "a small dog barks loudly".split()

# ---- tables of weights ---------------------------------------------------------------


def weigh(
    words: Sequence[str],
    scores: Tensor,
    weights: Tensor,
    mask: Tensor | None = None,
    *,
    caption: str,
) -> Html:
    """Show scores and weights (t, s), the row of the second word lit."""
    look: dict[str, Any] = {"rows": words, "columns": words, "row": 1}
    hidden = "" if mask is None else ", hatched: −∞"
    return chain(
        Matrix(scores, "scores" + hidden, mask=mask, **look),
        "softmax →",
        Matrix(weights, "weights", weights=True, mask=mask, **look),
        caption=caption,
    )


def bar(row: Tensor) -> Html:
    """Draw the weights of three words, and of all pads behind them, as one bar."""
    figure, ax = plt.subplots(figsize=(8.1, 0.95))
    start, pads = 0.0, len(row) - 3
    names = ("the", "cat", "sleeps", f"{pads} pad" + "s" * (pads != 1))
    shares = [*row[:3].tolist(), row[3:].sum().item()]
    for i, (name, share) in enumerate(zip(names, shares, strict=True)):
        look = {"hatch": "////"} if i == 3 else {"fc": WEIGHTS(0.2 + share / 2)}
        ax.barh(0, share, left=start, ec=OTHER, lw=0.8, **({"fc": "none"} | look))
        if share > 0.07:
            ax.text(start + share / 2, 0.75, name, ha="center")
            ax.text(start + share / 2, -1.05, f"{share:.1%}", ha="center")
        start += share
    ax.plot([0.5, 0.5], [-0.55, 0.55], color=COLOURS["ink"])
    ax.text(0.5, -1.6, "half", ha="center")
    ax.set(xlim=(0, 1), ylim=(-1.7, 1.2))
    ax.axis("off")
    said = f"With {names[3]}, the words keep {1 - shares[3]:.1%} of cat's weight."
    drawn = plot_html(figure, f"A bar of weights: {', '.join(names)}. {said}")
    return Html(drawn + render("paragraph", kind="says", text=said))


def opposites(function: Tensor, module: Tensor) -> Html:
    """Show the weights (1, 3) of one query that both give under one mask."""
    names = {"columns": ["True", "True", "False"], "weights": True}
    return chain(
        Matrix(function, "function", **names),
        Matrix(module, "module", **names),
        caption="The weights of a query. Above each key, its entry of the mask.",
    )


# ---- drawings of masks ---------------------------------------------------------------


def _board(
    columns: float, rows: float, x: float = 24, y: float = 24
) -> tuple[plt.Figure, plt.Axes]:
    """Return an empty board, y down, with x by y pixels for an entry."""
    figure, ax = plt.subplots(figsize=(columns * x / INCH, rows * y / INCH))
    ax.set(xlim=(0, columns), ylim=(rows, 0))
    ax.axis("off")
    return figure, ax


def _mask(
    ax: plt.Axes,
    left: float,
    top: float,
    mask: Tensor,
    columns: Sequence[str] = (),
    rows: Sequence[str] = (),
) -> None:
    """Draw a mask (t, s), a unit an entry, hatched where it hides."""
    for i, line in enumerate(mask.tolist()):
        for j, sees in enumerate(line):
            hatch = None if sees else "////"
            look = {"fc": "none", "ec": OTHER, "lw": 0.8, "hatch": hatch}
            ax.add_patch(plt.Rectangle((left + j, top + i), 1, 1, **look))
    for j, word in enumerate(columns):
        ax.text(left + j + 0.5, top - 0.2, word, rotation=90, ha="center", va="bottom")
    for i, word in enumerate(rows):
        ax.text(left - 0.25, top + i + 0.5, word, ha="right", va="center")


def lesson(inputs: Sequence[str], targets: Sequence[str]) -> Html:
    """Draw a text as exercises, one a row: what is read, and what comes next."""
    n = len(inputs)
    figure, ax = _board(n + 2, n + 1, x=112, y=28)
    _mask(ax, 0.05, 0.9, causal_mask(n)[0, 0])
    ax.text(0.05 + n / 2, 0.7, "input", ha="center")
    ax.text(n + 0.3, 0.7, "target")
    for i, target in enumerate(targets):
        for j, word in enumerate(inputs[: i + 1]):
            ax.text(j + 0.55, i + 1.4, word, ha="center", va="center")
        ax.text(n + 0.3, i + 1.4, f"→ {target}?", va="center", weight="bold")
    return show(
        figure,
        title=f"One text, {('no', 'one', 'two', 'three', 'four')[n]} exercises",
        alt="A row for each position. The first reads the and should guess cat; the "
        "last reads all four words and should guess now. Later words are covered.",
        caption="Hatched: covered. Without the cover, each answer but the last is "
        "printed one cell to the right.",
    )


def broadcast(padding: Tensor, causal: Tensor, both: Tensor) -> Html:
    """Draw the masks of two sentences: padding & causal = both."""
    figure, ax = _board(21.4, 13.6)
    for n, words in enumerate(("the cat sleeps pad pad".split(), SENTENCE)):
        top = 2.3 + 6.2 * n
        _mask(ax, 0.2, top + 2, padding[n, 0], words)
        _mask(ax, 16.2, top, both[n, 0])
        for x, sign in ((6.7, "&"), (14.7, "=")):
            ax.text(x, top + 2.5, sign, ha="center", va="center", size=16)
    _mask(ax, 8.2, 5.4, causal)
    for x, name, mask in (
        (2.7, "padding", padding),
        (10.7, "causal", causal),
        (18.7, "both", both),
    ):
        ax.text(x, 0.7, name, ha="center", weight="bold")
        ax.text(x, 1.6, str(tuple(mask.shape)), ha="center")
    return show(
        figure,
        title="A row and a triangle make a mask for each sentence",
        alt="Padding, of the shape 2, 1, 1, 5: a row for each of two sentences; of the "
        "first the last two entries are hatched. Causal, 5, 5: one triangle. Both, 2, "
        "1, 5, 5: a triangle without its last two columns, and a whole triangle.",
        caption="Axes: batch, heads, queries, keys. One of size 1, or none, is copied: "
        "the row to all queries, the triangle to both sentences.",
    )


def three_masks() -> Html:
    """Draw the masks of a translator's three attentions."""
    source, target = "the cat sleeps pad".split(), "start le chat dort pad".split()
    real, real_target = (
        torch.tensor([word != "pad" for word in words]) for words in (source, target)
    )
    figure, ax = _board(24.6, 10)
    for left, name, rule, mask, columns, rows in (
        (2.7, "encoder", "padding", real.expand(4, 4), source, source),
        (
            *(10.2, "decoder", "padding & causal"),
            *(real_target & causal_mask(5)[0, 0], target, target),
        ),
        (19.6, "cross-attention", "padding", real.expand(5, 4), source, target),
    ):
        _mask(ax, left, 2.8, mask, columns, rows)
        middle = left + len(columns) / 2
        ax.text(middle, 8.7, name, ha="center", weight="bold")
        ax.text(middle, 9.6, rule, ha="center")
    return show(
        figure,
        title="Three attentions, three masks",
        alt="Three masks for the source the cat sleeps pad and the target start le "
        "chat dort pad; in each, the column of pad is hatched. Encoder: source to "
        "source. Decoder: target to target, and a triangle. Cross-attention: target to "
        "source.",
        caption="Rows are queries, columns keys. In cross-attention the queries come "
        "from the target, the keys from the source.",
    )


def cached() -> Html:
    """Draw our mask of two new queries beside that of PyTorch's ``is_causal``."""
    values = torch.eye(5)[None]  # one-hot: outputs are weights
    theirs = F.scaled_dot_product_attention(
        torch.zeros(1, 2, 5), torch.zeros(1, 5, 5), values, is_causal=True
    )
    ours, theirs = causal_mask(2, 5)[0, 0], theirs[0] > 0
    assert ours.equal(causal_mask(5)[0, 0, -2:])
    assert theirs.equal(causal_mask(5)[0, 0, :2])
    figure, ax = _board(14.4, 5.8)
    for left, name, mask, rows in (
        (2.2, "causal_mask(2, 5)", ours, SENTENCE[-2:]),
        (9.2, "is_causal=True", theirs, ()),
    ):
        _mask(ax, left, 2.6, mask, SENTENCE, rows)
        ax.text(left + 2.5, 5.5, name, ha="center", weight="bold")
    return show(
        figure,
        title="PyTorch aligns the triangle at the top left",
        alt="Two masks of two queries and five keys, a small dog barks loudly. "
        "causal_mask(2, 5): the query barks sees the first four words, loudly sees all "
        "five. is_causal=True: the same two queries see one word and two.",
        caption="Two new queries, barks and loudly, and five keys.",
    )


# ---- proofs --------------------------------------------------------------------------


def check_masks(batch: Tensor) -> None:
    """Prove that the two masks are the rule, and that lengths give the same."""
    size, padding = batch.shape[1], padding_mask(batch)
    rule = [
        [[token != 0 and j <= i for j, token in enumerate(row)] for i in range(size)]
        for row in batch.tolist()
    ]
    both = (padding & causal_mask(size))[:, 0]
    check_close("both masks = the rule, entry by entry", both, torch.tensor(rule))
    lengths = length_mask((batch != 0).sum(dim=1), size)
    check_close("from lengths = from ids", lengths, padding)


def check_padding() -> None:
    """Prove that masked pads change nothing, and that no gradient flows to them."""
    layer, generator = MultiHeadAttention(16, 2), torch.Generator().manual_seed(0)
    words, upstream = torch.randn(2, 1, 5, 16, generator=generator)

    def read(pads: int) -> tuple[Tensor, Tensor]:
        noise = 10 * torch.randn(1, pads, 16, generator=generator)
        x = torch.cat([words, noise], dim=1).requires_grad_()
        y = layer(x, mask=length_mask(torch.tensor([5]), 5 + pads))[:, :5]
        (gradient,) = torch.autograd.grad((y * upstream).sum(), x)
        assert gradient[:, 5:].eq(0).all(), "a gradient flows to the padding"
        return y, gradient[:, :5]

    outputs, gradients = zip(*map(read, (0, 1, 7, 64)), strict=True)
    claim = "1, 7 or 64 masked pads change no output of a layer"
    check_close(claim, outputs[1:], outputs[:1] * 3, 1e-5)
    check_close("and no gradient of its words", gradients[1:], gradients[:1] * 3, 1e-4)


def check_empty_rows() -> None:
    """Prove that rows with no key give zeros, forward and backward, in each dtype."""
    mask = torch.tensor([[True, True, False], [False, False, False]])
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        scores = torch.randn(2, 3).to(dtype).requires_grad_()
        weights = masked_softmax(scores, mask)
        weights.square().sum().backward()
        assert weights[1].eq(0).all() and scores.grad[1].eq(0).all()
        assert weights[0].sum() > 0.98 and scores.grad.isfinite().all()
        layer = MultiHeadAttention(16, heads=2).to(dtype)
        x = torch.randn(2, 5, 16, dtype=dtype, requires_grad=True)
        y = layer(x, mask=length_mask(torch.tensor([3, 0]), 5))
        y.square().sum().backward()
        gradients = [x.grad, *(p.grad for p in layer.parameters())]
        assert all(gradient.isfinite().all() for gradient in gradients)
        assert y[1].equal(layer.output_map.bias.expand(5, 16)) and not x.grad[1].any()
    print(
        "✓ an empty row gives zeros, forward and backward, in float32, float16 and "
        "bfloat16,\n  and MultiHeadAttention gives the bias of its output map, exactly"
    )


def nothing_left() -> Html:
    """Show what PyTorch gives a sentence whose keys are all hidden."""
    x, hidden = torch.randn(1, 3, 16), torch.ones(1, 3, dtype=torch.bool)
    module = nn.MultiheadAttention(16, 2, batch_first=True)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    def ways() -> Iterator[tuple[str, Tensor]]:
        given = {"query": x, "key": x, "value": x, "key_padding_mask": hidden}
        yield "nn.Multihead\u200bAttention", module(**given)[0]
        yield "the same, need_weights=False", module(**given, need_weights=False)[0]
        yield "nn.Transformer\u200bEncoderLayer", layer(x, src_key_padding_mask=hidden)
        attend = F.scaled_dot_product_attention
        yield "F.scaled_dot_\u200bproduct_attention", attend(x, x, x, attn_mask=~hidden)

    seen: dict[str, list[str]] = {}
    for training in (True, False):
        module.train(training), layer.train(training)
        with torch.set_grad_enabled(training):
            for name, y in ways():
                kind = "NaN" if y.isnan().all() else "numbers" if y.any() else "zeros"
                seen.setdefault(name, []).append(kind)
    return show_table(
        ["all keys hidden", "in training", "in evaluation, without gradients"],
        [[name, *kinds] for name, kinds in seen.items()],
        caption=f"On a CPU, in PyTorch {torch.__version__.split('+')[0]}, with "
        "batch_first=True and fresh modules, whose biases are 0. Other kernels differ.",
    )


def check_module(batch: Tensor) -> None:
    """Prove that our layer under both masks is PyTorch's under their opposites."""
    padding, causal = padding_mask(batch), causal_mask(batch.shape[1])
    layer, x = MultiHeadAttention(16, heads=2), torch.randn(*batch.shape, 16)
    module = nn.MultiheadAttention(16, 2, batch_first=True)
    masks = {"key_padding_mask": ~padding[:, 0, 0], "attn_mask": ~causal[0, 0]}

    def theirs(layer: nn.Module, x: Tensor, part: int = 0) -> Tensor:
        asked = masks | {"average_attn_weights": False}
        return functional_call(module, torch_weights(layer), (x, x, x), asked)[part]

    check_same(
        "our layer = nn.MultiheadAttention under ~",
        lambda layer, x: layer(x, mask=padding & causal),
        theirs,
        *(layer, x),
    )
    with torch.no_grad(), record_attention(layer) as maps:
        layer(x, mask=padding & causal)
        check_close("and its weights", maps[""][0], theirs(layer, x, part=1), 1e-5)


def check_queries(batch: Tensor) -> None:
    """Prove that real words get the same, whether or not padded queries are hidden."""
    layers = [MultiHeadAttention(16, 2) for _ in range(2)]
    keys, real = padding_mask(batch), batch != 0
    x, results = torch.randn(*batch.shape, 16), []
    for mask in (keys, keys & keys.transpose(2, 3)):
        y = layers[1](layers[0](x, mask=mask), mask=mask)
        results.append(y)
    claim = "two layers, queries masked or not: the real words get the same"
    check_close(claim, *(y[real] for y in results), 1e-5)
    assert not torch.allclose(*(y[~real] for y in results)), "padded queries do differ"


# ---- the mask builder ----------------------------------------------------------------

TEXT = "the cat sat on the mat".split()
CAUSALITY = ("itself and the past", "everything")
HIDING = ("−∞, empty row → 0", "−∞, plain softmax", "−1e9")


def build(
    vectors: Tensor, length: int, causality: str, hiding: str, cells: Sequence
) -> tuple[Tensor, Tensor]:
    """Return the mask (t, t) that a reader builds, and the weights under it.

    ``vectors`` are the queries and keys, ``(2, t + 1, k)``, padding's the last of each;
    the last query begins with no key; ``cells`` are the entries that are switched.
    """
    t = vectors.shape[1] - 1
    mask = (torch.arange(t) < length).expand(t, t).clone()
    if causality == CAUSALITY[0]:
        mask &= causal_mask(t)[0, 0]
    mask[-1] = False
    for i, j in cells:
        mask[i, j] = ~mask[i, j]
    queries, keys = vectors[:, [j if j < length else t for j in range(t)]]
    scores = queries @ keys.T / vectors.shape[2] ** 0.5
    if hiding == HIDING[0]:
        return mask, masked_softmax(scores, mask)
    fill = -1e9 if hiding == HIDING[2] else -torch.inf
    return mask, scores.masked_fill(~mask, fill).softmax(dim=-1)


def mask_builder() -> Html:
    """Show a mask that the reader builds on scores, and the weights that follow."""
    t, generator, checks = len(TEXT), torch.Generator().manual_seed(3), []
    vectors = 1.4 * torch.randn(2, t + 1, 4, generator=generator)
    for case in "6020 6120 4100 5121 6010 0120 3000 6021".split():
        length, which, how, clicks = map(int, case)
        state: dict[str, Any] = {"length": length, "causality": CAUSALITY[which]}
        state |= {"hiding": HIDING[how], "cells": [[0, 0], [3, 4]][: 2 * clicks]}
        mask, weights = build(vectors, **state)
        rows = [[None] * t if row[0].isnan() else row.tolist() for row in weights]
        checks.append((state, {"mask": mask.tolist(), "weights": rows}))
    queries, keys = vectors.tolist()
    return explorer(
        static("ch04/mask_builder.js"),
        {"words": TEXT, "hidings": HIDING, "queries": queries, "keys": keys}
        | {"causal": CAUSALITY[0]},
        [
            Choice("hiding", "hidden scores become", HIDING, HIDING[2]),
            Choice("causality", "a query sees", CAUSALITY),
            Slider("length", "real words", range(t + 1), t),
            Grid("cells", "scores: click one to hide it, or to show it again", t, t),
        ],
        label="Mask builder",
        checks=checks,
        question="Every key of the last row is hidden. Where does its weight go? Show "
        "one again; then try the other ways to hide.",
        caption="Rows are queries, columns keys. Hatched: hidden. Keyboard: arrow keys "
        "move, Space toggles.",
    )


# ---- a model without the mask --------------------------------------------------------


def losses(histories: Mapping[str, list[dict]], floor: float) -> Html:
    """Plot training losses, each as it was and smoothed, above or below a floor."""
    figure, ax = plt.subplots(figsize=(8.6, 3.2))
    for (name, history), color in zip(histories.items(), (THIS, OTHER), strict=True):
        loss = torch.tensor([record["loss"] for record in history])
        smooth = F.avg_pool1d(loss[None], 15, 1, 7, count_include_pad=False)[0]
        steps = range(1, len(loss) + 1)
        ax.plot(steps, loss, color=color, alpha=0.3, lw=1)
        ax.plot(steps, smooth, color=color, label=name)
    ax.axhline(floor, color=COLOURS["ink"], lw=1)
    ax.text(0, 0.9 * floor, f"lowest without\npeeking: {floor:.2f}", va="top")
    ax.set(yscale="log", xlabel="training step", ylabel="nats per character")
    ax.set_yticks((0.01, 0.1, 1), ("0.01", "0.1", "1"))
    ax.minorticks_off()
    name_lines(ax)
    return show(
        figure,
        title="Without the mask, the loss falls below what is possible",
        caption="Training loss, log axis. The line is counted over all of its windows: "
        "nobody who sees only the past can do better.",
    )


def written_table(written: Mapping[str, Sequence[str]], prompts: Sequence[str]) -> Html:
    """Show how models continue prompts; what is written begins with its prompt."""
    rows = [
        [name, prompt, text[len(prompt) :].replace("\n", "⏎").replace("  ", " \u00a0")]
        for name, texts in written.items()
        for prompt, text in zip(prompts, texts, strict=True)
    ]
    return show_table(["model", "prompt", "continuation"], rows)


# ---- deeper pages --------------------------------------------------------------------


def check_fills(weights_with: Callable) -> None:
    """Prove what −∞ and −1e4 do in a hidden score, in three precisions."""
    for precision in (torch.float32, torch.float16, torch.bfloat16):
        for real, wanted in (([1.0, -0.5], 0), ([-3e4, -2.5e4], 1)):
            assert weights_with(-torch.inf, [*real, 2.0], precision)[2] == 0
            assert weights_with(-1e4, [*real, 2.0], precision)[2] == wanted
    print("✓ −∞ gives the hidden key 0, −1e4 gives it 0 or everything: exactly")


SYMPTOMS = {
    "thrown_away": "nothing is hidden. masked_fill without an underscore returns a new "
    "tensor, and nobody keeps it.",
    "tiny_positive": "a pad weighs as much as a score of 0: 1e−9 is nearly 0, and e⁰ "
    "is 1.",
    "inverted": "all weight is on the pads. The mask came from a library where True "
    "means hidden.",
    "of_queries": "the pads' rows are flat, and nothing is hidden from the words. The "
    "mask lies on the wrong axis.",
    "after_softmax": "the pads get 0, but the rows don't add up to 1.",
    "times_infinity": "where a key is visible, 0 · −∞ is NaN, and one NaN fills a row.",
}


def slip(weights: Tensor, name: str, guess: str) -> Html:
    """Show weights (t, s) under the slip ``name``, and what a ``guess`` is told."""
    words = "the cat sleeps pad pad".split()
    verdict = "Which of the six is it?"
    if guess in SYMPTOMS:
        right = guess == name
        verdict = f"{'Yes' if right else 'No'}. Under {guess}, {SYMPTOMS[guess]}"
    look: dict[str, Any] = {"rows": words, "columns": words, "weights": True}
    table = chain(Matrix(weights, "weights", **look))
    return Html(table.text + render("paragraph", kind="says", text=verdict))


def check_slips(slips: Iterable[Callable], scores: Tensor, mask: Tensor) -> None:
    """Check that each slip gives other weights than the mask, and than the others."""
    weights = {one.__name__: one(scores, mask).nan_to_num(9) for one in slips}
    assert weights.keys() == SYMPTOMS.keys()
    weights["the right mask"] = masked_softmax(scores, mask)
    for (a, one), (b, other) in combinations(weights.items(), 2):
        assert (one - other).abs().max() > 0.02, f"{a} and {b} give the same weights"


def turned_table(turned: Mapping[tuple[str, int], float], right: float) -> Html:
    """Show the shares of answers that slips turn, by the number of pads appended."""
    names = ["correct", "thrown_away", "of_queries", "tiny_positive", "inverted"]
    return show_table(
        ["answers turned", "padded to twelve", "16 pads more", "256 pads more"],
        [[name, *(f"{turned[name, n]:.1%}" for n in (0, 16, 256))] for name in names],
        caption=f"Without padding, the model is right on {right:.1%} of the sequences.",
    )


def judged(results: Mapping[tuple[str, int], Sequence[float]], letters: int) -> Html:
    """Plot the losses of first and later letters, by when the mask is on."""
    figure, ax = plt.subplots(figsize=(8.6, 2.4))
    whens = list(dict.fromkeys(when for when, _ in results))
    for (when, _), (first, later, *_) in results.items():
        y = -whens.index(when)
        ax.plot(later, y, "o", mfc="none", color=OTHER)
        ax.plot(first, y, "o", color=THIS)
    best = math.log(letters)
    ax.axvline(best, color=COLOURS["ink"], lw=1)
    ax.text(0.93 * best, -1.5, f"ln {letters}: nobody can do better", ha="right")
    ax.text(results["always", 0][1], 0.25, "later letters", ha="center", color=OTHER)
    ax.text(0.93 * best, 0.25, "first letters", ha="right", color=THIS)
    ax.set(xscale="log", xlim=(0.008, 5), ylim=(-2.5, 0.7), xlabel="nats per letter")
    ax.set_xticks((0.01, 0.1, 1), ("0.01", "0.1", "1"))
    rows = [f"masked {when}" for when in whens]
    ax.set_yticks([-i for i in range(len(rows))], rows)
    ax.minorticks_off()
    mean = {
        when: sum(r[0] for (w, _), r in results.items() if w == when) / 3
        for when in whens
    }
    return show(
        figure,
        title=f"One model, judged at {mean['always']:.2f} with its mask and at "
        f"{mean['in training']:.2f} without",
        alt="Losses at letters that appear for the first time: near the logarithm of "
        "33 if masked always, far below it if masked in training only, or never.",
        caption="At letters that appear for the first time in a message, and at those "
        "that came before. Three seeds each, 500 messages.",
    )
