"""Checks of arguments: what is wrong, said before PyTorch says it in its own words.

``@require.shapes`` reads the shapes and dtypes of tensors from a function's
annotations. The rest are calls of one line that take arguments by their names:
``require.count(heads=heads)``. A value of the wrong kind raises ``TypeError``, any
other fault ``ValueError``, and every message names the argument, what was expected and
what came.

An integer may be Python's or NumPy's, never a ``bool``. Nothing is checked under
``torch.compile``. The numbers *in* a tensor are looked at on the CPU alone: on a GPU
the question would make the whole device wait for its answer.
"""

import inspect
from collections.abc import Callable, Collection
from functools import partial, wraps
from math import inf
from numbers import Integral, Real
from operator import attrgetter
from typing import Any, get_args

import torch
from jaxtyping import Bool, Int
from torch import Tensor

_KINDS = {
    torch.float32: "floats",
    torch.int64: "integers",
    torch.bool: "booleans (True = may attend)",
}


def shapes(function: Callable | None = None, **sizes: str) -> Callable:
    """Check the tensors of each call against annotations like ``Int[Tensor, "b t"]``.

    An axis is a letter, which stands for one length throughout a call; a number; ``_``
    for any length; ``...`` for any axes; or ``*batch`` for axes that are the same
    throughout a call. What a function returns is checked by the tests alone.

    Args:
        function: the function or method that is decorated.
        sizes: letters that ``self`` fixes: ``@require.shapes(d="d_model")`` makes d
            stand for ``self.d_model``, or for any length where that is ``None``.

    Returns:
        The function with its checks, which take about a microsecond for each tensor.

    Raises:
        TypeError: in a call, if an argument is no tensor of the annotated dtype.
        ValueError: in a call, if an argument has another shape.
    """
    if function is None:
        return partial(shapes, **sizes)
    arguments = []
    for place, parameter in enumerate(inspect.signature(function).parameters.values()):
        kinds = parameter.annotation, *get_args(parameter.annotation)  # of `X | None`
        optional = type(None) in kinds
        arguments += [
            _Argument(place, parameter.name, kind, optional)
            for kind in kinds
            if hasattr(kind, "dim_str")
        ]
    fixed = [(letter, f"self.{n}", attrgetter(n)) for letter, n in sizes.items()]
    numbers = {n: (int(n), "") for a in arguments for n in a.axes if n.isdigit()}

    @wraps(function)
    def checked(*args, **kwargs):
        if torch.compiler.is_compiling():
            return function(*args, **kwargs)
        known = numbers.copy()  # the length of each axis, and where it was read
        for letter, name, get in fixed:
            if (size := get(args[0])) is not None:
                known[letter] = size, name
        for argument in arguments:
            if argument.place < len(args):
                argument.check(args[argument.place], known)
            elif argument.name in kwargs:
                argument.check(kwargs[argument.name], known)
        return function(*args, **kwargs)

    return checked


class _Argument:
    """What the annotation of one argument asks for."""

    def __init__(self, place: int, name: str, annotation: Any, optional: bool):
        self.place, self.name, self.optional = place, name, optional
        self.dtypes = {getattr(torch, name, None) for name in annotation.dtypes}
        self.kind = next(_KINDS[dtype] for dtype in _KINDS if dtype in self.dtypes)
        self.axes = annotation.dim_str.split()
        several = [i for i, axis in enumerate(self.axes) if axis[0] in "*."]
        self.several = several[0] if several else None

    def check(self, value: Any, known: dict[str, tuple[Any, str]]) -> None:
        if value is None and self.optional:
            return
        if not isinstance(value, Tensor) or value.dtype not in self.dtypes:
            kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
            raise TypeError(f"{self.name} must be a tensor of {self.kind}, got {kind}")
        lengths, first = tuple(value.shape), self.several
        if first is not None:
            end = max(first, first + 1 + len(lengths) - len(self.axes))
            lengths = *lengths[:first], lengths[first:end], *lengths[end:]
        fits, reasons = len(lengths) == len(self.axes), []
        for axis, length in zip(self.axes, lengths if fits else (), strict=False):
            if axis not in ("_", "..."):
                expected, source = known.setdefault(axis, (length, self.name))
                if expected != length:
                    fits = False
                    if source:
                        reasons.append(f"{axis.strip('*')}={expected} as in {source}")
        if not fits:
            because = f" with {' and '.join(reasons)}" if reasons else ""
            raise ValueError(
                f"{self.name} must have the shape ({', '.join(self.axes)}){because}, "
                f"got {tuple(value.shape)}"
            )


def mask(mask: Bool[Tensor, "..."] | None, shape: tuple[int, ...]) -> None:
    """Require a mask that can be broadcast to scores of ``shape``, or none.

    Args:
        mask: boolean, True = may attend.
        shape: shape of the scores, ``(b, h, t, s)`` or ``(b, t, s)``.

    Raises:
        ValueError: if it does not fit, or has three axes for scores of four: its first,
            meant for the batch, would be read as the heads. Also if it has two and
            could be (b, s) as well as (t, s), since b = t.
    """
    if mask is None or torch.compiler.is_compiling():
        return
    if mask.dim() == 3 and len(shape) == 4:
        raise ValueError(
            "mask must have the axes (batch, heads, queries, keys), "
            f"got {tuple(mask.shape)}; for one mask a sequence pass mask[:, None]"
        )
    if mask.dim() == 2 and len(shape) == 4 and 1 < len(mask) == shape[0] == shape[2]:
        raise ValueError(
            "mask must have the axes (batch, heads, queries, keys), "
            f"got {tuple(mask.shape)}; for (queries, keys) pass mask[None, None], for "
            "(batch, keys) mask[:, None, None]"
        )
    pairs = zip(reversed(mask.shape), reversed(shape), strict=False)
    if mask.dim() > len(shape) or any(m not in (1, n) for m, n in pairs):
        raise ValueError(
            f"mask must be broadcastable to the shape {tuple(shape)} of the scores "
            f"(batch, …, queries, keys), got {tuple(mask.shape)}"
        )


def within(low: int, high: int, **tensors: Int[Tensor, "..."]) -> None:
    """Require that all numbers in each tensor lie between two bounds, ends included.

    Args:
        low: the least.
        high: the most.
        tensors: integers; on a GPU they are not looked at.

    Raises:
        ValueError: if a number lies outside.
    """
    for name, tensor in tensors.items():
        if torch.compiler.is_compiling() or tensor.device.type != "cpu":
            continue
        if not tensor.numel():
            continue
        least, most = (number.item() for number in tensor.aminmax())
        if least < low or most > high:
            raise ValueError(
                f"{name} must hold integers from {low} to {high}, "
                f"got {least if least < low else most}"
            )


def ids(size: int, **tokens: Int[Tensor, "..."]) -> None:
    """Require token ids below ``size``; on a GPU they are not looked at.

    Args:
        size: number of ids that there are.
        tokens: ids, tensors of any shape.

    Raises:
        ValueError: if an id is negative, or not below ``size``.
    """
    within(0, size - 1, **tokens)


def padding_behind(pad: int, **tokens: Int[Tensor, "b t"]) -> None:
    """Require rows that begin with a real token, or are padding throughout.

    Args:
        pad: the id of padding.
        tokens: ids; on a GPU they are not looked at.

    Raises:
        ValueError: if padding stands in front of a real token.
    """
    for name, tensor in tokens.items():
        if torch.compiler.is_compiling() or tensor.device.type != "cpu":
            continue
        real = tensor != pad
        rows = (~real[:, :1] & real).any(dim=1).nonzero().flatten().tolist()
        message = f"{name} must be padded behind, got padding first in rows {rows}"
        that(not rows, message)


def count(least: int = 1, most: int | None = None, **numbers: int) -> None:
    """Require integers that are large enough, and not too large.

    Args:
        least: the least that is allowed.
        most: the most that is allowed; any if not given.
        numbers: the arguments.

    Raises:
        TypeError: if one is no integer.
        ValueError: if one is out of range.
    """
    wanted = f"≥ {least}" if most is None else f"from {least} to {most}"
    for name, number in numbers.items():
        if not isinstance(number, Integral) or isinstance(number, bool):
            raise TypeError(f"{name} must be an integer {wanted}, got {number!r}")
        if number < least or (most is not None and number > most):
            raise ValueError(f"{name} must be an integer {wanted}, got {number}")


def even(**numbers: int) -> None:
    """Require even integers above 0, where numbers are taken in pairs.

    Args:
        numbers: the arguments.

    Raises:
        TypeError: if one is no integer.
        ValueError: if one is odd, or below 2.
    """
    count(least=2, **numbers)
    for name, number in numbers.items():
        if number % 2:
            raise ValueError(f"{name} must be even, got {number}")


def divides(**pair: int) -> None:
    """Require that one integer divides another: ``divides(heads=8, d_model=512)``.

    Args:
        pair: the divisor, then what it must divide.

    Raises:
        TypeError: if one is no integer.
        ValueError: if one is below 1, or there is a remainder.
    """
    count(**pair)
    (part, divisor), (whole, number) = pair.items()
    if number % divisor:
        raise ValueError(
            f"{part} must divide {whole}, got {part}={divisor} and {whole}={number}"
        )


def at_most(**pair: int) -> None:
    """Require that one number is not above another: ``at_most(length=9, max_len=32)``.

    Args:
        pair: the smaller, then the larger.

    Raises:
        ValueError: if the first is above the second.
    """
    (small, one), (large, other) = pair.items()
    if one > other:
        raise ValueError(
            f"{small} must be at most {large}, got {small}={one} and {large}={other}"
        )


def probability(**numbers: float) -> None:
    """Require probabilities in [0, 1), such as that of dropout.

    Args:
        numbers: the arguments.

    Raises:
        TypeError: if one is no number.
        ValueError: if one is below 0, or not below 1.
    """
    _real("in [0, 1)", lambda number: 0 <= number < 1, numbers)


def positive(**numbers: float) -> None:
    """Require finite numbers above 0.

    Args:
        numbers: the arguments.

    Raises:
        TypeError: if one is no number.
        ValueError: if one is not above 0, infinite or NaN.
    """
    _real("above 0 and finite", lambda number: 0 < number < inf, numbers)


def choice(options: Collection[Any], **values: Any) -> None:
    """Require one of several values.

    Args:
        options: what there is to choose from.
        values: the arguments.

    Raises:
        ValueError: if one is not among them.
    """
    for name, value in values.items():
        if value not in options:
            among = ", ".join(map(repr, options))
            raise ValueError(f"{name} must be one of {among}, got {value!r}")


def that(condition: object, message: str) -> None:
    """Require what no other check knows of.

    Args:
        condition: what must be true.
        message: names the argument, what is expected and what came.

    Raises:
        ValueError: with this message, if it is not.
    """
    if not condition:
        raise ValueError(message)


def _real(wanted: str, fits: Callable[[float], bool], numbers: dict[str, Any]) -> None:
    for name, number in numbers.items():
        if not isinstance(number, Real) or isinstance(number, bool):
            raise TypeError(f"{name} must be a number {wanted}, got {number!r}")
        if not fits(number):
            raise ValueError(f"{name} must be a number {wanted}, got {number}")
