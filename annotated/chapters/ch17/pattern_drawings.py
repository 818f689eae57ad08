"""Chapter 17's pictures of patterns: what they keep, and how far they reach by layer.

Letters: t positions, l stride, w window (``book/notation.md``), which has as many keys.
"""

from collections.abc import Iterable

import matplotlib.pyplot as plt
import torch
from jaxtyping import Bool
from torch import Tensor

from annotated.page.diagrams import Drawing
from annotated.page.frames import Html, render, require_alt
from annotated.page.notebook import show
from annotated.page.plots import OTHER, THIS
from annotated.sparse import (
    Pattern,
    dilated_pattern,
    fixed_patterns,
    global_pattern,
    local_pattern,
    reach,
    strided_patterns,
)

Panel = tuple[Drawing, str, str]  #: a drawing, its name above it, a note below it


def named(length: int, stride: int, causal: bool = True) -> dict[str, Pattern]:
    """Return the patterns of the first picture by their names."""
    near, every = strided_patterns(stride, causal)
    stretch, ends = fixed_patterns(stride, causal=causal)
    return {
        "full": Pattern(0) if causal else Pattern(),
        "window": local_pattern(stride, causal),
        "dilated": dilated_pattern(stride, 2, causal),
        "strided": near | every,
        "fixed": stretch | ends,
        "window + global": near | global_pattern([0, length // 2], causal),
    }


def share(part: int, whole: int) -> str:
    """Return a ``part`` of a ``whole`` in percent; it's 100 % only if it's all."""
    percent = 100 if part == whole else min(99, round(100 * part / whole))
    return f"{percent}\u00a0%"


def board(mask: Bool[Tensor, "t t"]) -> Drawing:
    """Return a causal mask as squares: coloured where True, grey if skipped."""
    size, t = 12, len(mask)
    drawing = Drawing(size * t + 1, size * t + 1)
    past = torch.ones_like(mask).tril()
    drawing.cells(1, 1, past & ~mask, size=size, color="other", shade=0.16)
    drawing.cells(1, 1, mask, size=size)
    return drawing


def gallery(
    groups: Iterable[tuple[str, list[Panel]]], columns: int, *, alt: str, caption: str
) -> Html:
    """Show drawings in rows, each group below its title.

    Args:
        groups: titles, which may be empty, and panels.
    """
    shown = {"groups": list(groups), "columns": columns, "caption": caption}
    return Html(render("gallery", alt=require_alt(alt), **shown))


# ---- the first picture -------------------------------------------------------------


def hero(length: int = 24, stride: int = 4) -> Html:
    """Draw six causal patterns, and how many pairs each keeps."""
    panels, said, full = [], [], length * (length + 1) // 2
    for name, pattern in named(length, stride).items():
        mask = pattern.mask(length)[0, 0]
        pairs = int(mask.sum())
        note = f"{pairs} pairs, {share(pairs, full)}"
        panels.append((board(mask), name, note))
        said.append(f"{name} {note}")
    return gallery(
        [("", panels)],
        3,
        alt=f"Six triangles of squares, {length} queries by {length} keys. Window: a "
        "band along the diagonal. Dilated: every other diagonal. Strided: a band, and "
        "diagonals. Fixed: small triangles, and columns. Window + global: a band, two "
        f"columns and two rows. Kept: {', '.join(said)}.",
        caption=f"Who sees whom. Each row is a query, each column a key, {length} of "
        f"them; window and stride {stride}. Blue: seen, grey: skipped, blank: later.",
    )


# ---- two hops ----------------------------------------------------------------------


def one_query(length: int = 16, stride: int = 4, query: int = 13) -> Html:
    """Draw what one query sees in the second layer, and what those saw in the first."""
    near, every = (pattern.mask(length)[0, 0] for pattern in strided_patterns(stride))
    drawing, cell, left = Drawing(350, 232), 21, 7
    tops = 24, 102, 180  # of layer 2, layer 1, the text

    def x(position: int) -> float:
        return left + cell * (position + 0.5)

    asked = every[query].nonzero().flatten().tolist()
    told = {j: near[j].nonzero().flatten().tolist() for j in asked}
    heard = {j for each in told.values() for j in each}
    drawing.text(left, 14, f"layer 2: every {stride}th", anchor="start", bold=True)
    drawing.text(left, 64, f"layer 1: the last {stride}", anchor="start", bold=True)
    drawing.text(left, 220, "the text", anchor="start", bold=True)
    lit = {query}, set(asked), heard
    for row, (top, shown) in enumerate(zip(tops, lit, strict=True)):
        for i in range(length):
            color = "query" if row == 0 else "weight"
            shade = 0.3 if i in shown else 0.0
            place = (left + cell * i + 1, top, cell - 2, cell)
            drawing.frame(*place, shade=shade, color=color, dashed=i > query)
            if i in shown:
                drawing.text(x(i), top + 15, str(i), size=12.2)
    for j in asked:
        drawing.arrow((x(query), tops[0] + cell), (x(j), tops[1] - 1), width=1.3)
        for k in told[j]:
            drawing.line((x(j), tops[1] + cell), (x(k), tops[2]), width=1.1)
    listed = ", ".join(map(str, asked))
    spans = "; ".join(f"{j} saw {told[j][0]} to {told[j][-1]}" for j in asked)
    return drawing.figure(
        alt=f"Three rows of {length} positions. In layer 2, position {query} sees "
        f"{listed}. In layer 1, {spans}. Together they are all positions from "
        f"{min(heard)} to {max(heard)}.",
        caption=f"Two hops. In layer 2, position {query} sees {listed}. In layer 1, "
        f"these saw up to {stride} each. Together: all "
        f"{len(heard)}.",
    )


# ---- reach by layer ----------------------------------------------------------------


def compared(length: int, stride: int, causal: bool = True) -> dict[str, Pattern]:
    """Return the patterns whose reach is compared."""
    patterns = named(length, stride, causal)
    first = patterns["window"] | global_pattern([0], causal)
    names = "window", "dilated", "strided", "fixed"
    return {name: patterns[name] for name in names} | {"window + first": first}


#: where :func:`reach_figure` names its lines, by their right ends
PLACES = ((9, 1.07, THIS), (9, 0.68, OTHER), (9, 0.43, OTHER))


def reach_figure(length: int = 64, stride: int = 8) -> Html:
    """Draw the share of pairs reached by layer, causal and in both directions."""
    last = -(-(length - 1) // (stride - 1))  # a window's
    figure, panels = plt.subplots(1, 2, figsize=(8.6, 3.4), sharey=True)
    said, fast = [], "strided, fixed"
    for ax, causal in zip(panels, (True, False), strict=True):
        whole = length * (length + 1) // 2 if causal else length**2
        ends = []
        for name, pattern in compared(length, stride, causal).items():
            heard = reach([pattern.mask(length)], last).sum((1, 2)) / whole
            color = THIS if heard[1] == 1 else OTHER
            look = "--" if name in ("dilated", "window + first") else "-"
            line = [1 / length if not causal else 2 / (length + 1), *heard.tolist()]
            ax.plot(range(last + 1), line, look, color=color, marker=".")
            ends.append(f"{name} {heard[0]:.0%}, {heard[1]:.0%}, {heard[-1]:.0%}")
        way = "causal" if causal else "both directions"
        ax.set_title(way)
        names = (fast, "window, window + first")
        names = names if causal else (f"{fast}, window + first", "window")
        for (x, y, color), line in zip(PLACES, (*names, "dilated"), strict=True):
            ax.text(x, y, line, color=color, ha="right", va="center")
        ax.set(xlabel="layers", xlim=(0, last), ylim=(0, 1.15))
        ax.set_yticks((0, 0.5, 1), ("0 %", "50 %", "100 %"))
        said.append(f"{way}: {'; '.join(ends)}")
    panels[0].set_ylabel("pairs reached")
    return show(
        figure,
        title="Strided and fixed attention reach everything in two layers",
        alt="Share of pairs reached, by layer, in two panels. After one layer, two, "
        f"and {last}: {'. '.join(said)}.",
        caption=f"{length} positions, window and stride {stride}. The dilated window "
        "sees every other key, so it never reaches odd distances. A first token that "
        "everybody sees helps only where it sees everybody, too.",
    )


# ---- three uses of the strided pattern ---------------------------------------------


def uses(length: int, stride: int) -> dict[str, list[Tensor]]:
    """Return the masks of three uses of strided attention, by name.

    Returns:
        Of each use, a mask for each layer, or one for all: ``(t, t)``, or
        ``(1, 2, t, t)`` if the two heads differ.
    """
    a, b = (pattern.mask(length)[0, 0] for pattern in strided_patterns(stride))
    return {
        "both in every head": [a | b],
        "one step per head": [torch.stack([a, b])[None]],
        "one step per layer": [a, b],
    }
