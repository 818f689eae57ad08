"""Chapters 02, 02b and 02c, self-attention: drawings, explorers, longest proofs."""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from statistics import mean
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from annotated.attention import scaled_dot_product_attention
from annotated.chapters.ch02 import pronouns
from annotated.chapters.ch02.pronouns import settled
from annotated.page import frames
from annotated.page.diagrams import Drawing
from annotated.page.frames import Choice, Html, Slider, explorer, static
from annotated.page.notebook import check_close, check_same, show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import OTHER, THIS, name_lines, plot_lines
from annotated.page.records import grouped
from annotated.page.svg import COLOURS

WORDS = ["cat", "street", "it", "tired"]
TRAITS = ["animal", "place", "state", "gender"]
KINDS = TRAITS[:2]
LOOKS = ["second", "first"]
ROW: dict[str, Any] = {"rows": WORDS, "row": 2}  # of “it”

# ---- pictures of matrices ------------------------------------------------------------


def score(x: Tensor) -> Html:
    """Show how well each pair of words matches."""
    return chain(
        *(Matrix(x, "x", columns=TRAITS, **ROW), "·"),
        *(Matrix(x.T, "x transposed", columns=WORDS), "="),
        Matrix(x @ x.T, "scores", columns=WORDS, row=2),
        caption="Highlighted: the row of “it”. The rows of “x transposed” are the four "
        "traits.",
    )


def mix(x: Tensor) -> Html:
    """Show the weights of each word, and what they mix."""
    weights = (x @ x.T).softmax(dim=-1)
    return chain(
        *(Matrix(weights, "weights", columns=WORDS, weights=True, **ROW), "·"),
        *(Matrix(x, "x", columns=TRAITS), "="),
        Matrix(weights @ x, "mixed", columns=TRAITS, row=2),
        caption="The softmax of each row of scores, and what it mixes.",
    )


def roles(W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Html:
    """Show the three matrices that make queries, keys and values."""
    return chain(
        *(Matrix(W_q, "W_q: I look for…", rows=TRAITS, columns=KINDS), ""),
        *(Matrix(W_k, "W_k: find me as…", rows=TRAITS, columns=KINDS), ""),
        Matrix(W_v, "W_v: I give…", rows=TRAITS, columns=TRAITS[3:]),
        caption="A word that describes a state isn’t a noun, so W_k subtracts its "
        "state from both entries of its key: it matches less well than the nouns.",
    )


def match(query: Tensor, key: Tensor) -> Html:
    """Show queries that meet keys."""
    return chain(
        *(Matrix(query, "queries Q", columns=KINDS, **ROW), "·"),
        *(Matrix(key.T, "keys K, transposed", columns=WORDS), "÷ √2 ="),
        Matrix(query @ key.T / 2**0.5, "scores", columns=WORDS, row=2),
        caption="The second look with three roles: who matches whom?",
    )


def hand_over(weights: Tensor, value: Tensor) -> Html:
    """Show values that are mixed."""
    return chain(
        "softmax →",
        *(Matrix(weights, "weights", columns=WORDS, weights=True, **ROW), "·"),
        *(Matrix(value, "values V", columns=TRAITS[3:]), "="),
        Matrix(weights @ value, "output", columns=TRAITS[3:], row=2),
        caption="… and what they hand over: gender alone.",
    )


def compared(rows: Mapping[str, Tensor]) -> Html:
    """Show the weights of *it*, a row for each choice of matrices."""
    table = torch.stack([*rows.values()])
    shares = Matrix(table, "weights", rows=[*rows], columns=WORDS, weights=True)
    shown = table.mul(100).round()[:, 2:].sum(dim=1) / 100  # what a reader adds up
    kept = ", ".join(f"{share:.2f}" for share in shown.tolist())
    caption = "Where the second look of “it” goes. “It” and “tired” together get, from "
    return chain(shares, caption=f"{caption}the top: {kept}.")


# ---- drawings and plots --------------------------------------------------------------


def flow() -> Html:
    """Draw how words become queries, keys and values, and what becomes of these."""
    drawing, cell = Drawing(350, 368), 11

    def tensor(x: float, y: float, width: int, name: str, term: str = "other") -> None:
        for j, i in product(range(width), range(4)):
            left, top = x + cell * (j - width / 2), y + cell * i
            drawing.frame(left, top, cell, cell, shade=0.45, color=term)
        for line, words in enumerate(name.split("|")):
            at = x + cell * width / 2 + 5, y + 19 + 17 * line
            drawing.text(*at, words, anchor="start", bold="|" in name and not line)

    tensor(165, 2, 5, "words (b, t, d)")
    for x, width, name, term in (
        (50, 3, "Q|(b, t, k)", "query"),
        (165, 3, "K|(b, s, k)", "key"),
        (285, 2, "V|(b, s, v)", "value"),
    ):
        drawing.arrow((165, 46), *[(165, 58), (x, 58)] * (x != 165), (x, 72))
        drawing.box(x, 72, 60, f"· W_{name[0].lower()}")
        drawing.arrow((x, 97), (x, 112))
        tensor(x, 112, width, name, term)
        drawing.arrow((x, 156), (x, 180 if x < 285 else 284))
    drawing.box(107, 180, 150, "Q Kᵀ / √k")
    drawing.arrow((50, 205), (50, 220))
    tensor(50, 220, 4, "")
    drawing.text(50, 280, "scores (b, t, s)")
    drawing.arrow((74, 242), (166, 242))
    drawing.text(119, 235, "softmax of")
    drawing.text(119, 258, "each row")
    tensor(190, 220, 4, "weights|(b, t, s)", "weight")
    drawing.arrow((190, 264), (190, 284))
    drawing.box(237, 284, 130, "weights · V")
    drawing.arrow((237, 309), (237, 322))
    tensor(237, 322, 2, "outputs|(b, t, v)", "value")
    return drawing.figure(
        alt="Words, of shape b, t, d, go through three matrices side by side: W_q "
        "gives the queries Q, W_k the keys K, W_v the values V. Q and K meet in the "
        "scores, b, t, s; a softmax of each row makes weights of them; and only there "
        "the values join: weights times V are the outputs, b, t, v.",
        caption="Queries meet keys; values wait for the weights. Drawn for four words, "
        "d = 5, k = 3 and v = 2.",
    )


def row(weights: Tensor, divided: Tensor) -> Html:
    """Plot weights of twelve keys, largest first, beside those by divided scores."""
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 2.6), sharey=True)
    said = []
    for ax, values, name in (
        (axes[0], weights, "scores as they are"),
        (axes[1], divided, "divided by √k"),
    ):
        p, e = values.max().item(), torch.e**0.1
        raised = p * e / (p * e + 1 - p)
        said.append(f"the first gets {p:.3f},\nwith a score 0.1 higher {raised:.3f}")
        ordered = values.sort(descending=True).values
        color = COLOURS["weight"] if ax is axes[0] else OTHER
        ax.bar(range(1, len(ordered) + 1), ordered, color=color, edgecolor="none")
        ax.set(ylim=(0, 1.05), xticks=(1, len(ordered)), yticks=(0, 0.5, 1))
        ax.set(title=name, xlabel="key, by weight")
        ax.text(4.6, 0.95, said[-1], va="top")
    alt = f"Weights of twelve keys: {said[0]}; divided by √k, {said[1]}."
    return Html(frames.plot_html(figure, alt))


def gradients(widths: Sequence[int], measured: Mapping[str, Sequence]) -> Html:
    """Plot how even typical rows are, and how much gradient they pass on."""
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3))
    names = "entropy of the weights", "gradient at the scores"
    for i, (ax, label) in enumerate(zip(axes, names, strict=True)):
        plot_lines(
            {
                name: dict(zip(widths, [row[i] for row in rows], strict=True))
                for name, rows in measured.items()
            },
            ax,
            colors={[*measured][1]: OTHER},
            xscale="log",
            xticks=[4, 64, 512, 4096],
            xlabel="width k",
            ylabel=label,
        )
    axes[1].set(yscale="log", yticks=[1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10], ylim=(None, 1))
    return show(
        figure,
        title="At variance 1, undivided scores of wide vectors get almost no gradient",
        caption="200 rows of 32 keys: their mean entropy, the median of their "
        "gradients.",
    )


READERS = [
    ("a plain average", "equal", None),
    ("one vector for all", "one", None),
    ("a value of its own", "value", None),
    ("a query, a key and a value", "three", None),
]


def learned(run: Mapping[str, Any], wide: Mapping[str, Any]) -> Html:
    """Plot from which step each reader gets all pronouns right."""
    figure, ax = plt.subplots(figsize=(8.6, 2.7))
    never, said = run["steps"][-1] + 110, []
    kinds = [(name, settled(run, kind, start)) for name, kind, start in READERS]
    kinds.insert(2, (f"one vector, {wide['width']} wide", settled(wide, "one", None)))
    for y, (name, steps) in enumerate(kinds):
        for step, shift in zip(steps, (-0.2, 0, 0.2), strict=True):
            mark, color = "o" if step < never else "x", THIS if y == 4 else OTHER
            ax.plot(min(step, never), y + shift, mark, color=color)
        said.append(f"{name}: {', '.join(map(str, steps)).replace('inf', 'never')}")
    ax.set(xlabel="training step", xlim=(0, never + 40), ylim=(4.6, -0.6))
    ax.set_xticks([0, 200, 400, never], ["0", "200", "400", "never"])
    ax.set_yticks(range(5), [name for name, _ in kinds])
    ax.grid(axis="x")
    return show(
        figure,
        title="Models with more roles got all pronouns right sooner",
        alt=f"Steps of training, three seeds each. {'; '.join(said)}.",
        caption="First step from which on all 128 unseen sentences are right: three "
        "recorded seeds each, 600 steps.",
    )


def in_between(far: Mapping[str, Any]) -> Html:
    """Plot what is right after training, by the number of words in between."""
    lines: dict[str, dict[int, float]] = {"attention": {}, "GRU": {}}
    runs = grouped(far["distances"], "model", "between")
    for (name, between), rows in runs.items():
        lines[name][between] = 100 * mean(row["right"][-1] for row in rows)
    ax = plot_lines(
        lines,
        colors={"GRU": OTHER},
        xlabel="words in between",
        ylabel="pronouns right (%)",
        ylim=(30, 104),
        xticks=[*lines["GRU"]],
    )
    for line in ax.lines:
        line.set_marker("")
    ax.axhline(50, color=COLOURS["muted"], linewidth=1)
    ax.text(0, 48, "a coin", va="top", color=COLOURS["muted"])
    seen, unseen = (
        100 * pronouns.encode(some)[1].float().mean().item()
        for some in pronouns.sentences()
    )
    for (name, between), rows in runs.items():
        color = THIS if name == "attention" else OTHER
        for row in rows:
            ax.plot(between, 100 * row["right"][-1], "o", color=color, alpha=0.7)
    return show(
        ax.figure,
        title="With forty words in between, the GRU learns nothing in 600 steps",
        caption="Three recorded seeds, and their means. GRU of width 16; the words in "
        "between mean nothing. A guess can miss the coin: of the sentences it learned "
        f"from, {seen:.0f} % take elle, of these {unseen:.0f} %.",
    )


# ---- explorers -----------------------------------------------------------------------


def look_back(reader: nn.Module, parts: Mapping, only: Sequence[str] = ()) -> Html:
    """Show where *it* looks, in all sentences of ``parts`` or in ``only`` one."""
    choices = list(product(*parts.values()))
    with torch.no_grad():
        logits, looks = reader(pronouns.encode(choices)[0])
    packed = {"weights": looks, "elle": logits.softmax(dim=-1)[:, 1]}
    packed = {name: frames.pack(tensor) for name, tensor in packed.items()}
    shown = {name: frames.unpack(one) for name, one in packed.items()}
    apart = {choice[:2] for choice in pronouns.sentences()[1]}
    names = {"reason": "it was too", "animal": "animal", "place": "place"}
    controls = [Choice(name, said, parts[name]) for name, said in names.items()]
    checks = []
    for i in [choices.index(tuple(only))] if only else [0, 22, 63]:
        state = {} if only else dict(zip(parts, choices[i], strict=True))
        wanted = {name: tensor[i].tolist() for name, tensor in shown.items()}
        checks.append((state | {"look": LOOKS[i % 2]}, wanted))
    question = "Where will the second look of “it” go if you swap “tired” for “wide”? "
    question += "Then find a sentence in which it goes to the wrong noun."
    caption = "The thicker an arc, the more “it” takes from that word."
    return explorer(
        static("ch02/look_back.js"),
        {
            **packed,
            "options": parts,
            "frame": pronouns.SENTENCE.format(*parts).split(),
            "unseen": [" ".join(pair) for pair in sorted(apart)],
            "only": dict(zip(parts, only, strict=True)) if only else {},
        },
        [*([] if only else controls), Choice("look", "look", LOOKS)],
        label="Where another model looks" if only else "Where it looks",
        checks=checks,
        question=None if only else question,
        caption="The same model, trained from another seed." if only else caption,
    )


def found(
    choices: Sequence[tuple], said: Tensor, right: Tensor, looks: Tensor, noun: Tensor
) -> Html:
    """Say what a reader can find: ``looks`` (n, 2, t), and nouns at ``noun`` (n,)."""
    second = looks[:, 1]
    on_it, on_other = (second.gather(1, at[:, None])[:, 0] for at in (noun, 6 - noun))
    i = int((on_other - on_it).where(said == right, -1.0).argmax())
    scattered = int((on_other + on_it).argmin())
    odd, nouns = choices[scattered], (on_other + on_it)[scattered]
    animal, place, reason = choices[i]
    wide = choices.index(("cat", "street", "wide"))
    most = pronouns.SENTENCE.format(*choices[wide]).split()[second[wide].argmax()]
    same = pronouns.ANIMALS[animal] == pronouns.PLACES[place]
    why = ", for both nouns have the same gender" if same else ""
    return Html(
        "<details><summary>What did you find?</summary><p>With <em>wide</em>, its "
        f"second look goes to <em>{most}</em>. For a wrong noun, try "
        f"<em>{animal}</em>, <em>{place}</em>, <em>{reason}</em>: "
        f"{on_other[i]:.0%} of the second look goes to "
        f"<em>{place if noun[i] == 1 else animal}</em>. The pronoun is right all the "
        f"same{why}; section 2.5 comes back to that. Some looks are scattered: with "
        f"<em>{'</em>, <em>'.join(odd)}</em>, both nouns together get {nouns:.0%}."
        "</p></details>"
    )


LAST = {  # how much of an animal and of a place the last word is said of
    "tired: animal 1.5, place −0.5": (1.5, -0.5),
    "animal 1, place 0": (1.0, 0.0),
    "animal 0.5, place 0.5": (0.5, 0.5),
    "animal 0, place 1": (0.0, 1.0),
    "wide: animal −0.5, place 1.5": (-0.5, 1.5),
}


def second_look(x: Tensor) -> Html:
    """Show self-attention with its numbers, of words that the reader changes."""
    tired, *_, wide = LAST

    def shown(last: str, look: str) -> tuple[dict, dict]:
        y = x.clone()
        y[3, :2] = torch.tensor(LAST[last])
        for _ in range(2 - LOOKS.index(look)):
            scores = y @ y.T
            weights = scores.softmax(dim=-1)
            y = weights @ y
        tables = {"scores": scores, "weights": weights, "output": y}
        values = {name: table[2].tolist() for name, table in tables.items()}
        return {"last": last, "look": look}, values

    return explorer(
        static("ch02/attention_chain.js"),
        {"x": x.tolist(), "words": WORDS, "traits": TRAITS, "looks": LOOKS}
        | {"last": LAST},
        [
            Slider("step", "step", ["score", "weigh", "mix"], "weigh"),
            Choice("look", "look", LOOKS),
            Slider("last", "last word", [*LAST], tired),
        ],
        label="Self-attention, step by step",
        checks=[shown(*one) for one in product((tired, wide), LOOKS)],
        question="Turn “tired” into “wide”. What does the second look of “it” find? "
        "Why do the weights of its first look stay the same?",
        caption="The row of “it” is in colour. A second look starts from “mixed”.",
    )


# ---- proofs --------------------------------------------------------------------------


def by_hand(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    """Return attention's outputs (t, v), computed one number at a time."""
    outputs = []
    for q in query:
        scores = [scale * sum(a * c for a, c in zip(q, k, strict=True)) for k in key]
        powers = [torch.exp(score) for score in scores]
        parts = [p / sum(powers) * v for p, v in zip(powers, value, strict=True)]
        outputs.append(sum(parts))
    return torch.stack(outputs)


def check_loops(self_attention: Callable, x: Tensor) -> None:
    """Prove that ``self_attention`` equals loops, in a batch too."""
    batch = torch.randn(2, 5, 3)  # a leading axis of sequences is no obstacle
    ours = [self_attention(x), *self_attention(batch)]
    loops = [by_hand(y, y, y) for y in (x, *batch)]
    check_close("equal to loops, alone and in a batch", ours, loops, 1e-5)


def check_roles(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> None:
    """Prove what 2.3 says of its three matrices."""
    wide = torch.cat([x[:3], x[3:, [1, 0, 2, 3]]])
    tired, wide = ((y @ y.T).softmax(dim=-1) @ y for y in (x, wide))

    def of_it(y: Tensor) -> tuple[Tensor, Tensor]:
        weights = (y @ W_q @ (y @ W_k).T / 2**0.5).softmax(dim=-1)[2]
        return weights, weights @ y @ W_v

    il, elle = of_it(tired)[1], of_it(wide)[1]
    check_close("“wide” gives what “tired” gives, with the other sign", il, -elle, 1e-5)
    weights, output = of_it(x)
    ties = [weights[0], output[0]], [weights[1], torch.tensor(0.0)]
    check_close("with x for mixed, cat and street tie, the output is 0", *ties, 1e-5)
    cat, street = x[:2]
    between = torch.stack([cat @ W_q @ (street @ W_k), street @ W_q @ (cat @ W_k)])
    check_close("cat and street now score 0", between, torch.zeros(2))


def check_shipped() -> None:
    """Prove that the module's function equals loops, and PyTorch's."""
    b, t, s, k, v = 2, 3, 5, 7, 4  # every axis has another length
    given = torch.randn(b, t, k), torch.randn(b, s, k), torch.randn(b, s, v)

    def shipped(*qkv: Tensor) -> Tensor:
        return scaled_dot_product_attention(*qkv)[0]

    def loops(*qkv: Tensor) -> Tensor:
        texts = zip(*qkv, strict=True)
        return torch.stack([by_hand(*text, scale=k**-0.5) for text in texts])

    theirs = F.scaled_dot_product_attention
    check_same("equal to loops", shipped, loops, *given)
    check_same("equal to F.scaled_dot_product_attention", shipped, theirs, *given)


def check_row(one_row: Callable) -> None:
    """Prove the spread of scores, where one key has 0.99, and the derivative."""
    for k in (4, 16, 64, 256, 1024, 4096):
        products = (torch.randn(4000, k) * torch.randn(4000, k)).sum(dim=1)
        spread = products.std().item()
        assert abs(products.mean()) < 4 * spread / 4000**0.5, f"mean at width {k}"
        assert 0.9 < spread / k**0.5 < 1.1, f"{spread:.1f} at width {k}"
    print("✓ standard deviation at six widths, 4000 pairs each: √k, within 10 %")
    first = min(k for k in (2**i for i in range(13)) if one_row(k, False).max() > 0.99)
    assert first == 128, f"one key has 0.99 from {first} on"
    for k, share in ((64, 1 / 3), (128, 1 / 2), (4096, 0.88)):
        q, keys = torch.randn(500, k, 1), torch.randn(500, 12, k)
        sharp = ((keys @ q).softmax(dim=1) > 0.99).sum() / 500
        assert abs(sharp - share) < 0.09, f"at width {k}, one key has it in {sharp:.0%}"
    scores = torch.randn(5)
    p = scores.softmax(dim=0)
    theirs = torch.autograd.functional.jacobian(lambda e: e.softmax(dim=0), scores)
    ours = torch.diag(p) - torch.outer(p, p)
    check_close("this derivative equals autograd's", ours, theirs, 1e-5)


def check_gradients(
    through_softmax: Callable, measured: Mapping
) -> dict[int, list[float]]:
    """Hold the page to what it says of gradients.

    Returns:
        Median gradients at the scores of a fresh layer, by width: of divided scores,
        and of scores as they are.
    """
    divided, plain = (torch.tensor(rows).T[1:] for rows in measured.values())
    (scaled, _), (raw, means) = divided, plain  # medians and means, by width
    assert scaled.max() < 2 * scaled.min(), f"divided, medians vary: {scaled}"
    assert raw[-1] < 1e-3 * raw[0], f"as they are, medians: {raw}"
    assert means[-1] > 100 * raw[-1], "no row passes more than the others"
    # 200 rows are few for a median
    even, uneven = (through_softmax(64, way, 4000)[1] for way in (True, False))
    assert 0.3 < uneven / even < 0.48, f"at 64, {uneven / even:.0%} is left"
    linear = {"count": 1000, "variance": 1 / 3}  # of entries out of a fresh nn.Linear
    fresh = {
        k: [through_softmax(k, way, **linear)[1] for way in (True, False)]
        for k in (64, 512)
    }
    (narrow, more), (wide, less) = fresh.values()
    assert more > 1.2 * narrow and less < 0.7 * wide, fresh
    print("measured, median gradients at the scores:")
    print(f"width 64: {even:.3f} divided by √k, {uneven:.3f} as they are")
    print(f"width 4096: {scaled[-1]:.3f} divided by √k, {raw[-1]:.0e} as they are")
    print("with scores of a third of that spread, as out of a fresh nn.Linear:")
    for k, (ours, theirs) in fresh.items():
        print(f"width {k}: {ours:.3f} divided by √k, {theirs:.3f} as they are")
    return fresh


def check_set(self_attention: Callable, x: Tensor) -> None:
    """Prove what order means to ``self_attention``, and to a causal one."""
    shuffle = torch.tensor([2, 0, 3, 1])
    pair = self_attention(x[shuffle]), self_attention(x)[shuffle]
    check_close("the output of a shuffle is the shuffled output", *pair, 1e-5)

    def causal(x: Tensor) -> Tensor:
        past = torch.ones(len(x), len(x), dtype=torch.bool).tril()
        return (x @ x.T).masked_fill(~past, -torch.inf).softmax(dim=-1) @ x

    apart = (causal(x[shuffle]) - causal(x)[shuffle]).abs().max()
    assert apart > 0.1, "a shuffle changes nothing in causal attention"
    print(f"measured: in causal self-attention, outputs differ by up to {apart:.2f}")


@torch.no_grad()
def costs(d: int = 512) -> dict[int, list[tuple[int, float]]]:
    """Return multiplications and milliseconds of attention and a GRU, by words."""
    maps = [nn.Linear(d, d, bias=False) for _ in range(3)]
    gru, taken = nn.GRU(d, d, batch_first=True), {}

    def attend(x: Tensor) -> Tensor:
        return scaled_dot_product_attention(*(linear(x) for linear in maps))[0]

    for t in (96, 768, 1536):
        x, taken[t] = torch.randn(1, t, d), []
        for layer, count in (
            (attend, 3 * t * d**2 + 2 * t**2 * d),
            (gru, 6 * t * d**2),
        ):
            with FlopCounterMode(display=False) as counter:
                layer(x)
            assert counter.get_total_flops() == 2 * count, f"{t} words: {counter}"
            times = [time.perf_counter()]
            for _ in range(3):
                layer(x)
                times.append(time.perf_counter())
            fastest = min(b - a for a, b in pairwise(times))
            taken[t].append((count, 1e3 * fastest))
    print("✓ PyTorch counts 3td² + 2t²d and 6td² multiplications, exactly")
    return taken


def costs_table(taken: Mapping[int, Sequence]) -> Html:
    """Show what attention and a GRU take."""
    rows = []
    for t, pair in taken.items():
        counts = [f"{count / 1e6:,.0f} M" for count, _ in pair]
        rows.append((t, *counts, *(f"{ms:.0f} ms" for _, ms in pair)))
    threads = torch.get_num_threads()
    threads = "one CPU thread" if threads == 1 else f"{threads} CPU threads"
    caption = (
        "Millions of multiplications, and the time that this run took. Width 512, "
    )
    caption += f"one text at a time, {threads}."
    names = ["attention", "GRU"]
    header = ["words", *names, *(f"{name}, time" for name in names)]
    return show_table(header, rows, caption=caption)


# ---- 02b -----------------------------------------------------------------------------


def films(names: Sequence[str], factors: Tensor, degrees: float) -> Html:
    """Plot films by their factors (n, 2), and which of them a taste likes."""
    angle = torch.tensor(degrees).deg2rad()
    a, c = angle.cos().item(), angle.sin().item()
    spots = (factors / factors.norm(dim=1).max()).tolist()
    figure, ax = plt.subplots(figsize=(6.8, 4))
    likes, above = [], {1: -2.0, -1: -2.0}  # the highest name on each side
    for (x, y), name in sorted(
        zip(spots, names, strict=True), key=lambda one: one[0][1]
    ):
        side, liked = 1 if x >= 0 else -1, a * x + c * y > 0
        likes += [name] * liked
        above[side] = at = max(y, above[side] + 0.16)
        color, fill = (THIS, "full") if liked else (OTHER, "none")
        ax.plot(x, y, "o", color=color, fillstyle=fill)
        ha = "left" if side > 0 else "right"
        ax.text(x + 0.08 * side, at, name, color=color, ha=ha, va="center")
    tip = {"arrowstyle": "->", "lw": 2, "color": COLOURS["ink"]}
    ax.annotate("", (0.6 * a, 0.6 * c), (0, 0), arrowprops=tip)
    ax.plot([-c, c], [a, -a], ":", color=OTHER, linewidth=1)
    ax.set(xlim=(-2.1, 2.1), ylim=(-1.2, 1.3), aspect="equal")
    ax.axis("off")
    alt = f"Fifteen films in a ring. A taste at {degrees}° likes {', '.join(likes)}."
    return Html(frames.plot_html(figure, alt))


# ---- 02c -----------------------------------------------------------------------------

TEMPERATURES = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
CELSIUS = {
    "north": 4.0, "north-east": 7.0, "east": 12.0, "south-east": 18.0,
    "south": 21.0, "south-west": 16.0, "west": 9.0, "north-west": 6.0,
}  # fmt: skip


def stations(soft_lookup: Callable) -> Html:
    """Show a lookup among eight weather stations."""
    ring = [(name, 45 * i, value) for i, (name, value) in enumerate(CELSIUS.items())]

    def way(direction: float) -> Tensor:
        angle = torch.tensor(direction * torch.pi / 180)
        return torch.stack([angle.cos(), angle.sin()])

    def ask(direction: float, temperature: float) -> tuple[dict, dict]:
        keys, values = torch.stack([way(at) for _, at, _ in ring]), torch.eye(8)
        weights = soft_lookup(way(direction), keys, values, temperature).tolist()
        answer = sum(w * value for w, (_, _, value) in zip(weights, ring, strict=True))
        state = {"direction": direction, "temperature": temperature}
        return state, {"weights": weights, "answer": answer}

    tried = [(0.0, 0.1), (67.5, 0.01), (97.5, 0.3), (255.0, 1.0), (345.0, 10.0)]
    keys = "name", "direction", "value"
    return explorer(
        static("ch02/soft_lookup.js"),
        {"stations": [dict(zip(keys, station, strict=True)) for station in ring]},
        [
            Slider("direction", "direction (°)", [7.5 * i for i in range(48)], 60.0),
            Slider("temperature", "temperature", TEMPERATURES, 0.1),
        ],
        label="A soft lookup",
        checks=[ask(*one) for one in tried],
        question="Halfway between two stations, what does a cold lookup answer? And a "
        "hot one?",
        caption="The larger the disc, the larger the weight. The line is the query.",
    )


Runs = Mapping[tuple[int, str, int], Sequence[Mapping[str, float]]]


def store_losses(runs: Runs) -> Html:
    """Plot the losses of stores of widths 64 and 512."""
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3), sharey=True)
    for ax, width in zip(axes, (64, 512), strict=True):
        for name, label, color in (("none", "without", OTHER), ("1/√k", "1/√k", THIS)):
            for seed in (0, 1, 2):
                history, named = runs[width, name, seed], label if seed == 0 else None
                losses = [r["loss"] for r in history]
                steps = [r["step"] for r in history]
                ax.plot(steps, losses, color=color, label=named, linewidth=1.3)
        ax.set(xlabel=f"training step, width {width}", ylabel="loss (nats)")
        name_lines(ax)
    return show(
        figure,
        title="Without 1/√k the store learns later, the more so the wider it is",
        caption="The same store, the same questions, three seeds.",
    )


def untrained(store: Callable, questions: Callable, factors: Mapping) -> dict:
    """Return what a store's scores and gradients are before the first step."""
    states = {}
    for width, (name, scale) in product((64, 512), factors.items()):
        torch.manual_seed(0)
        model = store(width, scale)
        given, right = questions(torch.Generator().manual_seed(0))
        pairs = model.key_symbols(given[0]) + model.value_symbols(given[1])
        query = model.query_map(model.key_symbols(given[2]))
        scores = query @ model.key_map(pairs).mT * (scale or width**-0.5)
        weights = scores.softmax(dim=-1)
        logits = model.answer((weights @ model.value_map(pairs))[:, 0])
        (back,) = torch.autograd.grad(F.cross_entropy(logits, right), scores)
        shares = back[:, 0].norm(dim=-1).sort(descending=True).values
        best, six = weights.amax(dim=-1).mean(), shares[:6].sum() / shares.sum()
        states[width, name] = scores.std().item(), best.item(), six.item()
    return states


def untrained_table(states: Mapping[tuple[int, str], tuple]) -> Html:
    """Show stores before the first step."""
    (_, best, six), (_, better, seven) = (
        states[512, name] for name in ("none", "1/√k")
    )
    assert best > 0.8 > 0.4 > better, f"best keys' weights: {best}, {better}"
    assert six > 1.5 * seven, f"parts of the gradient: {six}, {seven}"
    spreads = [states[width, "1/√k"][0] for width in (64, 512)]
    assert all(abs(one * 3 / 2**0.5 - 1) < 0.15 for one in spreads), spreads  # √2/3
    header = ["width, factor", "spread of scores", "best key's weight"]
    header.append("part of six questions in the gradient")
    rows = [
        (f"{width}, {name}", f"{std:.2f}", f"{best:.2f}", f"{six:.0%}")
        for (width, name), (std, best, six) in states.items()
    ]
    return show_table(header, rows, caption="Spread: standard deviation.")


def check_half() -> None:
    """Prove that in half precision, attention is close to full precision."""
    given = [torch.randn(2, 3, 7), torch.randn(2, 5, 7), torch.randn(2, 5, 4)]
    for dtype, tolerance in ((torch.float16, 1e-2), (torch.bfloat16, 8e-2)):
        low = [x.to(dtype) for x in given]
        exact, _ = scaled_dot_product_attention(*(x.float() for x in low))
        both = [scaled_dot_product_attention(*low)[0]]
        both.append(F.scaled_dot_product_attention(*low))
        claim = f"in {dtype}, this function and PyTorch's equal full precision"
        check_close(claim, both, [exact, exact], tolerance)
