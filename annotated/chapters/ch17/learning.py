"""Chapter 17, what is learned under a pattern: its pictures, tables and sentences.

Letters: t positions, w width of an image (``book/notation.md``). Records are those of
``benchmarks/ch17/copy_distance.py`` and ``images.py``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from jaxtyping import Bool
from matplotlib.patches import Rectangle
from torch import Tensor

from annotated.chapters.ch17.patterns import SIDE, copy_patterns, image_patterns
from annotated.page.frames import Html
from annotated.page.notebook import show, show_table
from annotated.page.plots import OTHER, THIS
from annotated.page.records import dots, grouped
from annotated.page.svg import COLOURS
from annotated.sparse import Pattern

# ---- copying from a distance -----------------------------------------------------


def limit(reach: float, symbols: int) -> float:
    """Return the largest share that can be right: what is heard, and guesses."""
    return reach + (1 - reach) / symbols


def percent(shares: Sequence[float]) -> str:
    """Return one number of percent, or the lowest and the highest if they differ."""
    low, high = (f"{100 * share:.0f}" for share in (min(shares), max(shares)))
    return low if low == high else f"{low}–{high}"


def copy_figure(record: Mapping[str, Any]) -> Html:
    """Draw the shares that are copied right, by pattern and distance."""
    runs = grouped(record["rows"], "layers", "pattern", "distance")
    names, symbols = [*copy_patterns()], record["config"]["symbols"]
    distances = list(dict.fromkeys(row["distance"] for row in record["rows"]))
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.6), sharey=True)
    for layers, ax in enumerate(axes, start=1):
        for y, name in enumerate(names):
            for x, distance in enumerate(distances):
                rows = runs[layers, name, distance]
                shares, reach = [row["right"] for row in rows], rows[0]["reach"]
                words = percent(shares)
                if 0 < reach < 1:
                    words += f"\nmax {100 * limit(reach, symbols):.0f}"
                style = {"facecolor": THIS, "alpha": 0.45 * min(shares)}
                ax.add_patch(Rectangle((x, y), 1, 1, lw=0, **style))
                hatch = None if reach else "///"
                style = {"fill": False, "edgecolor": COLOURS["rule"], "hatch": hatch}
                ax.add_patch(Rectangle((x, y), 1, 1, **style))
                ax.text(x + 0.5, y + 0.5, words, ha="center", va="center")
        ax.set_xlim(0, len(distances))
        ax.set_ylim(len(names), 0)
        ax.set_xticks([x + 0.5 for x in range(len(distances))], distances)
        ax.set_yticks([y + 0.5 for y in range(len(names))], names)
        ax.grid(False)
        ax.spines["bottom"].set_visible(False)
        ax.set_xlabel("distance")
        ax.set_title(("one layer", "two layers")[layers - 1])
    return show(
        figure,
        alt="Two grids of patterns by distances, with one layer and two. Cells where "
        "nothing is heard are hatched and hold about "
        f"{100 / symbols:.0f} percent. {copy_said(record)}",
        caption="Percent of symbols copied right; two numbers are the lowest and the "
        "highest of three seeds. Hatched: the symbol can't be heard. Max: the most "
        "that is possible where only some positions hear it. Windows and strides are "
        f"{record['config']['stride']}, and the dilated window sees every "
        f"{record['config']['stride'] // 2}th key. {steps_said(record)}",
        title="What isn't heard isn't copied; what is heard has to be found",
    )


def steps_said(record: Mapping[str, Any]) -> str:
    """Return how long all were trained, and what more steps make of one."""
    (_, one), (_, two) = sorted(record["config"]["steps"].items())
    return (
        f"One layer trains for {one} steps, two for {two}. After "
        f"{record['config']['longer']:,}, two layers with the fixed pattern have "
        f"{percent(copy_facts(record)['longer'])} % at the largest distance."
    )


def copy_facts(record: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return the shares that are right: where nothing is heard, and so on.

    Returns:
        "unheard"; "one layer" and "two layers", where every position hears, by all but
        the fixed pattern; "short", how much is missing to the limit where only some
        positions hear, with one layer; "fixed", with two layers at the distances that
        only the ends of stretches hand on; "longer".
    """
    rows, symbols = record["rows"], record["config"]["symbols"]
    stride = record["config"]["stride"]
    fixed = [r for r in rows if "fixed" in r["pattern"] and r["layers"] == 2]
    whole = [r for r in rows if r["reach"] == 1 and r not in fixed]
    return {
        "unheard": [r["right"] for r in rows if r["reach"] == 0],
        "one layer": [r["right"] for r in whole if r["layers"] == 1],
        "two layers": [r["right"] for r in whole if r["layers"] == 2],
        "short": [
            limit(r["reach"], symbols) - r["right"]
            for r in rows
            if r["layers"] == 1 and 0 < r["reach"] < 1
        ],
        "fixed": [r["right"] for r in fixed if r["distance"] > stride],
        "longer": [r["right"] for r in record["longer"]],
    }


def copy_said(record: Mapping[str, Any]) -> str:
    """Return what the runs of copying have in common, and the exception."""
    facts, symbols = copy_facts(record), record["config"]["symbols"]
    return (
        f"Where nothing is heard, {percent(facts['unheard'])} % are right, as by "
        f"guessing ({100 / symbols:.0f} %). Where every position hears the symbol, "
        f"one layer copies {percent(facts['one layer'])} %, and two layers "
        f"{percent(facts['two layers'])} %, except with the fixed pattern. Beyond "
        f"{record['config']['stride']} positions, where everything has to pass through "
        f"the ends of its stretches, only {percent(facts['fixed'])} % are right (and "
        f"{percent(facts['longer'])} % at the largest distance after "
        f"{record['config']['longer']:,} steps). Where only some positions hear the "
        f"symbol, one layer stays up to {100 * max(facts['short']):.0f} points below "
        "the most that's possible."
    )


# ---- glyphs, pixel by pixel ------------------------------------------------------


SIGHT = {
    "row": "row",
    "column": "column",
    "row and column": "row and column",
    "column of the pixel read": "one pixel off",
    "everything": "everything",
}


def sight_figure(image: Bool[Tensor, "_ _"], row: int = 9, column: int = 9) -> Html:
    """Draw what the prediction of one pixel sees under each pattern."""
    figure, axes = plt.subplots(1, len(SIGHT), figsize=(8.6, 2.2))
    target, said = row * SIDE + column, []
    for ax, (name, title) in zip(axes, SIGHT.items(), strict=True):
        seen = seen_pixels(image_patterns()[name], target)
        _pixels(ax, image, read=target)
        for pixel in seen:
            place = (pixel % SIDE, pixel // SIDE)
            style = {"color": COLOURS["key"], "alpha": 0.6, "lw": 0}
            ax.add_patch(Rectangle(place, 1, 1, **style))
        style = {"fill": False, "edgecolor": COLOURS["query"], "lw": 2.5}
        ax.add_patch(Rectangle((column, row), 1, 1, **style))
        ax.set_title(title)
        _frame(ax)
        said.append(f"{title}: {len(seen)} pixels")
    return show(
        figure,
        alt="The same letter five times, with the pixel to predict in a frame and the "
        f"pixels that one layer shows it shaded. {'; '.join(said)}.",
        caption="Framed: the pixel to predict. Pale: not read yet. Shaded: the pixels "
        "that the two heads of one layer can see. “Column” shows the last pixel, "
        "too. “One pixel off” is a row and the column of the pixel before.",
        title="Five views of the same past",
    )


def seen_pixels(heads: Sequence[Pattern], target: int) -> list[int]:
    """Return the pixels that one layer shows to the prediction of a pixel."""
    length = SIDE * SIDE
    query = target - 1
    return [
        j
        for j in range(length)
        if any(bool(head.mask(length)[0, 0, query, j]) for head in heads)
    ]


def _pixels(ax: Any, image: Tensor, read: int) -> None:
    """Draw the black pixels of an image; those that weren't read yet are pale."""
    for y, x in image.nonzero().tolist():
        style = {"color": COLOURS["ink"], "lw": 0}
        style["alpha"] = 1.0 if SIDE * y + x < read else 0.25
        ax.add_patch(Rectangle((x, y), 1, 1, **style))


def _frame(ax: Any) -> None:
    ax.set_xlim(-0.5, SIDE + 0.5)
    ax.set_ylim(SIDE + 0.5, -0.5)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines["bottom"].set_visible(False)


def images_live_table(found: Mapping[str, float]) -> Html:
    """Show bits per pixel of models that were just trained, by pattern."""
    return show_table(
        ("pattern", "bits per pixel"),
        [(name, f"{bits:.3f}") for name, bits in found.items()],
        caption="Held-out characters, after equally many steps. Lower is better.",
    )


def image_bits(record: Mapping[str, Any], name: str, times: int = 1) -> list[float]:
    """Return the bits per pixel of all seeds, in their order."""
    runs = grouped(record["rows"], "pattern", "times")[name, times]
    return [row["bits"] for row in runs]


def stride_bits(record: Mapping[str, Any]) -> dict[int, list[float]]:
    """Return the bits per pixel of all seeds, by the width of which the column is."""
    groups = grouped(record["strides"], "stride").items()
    return {key[0]: [row["bits"] for row in rows] for key, rows in groups}


def images_figure(record: Mapping[str, Any]) -> Html:
    """Draw bits per pixel by pattern and by stride, a dot for each seed."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.3), sharex=False)
    names, said, others = [*SIGHT], [], []
    for y, name in enumerate(names):
        bits = image_bits(record, name)
        said.append(f"{SIGHT[name]} {dots(bits, '.3f')}")
        left.plot(bits, [y] * len(bits), "o", color=THIS, ms=7)
    left.set_yticks(range(len(names)), SIGHT.values())
    left.set_ylim(len(names) - 0.5, -0.5)
    left.grid(False)
    left.grid(True, axis="x")
    left.set_xlabel("bits per pixel")
    left.set_title("patterns")
    for stride, bits in stride_bits(record).items():
        fits = stride == SIDE
        style = {"color": THIS if fits else OTHER, "marker": "o" if fits else "s"}
        others.append(f"{stride}: {dots(bits, '.3f')}")
        right.plot([stride] * len(bits), bits, ls="", ms=7, **style)
    right.set_xticks([*stride_bits(record)])
    right.set_xlabel("stride of the column's head")
    right.set_ylabel("bits per pixel")
    right.set_title("strides")
    return show(
        figure,
        alt=f"Two charts of bits per pixel. By pattern: {'; '.join(said)}. By stride: "
        f"{'; '.join(others)}.",
        caption="Held-out characters, three seeds. Right: a row's head and a column's "
        f"head whose stride fits the image ({SIDE}, blue circles) or doesn't (grey "
        f"squares). Row and column, left: {later_said(record)}.",
        title="A column helps if it's the image's own",
    )


def later_said(record: Mapping[str, Any]) -> str:
    """Return how far both are ahead of everything after more steps."""
    times, names = record["longer"], ("everything", "row and column")
    pairs = zip(*(image_bits(record, name, times) for name in names), strict=True)
    longer = [everything - both for everything, both in pairs]
    return (
        f"with {times} times as many steps, they beat “everything” by "
        f"{min(longer):.3f} to {max(longer):.3f} bits"
    )
