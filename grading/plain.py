"""Plain data as JSON, for what passes between the grader and a student's process.

Nothing is unpickled: what a student's process sends may be anything at all.
"""

import base64
import json
import math
from typing import Any

import torch
from torch import Tensor

from annotated.checks.calling import Differentiated, Function, Problem, Raised

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
        torch.float16, torch.bfloat16, torch.float32, torch.float64,
        torch.complex64, torch.complex128,
    )
}  # fmt: skip
MOST_ELEMENTS = 500_000
MOST_PARTS = 50_000  # of a text: lists of lists cost far more than their length
MOST_KEYS = 1000  # of a dict: keys can be chosen so that each one is slow to find
NAMED = {kind.__name__: kind for kind in (Differentiated, Raised, Problem)}


class NotPlain(ValueError):
    """A value that is not plain data, or a text that describes none."""


def dumps(value: Any) -> str:
    """JSON of tensors, numbers, strings, None, and lists, tuples, dicts of these."""
    return json.dumps(_encoded(value))


def loads(text: str) -> Any:
    """The value of `dumps`. Functions never come back: they are only arguments."""
    try:
        if sum(map(text.count, ",[{")) > MOST_PARTS:
            raise NotPlain(f"more than {MOST_PARTS} parts")
        return _decoded(json.loads(text))
    except NotPlain:
        raise
    except (ValueError, TypeError, KeyError, RecursionError, RuntimeError) as error:
        raise NotPlain(f"not plain data: {type(error).__name__}") from error


def load_arguments(text: str) -> Any:
    """The value of `dumps`, functions included; for what the grader itself wrote."""
    return _decoded(json.loads(text), functions=True)


def _encoded(value: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Tensor):
        return {"tensor": _encoded_tensor(value)}
    if isinstance(value, Function):
        return {"function": [value.expression, value.parameters]}
    if type(value) in NAMED.values():
        fields = [_encoded(item) for item in value]
        return {"named": [type(value).__name__, fields]}
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_encoded(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_encoded(k), _encoded(v)] for k, v in value.items()]}
    kind = type(value).__name__
    raise NotPlain(f"expected a tensor, a number or the like, got a {kind}")


def _encoded_tensor(tensor: Tensor) -> list:
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in DTYPES or tensor.layout != torch.strided:
        raise NotPlain(f"expected an ordinary tensor, got {name}, {tensor.layout}")
    if tensor.numel() > MOST_ELEMENTS:
        raise NotPlain(f"a tensor of shape {tuple(tensor.shape)} is too large")
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    data = flat.view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    return [name, list(tensor.shape), base64.b64encode(data).decode("ascii")]


def _decoded(value: Any, functions: bool = False) -> Any:
    if isinstance(value, list):
        return [_decoded(item, functions) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise NotPlain(f"expected one key, got {len(value)}")
    [(kind, content)] = value.items()
    if kind == "tensor":
        return _decoded_tensor(*content)
    if kind == "tuple":
        return tuple(_decoded(item, functions) for item in content)
    if kind == "dict" and len(content) <= MOST_KEYS:
        return {_decoded(k, functions): _decoded(v, functions) for k, v in content}
    if kind == "named":
        name, fields = content
        return NAMED[name](*map(_decoded, fields))
    if kind == "function" and functions:
        return Function(*content)
    raise NotPlain(f"unknown kind {kind[:40]!r}")


def _decoded_tensor(name: str, shape: list[int], data: str) -> Tensor:
    dtype = DTYPES.get(name)
    sizes_fit = all(type(size) is int and size >= 0 for size in shape)
    if dtype is None or not sizes_fit or math.prod(shape) > MOST_ELEMENTS:
        raise NotPlain(f"a tensor of dtype {name[:40]!r} and shape {shape[:8]}")
    raw = bytearray(base64.b64decode(data, validate=True))
    if len(raw) != math.prod(shape) * dtype.itemsize:
        raise NotPlain(f"{len(raw)} bytes for shape {shape[:8]} of {name}")
    if not raw:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(raw, dtype=dtype).reshape(shape)
