"""Interactive figures that move in the static page, with no kernel and no network.

An :func:`explorer` draws in the reader's browser from data that the page's cells
computed. It is plain HTML with a few lines of script, the same in the built page, in
Jupyter and in Colab; the HTML is written by ``static/html.jinja``.
"""

import base64
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from annotated.page.svg import drawings, unique

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILE_NAME = re.compile(r"\S+\.(png|jpe?g|gif|svg|webp|bmp|ico|pdf)$", re.IGNORECASE)


# what every output brings, and a page needs once
SHARED = re.compile(r'<style class="annotated-shared">.*?</style>', re.DOTALL)


@cache
def static(name: str) -> str:
    """Return a script or style sheet of the package, by its ``name``.

    Those of all pages lie in ``page/static``; a chapter's own in its folder, such as
    ``ch13/lsh_steps.js``.
    """
    folder = "chapters" if re.match(r"ch\d\d/", name) else "page/static"
    return resources.files("annotated").joinpath(folder, name).read_text("utf-8")


class Html:
    """A piece of HTML, ``text``, that a cell shows."""

    def __init__(self, text: str):
        self.text = text

    def _repr_html_(self) -> str:
        return self.text


def _json(value: Any) -> Markup:
    """Return a value as JSON, in which no text can end the element around it."""
    return htmlsafe_json_dumps(value, ensure_ascii=False, allow_nan=False)


@cache
def _templates() -> Environment:
    templates = Environment(
        autoescape=True,
        loader=FunctionLoader(static),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    templates.filters["json"] = _json
    templates.globals["static"] = lambda name: Markup(static(name))
    return templates


def render(macro: str, **values: Any) -> Markup:
    """Return the HTML that a ``macro`` of ``static/html.jinja`` makes of ``values``."""
    return getattr(_templates().get_template("html.jinja").module, macro)(**values)


def alt_problem(alt: str | None, source: str = "") -> str:
    """Return what is wrong with an image's alternative text; nothing if it is sound.

    Args:
        alt: what the image shows, in words.
        source: the file of the image, which tools fill in where the text is missing.
    """
    text = (alt or "").strip()
    if not text:
        return "has no alt text"
    path = PurePosixPath(source)
    if text in (source, path.name, path.stem) or FILE_NAME.search(text):
        return f"has a file name as its alt text: {text!r}"
    if len(text.split()) < 3:
        return f"has an alt text that says too little: {text!r}"
    return ""


def require_alt(alt: str | None) -> str:
    """Return the alternative text ``alt`` without the spaces around it.

    Raises:
        ValueError: if it says nothing.
    """
    if problem := alt_problem(alt):
        raise ValueError(f"alt must say what the figure shows: the figure {problem}")
    return alt.strip()


def plot_html(figure: "Figure", alt: str | None) -> Markup:
    """Return a figure as SVG that follows the page's theme, and close it.

    Args:
        figure: a matplotlib figure.
        alt: what it shows, in words.

    Raises:
        ValueError: if ``alt`` says nothing.
    """
    from matplotlib import pyplot

    alt = require_alt(alt)
    drawn = drawings(figure, alt)
    pyplot.close(figure)
    return render("plot", drawings=drawn, alt=alt)


def name_of(kind: str, *contents: Any) -> str:
    """Return an id for HTML that nothing else on a page has, the same at every run.

    Args:
        kind: what it begins with.
        contents: what it depends on.
    """
    digest = hashlib.sha256("".join(map(str, contents)).encode()).hexdigest()
    return unique(f"{kind}-{digest[:12]}")


@dataclass(frozen=True)
class Slider:
    """A control with a few values in order.

    Args:
        name: its key in the explorer's state.
        label: what it sets, with the unit.
        values: the values, in order.
        start: the one to begin with; the first if not given.
    """

    name: str
    label: str
    values: Sequence[float | int | str]
    start: Any = None


@dataclass(frozen=True)
class Choice:
    """A control that picks one of several texts.

    Args:
        name: its key in the explorer's state.
        label: what it sets.
        options: the texts.
        start: the one to begin with; the first if not given.
    """

    name: str
    label: str
    options: Sequence[str]
    start: str | None = None


@dataclass(frozen=True)
class Switch:
    """A control that is on or off: a checkbox.

    Args:
        name: its key in the explorer's state, which holds true or false.
        label: what it switches.
        start: whether it begins as on.
    """

    name: str
    label: str
    start: bool = False


@dataclass(frozen=True)
class Text:
    """A control for free input.

    Args:
        name: its key in the explorer's state.
        label: what it sets.
        start: the text to begin with.
        suggestions: texts that drop down from a line, or are buttons below several.
        most: most characters that it takes; for more than 100 it has several lines.
        code: whether it is code, of letters that are equally wide.
    """

    name: str
    label: str
    start: str
    suggestions: Sequence[str] = ()
    most: int = 60
    code: bool = False

    @property
    def rows(self) -> int:
        """Return the number of lines in sight, which is that of the longest text."""
        return max([3, *(text.count("\n") + 1 for text in self.suggestions)])


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
    """

    name: str
    label: str
    rows: int
    columns: int


def explorer(
    script: str,
    data: Mapping[str, Any],
    controls: Sequence[Slider | Choice | Switch | Text | Grid],
    *,
    label: str,
    checks: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    question: str | None = None,
    caption: str | None = None,
) -> Html:
    """Show an explorer: a drawing that the reader's browser makes from data.

    Args:
        script: JavaScript, the body of ``function (state, data, view, numbers)``:
            computes with the functions of ``static/numbers.js``, draws with
            ``view.svg(width, height, label)`` and ``view.add(parent, tag, {…})``
            and returns ``{values, says, room}``: what was computed, one sentence on
            it, and how many letters that may have, so that nothing moves.
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
        ValueError: if ``data`` or ``checks`` hold a number that is not finite, or a
            slider starts at none of its values.
    """
    inner = _json(data)
    wanted = [{"state": state, "values": values} for state, values in checks]
    return Html(
        render(
            "explorer",
            root=name_of("explorer", label, script, inner, controls),
            script=Markup(script),
            data=inner,
            controls=controls,
            label=label,
            checks=_json(wanted),
            question=question,
            caption=caption,
        )
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


def rounded(model: Any) -> dict[str, Any]:
    """Round the weights of a ``model`` as the browser will see them.

    Returns:
        The weights by name, packed.
    """
    import torch

    packed = {name: pack(weight) for name, weight in model.named_parameters()}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(unpack(packed[name]))
    return packed
