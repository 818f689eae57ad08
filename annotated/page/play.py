"""Figures that a reader plays with: one call for a live kernel and for the page.

:func:`play` shows what a function returns, with a control for each of its parameters.
With a kernel, they are ipywidgets that call the reader's own function. In the built
page they choose among frames that the same function made beforehand.
"""

import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from html import escape
from io import StringIO
from itertools import product
from typing import Any

from annotated import require
from annotated.page.frames import (
    SHARED,
    Choice,
    Slider,
    Switch,
    name_of,
    plot_html,
    render,
)

MOST_FRAMES = 60
MOST_BYTES = 200_000
STOPS = {1: 13, 2: 7}  # of a range in the page, by the number of ranges
VIEW = "application/vnd.jupyter.widget-view+json"


def play(
    function: Callable[..., Any],
    /,
    *,
    label: str,
    alt: Callable[..., str] | None = None,
    question: str | None = None,
    caption: str | None = None,
    start: dict[str, Any] | None = None,
    **parameters: tuple | Sequence[Any],
) -> "_Play":
    """Show what a function makes of its parameters, with a control for each of them.

    Args:
        function: called with a value for each parameter. It returns a matplotlib
            figure, something that shows itself as HTML, a text or a number; or
            nothing, if it prints.
        label: name of the whole.
        alt: says in words what a figure shows; called with the same values.
        question: what the reader should predict before moving a control.
        caption: text below.
        start: values to begin with; of those left out, the first of a list and the
            middle of a range.
        parameters: ``name=(low, high)`` is a range, of integers if both are;
            ``name=[…]`` lists the values, and ``[False, True]`` is a switch. Spaces in
            a label are underscores here.

    Returns:
        The figure with its controls, for a cell to show.

    Raises:
        ValueError: if the page would need over 60 frames, or over 200 kB for them, or
            if ``start`` names a value that isn't there.
    """
    return _Play(function, parameters, start or {}, label, alt, question, caption)


class _Play:
    """What :func:`play` returns: one output, in the form that the front end shows."""

    def __init__(
        self,
        function: Callable[..., Any],
        parameters: dict[str, tuple | Sequence[Any]],
        start: dict[str, Any],
        label: str,
        alt: Callable[..., str] | None,
        question: str | None,
        caption: str | None,
    ):
        self._given, self.alt, self.label = function, alt, label
        self.question, self.caption = question, caption
        self.parameters = parameters
        ranges = [p for p in parameters.values() if isinstance(p, tuple)]
        for one in ranges:
            if len(one) != 2 or not one[0] < one[1]:
                raise ValueError(f"a range must be (low, high), low < high, got {one}")
        most = STOPS.get(len(ranges), 3)
        self.stops = {name: _stops(p, most) for name, p in parameters.items()}
        for name in start:
            require.choice(list(parameters), start=name)
        self.start = {
            name: stops[len(stops) // 2 if isinstance(parameters[name], tuple) else 0]
            for name, stops in self.stops.items()
        }
        for name, value in start.items():
            require.choice(self.stops[name], **{name: value})
            self.start[name] = value

    @property
    def function(self) -> Callable[..., Any]:
        """The function by its name now: a reader may have written it anew."""
        own = getattr(self._given, "__globals__", {})
        return own.get(getattr(self._given, "__name__", ""), self._given)

    def frame(self, **values: Any) -> str:
        """Return what the function makes of ``values``, as HTML."""
        from matplotlib.figure import Figure

        printed = StringIO()
        with redirect_stdout(printed):
            made = self.function(**values)
        if isinstance(made, Figure):
            alt = self.alt and self.alt(**values)
            return str(plot_html(made, alt))
        if hasattr(made, "_repr_html_"):
            return str(made._repr_html_())
        text = printed.getvalue() if made is None else f"{printed.getvalue()}{made}"
        return f"<pre>{escape(text)}</pre>"

    def frames_html(self) -> str:
        """Return the form for the page: frames, of which the controls show one."""
        combinations = list(product(*self.stops.values()))
        if len(combinations) > MOST_FRAMES:
            raise ValueError(
                f"parameters must have at most {MOST_FRAMES} combinations, "
                f"got {len(combinations)}: list fewer values"
            )
        values = [dict(zip(self.stops, one, strict=True)) for one in combinations]
        frames = [self.frame(**one) for one in values]
        styles = dict.fromkeys(SHARED.findall("".join(frames)))  # each once
        frames = [SHARED.sub("", frame) for frame in frames]
        if (size := len("".join(frames).encode())) > MOST_BYTES:
            raise ValueError(
                f"the frames must have at most {MOST_BYTES:,} bytes in all, got "
                f"{size:,} in {len(frames)}: list fewer values, or draw less"
            )
        controls = [_control(n, s, self.start[n]) for n, s in self.stops.items()]
        widget = render(
            "frames",
            root=name_of("play", self.label, frames),
            label=self.label,
            controls=controls,
            frames=frames,
            shown=values.index(self.start),
            question=self.question,
            caption=self.caption,
        )
        return "".join([*styles, widget])  # a sum would escape the styles

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, Any]:
        """Return the forms: a live front end takes the widgets, the page the frames."""
        forms: dict[str, Any] = {"text/plain": f"<{self.label}>"}
        if "google.colab" not in sys.modules:  # where a kernel always answers
            forms["text/html"] = self.frames_html()
        if (widget := self.widget()) is not None:
            version = {"version_major": 2, "version_minor": 0}
            forms[VIEW] = {**version, "model_id": widget.model_id}
        return forms

    def widget(self) -> Any:
        """Return the form for a live front end; nothing if ipywidgets isn't there."""
        try:
            import ipywidgets
        except ModuleNotFoundError:
            return None
        controls = {
            name: _live(ipywidgets, name, given, self.start[name])
            for name, given in self.parameters.items()
        }
        view = ipywidgets.HTML()

        def draw(change: Any = None) -> None:
            values = {name: control.value for name, control in controls.items()}
            try:
                view.value = self.frame(**values)
            except Exception:  # the reader's own function: they see where it stopped
                view.value = f"<pre>{escape(traceback.format_exc())}</pre>"

        for control in controls.values():
            control.observe(draw, "value")
        draw()
        above, below = (
            [ipywidgets.HTML(text)] if text else []
            for text in (self.question, self.caption)
        )
        return ipywidgets.VBox([*above, *controls.values(), view, *below])


def _stops(given: tuple | Sequence[Any], most: int) -> list[Any]:
    """Return the values that the page offers: all of a list, a few of a range."""
    if not isinstance(given, tuple):
        return list(given)
    low, high = given
    if isinstance(low, int) and isinstance(high, int):
        count = min(most, high - low + 1)
        return [low + round(i * (high - low) / (count - 1)) for i in range(count)]
    # four digits: a label, and a value that the reader can find again
    step = (high - low) / (most - 1)
    return [float(f"{low + i * step:.4g}") for i in range(most)]


def _said(name: str) -> str:
    return name.replace("_", " ")


def _on_or_off(given: Sequence[Any]) -> bool:
    return given[0] is False and list(given) == [False, True]  # [0, 1] are numbers


def _control(name: str, stops: list[Any], start: Any) -> Slider | Choice | Switch:
    if _on_or_off(stops):
        return Switch(name, _said(name), start)
    if all(isinstance(stop, int | float) for stop in stops):
        return Slider(name, _said(name), stops, start)
    return Choice(name, _said(name), [str(stop) for stop in stops], str(start))


def _live(ipywidgets: Any, name: str, given: tuple | Sequence[Any], start: Any) -> Any:
    """Return the ipywidget for a parameter (of ipywidgets 7.7 and 8 alike)."""
    said = {"description": _said(name), "style": {"description_width": "initial"}}
    if isinstance(given, tuple):
        low, high = given
        said |= {"min": low, "max": high, "value": start, "continuous_update": False}
        if isinstance(low, int) and isinstance(high, int):
            return ipywidgets.IntSlider(**said)
        return ipywidgets.FloatSlider(step=(high - low) / 100, **said)
    if _on_or_off(given):
        return ipywidgets.Checkbox(value=start, **said)
    if isinstance(given[0], str):
        return ipywidgets.Dropdown(options=list(given), value=start, **said)
    return ipywidgets.SelectionSlider(
        options=list(given), value=start, continuous_update=False, **said
    )
