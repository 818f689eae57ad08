"""Hidden cases of the exercises of chapter 02: other shapes, dtypes, and corners."""

import torch

from annotated.checks import Function
from annotated.checks.ch02 import (
    judge_equivariance,
    judge_factor,
    judge_scaled,
    judge_self_attention,
)
from annotated.checks.material import draw
from grading.hidden import hidden

HALVES = torch.float16, torch.bfloat16

# ---- self-attention with a temperature ---------------------------------------


@hidden("ch02-tempered", draw(3, 5, 4, seed=400), torch.tensor([0.3, 1.0, 9.0]))
def _(y, x, tau):
    "other shapes"
    judge_self_attention(y, x, tau)


@hidden("ch02-tempered", draw(1, 6, 3, seed=401), torch.tensor([2.5]))
def _(y, x, tau):
    "a batch of one"
    judge_self_attention(y, x, tau)


@hidden("ch02-tempered", draw(4, 1, 3, seed=402), torch.tensor([1.0, 2.0, 3.0, 4.0]))
def _(y, x, tau):
    "a single word looks at itself"
    judge_self_attention(y, x, tau)


@hidden("ch02-tempered", draw(3, 3, 3, seed=403), torch.tensor([0.6, 1.5, 3.0]))
def _(y, x, tau):
    "all axes of one length"
    judge_self_attention(y, x, tau)


@hidden("ch02-tempered", draw(2, 4, 5, seed=404), torch.tensor([1e-3, 1e6]))
def _(y, x, tau):
    "both limits"
    judge_self_attention(y, x, tau)


for _dtype in (torch.float64, *HALVES):

    @hidden(
        "ch02-tempered",
        draw(2, 4, 3, seed=405, dtype=_dtype),
        torch.tensor([1.5, 4.0], dtype=_dtype),
    )
    def _(y, x, tau):
        "other precisions"
        judge_self_attention(y, x, tau)


# ---- the scaling -------------------------------------------------------------


@hidden("ch02-scaled-energies", draw(3, 4, 2, seed=500), draw(3, 6, 2, seed=501))
def _(energies, q, k):
    "other shapes"
    judge_scaled(energies, q, k)


@hidden("ch02-scaled-energies", draw(2, 5, 5, seed=502), draw(2, 5, 5, seed=503))
def _(energies, q, k):
    "as many words as entries"
    judge_scaled(energies, q, k)


@hidden("ch02-scaled-energies", draw(1, 1, 3, seed=504), draw(1, 1, 3, seed=505))
def _(energies, q, k):
    "one of each"
    judge_scaled(energies, q, k)


for _dtype in (torch.float64, *HALVES):

    @hidden(
        "ch02-scaled-energies",
        draw(2, 3, 8, seed=506, dtype=_dtype),
        draw(2, 5, 8, seed=507, dtype=_dtype),
    )
    def _(energies, q, k):
        "other precisions"
        judge_scaled(energies, q, k)


@hidden(
    "ch02-scaled-energies",
    torch.full((2, 3, 1024), -16.0, dtype=torch.float16),
    torch.full((2, 1, 1024), 16.0, dtype=torch.float16),
)
def _(energies, q, k):
    "float16, a product below the smallest number"
    judge_scaled(energies, q, k)


for _width in (1, 9, 100, 576):

    @hidden("ch02-uniform-factor", _width)
    def _(factor, width):
        "other widths"
        judge_factor(factor, width)


# ---- equivariance ------------------------------------------------------------

# what is called with x -> is it equivariant, and what fools an answer that says not so
_FUNCTIONS = {
    "x": (True, "the identity is equivariant"),
    "x[:, :1].square()": (True, "a function may change the width"),
    "(x @ x.mT).softmax(dim=-1) @ x": (True, "self-attention is; is it rounding?"),
    "x.mean(dim=0, keepdim=True).expand_as(x)": (
        True,
        "rows that are all equal are equivariant too",
    ),
    "(x - x.mean(dim=0)) / x.std(dim=0)": (True, "is it rounding?"),
    "x.roll(1, dims=0)": (False, "it commutes with rolling: shuffle by a random p"),
    "x.flip(0)": (False, "it commutes with reversing: shuffle by a random p"),
    "x.sort(dim=0).values": (
        False,
        "that is invariant, f(x[p]) = f(x), which is another property",
    ),
    "x @ x.mT": (False, "the rows move with the shuffle, but the columns do too"),
    "torch.cat([2 * x[:1], x[1:]])": (
        False,
        "only a shuffle that moves the first row tells: try several",
    ),
    "torch.cat([x[:-1], 0 * x[-1:]])": (
        False,
        "only a shuffle that moves the last row tells: try several",
    ),
    "x + x.clamp(max=0).cumsum(dim=0)": (
        False,
        "only numbers below 0 tell: draw x from torch.randn",
    ),
    "x + x.clamp(min=0).cumsum(dim=0)": (
        False,
        "only numbers above 0 tell: draw x from torch.randn",
    ),
    "((x @ x.mT).masked_fill(torch.ones(len(x), len(x)).triu(1).bool(), -math.inf)"
    ".softmax(dim=-1) @ x)": (False, "causal attention is not (section 2.4)"),
    "x + 1e-2 * torch.arange(len(x))[:, None]": (
        False,
        "a small difference is a difference: allow only for rounding, 1e-5 or so",
    ),
}


def _declare(expression: str, right: bool, hint: str) -> None:
    def judge(verdict, f):
        judge_equivariance(verdict, right, hint)

    judge.__doc__ = f"{expression} is {'' if right else 'not '}equivariant"
    hidden("ch02-is-equivariant", Function(expression))(judge)


for _expression, (_right, _hint) in _FUNCTIONS.items():
    _declare(_expression, _right, _hint)
