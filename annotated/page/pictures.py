"""Pictures of matrices with their numbers, and of blocks with shapes on their arrows.

A picture is computed from the tensors of the page, so it cannot disagree with them. It
is plain HTML: numbers stay readable on a phone, where a chain wraps, and in the dark.
Colour only repeats what the numbers say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from annotated import require
from annotated.page.frames import Html, render, require_alt


@dataclass(frozen=True)
class Matrix:
    """A matrix as it is drawn.

    Args:
        values: ``(t, k)``; a vector is drawn as one row.
        name: what stands below it.
        rows: a label for each row.
        columns: a label for each column.
        row: number of the row that is lit; the others fade.
        column: number of the column that is lit.
        mask: ``(t, k)``; where it is False, a cell is hatched and holds no number.
        heads: equal parts of the width that a gap tells apart.
        weights: values lie between 0 and 1, and white is 0; otherwise colours tell
            negative from positive numbers.
        digits: most digits behind the point; all cells but zeros and ones show
            equally many.
        narrow: cells are as narrow as two digits: eighteen fit a page.
        skip: of the cells, read row by row as one line, the first that are left out.
        cut: length of the pieces that the rest is cut into; a bar begins each.
        wrong: ``(t, k)``; where it is True, a number is underlined, and red.
        framed: ``(t, k)``; where it is True, a cell is framed, and its number bold.

    Raises:
        ValueError: if labels, mask or heads do not fit the values.
    """

    values: Tensor | Sequence
    name: str = ""
    rows: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    row: int | None = None
    column: int | None = None
    mask: Bool[Tensor, "..."] | None = None
    heads: int = 1
    weights: bool = False
    digits: int = 2
    narrow: bool = False
    skip: int = 0
    cut: int = 0
    wrong: Bool[Tensor, "..."] | None = None
    framed: Bool[Tensor, "..."] | None = None

    def __post_init__(self):
        t, k = self.table.shape
        for name, labels, size in (
            ("rows", self.rows, t),
            ("columns", self.columns, k),
        ):
            if labels is not None and len(labels) != size:
                raise ValueError(f"{name} must hold {size} labels, got {len(labels)}")
        if self.mask is not None and tuple(self.mask.shape) != (t, k):
            shape = tuple(self.mask.shape)
            raise ValueError(f"mask must have the shape {(t, k)}, got {shape}")
        require.divides(heads=self.heads, columns=k)

    @property
    def table(self) -> Float[Tensor, "t k"]:
        """Return the values as two axes of numbers, ``(t, k)``."""
        return torch.atleast_2d(torch.as_tensor(self.values).detach().cpu().float())

    def cells(self) -> list[list[dict[str, Any]]]:
        """Return what the template draws: each cell's text, shade and classes."""
        table = self.table
        largest = 1.0 if self.weights else max(table.abs().max().item(), 1e-9)
        texts = [[number(x, self.digits) for x in row] for row in table.tolist()]
        for i, j in product(*map(range, table.shape)):
            if self.mask is not None and not self.mask[i, j]:
                texts[i][j] = ""
        decimals = max(len(text.partition(".")[2]) for row in texts for text in row)
        return [
            [
                self._cell(i, j, value, largest, _same_decimals(texts[i][j], decimals))
                for j, value in enumerate(row)
            ]
            for i, row in enumerate(table.tolist())
        ]

    def _cell(
        self, i: int, j: int, value: float, largest: float, text: str
    ) -> dict[str, Any]:
        chosen = self.row is not None or self.column is not None
        lit = i == self.row or j == self.column
        width = self.table.shape[1] // self.heads
        rest = i * self.table.shape[1] + j - self.skip  # place in what isn't skipped
        kinds = {
            "hidden": not text,
            "lit": lit or (self.framed is not None and self.framed[i, j]),
            "faded": chosen and not lit,
            "head": j % width == 0 and j > 0,
            "skipped": rest < 0,
            "cut": self.cut and rest >= 0 and rest % self.cut == 0,
            "wrong": self.wrong is not None and self.wrong[i, j],
        }
        return {
            "text": text,
            "sign": "negative" if value < 0 else "positive",
            "shade": round(0.5 * min(abs(value) / largest, 1.0), 3),
            "kinds": " ".join(name for name, holds in kinds.items() if holds),
        }

    def words(self) -> str:
        """Return what one sees, for those who cannot: labels, and each row's cells."""
        rows = [
            " ".join(cell["text"] or "hidden" for cell in row) for row in self.cells()
        ]
        if self.rows is not None:
            rows = [f"{name} {row}" for name, row in zip(self.rows, rows, strict=True)]
        columns = f", columns {' '.join(self.columns)}" if self.columns else ""
        return f"{self.name or 'Numbers'}{columns}: {'; '.join(rows)}."


def number(value: float, digits: int = 2) -> str:
    """Return a number as a cell shows it: no zeros at its end, and a real minus.

    Args:
        value: the number.
        digits: most digits behind the point.
    """
    text = f"{value:.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text.replace("-", "−")


def _same_decimals(text: str, decimals: int) -> str:
    """Add zeros behind the point of what :func:`number` returned; 0 and 1 stay bare."""
    if text in ("0", "1") or not text[-1:].isdigit() or not decimals:  # empty, NaN
        return text
    whole, _, behind = text.partition(".")
    return f"{whole}.{behind:0<{decimals}}"


def chain(*parts: Matrix | str, alt: str | None = None, caption: str = "") -> Html:
    """Show matrices in a row, with the signs between them: X · Xᵀ = scores → weights.

    Args:
        parts: matrices, and texts for what happens between them.
        alt: what one sees, for those who cannot see it; the numbers, if not given.
        caption: text below.

    Returns:
        The picture, for a cell to show.

    Raises:
        TypeError: if a part is neither.
        ValueError: if ``alt`` says nothing.
    """
    drawn = []
    for part in parts:
        if isinstance(part, str):
            drawn.append({"sign": part})
        elif isinstance(part, Matrix):
            width = part.table.shape[1]
            drawn.append({**vars(part), "cells": part.cells(), "width": width})
        else:
            kind = type(part).__name__
            raise TypeError(f"parts must be matrices and texts, got {kind}")
    numbers = " ".join(p if isinstance(p, str) else p.words() for p in parts)
    alt = numbers if alt is None else require_alt(alt)
    return Html(render("chain", alt=alt, caption=caption, parts=drawn))


@dataclass(frozen=True)
class Block:
    """One step of a flow of tensors, drawn below the one before.

    Args:
        name: what happens; empty for an arrow alone.
        shape: of what goes in, written on the arrow above: ``(b, t, d)``.
        note: a smaller line in the block.
        lit: drawn as the one that matters.
        skip: number of steps that a line beside the blocks spans, from before this
            block on, to be added before the block that follows them: a residual.
    """

    name: str = ""
    shape: str = ""
    note: str = ""
    lit: bool = False
    skip: int = 0


def blocks(*steps: Block, alt: str, caption: str = "") -> Html:
    """Show a flow from top to bottom: blocks, with shapes on the arrows.

    Args:
        steps: from input to output; the last may be an arrow alone.
        alt: what one sees, for those who cannot see it.
        caption: text below.

    Returns:
        The picture, for a cell to show.

    Raises:
        ValueError: if ``alt`` says nothing, or a skip leads beyond the last step.
    """
    kinds: list[set[str]] = [set() for _ in steps]
    for place, step in enumerate(steps):
        if step.skip:
            require.at_most(skip=step.skip, steps_after=len(steps) - place - 1)
            for spanned in range(place, place + step.skip):
                kinds[spanned].add("spanned")
            kinds[place].add("begins")
            kinds[place + step.skip].add("joins")
    drawn = [
        {**vars(step), "kinds": " ".join(sorted(kind))}
        for step, kind in zip(steps, kinds, strict=True)
    ]
    return Html(render("blocks", alt=require_alt(alt), caption=caption, steps=drawn))
