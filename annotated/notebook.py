"""What a notebook needs around its ideas: set-up, checks, sources, figures."""

import ast
import importlib.util
import inspect
import os
import platform
import random
import sys
import textwrap
import time
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy
import torch
from torch import Tensor

from annotated.frames import Html, image_html
from annotated.plots import use_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WITH_DOCSTRING = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def setup(seed: int = 0) -> torch.device:
    """Seed everything, set the figure style, choose and name the device.

    ``ANNOTATED_DEVICE`` in the environment (``cpu`` or ``cuda``) decides the device;
    without it, a GPU is taken where there is one. Threads are left as they are.

    Args:
        seed: seed of ``torch``, ``numpy`` and ``random``.

    Returns:
        The device.

    Raises:
        RuntimeError: if ``ANNOTATED_DEVICE`` asks for a GPU that is not there.
        ValueError: if it names something else.
    """
    wanted = os.environ.get("ANNOTATED_DEVICE", "")
    if wanted not in ("", "cpu", "cuda"):
        raise ValueError(f"ANNOTATED_DEVICE must be cpu or cuda, got {wanted!r}")
    found = torch.cuda.is_available()
    if wanted == "cuda" and not found:
        raise RuntimeError("ANNOTATED_DEVICE=cuda, but PyTorch finds no GPU here")
    device = torch.device(wanted or ("cuda" if found else "cpu"))
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    random.seed(seed)
    use_style()
    where = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(
        f"Python {platform.python_version()}, PyTorch {torch.__version__}, {where}, "
        f"{torch.get_num_threads()} thread(s), seed {seed}"
    )
    return device


def show_source(*things: Any) -> None:
    """Show the source of classes and functions, as the module ships it.

    Of each docstring the first paragraph is shown: arguments and errors are in the
    reference, and a reader of the code is spared them.

    Args:
        things: the classes and functions, in the order wanted.

    Raises:
        TypeError: if one of the things has no Python source.
    """
    from IPython.display import Markdown, display

    for thing in things:
        try:
            source = inspect.getsource(thing)
        except (TypeError, OSError) as error:
            raise TypeError(
                f"show_source needs a class or function, got {thing!r}"
            ) from error
        code = _docstrings_shortened(textwrap.dedent(source).rstrip())
        display(Markdown(f"```python\n{code}\n```"))


def _docstrings_shortened(code: str) -> str:
    """Cut every docstring after its first paragraph; leave all other lines alone."""
    lines = code.splitlines()
    things = [n for n in ast.walk(ast.parse(code)) if isinstance(n, _WITH_DOCSTRING)]
    for thing in sorted(things, key=lambda thing: thing.lineno, reverse=True):
        if ast.get_docstring(thing) is None:
            continue
        first, end = thing.body[0].lineno - 1, thing.body[0].end_lineno
        kept = list(takewhile(str.strip, lines[first:end]))
        if len(kept) < end - first:
            kept[-1] += '"""'
        lines[first:end] = kept
    return "\n".join(lines)


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
        expected: as many of the same shapes.
        tolerance: largest absolute difference allowed.

    Raises:
        AssertionError: if a pair differs in shape, holds a number that is not
            finite, or differs by more than ``tolerance``.
        ValueError: if ``tolerance`` is negative or no number.
    """
    if not tolerance >= 0:  # NaN included: nothing is above it
        raise ValueError(f"tolerance must be 0 or more, got {tolerance}")
    pairs = _as_list(actual), _as_list(expected)
    if len(pairs[0]) != len(pairs[1]) or not pairs[0]:
        raise AssertionError(
            f"{claim}: {len(pairs[0])} tensors against {len(pairs[1])}; "
            "as many are needed on both sides, and at least one"
        )
    worst = 0.0
    for i, (one, other) in enumerate(zip(*pairs, strict=True)):
        if one.shape != other.shape:
            raise AssertionError(
                f"{claim}: tensor {i} has shape {tuple(one.shape)}, "
                f"expected {tuple(other.shape)}"
            )
        if one.numel() == 0:
            raise AssertionError(f"{claim}: tensor {i} is empty, nothing is compared")
        gap = (one.detach().double().cpu() - other.detach().double().cpu()).abs()
        if not gap.isfinite().all():
            raise AssertionError(f"{claim}: tensor {i} holds NaN or infinity")
        if gap.max() > tolerance:
            at = numpy.unravel_index(int(gap.argmax()), gap.shape)
            place = tuple(int(k) for k in at)
            raise AssertionError(
                f"{claim}: worst difference {gap.max().item():.2e} is above "
                f"{tolerance:.0e}, in tensor {i} at {place}: "
                f"{one[place].item():.6g} against {other[place].item():.6g}"
            )
        worst = max(worst, gap.max().item())
    print(f"✓ {claim}: worst difference {worst:.1e} (allowed {tolerance:.0e})")


def _as_list(tensors: Tensor | Sequence[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


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


def show(figure: "Figure", *, alt: str | None = None, caption: str = "") -> Html:
    """Show a figure with its alternative text and caption, and close it.

    Args:
        figure: a matplotlib figure.
        alt: what the figure shows, in words, for those who cannot see it.
        caption: text below it.

    Returns:
        The figure, for a cell to show.

    Raises:
        ValueError: if ``alt`` is missing or says nothing.
    """
    import html

    image = image_html(figure, alt)
    below = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    return Html(f'<figure class="annotated-figure">{image}{below}</figure>')
