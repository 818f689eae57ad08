"""Interactive figures that move in the static page, with no kernel and no network.

:func:`frame_slider` shows pictures drawn beforehand behind one slider. An
:func:`explorer` draws in the reader's browser from data that the page's cells
computed. Both are plain HTML with a few lines of script, the same in the built
page, in Jupyter and in Colab.
"""

import base64
import hashlib
import html
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGE_NAMES = (".png", ".svg", ".jpg", ".jpeg", ".gif", ".webp")


def require_alt(alt: object) -> str:
    """Return the alternative text of a figure, or say what is wrong with it.

    Raises:
        ValueError: if ``alt`` is missing, blank, a file's name, or too short to
            tell anything.
    """
    wanted = "a sentence that says what the figure shows"
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(f"alt must be {wanted}, got {alt!r}")
    if alt.strip().lower().endswith(IMAGE_NAMES):
        raise ValueError(f"alt must be {wanted}, got a file's name: {alt!r}")
    if len(alt.split()) < 3:
        raise ValueError(f"alt must be {wanted}, got only {alt!r}")
    return alt.strip()


def image_html(figure: "Figure", alt: str, dpi: int = 144, colours: int = 128) -> str:
    """Return a figure as one ``<img>`` that carries its own picture, and close it.

    Args:
        figure: a matplotlib figure.
        alt: what it shows, in words.
        dpi: dots per inch; the picture is shown at 96 to the inch.
        colours: size of the palette, which makes a picture a third as heavy.

    Raises:
        TypeError: if ``figure`` is not a matplotlib figure.
        ValueError: if ``alt`` says nothing.
    """
    from matplotlib import pyplot
    from matplotlib.figure import Figure
    from PIL import Image

    if not isinstance(figure, Figure):
        raise TypeError(
            f"figure must be a matplotlib Figure, got {type(figure).__name__}"
        )
    alt = require_alt(alt)
    raw, small = io.BytesIO(), io.BytesIO()
    figure.savefig(raw, format="png", dpi=dpi, bbox_inches="tight", facecolor="white")
    pyplot.close(figure)
    with Image.open(raw) as picture:
        size = [round(pixels * 96 / dpi) for pixels in picture.size]
        picture.convert("RGB").quantize(colours).save(small, "png", optimize=True)
    source = base64.b64encode(small.getvalue()).decode()
    return (
        f'<img alt="{html.escape(alt)}" width="{size[0]}" height="{size[1]}" '
        f'src="data:image/png;base64,{source}">'
    )


@cache
def static(name: str) -> str:
    """Return a script or style sheet that comes with the package, by its ``name``."""
    return resources.files("annotated").joinpath("static", name).read_text("utf-8")


class Html:
    """A piece of HTML, ``text``, that a cell shows."""

    def __init__(self, text: str):
        self.text = text

    def _repr_html_(self) -> str:
        return self.text


def _control(identity: str, label: str, field: str, output: str = "") -> str:
    return (
        f'<div class="annotated-control"><label for="{identity}">{html.escape(label)}'
        f"</label>{field}{output}</div>"
    )


def _paragraph(kind: str, text: str | None) -> str:
    return f'<p class="annotated-{kind}">{html.escape(text)}</p>' if text else ""


FRAMES_SCRIPT = """
(function () {
  const root = document.getElementById("ROOT");
  const slider = root.querySelector("input");
  const frames = root.querySelectorAll(".annotated-frame");
  const names = JSON.parse(slider.dataset.names);
  slider.addEventListener("input", function () {
    frames.forEach((frame, i) => { frame.hidden = i !== Number(slider.value); });
    root.querySelector("output").textContent = names[slider.value];
    slider.setAttribute("aria-valuetext", names[slider.value]);
  });
})();
"""


def frame_slider(
    draw: Callable[[Any], "Figure"],
    values: Iterable[Any],
    *,
    label: str,
    alt: Callable[[Any], str],
    question: str | None = None,
    caption: str | None = None,
    dpi: int = 120,
) -> Html:
    """Show pictures drawn beforehand behind one slider, moved by mouse or keyboard.

    For one parameter of up to about forty values; more parameters, or free input,
    are the business of :func:`explorer`.

    Args:
        draw: ``draw(value)`` gives the matplotlib figure for a value.
        values: the values, one frame each.
        label: what the slider sets, with its unit.
        alt: ``alt(value)`` says in words what the frame shows.
        question: what the reader should predict before moving the slider.
        caption: text below the picture.
        dpi: dots per inch of a frame.

    Returns:
        The slider with its pictures, for a cell to show.

    Raises:
        ValueError: if there is no value, or the label or an alternative text says
            nothing.
        TypeError: if ``draw`` gives something that is not a figure.
    """
    values = list(values)
    if not values:
        raise ValueError("values must hold at least one value for the slider, got none")
    if not label.strip():
        raise ValueError(f"label must say what the slider sets, got {label!r}")
    frames = [image_html(draw(value), alt(value), dpi) for value in values]
    names = [str(value) for value in values]
    digest = hashlib.sha256("".join([label, *names, *frames]).encode()).hexdigest()
    root = f"frames-{digest[:12]}"
    field = (
        f'<input id="{root}-input" type="range" min="0" max="{len(values) - 1}" '
        f'value="0" step="1" aria-valuetext="{html.escape(names[0])}" '
        f'data-names="{html.escape(json.dumps(names))}">'
    )
    output = f'<output for="{root}-input">{html.escape(names[0])}</output>'
    pictures = "".join(
        f'<figure class="annotated-frame"{" hidden" if i else ""}>{frame}</figure>'
        for i, frame in enumerate(frames)
    )
    return Html(
        f'<div class="annotated-frames" id="{root}">'
        f"<style>{static('explorer.css')}</style>{_paragraph('question', question)}"
        f'<div class="annotated-controls">'
        f"{_control(f'{root}-input', label, field, output)}</div>{pictures}"
        f"{_paragraph('caption', caption)}"
        f"<script>{FRAMES_SCRIPT.replace('ROOT', root)}</script></div>"
    )


@dataclass(frozen=True)
class Slider:
    """A control with a few values in order.

    Args:
        name: its key in the explorer's state.
        label: what it sets, with the unit.
        values: the values, in order.
        start: the one to begin with; the first if not given.

    Raises:
        ValueError: if there is no value, or ``start`` is none of them.
    """

    name: str
    label: str
    values: Sequence[float | int | str]
    start: Any = None

    def __post_init__(self):
        if not self.values:
            raise ValueError(f"values of the slider {self.name!r} must not be empty")
        if self.start is not None and self.start not in self.values:
            raise ValueError(
                f"start of the slider {self.name!r} must be one of its values "
                f"{list(self.values)}, got {self.start!r}"
            )

    def html(self, identity: str) -> str:
        """Return the control as HTML; ``identity`` is the id of its field."""
        start = self.values[0] if self.start is None else self.start
        values = html.escape(_json(list(self.values)))
        field = (
            f'<input id="{identity}" type="range" min="0" step="1" '
            f'max="{len(self.values) - 1}" value="{list(self.values).index(start)}" '
            f'data-name="{self.name}" data-values="{values}">'
        )
        output = f'<output for="{identity}">{html.escape(str(start))}</output>'
        return _control(identity, self.label, field, output)


@dataclass(frozen=True)
class Choice:
    """A control that picks one of several texts; the first one to begin with.

    Args:
        name: its key in the explorer's state.
        label: what it sets.
        options: the texts.

    Raises:
        ValueError: if there is no text.
    """

    name: str
    label: str
    options: Sequence[str]

    def __post_init__(self):
        if not self.options:
            raise ValueError(f"options of the choice {self.name!r} must not be empty")

    def html(self, identity: str) -> str:
        """Return the control as HTML; ``identity`` is the id of its field."""
        options = "".join(f"<option>{html.escape(o)}</option>" for o in self.options)
        field = f'<select id="{identity}" data-name="{self.name}">{options}</select>'
        return _control(identity, self.label, field)


@dataclass(frozen=True)
class Text:
    """A control for free input.

    Args:
        name: its key in the explorer's state.
        label: what it sets.
        start: the text to begin with.
        suggestions: texts that drop down from it.
        most: most characters that it takes.
    """

    name: str
    label: str
    start: str
    suggestions: Sequence[str] = ()
    most: int = 60

    def html(self, identity: str) -> str:
        """Return the control as HTML; ``identity`` is the id of its field."""
        offers = "".join(f'<option value="{html.escape(s)}">' for s in self.suggestions)
        field = (
            f'<input id="{identity}" type="text" data-name="{self.name}" '
            f'value="{html.escape(self.start)}" maxlength="{self.most}" '
            f'autocomplete="off" spellcheck="false" list="{identity}-list">'
            f'<datalist id="{identity}-list">{offers}</datalist>'
        )
        return _control(identity, self.label, field)


@dataclass(frozen=True)
class Grid:
    """A table of cells that the reader switches, by mouse or keyboard.

    ``state[name]`` holds the switched cells, ``[[row, column], …]`` from top left to
    bottom right. What a cell looks like is up to the drawing: it calls ``view.cell(
    name, row, column, {on, text, label})`` for each of them, and ``view.names(name,
    rows, columns)`` for what stands beside and above.

    Args:
        name: its key in the explorer's state.
        label: what a switched cell means.
        rows: number of rows.
        columns: number of columns.

    Raises:
        ValueError: if there is no row or no column.
    """

    name: str
    label: str
    rows: int
    columns: int

    def __post_init__(self):
        if self.rows < 1 or self.columns < 1:
            raise ValueError(
                f"the grid {self.name!r} must have a row and a column at least, got "
                f"{self.rows} and {self.columns}"
            )

    def html(self, identity: str) -> str:
        """Return the control as HTML; ``identity`` is the id of its field."""
        # one cell is reached by Tab, the others from there by the arrow keys
        beside = '<span aria-hidden="true"></span>'
        above = '<span class="annotated-above" aria-hidden="true"></span>'
        cells = (
            beside
            + above * self.columns
            + "".join(
                (beside if j == 0 else "")
                + f'<button type="button" tabindex="{0 if i == j == 0 else -1}" '
                f'data-row="{i}" data-column="{j}" aria-pressed="false"></button>'
                for i in range(self.rows)
                for j in range(self.columns)
            )
        )
        return (
            f'<div class="annotated-control annotated-wide">'
            f'<span id="{identity}-label">{html.escape(self.label)}</span>'
            f'<div class="annotated-grid" id="{identity}" data-name="{self.name}" '
            f'role="group" aria-labelledby="{identity}-label" '
            f'style="--columns: {self.columns}">{cells}</div>'
            f'<button type="button" class="annotated-reset">undo all clicks</button>'
            f"</div>"
        )


def _json(value: Any) -> str:
    # NaN and infinity are no JSON, and "</script>" would end the element around it
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace(
        "<", "\\u003c"
    )


def explorer(
    script: str,
    data: Mapping[str, Any],
    controls: Sequence[Slider | Choice | Text | Grid],
    *,
    label: str,
    checks: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    question: str | None = None,
    caption: str | None = None,
) -> Html:
    """Show an explorer: a drawing that the reader's browser makes from data.

    Args:
        script: JavaScript, the body of ``function (state, data, view)``: draws with
            ``view.svg(width, height, label)`` and ``view.add(parent, tag, {…})``
            and returns ``{values, says}``: what was computed, and one sentence on
            it for screen readers.
        data: numbers and texts that the page's cells computed, as JSON.
        controls: what the reader sets; ``state`` holds their values by name.
        label: name of the explorer.
        checks: pairs (state, values) computed in Python; the tests of the site put
            the explorer into each state and compare its values with these.
        question: what the reader should predict before trying.
        caption: text below the drawing.

    Returns:
        The explorer, for a cell to show.

    Raises:
        ValueError: if there is no control or no check, a name stands twice, or
            ``data`` holds a number that is not finite.
    """
    if not controls:
        raise ValueError("controls must hold at least one control, got none")
    if not checks:
        raise ValueError(
            "checks must hold at least one pair (state, values) computed in Python: "
            "what the browser draws is to be compared with it"
        )
    names = [control.name for control in controls]
    if len(set(names)) < len(names):
        raise ValueError(f"controls must have different names, got {names}")
    try:
        inner = _json(dict(data))
        wanted = _json([{"state": state, "values": values} for state, values in checks])
    except ValueError as error:
        raise ValueError(
            f"data and checks must hold finite numbers and texts: {error}"
        ) from error
    described = label + script + inner + repr(controls)
    root = f"explorer-{hashlib.sha256(described.encode()).hexdigest()[:12]}"
    fields = "".join(c.html(f"{root}-{c.name}") for c in controls)
    return Html(
        f'<section class="annotated-explorer" id="{root}" '
        f'aria-label="{html.escape(label)}"><style>{static("explorer.css")}</style>'
        f"{_paragraph('question', question)}"
        f'<div class="annotated-controls">{fields}</div>'
        f'<div class="annotated-view" tabindex="0" role="region" '
        f'aria-label="{html.escape(label)}: drawing"></div>'
        f'<p class="annotated-says" aria-live="polite"></p>'
        f"{_paragraph('caption', caption)}"
        f'<script type="application/json" class="annotated-explorer-data">{inner}'
        f'</script><script type="application/json" '
        f'class="annotated-explorer-checks">{wanted}</script>'
        f"<script>(function () {{{static('explorer.js')}\n"
        f'annotatedExplorer(document.getElementById("{root}"), '
        f"function (state, data, view) {{{script}}});}})();</script></section>"
    )


def pack(tensor: Any) -> dict[str, Any]:
    """Pack numbers for an explorer as 16-bit integers with one scale.

    A trained model goes into the page this way; :func:`unpack` gives the numbers
    that the browser will see, so that Python's check computes with the same ones.

    Args:
        tensor: a tensor of finite floating-point numbers.

    Returns:
        ``{"shape": …, "scale": …, "base64": …}``; a number is its integer × scale.

    Raises:
        ValueError: if a number is not finite.
    """
    import numpy

    array = tensor.detach().cpu().double().numpy()
    largest = float(numpy.abs(array).max(initial=0.0))
    if not math.isfinite(largest):
        raise ValueError("tensor must hold finite numbers to be packed")
    scale = largest / 32767 or 1.0
    whole = numpy.round(array / scale).astype("<i2")
    text = base64.b64encode(whole.tobytes()).decode()
    return {"shape": list(array.shape), "scale": scale, "base64": text}


def unpack(packed: Mapping[str, Any]) -> Any:
    """Return the float32 tensor that :func:`pack` packed, as the browser sees it.

    Args:
        packed: what :func:`pack` returned.
    """
    import numpy
    import torch

    whole = numpy.frombuffer(base64.b64decode(packed["base64"]), "<i2")
    numbers = torch.from_numpy(whole.astype("float64") * packed["scale"])
    return numbers.reshape(packed["shape"]).float()
