"""Figures of matplotlib as SVG in the page's type and colours.

What is drawn in a colour of ``COLOURS`` follows the theme, and text is text. A
figure is drawn twice, for the page and for a phone, where panels that stand side by
side are stacked: one unit is a pixel in both, so letters are as large as asked for.
"""

import io
import math
import re
from collections import Counter
from importlib import resources
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogFormatter

TEXT, PHONE = 688, 350  # pixels of the column, and of a phone's
INCH = 80  # pixels, so that a figure of 8.6 inches is as wide as the text
SMALLEST = 12.5  # pixels of a letter
LINE_END = "line-end"  # names what :func:`annotated.page.plots.name_lines` writes
MOST_MARKS = 2000  # more become a transparent picture inside the drawing

# by name, as the light theme has them
TOKENS = resources.files("annotated.page").joinpath("static", "tokens.css")
COLOURS = dict(
    re.findall(r"--at-([a-z]+): (#[0-9a-f]{6})\b", TOKENS.read_text().split("}")[0])
)

_given: Counter[str] = Counter()


def unique(name: str) -> str:
    """Return a name that nothing else on a page has: with a number, from the second on.

    A page is one run of one notebook, so the names are the same at every run. Without
    it, equal drawings would share a clip path: where the first is hidden, the others
    would be blank.

    Args:
        name: what tells it from most others; it ends in no number of its own.
    """
    _given[name] += 1
    return name if _given[name] == 1 else f"{name}-{_given[name]}"


def drawings(figure: "Figure", alt: str) -> list[dict]:
    """Return the drawings of a figure: for the page, and for a phone if it needs one.

    Args:
        figure: a matplotlib figure; it is changed.
        alt: what it shows; the names inside it are made from this.

    Returns:
        ``{"width": …, "height": …, "inner": …}`` of each; the SVG's contents are safe.
    """
    width, height = (inches * INCH for inches in figure.get_size_inches())
    for ax in figure.axes:
        _lighten(ax)
    drawn = [_drawing(figure, min(width, TEXT), height, alt)]
    if width > PHONE:
        height *= 1 + 0.85 * (_stack(figure) - 1)
        drawn.append(_drawing(figure, min(width, PHONE), height, alt))
    return drawn


def _lighten(ax: "Axes") -> None:
    """Write the name of the upright axis above it, and few numbers beside it."""
    from matplotlib.ticker import AutoLocator, LogFormatter

    label = ax.yaxis.label
    if label.get_text() and hasattr(ax, "get_subplotspec") and ax.get_subplotspec():
        label.set(rotation=0, ha="left", va="bottom")
        ax.yaxis.set_label_coords(0, 1.03)
        if title := ax.get_title("left"):
            ax.set_title(title, loc="left", pad=22)
    for axis in (ax.xaxis, ax.yaxis):
        if isinstance(axis.get_major_locator(), AutoLocator):
            axis.get_major_locator().set_params(nbins=5)
        for formatter in (axis.get_major_formatter(), axis.get_minor_formatter()):
            if isinstance(formatter, LogFormatter) and axis.get_scale() == "log":
                _write_out(formatter)


def _write_out(formatter: "LogFormatter") -> None:
    """Write numbers where powers of ten would have exponents too small to read."""
    given = formatter.format_ticks

    def format_ticks(values: list[float]) -> list[str]:
        low, high = sorted(formatter.axis.get_view_interval())
        write = "{:,g}".format if 1e-4 <= low and high < 1e6 else _power
        labelled = zip(values, given(values), strict=True)
        return [write(value) if label else "" for value, label in labelled]

    formatter.format_ticks = format_ticks


def _power(value: float) -> str:
    """Return a number as 10⁻⁸ or 2 × 10⁻⁸, the exponent in letters as large."""
    digit, exponent = f"{value:.0e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if digit == "1" else f"{digit} × 10{raised}"


def _stack(figure: "Figure") -> int:
    """Put panels that stand in one row below each other; how many there are."""
    specs = {ax: ax.get_subplotspec() for ax in figure.axes}
    row = [ax for ax, spec in specs.items() if spec and spec.get_gridspec().nrows == 1]
    if len(row) < 2:
        return 1
    grid = figure.add_gridspec(len(row), 1)
    for place, ax in zip(grid, row, strict=True):
        ax.set_subplotspec(place)
        ax.tick_params(labelbottom=True, labelleft=True)
    return len(row)


def _drawing(figure: "Figure", width: float, height: float, alt: str) -> dict:
    """Return the drawing at a width and height in pixels."""
    import matplotlib
    from matplotlib.collections import Collection
    from matplotlib.text import Text

    figure.set_dpi(72)  # a pixel of matplotlib's is ours
    figure.set_size_inches(width / 72, height / 72)
    for text in figure.findobj(Text):
        text.set_fontsize(max(text.get_fontsize(), SMALLEST))
    for marks in figure.findobj(Collection):
        marks.set_rasterized(len(marks.get_offsets()) > MOST_MARKS)
    figure.draw_without_rendering()  # now things are in their places
    for ax in figure.axes:
        _part(ax)
    raw = io.StringIO()
    style = {"svg.hashsalt": unique(f"{alt}{width}"), "svg.fonttype": "none"}
    with matplotlib.rc_context(style):
        figure.savefig(raw, format="svg", transparent=True, metadata={"Date": None})
    return {"width": round(width), "height": round(height), "inner": _inner(raw)}


def _part(ax: "Axes") -> None:
    """Move names of lines apart that would stand on each other."""
    names = [text for text in ax.texts if text.get_gid() == LINE_END]
    at = {name: ax.transData.transform(name.xy)[1] for name in names}
    above = -math.inf
    for name in sorted(names, key=at.__getitem__):
        above = max(at[name], above + 1.2 * SMALLEST)
        name.set_position((8, above - at[name]))


def _inner(raw: io.StringIO) -> Markup:
    """Return what matplotlib drew, without what only a file of its own needs."""
    text = raw.getvalue()
    text = text[text.index("</metadata>") + 11 : text.rindex("</svg>")]
    text = re.sub(r"(?s)<defs>\s*<style.*?</style>\s*</defs>", "", text)
    used = set(re.findall(r"(?:url\(|href=\")#([\w.-]+)", text))
    text = re.sub(r' id="([\w.-]+)"', lambda m: m[0] if m[1] in used else "", text)
    text = re.sub(r"<[^>]+>", lambda tag: _rounded(tag[0]), text)
    for name, colour in COLOURS.items():
        text = text.replace(colour, f"var(--at-{name}, {colour})")
    text = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--at-sans, sans-serif)", text)
    return Markup(re.sub(r">\s+<", "><", text).strip())


def _rounded(tag: str) -> str:
    """Return a tag with a tenth of a pixel, and two digits of an opacity."""
    tag = re.sub(r"opacity: (\d\.\d+)", lambda m: f"opacity:{float(m[1]):.2g}", tag)
    short = r"-?\d+\.\d\d\d+"
    return re.sub(short, lambda m: f"{float(m[0]):.1f}".removesuffix(".0"), tag)
