"""Chapters 03, 03b, 03c, multi-head attention: drawings, explorers, longest proofs."""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from annotated.attention import (
    MultiHeadAttention,
    masked_softmax,
    record_attention,
    scaled_dot_product_attention,
)
from annotated.masks import causal_mask, length_mask
from annotated.page.diagrams import NOTE, Drawing
from annotated.page.frames import (
    Choice,
    Grid,
    Html,
    Slider,
    Text,
    explorer,
    plot_html,
    render,
    rounded,
    static,
)
from annotated.page.notebook import check_close, check_same, show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import OTHER, THIS, WEIGHTS, visible
from annotated.page.records import grouped
from annotated.page.references import torch_weights
from annotated.page.svg import COLOURS
from annotated.recipes.several_heads import (
    ALPHABET,
    GIVING,
    SIDE,
    Giving,
    MissingLetter,
    answers_right,
    giving_sentences,
    letter_codes,
    train_giving,
)

WORDS = "mary gave roses to susan".split()
QUESTIONS = ["who", "what", "whom"]
KINDS = ["person", "flower"]
ARROW = {"arrowstyle": "->", "color": COLOURS["ink"]}

# ---- spotlights ----------------------------------------------------------------------


def _spots(
    ax: plt.Axes, rows: Tensor, lamps: Sequence[str], words: Sequence[str] = WORDS
) -> list[float]:
    """Draw weights (h, 5) as light from lamps; return where the lamps stand."""
    places = torch.linspace(0.5, 4.5, len(lamps)).tolist() if len(lamps) > 1 else [2.5]
    for x, row, lamp in zip(places, rows.tolist(), lamps, strict=True):
        ax.text(x, 0, lamp, ha="center", va="bottom", weight="bold")
        for j, weight in enumerate(row):
            ax.fill((x, j, j + 1), (0.2, 3, 3), color=WEIGHTS(0.6 * weight), lw=0)
    for j, word in enumerate(words):
        weight = "bold" if word == "gave" else "normal"
        ax.text(j + 0.5, 3.2, word, ha="center", va="top", weight=weight)
    ax.set(xlim=(-0.3, 5.3), ylim=(4.2, -1))
    ax.axis("off")
    return places


def _pair(
    ax: plt.Axes, middle: float, top: float, pair: Sequence[float], digits: int = 2
) -> None:
    """Draw a person and a flower side by side."""
    side = 0.55 if digits else 0.46
    for i, value in enumerate(pair):
        left, fill = middle + side * (i - 1), (COLOURS["value"], value / 4)
        ax.add_patch(plt.Rectangle((left, top), side, 1, fc=fill, ec=OTHER))
        place = left + side / 2, top + 0.5
        ax.text(*place, f"{value:.{digits}f}", ha="center", va="center")


def looks(one: Tensor, three: Tensor, lamps: Sequence[str], **words: str) -> Html:
    """Draw where the verb looks with one head (1, 5), and with three (3, 5)."""
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 1.9))
    for ax, rows, names in zip(axes, (one, three), (["one head"], lamps), strict=True):
        _spots(ax, rows, names)
    said = Matrix(torch.cat([one, three]), "Weights of gave", ["one head", *lamps])
    return show(
        figure, alt=f"Light falls on {' '.join(WORDS)}. {said.words()}", **words
    )


def opening() -> Html:
    """Draw one blend of three nouns, and three answers."""
    nouns, lamps = torch.eye(5)[[0, 2, 4]], [f"{question}?" for question in QUESTIONS]
    return looks(
        *(nouns.mean(dim=0, keepdim=True), nouns, lamps),
        title="One blend, or three answers",
        caption="How much “gave” should take from each word: the more, the stronger "
        "the light.",
    )


def verb_looks(one: Tensor, three: Tensor) -> Html:
    """Draw where the verb looks in trained models of one head and of three, (h, 5)."""
    roles = ["who", "gave", "what", "to", "whom"]
    jobs = [roles[row.argmax()] for row in three]
    return looks(
        *(one, three, [f"head {r}: {job}" for r, job in enumerate(jobs)]),
        title="What the verb looks at after training",
        caption="Each head is named after the word that it looks at most.",
    )


def blends(blend: Tensor, x: Tensor, swapped: Tensor) -> Html:
    """Draw what one blend (t) makes of a sentence, and of its names exchanged."""
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.3))
    exchanged, said = ["susan", "gave", "roses", "to", "mary"], []
    for ax, words, rows in zip(axes, (WORDS, exchanged), (x, swapped), strict=True):
        _spots(ax, blend[None], ["gave: a third each"], words)
        traits = rows[:, :2]
        for j, pair in enumerate(traits.tolist()):
            _pair(ax, j + 0.5, 4.2, pair, digits=0)
        _pair(ax, 2.5, 6.7, (blend @ traits).tolist())
        ax.plot((0, 5), (5.5, 5.5), color=ARROW["color"], lw=1)
        ax.annotate("", (2.5, 6.6), (2.5, 5.4), arrowprops=ARROW)
        ax.text(1.8, 7.2, "output", ha="right", va="center")
        ax.set_ylim(7.9, -1)
        output = Matrix(blend @ traits, "the output", None, KINDS)
        said.append(f"{' '.join(words)}. {output.words()}")
    return show(
        figure,
        title="Mary gives or Susan gives: the blend is the same",
        alt=f"A third of the light on each noun. {' '.join(said)}",
        caption="Below each word: how much of a person, how much of a flower.",
    )


def merged(weights: Tensor, row: Tensor) -> Html:
    """Draw where three heads look (3, 5), and their answers, joined to a row (6)."""
    figure, ax = plt.subplots(figsize=(8.6, 3.7))
    lamps = [f"head {r}: {question}?" for r, question in enumerate(QUESTIONS)]
    answers = [*zip(lamps, row.view(3, 2).tolist(), strict=True)]
    places = _spots(ax, weights, lamps)
    for r, (x, (_, pair)) in enumerate(zip(places, answers, strict=True)):
        end = 2.5 + 1.15 * (r - 1)
        _pair(ax, x, 4.6, pair)
        _pair(ax, end, 7.4, pair)
        ax.annotate("", (end, 7.3), (x, 5.7), arrowprops=ARROW)
    ax.text(0.65, 7.9, "gave", ha="right", va="center", weight="bold")
    ax.set_ylim(8.6, -1)
    said = "; ".join(f"{lamp} {p:.2f}, {f:.2f}" for lamp, (p, f) in answers)
    return show(
        figure,
        title="Three heads light up three words, and their answers stand side by side",
        alt="Light from three heads falls on mary, roses and susan. Below each head is "
        f"its answer, person and flower, and at the end the three in a row: {said}.",
        caption="In each pair: person, then flower.",
    )


# ---- pictures of matrices ------------------------------------------------------------


def answer(weights: Tensor, values: Tensor) -> Html:
    """Show what a head takes: weights (t) of one query, and values (t, 2)."""
    return chain(
        *(Matrix(weights, "weights of gave", columns=WORDS, weights=True), "·"),
        *(Matrix(values, "values", WORDS, KINDS), "="),
        Matrix(weights @ values, "the head's answer", columns=KINDS),
    )


def learning(trained: Giving) -> dict[int, tuple[Tensor, Sequence[float]]]:
    """Return where three heads look, and what they answer, by training step.

    It is training again from the same seed, up to a few steps before the end, where
    the model is ``trained``. Weights (3, t) are means over a thousand fresh sentences:
    in a single one a head may go by the noun that stands there.
    """
    device = next(trained.parameters()).device
    tokens, _ = giving_sentences(torch.Generator().manual_seed(1000), 1000)
    models = {}
    for steps in (0, 25, 50, 100, 200):
        torch.manual_seed(0)
        models[steps] = train_giving(Giving(3).to(device), seed=0, steps=steps)
    by_step = {}
    for steps, model in (models | {GIVING["steps"]: trained}).items():
        with torch.no_grad(), record_attention(model) as maps:
            model(tokens.to(device))
        weights = maps["attention"][0][:, :, 0].mean(dim=0)
        by_step[steps] = weights, answers_right(model)
    return by_step


def part_ways(rows: Tensor, right: Sequence[float]) -> Html:
    """Show where three heads look (3, t), and say the share of right answers."""
    heads = [f"head {r}" for r in range(len(rows))]
    columns = [QUESTIONS[0], "verb", QUESTIONS[1], "to", QUESTIONS[2]]
    drawn = chain(Matrix(rows, "weights of the verb", heads, columns, weights=True))
    shares = zip(QUESTIONS, right, strict=True)
    said = f"Right answers: {', '.join(f'{q} {share:.0%}' for q, share in shares)}."
    return Html(drawn.text + render("paragraph", kind="says", text=said))


def parted(by_step: Mapping[int, tuple[Tensor, Sequence[float]]]) -> Html:
    """Say, behind a fold, when each noun has its head, and which question waited."""
    nouns = {step: set(r.argmax(dim=1).tolist()) for step, (r, _) in by_step.items()}
    shared = [step for step, found in nouns.items() if found != {0, 2, 4}]
    since = min(step for step in by_step if step > max(shared, default=-1))
    weights, early = by_step[25]
    last = min(range(3), key=early.__getitem__)
    most = weights[:, 2 * last].max()
    return Html(
        "<details><summary>Answer</summary><p>By their largest weights, each noun has "
        f"its own head from step {since} on. Of the questions, {QUESTIONS[last]} waits "
        f"longest: at step 25 no head gives its noun more than {most:.0%}, and "
        f"{early[last]:.0%} of its answers are right.</p></details>"
    )


def neighbours(average: Tensor) -> Html:
    """Show where heads look near the blank, of average weights (h, s)."""
    order = average.argmax(dim=1).argsort(stable=True)
    average = average[order]
    near = average[:, SIDE - 2 : SIDE + 3]
    beyond = 1 - near.sum(dim=1, keepdim=True)
    return chain(
        Matrix(
            torch.cat([near, beyond], dim=1),
            "distance from the blank",
            [f"head {r}" for r in order.tolist()],
            ["−2", "−1", "blank", "+1", "+2", "rest"],
            weights=True,
        ),
        caption="Average weights in unseen text, heads sorted by where they look most. "
        "− is left of the blank, + right.",
    )


# ---- drawings ------------------------------------------------------------------------


def _cells(drawing: Drawing, x: float, y: float, width: int, term: str) -> None:
    """Draw five rows of cells around ``x``; heads of two columns stand apart."""
    for j in range(width):
        gap = 6 * (j // 2) - 6 if term == "value" and width == 6 else 0
        for i in range(5):
            left = x + 11 * (j - width / 2) + gap
            drawing.frame(left, y + 11 * i, 11, 11, shade=0.4, color=term)


def flow() -> Html:
    """Draw how three heads read whole words, and how their results are merged."""
    drawing, left = Drawing(350, 412), {"anchor": "start"}
    _cells(drawing, 175, 2, 6, "other")
    drawing.text(218, 26, "X: 5 words,", bold=True, **left)
    drawing.text(218, 43, "6 numbers each", **left)
    for r, x in enumerate((57, 175, 293)):
        bend = [(175, 70), (x, 70)] if x != 175 else []
        drawing.arrow((175, 57), *bend, (x, 86))
        drawing.box(
            x,
            86,
            112,
            f"head {r}: {QUESTIONS[r]}?",
            "its own W_q, W_k,",
            "W_v: each 2 × 6",
        )
        drawing.arrow((x, 143), (x, 158))
        _cells(drawing, x, 158, 2, "value")
        drawing.text(x + 16, 190, "5 × 2", size=NOTE, **left)
        end = 175 + 28 * (r - 1)
        bend = [(x, 228), (end, 228)] if x != 175 else []
        drawing.arrow((x, 213), *bend, (end, 244))
    _cells(drawing, 175, 244, 6, "value")
    drawing.text(224, 268, "side by side:", **left)
    drawing.text(224, 285, "5 × 6", **left)
    drawing.arrow((175, 299), (175, 313))
    drawing.box(175, 313, 112, "· W_oᵀ")
    drawing.arrow((175, 338), (175, 353))
    _cells(drawing, 175, 353, 6, "other")
    drawing.text(218, 377, "Y: 5 words,", bold=True, **left)
    drawing.text(218, 394, "6 numbers each", **left)
    return drawing.figure(
        alt="From top to bottom: X, five words of six numbers, goes whole into three "
        "heads side by side, who, what and whom, each with its own W_q, W_k and W_v, "
        "two by six. Each gives five rows of two numbers. The three pieces, side by "
        "side, are five by six again, and go through W_o to Y, five by six.",
        caption="Every head reads whole words; only its result is narrow.",
    )


def crossed(weights: Tensor) -> Html:
    """Draw where a verb looks in another sentence: weights (3, 5) of its heads."""
    drawing, places = Drawing(340, 178), [34 + 68 * j for j in range(5)]
    for word, x in zip(WORDS, places, strict=True):
        drawing.text(x, 18, word)
    for row, (x, anchor), question in zip(
        weights.tolist(),
        ((58, "end"), (162, "start"), (246, "start")),
        QUESTIONS,
        strict=True,
    ):
        for weight, end in zip(row, places, strict=True):
            drawing.line((116, 146), (end, 28), width=round(6 * weight, 2))
        drawing.text(x, 88, f"{question}?", anchor=anchor)
    for x, word in ((34, "maria"), (116, "donò"), (184, "…")):
        drawing.text(x, 168, word, bold=x == 116)
    return drawing.figure(
        alt="Two sentences. From the verb of the lower one, maria donò, three thick "
        "lines lead to words of the upper one: who to mary, what to roses, whom to "
        "susan.",
        caption="Queries from the lower sentence, keys and values from the upper one. "
        "The thicker a line, the larger the weight.",
    )


# ---- plots ---------------------------------------------------------------------------


def by_heads(rows: Sequence[Mapping], key: str = "heads") -> dict[int, list]:
    """Return what was right in recorded runs, seed by seed, by number of heads."""
    runs = grouped(rows, key).items()
    return {heads: [row["right"] for row in seeds] for (heads,), seeds in runs}


def questions_right(rows: Sequence[Mapping]) -> Html:
    """Show how many questions models of one, two and three heads answer, by seed."""
    runs = by_heads(rows)
    return chain(
        *(
            Matrix(runs[h], f"{h} head{'s'[: h > 1]}", seeds, QUESTIONS, weights=True)
            for h, seeds in ((1, ["seed 0", "seed 1", "seed 2"]), (2, None), (3, None))
        ),
        caption="Share of right answers after 400 steps, a row for each model "
        "(recorded). Four and eight heads do as well as three. A blind guess is right "
        "once in 48.",
    )


def heads_help(rows: Sequence[Mapping], lost: Sequence[float]) -> Html:
    """Plot letters guessed by number of heads, and those lost without each head."""
    figure, (more, fewer) = plt.subplots(1, 2, figsize=(8.6, 3.2))
    runs = by_heads(rows)
    for at, shares in enumerate(runs.values()):
        more.plot([at - 0.1, at, at + 0.1], [100 * s for s in shares], "o", color=THIS)
    more.set_xticks(range(len(runs)), runs)
    more.set(ylim=(0, 75), ylabel="letters guessed (%)", xlabel="heads")
    more.set_title("trained with more heads")
    fewer.set_title("one of eight heads removed")
    fewer.bar(range(8), [100 * share for share in lost], color=THIS, width=0.6)
    fewer.set(xticks=range(8), ylabel="points lost without head …", xlabel="head")
    means = [f"{heads} heads {100 * sum(s) / len(s):.0f}%" for heads, s in runs.items()]
    return show(
        figure,
        title="After the same 1,200 steps, more heads guess more letters on average",
        alt=f"Left, letters guessed, means of three seeds: {', '.join(means)}. Right, "
        "points lost without each of eight heads in turn: "
        f"{', '.join(f'{100 * share:.1f}' for share in lost)}.",
        caption="Left: models of one width and one number of parameters, three seeds "
        "each (recorded). Right: the model you just used.",
    )


# ---- explorers -----------------------------------------------------------------------

TOY = ["mary", "gave", "roses"]
STEPS = ["1 project", "2 view", "3 transpose", "4 scores", "5 softmax", "6 average"]
STEPS += ["7 transpose back", "8 merge", "9 output map"]
WAYS = ["view, then transpose", "a single view(h, t, k)"]


def toy() -> tuple[Tensor, Tensor]:
    """Return queries, keys, values (3, t, d) of three words, and an output map."""
    generator = torch.Generator().manual_seed(3)
    qkv = torch.randint(-20, 21, (3, 3, 4), generator=generator).mul(0.1)
    return qkv, torch.randint(-10, 11, (4, 4), generator=generator).mul(0.1)


def stages(way: str) -> list[Tensor]:
    """Return the tensor after each step; its first axis is heads, if there is one."""
    straight, (qkv, out) = way == WAYS[1], toy()

    def split(x: Tensor) -> Tensor:
        return x.view(2, 3, 2) if straight else x.view(3, 2, 2).transpose(0, 1)

    q, key, v = map(split, qkv)
    scores = q @ key.transpose(1, 2) / 2**0.5
    answers = F.scaled_dot_product_attention(q, key, v)
    back = answers if straight else answers.transpose(0, 1)
    merged = back.reshape(3, 4)
    first = q if straight else qkv[0].view(3, 2, 2)
    weights = scores.softmax(dim=-1)
    return [qkv[0], first, q, scores, weights, answers, back, merged, merged @ out.T]


def walk() -> Html:
    """Show a word on its way through two heads, split rightly or wrongly."""
    checks = []
    for n, way in enumerate(WAYS):
        for i, tensor in enumerate(stages(way)):
            word = (i + n) % 3
            words_first = tensor.dim() == 2 or tensor.shape[0] == 3
            row = tensor[word] if words_first else tensor[:, word]
            values = {
                "numbers": tensor.flatten().tolist(),
                "row": row.flatten().tolist(),
            }
            checks.append(({"step": STEPS[i], "word": TOY[word], "way": way}, values))
    (q, key, v), out = toy()
    tensors = {"q": q, "k": key, "v": v, "out": out}
    return explorer(
        static("ch03/head_walk.js"),
        {"words": TOY, "steps": STEPS, "straight": WAYS[1]}
        | {name: tensor.tolist() for name, tensor in tensors.items()},
        [
            Slider("step", "step", STEPS),
            Choice("word", "word to follow", TOY, TOY[1]),
            Choice("way", "how to split", WAYS),
        ],
        label="A tensor on its way through two heads",
        checks=checks,
        question="Which of steps 2, 3, 7 and 8 has to move numbers in memory? And with "
        "a single view: whose numbers are in the row of gave at step 3?",
        caption="Framed: the row of the word you follow. Filled: that word's own "
        "numbers, and what was computed from them alone.",
    )


def as_sent(model: MissingLetter) -> tuple[dict[str, Any], MissingLetter]:
    """Return the weights of a ``model`` for the browser, and the model it will run."""
    sent = copy.deepcopy(model).cpu()
    return rounded(sent), sent


@torch.no_grad()
def guess(model: MissingLetter, text: str, removed: Sequence[int] = ()) -> dict:
    """Return a ``model``'s guess of the letter at ``_`` without ``removed`` heads."""
    padded = " " * SIDE + text.lower() + " " * SIDE
    at, model = padded.index("_"), copy.deepcopy(model)
    for r in removed:
        model.attention.output_map.weight[:, 8 * r : 8 * r + 8] = 0
    with record_attention(model) as seen:
        logits = model(letter_codes(padded[at - SIDE : at + SIDE + 1])[None])
    chance, letter = logits.softmax(dim=-1)[0].max(dim=0)
    looks = seen["attention"][0][0, :, 0].argmax(dim=-1) - SIDE
    found = {"guess": ALPHABET[letter], "chance": chance.item()}
    return found | {"looks": looks.tolist()}


EXAMPLES = ["all the wo_ds in it", "raise an err_r if the name"]
EXAMPLES += ["return a list_of all files", "to be or n_t to be"]


def letter_guesser(model: MissingLetter) -> Html:
    """Show where a trained ``model``'s heads look, in text that the reader types."""
    packed, sent = as_sent(model)
    checks = []
    for text in [*EXAMPLES, "_ne", "Is it a c_t."]:
        for removed in ((), (2,), (0, 1, 7)):
            state = {"text": text, "removed": [[0, r] for r in removed]}
            checks.append((state, guess(sent, text, removed)))
    return explorer(
        static("ch03/missing_letter.js"),
        {"weights": packed, "alphabet": ALPHABET, "side": SIDE, "heads": 8},
        [
            Text("text", "text with one _", EXAMPLES[0], EXAMPLES),
            Grid("removed", "remove heads", 1, 8),
        ],
        label="Where eight heads look for a missing letter",
        checks=checks,
        question="Which single heads flip the guess when you remove them?",
        caption="Strong squares: where a head looks. Bars: the three likeliest "
        "letters. Click a head to remove it; arrow keys move between heads, Space "
        "switches.",
    )


def flips(model: MissingLetter) -> Html:
    """Say, behind a fold, which heads flip the guess of the first example."""
    _, sent = as_sent(model)
    text = EXAMPLES[0]
    every = guess(sent, text)["guess"]
    alone = [guess(sent, text, (r,))["guess"] for r in range(8)]
    flipped = "; ".join(
        f"without head {r} it's {visible(letter)}"
        for r, letter in enumerate(alone)
        if letter != every
    )
    return Html(
        f"<details><summary>Answer, for “{text}”</summary><p>With all eight heads the "
        f"guess is {every}; {flipped or 'no single head flips it'}.</p></details>"
    )


# ---- proofs --------------------------------------------------------------------------


def by_loops(
    x: Tensor,
    memory: Tensor,
    W_q: Tensor,
    W_k: Tensor,
    W_v: Tensor,
    W_o: Tensor,
    heads: int,
    mask: Tensor | None = None,
) -> Tensor:
    """Attend sentence by sentence, head by head, with chapter 2's function."""
    outputs = []
    for i in range(len(x)):
        maps = zip(*(w.chunk(heads) for w in (W_q, W_k, W_v)), strict=True)
        seen = None if mask is None else mask.expand(len(x), 1, -1, -1)[i, 0]
        parts = [
            scaled_dot_product_attention(
                x[i] @ q.T, memory[i] @ k.T, memory[i] @ v.T, seen
            )
            for q, k, v in maps
        ]
        outputs.append(torch.cat([part for part, _ in parts], dim=-1) @ W_o.T)
    return torch.stack(outputs)


def check_multi_head(
    multi_head: Callable, x: Tensor, swapped: Tensor, merged: Tensor, *maps: Tensor
) -> None:
    """Prove that ``multi_head`` is loops, and what it makes of the toy."""
    toys = [multi_head(y[None], y[None], *maps, 3)[0] for y in (x, swapped)]
    check_close("equal to the toy's heads, one by one", toys[0], merged, 1e-5)
    pairs = toys[1][1], merged[1, [4, 5, 2, 3, 0, 1]]
    check_close("Mary and Susan swapped: first and last pair swap", *pairs, 1e-5)
    many, memory = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    W = [torch.randn(12, 12) / 12**0.5 for _ in range(4)]
    loops = "equal to loops over sentences and heads"
    check_same(f"{loops}, self", multi_head, by_loops, many, many, *W, 3)
    check_same(f"{loops}, cross", multi_head, by_loops, many, memory, *W, 3)
    parts = by_loops(many, many, *W[:3], torch.eye(12), 3).chunk(3, dim=-1)
    summed = sum(a @ b.T for a, b in zip(parts, W[3].chunk(3, dim=1), strict=True))
    check_close("W_o = a sum over heads", summed, by_loops(many, many, *W, 3), 1e-5)


def check_costs(multi_head: Callable, d: int = 12, t: int = 5, s: int = 7) -> None:
    """Prove that parameters and multiplications don't depend on the number of heads."""
    for heads in (1, 4, 8):
        layer = MultiHeadAttention(256, heads, bias=False)
        assert sum(p.numel() for p in layer.parameters()) == 4 * 256**2
    print("✓ 1, 4 and 8 heads in a width of 256: 4 · 256² parameters, exactly")
    wanted = (2 * t + 2 * s) * d**2 + 2 * t * s * d  # four maps; scores and blends
    for heads in (1, 3, 6):
        with FlopCounterMode(display=False) as counter:
            multi_head(
                torch.ones(1, t, d), torch.ones(1, s, d), *torch.ones(4, d, d), heads
            )
        assert counter.get_total_flops() == 2 * wanted, f"{heads} heads: {counter}"
    print(f"✓ 1, 3 and 6 heads in a width of {d}: {wanted:,} multiplications, exactly")


def uses() -> dict[str, tuple[Tensor, Tensor, Tensor | None]]:
    """Return queries' words, keys' words and mask of the three uses of attention."""
    x, memory = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    padding = length_mask(torch.tensor([4, 7]), 7)
    kinds = (x, x, None), (x, x, causal_mask(5)), (x, memory, padding)
    return dict(zip(("self", "causal", "cross"), kinds, strict=True))


def by_torch(
    layer: MultiHeadAttention, x: Tensor, asked: Tensor, mask: Tensor
) -> Tensor:
    """Compute with a layer's weights in PyTorch's module, whose True means masked."""
    module = nn.MultiheadAttention(12, 3, batch_first=True)
    hidden = None if mask is None else ~mask.expand(2, 3, 5, -1).flatten(0, 1)
    given = (x, asked, asked), {"attn_mask": hidden, "need_weights": False}
    return functional_call(module, torch_weights(layer), *given)[0]


def check_class() -> None:
    """Prove that the class is PyTorch's, and loops, in its three uses."""
    layer, plain = MultiHeadAttention(12, 3), MultiHeadAttention(12, 3, bias=False)
    for linear in layer.children():
        nn.init.normal_(linear.bias)  # so that a forgotten bias would show

    def ours(layer: nn.Module, x: Tensor, asked: Tensor, mask: Tensor) -> Tensor:
        return layer(x, asked, mask=mask)

    def loops(layer: nn.Module, x: Tensor, asked: Tensor, mask: Tensor) -> Tensor:
        return by_loops(x, asked, *layer.parameters(), 3, mask)

    for use, given in uses().items():
        check_same(f"{use}: nn.MultiheadAttention", ours, by_torch, layer, *given)
        check_same(f"{use}: our own loops", ours, loops, plain, *given, tolerance=1e-4)


def check_view_alone() -> None:
    """Prove what a split by a view alone does to the toy's words."""
    right, wrong = (stages(way)[-1] for way in WAYS)
    names = [f"{word[0]}{j}" for word in TOY for j in range(4)]
    place = torch.arange(12).view(2, 3, 2)
    row = [names[i] for i in place[:, 1].flatten()]
    own = (place // 4 == torch.arange(3)[:, None]).all(dim=-1).sum().item()
    gap = (right - wrong).abs().max().item()
    assert row == ["m2", "m3", "r0", "r1"] and gap > 0.1 and own == 2, (row, gap, own)
    print(f"measured: the outputs of the two splits differ by up to {gap:.2f}.")
    print(f"Split by a view alone, {own} of 6 rows hold the numbers of their own word.")


def check_alike(tokens: Tensor) -> None:
    """Prove that heads that start alike stay alike."""
    torch.manual_seed(0)
    alike = Giving(3).double()  # so precise that rounding doesn't tell them apart
    attention = alike.attention
    with torch.no_grad():
        for linear in (attention.query_map, attention.key_map, attention.value_map):
            linear.weight.copy_(linear.weight[:16].repeat(3, 1))
            linear.bias.copy_(linear.bias[:16].repeat(3))
        out = attention.output_map.weight
        out.copy_(out[:, :16].repeat(1, 3))
    # a few steps are enough: equal gradients, equal steps, and so on
    train_giving(alike, seed=0, steps=20)
    with record_attention(alike) as maps:
        alike(tokens.cpu())
    weights = maps["attention"][0][0, :, 0]
    claim = "started alike, three heads have the same weights after 20 steps"
    check_close(claim, weights, weights[:1].expand(3, -1), 1e-9)


@torch.no_grad()
def check_traps() -> None:
    """Show that PyTorch's module, called as if it were ours, gives other numbers."""
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    theirs, past = nn.MultiheadAttention(12, 3), causal_mask(5)
    theirs.load_state_dict(torch_weights(layer))
    transposed, average = theirs(x, x, x)  # no error: time is first
    theirs.batch_first = True
    masked, _ = theirs(x, x, x, attn_mask=past[0, 0])
    _, each = theirs(x, x, x, average_attn_weights=False)
    assert (average.dim(), each.dim()) == (3, 4)
    gap = (transposed - layer(x)).abs().max().item()
    mask_gap = (masked - layer(x, mask=past))[:, :-1].abs().max().item()
    assert gap > 0.1 and mask_gap > 0.1, (gap, mask_gap)
    print(
        f"measured: outputs are off by up to {gap:.2f} with time first, and by up to "
        f"{mask_gap:.2f} with our causal mask"
    )


# ---- 03b -----------------------------------------------------------------------------


def check_layout(projected: Tensor, h: int) -> None:
    """Prove which steps copy (b, t, d), and that none loses a number."""
    b, t, d = projected.shape
    heads = projected.view(b, t, h, -1).transpose(1, 2)
    folded = heads.reshape(b * h, t, -1)
    moved = [x.data_ptr() != projected.data_ptr() for x in (heads, folded)]
    assert moved == [False, True], moved
    merged = heads.transpose(1, 2).flatten(2)
    check_close("merging undoes splitting", merged, projected, 0.0)
    by_hand, _ = scaled_dot_product_attention(heads, heads, heads)
    kernel = F.scaled_dot_product_attention(heads, heads, heads)
    check_close("fused = by hand", kernel, by_hand, 1e-4)
    W = torch.randn(h, d // h, d)
    stacked = (projected @ W.flatten(0, 1).T).view(b, t, h, -1)
    alone = [projected @ one.T for one in W]
    check_close("one product = one for each head", stacked.unbind(2), alone, 1e-4)


def check_einsum(by_einsum: Callable, x: Tensor, *maps: Tensor) -> None:
    """Prove that ``by_einsum`` is the module with ``maps``, in self and cross use."""
    module = MultiHeadAttention(x.shape[-1], len(maps[0]), bias=False)
    with torch.no_grad():
        for ours, W in zip(module.parameters(), maps, strict=True):
            ours.copy_(W.reshape(ours.shape))
    for use, y in (("self", x), ("cross", torch.randn(2, 7, x.shape[-1]))):
        check_close(f"einsum = the module, {use}", by_einsum(x, y), module(x, y), 1e-4)


def check_promises() -> None:
    """Prove what self-, causal and cross-attention do with other words, or orders."""
    layer, given = MultiHeadAttention(12, 3), uses()
    x, _, past = given["causal"]
    _, memory, _ = given["cross"]
    shuffle, order = torch.tensor([3, 0, 4, 1, 2]), torch.randperm(7)
    pair = layer(x[:, shuffle]), layer(x)[:, shuffle]
    check_close("self: words shuffled, outputs shuffled alike", *pair, 1e-5)
    changed = torch.cat([x[:, :3], torch.randn(2, 2, 12)], dim=1)
    before, later = layer(x, mask=past), layer(changed, mask=past)
    assert (later - before)[:, 3:].abs().max() > 0.1, "the change changes nothing"
    pair = later[:, :3], before[:, :3]
    check_close("causal: words 3 and 4 changed, outputs 0 to 2 unmoved", *pair, 1e-5)
    pair = layer(x, memory[:, order]), layer(x, memory)
    check_close("cross: the order of the words attended to is free", *pair, 1e-5)


def times(ways: Mapping[str, Callable], x: Tensor) -> Html:
    """Show how long ways take, forward and back, in turns; the last is fused."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(10):
        for name, way in ways.items():
            began = time.process_time()
            way(x).sum().backward()
            if turn:  # the first round warms up
                taken[name].append(1000 * (time.process_time() - began))
    *others, (_, fused) = ways.items()
    for name, way in others:
        check_close(f"{name} = fused", way(x), fused(x), 1e-5)
    return show_table(
        ["4 sentences of 128 words, width 256, 8 heads", "milliseconds"],
        [[name, f"{median(each):.1f}"] for name, each in taken.items()],
        caption="Median of nine rounds, one CPU thread or as many as there are.",
    )


def speed_table(record: Mapping[str, Any]) -> Html:
    """Show PyTorch's time divided by ours, by use and length."""
    kinds = grouped(record["rows"], "kind")
    return show_table(
        ["times faster", *(f"{row['length']} words" for row in kinds["self",])],
        [[*kind, *(f"{r['ratio']:.2f}" for r in rows)] for kind, rows in kinds.items()],
        caption=f"Width 256, 8 heads (recorded). Median: {record['overall']:.2f}.",
    )


def check_recorded() -> None:
    """Prove that recorded weights are the softmax of scores, masks and all."""
    layer = MultiHeadAttention(12, 3, bias=False)
    for use, (x, asked, mask) in uses().items():
        with record_attention(layer) as maps:
            layer(x, asked, mask=mask)
        q, key, _ = layer.project(x, asked)
        weights = masked_softmax(q @ key.mT / 2.0, mask)
        check_close(f"{use}: recorded = derived", maps[""], [weights], 1e-5)
        assert not maps[""][0].requires_grad, "a graph hangs on the weights"


def check_half() -> None:
    """Prove that in half precision, ours and PyTorch's are close to float32."""
    layer = MultiHeadAttention(12, 3)
    for dtype, tolerance in ((torch.float16, 1e-2), (torch.bfloat16, 8e-2)):
        low = copy.deepcopy(layer).to(dtype)
        exact, results, wanted = copy.deepcopy(low).float(), [], []
        for x, asked, mask in uses().values():
            pair = x.to(dtype), asked.to(dtype)
            results += [low(*pair, mask=mask), by_torch(low, *pair, mask)]
            wanted += 2 * [exact(*(y.float() for y in pair), mask=mask)]
        name = str(dtype).removeprefix("torch.")
        check_close(f"{name}, ours and PyTorch's, all uses", results, wanted, tolerance)


def on_padding(lengths: Tensor, ways: Mapping[str, Tensor]) -> Html:
    """Show how much weight heads put on padding, by lengths repeated in two ways."""
    h, longest = len(ways["repeat"]) // len(lengths), int(lengths.max())
    q, key = torch.randn(2, h * len(lengths), longest, 4)
    rows = []
    for name, repeated in ways.items():
        mask = length_mask(repeated, longest)[:, 0]  # (b·h, 1, s)
        _, weights = scaled_dot_product_attention(q, key, key, mask)
        real = int(lengths[0])  # of the queries of sentence 0; then its padding
        padding = weights[:h, :real, real:].sum(dim=-1).mean(dim=-1)
        # by luck, head 0 has the right length in both
        wrong = padding[0] or max(padding) < 0.4 if name == "repeat" else any(padding)
        assert not wrong, f"{name}: {padding.tolist()} is on padding"
        rows.append([name, *(f"{share:.0%}" for share in padding.tolist())])
    return show_table(
        ["weight of sentence 0 on its padding", *(f"head {r}" for r in range(h))], rows
    )


def entropy(weights: Tensor) -> float:
    """Return the entropy of weights, in nats."""
    return torch.special.entr(weights).sum().item()


def flatness(rows: Mapping[str, Tensor]) -> Html:
    """Plot sorted weights by what the scores were divided by, and say the largest."""
    figure, ax = plt.subplots(figsize=(8.1, 2.8))
    for (name, weights), color in zip(rows.items(), (OTHER, THIS), strict=True):
        ax.plot(range(1, len(weights) + 1), weights, color=color)
        y = 0.17 if color is THIS else 0.22
        ax.text(32, y, f"divided by {name}", color=color, ha="right")
    ax.axhline(1 / len(weights), color=OTHER, lw=1)
    ax.set(ylim=(0, 0.27), xlabel="key, from the largest weight", ylabel="weight")
    most = " and ".join(f"{w[0]:.2f} divided by {name}" for name, w in rows.items())
    said = f"The largest weight: {most}."
    drawn = plot_html(figure, said)
    return Html(drawn + render("paragraph", kind="says", text=said))


def check_temperature(sorted_weights: Callable) -> None:
    """Prove what dividing by √d does, for any number of heads."""
    scores, h = torch.randn(5, 32), 8
    pair = (scores / 512**0.5), (scores / 64**0.5 / h**0.5)
    claim = "dividing by √d is a softmax at temperature √h"
    check_close(claim, *(one.softmax(dim=-1) for one in pair), 1e-5)
    gaps = [
        entropy(sorted_weights(heads, 512))
        - entropy(sorted_weights(heads, 512 // heads))
        for heads in (1, 2, 4, 8, 16)
    ]
    assert gaps == sorted(gaps) and gaps[0] == 0 and gaps[3] > 0.1, gaps


# ---- 03c -----------------------------------------------------------------------------


def network_table(rows: Sequence[Mapping]) -> Html:
    """Show what one head answers, with a network before it and without."""
    return show_table(
        ["one head, 1200 steps", "seed", *QUESTIONS],
        [
            [
                "network before it" if row["network"] else "no network",
                row["seed"],
                *(f"{share:.1%}" for share in row["right"]),
            ]
            for row in rows
        ],
    )


@torch.no_grad()
def check_orders(model: Giving, tokens: Tensor) -> None:
    """Prove that under even weights, all orders of the nouns leave one output."""
    even = MultiHeadAttention(48, 1).to(tokens.device)
    nn.init.zeros_(even.key_map.weight)  # all scores alike
    outputs = []
    for who, what, whom in permutations((0, 2, 4)):
        words = model.words(tokens[:, [who, 1, what, 3, whom]])
        outputs.append(even(words + model.positions)[0, 1])
    claim = "even weights: all six orders of the nouns leave one output"
    check_close(claim, outputs[1:], [outputs[0]] * 5, 1e-4)


def check_rank(x: Tensor) -> None:
    """Prove that scores of words (t, d) have the rank of their head's width."""
    for heads in (1, 2, 4, 8, 16):
        k = x.shape[1] // heads
        q, key = (x @ torch.randn(x.shape[1], k).double() for _ in range(2))
        rank = torch.linalg.matrix_rank(q @ key.T).item()
        assert rank == k, f"scores of a head of width {k} have rank {rank}"
    print("✓ scores of a head of width k have rank k, exactly, for 64, 32, 16, 8 and 4")


@torch.no_grad()
def check_grouped(attention: MultiHeadAttention, x: Tensor) -> None:
    """Prove that shared heads are copies of keys and values for each query head."""
    plain = MultiHeadAttention(attention.d_model, attention.heads)
    k, copies = plain.d_model // plain.heads, plain.heads // attention.kv_heads
    for ours, few in zip(plain.children(), attention.children(), strict=True):
        times = len(ours.weight) // len(few.weight)
        assert times in (1, copies)
        for own, shared in ((ours.weight, few.weight), (ours.bias, few.bias)):
            parts = shared.unflatten(0, (-1, k)).repeat_interleave(times, dim=0)
            own.copy_(parts.flatten(0, 1))
    claim = "equals multi-head attention whose key and value heads are copies"
    check_close(claim, attention(x), plain(x), 1e-5)


def grouped_table(record: Mapping[str, Any]) -> Html:
    """Show how well models with shared heads guess a missing letter."""
    right = {8: by_heads(record["letters"])[8]} | by_heads(record["grouped"], "shared")
    names = {8: "8 (multi-head)", 1: "1 (multi-query)"}
    return show_table(
        ["heads of keys and values", "numbers kept per word", "letters right"],
        [
            [names.get(n, n), 16 * n, f"{min(shares):.1%} to {max(shares):.1%}"]
            for n, shares in right.items()
        ],
        caption="Three seeds each (recorded).",
    )
