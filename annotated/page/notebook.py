"""What a notebook needs around its ideas: set-up, checks, sources, figures."""

import ast
import importlib.util
import inspect
import json
import math
import operator
import os
import platform
import random
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib import resources
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy
import torch
from torch import Tensor

from annotated import require
from annotated.page.frames import Html, plot_html, render
from annotated.page.plots import described, use_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WITH_DOCSTRING = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def setup(seed: int = 0) -> torch.device:
    """Seed everything, set the figure style, choose and name the device.

    ``ANNOTATED_DEVICE`` in the environment (``cpu`` or ``cuda``) decides the device;
    without it, a GPU is taken where there is one. TF32 is switched off, so that a GPU
    counts in single precision too. Threads are left as they are.

    Args:
        seed: seed of ``torch``, ``numpy`` and ``random``.

    Returns:
        The device.

    Raises:
        RuntimeError: if ``ANNOTATED_DEVICE`` asks for a GPU that is not there.
    """
    wanted = os.environ.get("ANNOTATED_DEVICE", "")
    require.choice(("", "cpu", "cuda"), ANNOTATED_DEVICE=wanted)
    available = torch.cuda.is_available()
    if wanted == "cuda" and not available:
        raise RuntimeError("ANNOTATED_DEVICE=cuda, but PyTorch finds no GPU here")
    device = torch.device(wanted or ("cuda" if available else "cpu"))
    # cuDNN's default, TF32, keeps ten bits: too few for proofs. (These are the older
    # names; after the newer ones torch.compile raises on CUDA, pytorch#166387.)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    random.seed(seed)
    use_style()
    from IPython import get_ipython

    if shell := get_ipython():
        shell.set_custom_exc((AssertionError,), _explain_assertion)
    where = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(
        f"Python {platform.python_version()}, PyTorch {torch.__version__}, {where}, "
        f"{torch.get_num_threads()} thread(s), seed {seed}"
    )
    return device


def _explain_assertion(shell, kind, error, trace, tb_offset=None) -> None:
    """Show the error, and say what it means to who has changed a cell."""
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
    print(
        "This tests what the text says, of the code as it came. If you changed a cell "
        "above, that is your finding: go on with the cell after this one."
    )


def show_source(*things: Any, fold: str = "") -> None:
    """Show the source of classes and functions, as the module ships it.

    Of each docstring the first paragraph is shown; the checks of arguments, all that
    calls :mod:`annotated.require`, are left out. Both are in the reference.

    Args:
        things: the classes and functions, in the order wanted.
        fold: a title, behind which they wait for a click.

    Raises:
        TypeError: if one of the things has no Python source.
    """
    from IPython.display import Markdown, display

    shown = []
    for thing in things:
        try:
            source = inspect.getsource(thing)
        except (TypeError, OSError) as error:
            raise TypeError(
                f"show_source needs a class or function, got {thing!r}"
            ) from error
        code = _brief(textwrap.dedent(source).rstrip())
        shown.append(f"```python\n{code}\n```")
    if fold:
        summary = f"<summary>{escape(fold)}</summary>"
        shown = ["\n\n".join([f"<details>{summary}", *shown, "</details>"])]
    for text in shown:
        display(Markdown(text))


def _brief(code: str) -> str:
    """Cut checks of arguments, and docstrings after their first paragraph.

    A branch, a loop or a method that does nothing but check goes with them.
    """
    lines = code.splitlines()
    cuts = []  # first line, line after the last, what stands there instead
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node) is not None:
            first, end = node.body[0].lineno - 1, node.body[0].end_lineno
            kept = list(takewhile(str.strip, lines[first:end]))
            if len(kept) < end - first:
                kept[-1] += '"""'
            cuts.append((first, end, kept))
        checks = [d for d in getattr(node, "decorator_list", []) if _requires(d)]
        if _checks(node) and node not in tree.body:
            checks.append(node)
        cuts += [(check.lineno - 1, check.end_lineno, []) for check in checks]
    for first, end, kept in sorted(cuts, reverse=True):
        if not any(a < first and end <= b for a, b, _ in cuts):  # not inside another
            lines[first:end] = kept
    return "\n".join(lines)


def _checks(node: ast.AST) -> bool:
    """Say whether a statement does nothing but check arguments."""
    if isinstance(node, ast.Expr):
        return _requires(node.value)
    if not isinstance(node, ast.If | ast.For | ast.FunctionDef):
        return False
    body = node.body[
        isinstance(node, _WITH_DOCSTRING) and bool(ast.get_docstring(node)) :
    ]
    named = [one for one in body if not isinstance(one, ast.Assign)]
    return bool(named) and not getattr(node, "orelse", []) and all(map(_checks, named))


def _requires(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return isinstance(called, ast.Attribute) and ast.unparse(called.value) == "require"


def check_shape(name: str, tensor: Tensor, **axes: int) -> None:
    """Print the shape of a tensor by the names of its axes, or say what is wrong.

    Args:
        name: what the tensor is.
        tensor: the tensor.
        axes: letter and length of each axis, in order, such as ``b=2, t=3, d=8``.

    Raises:
        AssertionError: if the shape is another one.
    """
    wanted = ", ".join(f"{letter}={size}" for letter, size in axes.items())
    if tuple(tensor.shape) != tuple(axes.values()):
        raise AssertionError(
            f"{name} should have shape ({wanted}), but has {tuple(tensor.shape)}"
        )
    print(f"{name}: ({wanted})")


def check_close(
    claim: str,
    actual: Tensor | Sequence[Tensor],
    expected: Tensor | Sequence[Tensor],
    tolerance: float = 1e-6,
) -> None:
    """Prove that tensors agree: print the worst difference, or say where they differ.

    Args:
        claim: what is proved, in words.
        actual: a tensor, or several (an output and its gradients, say).
        expected: as many of the same shapes; dtypes and devices may differ.
        tolerance: largest absolute difference allowed.

    Raises:
        AssertionError: if a pair differs in shape, or by more than ``tolerance``.
    """
    pairs = [
        [t.detach().cpu().double() for t in ([x] if isinstance(x, Tensor) else x)]
        for x in (actual, expected)
    ]
    torch.testing.assert_close(
        *pairs, rtol=0, atol=tolerance, msg=lambda message: f"{claim}: {message}"
    )
    worst = max(
        (one - other).abs().max().item() for one, other in zip(*pairs, strict=True)
    )
    print(f"✓ {claim}, " + (f"to {worst:.0e}" if worst else "exactly"))


def check_same(
    claim: str,
    ours: Callable[..., Tensor],
    reference: Callable[..., Tensor],
    *inputs: Any,
    parameters: Iterable[Tensor] = (),
    tolerance: float = 1e-5,
) -> None:
    """Prove that two functions agree: in their output, and in all its gradients.

    Both are called with ``inputs``. The gradients are those of the sum of the output's
    numbers, each times a random one, so that none can hide behind another. They are
    taken to the inputs and to the parameters of every module that is given, as function
    or as input, so that ``check_same("…", Layer.forward, by_hand, layer, x)`` does.

    Args:
        claim: what is proved, in words.
        ours: a function or module; its output is a tensor of any shape.
        reference: what it has to agree with, computing with the same parameters.
        inputs: arguments of both.
        parameters: further tensors that both compute with.
        tolerance: largest absolute difference allowed.

    Raises:
        AssertionError: if output or gradients differ in shape, or by more than
            ``tolerance``.
        ValueError: if there is nothing that could have a gradient.
    """
    modules = [m for m in (ours, reference, *inputs) if isinstance(m, torch.nn.Module)]
    learned = [*parameters, *(p for m in modules for p in m.parameters())]
    learned = list(dict.fromkeys(learned))  # each once
    results, upstream = [], None
    for function in (ours, reference):
        given = [
            x.detach().requires_grad_()
            if isinstance(x, Tensor) and x.is_floating_point()
            else x
            for x in inputs
        ]
        leaves = learned + [x for x in given if getattr(x, "requires_grad", False)]
        require.that(leaves, f"{claim}: inputs or parameters must be able to learn")
        output = function(*given)
        if upstream is None:
            upstream = torch.randn_like(output)
        if output.shape != upstream.shape:
            shapes = f"{tuple(upstream.shape)} and {tuple(output.shape)}"
            raise AssertionError(f"{claim}: outputs have the shapes {shapes}")
        gradients = torch.autograd.grad(output, leaves, upstream.to(output))
        results.append([output, *gradients])
    number = len(leaves)
    gradients = "its gradient" if number == 1 else f"{number} gradients"
    check_close(f"{claim}: output and {gradients}", *results, tolerance)


_SIGNS = {">": operator.gt, "≥": operator.ge, "<": operator.lt, "≤": operator.le}
_FINDING = "application/vnd.annotated.finding+json"


def expect(
    name: str,
    words: str,
    value: float | Iterable[float],
    *,
    unlike: tuple[str, float | Iterable[float]],
    above: float | None = None,
    below: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> None:
    """State what was found about something trained; another machine may differ.

    The same seed gives another model on another processor, so a finding is no law: its
    band follows from the words, and ``book/results/findings`` holds what other machines
    found (``python -m tools.machines``). A missed band stops nothing. The page says so
    in a line, and ``make book`` lists it; ``make test`` fails. The verdict is data in
    the output of the cell.

    Args:
        name: page and name, such as ``"08b-longer"``; each once in the book.
        words: the claim, a sentence.
        value: what was measured; of several numbers, each has to be in the band.
        unlike: a named alternative that lies outside the band (untrained, ablated, the
            other method), and its value or values.
        above: all below this, and this itself, is outside the band.
        below: all above this, and this itself.
        at_least: all below this.
        at_most: all above this.

    Raises:
        ValueError: if ``name`` names no page, the band is none or holds no number, or
            there is nothing to compare with it.
    """
    from IPython.display import display

    if not re.fullmatch(r"\d\d[a-z]?-[a-z0-9-]+", name):
        raise ValueError(f"name must be like '08b-longer', got {name!r}")
    given = ((">", above), ("≥", at_least), ("<", below), ("≤", at_most))
    bounds = [(sign, end) for sign, end in given if end is not None]
    if not bounds:
        raise ValueError(f"{name}: the band must have a bound, got none")
    low = [end for sign, end in bounds if sign in ">≥"]
    high = [end for sign, end in bounds if sign in "<≤"]
    if len(low) > 1 or len(high) > 1 or any(a >= b for a in low for b in high):
        raise ValueError(f"{name}: the band must hold numbers, got {_band(bounds)}")

    def inside(number: float) -> bool:  # a NaN is nowhere
        return all(_SIGNS[sign](number, end) for sign, end in bounds)

    values, others = _numbers(value), _numbers(unlike[1])
    if not values or not others or any(map(math.isnan, others)):
        raise ValueError(
            f"{name}: value and alternative must be numbers, got {values} and {others}"
        )
    held = all(map(inside, values))
    verdict = {
        "name": name,
        "words": words,
        "value": list(map(_plain, values)),
        "band": _band(bounds),
        "held": held,
        "unlike": {
            "words": unlike[0],
            "value": list(map(_plain, others)),
            "outside": not any(map(inside, others)),
        },
    }
    line = "" if held else _differs(verdict)
    html = f'<p class="annotated-finding"><small>{escape(line)}</small></p>'
    data = {_FINDING: verdict, "text/html": html if line else "", "text/plain": line}
    display(data, raw=True)


def _band(bounds: list[tuple[str, float]]) -> str:
    short = [(sign, end, f"{end:g}") for sign, end in bounds]
    return " and ".join(
        f"{sign} {text if float(text) == end else repr(end)}"
        for sign, end, text in short
    )


def _numbers(value: float | Iterable[float]) -> list[float]:
    if not isinstance(value, Tensor):
        several = [*value] if isinstance(value, Iterable) else [value]
        value = torch.tensor(several, dtype=torch.float64)
    return value.cpu().double().flatten().tolist()


def _plain(number: float) -> float | str:
    """A number as JSON can hold it; ``float`` reads it back."""
    return number if math.isfinite(number) else str(number)


def _differs(verdict: dict[str, Any]) -> str:
    """What was found here and what the recorded machines found, in a line."""
    here = ", ".join(f"{float(number):.4g}" for number in verdict["value"])
    text = f"Not so here: {verdict['words']} Measured: {here}"
    page = verdict["name"].split("-")[0]
    file = resources.files("annotated.results").joinpath("findings", f"{page}.json")
    if file.is_file():
        record = json.loads(file.read_text("utf-8"))["findings"]
        found = record.get(verdict["name"], {}).get("values", {})
        spread = [float(number) for numbers in found.values() for number in numbers]
        if spread:
            low, high = min(spread), max(spread)
            text += f"; {len(found)} other machines: {low:.4g} to {high:.4g}"
    return f"{text}."


def say(text: str) -> None:
    """Show a paragraph whose numbers come from this run, the same on every front end.

    Args:
        text: Markdown, an f-string as a rule: ``say(f"It ends at {loss:.2f}.")``.
    """
    from IPython.display import Markdown, display

    display(Markdown(text))


def recorded(name: str) -> dict[str, Any]:
    """Return a long run that was recorded in ``book/results``, and say where from.

    In a line that pages hide, or put behind the quiet line if today's code may give
    something else.

    Args:
        name: the benchmark: ``python -m benchmarks NAME`` repeats it.
    """
    from IPython.display import display

    seeds = set()

    def note_seed(entry: dict[str, Any]) -> dict[str, Any]:
        seeds.update([entry["seed"]] if "seed" in entry else [])
        return entry

    file = resources.files("annotated.results").joinpath(f"{name}.json")
    result = json.loads(file.read_text("utf-8"), object_hook=note_seed)
    made = result["provenance"]
    line = f"recorded {made['date']}: {made['command']}"
    if seeds:
        line += f" (seeds {', '.join(map(str, sorted(seeds)))})"
    if made.get("exact", True):
        print(line)
        return result
    line += "; not exact: made before a record held the code that it used"
    html = f'<p class="annotated-recorded"><small>{escape(line)}</small></p>'
    display({"text/html": html, "text/plain": line}, raw=True)
    return result


def recorded_if_any(name: str) -> dict[str, Any] | None:
    """Return what :func:`recorded` does for a ``name``, or None without a record."""
    file = resources.files("annotated.results").joinpath(f"{name}.json")
    return recorded(name) if file.is_file() else None


def show_table(
    header: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = ""
) -> Html:
    """Return a table for a cell to show, each row named by its first entry.

    Args:
        header: names of the columns.
        rows: entries of the rows, from left to right; texts as they should appear.
        caption: what the table shows, above it.
    """
    return Html(render("table", header=header, rows=list(rows), caption=caption))


def cost() -> None:
    """Print what the session has taken so far: CPU seconds, and memory at its peak.

    The memory is left out where the system does not tell it (Windows).
    """
    text = f"this page so far: {time.process_time():.0f} CPU seconds"
    if importlib.util.find_spec("resource"):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        unit = 2**30 if sys.platform == "darwin" else 2**20  # bytes there, KiB here
        text += f", {peak / unit:.1f} GiB of memory at the peak"
    print(text)


def show(
    figure: "Figure", *, alt: str | None = None, caption: str = "", title: str = ""
) -> Html:
    """Show a figure with its alternative text and caption, and close it.

    Args:
        figure: a matplotlib figure.
        alt: what the figure shows, in words, for those who cannot see it; what
            :func:`annotated.page.plots.described` finds in it, if not given.
        caption: text below it.
        title: what it says, in a sentence above it.

    Returns:
        The figure, for a cell to show.

    Raises:
        ValueError: if ``alt`` says nothing.
    """
    image = plot_html(figure, described(figure) if alt is None else alt)
    return Html(render("figure", image=image, caption=caption, title=title))
