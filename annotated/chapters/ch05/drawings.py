"""Chapters 05, 05b and 05c, positions: drawings, explorers, longest proofs."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
import numpy
import torch
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import positions
from annotated.attention import MultiHeadAttention
from annotated.chapters.ch05.distance import ALiBiAttention, T5Attention, t5_bucket
from annotated.chapters.ch05.reading import (
    ZONES,
    Runs,
    by_zone,
    guessing,
    runs_of,
    zone,
)
from annotated.page.diagrams import Drawing
from annotated.page.frames import Html, Slider, explorer, plot_html, render, static
from annotated.page.notebook import check_close, check_same, show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import OTHER, THIS, name_lines
from annotated.page.records import span
from annotated.page.svg import COLOURS
from annotated.positions import frequencies, rotary_embedding, sinusoidal_encoding

INK = COLOURS["ink"]
# of numbers from -1 to 1: where on the way a colour stands, and how strong it is there
SIGNS = ((0, "minus", 1), (0.5, "minus", 0), (0.5, "this", 0), (1, "this", 1))


percent = partial(span, style=".0%")


def _shades(ax: plt.Axes, table: Tensor, side: float, least: float = 0.03) -> None:
    """Draw a table (t, s) of shades from 0 to 1 as squares with a side in pixels."""
    i, j = (table > least).nonzero(as_tuple=True)
    shades = [to_rgba(COLOURS["weight"], min(v, 1)) for v in table[i, j].tolist()]
    ax.scatter(j, i, s=side**2, marker="s", color=shades, linewidths=0)
    t, s = table.shape
    ax.set(xlim=(-0.5, s - 0.5), ylim=(t - 0.5, -0.5), aspect="equal")
    ax.grid(visible=False)


# ---- 5, 5.1 and 5.2: clocks, added ---------------------------------------------------


def clocks() -> Html:
    """Show a position as four clocks."""
    rows = sinusoidal_encoding(61, 8).double()
    return explorer(
        static("ch05/position_clocks.js"),
        {"base": 10000, "width": 8},
        [Slider("position", "position", list(range(1, 61)), 1)],
        label="A position, told by four clocks",
        checks=[({"position": p}, {"vector": rows[p].tolist()}) for p in (1, 7, 60)],
        question="Step from 1 to 2, then go to 30 and step to 31. Does the first hand "
        "turn further the second time? Does the second?",
        caption="Dashed: one position earlier. In the boxes: how far right and how far "
        "up each hand points. These eight numbers are the position’s vector.",
    )


def averages(first: Tensor, second: Tensor, caption: str) -> Html:
    """Show the outputs (4, 4) of both reviews, and their averages."""
    drawn, look = [], {"columns": ["mood", "flips", "pause", "word"], "row": 4}
    for name, outputs, words in (
        ("annoyed", first, "not good , bad average"),
        ("pleased", second, "not bad , good average"),
    ):
        table = torch.cat([outputs, outputs.mean(dim=0, keepdim=True)])
        drawn.append(Matrix(table, name, rows=words.split(), **look))
    return chain(*drawn, caption=caption)


def check_bag() -> None:
    """Prove that two orders pool to one vector, and with positions to two."""
    tokens = torch.tensor([[0, 1, 2, 3], [0, 3, 2, 1]])  # not good , bad; …
    embedding, attention = nn.Embedding(4, 16), MultiHeadAttention(16, heads=4)

    def pooled(x: Tensor) -> Tensor:
        return attention(x).mean(dim=1)  # (b, t, d) -> (b, d)

    one, other = pooled(embedding(tokens) + sinusoidal_encoding(4, 16))
    assert (one - other).abs().max() > 1e-3, "positions change nothing"
    check_close("random heads: one vector", *pooled(embedding(tokens)), 1e-5)


def summed(words: Tensor, clocks: Tensor) -> Html:
    """Show the words of a review (4, 4), plus clocks."""
    return chain(
        *(Matrix(words, "words", rows="not good , bad".split(), row=1), "+"),
        *(Matrix(clocks, "positions 0 to 3", row=1), "="),
        Matrix(words + clocks, "what attention sees", row=1),
        caption="Each word plus the clocks of its position.",
    )


def check_sum() -> None:
    """Prove that a map of two vectors side by side is a sum of two products."""
    W, x, u = (torch.randn(*s, dtype=torch.float64) for s in ((5, 8), (4,), (4,)))
    parts = W[:, :4] @ x + W[:, 4:] @ u
    claim = "side by side = a sum of two products"
    check_close(claim, W @ torch.cat([x, u]), parts, 1e-12)


# ---- 5.3: which vector? --------------------------------------------------------------


def digits() -> Html:
    """Show binary digits and clocks of ten positions, the fastest column first."""
    bits = torch.tensor([[p >> i & 1 for i in range(4)] for p in range(10)])
    assert (bits[7] != bits[8]).all() and (bits[0] != bits[8]).sum() == 1
    look = {"rows": [*map(str, range(10))], "columns": ["1s", "2s", "4s", "8s"]}
    names = "sin 0,cos 0,sin 1,cos 1".split(",")
    return chain(
        *(Matrix(bits, "binary digits", weights=True, **look), "jumps become\nturns →"),
        Matrix(sinusoidal_encoding(10, 4), "two clocks", columns=names, digits=1),
        caption="Each binary column changes half as often as the one before it. The "
        "second clock is a hundred times slower than the first.",
    )


def check_number() -> None:
    """Hold the page to what it says of the number itself, added to two words."""
    words = torch.randn(2, 64, generator=torch.Generator().manual_seed(0))
    before, after = (F.cosine_similarity(*(words + p), dim=0) for p in (0, 500))
    assert before.abs() < 0.5 < 0.99 < after
    print(f"measured: cosine of two words {before:.2f}; both plus 500, {after:.2f}")


def check_table(table_by_hand: Callable[[int, int], Tensor]) -> None:
    """Prove that a notebook's loops are powers of a complex number, and the module."""
    # A hand is a complex number, z = exp(iω); row p holds the two parts of z^p, found
    # by multiplying p times, without any sine of a large angle.
    z = numpy.exp(1j * 10000.0 ** (-numpy.arange(0, 20, 2) / 20))
    turned = numpy.cumprod(numpy.tile(z, (100, 1)), axis=0) / z  # z⁰, z¹, z², …
    powers = numpy.stack([turned.imag, turned.real], axis=-1).reshape(100, 20)
    by_hand = table_by_hand(100, 20)
    check_close("the loops = powers", by_hand, torch.from_numpy(powers), 1e-12)
    claim = "the module = the loops, for 5000 positions"
    module = sinusoidal_encoding(5000, 64)
    check_close(claim, module, table_by_hand(5000, 64), 1e-6)
    encoding = positions.PositionalEncoding(20, max_len=100)
    rows = by_hand[7:12].float()
    claim = "PositionalEncoding adds them"
    x = torch.randn(2, 5, 20)
    check_same(claim, partial(encoding, start=7), lambda x: x + rows, x)


def hands(table: Tensor) -> Html:
    """Draw a table (t, 20) as a map of shades, and two of its hands as curves."""
    figure, (shades, ax) = plt.subplots(2, 1, figsize=(8.6, 4.6), sharex=True)
    ends = [(at, to_rgba(COLOURS[name], a)) for at, name, a in SIGNS]
    signs = LinearSegmentedColormap.from_list("signs", ends)
    shades.pcolormesh(table.T, cmap=signs, vmin=-1, vmax=1)
    shades.set(ylabel="dimension", yticks=(0.5, 4.5, 9.5, 19.5), ylim=(20, 0))
    shades.set_yticklabels((0, 4, 9, 19))
    shades.grid(visible=False)
    places = torch.arange(len(table)) + 0.5  # a value stands in the middle of its cell
    for dim, color in ((4, THIS), (5, THIS), (6, OTHER), (7, OTHER)):
        kind, alpha = (("sine", 1), ("cosine", 0.45))[dim % 2]
        ax.plot(places, table[:, dim], color=color, alpha=alpha, label=f"{dim}: {kind}")
    ax.set(xlabel="position", ylabel="value", xlim=(0, len(table)), yticks=(-1, 0, 1))
    name_lines(ax)
    return show(
        figure,
        title="Two columns per hand, and each hand is slower than the one before",
        alt="Above, all twenty dimensions by position, as shades: the first change "
        "sign every few positions, the last hardly change. Below, dimensions 4 and 5 "
        "as curves, a sine and a cosine of one speed, and 6 and 7, of a slower one.",
        caption="The table of width 20 (blue positive, orange negative), and its "
        "dimensions 4 to 7 as curves: the third hand (blue) and the fourth.",
    )


def similarity(away: Tensor, width: int, base: float = 10_000) -> Tensor:
    """Return cosines (n,) of positions that are this far ``away``, averaged."""
    angles = torch.outer(away.double(), frequencies(width, base))
    return angles.cos().mean(dim=1)


def reach() -> Html:
    """Plot how alike two positions are by their distance, for three bases."""
    figure, ax = plt.subplots(figsize=(8.6, 2.9))
    away, tens = torch.logspace(0, 5, 90), torch.tensor([1, 10, 100, 1000, 10_000])
    places = (1.05, 0.3), (12, 0.22), (200, 0.78)
    for base, place in zip((10, 10_000, 500_000), places, strict=True):
        look = {"color": THIS if base == 10_000 else OTHER}
        ax.plot(away, similarity(away, 512, base), label=f"base {base:,}", **look)
        ax.text(*place, f"base {base:,}", **look)
        falls = similarity(tens, 512, base)
        assert (falls.diff() < 0).all() if base > 10 else falls[2:4].abs().max() < 0.05
    ax.set(xscale="log", xlabel="positions apart", ylabel="similarity", yticks=(0, 1))
    ax.set_xticks(tens.tolist(), [f"{n:,}" for n in tens.tolist()])
    ax.minorticks_off()
    return show(
        figure,
        title="A larger base tells near from far up to larger distances",
        caption="Width 512: the dot product of two positions, divided by 256, so that "
        "1 means equal.",
    )


def likeness(base: float, width: int, position: int) -> dict[str, Any]:
    """Return how alike 48 positions are to one, and the twin at least 8 away."""
    rows = sinusoidal_encoding(48, width, base).double()
    alike = rows @ rows[position] / (width / 2)
    twin = alike[(torch.arange(48) - position).abs() >= 8].max().item()
    longest = 2 * math.pi / frequencies(width, base)[-1].item()
    return {"alike": alike.tolist(), "longest": longest, "twin": twin}


def table_explorer() -> Html:
    """Show the table and the similarity of its positions, by base and width."""
    bases, checks = [2, 10, 100, 1000, 10000, 100000], []
    for case in (10, 4, 12), (2, 4, 0), (100000, 32, 47), (10000, 16, 24), (100, 4, 7):
        state = dict(zip(("base", "width", "position"), case, strict=True))
        checks.append((state, likeness(*case)))
    assert likeness(10, 4, 12)["twin"] > 0.97
    assert abs(likeness(10, 8, 12)["twin"] - 0.39) < 0.006
    return explorer(
        static("ch05/position_table.js"),
        {"length": 48, "apart": 8},
        [
            Slider("base", "base", bases, 10),
            Slider("width", "width d", [4, 8, 16, 32], 4),
            Slider("position", "position", list(range(48)), 12),
        ],
        label="The table of sinusoids, by base and width",
        checks=checks,
        # given: 0.7
        question="Positions 12 and 31 have nearly the same vector. Why? Bring the ring "
        "below 0.7 with the width alone.",
        caption="Above, a column for each position. Below, the similarity of each to "
        "the marked one. The ring: the most similar at least 8 away.",
    )


# ---- 5.4: a step is a rotation -------------------------------------------------------


def pair_explorer() -> Html:
    """Show one pair of dimensions of two positions, and the matrix between them."""
    names, checks = ("position", "steps", "pair"), []
    for p, steps, pair in (0, 0, 0), (5, 2, 1), (60, 24, 0), (60, 24, 9), (33, 7, 2):
        angle = steps * frequencies(20)[pair].item()
        rows = sinusoidal_encoding(p + steps + 1, 20).double()
        c, s = math.cos(angle), math.sin(angle)
        now, then = rows[[p, p + steps], 2 * pair : 2 * pair + 2].tolist()
        values = {"now": now, "then": then, "matrix": [c, s, -s, c]}
        values["between"] = angle / (2 * math.pi)
        checks.append((dict(zip(names, (p, steps, pair), strict=True)), values))
    return explorer(
        static("ch05/rotation_pair.js"),
        {"base": 10000, "width": 20},
        [
            Slider("position", "position p", range(61), 5),
            Slider("steps", "steps s", range(25), 2),
            Slider("pair", "pair i", range(10), 1),
        ],
        label="One pair of dimensions, turning",
        checks=checks,
        question="Move only the position. Which of these change: the two points, the "
        "angle between them, the matrix? Then move only the steps.",
        caption="One of the ten hands of width 20. Disc: position p; square: p + s.",
    )


def three_back(scores: Tensor, weights: Tensor) -> Html:
    """Show scores and weights (6, 6) of a head that looks three back."""
    assert (weights.argmax(dim=-1)[3:] == torch.arange(3)).all()
    places: dict[str, Any] = {"rows": [*"012345"], "columns": [*"012345"], "row": 5}
    return chain(
        *(Matrix(scores, "scores", digits=0, **places), "→\nsoftmax"),
        Matrix(weights, "weights", weights=True, **places),
        caption="A head that looks three back, with no training. Positions 0 to 2 have "
        "nothing there, and attend to whatever matches best.",
    )


# ---- 5.5: rotary positions -----------------------------------------------------------


def rotary_explorer(turn: Callable, query: Tensor, key: Tensor) -> Html:
    """Show a query and a key (2,), turned by a notebook's function."""
    checks = []
    for p, r, speed in (8, 8, 0.5), (12, 10, 0.5), (18, 16, 1), (3, 11, 0.1):
        q, k = turn(query.double(), p, speed), turn(key.double(), r, speed)
        state = {"key": r, "offset": p - r, "speed": speed}
        values = {"score": (q @ k).item(), "q": q.tolist(), "k": k.tolist()}
        checks.append((state, values))
    return explorer(
        static("ch05/rotary_pair.js"),
        {"query": query.tolist(), "key": key.tolist()},
        [
            Slider("key", "key at r", list(range(8, 21)), 10),
            Slider("offset", "query ahead by", list(range(-8, 9)), 2),
            Slider("speed", "speed", [0.01, 0.1, 0.5, 1], 0.5),
        ],
        label="A query and a key, turned by their positions",
        checks=checks,
        question="Drag the key along: what happens to the arrows, and what to the "
        "score? Then set “query ahead by” to −2. At which speed do positions hardly "
        "matter?",
        caption="One pair of a query and a key. Faint: before turning. The speed is in "
        "radians per position.",
    )


def where_positions_enter() -> Html:
    """Draw two layers with clocks, and two with rotary positions."""
    drawing = Drawing(350, 272)
    for middle, title, turned in ((85, "clocks, added", ""), (265, "rotary", "R ")):
        drawing.text(middle, 14, title, bold=True)
        for layer, top in ((2, 40), (1, 132)):
            drawing.frame(middle - 80, top, 160, 68)
            drawing.text(middle, top + 18, f"attention, layer {layer}")
            for i, name in enumerate(("query", "key", "value")):
                word = (turned if i < 2 else "") + name[0]
                shade = {"shade": 0.45 if turned and i < 2 else 0.1, "color": name}
                drawing.frame(middle - 70 + 50 * i, top + 28, 40, 28, **shade)
                drawing.text(middle - 50 + 50 * i, top + 47, word)
            drawing.arrow((middle, top), (middle, top - 20))
        drawing.text(middle, 266, "words")
        drawing.line((middle, 132 + 92), (middle, 132 + 68))
    drawing.arrow((85, 252), (85, 236))
    drawing.plus(85, 228)
    drawing.arrow((120, 228), (94, 228))
    drawing.text(124, 232, "clocks", anchor="start")
    drawing.arrow((265, 252), (265, 201))
    return drawing.figure(
        alt="Two stacks of two layers of attention. Left: the clocks are added to the "
        "words once, below layer 1. Right: nothing is added to the words, and in each "
        "layer the query and the key are turned, and the value is not.",
        caption="Where positions enter. Clocks: once, below the first layer. Rotary: "
        "in every layer, at the queries and the keys.",
    )


def diagonals() -> Html:
    """Show scores of one word with another at all pairs of five positions."""
    generator = torch.Generator().manual_seed(3)
    drawn = partial(torch.randn, generator=generator, dtype=torch.float64)
    (x, y), W_q, W_k = drawn(2, 1, 16), drawn(16, 16) / 4, drawn(16, 16) / 4
    PE = sinusoidal_encoding(200, 16).double()
    added = (x + PE) @ W_q @ ((y + PE) @ W_k).T
    q, k = ((z @ W).expand(200, 16) for z, W in ((x, W_q), (y, W_k)))
    rotary = rotary_embedding(q) @ rotary_embedding(k).T
    same, spread = (table.diagonal(-3).aminmax() for table in (rotary, added))
    assert same.max - same.min < 1e-12 and spread.max - spread.min > 0.1
    assert (rotary[3, 0] - rotary[0, 3]).abs() > 0.01, "before is after"
    places: dict[str, Any] = {"rows": [*"01234"], "columns": [*"01234"], "digits": 1}
    return chain(
        Matrix(added[:5, :5], "clocks added", **places),
        Matrix(rotary[:5, :5], "rotary", **places),
        caption="Rows: position of the query; columns: position of the key. Along a "
        "diagonal the offset is the same, and rotary positions give one number.",
    )


def as_complex(x: Tensor, start: int = 0, factor: float = 1.0) -> Tensor:
    """Return ``x`` (…, t, k), each pair multiplied by exp(i p ω / factor)."""
    t, k = x.shape[-2:]
    places = torch.arange(start, start + t).double() / factor
    angles = torch.outer(places, frequencies(k))
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).double())
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turned).flatten(-2)


def check_rotary(turn: Callable) -> None:
    """Prove that a notebook's ``turn``, the function and the class are one rotation."""
    x = torch.randn(2, 3, 7, 10, dtype=torch.float64)

    def loops(x: Tensor) -> Tensor:  # pair by pair
        speeds = [10000 ** (-2 * i / 10) for i in range(5)]
        rows = [
            torch.cat(
                [turn(row[2 * i : 2 * i + 2], 5 + p, speeds[i]) for i in range(5)]
            )
            for p, row in enumerate(x[1, 2])
        ]
        return torch.stack(rows)

    ours = partial(rotary_embedding, start=5)
    given = {"tolerance": 1e-12}
    claim = "rotary_embedding = turn, pair by pair"
    check_same(claim, lambda x: ours(x)[1, 2], loops, x, **given)
    check_same("= complex numbers", ours, partial(as_complex, start=5), x, **given)
    rotary = positions.RotaryMultiHeadAttention(24, heads=3).double()

    def formula(z: Tensor, start: int = 0, values_too: bool = False) -> Tensor:
        maps = rotary.query_map, rotary.key_map, rotary.value_map
        q, k, v = (f(z).unflatten(-1, (3, 8)).transpose(1, 2) for f in maps)
        q, k = as_complex(q, start), as_complex(k, start)
        v = as_complex(v, start) if values_too else v
        heads = (q @ k.mT / 8**0.5).softmax(dim=-1) @ v
        return rotary.output_map(heads.transpose(1, 2).flatten(2))

    z = torch.randn(2, 6, 24, dtype=torch.float64)
    check_same("the class = its formula", rotary, formula, z, **given)
    check_close("all seven positions on: the same", formula(z, 7), formula(z), 1e-12)
    moved = (formula(z, 7, values_too=True) - formula(z, 0, values_too=True)).abs()
    assert moved.max() > 0.05, "values may be turned, too"
    for dtype, tolerance in (
        (torch.float32, 1e-5),
        (torch.float16, 2e-2),
        (torch.bfloat16, 0.1),
    ):
        far = torch.randn(1, 4, 64).to(dtype)
        turned, exact = rotary_embedding(far, 100_000), as_complex(far, 100_000)
        check_close(f"at 100 000, in {dtype}", turned, exact, tolerance)


def layouts() -> Html:
    """Show which pair each of eight dimensions belongs to, in both layouts."""
    table = torch.tensor([[0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 2, 3, 0, 1, 2, 3]])
    names = ["interleaved", "half-split"]
    return chain(
        Matrix(table, "pair", rows=names, columns=[*"01234567"], narrow=True),
        caption="The eight dimensions of a head. Those with the same number turn "
        "together.",
    )


def check_half_split(half_split: Callable, turn: Callable) -> None:
    """Prove that a notebook's half-split layout is ``turn`` of its pairs."""
    q, k = torch.randn(2, 7, 10, dtype=torch.float64)
    wanted = torch.zeros(7, 10, dtype=torch.float64)
    for row in range(7):
        for i in range(5):
            pair = [i, 5 + i]
            wanted[row, pair] = turn(q[row, pair], 4 + row, 10000 ** (-i / 5))
    check_close("half-split = turn, pair by pair", half_split(q, 4), wanted, 1e-12)
    one, other = (f(q) @ f(k).T for f in (rotary_embedding, half_split))
    assert (one - other).abs().max() > 0.1, "the layouts give the same scores"


# ---- 5.6: beyond the training lengths ------------------------------------------------

WAYS = ("none", "sinusoidal", "learned", "rotary")


def by_length(record: Mapping[str, Any]) -> Html:
    """Plot right answers by the length of the sequence."""
    figure, ax = plt.subplots()
    looks = (OTHER, ":"), (INK, "-"), (OTHER, "--"), (THIS, "-")
    for way, (color, line) in zip(WAYS, looks, strict=True):
        rows = []
        for run in runs_of(record, "longer", way):
            shares = {n: run["right"][n] for n in ("8", "16", "24", "32")}
            shares |= run["beyond"]
            rows.append([100 * share for share in shares.values()])
        lengths = [*map(int, shares)]
        middle = [median(column) for column in zip(*rows, strict=True)]
        ax.plot(lengths, middle, line, color=color, label=way)
        for row in rows:
            ax.plot(lengths, row, "o", color=color, alpha=0.4, ms=4)
    guessed = [100 * guessing(n) for n in lengths]
    ax.fill_between(lengths, 0, guessed, color=OTHER, alpha=0.3, lw=0)
    ax.axvspan(8, 32, color=OTHER, alpha=0.15, lw=0)
    for x, y, words, color in (
        (14, 26, "none", OTHER),
        (52, 30, "sinusoidal", INK),
        (38, 62, "learned (dashed)", OTHER),
        (112, 89, "rotary", THIS),
        (100, 1, "guessing", OTHER),
    ):
        ax.text(x, y, words, color=color)
    ax.set(xlabel="length of the sequence", ylabel="right answers (%)", ylim=(-3, 106))
    return show(
        figure,
        title="Beyond the training lengths, on this task, only rotary holds up",
        caption="Medians of three recorded seeds. Grey: lengths of training; beyond, "
        "answers after position 31. Guessing: the most frequent other symbol.",
    )


def maps(figure: plt.Figure, caption: str) -> Html:
    """Show maps of weights (64, 64), drawn as images, in the page's own colours."""
    for ax in figure.axes:
        weights = torch.as_tensor(ax.images[0].get_array())
        ax.images[0].remove()
        _shades(ax, 2 * weights, 4.6)  # a weight of ½ in full colour
        for line in ax.lines:
            line.set_color(OTHER)
        ax.set(xticks=(0, 16, 32, 48), yticks=(0, 16, 32, 48))
        ax.set_xlabel("key at position (rows: query)")
    return show(
        figure,
        title="The clocks’ line breaks off where training ended; rotary’s goes on",
        alt="Two maps of the weights of 64 positions. Sinusoidal: a line just below "
        "the diagonal fades up to position 31; after it the weights scatter over many "
        "keys. Rotary: the line is dark up to position 63.",
        caption=caption + " Full shade: half of the weight or more.",
    )


# ---- 5.7: a longer context -----------------------------------------------------------


def new_angles(trained: Tensor, now: Tensor) -> Tensor:
    """Return which pairs reach angles that training never showed.

    Args:
        trained: radians between the first and the last token of training, ``(k/2,)``.
        now: radians between the first and the last token of the longer context.
    """
    return (trained < 2 * math.pi) & (now > trained)


def angles_plot(trained: Tensor, now: Tensor, longer: int) -> Html:
    """Plot how far each pair turns from the first token to the last, and say it.

    ``trained`` and ``now`` are as in :func:`new_angles`; there are now ``longer``
    times as many tokens.
    """
    figure, ax = plt.subplots(figsize=(8.1, 3.2))
    pairs, new = torch.arange(len(now)), new_angles(trained, now)
    slow = trained < 2 * math.pi
    shade = {"color": COLOURS["wrong"], "alpha": 0.3, "lw": 0}
    known = trained[slow] / (2 * math.pi)
    reached = now[slow] / (2 * math.pi)
    ax.fill_between(pairs[slow], known, reached.maximum(known), **shade)
    if new.any():
        ax.text(len(now) - 2, 1.6 * reached.max(), "never seen", ha="right")
    for angles, color, name in ((trained, OTHER, "training"), (now, THIS, "now")):
        ax.plot(pairs, angles / (2 * math.pi), color=color, label=name)
    ax.set(yscale="log", ylim=(3e-3, 1e4), xlabel="pair, from fast to slow")
    ax.set(xlim=(0, len(now) - 1), ylabel="turns over all tokens")
    ax.set_yticks((0.01, 1, 100, 10_000), ("0.01", "1", "100", "10,000"))
    ax.minorticks_off()
    name_lines(ax)
    ax.axhline(1, color=INK, lw=1)
    ax.text(1, 0.8, "one full circle", va="top", color=INK)
    said = f"{int(new.sum()) or 'None'} of {len(now)} pairs meet angles never seen"
    if new.any():
        said += f", up to {(now / trained)[new].max():.1f} times as far as in training"
    said += ". "
    first, last = (now / trained / longer)[[0, -1]].tolist()  # per token
    said += f"Per token, the fastest turns {first:.0%} as far as in training, the "
    said += f"slowest {last:.0%}."
    drawn = plot_html(figure, said)
    return Html(drawn + render("paragraph", kind="says", text=said))


def check_longer(turned_by: Callable[[float, float, int], Tensor]) -> None:
    """Hold the page to what it says of bases and factors at four times the length."""
    trained = turned_by(10_000, 1, 4096)
    check_close("pair 0 turns by a radian", trained[0], torch.tensor(4096.0))
    new = {
        (base, factor): int(new_angles(trained, turned_by(base, factor, 16_384)).sum())
        for base in (10_000, 30_000, 100_000, 500_000)
        for factor in (1, 2, 4)
    }
    assert new[10_000, 1] == 18 and new[10_000, 2] == 18, new
    assert new[10_000, 4] == new[100_000, 1] == 0 < new[30_000, 1], new


# ---- 5.8: pitfalls -------------------------------------------------------------------


def check_steps(model: nn.Module, rows: Tensor, first: int) -> None:
    """Prove that a decoder, its start counted up, writes what it writes at once."""
    before = F.pad(rows[:, :-1], (1, 0), value=first)
    with torch.no_grad():
        memory, kept, pieces = model.encode(rows), None, []
        whole, _ = model.decode(before, memory)
        for step in range(rows.shape[1]):
            one = before[:, step : step + 1]
            logits, kept = model.decode(one, memory, step, kept)
            pieces.append(logits)
    check_close("one step at a time = all at once", torch.cat(pieces, 1), whole, 1e-3)


# ---- 5b: train short, test long ------------------------------------------------------

THREE = ("sinusoidal", "learned", "rotary")


def _ends(ax: plt.Axes, ways: Mapping[str, Runs]) -> None:
    """Draw how sequences of each length end, and how often training came so far."""
    colors = {"rotary": INK, "sinusoidal": THIS}
    for way, runs in ways.items():
        lengths = [int(n) for n in runs[0]["ends"]]
        rows = [[100 * share for share in r["ends"].values()] for r in runs]
        middle = [median(column) for column in zip(*rows, strict=True)]
        color = colors.get(way, OTHER)
        ax.plot(lengths, middle, color=color, label=way)
        for row in rows:
            ax.plot(lengths, row, "o", color=color, alpha=0.35, ms=3.5)
    reached = [zone(n) for n in runs[0]["seen"][:113]]
    for name, shade in zip(ZONES, (0.0, 0.1, 0.2, 0.34), strict=True):
        left = reached.index(name) + 0.5  # position p ends length p + 1
        right = left + reached.count(name)
        ax.axvspan(left, right, color=OTHER, alpha=shade, lw=0)
        ax.text((max(left, 6) + min(right, 114)) / 2, 109, name, ha="center")
    ax.set(xlabel="length of the sequence", ylabel="last four right (%)")
    ax.set(ylim=(-3, 118), xlim=(6, 114), yticks=(0, 50, 100))
    name_lines(ax)


def ends(record: Mapping[str, Any]) -> Html:
    """Plot how sequences end, by length, with three kinds of positions."""
    figure, ax = plt.subplots(figsize=(8.6, 3.5))
    _ends(ax, {way: runs_of(record, "rarely", way) for way in THREE})
    return show(
        figure,
        title="Where long sequences are rare, clocks beat a learned table",
        caption="Name the symbol one before. Greys: how many training sequences came "
        "so far (1000 or more; 101 to 999; 1 to 100; none). Dots: three seeds.",
    )


def other_sizes(record: Mapping[str, Any]) -> Html:
    """Plot how sequences end where symbols start larger, or smaller."""
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.5), sharey=True)
    for ax, (spread, steps, ways) in zip(
        axes,
        ((1.0, 300, ("sinusoidal", "learned, large")), (0.02, 600, THREE[:2])),
        strict=True,
    ):
        runs = {way: runs_of(record, "rarely", way, spread, steps) for way in ways}
        _ends(ax, runs)
        ax.set_title(f"symbols start at {spread:g}, {steps} steps")
    axes[1].set(ylabel="")
    return show(
        figure,
        title="With larger or smaller symbols, clocks still beat a learned table",
        caption="As in the first figure, with other sizes at the beginning.",
    )


def zone_table(record: Mapping[str, Any]) -> Html:
    """Show the share of right last answers in each zone."""
    rows = []
    for steps in (300, 600):
        for way in THREE:
            shares = by_zone(runs_of(record, "rarely", way, steps=steps))
            cells = [percent(shares[name]) for name in ZONES if shares]
            rows += [[f"{way}, {steps} steps", *cells]] if cells else []
    header = ["", *(f"seen {name}" for name in ZONES)]
    return show_table(header, rows, "Last four answers right, three recorded seeds")


def early_table(record: Mapping[str, Any]) -> Html:
    """Show the share right at positions 1 to 31, by the length of the sequence."""
    rows, lengths = [], (32, 48, 64, 128)

    def early(run: Mapping, n: int) -> float:  # all answers, less those after 31
        late = run["beyond"].get(str(n), 0.0) * (n - 32)
        return (run["right"][str(n)] * (n - 1) - late) / 31

    for way in THREE:
        cells = [
            [early(run, n) for run in runs_of(record, "longer", way)] for n in lengths
        ]
        assert (max(cells[-1]) < 0.93) == (way == "sinusoidal")
        assert way == "sinusoidal" or min(cells[-1]) > 0.97
        rows.append([way, *map(percent, cells)])
    caption = "Right at positions 1 to 31, three seeds, trained on 8 to 32 symbols"
    return show_table(["", *(f"length {n}" for n in lengths)], rows, caption)


def check_learned(learned: nn.Module, x: Tensor) -> None:
    """Prove that a table of 12 rows, added to ``x``, is nn.Embedding of 0, 1, 2, …"""

    def lookup(x: Tensor) -> Tensor:
        return x + F.embedding(torch.arange(7), learned.table)

    check_same("the class = an embedding of 0, 1, 2, …", learned, lookup, x)
    (rows,) = torch.autograd.grad(learned(x).sum(), learned.table)
    check_close("rows 7 to 11 have a gradient of 0", rows[7:], torch.zeros(5, 6), 0)
    assert rows[:7].ne(0).all(), f"rows that learn: {rows}"
    try:
        learned(torch.randn(2, 13, 6))
    except ValueError as error:
        print(f"refused: {error}")
    else:
        raise AssertionError("a sequence longer than the table was taken")


# ---- 5c: distances instead of positions ----------------------------------------------


def alibi() -> Html:
    """Show scores of five words, a bias by distance, and the weights."""
    words = ["cats", "like", "dogs", "and", "birds"]
    scores = torch.full((5, 5), 0.5).fill_diagonal_(1.0)
    for i, j, score in ((0, 2, 2), (0, 4, 2), (2, 4, 2), (1, 4, 1)):
        scores[i, j] = scores[j, i] = score
    position, lit = torch.arange(5.0), {"row": 2, "weights": True}
    bias = -(position[:, None] - position).abs()
    return chain(
        *(Matrix(scores, "scores", words, row=2, digits=1, narrow=True), "+"),
        *(Matrix(bias, "bias, slope 1", row=2, digits=0, narrow=True), "→"),
        Matrix((scores + bias).softmax(dim=-1), "softmax: weights", **lit),
        caption="ALiBi: a word further away needs a higher score for the same weight.",
    )


def heard(weights: Tensor, at: int) -> Html:
    """Plot weights (t,) by distance, and mark the key at one distance."""
    figure, ax = plt.subplots(figsize=(8.1, 2.5))
    ax.plot(weights, color=OTHER)
    ax.plot(at, weights[at], "o", color=THIS, ms=8)
    share = f"{weights[at]:.0%}"
    ax.text(at + 1.5, weights[at] + 0.03, share, color=THIS)
    ax.set(ylim=(0, 1.08), yticks=(0, 0.5, 1), xlim=(-0.5, len(weights) - 0.5))
    ax.set(xlabel="distance of the key", ylabel="weight")
    said = (
        f"The key {at} back gets {share} of the weight, the nearest {weights[0]:.0%}."
    )
    drawn = plot_html(figure, said)
    return Html(drawn + render("paragraph", kind="says", text=said))


def buckets() -> Html:
    """Show distances to the left and T5's bucket of each."""
    far = torch.tensor([0, 1, 2, 7, 8, 11, 12, 16, 32, 64, 127, 128, 1000])
    rows = [["bucket", *map(str, t5_bucket(-far).tolist())]]
    caption = "Keys to the left, in an encoder: sixteen buckets"
    return show_table(["distance", *map(str, far.tolist())], rows, caption)


def check_biases() -> None:
    """Prove that buckets are the rule, and both classes PyTorch's attention."""

    def bucket(offset: int) -> int:  # exact up to 7, then equal ratios up to 128
        distance = abs(offset)
        within = distance if distance < 8 else 8
        while 7 < within < 15 and distance >= 8 * 16 ** ((within - 7) / 8) - 1e-9:
            within += 1
        return within + (16 if offset > 0 else 0)

    offsets = torch.arange(-300, 301)
    rule = torch.tensor([bucket(o) for o in offsets.tolist()])
    check_close("buckets = the rule, distance by distance", t5_bucket(offsets), rule)
    for kind in (ALiBiAttention, T5Attention):
        layer, x = kind(24, heads=3).double(), torch.randn(2, 6, 24).double()

        def theirs(layer: nn.Module, x: Tensor) -> Tensor:
            maps = layer.query_map, layer.key_map, layer.value_map
            q, k, v = (f(x).unflatten(-1, (3, 8)).transpose(1, 2) for f in maps)
            away = torch.arange(6) - torch.arange(6)[:, None]
            bias = layer.bias(away).double()
            heads = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
            return layer.output_map(heads.transpose(1, 2).flatten(2))

        claim = f"{kind.__name__} = PyTorch's attention with the bias as mask"
        check_same(claim, kind.__call__, theirs, layer, x, tolerance=1e-12)


def distance_table(record: Mapping[str, Any], positions: Mapping[str, Any]) -> Html:
    """Show right answers by kind and length; those of clocks are of ``positions``."""
    rows: dict[str, list] = {}
    for run in record["runs"]:
        cells = [run[f"right at {n}"] for n in (32, 64, 128)]
        rows.setdefault(run["kind"], []).append(cells)
    rows["clocks, added"] = [
        [run["right"]["32"], run["beyond"]["64"], run["beyond"]["128"]]
        for run in runs_of(positions, "longer", "sinusoidal")
    ]
    return show_table(
        ["", "length 32", "64, after position 31", "128, after position 31"],
        [[k, *map(percent, zip(*v, strict=True))] for k, v in rows.items()],
        "Right answers, three recorded seeds",
    )


def check_squeezed(squeezed: Callable) -> None:
    """Prove a notebook's ``squeezed`` by complex numbers, and by positions."""
    x = torch.randn(2, 3, 9, 8, dtype=torch.float64)
    claim = "squeezed by 4 = a quarter of each angle"
    check_close(claim, squeezed(4)(x, 5), as_complex(x, 5, 4), 1e-12)
    check_close(
        "squeezed by 1 = rotary", squeezed(1)(x, 5), rotary_embedding(x, 5), 1e-12
    )
    every = x.repeat_interleave(4, dim=2)
    claim = "position 4p, squeezed by 4 = position p"
    check_close(claim, squeezed(4)(every)[:, :, ::4], rotary_embedding(x), 1e-12)
