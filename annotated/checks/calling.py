"""Calling an answer: all that a student's process needs, and no right answer in it.

Nothing but plain data passes in and out: tensors, numbers, strings, None, and lists,
tuples and dicts of these.
"""

import builtins
import linecache
import math
import numbers
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy
import torch
from torch import Tensor

NOT_DONE = "not done yet: write your code in the cell above, then run both cells"
PROBLEMS = {
    "no function": "expected a function",
    "no gradient": "no gradient flows from the result to the arguments (is there a "
    "detach, a .data, an .item() or a new tensor on the way?)",
    "not plain": "expected a tensor, a number or the like, or lists of these",
    "annotated": "your code calls `annotated`: an answer is written with PyTorch alone",
    "exit": "your code ends the program: no exit() here, please",
}


@dataclass(frozen=True, eq=False)
class Function:
    """A function as an argument, written as an expression, so that it is plain text.

    ``Function("x.cumsum(dim=0)")(x)``; ``torch`` and ``math`` may be used in it. What
    it is, an answer should find out by calling it: neither its ``repr`` says, nor a
    comparison with another one.
    """

    expression: str = field(repr=False)
    parameters: str = "x"

    @cached_property
    def _function(self) -> Callable:
        text = f"lambda {self.parameters}: {self.expression}"
        return eval(text, {"torch": torch, "math": math})

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._function(*arguments, **named)


class Differentiated(NamedTuple):
    """The result of a case with ``gradients=True``.

    ``gradients`` holds, for each floating-point tensor among the arguments, in order,
    the gradient of ``(value * upstream(value)).sum()``; None where there is none.
    """

    value: Any
    gradients: list


class Raised(NamedTuple):
    """What an answer raised; ``kind`` is Python's own, ``ValueError`` also for a class
    derived from it, and ``line`` the line of the answer, if known."""

    kind: str
    message: str = ""
    line: str = ""


class Problem(NamedTuple):
    """Why there is no result, though nothing was raised: a key of ``PROBLEMS``."""

    name: str


class Call(NamedTuple):
    """What came of calling an answer; plain data, it may come from another process."""

    result: Any  # a Raised or a Problem where there is no other
    after: tuple = ()  # the arguments, after the call


def call(
    answer: Any,
    arguments: tuple,
    gradients: bool = False,
    through: Callable | None = None,
    watched: bool = True,
    seed: int = 0,
) -> Call:
    """Call an answer. What it raises becomes a result, and no exception.

    Args:
        answer: a function, or anything that can be called.
        arguments: what it is called with; given away, so pass a copy.
        gradients: return a `Differentiated`.
        through: called as ``through(answer, *arguments)`` in place of the answer.
        watched: refuse an answer that calls functions of the book.
        seed: of the random numbers that it draws.
    """
    if not callable(answer):
        return Call(Problem("no function"))
    called = partial(through, answer) if through else answer
    if not watched:
        return _called(answer, called, arguments, gradients, seed)
    with _modules_called() as modules:
        outcome = _called(answer, called, arguments, gradients, seed)
    return Call(Problem("annotated"), outcome.after) if modules else outcome


@contextmanager
def _modules_called() -> Iterator[set[str]]:
    """The modules of the book, but for the checks, whose functions are called."""
    modules: set[str] = set()

    def note(frame, event: str, _) -> None:
        if event == "call":
            name = frame.f_globals.get("__name__", "")
            if name.startswith("annotated."):
                modules.add(name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield modules
    finally:
        sys.setprofile(before)
        modules -= {name for name in modules if "checks" in name.split(".")}


def _called(
    answer: Any, called: Any, arguments: tuple, gradients: bool, seed: int
) -> Call:
    try:
        # answers may draw random numbers: always the same, and the notebook's own
        # sequence goes on as if they had not
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            if gradients:
                return _differentiated(called, arguments)
            with torch.no_grad():
                return Call(unwrapped(called(*arguments)), arguments)
    except SystemExit:
        return Call(Problem("exit"))
    except Exception as error:
        return Call(_raised(answer, error))


def _differentiated(answer: Callable, arguments: tuple) -> Call:
    leaves = []

    def with_leaves(argument):
        if isinstance(argument, tuple):  # of weights
            return tuple(map(with_leaves, argument))
        if not is_float(argument):
            return argument
        leaves.append(argument.clone().requires_grad_())
        # an answer that writes into a leaf would raise, not change its argument
        return leaves[-1].clone()

    given = with_leaves(arguments)
    value = answer(*given)
    if not isinstance(value, Tensor):
        return Call(copied(unwrapped(value)), copied(given))
    if not value.requires_grad:
        return Call(Problem("no gradient"))
    (value * upstream(value)).sum().backward()
    result = Differentiated(value.detach(), [leaf.grad for leaf in leaves])
    return Call(result, copied(given))


def _raised(answer: Any, error: Exception) -> Raised:
    names = [kind.__name__ for kind in type(error).__mro__]
    own = next(name for name in names if hasattr(builtins, name))
    while isinstance(answer, partial):
        answer = answer.func
    method = getattr(type(answer), "__call__", None)  # noqa: B004, of an object
    code = getattr(answer, "__code__", None) or getattr(method, "__code__", None)
    frame, line = error.__traceback__, ""
    while frame:
        filename = frame.tb_frame.f_code.co_filename
        if code and filename == code.co_filename:
            line = linecache.getline(filename, frame.tb_lineno).strip()
        frame = frame.tb_next
    return Raised(own, " ".join(str(error).split())[:300], line[:200])


def is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def upstream(value: Tensor) -> Tensor:
    """The gradient that comes from above in cases with ``gradients=True``.

    Fixed and uneven, so that rows and columns that are swapped cannot cancel.
    """
    return torch.arange(1, value.numel() + 1).to(value).sin().view(value.shape)


def mapped(change: Callable, value: Any) -> Any:
    """``change`` applied to all that lists, tuples and dicts hold."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(change, item) for item in value))
    if isinstance(value, list | tuple):
        kind = list if isinstance(value, list) else tuple
        return kind(mapped(change, item) for item in value)
    if isinstance(value, dict):
        return {key: mapped(change, item) for key, item in value.items()}
    return change(value)


def copied(value: Any) -> Any:
    """A copy of plain data that shares no memory with it."""
    return mapped(lambda v: v.detach().clone() if isinstance(v, Tensor) else v, value)


def unwrapped(value: Any) -> Any:
    """Python's own numbers for numpy's, and for classes derived from them."""

    def plain(v: Any) -> Any:
        if isinstance(v, bool | numpy.bool_):
            return bool(v)
        if isinstance(v, numbers.Integral):
            return int(v)
        return float(v) if isinstance(v, numbers.Real) else v

    return mapped(plain, value)
