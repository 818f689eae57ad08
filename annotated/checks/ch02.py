"""Public checks of the exercises of chapter 02; ``__init__.py`` says how they work.

What a judge compares with is written here, apart from the module and from the model
answers, and so are the mistakes it knows by name.
"""

import torch
from torch import Tensor

from annotated.checks import Function, expect, public
from annotated.checks.material import draw, expect_gradients, tolerance_of

# ---- self-attention with a temperature ---------------------------------------


def right_self_attention(x, tau):
    raw = torch.einsum("btk,bsk->bts", x, x)
    weights = torch.einsum("bts,b->bts", raw, 1 / tau).softmax(dim=2)
    return torch.einsum("bts,bsk->btk", weights, x)


def judge_self_attention(y, x, tau):
    dtype, wide, t = x.dtype, x.double(), tau.double()
    raw, each = wide @ wide.mT, t[:, None, None]
    b, length, width = x.shape
    right = right_self_attention(wide, t)

    def attend(energies, dim=-1):
        return energies.softmax(dim=dim) @ wide

    mistakes = {
        "the temperature multiplies the raw weights; it should divide them": (
            attend(raw * each)
        ),
        "the temperature is not used": attend(raw),
        "the temperature divides the weights after the softmax; it belongs before it": (
            attend(raw) / each
        ),
        "the raw weights are divided by √k as well: here only by τ": (
            attend(raw / each / width**0.5)
        ),
        "the raw weights are divided by √τ: here by τ": attend(raw / each**0.5),
        "the softmax runs over the wrong axis: row i, over all j, should sum to 1": (
            attend(raw / each, dim=1)
        ),
        "every sequence has its own temperature, and you use the first for all": (
            attend(raw / t[0])
        ),
        "these are the weights: the average of the inputs is still to come": (
            (raw / each).softmax(dim=-1)
        ),
        "the softmax is missing: the weights of a row should sum to 1": (
            raw / each @ wide
        ),
        "view and reshape change which number belongs to which word; use transpose": (
            attend(wide @ wide.reshape(b, width, length) / each)
        ),
    }
    if b == length:
        side = "τ is divided along the wrong axis: its axis is the batch; "
        side += "tau[:, None, None] has shape (b, 1, 1)"
        mistakes[side] = attend(raw / t)
        mistakes[side + ", tau[:, None] is another"] = attend(raw / t[:, None])
    expect(
        y,
        right.to(dtype),
        hint="expected the average of x with weights softmax(x xᵀ / τ)",
        mistakes={name: wrong.to(dtype) for name, wrong in mistakes.items()},
        tolerance=tolerance_of(dtype),
    )


WORDS = torch.tensor(
    [[-0.5, -0.5, -0.5], [2.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 2.0]]
)


@public("ch02-tempered", WORDS[None], torch.tensor([1.0]))
def _(y, x, tau):
    "the four words of section 2.2, τ = 1"
    judge_self_attention(y, x, tau)


@public("ch02-tempered", torch.stack([WORDS, WORDS]), torch.tensor([0.5, 8.0]))
def _(y, x, tau):
    "the same words twice, cold and warm"
    judge_self_attention(y, x, tau)


@public("ch02-tempered", draw(3, 3, 5, seed=60), torch.tensor([0.5, 2.0, 4.0]))
def _(y, x, tau):
    "as many sequences as words: each keeps its own τ"
    judge_self_attention(y, x, tau)


@public(
    "ch02-tempered", draw(2, 3, 4, seed=61), torch.tensor([0.7, 3.0]), gradients=True
)
def _(result, x, tau):
    "gradients reach x and τ"
    expect_gradients(
        result,
        right_self_attention,
        *(x, tau),
        names="x tau",
        hint="is something detached, or made of plain numbers, on the way?",
    )


# ---- the scaling -------------------------------------------------------------


def judge_scaled(energies, q, k):
    dtype, wide_q, wide_k = q.dtype, q.double(), k.double()
    width, raw = q.shape[-1], wide_q @ wide_k.mT
    (b, t, _), s = q.shape, k.shape[1]
    right = raw / width**0.5
    lone = ", or is it the root of another axis, here of length 1?"
    mistakes = {
        "the factor 1/√k is missing" + lone * (1 in (b, t, s)): raw,
        "divided by k, not by √k": raw / width,
        "multiplied by √k; it should divide": raw * width**0.5,
        "divided by the root of the number of keys: k is the width, the last axis": (
            raw / s**0.5
        ),
        "divided by the root of the number of queries: k is the width, the last axis": (
            raw / t**0.5
        ),
        "divided by the root of the batch size: k is the width, the last axis": (
            raw / b**0.5
        ),
        "these are weights: return the energies, before the softmax": (
            right.softmax(dim=-1)
        ),
        "queries and keys are exchanged: row i, column j is query i with key j": (
            right.mT
        ),
        "view and reshape change which number belongs to which key; use transpose": (
            wide_q @ wide_k.reshape(b, width, s) / width**0.5
        ),
    }
    if isinstance(energies, Tensor) and energies.isinf().any():
        raise AssertionError(
            f"the energies overflow: {dtype} ends at {torch.finfo(dtype).max:.0f}, and "
            "the product is above that before it is divided (section 2.7)"
        )
    expect(
        energies,
        right.to(dtype),
        hint="expected q·k/√k for each query and each key",
        mistakes={name: wrong.to(dtype) for name, wrong in mistakes.items()},
        tolerance=tolerance_of(dtype),
    )


@public(
    "ch02-scaled-energies",
    torch.tensor([[[1.0, 2.0, 3.0, 4.0]]]),
    torch.tensor([[[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 0.0, 0.0]]]),
)
def _(energies, q, k):
    "one query, two keys, width 4: the energies are 5 and 1"
    judge_scaled(energies, q, k)


@public("ch02-scaled-energies", draw(2, 3, 7, seed=70), draw(2, 5, 7, seed=71))
def _(energies, q, k):
    "a batch of two, every axis of another length"
    judge_scaled(energies, q, k)


@public(
    "ch02-scaled-energies",
    torch.full((1, 2, 4096), 8.0, dtype=torch.float16),
    torch.full((1, 3, 4096), 8.0, dtype=torch.float16),
)
def _(energies, q, k):
    "float16 and width 4096: energies of 4096, and no infinity"
    judge_scaled(energies, q, k)


def judge_factor(factor, width):
    right = 3 / width**0.5
    if isinstance(factor, Tensor) and factor.numel() == 1:
        factor = factor.item()
    if isinstance(factor, bool) or not isinstance(factor, int | float):
        expect(factor, right, hint="expected a number")
    mistakes = {
        "that is the factor for variance 1; here q and k have variance 1/3": (
            width**-0.5
        ),
        "each of the two has variance 1/3, so a product of entries has 1/3 · 1/3": (
            (3 / width) ** 0.5
        ),
        "that is the spread; the factor is what brings it to 1": 1 / right,
        "that is the variance; the factor is 1 over its root": 1 / right**2,
        "that is 1 over the variance; the factor is 1 over its root": right**2,
        "the spread grows with the width: the factor depends on it": 3.0,
        "divided by the width; the spread grows as its root": 3 / width,
    }
    expect(
        factor / right,  # so that the tolerance is one of the factor, however small
        1.0,
        hint=f"measured, the factor is about {right:.2g} at width {width}: draw "
        "thousands of pairs, and divide 1 by the spread of their dot products",
        mistakes={name: wrong / right for name, wrong in mistakes.items()},
        tolerance=0.03,  # an answer may measure on the spot
    )


@public("ch02-uniform-factor", 64)
def _(factor, width):
    "width 64"
    judge_factor(factor, width)


@public("ch02-uniform-factor", 256)
def _(factor, width):
    "width 256: half of that"
    judge_factor(factor, width)


# ---- equivariance ------------------------------------------------------------


def judge_equivariance(verdict, right, hint):
    if isinstance(verdict, Tensor) and verdict.numel() == 1:
        raise AssertionError(
            "your function returns a tensor: bool(…) makes a plain True or False of it"
        )
    expect(verdict, right, hint=hint)


APPLIED_ONCE = (
    "it is equivariant: shuffle the input of one call and the output of the other by "
    "the same p, and compare f(x[p]) with f(x)[p]"
)
ROUNDING = (
    "it is equivariant: a sum taken in another order differs in its last digits, so "
    "compare with torch.allclose(…, atol=1e-5), not with =="
)
ROWS = (
    "it is not: row i is the sum of rows 0 to i. Do you shuffle the rows (axis 0), by "
    "a p that really moves them, and are the rows of x different from one another?"
)


@public("ch02-is-equivariant", Function("2 * x"))
def _(verdict, f):
    "2 * x: every row for itself"
    judge_equivariance(verdict, True, APPLIED_ONCE)


@public("ch02-is-equivariant", Function("x.softmax(dim=-1)"))
def _(verdict, f):
    "x.softmax(dim=-1): a softmax within each row"
    judge_equivariance(verdict, True, APPLIED_ONCE)


@public("ch02-is-equivariant", Function("x - x.mean(dim=0)"))
def _(verdict, f):
    "x - x.mean(dim=0): the mean does not care for order"
    judge_equivariance(verdict, True, ROUNDING)


@public("ch02-is-equivariant", Function("x.cumsum(dim=0)"))
def _(verdict, f):
    "x.cumsum(dim=0): a sum of all rows so far"
    judge_equivariance(verdict, False, ROWS)
