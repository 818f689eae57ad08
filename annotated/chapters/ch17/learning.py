"""Chapter 17, what is learned under a pattern: its pictures, tables and sentences.

Letters: t positions, w width of an image (``book/notation.md``).
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
from annotated.page.records import grouped
from annotated.page.svg import COLOURS
from annotated.sparse import Pattern

# ---- copying from a distance -----------------------------------------------------


def limit(reach: float, symbols: int) -> float:
    """Return the largest share that can be right: what is heard, and guesses.

    Args:
        reach: share of positions that have heard the symbol they should name.
        symbols: how many there are, all equally likely.
    """
    return reach + (1 - reach) / symbols


def percent(shares: Sequence[float]) -> str:
    """Return one number of percent, or the lowest and the highest if they differ."""
    low, high = (f"{100 * share:.0f}" for share in (min(shares), max(shares)))
    return low if low == high else f"{low}–{high}"


def copy_live_table(
    found: Mapping[tuple[str, int, int], tuple[float, float]], symbols: int
) -> Html:
    """Show what models that were just trained copy, beside the most that they can.

    Args:
        found: by pattern, layers and distance: the reach, and the share that is right.
        symbols: how many there are.
    """
    return show_table(
        ("pattern", "layers", "distance", "heard", "best possible", "right"),
        [
            (name, layers, distance, f"{reach:.0%}")
            + (f"{limit(reach, symbols):.0%}", f"{right:.0%}")
            for (name, layers, distance), (reach, right) in found.items()
        ],
        caption="Heard: the share of positions that the symbol reaches at all, by the "
        "product of the masks.",
    )


def copy_figure(record: Mapping[str, Any]) -> Html:
    """Draw the shares that are copied right, by pattern and distance.

    Args:
        record: of ``benchmarks/ch17/copy_distance.py``.
    """
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
        f"that is possible where only some positions hear it. {steps_said(record)}",
        title="What isn't heard isn't copied; what is heard has to be found",
    )


def steps_said(record: Mapping[str, Any]) -> str:
    """Return how long all were trained, and what more steps make of one.

    Args:
        record: of ``benchmarks/ch17/copy_distance.py``.
    """
    (_, one), (_, two) = sorted(record["config"]["steps"].items())
    return (
        f"One layer trains for {one} steps, two for {two}. After "
        f"{record['config']['longer']:,}, two layers with the fixed pattern have "
        f"{percent(copy_facts(record)['longer'])} % at the largest distance."
    )


def copy_facts(record: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return the shares that are right: where nothing is heard, and so on.

    Args:
        record: of ``benchmarks/ch17/copy_distance.py``.

    Returns:
        "unheard"; "one layer" and "two layers", where every position hears, by all but
        the fixed pattern; "short", how much is missing to the limit where only some
        positions hear, with one layer; "gained", the part of the possible gain over
        guessing that one layer has of the fixed pattern's far keys; "fixed", with two
        layers at the distances that only the ends of stretches hand on; "longer".
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
        "gained": [
            (r["right"] - 1 / symbols) / (limit(r["reach"], symbols) - 1 / symbols)
            for r in rows
            if "fixed" in r["pattern"] and r["layers"] == 1 and r["distance"] > stride
        ],
        "fixed": [r["right"] for r in fixed if r["distance"] > stride],
        "longer": [r["right"] for r in record["longer"]],
    }


def copy_said(record: Mapping[str, Any]) -> str:
    """Return what the runs of copying have in common, and the exception.

    Args:
        record: of ``benchmarks/ch17/copy_distance.py``.
    """
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


def check_copies(record: Mapping[str, Any]) -> None:
    """Prove what the page says of all runs of copying.

    Args:
        record: of ``benchmarks/ch17/copy_distance.py``.
    """
    facts, guess = copy_facts(record), 1 / record["config"]["symbols"]
    assert max(abs(right - guess) for right in facts["unheard"]) < 0.02
    assert min(facts["one layer"] + facts["two layers"]) > 0.8
    assert max(facts["gained"]) < 0.6
    assert max(facts["fixed"]) < 0.4 < min(facts["longer"])
    print("✓ unheard: guesses; heard: most or all; fixed: few, and more of them later")


# ---- glyphs, pixel by pixel ------------------------------------------------------


SIGHT = {
    "row": "row",
    "column": "column",
    "row and column": "row and column",
    "column of the pixel read": "one pixel off",
    "everything": "everything",
}


def sight_figure(image: Bool[Tensor, "_ _"], row: int = 9, column: int = 9) -> Html:
    """Draw what the prediction of one pixel sees under each pattern.

    Args:
        image: of a glyph.
        row: of the pixel that is predicted, from the top.
        column: of that pixel.
    """
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
        "that one layer can show, over both heads. “Column” shows the last pixel, "
        "too. “One pixel off” is a row and the column of the pixel before.",
        title="Five views of the same past",
    )


def seen_pixels(heads: Sequence[Pattern], target: int) -> list[int]:
    """Return the pixels that one layer shows to the prediction of a pixel.

    Args:
        heads: their patterns.
        target: number of the pixel, from the top left; it's predicted one before.
    """
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
    """Show bits per pixel of models that were just trained, by pattern.

    Args:
        found: bits by the name of the pattern.
    """
    return show_table(
        ("pattern", "bits per pixel"),
        [(name, f"{bits:.3f}") for name, bits in found.items()],
        caption="Held-out characters, after equally many steps. Lower is better.",
    )


def image_bits(record: Mapping[str, Any], name: str, times: int = 1) -> list[float]:
    """Return the bits per pixel of all seeds, in their order.

    Args:
        record: of ``benchmarks/ch17/images.py``.
        name: of the pattern.
        times: how many times as many steps.
    """
    runs = grouped(record["rows"], "pattern", "times")[name, times]
    return [row["bits"] for row in runs]


def stride_bits(record: Mapping[str, Any]) -> dict[int, list[float]]:
    """Return the bits per pixel of all seeds, by the width of which the column is.

    Args:
        record: of ``benchmarks/ch17/images.py``.
    """
    groups = grouped(record["strides"], "stride").items()
    return {key[0]: [row["bits"] for row in rows] for key, rows in groups}


def gains(record: Mapping[str, Any], worse: str, better: str, times: int = 1) -> list:
    """Return by how many bits one pattern is better than another, seed by seed.

    Args:
        record: of ``benchmarks/ch17/images.py``.
        worse: name of the one.
        better: name of the other.
        times: how many times as many steps.
    """
    pairs = (image_bits(record, name, times) for name in (worse, better))
    return [a - b for a, b in zip(*pairs, strict=True)]


def check_strides(record: Mapping[str, Any]) -> None:
    """Prove that the images' own width is the best stride, with every seed.

    Args:
        record: of ``benchmarks/ch17/images.py``.
    """
    bits = stride_bits(record)
    others = [one for stride, row in bits.items() if stride != SIDE for one in row]
    assert max(bits[SIDE]) < min(others) - 0.01
    print(f"✓ {len(bits)} strides: {SIDE} is ahead of all others by 0.01 and more")


def images_figure(record: Mapping[str, Any]) -> Html:
    """Draw bits per pixel by pattern and by stride, a dot for each seed.

    Args:
        record: of ``benchmarks/ch17/images.py``.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.3), sharex=False)
    names = [*SIGHT]
    for y, name in enumerate(names):
        bits = image_bits(record, name)
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
        right.plot([stride] * len(bits), bits, ls="", ms=7, **style)
    right.set_xticks([*stride_bits(record)])
    right.set_xlabel("stride of the column's head")
    right.set_ylabel("bits per pixel")
    right.set_title("strides")
    return show(
        figure,
        alt=f"Two charts of bits per pixel, three dots each. {images_said(record)}",
        caption="Held-out characters, three seeds. Right: a row's head and a column's "
        f"head whose stride fits the image ({SIDE}, blue circles) or doesn't (grey "
        f"squares). Row and column, left: {later_said(record)}.",
        title="A column helps if it's the image's own",
    )


def later_said(record: Mapping[str, Any]) -> str:
    """Return how far both are ahead of everything after more steps.

    Args:
        record: of ``benchmarks/ch17/images.py``.
    """
    times = record["longer"]
    longer = gains(record, "everything", "row and column", times)
    lead = f"{min(longer):.3f} to {max(longer):.3f} bits"
    if min(longer) > 0:
        return f"with {times} times as many steps, they beat “everything” by {lead}"
    return (
        f"with {times} times as many steps, their lead over “everything” is "
        f"{lead}: not a lead with every seed"
    )


def images_said(record: Mapping[str, Any]) -> str:
    """Return what holds for all seeds that read glyphs.

    Args:
        record: of ``benchmarks/ch17/images.py``.
    """
    both = "row and column"
    names = "row", "everything", "column"
    row, everything, column = (gains(record, name, both) for name in names)
    off = gains(record, "row", "column of the pixel read")
    strides = stride_bits(record)
    wrong = min(min(bits) for stride, bits in strides.items() if stride != SIDE)
    return (
        f"With every seed, row and column together are {min(row):.3f} to "
        f"{max(row):.3f} bits per pixel better than the row alone, and "
        f"{min(everything):.3f} to {max(everything):.3f} better than everything; "
        f"{later_said(record)}. The column alone comes within {max(column):.3f} of the "
        f"two together, but a column that is one pixel off improves the row by only "
        f"{min(off):.3f} to {max(off):.3f}. The best run with a wrong stride has "
        f"{wrong:.3f} bits, the worst with the right one {max(strides[SIDE]):.3f}."
    )
