"""Page 11b, a recurrent and a convolutional model: its drawings, tables and proofs."""

import math
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise, product
from statistics import mean
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from annotated.page.diagrams import Drawing
from annotated.page.frames import Html
from annotated.page.notebook import show, show_table
from annotated.page.plots import OTHER, PALETTE, THIS, plot_lines
from annotated.page.records import Rows
from annotated.recipes.text_models import path_length

WAYS = ("attention", "recurrent", "convolution")
COLOR = {"attention": THIS, "recurrent": OTHER, "convolution": PALETTE[3]}
JUMPS = (1, 2, 4, 8)  # how far apart the layers of the convolution look


def steps_up(distance: int) -> list[int]:
    """Return how far each layer of the convolution carries a character, from below."""
    layers, moved = path_length("convolution", distance), []
    for jump in reversed(JUMPS[:layers]):
        moved.append(min(4, distance // jump) * jump)
        distance -= moved[-1]
    return moved[::-1]


def paths(distance: int) -> Html:
    """Draw the three ways over a distance of at most 16 characters."""
    begin, end, said = 16 - distance, 16, []
    drawing, top = Drawing(350, 328), 0

    def at(place: int, level: int) -> tuple[float, float]:
        return 15 + 20 * place, base - 38 * level

    for way in WAYS:
        moved = {"attention": [distance], "recurrent": [0]}.get(way, steps_up(distance))
        base, n = top + 26 + 38 * len(moved), path_length(way, distance)
        unit = "layer" if way == "convolution" else "step"
        said.append(f"{way}: {n} {unit}{'s' * (n > 1)}")
        drawing.text(6, top + 14, said[-1], anchor="start", bold=True)
        for level in range(len(moved) + 1):
            for place in range(17):
                x, y = at(place, level)
                lit = (place, level) in ((begin, 0), (end, len(moved)))
                shade = {"shade": 1.0, "color": "query"} if lit else {}
                drawing.frame(x - 4, y - 4, 8, 8, **shade)
        place = begin
        for level, step in enumerate(moved):
            drawing.arrow(at(place, level), at(place + step, level + 1))
            place += step
        if way == "recurrent":
            for x in range(begin, end):
                drawing.arrow((at(x, 1)[0] + 5, at(x, 1)[1]), at(x + 1, 1))
        top = base + 20
    return drawing.figure(alt=f"Over a distance of {distance}: {'; '.join(said)}.")


def sizes(models: Mapping[str, nn.Module]) -> Html:
    """Show width, parameters and paths of the three models; check the parameters."""
    counts = {w: sum(p.numel() for p in m.parameters()) for w, m in models.items()}
    assert max(counts.values()) / min(counts.values()) < 1.02
    rows = []
    for way, model in models.items():
        far = [str(path_length(way, n)) for n in (4, 16, 60)]
        far.append("none" if way == "convolution" else str(path_length(way, 63)))
        width = model.embedding.embedding_dim
        rows.append((way, width, f"{counts[way]:,}", ", ".join(far)))
    return show_table(
        ("model", "width", "parameters", "path over 4, 16, 60, 63"),
        rows,
        caption="Path: how many layers or steps pass a character on over that "
        "distance. Four layers of convolution don't reach 63.",
    )


@torch.no_grad()
def check_reach(models: Mapping[str, nn.Module]) -> None:
    """Check how far back a change of one character is felt at the end of a window."""
    tokens, reach = torch.randint(96, (1, 64)), {}
    for way, model in models.items():
        before, felt = model(tokens)[0, -1], []
        for place in range(64):
            changed = tokens.clone()
            changed[0, place] = (changed[0, place] + 1) % 96
            felt.append(not torch.equal(model(changed)[0, -1], before))
        reach[way] = 63 - felt.index(True)
    assert reach["attention"] == 63 and reach["convolution"] == 60
    print(f"✓ by changing one character at a time, they reach {reach} back")


def by_way(rows: Rows, key: str) -> dict[str, list[Any]]:
    """Return what recorded runs hold under ``key``: for each way, a list of seeds."""
    return {way: [r[key] for r in rows if r["way"] == way] for way in WAYS}


def bits_table(rows: Rows) -> Html:
    """Show the recorded bits of each seed; check what the page says of them."""
    bits = by_way(rows, "bits")
    attention = bits["attention"]
    gaps = [mean(bits[way]) - mean(attention) for way in WAYS[1:]]
    assert 0.015 < gaps[0] < 0.025 and 0.075 < gaps[1] < 0.085
    assert -0.002 < bits["recurrent"][0] - attention[0] < 0
    assert max(bits["recurrent"]) - min(bits["recurrent"]) > gaps[0]
    return show_table(
        ("bits per character", "seed 0", "seed 1", "seed 2", "mean"),
        [(w, *(f"{b:.3f}" for b in [*several, mean(several)]))
         for w, several in bits.items()],
        caption="Held-out modules, windows of 64 (recorded); lower is better.",
    )  # fmt: skip


def exchanged(record: Mapping[str, Any]) -> Html:
    """Plot what one exchanged character costs, by its distance."""
    distances, lost = record["distances"], by_way(record["rows"], "lost")
    near, far = distances.index(8), distances.index(32)
    for run in (run for several in lost.values() for run in several):
        assert run[0] > 1 and max(run[far:]) < 0.05
    worst = max(x for several in lost.values() for run in several for x in run[near:])
    average = {w: [*map(mean, zip(*s, strict=True))] for w, s in lost.items()}
    lines = {way: dict(enumerate(y)) for way, y in average.items()}
    looks = {"xlabel": "distance of the exchanged character", "ylabel": "bits lost"}
    ax = plot_lines(lines, plt.subplots(figsize=(8.6, 3.6))[1], colors=COLOR, **looks)
    ax.set_yscale("symlog", linthresh=0.01)
    ax.set_yticks([0, 0.01, 0.1, 1], ["0", "0.01", "0.1", "1"])
    ax.set_yticks([], minor=True)
    ax.set_xticks(range(len(distances)), [str(n) for n in distances])
    ends = "; ".join(f"{w} {y[0]:.1f}, {y[near]:.2f}" for w, y in average.items())
    return show(
        ax.figure,
        title="One character counts only if it's among the last few",
        alt=f"Bits lost at distance 0 and at 8: {ends}. All three fall alike.",
        caption="Mean of three recorded seeds; 0: the last character read. From "
        f"distance 8 on, no model loses more than {worst:.2f} bits, with any seed.",
    )


def gradients(fresh: Mapping[str, Tensor]) -> Html:
    """Plot the gradients of fresh models, (seeds, 64), by distance."""
    assert fresh["attention"][:, 1:].min() > 0.02
    assert (fresh["convolution"][:, 61:] == 0).all()
    assert (fresh["convolution"][:, :61] > 0).all()
    assert fresh["recurrent"][:, 32].max() < 1e-5
    average = {w: x.log().mean(dim=0).exp() for w, x in fresh.items()}
    ax = plot_lines(
        {way: dict(enumerate(x[x > 0].tolist())) for way, x in average.items()},
        plt.subplots(figsize=(8.6, 3.6))[1],
        colors=COLOR,
        xlabel="distance of the character",
        ylabel="gradient, distance 0 = 1",
        yscale="log",
        ylim=(1e-15, 10),
    )
    return show(
        ax.figure,
        title="The GRU's gradient fades with every step",
        caption="Untrained models, logarithmic axis, geometric mean of three seeds. "
        "Beyond 60 the convolution has exactly 0.",
    )


def check_routes(fresh: Mapping[str, Tensor]) -> None:
    """Print what a step of the GRU leaves, and the routes of the convolution."""
    fading = (fresh["recurrent"][:, 40] / fresh["recurrent"][:, 8]) ** (1 / 32)
    routes = Counter(
        sum(map(math.prod, zip(JUMPS, moves, strict=True)))
        for moves in product(range(5), repeat=4)
    )
    assert routes[60] == 1 < routes[48] < routes[32] and not routes[63]
    said = ", ".join(f"{routes[n]} over {n}" for n in (16, 32, 48, 60, 63))
    print(f"✓ a step of the fresh GRU leaves {fading.mean():.2f} of the gradient")
    print(f"✓ routes of the convolution: {said}")


def steps_figure(record: Mapping[str, Any]) -> Html:
    """Plot the steps until the first symbol is named, by distance and seed."""
    steps = by_way(record["rows"], "steps")
    distances = [*map(int, record["rows"][0]["steps"])]
    figure, ax = plt.subplots(figsize=(8.6, 3.6))
    for shift, way in enumerate(WAYS):
        for seed, one in enumerate(steps[way]):
            for place, taken in enumerate(one.values()):
                x = place + 0.22 * (shift - 1) + 0.05 * (seed - 1)
                mark = "o" if taken else "^"
                ax.plot(x, taken or 430, mark, ms=6, color=COLOR[way],
                        mfc=COLOR[way] if taken else "none")  # fmt: skip
    for x, y, way in ((7.3, 33, "attention"), (2.2, 240, "recurrent"),
                      (5.4, 76, "convolution")):  # fmt: skip
        ax.text(x, y, way, color=COLOR[way], va="center")
    ax.set_xticks(range(len(distances)), map(str, distances))
    ax.set_yticks([0, 100, 200, 300, 430], ["0", "100", "200", "300", "over 400"])
    ax.set(
        xlabel="distance of the first symbol",
        ylabel="steps",
        ylim=(0, 460),
        xlim=(-0.5, 8.3),
    )
    said = [
        f"at {n}: "
        + "; ".join(
            f"{w} {', '.join(str(s[str(n)] or 'over 400') for s in steps[w])}"
            for w in WAYS
        )
        for n in (8, 32, 48, 63)
    ]
    return show(
        figure,
        title="Attention learns every distance alike",
        alt=f"Steps of three seeds {'. '.join(said)}.",
        # given: 0.1
        caption="Steps until the first symbol is named (loss below 0.1 nats), three "
        "recorded seeds each. Triangles: not within 400.",
    )


def times(record: Mapping[str, Any]) -> Html:
    """Plot the recorded time of a window by its length."""
    lengths, seconds = record["lengths"], record["seconds"]
    pair = zip(seconds["attention"], seconds["recurrent"], strict=True)
    gaps = [math.log(a / b) for a, b in pair]
    i = next(i for i, (a, b) in enumerate(pairwise(gaps)) if a < 0 <= b)
    part = gaps[i] / (gaps[i] - gaps[i + 1])  # of the way, by straight lines
    crossed = lengths[i] * (lengths[i + 1] / lengths[i]) ** part
    assert all(seconds["convolution"][i] == min(s) for i, s in
               enumerate(zip(*seconds.values(), strict=True)))  # fmt: skip
    ms = {way: [1000 * s for s in seconds[way]] for way in WAYS}
    ax = plot_lines(
        {way: dict(zip(lengths, each, strict=True)) for way, each in ms.items()},
        plt.subplots(figsize=(8.6, 3.8))[1],
        colors=COLOR,
        xlabel="characters in the window",
        ylabel="ms of CPU time",
        xscale="log",
        yscale="log",
    )
    ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    ax.set_yticks([], minor=True)
    return show(
        ax.figure,
        title="The GRU is slower until windows are long",
        caption="Forward and backward, one window (recorded), both axes logarithmic. "
        f"Attention and the GRU cross near {100 * round(crossed / 100):,} characters.",
    )


def check_work(model: nn.Module) -> None:
    """Check at how many characters a position's scores cost as much as its maps."""
    block, d, d_ff = model.blocks.layers[0], 48, 144
    maps = 4 * d * d + 2 * d * d_ff  # multiplications for each position and layer
    equal = maps / (2 * d)  # scores and weighted sums: 2 · n · d
    assert equal == 240
    with FlopCounterMode(display=False) as counter:
        block.feed_forward(torch.zeros(1, 1, d))
        for name in ("query", "key", "value", "output"):
            getattr(block.attention, f"{name}_map")(torch.zeros(1, 1, d))
    assert counter.get_total_flops() == 2 * maps
    print(f"✓ {maps:,} multiplications for the maps of a position; as many for its")
    print(f"  scores and sums at {equal:.0f} characters")
