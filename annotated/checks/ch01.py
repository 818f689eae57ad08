"""Public checks of the exercises of chapter 01; ``__init__.py`` says how they work.

What a judge compares with is written here, apart from the module and from the model
answers, and so are the mistakes it knows by name.
"""

import math

import torch
from torch import Tensor

from annotated.checks import expect, public
from annotated.checks.material import draw, expect_gradients, tolerance_of

# ---- additive scores ---------------------------------------------------------


def right_scores(queries, keys, W, U, v):
    asked, offered = queries @ W.mT, keys @ U.mT
    return torch.tanh(asked.unsqueeze(-2) + offered.unsqueeze(-3)) @ v


def judge_scores(scores, queries, keys, W, U, v):
    dtype = queries.dtype
    wide = [a.double() for a in (queries, keys, W, U, v)]
    right = right_scores(*wide)
    asked, offered = wide[0] @ wide[2].mT, wide[1] @ wide[3].mT
    sums = asked.unsqueeze(-2) + offered.unsqueeze(-3)
    mistakes = {
        "tanh is missing, and without it the query has no say (section 1.9)": (
            sums @ wide[4]
        ),
        "tanh acts on the sum W q + U k, not on its two parts one by one": (
            (asked.tanh().unsqueeze(-2) + offered.tanh().unsqueeze(-3)) @ wide[4]
        ),
        "tanh comes before v, not after it": torch.tanh(sums @ wide[4]),
        "v is missing: the components are weighted by v, not only added": (
            sums.tanh().sum(dim=-1)
        ),
        "these are alignments: return the energies, before the softmax": (
            right.softmax(dim=-1)
        ),
        "queries and keys are exchanged: e[…, i, j] is for query i and key j": right.mT,
        "squeeze() drops every axis of length 1, also that of a batch or a lone query; "
        "name the axis": right.squeeze(),
    }
    if W.shape == U.shape:
        mistakes["W and U are exchanged: W maps the queries, U the keys"] = (
            right_scores(wide[0], wide[1], wide[3], wide[2], wide[4])
        )
        if W.shape[0] == W.shape[1]:
            mistakes["W q for rows of queries is queries @ W.T, not queries @ W"] = (
                right_scores(wide[0], wide[1], wide[2].mT, wide[3].mT, wide[4])
            )
    expect(
        scores,
        right.to(dtype),
        hint="expected v · tanh(W q + U k) for each query and each key",
        mistakes={name: wrong.to(dtype) for name, wrong in mistakes.items()},
        tolerance=tolerance_of(dtype),
    )


def scores_arguments(
    *batch: int,
    t: int,
    s: int,
    widths: tuple[int, int, int],
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> list[Tensor]:
    """queries, keys, W, U, v; ``widths`` are those of query, key and their sum."""
    q, k, hidden = widths
    shapes = ((*batch, t, q), (*batch, s, k), (hidden, q), (hidden, k), (hidden,))
    return [draw(*shape, seed=seed + i, dtype=dtype) for i, shape in enumerate(shapes)]


_eye = torch.eye(3)
_toy = _eye[[2, 1, 0]], _eye, 1.5 * _eye, 1.5 * _eye, torch.full((3,), -6.0)


@public("ch01-additive-scores", *_toy)
def _(scores, queries, keys, W, U, v):
    "the three words of section 1.4, without a batch axis"
    judge_scores(scores, queries, keys, W, U, v)


@public(
    "ch01-additive-scores", *scores_arguments(2, t=3, s=5, widths=(4, 7, 6), seed=10)
)
def _(scores, queries, keys, W, U, v):
    "a batch of two, every axis of another length"
    judge_scores(scores, queries, keys, W, U, v)


@public(
    "ch01-additive-scores", *scores_arguments(2, t=3, s=3, widths=(4, 4, 4), seed=20)
)
def _(scores, queries, keys, W, U, v):
    "square matrices, as many queries as keys: nothing may be exchanged"
    judge_scores(scores, queries, keys, W, U, v)


@public(
    "ch01-additive-scores",
    *scores_arguments(2, t=3, s=4, widths=(5, 7, 6), seed=30),
    gradients=True,
)
def _(result, queries, keys, W, U, v):
    "gradients reach queries, keys, W, U and v"
    expect_gradients(
        result,
        right_scores,
        *(queries, keys, W, U, v),
        names="queries keys W U v",
        hint="is something detached, or made of plain numbers, on the way?",
    )


# ---- masked alignment --------------------------------------------------------


def right_alignment(energies, lengths):
    s = energies.shape[-1]
    padding = (torch.arange(s) < s - lengths[:, None])[:, None, :]
    lowest = torch.finfo(energies.dtype).min
    weights = energies.masked_fill(padding, lowest).softmax(dim=-1)
    return weights.masked_fill(padding, 0.0)


def judge_alignment(alignment, energies, lengths):
    right = right_alignment(energies.double(), lengths).to(energies.dtype)
    expect(
        alignment,
        right,
        hint="expected a softmax over the real positions of each source alone, and "
        "exactly 0 elsewhere",
        mistakes={
            name: wrong.to(energies.dtype)
            for name, wrong in _wrong_alignments(energies.double(), lengths).items()
        },
        tolerance=tolerance_of(energies.dtype),
    )
    leak = (right == 0) & (alignment != 0)
    if leak.any():
        raise AssertionError(
            f"padding gets a weight of {alignment[leak].abs().max():.0e}, and should "
            "get exactly 0"
        )


def _wrong_alignments(energies, lengths):
    """Mistake -> what it gives, in float64."""
    s = energies.shape[-1]
    positions, start = torch.arange(s), s - lengths[:, None]

    def softmax(real, low=-math.inf, dim=-1):
        return energies.masked_fill(~real, low).softmax(dim=dim)

    def only(real):  # a softmax over these positions, zeros elsewhere
        return softmax(real).masked_fill(~real, 0.0)

    real = (positions >= start)[:, None, :].expand_as(energies)
    low = softmax(real, -1e30)
    at_back = (positions < lengths[:, None])[:, None, :].expand_as(energies)
    late = (positions > start)[:, None, :].expand_as(energies)
    early = (positions >= start - 1)[:, None, :].expand_as(energies)
    first = (positions >= start[0]).expand_as(energies)
    longest = (positions >= start.min()).expand_as(energies)
    return {
        "here the padding stands at the front: the last lengths[n] positions are real "
        "(you mask the end)": only(at_back),
        "here the padding stands at the front: the last lengths[n] positions are real "
        "(you mask the end; and a source of length 0 should get zeros)": (
            softmax(at_back)
        ),
        "the mask is upside down: only padding gets weight": only(~real),
        "the mask is upside down: only padding gets weight (NaN where there is none)": (
            softmax(~real)
        ),
        "off by one: the first real position gets no weight": only(late),
        "off by one: one position of padding gets weight": only(early),
        "the number that you fill in is not below all energies: the lowest of a dtype "
        "is torch.finfo(dtype).min": softmax(real, -1e4).masked_fill(~real, 0.0),
        "the rows do not sum to 1, for the padding took its share with an energy of 0: "
        "fill with a number far below all energies": softmax(real, 0.0) * real,
        "the rows do not sum to 1: the softmax has seen the padding; mask the energies "
        "before it, or divide by what is left": energies.softmax(dim=-1) * real,
        "an energy of 0 is no weight of 0, for exp(0) = 1: fill with a number far "
        "below all energies": softmax(real, 0.0),
        "the softmax runs over the queries: each row, over the keys, should sum to 1": (
            softmax(real, -1e30, dim=1).masked_fill(~real, 0.0)
        ),
        "each source has its own length, and you use that of the first": only(first),
        "nothing is masked, or each source by the longest of the lengths": (
            energies.softmax(dim=-1)
        ),
        "each source has its own length, and you use the longest": only(longest),
        "a source of length 0 gives NaN: all its energies are −∞, and its softmax is "
        "0/0; it should give zeros": softmax(real),
        "a source of length 0 should give zeros: equal energies, however low, give "
        "equal weights": low,
    }


@public("ch01-mask-padding", torch.full((2, 3, 4), 2.0), torch.tensor([2, 4]))
def _(alignment, energies, lengths):
    "equal energies: weights of 1/2 for two real positions, of 1/4 for four"
    judge_alignment(alignment, energies, lengths)


@public("ch01-mask-padding", draw(3, 2, 5, seed=40), torch.tensor([2, 5, 1]))
def _(alignment, energies, lengths):
    "three sources, every axis of another length"
    judge_alignment(alignment, energies, lengths)


@public("ch01-mask-padding", draw(2, 2, 4, seed=41), torch.tensor([0, 3]))
def _(alignment, energies, lengths):
    "a source of length 0 gets zeros"
    judge_alignment(alignment, energies, lengths)


@public(
    "ch01-mask-padding",
    draw(3, 2, 4, seed=42),
    torch.tensor([3, 0, 4]),
    gradients=True,
)
def _(result, energies, lengths):
    "gradients are finite, and those of padding are 0"
    expect_gradients(
        result,
        right_alignment,
        *(energies, lengths),
        names="energies",
        hint="weights of NaN that are mended after the softmax can still send NaN "
        "back: do not add −∞ to energies, fill a low number in",
    )


# ---- temperature -------------------------------------------------------------


def right_tempered(energies, tau):
    gaps = energies - energies.amax(dim=-1, keepdim=True)
    if tau == 0:
        largest = (gaps == 0).to(energies)
        return largest / largest.sum(dim=-1, keepdim=True)
    return (gaps / tau).softmax(dim=-1)


def judge_tempered(alignment, energies, tau):
    dtype, wide = energies.dtype, energies.double()
    plain = wide.softmax(dim=-1)
    mistakes = {
        "the temperature multiplies the energies; it should divide them": (
            (wide * tau).softmax(dim=-1)
        ),
        "the temperature is not used": plain,
        "the temperature divides the energies before the softmax, not the weights "
        "after it": plain / (tau or 1.0),
        "the rows of weights should sum to 1: the softmax is missing": (
            wide / (tau or 1.0)
        ),
        "the softmax runs over the queries: each row, over the keys, should sum to 1": (
            right_tempered(wide.mT, tau).mT
        ),
    }
    if tau == 0:
        first = torch.nn.functional.one_hot(wide.argmax(dim=-1), wide.shape[-1])
        mistakes["keys that tie for the largest energy share the weight equally"] = (
            first.double()
        )
    mistakes = {name: wrong.to(dtype) for name, wrong in mistakes.items()}
    if isinstance(alignment, Tensor) and alignment.isnan().any():
        raise AssertionError(
            "energies/τ overflows to infinity, and ∞ − ∞ is NaN: what may you subtract "
            "from a row first, so that nothing in it is above 0?"
            if tau
            else "τ = 0 divides by 0, which gives NaN: return the limit, all weight on "
            "the largest energy"
        )
    expect(
        alignment,
        right_tempered(wide, tau).to(dtype),
        hint=f"expected softmax(energies / τ) in each row, τ = {tau:g}"
        if tau
        else "expected all weight on the largest energy of each row, however small "
        "its lead",
        mistakes=mistakes,
        tolerance=tolerance_of(dtype),
    )


@public("ch01-temper", draw(2, 3, 4, seed=50), 1.0)
def _(alignment, energies, tau):
    "τ = 1 is the plain softmax"
    judge_tempered(alignment, energies, tau)


@public("ch01-temper", draw(2, 3, 4, seed=51), 2.0)
def _(alignment, energies, tau):
    "τ = 2 makes the rows flatter"
    judge_tempered(alignment, energies, tau)


@public("ch01-temper", torch.tensor([[[1.0, 3.0, 2.0], [0.5, -1.0, 0.0]]]), 0.0)
def _(alignment, energies, tau):
    "τ = 0 gives all weight to the largest energy"
    judge_tempered(alignment, energies, tau)


@public("ch01-temper", 20 * draw(2, 2, 5, seed=52), 1e-38)
def _(alignment, energies, tau):
    "τ = 1e-38 is as good as 0, and gives no NaN"
    judge_tempered(alignment, energies, tau)
