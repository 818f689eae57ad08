"""Chapter 07, training: its drawings, explorers, and its longest proofs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from math import cos, log, pi
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR

from annotated.batches import Vocabulary, date_pairs, make_batch, token_batches
from annotated.batches import batches as sorted_batches
from annotated.page.frames import Choice, Html, Slider, explorer, static
from annotated.page.notebook import check_close, check_same, show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import OTHER, THIS, plot_lines
from annotated.page.records import grouped
from annotated.page.svg import COLOURS
from annotated.recipes.common import paper_adam
from annotated.recipes.date_transformer import (
    FEW,
    date_batches,
    date_model,
    dates,
    how_well,
    label_loss,
)
from annotated.recipes.rates import CLIMB, RATE_SHAPES
from annotated.training import LabelSmoothing, fit

# ---- the sweep of rates, and the first steps -----------------------------------------

SCHEDULES = {
    "from the first step": "constant",
    "after a warm-up": "climbing, then constant",
    "after a warm-up, then falling": "climbing, then falling",
}
SMALL_STEPS = {"number": (0, 1, 2, 5, 10, 20), "size": (0.00025, 0.001, 0.003)}
ALIKE = 0.01  # outputs that differ less than this are called collapsed
NEAR = 0.1  # so near to the symbol frequencies a loss is called on their line


@cache
def floors() -> tuple[float, float]:
    """Return the loss that knows how often symbols come, overall and by position."""

    def entropy(symbols: Sequence[str]) -> float:
        share = torch.tensor([float(n) for n in Counter(symbols).values()])
        share /= share.sum()
        return -(share * share.log()).sum().item()

    answers = [[*answer, "end"] for _, answer in dates().pairs]
    columns = [entropy(column) for column in zip(*answers, strict=True)]
    overall = entropy([symbol for answer in answers for symbol in answer])
    return overall, sum(columns) / len(columns)


def ends(sweep: dict, norm: str = "post") -> dict[tuple[str, float], list[float]]:
    """Return the last losses of a sweep, by the rate's shape and height."""
    rows = (row for row in sweep["rows"] if row.get("norm", norm) == norm)
    runs = grouped(rows, "shape", "height").items()
    return {run: [row["end"] for row in seeds] for run, seeds in runs}


def cliff(sweep: dict) -> Html:
    """Show where runs end, by their schedule and its peak rate."""
    last, schedules, checks = ends(sweep), [], []
    rates = sorted({height for _, height in last})
    for name, shape in SCHEDULES.items():
        share = [RATE_SHAPES[shape](n or 1e-3) for n in range(0, 301, 5)]
        found = [last[shape, rate] for rate in rates]
        middle = [*map(median, found)]
        schedules.append(
            {"name": name, "shape": share, "ends": found, "median": middle}
        )
        for rate, seeds in zip(rates, found, strict=True):
            seen = {"median": median(seeds), "least": min(seeds), "most": max(seeds)}
            checks.append(({"schedule": name, "rate": rate}, seen))
    data = {"rates": rates, "schedules": schedules, "every": 5, "steps": 300}
    return explorer(
        static("ch07/rate_cliff.js"),
        data | {"floor": floors()[0]},
        [
            Slider("rate", "peak learning rate", rates, rates[0]),
            Choice("schedule", "reached", list(SCHEDULES)),
        ],
        label="The cliff",
        checks=checks,
        question="Slide the rate up. Which schedule survives the highest rate?",
        caption="The model of chapter 6 reads dates. Blue: your choice. Dots: three "
        "seeds, the mean training loss of the last twenty steps; lines: medians.",
    )


def first_steps(grid: dict) -> Html:
    """Show the first sixty steps of runs, by their number of small ones."""
    names = ("symbol frequencies alone", "position alone")
    runs = grouped(grid["rows"], *SMALL_STEPS)
    drawn = {
        f"{number} {size:g}" if number else "0": [
            {part: row[part] for part in ("losses", "differ")} for row in rows
        ]
        for (number, size), rows in runs.items()
    }
    data = {"runs": drawn, "lines": [*zip(floors(), names, strict=True)]}
    data |= {"every": grid["every"], "steps": grid["steps"]}
    data |= {"alike": ALIKE, "near": NEAR}
    checks = []
    for (number, size), rows in runs.items():
        end = sum(row["losses"][-1] for row in rows) / len(rows)
        seen = {"alike": alike(rows), "flat": on_line(rows), "mean": end}
        checks.append(({"number": number, "size": size}, seen))
    return explorer(
        static("ch07/first_steps.js"),
        data,
        [
            Slider("number", "small steps", SMALL_STEPS["number"], 5),
            Slider("size", "their rate", SMALL_STEPS["size"], 0.001),
        ],
        label="The first steps",
        checks=checks,
        question="Which small steps at the start keep all three runs from collapsing?",
        caption="A line for each of three seeds; a loss is the mean of five steps. "
        # given: 0.01
        "Below: the standard deviation of the decoder's outputs, as a share of their "
        "size. A run has collapsed if it is under 0.01.",
    )


def alike(rows: Sequence[Mapping[str, Any]], step: int = -1) -> int:
    """Return how many runs have collapsed: their outputs hardly differ."""
    return sum(row["differ"][step] < ALIKE for row in rows)


def on_line(rows: Sequence[Mapping[str, Any]]) -> int:
    """Return how many runs have learned no more than the symbol frequencies."""
    return sum(row["losses"][-1] > floors()[0] - NEAR for row in rows)


def schedules(sweep: dict) -> Html:
    """Show where schedules end at 0.01, and each at its best rate."""
    found = ends(sweep)

    def said(seeds: Sequence[float]) -> str:
        return f"{median(seeds):.2f} ({min(seeds):.2f}–{max(seeds):.2f})"

    def best(shape: str) -> str:
        tried = {rate: median(e) for (s, rate), e in found.items() if s == shape}
        if len(tried) == 1:
            return "(run at 0.01 alone)"
        rate = min(tried, key=tried.__getitem__)
        return f"{said(found[shape, rate])}, at {rate:g}"

    names = {
        "constant": "constant",
        "falling": "falling, without a warm-up",
        "climbing, then constant": "warm-up, then constant",
        "climbing, then falling": "warm-up, then falling",
    }
    rows = [
        (name, said(found[shape, 1e-2]), best(shape)) for shape, name in names.items()
    ]
    return show_table(
        ["schedule", "at 0.01", "at its best rate"],
        rows,
        caption="Loss after 300 steps: the median of three seeds, and their range.",
    )


# ---- the schedule --------------------------------------------------------------------


def schedule_shapes(rate: Callable[[int, int, int], float]) -> Html:
    """Plot the paper's schedule, a longer warm-up and a cosine of the same peak."""
    last, warm_up = 30_000, 4000
    peak, steps = rate(warm_up, 512, warm_up), [1, *range(100, last + 1, 100)]

    def cosine(n: int) -> float:
        falls = max(0, n - warm_up) / (last - warm_up)
        return peak * min(n / warm_up, (1 + cos(pi * falls)) / 2)

    lines = {
        "a cosine": {n: 1000 * cosine(n) for n in steps},
        "warm-up of 8000": {n: 1000 * rate(n, 512, 8000) for n in steps},
        "the paper's": {n: 1000 * rate(n, 512, warm_up) for n in steps},
    }
    ax = plot_lines(
        lines,
        plt.subplots(figsize=(8.6, 3))[1],
        colors={"a cosine": OTHER, "warm-up of 8000": OTHER},
        xlabel="training step",
        ylabel="learning rate (thousandths)",
        xlim=(0, last),
        ylim=(0, 0.8),
    )
    ax.lines[0].set(linestyle="--")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    return show(
        ax.figure,
        title="A longer warm-up peaks later and lower; the tails are the same",
        caption="Width 512. The paper's warm-up takes 4000 steps. The cosine has the "
        "same peak, and has to know that step 30,000 is the last.",
    )


def check_schedule(noam_rate: Callable[..., float], optimizer: Any) -> None:
    """Prove what peaks are equal, what the sweep used, and where LambdaLR begins."""
    for n in (1, 400, 4000, 30_000):
        same = noam_rate(n, 256, 4000, 0.5**0.5)
        assert abs(same / noam_rate(n, 512, 4000) - 1) < 1e-12
    assert abs(noam_rate(8000, 256, 8000) / noam_rate(4000, 512, 4000) - 1) < 1e-12
    shape = RATE_SHAPES["climbing, then falling"]
    for n in range(1, 301):
        assert abs(shape(n) - noam_rate(n, 64, CLIMB, (64 * CLIMB) ** 0.5)) < 1e-9
    late = [noam_rate(max(done, 1), 512, 4000) for done in range(5)]
    right = [noam_rate(done + 1, 512, 4000) for done in range(5)]
    assert late[0] == late[1] and late[1:] == right[:-1]
    with suppress(ZeroDivisionError):  # it counts finished steps, from 0
        LambdaLR(optimizer, lambda step: noam_rate(step, 512, 4000))
        raise AssertionError("noam_rate has a value at step 0")
    print("✓ equal peaks; the figure at the top has Noam with another factor")


# ---- one step ------------------------------------------------------------------------


def check_shift() -> None:
    """Prove that what is a label at one position is read at the next."""
    three = make_batch(dates().pairs[:3], dates().source, dates().target)
    real = three.labels[:, :-1] != Vocabulary.end
    assert three.target[:, 1:][real].equal(three.labels[:, :-1][real])
    print("✓ what is a label at one position is read at the next")


def losses_and_norms(losses: Sequence[float], norms: Sequence[float]) -> Html:
    """Plot the loss and the gradient's norm, step by step."""
    figure, (ax, below) = plt.subplots(1, 2, figsize=(8.6, 2.8))
    axes = {"xlabel": "training step", "ylim": (0, None)}
    plot_lines({"loss": dict(enumerate(losses, 1))}, ax, ylabel="loss (nats)", **axes)
    norm = {"norm": dict(enumerate(norms, 1))}
    plot_lines(norm, below, ylabel="norm of the gradient", **axes)
    for one, level, name, side in (
        (ax, log(14), "ln 14", "bottom"),
        (below, 1, "clipped to 1", "top"),
    ):
        one.axhline(level, color=OTHER, lw=1)
        one.text(len(losses), level, name, color=OTHER, ha="right", va=side)
    return show(
        figure,
        title="The loss falls, and nearly every gradient is shortened",
        caption="Left: the loss of each batch. Right: the gradient's norm before "
        "clipping (7.7).",
    )


# ---- batches -------------------------------------------------------------------------

LENGTHS, MOST = [9, 3, 2, 5, 3, 6], 12


def by_tokens(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Group ``lengths``, sorted, so that no rectangle exceeds ``most`` positions."""
    groups: list[list[int]] = [[]]
    for length in sorted(lengths):
        # the newcomer is the longest so far, so the rectangle is as wide as it
        if (len(groups[-1]) + 1) * length > most:
            groups.append([])
        groups[-1].append(length)
    return groups


def packing() -> Html:
    """Draw six sequences in batches of three, and in batches by tokens."""
    ways = {
        "three at a time, as they come": [LENGTHS[:3], LENGTHS[3:]],
        f"by tokens, at most {MOST} positions": by_tokens(LENGTHS, MOST),
    }
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 2.9), sharey=True)
    areas = []
    for ax, (name, groups) in zip(axes, ways.items(), strict=True):
        y = 0.0
        for group in groups:
            for length in group:
                hidden = {"left": length, "hatch": "////", "facecolor": "none"}
                rest = max(group) - length
                ax.barh(y, rest, 0.86, **hidden, edgecolor=OTHER, linewidth=0)
                ax.barh(y, length, 0.86, color=THIS)
                y += 1
            y += 0.8
        areas.append(sum(len(group) * max(group) for group in groups))
        ax.set(title=name, yticks=[], xlabel="positions", xlim=(0, 9))
    axes[0].invert_yaxis()
    return show(
        figure,
        title="Sorted and cut by tokens, batches hold hardly any padding",
        alt="Six sequences as bars, padded with hatching to rectangles. Left, three at "
        "a time: two rectangles, a good third of them hatched. Right, by tokens: three "
        "rectangles of 9, 12 and 9 positions, hardly anything hatched.",
        caption=f"Hatched: padding. Left, {areas[0]} positions for {sum(LENGTHS)} "
        f"tokens; right, {areas[1]}.",
    )


def batches_cut(most: int = 2500) -> str:
    """Cut 2000 lines of one to six dates into batches; say how, and check it."""
    lines = date_pairs(2_000, "train", seed=0, dates=(1, 6))
    symbols = [Vocabulary("".join(side)) for side in zip(*lines, strict=True)]
    ways = (
        [make_batch(lines[i : i + 32], *symbols) for i in range(0, len(lines), 32)],
        [*sorted_batches(lines, *symbols, 32, seed=0)],
        [*token_batches(lines, *symbols, most, seed=0)],
    )
    padding, largest = [], []
    for way in ways:
        sides = [side for batch in way for side in (batch.source, batch.labels)]
        empty = sum((side == 0).sum().item() for side in sides)
        padding.append(empty / sum(side.numel() for side in sides))
        largest.append(max(side.numel() for side in sides))
    sizes = [max(len(source), len(answer) + 1) for source, answer in lines]
    cut = [
        (len(batch.source), max(batch.source.shape[1], batch.labels.shape[1]))
        for batch in token_batches(lines, *symbols, most)
    ]
    assert cut == [(len(group), max(group)) for group in by_tokens(sizes, most)]
    widths = [batch.source.shape[1] for batch in ways[2]]
    assert widths != sorted(widths), "the batches aren't shuffled"
    assert largest[2] <= most < largest[1] / 2 and padding[0] > 2 * padding[1]
    return (
        f"Sorting removes most of the padding: of 2000 lines of one to six dates, cut "
        f"32 at a time, {100 * padding[0]:.0f} % is padding as they come and "
        f"{100 * padding[1]:.0f} % sorted. Counting tokens limits the memory: the "
        f"largest batch of 32 sorted lines holds {largest[1]:,} positions; with a "
        f"limit of {most:,}, none holds more than {largest[2]:,}."
    )


def weights_of(labels: Tensor) -> dict[str, Tensor]:
    """Return what each token's loss counts, by tokens and by sentences; 0 is padding"""
    real = labels != 0
    counts = real.sum(dim=1, keepdim=True)
    return {"tokens": real / counts.sum(), "sentences": real / (len(labels) * counts)}


def means(labels: Tensor) -> Html:
    """Show what each token weighs in the mean over tokens, and over sentences."""
    look: dict[str, Any] = {"rows": ["one token", "four tokens"], "digits": 3}
    return chain(
        *(
            Matrix(w, f"mean over {per}", mask=labels != 0, weights=True, **look)
            for per, w in weights_of(labels).items()
        ),
        caption="What each token's loss, and so its gradient, is multiplied by.",
    )


def check_means(labels: Tensor) -> None:
    """Prove that F.cross_entropy is the mean over tokens, with any padding."""
    weights = weights_of(labels)["tokens"]

    def weighed(logits: Tensor) -> Tensor:
        own = logits.log_softmax(-1).gather(-1, labels[..., None])[..., 0]
        return -(weights * own).sum()

    def theirs(logits: Tensor, extra: int = 0) -> Tensor:
        logits = F.pad(logits, (0, 0, 0, extra))
        more = F.pad(labels, (0, extra))
        return F.cross_entropy(logits.transpose(1, 2), more, ignore_index=0)

    logits = torch.randn(*labels.shape, 6)
    check_same("mean over tokens = F.cross_entropy", weighed, theirs, logits)
    assert torch.isclose(theirs(logits, 12), theirs(logits)), "padding counts"


# ---- label smoothing -----------------------------------------------------------------

SYMBOLS = ["pad", "1", "2", "3", "4"]


def targets(labels: Tensor, wanted: Tensor) -> Html:
    """Show one right answer a row, and the same smoothed."""
    rows = [f"label {label}" if label else "padding" for label in labels.tolist()]
    one_hot = F.one_hot(labels, wanted.shape[-1]) * (labels != 0)[:, None]
    return chain(
        Matrix(one_hot, "one right answer", rows, SYMBOLS, weights=True),
        Matrix(wanted, "smoothed, ε = 0.4", rows, SYMBOLS, weights=True),
        caption="Each real row still sums to 1; a padded position has no target.",
    )


def target_by_loops(labels: Tensor, size: int, epsilon: float) -> Tensor:
    """Return the smoothed target of each of ``labels``, row by row; 0 is padding."""
    rows = torch.zeros(len(labels), size, dtype=torch.double)
    for row, right in zip(rows, labels.tolist(), strict=True):
        if right:  # padding does not count
            row[1:] = epsilon / (size - 2)
            row[right] = 1 - epsilon
    return rows


def check_smoothing(smoothing_loss: Callable[..., Tensor]) -> None:
    """Prove that ``smoothing_loss`` is the module's and the divergence, with p̂ − q."""
    size, labels = 7, torch.tensor([3, 1, 5, 0, 0, 6, 2, 2, 4, 1])
    logits = torch.randn(10, size, dtype=torch.double, requires_grad=True)
    real, divergence = labels != 0, nn.KLDivLoss(reduction="sum")
    for epsilon in (0.0, 0.1, 0.4):
        q, module = (
            target_by_loops(labels, size, epsilon),
            LabelSmoothing(size, 0, epsilon),
        )
        assert torch.allclose(module.distribution(labels).double(), q)
        for name, loss in (
            ("LabelSmoothing", lambda x, m=module: m(x, labels)),
            ("KL", lambda x, q=q: divergence(x.log_softmax(-1), q) / real.sum()),
        ):
            claim = f"smoothing_loss = {name}, ε = {epsilon}"
            check_same(claim, lambda x, q=q: smoothing_loss(x, q, real), loss, logits)
    (gradient,) = torch.autograd.grad(module(logits, labels), logits)
    p = logits.softmax(dim=-1) * real[:, None]
    check_close("gradient = (p̂ − q) / N", gradient, (p - q) / real.sum())


def loss_at(confidence: float, size: int, epsilon: float) -> float:
    """Return the loss of a model that gives the right symbol this ``confidence``."""
    p = torch.full((1, 1, size), (1 - confidence) / (size - 2))
    p[..., 0] = 0.0
    p[..., 1] = confidence
    # −30, not −∞: nobody asks for padding, and the product stays finite
    logits = p.double().log().clamp(min=-30)
    return LabelSmoothing(size, 0, epsilon)(logits, torch.tensor([[1]])).item()


def smoothing_explorer() -> Html:
    """Show target, model and the loss between them."""

    def seen(size: int, smoothing: float, confidence: float) -> dict:
        share, own = smoothing / (size - 2), 1 - smoothing
        return {
            "own": own,
            "share": share,
            "loss": loss_at(confidence, size, smoothing),
            "slope": -own / confidence + (1 - own) / (1 - confidence),
            "gap": log(own / share) if share else 0.0,
        }

    tried = [(5, 0.1, 0.9), (3, 0.4, 0.01), (37000, 0.1, 0.9), (10, 0.0, 0.99)]
    tried += [(1000, 0.2, 0.999), (5, 0.4, 0.6), (37000, 0.05, 0.01)]
    names = ("size", "smoothing", "confidence")
    states = [dict(zip(names, values, strict=True)) for values in tried]
    sure = [0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999]
    return explorer(
        static("ch07/label_smoothing.js"),
        {},
        [
            Slider("smoothing", "ε", [i / 20 for i in range(9)], 0.1),
            Slider("size", "symbols v", [3, 5, 10, 100, 1000, 37000], 5),
            Slider("confidence", "model's confidence", sure, 0.7),
        ],
        label="Label smoothing: target and loss",
        checks=[(state, seen(**state)) for state in states],
        # given: 70
        question="At what ε is 70 % confidence too much? With five symbols, and with "
        "37,000?",
        caption="Above: the loss against the model's confidence; both ends of the axis "
        "are stretched. Below: what target and model give to the right symbol.",
    )


def check_lowest() -> None:
    """Prove that the loss is lowest at 1 − ε, and that it has no upper end."""
    grid = torch.linspace(0.001, 0.999, 999)
    for epsilon in (0.0, 0.1, 0.4):
        curve = torch.tensor([loss_at(c, 5, epsilon) for c in grid.tolist()])
        assert abs(grid[curve.argmin()] - min(1 - epsilon, 0.999)) < 1e-3
    rise = [loss_at(1 - 10.0**-k, 5, 0.1) for k in (2, 4, 6)]
    for one, later in pairwise(rise):  # a factor 100: ε ln 100
        assert abs(later - one - 0.1 * log(100)) < 0.01
    print("✓ lowest at a confidence of 1 − ε; grows without bound towards 1")


def spikes_said(moves: Mapping[str, Sequence[float]]) -> str:
    """Say how far Adam moves at a spike, by its β₂ and with clipping."""
    long, short, calm = (several[2000] for several in moves.values())
    return (
        "Let a gradient of 100 follow two thousand of 1, each a move of one learning "
        f"rate. With PyTorch's β₂ = 0.999 the spike moves the parameter {long:.1f} "
        f"rates. With the paper's 0.98 the spike is tamed, {short:.1f}, and only the "
        "steps after it are too short. With 0.999, clipped at 5, the spike moves "
        f"{calm:.1f} rates."
    )


def check_spikes(moves: Mapping[str, Sequence[float]]) -> None:
    """Hold the page to what it says of spikes."""
    long, short, calm = moves.values()
    assert 2.5 < long[2000] < 3.5 and short[2000] < 1.1 and max(calm[1950:]) < 1.45
    assert sum(move < 0.6 for move in long[2050:]) > 1000
    assert 200 < sum(move < 0.9 for move in short[2000:]) < 400
    assert min(calm[1950:]) > 0.9
    print(
        f"✓ the spike's move: {long[2000]:.1f} × the rate with 0.999, "
        f"{short[2000]:.1f} × with 0.98, {calm[2000]:.1f} × clipped at 5"
    )


# ---- dropout -------------------------------------------------------------------------


def memorised() -> list[tuple[int, float, float]]:
    """Train on a thousand dates, without dropout; return step, loss on them, on new."""
    model, seen = date_model(0, "pre"), dates("train", FEW["pairs"])
    shape = RATE_SHAPES["climbing, then falling"]
    optimizer, schedule = paper_adam(model, lambda n: FEW["rate"] * shape(n))
    sides, rows = (seen._replace(pairs=seen.pairs[:250]), dates("test", 250)), []

    def watch(step: int) -> None:
        if step % 40 == 0:
            rows.append((step, *(how_well(model, side)["loss"] for side in sides)))

    batches = date_batches(0, 320, seen)
    fit(
        *(model, label_loss, batches, optimizer),
        schedule=schedule,
        clip=FEW["clip"],
        on_step=watch,
    )
    return rows


def seen_and_new(rows: Sequence[tuple[int, float, float]]) -> Html:
    """Plot the loss on dates that a run sees again and again, and on new ones."""
    ax = plot_lines(
        {
            "dates it has seen": {step: seen for step, seen, _ in rows},
            "new dates": {step: new for step, _, new in rows},
        },
        plt.subplots(figsize=(8.6, 2.8))[1],
        colors={"dates it has seen": OTHER},
        xlabel="training step",
        ylabel="loss (nats)",
        ylim=(0, 1.5),
        xlim=(40, 320),
    )
    return show(
        ax.figure,
        title="Only the dates that it has seen go on getting better",
        # exact: 20 = 320 / 16
        caption="Trained here, one seed, without dropout: each of 1000 dates 20 times.",
    )


TRIED = {
    (0.0, 0.0): "neither",
    (0.1, 0.0): "dropout 0.1",
    (0.3, 0.0): "dropout 0.3",
    (0.0, 0.1): "ε = 0.1",
    (0.1, 0.1): "both, 0.1 each",
}


def few_dates_ends(few: dict) -> Html:
    """Plot losses, and how far confidence is from right, by dropout and smoothing."""
    figure, (loss, gap) = plt.subplots(1, 2, figsize=(8.6, 2.9), sharey=True)
    said = []
    for y, (setting, named) in enumerate(TRIED.items()):
        seen, new = (ending(few, setting, part, "loss") for part in ("seen", "unseen"))
        right, sure = (
            [100 * share for share in ending(few, setting, "unseen", name)]
            for name in ("right", "confidence")
        )
        over = [c - r for c, r in zip(sure, right, strict=True)]
        for ax, values, marker, colour in (
            (loss, seen, "^", OTHER),
            (loss, new, "o", THIS),
            (gap, over, "o", THIS),
        ):
            ax.plot(values, [y] * 3, marker, color=colour, ms=7, alpha=0.8)
        gap.text(17, y - 0.08, f"{median(right):.0f} % right", ha="right")
        said.append(
            f"{named}: loss {median(seen):.2f} on seen dates, {median(new):.2f} on new "
            f"ones, {median(right):.0f} % right, confidence {median(over):+.0f} points"
        )
        if y == 0:
            for values, name, colour in ((seen, "seen", OTHER), (new, "new", THIS)):
                where = {"textcoords": "offset points", "color": colour}
                loss.annotate(name, (max(values), y), (0, 9), ha="left", **where)
    gap.axvline(0, color=COLOURS["ink"], lw=1)
    loss.set(title="loss (nats)", xlim=(-0.02, 0.62))
    gap.set(title="confidence − accuracy (points)", xlim=(-8, 18), xticks=(-5, 0, 5))
    for ax in (loss, gap):
        ax.set(yticks=range(len(TRIED)), ylim=(4.6, -0.7))
        ax.set_yticklabels(TRIED.values())
    return show(
        figure,
        title="A little dropout helps; smoothing makes the model less sure",
        alt=f"Five settings, medians of three seeds. {'; '.join(said)}.",
        caption="Left: measured without smoothing. Right: for symbols of new dates, "
        "given the right ones before them, in percentage points. Right of 0: "
        "overconfident.",
    )


def ending(few: dict, at: tuple[float, float], part: str, name: str) -> list[float]:
    """Return a recorded quantity at a dropout and a smoothing, for each seed."""
    rows = few["rows"]
    return [r[part][name] for r in rows if (r["dropout"], r["smoothing"]) == at]


# ---- clipping ------------------------------------------------------------------------


def check_clipping(clip_by_hand: Callable[..., list[Tensor]]) -> None:
    """Prove that ``clip_by_hand`` is PyTorch's, and that it keeps the direction."""
    parts = [torch.randn(4, 5) * 3, torch.randn(5) * 0.1]
    for most in (1.0, 1e3):
        held = [nn.Parameter(torch.zeros_like(g)) for g in parts]
        for parameter, g in zip(held, parts, strict=True):
            parameter.grad = g.clone()
        nn.utils.clip_grad_norm_(held, most)
        theirs = [parameter.grad for parameter in held]
        check_close(f"clip_grad_norm_ at {most:g}", clip_by_hand(parts, most), theirs)
    flat, said = torch.cat([g.flatten() for g in parts]), []
    for name, pieces in {
        "the whole": clip_by_hand(parts, 1.0),
        "each tensor": [clip_by_hand([g], 1.0)[0] for g in parts],
        "each number": [g.clamp(-0.1, 0.1) for g in parts],
    }.items():
        short = torch.cat([g.flatten() for g in pieces])
        cosine = F.cosine_similarity(flat, short, dim=0).item()
        assert (cosine > 0.99999) == (name == "the whole"), f"{name}: {cosine:.5f}"
        said.append(f"{name} {cosine:.2f}")
    print(f"✓ clipped as a whole, it keeps its direction; cosines: {', '.join(said)}")


# ---- recipes and pitfalls ------------------------------------------------------------


def check_nan() -> None:
    """Prove that the logarithm of a probability that is 0 ruins a loss."""
    labels, divergence = torch.tensor([2, 1, 0]), nn.KLDivLoss(reduction="sum")
    predicted = torch.tensor([[0.0, 0.2, 0.7, 0.1, 0.0]]).repeat(3, 1).double()
    naive = divergence(predicted.log(), target_by_loops(labels, 5, 0.4))
    logits = torch.full((3, 5), -1e4)
    logits[:, 2] = 0.0  # as sure as can be
    ours = LabelSmoothing(5, 0, 0.4)(logits, labels)
    assert naive.isnan() and ours.isfinite()
    print(f"✓ log of probabilities: {naive:.0f}; from logits: {ours:.0f}, finite")
