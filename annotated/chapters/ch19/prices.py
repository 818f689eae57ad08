"""Chapter 19: what the recorded runs say of quality and of time."""

from collections.abc import Mapping
from statistics import mean
from typing import Any

import matplotlib.pyplot as plt

from annotated.page.frames import Html
from annotated.page.notebook import show, show_table
from annotated.page.plots import COLOURS, OTHER, THIS, name_lines
from annotated.page.records import grouped

Record = Mapping[str, Any]
BATCHES = {1: "one word at a time", 32: "32 words at a time"}
#: what the chart draws: name, colour, and which rows of the record it is made of
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "one length": (THIS, {"model": "mask-predict", "candidates": 1}),
    "five lengths": (COLOURS["query"], {"model": "mask-predict", "candidates": 5}),
    "diffusion": (COLOURS["value"], {"order": "surest"}),
    "symbol by symbol": (OTHER, {"model": "autoregressive"}),
    "deep encoder": (COLOURS["minus"], {"model": "deep encoder"}),
}


def seeds(record: Record) -> str:
    """Say how many seeds a record has."""
    count = len({row["seed"] for row in record["rows"]})
    return "One seed" if count == 1 else f"Means of {count} seeds"


def points(record: Record, batch: int, want: Mapping[str, Any]) -> list[tuple]:
    """Return (ms a word, words wrong, what stands at it) for each way of writing.

    Words that are wrong are a mean of the seeds; times are those of the first seed.
    """
    chosen = [row for row in record["rows"] if want.items() <= row.items()]
    found = []
    for (rounds, method), runs in grouped(chosen, "rounds", "method").items():
        [took] = [run[f"ms_{batch}"] for run in runs if f"ms_{batch}" in run]
        name = str(rounds or ("beam" if "beam" in method else "greedy"))
        found.append((took, mean(run["words"] for run in runs), name))
    return sorted(found)


def price_chart(record: Record) -> Html:
    """Plot wrong words against time, one word at a time and 32 of them."""
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.2), sharey=True)
    for ax, (batch, title) in zip(axes, BATCHES.items(), strict=True):
        for i, (name, (color, want)) in enumerate(WAYS.items()):
            some = points(record, batch, want)
            x, y = [one[0] for one in some], [100 * one[1] for one in some]
            style = ("o-", "s--", "^:", "D-", "v-")[i]
            ax.plot(x, y, style, ms=6, color=color, label=name)
            for took, wrong, mark in some:
                if mark.isdigit() and name == "one length" and batch == 1:
                    place = {"textcoords": "offset points", "ha": "center"}
                    ax.annotate(mark, (took, 100 * wrong), (0, 9), **place)
        ax.set(title=f"Wrong, %, {title}", xscale="log")
        ax.set_xlabel("CPU milliseconds per word")
        low, high = ax.get_xlim()
        ticks = [t for t in (0.2, 0.5, 1, 2, 5, 10, 20, 50) if low <= t <= high]
        ax.set_xticks([], minor=True)
        ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    name_lines(axes[1])
    return show(
        figure,
        title="What a wrong word less costs",
        caption=f"{seeds(record)}. One length and five: mask–predict in 1, 2, 4 and 10 "
        "rounds. The slower of two points: a beam of 5.",
    )


def verdict(record: Record) -> str:
    """Say when rounds are faster, and for whom, as far as these runs go."""

    def greedy(batch: int, model: str) -> tuple:
        found = points(record, batch, {"model": model, "method": "greedy"})
        return found[0]

    parts = []
    for batch, title in BATCHES.items():
        took, wrong, _ = greedy(batch, "autoregressive")
        shallow = greedy(batch, "deep encoder")
        several = [
            (*one, c)
            for c in (1, 3, 5)
            for one in points(record, batch, {"candidates": c})
        ]
        first, best = min(several), min(several, key=lambda one: one[1])
        near = sorted(one for one in several if one[1] <= wrong + 0.01)
        if near:
            found = "The cheapest that come within a percentage point of greedy are "
        else:
            found = "None comes within a percentage point of greedy. The best are "
        ms, error, rounds, lengths = near[0] if near else best
        plural = "s" * (lengths > 1)
        parts.append(
            f"**{title[0].upper()}{title[1:]}**, greedy decoding symbol by symbol "
            f"takes {took:.2g} ms per word and has {wrong:.1%} of the words wrong. One "
            f"round takes {first[0]:.2g} ms and has {first[1]:.1%} wrong. {found}"
            f"{rounds} rounds with {lengths} length{plural}: {ms:.2g} ms, {error:.1%}. "
            f"The deep encoder with one layer: {shallow[0]:.2g} ms, {shallow[1]:.1%}."
        )
    return "\n\n".join(parts)


def distilled_table(record: Record) -> Html:
    """Show what mask-predict has wrong and mixes, after the dictionary and a model."""
    names = {"dictionary": "the dictionary"}
    found = {(r["learned from"], r["rounds"]): r for r in record["rows"]}
    rows = [
        (
            names.get(name, "what a model wrote"),
            f"{targets:.2f}",
            *(f"{found[name, rounds]['words']:.1%}" for rounds in (1, 4, 10)),
            *(f"{found[name, rounds]['several_mixed']:.1%}" for rounds in (1, 10)),
        )
        for name, targets in record["targets"].items()
    ]
    header = ("learned from", "answers per word", "wrong in 1 round", "in 4", "in 10")
    caption = f"Mixed: of {record['several']:,} test words with several answers of one "
    caption += (
        "length, those in which every sound is some answer's, and the whole none's."
    )
    return show_table((*header, "mixed in 1", "in 10"), rows, caption)


def gaps_table(record: Record) -> Html:
    """Show how often a gap is filled right, by the side that a model may see."""
    asked = {"middle": f"{record['gap']} in the middle", "beginning": "the first half"}
    rows = [
        (
            f"{asked[row['gap']]}, {row['words']}",
            f"{row['items']:,}",
            f"{row['autoregressive']:.0%}",
            f"{row['diffusion']:.0%}",
        )
        for row in record["gaps"]
    ]
    header = ("missing sounds", "words", "from the left alone", "both sides")
    caption = "Gaps filled right. The spelling is given, and all other sounds; the "
    return show_table(header, rows, caption + "left model sees those before the gap.")
