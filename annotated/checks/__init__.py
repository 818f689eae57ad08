"""Instant checks of exercises: ``check("ch02-scaled-energies", scaled_energies)``.

A test is a :class:`Case`: plain arguments, and a judge that looks at the plain result.
A notebook calls the answer and the judge in one process; grading calls the answer in a
process of its own and judges outside it. So a judge never calls the answer, and nothing
but numbers, strings, tensors and lists of these passes between the two.

The cases of a chapter are in ``annotated/checks/chNN.py``, one function a case::

    @public("ch02-scaled-energies", query, key)
    def _(energies, query, key):
        "the energies are divided by √k"
        raw = query @ key.mT
        expect(
            energies,
            raw / math.sqrt(query.shape[-1]),
            hint="expected q·k / √k",
            mistakes={"the factor 1/√k is missing": raw},
        )

The docstring is the line that the reader sees; what the decorator takes after the
exercise are the arguments of the answer; the judge takes the result, then the same
arguments, unchanged. It fails by an AssertionError whose message names the likely
mistake.
"""

import builtins
import importlib
import inspect
import linecache
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

EXERCISE = re.compile(r"ch\d\d-[a-z0-9]+(-[a-z0-9]+)*")
NOT_DONE = "not done yet: write your code in the cell above, then run both cells"

_PUBLIC: dict[str, list["Case"]] = {}


class CheckFailed(AssertionError):
    """A check did not pass; shown as one line, without the way through our code."""

    def _render_traceback_(self) -> list[str]:  # what IPython and Colab show
        return [f"\x1b[31m✗ {self}\x1b[0m"]


@dataclass(frozen=True)
class Case:
    """One test of one exercise.

    Args:
        exercise: id, such as ``ch02-scaled-energies``.
        line: what is tested, one line for the reader.
        arguments: what the answer is called with: tensors, numbers, strings, None,
            :class:`Function`, and lists, tuples or dicts of these.
        judge: called as ``judge(result, *arguments)``; raises AssertionError(hint).
        gradients: hand the judge a :class:`Differentiated` as the result.
        in_place: the answer may change its arguments (it must not, otherwise).
        raises: hand the judge a :class:`Raised` where the answer raises an exception,
            instead of failing; for answers that should refuse their arguments.
        through: called as ``through(answer, *arguments)`` in place of the answer, and
            its result is judged; for answers that take or change what is no plain
            data, modules say. A function of a module that students' processes have.
    """

    exercise: str
    line: str
    arguments: tuple
    judge: Callable
    gradients: bool = False
    in_place: bool = False
    raises: bool = False
    through: Callable | None = None

    @property
    def names(self) -> list[str]:
        """What the arguments are called, after the parameters of the judge."""
        return list(inspect.signature(self.judge).parameters)[1:]


@dataclass(frozen=True)
class Function:
    """A function as an argument, written as an expression, so that it is plain text.

    ``Function("x.cumsum(dim=0)")(x)``; ``torch`` and ``math`` may be used in it.
    """

    expression: str
    parameters: str = "x"

    @cached_property
    def _function(self) -> Callable:
        text = f"lambda {self.parameters}: {self.expression}"
        return eval(text, {"torch": torch, "math": math})

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


class Differentiated(NamedTuple):
    """The result of a case with ``gradients=True``.

    ``gradients`` holds, for each floating-point tensor among the arguments, in order,
    the gradient of ``(value * upstream(value)).sum()``; None where there is none.
    """

    value: Any
    gradients: list


class Raised(NamedTuple):
    """The result of a case with ``raises=True`` whose answer raised an exception.

    ``kind`` is Python's own: ``ValueError`` also for a class derived from it.
    """

    kind: str
    message: str


class Call(NamedTuple):
    """What came of calling an answer; plain data, it may come from another process.

    ``problem`` is None, or a line for the reader where there is no result (but a
    `Raised`, if the answer raised an exception).
    """

    result: Any
    after: tuple  # the arguments, after the call
    problem: str | None


def public(exercise: str, *arguments: Any, **options: Any) -> Callable:
    """Declare a public case: the decorated function is its judge.

    The options are those of :class:`Case`: ``gradients``, ``in_place``, ``raises``,
    ``through``.
    """
    return register(_PUBLIC, exercise, *arguments, **options)


def register(
    table: dict[str, list[Case]],
    exercise: str,
    *arguments: Any,
    gradients: bool = False,
    in_place: bool = False,
    raises: bool = False,
    through: Callable | None = None,
) -> Callable:
    """`public`, for a table of cases that is not the public one."""
    if not EXERCISE.fullmatch(exercise):
        raise ValueError(
            f"exercise {exercise!r}: expected chNN- and then small letters, digits "
            "and hyphens, ch02-scaled-energies say"
        )

    def declare(judge: Callable) -> Callable:
        line = " ".join((judge.__doc__ or "").split())
        if not line:
            raise ValueError(f"{exercise}: a judge needs a docstring, its line")
        flags = gradients, in_place, raises
        case = Case(exercise, line, arguments, judge, *flags, through)
        if len(case.names) != len(arguments):
            raise ValueError(
                f"{exercise}, {line!r}: the judge should take the result and "
                f"{len(arguments)} argument(s), it takes {case.names}"
            )
        table.setdefault(exercise, []).append(case)
        return judge

    return declare


def public_cases(exercise: str) -> list[Case]:
    """The public cases of an exercise, in the order of their declaration.

    Raises:
        KeyError: if there is no such exercise.
    """
    if not EXERCISE.fullmatch(exercise):
        raise KeyError(
            f"exercise must be an id such as ch02-scaled-energies, got {exercise!r}"
        )
    chapter = exercise[:4]
    try:
        importlib.import_module(f"annotated.checks.{chapter}")
    except ModuleNotFoundError as error:
        if error.name != f"annotated.checks.{chapter}":
            raise
    if exercise not in _PUBLIC:
        known = sorted(name for name in _PUBLIC if name.startswith(chapter))
        raise KeyError(f"there is no exercise {exercise!r}; {chapter} has {known}")
    return list(_PUBLIC[exercise])


def check(exercise: str, answer: Any) -> None:
    """Try an answer on the public cases of an exercise, one printed line a case.

    Args:
        exercise: id, such as ``ch02-scaled-energies``.
        answer: the reader's function.

    Raises:
        CheckFailed: if the answer is wrong or not done yet.
        KeyError: if there is no such exercise.
    """
    cases = public_cases(exercise)
    failed = 0
    for case in cases:
        problem = try_case(case, answer)
        if problem == NOT_DONE:
            raise CheckFailed(NOT_DONE)
        print(f"✗ {case.line}: {problem}" if problem else f"✓ {case.line}")
        failed += problem is not None
    if failed:
        raise CheckFailed(f"{failed} of {len(cases)} checks of {exercise} failed")
    print(f"all {len(cases)} public checks of {exercise} passed")


def try_case(case: Case, answer: Any) -> str | None:
    """None if the answer passes, otherwise the hint."""
    called = call(answer, copied(case.arguments), case.gradients, case.through)
    return verdict(case, called)


def call(
    answer: Any,
    arguments: tuple,
    gradients: bool = False,
    through: Callable | None = None,
) -> Call:
    """Call an answer. What it raises becomes a line, and no exception."""
    if not callable(answer):
        kind = type(answer).__name__
        return Call(None, (), f"expected a function, got {kind}")
    try:
        # answers may draw random numbers: always the same, and the notebook's own
        # sequence goes on as if they had not
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            called = partial(through, answer) if through else answer
            if gradients:
                return _differentiated(called, arguments)
            with torch.no_grad():
                return Call(called(*arguments), arguments, None)
    except NotImplementedError as error:
        # torch raises it too, with a message, for what a dtype or device lacks
        if not str(error):
            return Call(None, (), NOT_DONE)
        return Call(_plain(error), (), _raised(answer, error))
    except SystemExit:
        return Call(None, (), "your code ends the program: no exit() here, please")
    except Exception as error:
        return Call(_plain(error), (), _raised(answer, error))


def _plain(error: Exception) -> Raised:
    names = [kind.__name__ for kind in type(error).__mro__]
    own = next(name for name in names if hasattr(builtins, name))
    return Raised(own, str(error)[:1000])


def _differentiated(answer: Callable, arguments: tuple) -> Call:
    leaves, given = [], []
    for argument in arguments:
        if isinstance(argument, Tensor) and argument.is_floating_point():
            leaves.append(argument.clone().requires_grad_())
            # an answer that writes into a leaf would raise, not change its argument
            argument = leaves[-1].clone()
        given.append(argument)
    value = answer(*given)
    if not (isinstance(value, Tensor) and value.requires_grad):
        return Call(
            None,
            (),
            "no gradient flows from the result to the arguments (is there a "
            "detach, a .data, an .item() or a new tensor on the way?)",
        )
    (value * upstream(value)).sum().backward()
    result = Differentiated(value.detach(), [leaf.grad for leaf in leaves])
    after = tuple(a.detach() if isinstance(a, Tensor) else a for a in given)
    return Call(result, after, None)


def _raised(answer: Callable, error: Exception) -> str:
    """What an answer raised, and in which of its own lines."""
    text = f"your code raised {type(error).__name__}: {' '.join(str(error).split())}"
    text = text if len(text) < 300 else text[:300] + "…"
    filename = getattr(getattr(answer, "__code__", None), "co_filename", None)
    frame, line = error.__traceback__, ""
    while frame:
        if frame.tb_frame.f_code.co_filename == filename:
            line = linecache.getline(filename, frame.tb_lineno).strip()
        frame = frame.tb_next
    return f"{text} (in the line `{line}`)" if line else text


def verdict(case: Case, called: Call) -> str | None:
    """Judge what came of a call; None if it passes, otherwise the hint."""
    result = called.result
    if called.problem:
        if not (case.raises and _is_raised(result)):
            return called.problem
        result = Raised(*result)  # it came as a plain tuple from another process
    elif not case.in_place:
        for name, before, after in zip(
            case.names, case.arguments, called.after, strict=True
        ):
            if not close(before, after, 0.0):
                return f"your code changes its argument `{name}` in place; make a copy"
    try:
        case.judge(result, *copied(case.arguments))
    except AssertionError as error:
        return str(error) or "not what is expected"
    except Exception:  # a judge met what it cannot add up or index
        return f"expected something else than {_described(result)}"
    return None


def _is_raised(result: Any) -> bool:
    return (
        isinstance(result, tuple)
        and len(result) == 2
        and all(isinstance(item, str) for item in result)
    )


def expect(
    result: Any,
    expected: Any,
    *,
    hint: str,
    mistakes: dict[str, Any] | None = None,
    tolerance: float = 1e-5,
) -> None:
    """Fail with the reason that is most likely: kind, shape, dtype, NaN, values.

    Args:
        result: what an answer returned.
        expected: a tensor, a number, a string, or a list or tuple of these.
        hint: said where the values differ and no known mistake gives them.
        mistakes: hint -> the values that this mistake gives. Looked at before the
            shape and the dtype, so a mistake may show in these.
        tolerance: largest difference, absolute or relative to the expected value.
    """
    for mistake, wrong in (mistakes or {}).items():
        # a wrong value that is right for these arguments would name a wrong reason
        if not close(wrong, expected, tolerance) and close(result, wrong, tolerance):
            raise AssertionError(mistake)
    if result is None and expected is not None:
        raise AssertionError("your function returns nothing: is a `return` missing?")
    if isinstance(expected, Tensor):
        _expect_tensor(result, expected)
    elif isinstance(expected, bool | str) and type(result) is not type(expected):
        raise AssertionError(
            f"expected {type(expected).__name__}, got {_described(result)}"
        )
    elif isinstance(expected, list | tuple):
        if not isinstance(result, list | tuple) or len(result) != len(expected):
            raise AssertionError(
                f"expected {len(expected)} values, got {_described(result)}"
            )
    if not close(result, expected, tolerance):
        raise AssertionError(hint)


def _expect_tensor(result: Any, expected: Tensor) -> None:
    if not isinstance(result, Tensor):
        raise AssertionError(f"expected a tensor, got {_described(result)}")
    if result.shape != expected.shape:
        raise AssertionError(
            f"the shape is {tuple(result.shape)}, expected {tuple(expected.shape)}"
        )
    if result.dtype != expected.dtype:
        raise AssertionError(f"the dtype is {result.dtype}, expected {expected.dtype}")
    if result.isnan().any() and not expected.isnan().any():
        raise AssertionError("the result holds NaN (not a number)")


def close(one: Any, other: Any, tolerance: float = 1e-5) -> bool:
    """Are two plain values of one kind, shape and dtype, and nearly equal?"""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        wide = torch.complex128 if one.is_complex() else torch.float64
        return torch.allclose(
            one.to(wide), other.to(wide), rtol=tolerance, atol=tolerance, equal_nan=True
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(close(a, b, tolerance) for a, b in pairs)
    if isinstance(one, dict) and isinstance(other, dict):
        same = one.keys() == other.keys()
        return same and all(close(one[key], other[key], tolerance) for key in one)
    if _is_number(one) and _is_number(other):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    return type(one) is type(other) and not isinstance(one, Tensor) and one == other


def upstream(value: Tensor) -> Tensor:
    """The gradient that comes from above in cases with ``gradients=True``.

    Fixed and uneven, so that rows and columns that are swapped cannot cancel.
    """
    return torch.arange(1, value.numel() + 1).to(value).sin().view(value.shape)


def copied(value: Any) -> Any:
    """A copy of plain data that shares no memory with it."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, list | tuple):
        return type(value)(copied(item) for item in value)
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _described(value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return f"{kind} {value!r}" if isinstance(value, bool | int | float) else f"a {kind}"
