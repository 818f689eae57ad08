"""Chapter 13, LSH attention: its drawings, tables, explorers, longest proofs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import mean
from typing import Any

import matplotlib.pyplot as plt
import numpy
import torch
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from torch import Tensor
from torch.nn import functional as F

from annotated.chapters.ch13.lsh import LENGTH, exact_attention, meetings
from annotated.page.diagrams import Drawing
from annotated.page.frames import Choice, Html, Slider, explorer, static
from annotated.page.notebook import check_close, check_same, show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import COLOURS, OTHER, THIS, plot_bars, plot_lines
from annotated.page.records import grouped, percent
from annotated.reformer import LSHSelfAttention, lsh_attention, lsh_buckets

TURNS = (0, 45, 70, 25)  # degrees that four rounds turn by
SQUARE = numpy.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)])
ROUNDS = (1, 2, 4, 8, 16)
BY_TWO = [2**i for i in range(7)]
SHARES = {
    "xlabel": "number of keys, heaviest first",
    "ylabel": "share of the weight",
    "ylim": (0, 1.14),
}
LATER = torch.ones(1024, 1024, dtype=torch.bool).triu()  # and the query itself


def noisy_prototypes(
    t: int, count: int, generator: torch.Generator, k: int = 64, noise: float = 0.2
) -> Tensor:
    """Return vectors around ``count`` directions, in random order, (t, k)."""
    centres = torch.randn(count, k, generator=generator)
    which = torch.randint(count, (t,), generator=generator)
    return centres[which] + noise * torch.randn(t, k, generator=generator)


def scores_of(x: Tensor) -> Tensor:
    """Return the scores of shared queries and keys, (t, t)."""
    return x @ F.normalize(x, dim=-1).mT


# ---- why, and the hash ---------------------------------------------------------------


def sorted_by_bucket() -> Html:
    """Draw attention weights before and after a sort by bucket."""
    generator = torch.Generator().manual_seed(0)
    x = noisy_prototypes(96, 12, generator)
    weights = scores_of(x).fill_diagonal_(-torch.inf).softmax(dim=-1)
    order = lsh_buckets(x, 8, 1, generator)[0].argsort(stable=True)
    ordered = weights[order][:, order]
    window = meetings(torch.zeros(1, 96, dtype=torch.int64), 12)[0]
    covered = (ordered * window).sum().item() / 96
    assert covered > 0.6
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.3))
    names = "in the order of the sequence", "sorted by bucket"
    for ax, shown, name in zip(axes, (weights, ordered), names, strict=True):
        for low, high, alpha in ((0.01, 0.06, 0.35), (0.06, 0.15, 0.7), (0.15, 1, 1)):
            cells = ((shown > low) & (shown <= high)).nonzero().tolist()
            squares = [Path(SQUARE + (j, i), closed=True) for i, j in cells]
            path = Path.make_compound_path(*squares)
            look = {"fc": COLOURS["weight"], "lw": 0, "alpha": alpha}
            ax.add_patch(PathPatch(path, **look))
        ax.set(xticks=(), yticks=(), title=name, xlim=(0, 96), ylim=(96, 0))
        ax.set_aspect("equal")
        ax.grid(visible=False)
    for c in range(8):
        for b in (c, c - 1 if c else 1):
            box = plt.Rectangle((12 * b, 12 * c), 12, 12, fill=False, ec=OTHER)
            axes[1].add_patch(box)
    return show(
        figure,
        title="Sorted by bucket, most of the weight stands near the diagonal",
        alt="Attention weights of 96 queries and 96 keys. Left, dark dots are "
        "scattered everywhere. Right, sorted by bucket, most of them stand in a "
        "staircase of boxes along the diagonal.",
        caption="A row for each query, a column for each key, 96 vectors around 12 "
        f"directions. The boxes, a quarter, hold {percent(covered)} of the weight.",
    )


def few_keys(carried: numpy.ndarray) -> Html:
    """Plot what the heaviest keys carry: by seed, layer, head, number of keys."""
    figure, ax = plt.subplots()
    counts = numpy.arange(1, 65)
    for layer, name in enumerate(("first layer", "second layer")):
        heads = carried[:, layer].reshape(-1, 64)  # of all seeds
        mean = heads.mean(0)
        ax.fill_between(counts, heads.min(0), heads.max(0), color=THIS, alpha=0.15)
        ax.plot(counts, mean, color=THIS, label=name)
        enough = int((mean >= 0.9).argmax()) + 1
        ax.plot(enough, 0.9, "o", color=THIS)
        x, y, side = ((1, 1.02, "center"), (1.08, 0.82, "left"))[layer]
        ax.text(enough * x, y, f"{name}: {enough} keys", color=THIS, ha=side)
    ax.plot(counts, counts / 64, color=OTHER, label="uniform weights")
    ax.text(26, 0.33, "uniform weights", color=OTHER)
    ax.set_xscale("log", base=2)
    ax.set(xticks=BY_TWO, xticklabels=BY_TWO, **SHARES | {"xlim": (1, 64)})
    return show(
        figure,
        title="How much the heaviest keys carry",
        caption="The last query of 1024 held-out windows. Lines: means of four heads "
        "and three seeds; bands: their range.",
    )


def hues(x: Tensor) -> list[int]:
    """Return the colour of each point (t, 2): its direction."""
    return (torch.atan2(x[:, 1], x[:, 0]).rad2deg().round() % 360).int().tolist()


def hashed(x: Tensor, turn: int, buckets: int, rounds: int) -> Tensor:
    """Return buckets in each round, (r, t), by angles: the other way to compute it."""
    width = 360 / buckets
    angles = torch.atan2(x[:, 1], x[:, 0]).double().rad2deg()
    turned = angles - turn - torch.tensor(TURNS[:rounds])[:, None]
    return ((turned + width / 2) % 360 // width).long()


def turn_by(degrees: float) -> Tensor:
    """Return the matrix (2, 2) that turns a point, on its left, clockwise."""
    angle = torch.tensor(float(degrees)).deg2rad()
    c, s = angle.cos(), angle.sin()
    return torch.tensor([[c, -s], [s, c]])


def largest(names: str, both_signs: Tensor, bucket: Tensor) -> Html:
    """Show x, y, −x and −y of each point, and the number of the largest."""
    columns = ["x", "y", "−x", "−y"]
    return chain(
        Matrix(both_signs, "the largest?", rows=names, columns=columns, row=4),
        "→",
        Matrix(bucket[:, None], "bucket", columns=["0 to 3"], row=4),
        caption="Of S, sky blue, the third is the largest, −x = 7: bucket 2.",
    )


def circle_explorer(names: str, x: Tensor) -> Html:
    """Show the points (t, 2) on a circle that is cut into buckets."""
    checks = []
    for setting in ("0 4 1 S", "45 4 1 S", "20 2 1 R", "15 8 2 M", "0 4 4 T"):
        turn, buckets, rounds = map(int, setting.split()[:3])
        follow = setting[-1]
        found = hashed(x, turn, buckets, rounds)
        mine = names.index(follow)
        met = (found == found[:, [mine]]).any(dim=0)
        met[mine] = False
        state = {"turn": turn, "buckets": buckets, "rounds": rounds, "follow": follow}
        shared = sorted(names[i] for i in met.nonzero().flatten().tolist())
        checks.append((state, {"buckets": found.tolist(), "met": shared}))
    return explorer(
        static("ch13/lsh_circle.js"),
        {"names": list(names), "points": x.int().tolist(), "turns": TURNS},
        [
            Slider("turn", "turn by (°)", list(range(0, 90, 5)), 0),
            Choice("buckets", "buckets", "248", "4"),
            Choice("rounds", "rounds", "1234", "1"),
            Choice("follow", "follow", names, "S"),
        ],
        label="Buckets on a circle",
        checks=checks,
        question="Who shares a bucket with S after a turn by 45°? Write it down, then "
        "turn. Can a turn separate S from T and B?",
        caption="The points turn, the buckets stand still. Drag a point, or use the "
        "arrow keys. Each round has a turn of its own.",
    )


def collision_probability(angle: float, buckets: int, step: float = 0.02) -> float:
    """Return how likely two vectors share a bucket: an integral.

    A column of the random matrix gives them two normal numbers, correlated by the
    cosine of the ``angle``. They share a bucket if these are the largest of all, in
    absolute value, for both, and of one sign.
    """
    u = torch.arange(0, 6, step, dtype=torch.float64) + step / 2
    rho = torch.tensor(angle, dtype=torch.float64).deg2rad().cos()

    def density(rho: Tensor) -> Tensor:
        squares = u[:, None] ** 2 + u**2 - 2 * rho * u[:, None] * u
        root = (1 - rho**2).sqrt()
        return (-squares / (2 * root**2)).exp() / (2 * torch.pi * root)

    same, opposite = density(rho), density(-rho)
    below = 2 * (same + opposite).cumsum(0).cumsum(1) * step**2
    others = below ** (buckets // 2 - 1)
    return (buckets * same * others).sum().item() * step**2


def at_angle(angle: float, pairs: int, k: int, generator: torch.Generator) -> Tensor:
    """Return pairs of unit vectors with that angle between them, (2, pairs, k)."""
    one, other = torch.randn(2, pairs, k, generator=generator)
    one = F.normalize(one, dim=-1)
    other = F.normalize(other - (other * one).sum(-1, keepdim=True) * one, dim=-1)
    radians = torch.tensor(float(angle)).deg2rad()
    return torch.stack([one, one * radians.cos() + other * radians.sin()])


def collisions(sizes: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Return angles (a,), and how often pairs share one of so many buckets.

    Sampled and computed, each (number of sizes, a).
    """
    angles, sampled = torch.arange(10, 161, 15), []
    for buckets in sizes:
        generator = torch.Generator().manual_seed(buckets)
        for angle in angles.tolist():
            pair = at_angle(angle, 60, 64, generator)
            ids = lsh_buckets(pair.flatten(0, 1), buckets, 100, generator)
            ids = ids.view(100, 2, 60)
            sampled.append((ids[:, 0] == ids[:, 1]).double().mean())
    computed = [collision_probability(a, n) for n in sizes for a in angles.tolist()]
    shape = len(sizes), len(angles)
    return angles, torch.stack(sampled).view(shape), torch.tensor(computed).view(shape)


def collision_figure(
    sizes: Sequence[int], angles: Tensor, sampled: Tensor, computed: Tensor
) -> Html:
    """Plot what :func:`collisions` returns, and the circle's four buckets."""
    figure, ax = plt.subplots(figsize=(8.6, 3.6))
    circle = "four buckets on the circle"
    ax.plot((0, 90, 180), (1, 0, 0), color=OTHER, lw=1.5, label=circle)
    for buckets, dots, line in zip(sizes, sampled, computed, strict=True):
        name = f"{buckets} buckets"
        ax.plot(angles, line, color=THIS, label=name)
        ax.plot(angles, dots, "o", color=THIS, ms=5)
        high = 0.5 if buckets == sizes[0] else 0.3
        here = numpy.interp(-high, -line, angles)  # where it falls so far
        left = buckets == sizes[-1]
        at, side = (here - 3, "right") if left else (here + 3, "left")
        ax.text(at, high, name, color=THIS, ha=side, va="center")
    ax.set(xlabel="angle between two vectors (degrees)", ylabel="share a bucket")
    ax.set(xticks=(0, 45, 90, 135, 180), xlim=(0, 180), ylim=(0, 1.02))
    return show(
        figure,
        title="The smaller the angle, the likelier two vectors share a bucket",
        caption="Blue lines: computed. Each dot: 6,000 random pairs of 64 numbers. "
        "Grey: four buckets on the circle.",
    )


# ---- sort and chunk ------------------------------------------------------------------


def exact_picture(names: str, weights: Tensor, sizes: Tensor, outputs: Tensor) -> Html:
    """Show exact weights (t, t) times sizes (t, 1) = outputs (t, 1)."""
    rows: dict[str, Any] = {"rows": names, "row": 4}
    mask = torch.ones(8, 8).tril().bool()
    return chain(
        Matrix(
            weights,
            "weights",
            columns=names,
            mask=mask,
            weights=True,
            narrow=True,
            **rows,
        ),
        "·",
        Matrix(sizes, "sizes", digits=0),
        "=",
        Matrix(outputs, "outputs", digits=1, **rows),
        caption="Exact attention, with each sock's size as its value. S scores B with "
        f"56/√65 = {56 / 65**0.5:.2f} and T with 52/√65 = {52 / 65**0.5:.2f}; the "
        f"softmax makes that {weights[4, 0]:.2f} and {weights[4, 1]:.2f}.",
    )


class Socks(Drawing):
    """A drawing of socks, points on the colour wheel."""

    def sock(self, x: float, y: float, hue: int) -> None:
        """Draw a disc in its colour."""
        fill = f"hsl({hue}, 80%, 50%)"
        self._add("circle", cx=x, cy=y, r=8, fill=fill, stroke="currentColor")


def sorted_line(names: str, x: Tensor, bucket: Tensor) -> Html:
    """Draw the sequence and, below it, the line sorted by bucket, in chunks of two."""
    drawing, order = Socks(350, 206), bucket.argsort(stable=True).tolist()
    for place, i in enumerate(order):
        start = 20 + 44 * i
        end = 90 * (place // 2) + (20, 60)[place % 2]
        drawing.line((start, 54), (start, 62), (end, 114), (end, 122), width=1)
        for at, y, label, number in ((start, 44, 31, 14), (end, 132, 156, 173)):
            drawing.sock(at, y, hues(x)[i])
            drawing.text(at, label, names[i], code=True, size=14)
            drawing.text(at, number, str(bucket[i].item()))
    for c in range(4):
        drawing.frame(90 * c, 116, 80, 62)
        if c:
            right, left = 90 * c + 26, 90 * c - 36
            drawing.arrow((right, 178), (right, 196), (left, 196), (left, 179))
    said = "; ".join(
        " ".join(f"{names[i]} {bucket[i]}" for i in order[c : c + 2])
        for c in range(0, 8, 2)
    )
    before = " ".join(f"{n} {b}" for n, b in zip(names, bucket.tolist(), strict=True))
    return drawing.figure(
        alt=f"Above, the eight points in the order of the sequence with their buckets: "
        f"{before}. Lines lead down to the sorted line, four boxes of two: {said}. An "
        "arrow leads from each box to the one before.",
        caption="Above: the sequence, with bucket numbers. Below: sorted, in chunks of "
        "two. Each chunk looks at itself and, by the arrow, one back.",
    )


STAGES = (
    "the sequence, hash, sort, cut into chunks, look one chunk back, "
    "hide later positions and the query itself, softmax and undo the sort"
)


def steps_explorer(names: str, x: Tensor, sizes: Tensor) -> Html:
    """Show LSH attention step by step, beside exact attention."""
    checks = []
    for setting in ("1M 0 4 1", "5S 0 4 1", "6S 45 4 1", "6M 0 2 1", "7P 20 8 4"):
        (step, query), *others = setting.split()
        turn, buckets, rounds = map(int, others)
        ids = hashed(x, turn, buckets, rounds)
        weights = lsh_attention(x, torch.eye(8), ids, 2, causal=True)
        met, same = meetings(ids[:1], 2)[0], ids[0] == ids[0][:, None]
        state = {"step": int(step), "query": query, "turn": turn}
        state |= {"buckets": buckets, "rounds": rounds}
        values = {
            "order": [names[i] for i in ids[0].argsort(stable=True).tolist()],
            "weights": weights.tolist(),
            "lost": (same & ~met).tril(-1).sum().item(),
            "output": (weights @ sizes)[names.index(query)].item(),
        }
        checks.append((state, values))
    return explorer(
        static("ch13/lsh_steps.js"),
        {"names": list(names), "points": x.int().tolist(), "turns": TURNS}
        | {"sizes": sizes[:, 0].tolist(), "stages": STAGES.split(", ")},
        [
            Slider("step", "step", list(range(1, 8)), 2),
            Slider("turn", "turn by (°)", list(range(0, 90, 5)), 0),
            Choice("buckets", "buckets", "248", "4"),
            Choice("rounds", "rounds", "1234", "1"),
            Choice("query", "follow", names, "S"),
        ],
        label="Step through LSH attention",
        checks=checks,
        question="Who will S look at in the end, without a turn? And after a turn by "
        "45°? Write down the sorted line for both, then take the steps.",
        caption="A row for each query, a column for each key. Beside it, where there's "
        "room: exact attention, in percent, in the same order.",
    )


# ---- join the rounds -----------------------------------------------------------------


def joined_picture(lses: Tensor, outputs: Tensor, joined: Tensor) -> Html:
    """Show how the rounds of S (r,), with outputs (r,), become one output."""
    shares = lses.softmax(dim=0)
    return chain(
        Matrix(lses[:, None], "lse", rows=["round 1", "round 2"]),
        "→",
        Matrix(shares[:, None], "share", weights=True),
        "·",
        Matrix(outputs[:, None], "output", digits=1),
        "=",
        Matrix(joined[None], "S", digits=1),
        caption="The two rounds of S, joined.",
    )


def compared(names: str, query: str, exact: Tensor, found: Tensor) -> Html:
    """Show a query's exact weights (t,) above those that were found."""
    earlier = names[: names.index(query)]
    table = torch.stack([exact, found])[:, : len(earlier)]
    misplaced = (exact - found).abs().sum().item() / 2
    return chain(
        Matrix(table, rows=["exact", "found"], columns=earlier, weights=True),
        caption=f"{percent(misplaced)} of the weight is with the wrong keys.",
    )


def check_rounds(attend: Callable[..., Tensor]) -> None:
    """Check a notebook's ``attend``: outputs and gradients, for 96 positions."""
    generator = torch.Generator().manual_seed(0)
    x, values = torch.randn(2, 96, 16, generator=generator).double()
    ids = lsh_buckets(x, 8, 3, generator)
    met, causal = meetings(ids, 12).any(dim=0), {"causal": True}
    for claim, *ways in (
        (
            "attend = the module",
            lambda q, v: attend(q, v, ids, 12),
            lambda q, v: lsh_attention(q, v, ids, 12, **causal),
        ),
        (
            "attend = the module, if each round counts again",
            lambda q, v: attend(q, v, ids, 12, once=False),
            lambda q, v: lsh_attention(q, v, ids, 12, **causal, repeats=True),
        ),
        (
            "three rounds = one softmax over all pairs found",
            lambda q, v: attend(q, v, ids, 12),
            lambda q, v: exact_attention(q, v, met, **causal),
        ),
        (
            "one round of two chunks = exact attention",
            lambda q, v: attend(q, v, ids[:1], 48),
            lambda q, v: exact_attention(q, v, **causal),
        ),
    ):
        check_same(claim, *ways, x, values, tolerance=1e-9)


# ---- what it misses ------------------------------------------------------------------


def misses() -> dict[str, Tensor]:
    """Measure what rounds find among 1024 vectors, and how wrong they are.

    Returns:
        Shares of three seeds, by what is found, (3, number of ``ROUNDS``); so are the
        errors "once" and "again". "long" and "unsorted", (3,): how often one round of
        chunks of 256, and chunks of 64 without a sort, hold the heaviest key.
    """
    seeds: list[dict[str, Any]] = []
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        x = noisy_prototypes(1024, 128, generator)
        values = torch.randn(1024, 64, generator=generator)
        weights = scores_of(x).masked_fill(LATER, -torch.inf)[64:].softmax(dim=-1)
        exact = exact_attention(x, values, causal=True)
        ids = lsh_buckets(x, 32, 16, generator)
        met = [meetings(ids[:r], 64).any(dim=0)[64:] for r in ROUNDS]
        row: dict[str, Any] = {
            "the heaviest key": [_found(m, weights, 1) for m in met],
            "the 8 heaviest": [_found(m, weights, 8) for m in met],
            "share of the weight": [(weights * m).sum(dim=-1).mean() for m in met],
            "long": _found(meetings(ids[:1], 256)[0, 64:], weights, 1),
            "unsorted": _found(meetings(0 * ids[:1], 64)[0, 64:], weights, 1),
        }
        for name, repeats in (("once", False), ("again", True)):
            outputs = (
                lsh_attention(x, values, ids[:r], causal=True, repeats=repeats)
                for r in ROUNDS
            )
            row[name] = [(o - exact).norm() / exact.norm() for o in outputs]
        seeds.append(row)
    return {name: torch.tensor([row[name] for row in seeds]) for name in seeds[0]}


def _found(met: Tensor, weights: Tensor, top: int) -> Tensor:
    """Return the share of each query's heaviest keys that are met, both (t, s)."""
    return met.gather(1, weights.topk(top).indices).float().mean()


BY_ROUNDS = {"xscale": "log", "xlabel": "rounds", "ylim": (0, 1.03)}


def found_figure(missed: Mapping[str, Tensor]) -> Html:
    """Plot what each number of rounds finds."""
    names = "the heaviest key", "share of the weight", "the 8 heaviest"
    lines = {name: missed[name].mean(0) for name in names}
    lines["heaviest, unsorted"] = missed["unsorted"].mean().expand(5)
    ax = plot_lines(
        {name: dict(zip(ROUNDS, line, strict=True)) for name, line in lines.items()},
        colors={
            "share of the weight": COLOURS["value"],
            "the 8 heaviest": COLOURS["key"],
            "heaviest, unsorted": OTHER,
        },
        ylabel="share found",
        **BY_ROUNDS,
    )
    ax.axvline(4, color=OTHER, lw=1)
    ax.text(4.15, 0.06, "as many scores as\nexact causal attention", color=OTHER)
    return show(
        ax.figure,
        title="What the rounds find",
        caption="Means of three seeds, causal, queries from position 64 on; 128 scores "
        "per query and round. Unsorted: what a window in random order holds by chance.",
    )


def check_misses(missed: Mapping[str, Tensor]) -> None:
    """Check what the page says of these shares and errors; print them."""
    mean = {name: values.mean(0) for name, values in missed.items()}
    key, weight, once, again = (
        mean[name]
        for name in ("the heaviest key", "share of the weight", "once", "again")
    )
    assert (missed["the heaviest key"].diff(dim=1) >= 0).all()
    assert key[0] >= 0.5 and key[2] >= 0.93 and weight[2] >= 0.85
    assert mean["long"] < key[2] - 0.05
    assert once[2] <= 0.35 and once[4] <= 0.1 < 0.15 < again[4]
    print(
        f"measured with 1, 4 and 16 rounds: the heaviest key {percent(*key[::2])};\nof "
        f"the weight {percent(*weight[::2])}; error {percent(*once[::2])}, and "
        f"{percent(*again[::2])} if keys found again count again\nmeasured: one round "
        f"with chunks of 256 finds the heaviest key {percent(mean['long'])} of the "
        f"time;\nchunks of 64 without sorting, {percent(mean['unsorted'])}"
    )


ASKED = ("full", "LSH-8", "LSH-4", "LSH-2", "LSH-1")


def accuracy(runs: Sequence[Mapping[str, Any]], kind: str) -> numpy.ndarray:
    """Return the shares that models trained in one way get right, (seeds, asked)."""
    chosen = [run["right"] for run in runs if run["trained"] == kind]
    return numpy.array([[right[way] for way in ASKED] for right in chosen])


# ---- what it costs -------------------------------------------------------------------


def times_figure(
    timed: Sequence[Mapping[str, Any]],
    ways: Mapping[str, tuple[str, bool]],
    title: str,
    caption: str,
) -> Html:
    """Plot seconds of a forward pass by length.

    Args:
        ways: label of each way, and whether it's what the page is about.
    """
    seconds = {r["length"]: r["seconds"] for r in timed if not r["backward"]}
    ax = plot_lines(
        {
            label: {t: found[way] for t, found in seconds.items() if way in found}
            for way, (label, _) in ways.items()
        },
        colors={label: OTHER for label, ours in ways.values() if not ours},
        xscale="log",
        yscale="log",
        xticks=(1024, 4096, 16384),
        xlabel="length",
        ylabel="seconds",
    )
    return show(ax.figure, title=title, caption=caption)


def tradeoff_figure(runs: Sequence[Mapping[str, Any]]) -> Html:
    """Plot error against time, for each length: some rounds, and the exact kernel."""
    figure, axes = plt.subplots(1, len(runs))
    for ax, run in zip(axes, runs, strict=True):
        seconds, error = dict(run["seconds"]), _errors(run)
        kernel = seconds.pop("fused")
        for size, color in (("8", OTHER), ("16", THIS)):
            line = [error[size][rounds] for rounds in seconds]
            style = {"color": color, "ms": 5, "label": f"length {size}"}
            ax.plot([*seconds.values()], line, "o-", **style)
        look = {"textcoords": "offset points", "ha": "center"}
        for rounds, at in seconds.items():
            ax.annotate(rounds, (at, error["16"][rounds]), (0, -15), color=THIS, **look)
        right = COLOURS["right"]
        ax.plot(kernel, 0, "s", ms=7, color=right, label="exact kernel")
        ax.annotate("exact kernel", (kernel, 0), (0, -16), color=right, **look)
        most = max(kernel, *seconds.values())
        ax.set(xlim=(0, 1.2 * most), ylim=(-0.5, 3.2), yticks=(0, 1, 2, 3))
        ax.set(xlabel=f"seconds, {run['length']:,} positions")
        if run is runs[-1]:
            for size, color in (("8", OTHER), ("16", THIS)):
                at = seconds["8"], error[size]["8"] + 0.2
                ax.text(*at, f"length {size}", color=color, ha="right")
    axes[0].set_ylabel("relative error")
    return show(
        figure,
        title="Rounds that save time leave a large error; the kernel is exact",
        caption="Attention alone, forward, on one CPU core; eight vectors on average "
        "around each direction. Blue: sharp queries; grey: half as sharp. Recorded.",
    )


def _errors(run: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the mean errors over seeds, by length of the queries and rounds."""
    first = run["seeds"][0]
    return {
        size: {
            rounds: numpy.mean([seed[size][rounds] for seed in run["seeds"]])
            for rounds in row
        }
        for size, row in first.items()
    }


def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute causal attention, the matrix written out."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -torch.inf).softmax(dim=-1) @ v


def _lsh(q: Tensor, _: Tensor, v: Tensor, rounds: int) -> Tensor:
    ids = lsh_buckets(q, 2 * q.shape[-2] // 64, rounds)
    return lsh_attention(q, v, ids, 64, causal=True)


def kept(attend: Callable[..., Tensor], *inputs: Tensor) -> float:
    """Return the megabytes that a forward pass keeps for the backward pass."""
    storages = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        output = attend(*inputs)
    own = {part.untyped_storage().data_ptr() for part in (*inputs, output)}
    return sum(size for at, size in storages.items() if at not in own) / 1e6


def memory_table() -> Html:
    """Show what each way keeps for the backward pass, by length; check how it grows."""
    found = {
        name: [
            kept(attend, *torch.randn(3, 1, 4, t, 64, requires_grad=True).unbind())
            for t in (1024, 2048, 4096)
        ]
        for name, attend in (
            ("naive", plain),
            ("fused", partial(F.scaled_dot_product_attention, is_causal=True)),
            ("LSH, 4 rounds", partial(_lsh, rounds=4)),
            ("LSH, 1 round", partial(_lsh, rounds=1)),
        )
    }
    growth = {name: row[2] / row[0] for name, row in found.items()}
    assert 15 < growth["naive"] < 17 and 3.5 < growth["LSH, 4 rounds"] < 4.5
    assert max(found["fused"]) < min(found["LSH, 1 round"])
    return show_table(
        ("kept for the backward pass", "t = 1024", "2048", "4096"),
        [
            (name, *(f"{mb:.0f} MB" if mb > 1 else "under 1 MB" for mb in row))
            for name, row in found.items()
        ],
        caption="Attention only, 4 heads of width 64; inputs and output not counted.",
    )


# ---- the future, and pitfalls --------------------------------------------------------


def last_word() -> tuple[int, float, int]:
    """Change the last of 128 vectors, and see which earlier outputs of a layer move.

    Returns:
        How many move, and by what share of their size; how many, if two chunks hold
        all, so that each query meets every key.
    """
    torch.manual_seed(0)
    layer = LSHSelfAttention(64, 4, chunk=16, rounds=4, causal=True)
    text, other = torch.randn(2, 1, 128, 64)
    other = torch.cat([text[:, :-1], other[:, -1:]], dim=1)
    moved, shares = [], []
    for layer.chunk in (16, 64):
        outputs = []
        for words in (text, other):
            torch.manual_seed(1)  # the same random matrices
            with torch.no_grad():
                outputs.append(layer(words)[0, :-1])
        change = outputs[0] - outputs[1]
        moved.append(int((change.abs() > 1e-4).any(dim=-1).sum()))
        shares.append((change.norm() / outputs[0].norm()).item())
    # the page: most move, although the mask is right; of exact attention, none
    assert moved[0] > 64 and moved[1] == 0
    return moved[0], shares[0], moved[1]


def check_future(one_round: Callable[..., tuple[Tensor, Tensor]]) -> None:
    """Change the last value, and see which outputs of a ``one_round`` move.

    Buckets and order stay as they are: this tests the mask, not the sort, which looks
    ahead (:func:`last_word`).
    """
    generator = torch.Generator().manual_seed(0)
    x = 4 * torch.randn(64, 8, generator=generator)
    values = torch.randn(64, 5, generator=generator)
    bucket = lsh_buckets(x, 8, 1, generator)[0]

    def by_place(x: Tensor, values: Tensor, bucket: Tensor, c: int) -> Tensor:
        """One round whose mask compares places in the sorted line."""
        order = bucket.argsort(stable=True)
        places = torch.arange(len(x))
        return one_round(x[order], values[order], places, c)[0][order.argsort()]

    moved = []
    for attend in (lambda *given: one_round(*given)[0], by_place):
        changed = torch.cat([values[:-1], values[-1:] + 1])
        before, after = (attend(x, v, bucket, 8) for v in (values, changed))
        moved.append(int(((before - after).abs() > 1e-6).any(dim=-1)[:-1].sum()))
    assert moved[0] == 0, f"{moved[0]} outputs see a later value"
    assert moved[1] >= 3
    print(
        "✓ 64 positions, the last value changed, the buckets kept: no earlier output "
        "moves, exactly\n"
        f"measured: {moved[1]} of them move if the mask compares places in the line"
    )


def check_mean() -> None:
    """Give all vectors a large mean, and see what a round still finds."""
    x = noisy_prototypes(1024, 128, torch.Generator().manual_seed(2))
    found, fullest = [], []
    for moved in (x, x + 4):
        scores = scores_of(moved).masked_fill(LATER, -torch.inf)[64:]
        ids = lsh_buckets(moved, 32, 1, torch.Generator().manual_seed(0))
        found.append(_found(meetings(ids, 64)[0, 64:], scores, 1))
        fullest.append(ids[0].bincount().max() / 1024)
    assert found[0] > found[1] + 0.3 and fullest[1] > 0.5 > 0.2 > fullest[0]
    print(
        f"measured: with 4 added to each number, the largest bucket holds "
        f"{percent(fullest[1])} of all\n({percent(fullest[0])} before), and one round "
        f"finds the heaviest key {percent(found[1])} of the time ({percent(found[0])} "
        "before)"
    )


def check_draws() -> None:
    """Call an untrained layer twice, with one round and with eight."""
    torch.manual_seed(0)
    layer = LSHSelfAttention(64, 4, chunk=16, rounds=1)
    x = noisy_prototypes(1024, 128, torch.Generator().manual_seed(2))[None, :256]
    spread = []
    with torch.no_grad():
        for layer.rounds in (1, 8):
            one, other = layer(x), layer(x)
            spread.append(((one - other).norm() / one.norm()).item())
    assert spread[0] > 2 * spread[1] > 0
    print(
        f"measured: two calls of an untrained layer differ by {percent(spread[0])} "
        f"with one round, by {percent(spread[1])} with eight"
    )


# ---- 13b: learning -------------------------------------------------------------------


def check_gradients() -> None:
    """Check gradients with the buckets held fixed, and that a nudge changes none."""
    generator = torch.Generator().manual_seed(0)
    given = torch.randn(2, 24, 4, generator=generator).double()
    query, value = (part.clone().requires_grad_() for part in given)
    ids = lsh_buckets(query, 4, 2, generator)
    assert not ids.is_floating_point() and not ids.requires_grad
    assert torch.autograd.gradcheck(
        lambda q, v: lsh_attention(q, v, ids, 4, causal=True), (query, value)
    )
    step = 1e-6 * torch.randn(24, 4, generator=generator).double()
    before, after = (
        lsh_buckets(x, 4, 2, torch.Generator().manual_seed(5))
        for x in (given[0], given[0] + step)
    )
    assert before.equal(after)
    print(
        "✓ buckets held fixed: gradients equal finite differences, to 1e-05\n"
        "✓ a nudge of 1e-6 changes no bucket, exactly"
    )


def check_replay(
    gradient: Callable[[bool], Tensor], layer: LSHSelfAttention, inputs: Tensor
) -> float:
    """Compare a notebook's ``gradient``, replayed or not, with the plain one.

    Returns:
        How far it's off if it isn't replayed, as a share of its size.
    """
    torch.manual_seed(1)
    wanted = torch.autograd.grad(layer(inputs).square().sum(), inputs)[0]
    claim = "random numbers replayed: the plain gradient"
    check_close(claim, gradient(True), wanted, 1e-4)
    anew = gradient(False)
    wrong = ((anew - wanted).norm() / wanted.norm()).item()
    cosine = torch.cosine_similarity(anew.flatten(), wanted.flatten(), dim=0).item()
    assert wrong > 0.3
    print(
        f"measured: hashed anew, the gradient is off by {percent(wrong)} (cosine with "
        f"the right one {cosine:.2f})"
    )
    return wrong


def meeting_figure(watched: Sequence[tuple[int, float, float]]) -> Html:
    """Plot how often matching keys are met, and answers right, by step."""
    ax = plot_lines(
        {
            "right answers": {step: right for step, _, right in watched},
            "match in window": {step: met for step, met, _ in watched},
        },
        colors={"right answers": COLOURS["right"]},
        xlabel="training step",
        ylabel="share",
        ylim=(0, 1),
        xlim=(0, watched[-1][0]),
    )
    return show(
        ax.figure,
        title="Vectors that match come to share a window",
        caption="Trained on this page: one round, four heads. A head's window holds "
        f"8 of {LENGTH} positions.",
    )


TRAINED = {"full": "exact", "LSH-4": "4 rounds", "LSH-1": "1 round"}
PAPER = {
    "full": (100, 94.8, 92.5, 76.9, 52.5),
    "LSH-4": (0.8, 100, 99.9, 99.4, 91.9),
    "LSH-1": (0.8, 99.9, 99.6, 94.8, 77.9),
}


def duplicate_table(runs: Sequence[Mapping[str, Any]]) -> Html:
    """Show what each model gets right in each test, here and in the paper."""
    rows = []
    for kind, name in TRAINED.items():
        here = 100 * accuracy(runs, kind).mean(axis=0)
        for shares, where in ((here, "here"), (PAPER[kind], "paper")):
            rows.append((f"{name}, {where}", *(f"{share:.1f}" for share in shares)))
    return show_table(
        ("trained with", "tested: exact", "8 rounds", "4", "2", "1"),
        rows,
        caption="Accuracy on the second word, in percent. Here: recorded, means of "
        "three seeds, chance is 3. Paper: table 2.",
    )


# ---- 13c: conventions ----------------------------------------------------------------


def decisions() -> Html:
    """Show what three implementations decided."""
    last = "the last, of another round"
    return show_table(
        ("", "ours", "transformers", "reformer-pytorch"),
        [
            ("scores", "q · k̂", "q · k̂", "q · k̂ / √k"),
            ("the first chunk looks back at", "the second", last, last),
            ("other buckets in the window", "seen", "seen", "seen"),
            ("a key found in two rounds", "counts once", "twice", "twice"),
            ("a query's score with itself", "half the lowest", "−100,000", "−50,000"),
            ("a length no chunk divides", "padded", "padded; not in training")
            + ("refused",),
        ],
        caption="transformers 5.23.0 and reformer-pytorch 1.4.4, with their defaults.",
    )


PEERS = {
    "transformers": "transformers",
    "reformer-pytorch": "reformer-pytorch",
    "ours, repeats": "ours, repeats=True",
    "ours": "ours, each key once",
}


def peers_figure(runs: Sequence[Mapping[str, Any]]) -> Html:
    """Plot the recorded errors of each implementation, by rounds."""
    errors = grouped(runs, "rounds")
    ax = plot_lines(
        {
            label: {r: mean(run["error"][way] for run in errors[(r,)]) for r in ROUNDS}
            for way, label in PEERS.items()
        },
        colors={label: OTHER for way, label in PEERS.items() if way != "ours"},
        ylabel="relative error",
        **BY_ROUNDS,
    )
    return show(
        ax.figure,
        title="A key that counts again in each round leaves an error",
        caption="Recorded, means of five seeds: 1024 vectors around 128 directions, "
        "closer to them than in 13.6, chunks of 64, no causal mask.",
    )


def window_table(over_pairs: Callable[..., Tensor]) -> Html:
    """Show the errors of whole windows and of buckets, by a notebook's attention."""
    errors, outside = [], []
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        x = noisy_prototypes(1024, 128, generator)
        values = torch.randn(1024, 64, generator=generator)
        exact = over_pairs(x, values, torch.ones(1024, 1024, dtype=torch.bool))
        ids = lsh_buckets(x, 32, 8, generator)
        window, own = meetings(ids, 64), meetings(ids, 64, within=True)
        for met in (window, own):
            outputs = [over_pairs(x, values, met[:r].any(dim=0)) for r in ROUNDS[:4]]
            errors.append([(o - exact).norm() / exact.norm() for o in outputs])
        outside.append(1 - own.sum() / window.sum())
    whole, inside = torch.tensor(errors).view(3, 2, 4).mean(0)
    assert (whole <= inside).all() and inside[2] > 1.05 * whole[2]
    return show_table(
        ("relative error with", "1 round", "2 rounds", "4 rounds", "8 rounds"),
        [
            ("the whole window", *(f"{error:.2f}" for error in whole.tolist())),
            ("only its own bucket", *(f"{error:.2f}" for error in inside.tolist())),
        ],
        caption="Means of three seeds, against exact shared-QK attention. "
        f"{percent(sum(outside) / 3)} of a window's keys are from other buckets.",
    )


def full_buckets() -> Html:
    """Plot how many nearest neighbours one round misses, and why, by buckets."""
    parts = {"same bucket, too far away": {}, "different buckets": {}}
    for buckets in (4, 8, 16, 32, 64, 128):
        missed = []
        for seed in range(3):
            generator = torch.Generator().manual_seed(seed)
            x = noisy_prototypes(1024, 128, generator)
            ids = lsh_buckets(x, buckets, 4, generator)
            best = scores_of(x).fill_diagonal_(-torch.inf).argmax(dim=-1)
            same = ids == ids[:, best]
            met = meetings(ids, 64)[:, torch.arange(1024), best]
            missed.append(torch.stack([same & ~met, ~same & ~met]))
        shares = torch.stack(missed, dim=1).double().mean(dim=(1, 2, 3))
        for part, share in zip(parts.values(), shares.tolist(), strict=True):
            part[str(buckets)] = share
    far, border = parts
    ax = plot_bars(
        parts,
        colors={far: OTHER},
        xlabel="buckets",
        ylabel="nearest neighbours missed",
        ylim=(0, 1),
    )
    ax.text(-0.3, parts[far]["4"] + parts[border]["4"] + 0.03, far, color=OTHER)
    high = parts[far]["64"] + parts[border]["64"] + 0.03
    ax.text(4, high, border, color=THIS, ha="center")
    return show(
        ax.figure,
        title="Few buckets are too full, and many have more borders",
        caption="One round, 1024 vectors, chunks of 64: means of three seeds with four "
        "rounds each.",
    )


def keys_kept() -> dict[int, list[float]]:
    """Return the share of the 1, 2, 4, … 128 heaviest of 4096 keys, by query length."""
    x = noisy_prototypes(4096, 512, torch.Generator().manual_seed(0))
    scores, kept_by_length = scores_of(x).fill_diagonal_(-torch.inf), {}
    for factor in (2.0, 1.0, 0.5, 0.25):
        heaviest = (factor * scores).softmax(dim=-1).topk(128).values
        carried = heaviest.cumsum(dim=-1).mean(dim=0)
        length = round(factor * x.norm(dim=-1).mean().item())
        kept_by_length[length] = [carried[2**i - 1].item() for i in range(8)]
    return kept_by_length


def keys_figure(shares: Mapping[int, Sequence[float]]) -> Html:
    """Plot what :func:`keys_kept` returns."""
    # the page: a long query needs few keys, a short one many
    assert shares[16][5] > 0.95 and shares[2][5] < 0.2
    lines = {
        f"length {length}": {2**i: share for i, share in enumerate(line)}
        for length, line in shares.items()
    }
    ax = plot_lines(lines, xscale="log", **SHARES)
    ax.axvline(32, color=OTHER, lw=1)
    return show(
        ax.figure,
        title="The longer a query, the fewer keys it needs",
        caption="4096 keys, 8 on average around each direction.",
    )
