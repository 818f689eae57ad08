"""Drawings of boxes and arrows, in the colours of the page around them.

A drawing is SVG: it stays sharp, follows the light or dark theme, and shrinks with its
page. Its unit is a CSS pixel on a phone, where 350 fit beside each other; where there
is room, it is drawn a fifth larger. x runs to the right, y down.
"""

from collections.abc import Sequence
from math import hypot
from typing import Any

import torch
from torch import Tensor

from annotated import require
from annotated.page.frames import Html, render, require_alt

Point = tuple[float, float]
LINE, GAP = 16, 13  # from one line of text to the next; from one box to the next
NOTE = 12.2  # size of a note's letters: 12 on a phone
PLUS = 8  # radius of a plus sign


class Drawing:
    """An empty drawing, ``width`` wide and ``height`` high, that its methods add to."""

    def __init__(self, width: int, height: int):
        require.count(width=width, height=height)
        self.width, self.height = width, height
        self.parts: list[tuple[str, dict[str, Any], str]] = []

    def _add(self, tag: str, text: str = "", **attributes: Any) -> None:
        named = {name.replace("_", "-"): value for name, value in attributes.items()}
        self.parts.append((tag, named, text))

    def text(
        self,
        x: float | Sequence[float],
        y: float,
        words: str,
        *,
        anchor: str = "middle",
        size: float = 13,
        bold: bool = False,
        code: bool = False,
    ) -> None:
        """Write ``words`` on the line ``y``.

        Args:
            x: where they stand, by ``anchor``; or a place for each letter.
            y: the line that they stand on.
            words: the text.
            anchor: what is at ``x``: their "start", "middle" or "end".
            size: of the letters.
            bold: in bold type.
            code: in type of one width, as symbols of a model are.

        Raises:
            ValueError: if ``anchor`` is another word.
        """
        require.choice(("start", "middle", "end"), anchor=anchor)
        weight, family = "700" if bold else None, "var(--at-mono)" if code else None
        style = {"font_size": size, "font_weight": weight, "font_family": family}
        across = " ".join(f"{at:g}" for at in x) if isinstance(x, Sequence) else x
        places = {"x": across, "y": y, "text_anchor": anchor}
        self._add("text", words, **places, **style, fill="currentColor")

    def line(self, *points: Point, width: float = 1.5) -> None:
        """Draw a line through ``points``, ``width`` thick."""
        places = " ".join(f"{x:g},{y:g}" for x, y in points)
        style = {"fill": "none", "stroke": "currentColor", "stroke_width": width}
        self._add("polyline", points=places, **style)

    def arrow(self, *points: Point, width: float = 1.5) -> None:
        """Draw a line through ``points``, ``width`` thick, with a tip at the last."""
        (a, b), (x, y) = points[-2:]
        length = hypot(x - a, y - b)
        u, v = (x - a) / length, (y - b) / length  # the way it points
        end = (x - 7 * u, y - 7 * v)  # of the line: a thick one would blunt the tip
        self.line(*points[:-1], end, width=width)
        sides = [(end[0] + 4.5 * s * v, end[1] - 4.5 * s * u) for s in (1, -1)]
        places = " ".join(f"{x:g},{y:g}" for x, y in ((x, y), *sides))
        self._add("polygon", points=places, fill="currentColor")

    def frame(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        *,
        dashed: bool = False,
        shade: float = 0.0,
        color: str = "this",
        outline: bool = True,
    ) -> None:
        """Draw a frame with round corners.

        Args:
            left: x of its left side.
            top: y of its upper side.
            width: its width.
            height: its height.
            dashed: with a dashed line, around several things.
            shade: how strong its color is inside, from 0 to 1.
            color: one of the look's terms, such as "key".
            outline: whether the frame itself is drawn, and not its inside alone.
        """
        places = {"x": left, "y": top, "width": width, "height": height}
        places["rx"] = min(6, width / 5)
        stroke = "currentColor" if outline else "none"
        style: dict[str, Any] = {"fill": "none", "stroke": stroke}
        style |= {"fill": f"var(--at-{color})", "fill_opacity": shade} if shade else {}
        dashes = "4 4" if dashed else None
        self._add("rect", **places, **style, stroke_dasharray=dashes)

    def cells(
        self,
        left: float,
        top: float,
        mask: Tensor | Sequence[Sequence[bool]],
        *,
        size: float,
        color: str = "weight",
        shade: float = 1.0,
    ) -> None:
        """Fill the squares of a matrix in which a mask is True.

        Args:
            left: x of the matrix's left side.
            top: y of its upper side.
            mask: its rows, ``(t, s)``; from above, each from the left.
            size: from one square to the next; a twelfth of it stays free.
            color: one of the look's terms.
            shade: how strong the color is, from 0 to 1.
        """
        side = 11 / 12 * size
        rows = torch.as_tensor(mask).nonzero().tolist()
        places = "".join(
            f"M{round(left + j * size, 2):g} {round(top + i * size, 2):g}"
            f"h{side:.2f}v{side:.2f}h-{side:.2f}z"
            for i, j in rows
        )
        self._add("path", d=places, fill=f"var(--at-{color})", fill_opacity=shade)

    def box(self, middle: float, top: float, width: float, *lines: str) -> float:
        """Draw a frame around a name, and a note of one or more lines below it.

        Args:
            middle: x of its middle.
            top: y of its upper side.
            width: its width.
            lines: what stands in it; more than one, and the first is bold.

        Returns:
            y of its lower side.
        """
        height = LINE * len(lines) + 9
        self.frame(middle - width / 2, top, width, height)
        name, *notes = lines
        self.text(middle, top + LINE + 1, name, bold=bool(notes))
        for i, note in enumerate(notes, start=2):
            self.text(middle, top + LINE * i, note, size=NOTE)
        return top + height

    def plus(self, x: float, y: float) -> None:
        """Draw a plus sign in a circle around ``x`` and ``y``."""
        self._add("circle", cx=x, cy=y, r=PLUS, fill="none", stroke="currentColor")
        self.line((x - PLUS, y), (x + PLUS, y), width=1.2)
        self.line((x, y - PLUS), (x, y + PLUS), width=1.2)

    def branch(
        self, stream: float, middle: float, top: float, width: float, *boxes: list[str]
    ) -> float:
        """Draw what a residual adds: from a stream, through boxes, back to a plus.

        Args:
            stream: x of the stream, a line that the caller draws around the plus.
            middle: x of the boxes.
            top: y at which the branch leaves the stream.
            width: of the boxes.
            boxes: the lines of each.

        Returns:
            y of the plus sign's middle.
        """
        points = [(stream, top), (middle, top)]
        y = top + GAP
        for lines in boxes:
            self.arrow(*points, (middle, y))
            y = self.box(middle, y, width, *lines)
            points, y = [(middle, y)], y + GAP
        side = PLUS if middle > stream else -PLUS
        self.arrow(*points, (middle, y), (stream + side, y))
        self.plus(stream, y)
        return y

    def figure(self, *, alt: str, caption: str = "") -> Html:
        """Return the drawing for a cell to show.

        Args:
            alt: what it shows, in words, for those who cannot see it.
            caption: text below.

        Raises:
            ValueError: if ``alt`` says nothing.
        """
        return Html(
            render("drawing", drawing=self, alt=require_alt(alt), caption=caption)
        )
