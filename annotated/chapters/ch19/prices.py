"""Chapter 19: what the recorded runs say of quality and of time."""

from collections.abc import Mapping
from statistics import mean
from typing import Any

import matplotlib.pyplot as plt

from annotated.page.frames import Html
from annotated.page.notebook import show, show_table
from annotated.page.plots import COLOURS, OTHER, THIS, name_lines
from annotated.page.records import dots, grouped, span

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
        title="A few rounds are fast, and far behind",
        caption=f"{seeds(record)}. One length and five: mask–predict in 1, 2, 4 and 10 "
        "rounds. The slower of two points: a beam of 5.",
    )


def compared(record: Record, batch: int) -> dict[str, Any]:
    """Return greedy decoding of both kinds, and mask-predict: (ms, wrong, rounds)."""
    by_symbol, shallow = (
        points(record, batch, {"model": model, "method": "greedy"})[0]
        for model in ("autoregressive", "deep encoder")
    )
    one = points(record, batch, {"model": "mask-predict", "candidates": 1})
    faster = [point for point in one if point[0] < 0.9 * by_symbol[0]]
    return {"greedy": by_symbol, "shallow": shallow, "one": one, "faster": faster}


def verdict(record: Record) -> str:
    """Say what rounds take and get wrong, beside greedy decoding."""
    parts = []
    for batch, title in BATCHES.items():
        found = compared(record, batch)
        ms, wrong, _ = found["greedy"]
        fast, *_, slow = found["faster"]
        best = min(found["one"], key=lambda one: one[1])
        parts.append(
            f"**{title[0].upper()}{title[1:]}**, greedy decoding takes {ms:.1f} ms per "
            f"word and has {wrong:.1%} of the words wrong. One round takes "
            f"{fast[0]:.1f} ms and has {fast[1]:.1%} wrong. Up to {slow[2]} rounds are "
            f"faster than greedy, by a tenth or more; {best[2]} take {best[0]:.1f} ms, "
            f"and still have {best[1]:.1%} wrong. The deep encoder with one layer: "
            f"{found['shallow'][0]:.1f} ms, {found['shallow'][1]:.1%}."
        )
    return "\n\n".join(parts)


def check_verdict(record: Record) -> None:
    """Check what the page concludes from the record."""
    alone, full = (compared(record, batch) for batch in BATCHES)
    ratios = [found["one"][0][0] / found["greedy"][0] for found in (alone, full)]
    print(
        f"measured: one round takes {ratios[0]:.2f} and {ratios[1]:.2f} of greedy's ms"
    )
    assert max(ratios) < 1
    assert len(full["faster"]) < len(alone["faster"])
    for found in (alone, full):
        assert found["one"][-1][0] > found["greedy"][0]  # ten rounds
        assert min(wrong for _, wrong, _ in found["one"]) > found["greedy"][1] + 0.05
        assert found["shallow"][0] < found["greedy"][0]
        assert found["shallow"][1] < found["greedy"][1] + 0.05


def distilled_table(record: Record) -> Html:
    """Show what mask-predict has wrong after the dictionary, and after a model."""
    runs = grouped(record["rows"], "learned from", "rounds")
    rows = [
        (
            {"dictionary": "the dictionary"}.get(name, "what a model wrote"),
            f"{targets:.2f}",
            *(
                f"{dots((100 * r['words'] for r in runs[name, rounds]), '.1f')} %"
                for rounds in (1, 4, 10)
            ),
        )
        for name, targets in record["targets"].items()
    ]
    header = ("learned from", "answers per word", "1 round", "4 rounds", "10 rounds")
    count = len(record["teachers"])
    caption = f"Words wrong by rounds, with one length. {count} seeds."
    return show_table(header, rows, caption)


def distilled_words(record: Record) -> str:
    """Say what distillation changed, and what it didn't."""
    runs = grouped(record["rows"], "learned from", "rounds")
    before, after = (runs[name, 1] for name in ("dictionary", "model"))
    gains = [
        100 * (old["words"] - new["words"])
        for old, new in zip(before, after, strict=True)
    ]
    mixed = [row["several_mixed"] for row in record["rows"]]
    assert min(gains) > 0 and max(mixed) < 0.02
    right = [100 * teacher["written_right"] for teacher in record["teachers"]]
    return (
        f"One round gains {span(gains, '.1f')} percentage points, from teachers that "
        f"are right about {span(right, '.0f')} % of the words that they wrote. But not "
        f"because nothing is mixed any more: of {record['several']} test words with "
        f"several answers of one length, at most {max(mixed):.1%} are mixed, before "
        "and after. With a length that is decided, and the likeliest sound everywhere, "
        "mixtures are rare here. Perhaps the teacher gives rules with fewer "
        "exceptions; that we haven't measured."
    )


def gaps_table(record: Record) -> Html:
    """Show how often a gap is filled right, by the sides that a model is given."""
    asked = {"middle": f"{record['gap']} in the middle", "beginning": "the first half"}
    rows = [
        (
            f"{asked[row['gap']]}, {row['words']}",
            f"{row['items']:,}",
            *(f"{row[kind]:.0%}" for kind in ("alone", "diffusion", "autoregressive")),
        )
        for row in record["gaps"]
    ]
    header = ("missing sounds, of words", "words", "nothing after", "both sides")
    caption = (
        "Gaps filled right; the spelling is given. First masked diffusion, without "
    )
    caption += (
        "and with what follows the gap; then the autoregressive model, which sees "
    )
    caption += "what is before it. One seed."
    return show_table((*header, "symbol by symbol"), rows, caption)


def check_gaps(record: Record) -> None:
    """Check what the page concludes from the record."""
    for row in record["gaps"]:
        gain = row["diffusion"] - row["alone"]
        assert 0 < gain < 0.04 and row["diffusion"] < row["autoregressive"], row
    print(f"measured: so it is for {len(record['gaps'])} kinds of gaps")
