"""Chapters 08, 08b and 08c, the copy task: drawings, tables, explorers, proofs."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy
import torch
from torch import Tensor
from torch.nn import functional as F

from annotated.attention import record_attention
from annotated.decoding import greedy_decode
from annotated.page import frames
from annotated.page.diagrams import NOTE, Drawing
from annotated.page.frames import Choice, Html, Slider, explorer, static
from annotated.page.notebook import check_close, show, show_table
from annotated.page.packed import _rounded, _weights
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import OTHER, THIS, plot_bars
from annotated.page.records import Rows, dots, grouped
from annotated.page.svg import COLOURS
from annotated.recipes import copy_task
from annotated.recipes.copy_task import COPY, COPY_START
from annotated.recipes.parts import take_away
from annotated.transformer import Transformer, TransformerConfig

LETTERS = "·abcdefghij."  # 0 is padding, 11 the end symbol where there is one
CROSS = "decoder.layers.0.cross_attention"


def letters(ids: Iterable[int]) -> str:
    """Write symbols as letters."""
    return "".join(LETTERS[i] for i in ids)


def copies_of(rows: Rows, *keys: str) -> dict[tuple, list[int]]:
    """Return the exact copies of each seed, on the first fresh set, by some entries."""
    groups = grouped(rows, *keys).items()
    return {key: [row["exact"][0] for row in each] for key, each in groups}


# ---- letters, and where they come from -----------------------------------------------


def letter_row(
    drawing: Drawing, y: float, name: str, text: str, wanted: str = "", cell: float = 30
) -> None:
    """Write a row of letters, and a frame around each that is the one wanted."""
    drawing.text(60, y + 19, name, anchor="end")
    at = [68 + cell * (i + 0.5) for i in range(len(text))]
    for x, letter, right in zip(at, text, wanted, strict=False):
        if letter == right:
            color = {"shade": 0.25, "color": "right"}
            drawing.frame(x - cell / 2 + 1, y, cell - 2, 27, **color)
    drawing.text(at, y + 19, text, code=True, size=15)


def learned(watched: Mapping[str, Any]) -> Html:
    """Show what a recorded run wrote for one sequence, step after step."""
    wanted, steps = letters(watched["source"][1:]), (20, 30, 40, 50, 60)
    looks = {look["step"]: letters(look["written"]) for look in watched["looks"]}
    drawing = Drawing(350, 33 * len(steps) + 40)
    letter_row(drawing, 0, "read", wanted)
    drawing.line((68, 34), (338, 34))
    for i, step in enumerate(steps):
        letter_row(drawing, 42 + 33 * i, f"step {step}", looks[step], wanted)
    said = ", ".join(f"after {step} steps {looks[step]}" for step in steps)
    return drawing.figure(
        alt=f"A sequence of nine letters, {wanted}, and below it what a Transformer "
        f"writes when it is asked to copy it: {said}. Correct letters are framed.",
        caption="A Transformer learns to copy: what it reads, and what it writes after "
        "so many training steps. Framed: correct.",
    )


def beside(read: str, written: str) -> Html:
    """Show what a model read, and what it wrote; correct letters are framed."""
    drawing = Drawing(350, 66)
    cell = min(30.0, 280 / max(len(read), len(written)))
    letter_row(drawing, 2, "read", read, cell=cell)
    letter_row(drawing, 36, "written", written, read, cell)
    return drawing.figure(alt=f"Read: {read}. Written: {written}.")


def by_hand(word: str, weights: Tensor, symbols: Tensor) -> Html:
    """Show one attention by hand: weights (t, s) times symbols (s, v)."""
    output = weights @ symbols
    used = symbols.any(dim=0).nonzero().flatten().tolist()
    begun = [word[: i + 1] for i in range(len(weights))]
    places = [f"{letter}{chr(0x2080 + i)}" for i, letter in enumerate(word)]
    written = f"comes next: {letters(output.argmax(dim=1).tolist())}"
    look: dict[str, Any] = {"weights": True, "narrow": True}
    return chain(
        *(Matrix(weights, "where to look", begun, places, row=1, **look), "·"),
        *(Matrix(symbols[:, used], "the source", places, letters(used), **look), "="),
        Matrix(output[:, used], written, begun, letters(used), row=1, **look),
    )


def peek() -> Html:
    """Draw what the decoder sees when it is asked for the i of abig."""
    drawing, cell = Drawing(350, 148), 23
    drawing.text(46, 62, "wanted", anchor="end", size=NOTE)
    drawing.text(46, 133, "given", anchor="end", size=NOTE)
    for panel, (name, sees, length, answer) in enumerate(
        (
            ("training,|with the mask", (0, 1), 4, "i"),
            ("training,|no mask", (0, 1, 3, 2), 4, "i"),
            ("generating,|no mask", (0, 1), 2, "?"),
        )
    ):
        left = 54 + 100 * panel
        for line, words in enumerate(name.split("|")):
            drawing.text(left + 2 * cell, 14 + 16 * line, words, size=NOTE)
        drawing.frame(left + cell, 45, cell - 2, 24, shade=0.25, color="this")
        drawing.text(left + 1.5 * cell - 1, 62, answer, code=True, size=15)
        for i in sees:
            at = left + cell * (i + 0.5) - 1
            arrow = (at, 114), (left + 1.5 * cell - 1, 72)
            drawing.arrow(*arrow, width=3.5 if i == 2 else 1)
        for i, letter in enumerate("abig"):
            x, leaks = left + cell * i, 0.35 * (i in sees and i == 2)
            look: dict[str, Any] = {"dashed": i not in sees, "shade": leaks}
            drawing.frame(x, 116, cell - 2, 24, **look, color="weight")
            shown = letter if i < length else ""
            drawing.text(x + cell / 2 - 1, 133, shown, code=True, size=15)
    return drawing.figure(
        alt="Three panels. What the decoder is given, a, b, i, g, stands below; what "
        "is wanted after a, b stands above: i. Training with the mask: arrows lead to "
        "it from a and b only. Training without the mask: arrows lead from all four, "
        "a thick one from the i itself. Generating: only a and b have been written, "
        "the other two places are empty, and a question mark stands above.",
        caption="What the decoder's self-attention sees when it is asked what follows "
        "ab. Dashed: hidden, or not written yet.",
    )


# ---- before and during training ------------------------------------------------------


def first_loss(
    config: TransformerConfig, source: Tensor, given: Tensor, labels: Tensor, seed=0
) -> tuple[float, float]:
    """Return the loss before the first step, and what ln v + σ²/2 says."""
    torch.manual_seed(seed)
    with torch.no_grad():
        logits = Transformer(config)(source, given)
    guide = math.log(logits.shape[-1]) + logits.var(dim=-1).mean().item() / 2
    return F.cross_entropy(logits.mT, labels).item(), guide


def check_first_losses(
    config: TransformerConfig, source: Tensor, target: Tensor, loss: float
) -> None:
    """Check what the page says of the loss before the first step; print it."""
    given, labels, bare = target[:, :-1], target[:, 1:], []
    guided = [first_loss(config, source, given, labels, seed) for seed in range(4)]
    assert abs(guided[0][0] - loss) < 1e-4 and abs(loss - 3.4) < 0.01
    assert all(abs(first - guide) < 0.5 for first, guide in guided)
    tied = replace(config, tied=True), source, given
    right, unshifted = (first_loss(*tied, ids)[0] for ids in (labels, given))
    assert right > loss + 0.5 and unshifted < 1
    for seed in range(3):
        torch.manual_seed(seed)
        model = take_away(Transformer(replace(config, layers=4)), "norm")
        with torch.no_grad():
            first = copy_task.next_symbol_loss(model, (source, target))
        bare.append(f"{first:.0f}")
        assert first > 30
    pairs = ", ".join(f"{first:.2f} ({guide:.2f})" for first, guide in guided)
    print(f"✓ the first loss = ln v + σ²/2, to 0.5, seeds 0 to 3: {pairs}")
    print(f"measured: four layers without norms start at {', '.join(bare)}")
    print(f"measured: tied embeddings {right:.2f}, labels not shifted {unshifted:.2f}")


def bag_floor(counts: Tensor) -> float:
    """Return the best loss if letters are known, but neither order nor count left."""
    shares = counts / counts.sum(dim=1, keepdim=True)
    return torch.special.entr(shares).sum(dim=1).mean().item()


def two_stages(runs: Mapping[str, Rows], floor: float, bag: float) -> Html:
    """Plot first losses of recorded runs, and the two stages in which they fall."""
    others = grouped(runs["ablations"], "name")
    figure, ax = plt.subplots(figsize=(8.6, 4))
    for left, right, text in ((5, 37, "which letters"), (37, 65, "which order")):
        ax.axvspan(left, right, color=COLOURS["rule"], alpha=0.4 + 0.4 * (left > 9))
        ax.text((left + right) / 2, 3.35, text, ha="center")
    for rows, color, name, x, y, side in (
        (others["no positions",], OTHER, "no positions", 72, 1.32, "left"),
        (others["no causal mask",], OTHER, "no causal mask", 44, 0.5, "right"),
        (runs["main"], THIS, "with the mask", 67, 0.3, "left"),
    ):
        losses = numpy.array([row["losses"][:100] for row in rows])
        steps = range(1, 101)
        ax.fill_between(steps, losses.min(0), losses.max(0), color=color, alpha=0.25)
        ax.plot(steps, numpy.median(losses, 0), color=color, label=name)
        ax.text(x, y, name, ha=side, color=color, weight="bold")
    for height, text, above in (
        (math.log(10), "guessing a letter", 0.3),
        (bag, "which letters, no count kept", 0.3),
        (floor, "best without the order", -0.05),
    ):
        ax.axhline(height, color=COLOURS["muted"], linewidth=1)
        ax.text(100, height + above, text, ha="right", va="top", color=COLOURS["muted"])
    ax.set(xlim=(0, 101), ylim=(0, 3.7), xlabel="training step", ylabel="loss (nats)")
    return show(
        figure,
        title="First the model learns which letters, then in which order",
        caption="Median and range of three recorded seeds each.",
    )


def check_orders(counts: Tensor, floor: float, rows: Rows) -> None:
    """Check what knowing letters without their order allows: ``counts`` (b, v)."""
    bag = bag_floor(counts)
    unplaced = grouped(rows, "name", "layers")["no positions", 1]
    ends = [row["final_loss"] for row in unplaced]
    assert floor - 0.03 < min(ends) <= max(ends) < bag - 0.2
    print(
        f"computed: knowing the letters but not their order allows {bag:.2f} nats, or "
        f"{floor:.2f} if you keep count; recorded without positions: "
        + ", ".join(f"{end:.2f}" for end in ends)
    )


# ---- what it has learned -------------------------------------------------------------

LOOKS = (0, 5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 100, 125, 150, 200, 250)


def check_generate(
    generate: Callable[..., list[int]], models: Sequence[Transformer], source: Tensor
) -> None:
    """Prove that a loop writes of sources (b, 10) what the module does, and ends so."""
    given = {"start": COPY_START, "max_new_tokens": 9}
    for trained, end in product(models, (LETTERS.index("c"), None)):
        exactly = deepcopy(trained).double()  # so that no two logits tie
        written = greedy_decode(exactly, source, end=end, **given)
        loops = [generate(exactly, row[None], 9, end=end) for row in source]
        width = max(map(len, loops))
        padded = torch.tensor([row + [0] * (width - len(row)) for row in loops])
        assert torch.equal(written.cpu(), padded), f"the loop writes {padded}"
    claim = "the module writes what our loop writes, early ends too"
    check_close(claim, written, padded)


def models_table(shares: Mapping[str, Sequence[float]], copies: Mapping) -> Html:
    """Show what each model reaches: shares of right symbols, the loss, copies."""
    return show_table(
        ("model", "loss", "right when given", "right alone", "exact"),
        [
            (name, f"{loss:.4f}", f"{given:.1%}", f"{alone:.1%}", copies[name])
            for name, (given, alone, loss) in shares.items()
        ],
        caption="A thousand new sequences. Given: correct symbols under teacher "
        "forcing. Alone: correct symbols when it generates. Exact: whole sequences.",
    )


LOOKS = (0, 5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 100, 125, 150, 200, 250)


def keep_looks(
    model: Transformer, watched: Tensor, source: Tensor, target: Tensor
) -> tuple[Callable[[int], None], dict[int, Any], dict[int, list[float]]]:
    """Watch a model that learns to copy.

    Args:
        watched: (1, n) a sequence.
        source, target: (b, n) others.

    Returns:
        What to call with the number of each step; and what it has kept, by step: for
        the sequence, where the cross-attention looked, what was written and the loss
        on the others; and of the others, which share of the answers are letters of
        the target, and which are right.
    """
    seen, stages = {}, {}
    device = next(model.parameters()).device
    watched, source, target = (x.to(device) for x in (watched, source, target))
    wanted = target[:, 1:]

    @torch.no_grad()
    def look(step: int) -> None:
        if step not in LOOKS:
            return
        found = greedy_decode(model, watched, start=1, max_new_tokens=9)
        begun = torch.cat([watched[:, :1], found[:, :-1]], dim=1)
        model.eval()
        with record_attention(model) as maps:
            model(watched, begun)
        weights = maps[CROSS][0][0].cpu()  # (h, 9, 10)
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.mT, wanted).item()
        seen[step] = (weights, found[0].tolist(), loss)
        answers = logits.argmax(dim=-1)
        known = (answers[:, :, None] == wanted[:, None]).any(dim=-1)
        stages[step] = [x.float().mean().item() for x in (known, answers == wanted)]

    return look, seen, stages


def attention_explorer(
    seen: Mapping[int, tuple[Tensor, list[int], float]], source: Sequence, floor: float
) -> Html:
    """Show cross-attention during training: ``seen`` holds maps, symbols, loss."""
    steps, wanted = [*seen], source[1:]

    def state(step: int) -> tuple[dict[str, Any], dict[str, Any]]:
        maps, found, loss = seen[step]
        right = sum(i == j for i, j in zip(found, wanted, strict=True))
        spots = maps.diagonal(offset=1, dim1=1, dim2=2).mean(dim=1).tolist()
        return {"step": step}, {"spots": spots, "right": right, "loss": loss}

    return explorer(
        static("ch08/copy_attention.js"),
        {
            "steps": steps,
            "source": letters(source),
            "written": [letters(seen[step][1]) for step in steps],
            "losses": [seen[step][2] for step in steps],
            "maps": [seen[s][0].mul(1e4).round().div(1e4).tolist() for s in steps],
            "levels": [["guessing a letter", math.log(10)], ["no order", floor]],
        },
        [Slider("step", "training steps", steps, steps[-1])],
        label="Cross-attention while the copy task is learned",
        checks=[state(step) for step in steps],
        question="Go back to step 0. When does the loss pass *no order*, and "
        "what do the heads do by then?",
        caption="A row for each symbol written; ✗: a wrong one. Framed: the position "
        "of the symbol to be written; beside each head, its share of weight there.",
    )


def rounded(model: Transformer) -> tuple[dict[str, Any], Transformer]:
    """Return a model's weights packed, and the model that the browser makes of them."""
    packed = _rounded(model.state_dict())
    copy = type(model)(model.config).eval()
    copy.load_state_dict(_weights(packed))
    return packed, copy


ALONE, FORCED = "its own output", "the target (teacher forcing)"
BACKWARDS = "the target backwards"


@torch.no_grad()
def copied(model: Transformer, text: str, first: str, given: str) -> dict[str, Any]:
    """Return what the browser must show of a model that copies ``text``."""
    ids = [COPY_START, *map(LETTERS.index, text)]
    source, size = torch.tensor([ids]), len(text)
    wanted = ids[:0:-1] if given == BACKWARDS else ids[1:]
    begun = torch.tensor([[LETTERS.index(first), *wanted[:-1]]])
    if given == ALONE:
        begun = begun[:, :1]
        start = int(begun)
        written = greedy_decode(model, source, start=start, max_new_tokens=size)
        begun = torch.cat([begun, written[:, :-1]], dim=1)
    rows, chances = [], []
    for i in range(size):
        with record_attention(model) as maps:
            logits = model(source, begun[:, : i + 1] if given == ALONE else begun)
        rows.append(maps[CROSS][0][0].mean(dim=0)[i])
        chances.append(logits[0, i].softmax(dim=-1))
    found = torch.stack(chances).argmax(dim=-1)
    return {
        "output": letters(found.tolist()),
        "right": int((found == source[0, 1:]).sum()),
        "first": rows[0].tolist(),
        "last": rows[-1].tolist(),
        "surest": torch.stack(chances).amax(dim=-1).min().item(),
    }


SAMPLES = ["bigfachej", "aaaaaaaaa", "jihgfedcb", "face", "abcdefghijabcde"]


def copier(models: Mapping[str, tuple[dict[str, Any], Transformer]]) -> Html:
    """Show a model and its twin at work; ``models`` holds what ``rounded`` returned."""
    main, twin = models
    tried = [(text, "a", main, ALONE) for text in SAMPLES]
    tried += [("bigfachej", "·", main, ALONE), ("bigfachej", "j", main, ALONE)]
    tried += [("g", "a", main, ALONE), ("bigfachej", "a", main, FORCED)]
    tried += [("bigfachej", "a", twin, ALONE), ("face", "a", twin, ALONE)]
    tried += [("bigfachej", "a", twin, FORCED), ("face", "j", twin, FORCED)]
    tried += [("bigfachej", "a", name, BACKWARDS) for name in models]
    checks = []
    for text, first, name, given in tried:
        state = {"letters": text, "first": first, "model": name, "given": given}
        checks.append((state, copied(models[name][1], text, first, given)))
    checks.append(({**checks[3][0], "letters": " Fa CE"}, checks[3][1]))
    starts = ["a", *LETTERS[:11].replace("a", "")]
    data = {"alone": ALONE, "backwards": BACKWARDS, "twin": twin, "pad": 0}
    data |= {"letters": LETTERS[:11], "start": COPY_START, "heads": COPY["heads"]}
    return explorer(
        static("ch08/copier.js"),
        data | {"weights": {name: packed for name, (packed, _) in models.items()}},
        [
            frames.Text(
                "letters", "up to 15 letters, a to j", SAMPLES[0], SAMPLES, most=15
            ),
            Choice("model", "model", [main, twin]),
            Choice("given", "the decoder is given", [ALONE, FORCED, BACKWARDS]),
            Choice("first", "start symbol", starts),
        ],
        checks=checks,
        label="The trained model copies what you type",
        question="Which sequences does it copy, and where do the mistakes begin?",
        caption="An a is put in front of your letters, as in training. The weights are "
        "the mean of the four heads. Framed: the position of the symbol to be written.",
    )


# ---- what each part is worth, and pitfalls -------------------------------------------


PARTS = {
    "as it is": "full model",
    "no residual": "no residual connections",
    "no norm": "no norms",
    "no network": "no feed-forward networks",
    "one head": "one head",
    "no positions": "no positions",
    "no causal mask": "no causal mask",
}


def parts_worth(rows: Rows) -> Html:
    """Show the exact copies of recorded models without a part, at two depths."""
    copies = copies_of(rows, "name", "layers")
    return show_table(
        ("", "one layer", "four layers"),
        [
            (text, *(dots(copies[name, layers]) for layers in (1, 4)))
            for name, text in PARTS.items()
        ],
        caption="Exact copies of 1000, three recorded seeds each. Four layers train "
        "with smaller batches and more steps.",
    )


def starts(model: Transformer, rows: Rows, source: Tensor) -> Html:
    """Plot a model's exact copies of sources (b, s) by the symbol it starts from."""
    order, wanted = (COPY_START, 0, *range(2, 11)), source[:, 1:].cpu()
    shares = {}
    for start in order:
        size = {"start": start, "max_new_tokens": wanted.shape[1]}
        found = greedy_decode(model, source.cpu(), **size)
        right = (found == wanted).all(dim=1)
        shares[LETTERS[start] if start else "pad"] = 100 * right.float().mean().item()
    axes = {"xlabel": "start symbol", "ylabel": "exact copies, %", "ylim": (0, 105)}
    ax = plot_bars({"this model": shares}, colors={"this model": (THIS, 0.4)}, **axes)
    for row in rows:
        others = [100 * row["start"][str(start)]["exact"] for start in order]
        ax.plot(range(len(order)), others, "o", mfc="none", color=COLOURS["ink"])
    return show(
        ax.figure,
        title="Trained to start from a, it copies less from anything else",
        caption="Bars: this model, a thousand sequences. Circles: three recorded runs.",
    )


# ---- 08b: longer than training -------------------------------------------------------

Ways = Mapping[str, Rows]


def lengths_of(runs: Mapping[str, Any]) -> dict[str, list]:
    """Return, for each way to train, what each seed reaches by length."""
    ways = {("only 10",): runs["main"]} | grouped(runs["lengths"], "name")
    return {name: [row["lengths"] for row in rows] for (name,), rows in ways.items()}


def lengths(ways: Ways) -> Html:
    """Plot the share of sequences copied by length, for each way to train."""
    spans = [int(n) for n in ways["only 10"][0]]
    figure, ax = plt.subplots(figsize=(8.6, 3.8))
    ax.axvspan(2, 10, color=COLOURS["rule"], alpha=0.5)
    ax.text(9.9, 0.06, "lengths seen in training", ha="right")
    for name, rows in ways.items():
        shares = numpy.array([[row[str(n)]["exact"] for n in spans] for row in rows])
        color = THIS if "shifted" in name else OTHER
        ax.fill_between(spans, shares.min(0), shares.max(0), color=color, alpha=0.2)
        ax.plot(spans, numpy.median(shares, 0), "o-", color=color, label=name)
    ax.text(13.2, 0.84, "with shifted positions", color=THIS)
    ax.text(12.3, 0.3, "three other ways", color=OTHER)
    ax.set(xlabel="length of the sequence", ylabel="share copied exactly")
    ax.set(xlim=(2, 16.2), ylim=(-0.03, 1.05))
    return show(
        figure,
        title="With shifted positions, a model copies lengths it has never seen",
        caption="Medians and range of three recorded seeds. None of the models was "
        "trained on a sequence of more than ten symbols.",
    )


def lengths_table(ways: Ways) -> Html:
    """Show the shares copied by length, lowest and highest seed."""
    rows = []
    for name, seeds in ways.items():
        cells = [[f"{100 * row[n]['exact']:.0f}" for row in seeds] for n in seeds[0]]
        ends = [sorted({*cell}, key=int) for cell in cells]
        rows.append((name, *("–".join(dict.fromkeys((e[0], e[-1]))) for e in ends)))
    caption = "Sequences copied exactly, in percent, by length: three seeds."
    return show_table(("training", *ways["only 10"][0]), rows, caption)


def ends_table(rows: Rows) -> Html:
    """Show after how many symbols models end a sequence of fifteen."""
    table = []
    for row in (row for row in rows if "ends" in row):
        often = [*row["ends"].items()][:3]
        said = (f"{'never' if n == 'None' else n} ({times})" for n, times in often)
        table.append((row["name"], row["seed"], ", ".join(said)))
    return show_table(
        ("training", "seed", "symbols before the end (sequences of 1000)"),
        table,
        caption="Where models end a sequence of fifteen symbols.",
    )


# ---- 08c: depth, rate and steps ------------------------------------------------------


def depths(rows: Rows) -> Html:
    """Plot exact copies by depth, for both orders of the norm, at two rates."""
    table, said = copies_of(rows, "rate", "norm", "layers"), []
    figure, axes = plt.subplots(1, 2, sharey=True)
    for ax, rate in zip(axes, (1e-3, 5e-3), strict=True):
        for norm, color, shift in (("post", OTHER, 0.1), ("pre", THIS, -0.1)):
            for i, layers in enumerate((1, 2, 4)):
                copies = table[rate, norm, layers]
                ax.plot([i + shift] * len(copies), copies, "o", color=color, ms=7)
                said.append(f"rate {rate:g}, {norm}-norm, {layers}: {dots(copies)}")
            y, place = (940, "top") if norm == "pre" else (min(copies), "center")
            ax.text(1.85, y, f"{norm}-norm", color=color, ha="right", va=place)
        ax.set_xticks(range(3), ["1", "2", "4"])
        ax.set(xlabel="layers", title=f"highest rate {rate:g}", xlim=(-0.4, 2.4))
        ax.set(ylabel="exact copies of 1000", ylim=(-20, 1030))
    return show(
        figure,
        title="With four layers post-norm falls behind, most at the high rate",
        alt="Exact copies of 1000 by rate, order and number of layers, three seeds "
        f"each. {'; '.join(said)}.",
        caption="400 steps, batches of 32: a mark for each of three recorded seeds.",
    )


def longer_table(deep: Mapping[str, Any]) -> Html:
    """Show post-norm models of four layers with twice the steps."""
    once = copies_of(deep["rows"], "rate", "norm", "layers")
    more = copies_of(deep["longer"], "rate").items()
    return show_table(
        ("highest rate", "400 steps", "800 steps"),
        [(f"{r:g}", dots(once[r, "post", 4]), dots(each)) for (r,), each in more],
        caption="Post-norm, four layers: exact copies of 1000, three seeds.",
    )


def recipes_table(rows: Rows) -> Html:
    """Show models that were trained with other recipes."""
    copies = copies_of(rows, "name", "layers")
    names = {
        "as it is": "as it is",
        "no warm-up": "no warm-up",
        "decay as 1/√n": "1/√step in place of the fall to zero",
        "whole recipe": "chapter 7's, smoothing and clipping too",
    }
    return show_table(
        ("recipe", "one layer", "four layers"),
        [
            (text, dots(copies[name, 1]), dots(copies.get((name, 4), [])) or "–")
            for name, text in names.items()
        ],
        caption="Exact copies of 1000, three seeds.",
    )


def setting_table(groups: Mapping[tuple, Rows], *names: str, caption: str) -> Html:
    """Show runs of the published setting, three seeds each."""
    return show_table(
        (*names, "loss", "symbols, right prefix", "exact of 1000"),
        [
            (
                *key,
                dots((row["test_loss"] for row in rows), ".2f"),
                dots((row["symbols_told"] for row in rows), ".0%"),
                dots(row["exact"] for row in rows),
            )
            for key, rows in groups.items()
        ],
        caption=caption,
    )


def published_table(rows: Rows) -> Html:
    """Show the published setting, by its number of steps."""
    groups = grouped(sorted(rows, key=lambda row: row["steps"]), "steps")
    # exact: 1.39 = log(4)
    caption = "The published setting, and what comes of going on: three seeds. "
    return setting_table(groups, "steps", caption=caption + "Guessing: ln 4 = 1.39.")


def warmups_table(runs: Rows, peaks: Rows) -> Html:
    """Show 200 steps of the published setting with shorter warm-ups."""
    groups: dict[tuple, list] = {}
    for row in (*runs, *peaks):
        peak = row.get("peak", round((8 * row["warmup"]) ** -0.5, 3))
        groups.setdefault((f"{row['warmup']} steps", f"{peak:g}"), []).append(row)
    caption = "200 steps with a shorter warm-up, three seeds each."
    return setting_table(groups, "warm-up", "highest rate", caption=caption)


def rate_curve(rate_at: Callable[[int], float], steps: int, warmup: int) -> plt.Figure:
    """Plot the learning rate up to step 800, and what of it ``steps`` steps see."""
    figure, ax = plt.subplots(figsize=(8.2, 2.8))
    every = [*range(1, 801, 6)]
    rates = [rate_at(step) for step in every]
    ax.plot(every, rates, color=OTHER, linewidth=1.2)
    used = sum(step <= steps for step in every)
    ax.plot(every[:used], rates[:used], color=THIS, linewidth=3)
    ax.axvline(steps, color=COLOURS["muted"], linewidth=1)
    before = "before" if steps < warmup else "after"
    ax.text(790, max(rates), f"ends {before} the peak", ha="right", va="top")
    ax.set(xlabel="training step", ylabel="learning rate", xlim=(0, 800), ylim=0)
    return figure


def spikes(runs: Mapping[str, Any]) -> Html:
    """Plot all losses of chapter 08's model and of its twin, logarithmically."""
    figure, axes = plt.subplots(1, 2, sharey=True)
    twins = grouped(runs["ablations"], "name")["no causal mask",]
    sides = ("with the mask", runs["main"], THIS), ("no causal mask", twins, OTHER)
    for ax, (name, rows, color) in zip(axes, sides, strict=True):
        for row, opacity in zip(rows, (1, 0.65, 0.35), strict=True):
            steps = range(1, len(row["losses"]) + 1)
            ax.plot(steps, row["losses"], color=color, alpha=opacity, lw=1.3)
        ax.set(yscale="log", xlabel="training step", title=name, ylabel="loss (nats)")
    return show(
        figure,
        title="A loss can spike at a high rate, and come down again",
        alt="Loss against the step on a logarithmic axis, a line for each of three "
        "seeds, with the causal mask and without. Every loss ends below a thousandth, "
        "and on each side one seed spikes to about 1 near step 150.",
        caption="The models of chapter 8, three recorded seeds each.",
    )


def step_table(speed: Mapping[str, Any]) -> Html:
    """Show what a training step costs, beside ``nn.Transformer``'s."""
    seconds = speed["cpu_seconds"]
    rows = [("ours", f"{seconds['ours']:.2f}", "1", "–")]
    for name, ratio in speed["ratios"].items():
        cells = f"{seconds[name]:.2f}", f"{ratio['ratio']:.2f}"
        spread = "{:.2f} to {:.2f}".format(*ratio["quartiles"])
        rows.append((f"nn.Transformer, {name}-norm", *cells, spread))
    sizes = ", ".join(f"{key} {value}" for key, value in speed["config"].items())
    header = "model", "seconds per step", "times ours", "quartiles"
    return show_table(header, rows, f"{sizes}; the first two have the same loss.")
