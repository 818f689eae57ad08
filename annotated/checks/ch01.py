"""The exercises of chapter 01; ``__init__.py`` says how one is written."""

from functools import partial

import torch
from torch import Tensor

from annotated.checks import Exercise

# ---- additive scores ---------------------------------------------------------


def scores(queries, keys, W, U, v, energy=lambda q, k, v: torch.tanh(q + k) @ v):
    """Energies of the mapped queries and keys, which one sum can broadcast."""
    return energy((queries @ W.mT)[..., :, None, :], (keys @ U.mT)[..., None, :, :], v)


additive_scores = Exercise(
    "ch01-additive-scores",
    right=lambda queries, keys, W, U, v: scores(queries, keys, W, U, v),
    hint="expected v · tanh(W q + U k) for each query and each key",
    mistakes={
        "tanh is missing, and without it the query has no say (section 1.9)": (
            partial(scores, energy=lambda q, k, v: (q + k) @ v)
        ),
        "tanh acts on the sum W q + U k, not on its two parts one by one": (
            partial(scores, energy=lambda q, k, v: (q.tanh() + k.tanh()) @ v)
        ),
        "tanh comes before v, not after it": (
            partial(scores, energy=lambda q, k, v: torch.tanh((q + k) @ v))
        ),
        "v is missing: the components are weighted by v, not only added": (
            partial(scores, energy=lambda q, k, v: torch.tanh(q + k).sum(dim=-1))
        ),
        "these are alignments: return the energies, before the softmax": (
            lambda *given: scores(*given).softmax(dim=-1)
        ),
        "queries and keys are exchanged: e[…, i, j] is for query i and key j": (
            lambda *given: scores(*given).mT
        ),
        "squeeze() drops every axis of length 1, also that of a lone source or query": (
            lambda *given: scores(*given).squeeze()
        ),
        "W and U are exchanged: W maps the queries, U the keys": (
            lambda queries, keys, W, U, v: scores(queries, keys, U, W, v)
        ),
        "the queries are rows here, and q W is not W q": (
            lambda queries, keys, W, U, v: scores(queries, keys, W.mT, U.mT, v)
        ),
    },
)


def arguments(draw, *batch, t, s, q=4, k=7, hidden=6):
    """queries, keys, W, U, v."""
    shapes = (*batch, t, q), (*batch, s, k), (hidden, q), (hidden, k), (hidden,)
    return tuple(draw.normal(*shape) for shape in shapes)


@additive_scores.case("the three words of section 1.4, without a batch axis")
def _(draw):
    eye = torch.eye(3)
    return eye[[2, 1, 0]], eye, 1.5 * eye, 1.5 * eye, torch.full((3,), -6.0)


@additive_scores.case("every axis of another length")
def _(draw):
    b, t, s, q, k, hidden = draw.sizes(6, high=9)
    return arguments(draw, b, t=t, s=s, q=q, k=k, hidden=hidden)


@additive_scores.case("square matrices, as many queries as keys: nothing is exchanged")
def _(draw):
    return arguments(draw, 2, t=3, s=3, q=4, k=4, hidden=4)


@additive_scores.case("two batch axes")
def _(draw):
    return arguments(draw, 2, 5, t=3, s=4)


@additive_scores.case("one source and one query")
def _(draw):
    return arguments(draw, 1, t=1, s=5)


@additive_scores.case("in double precision", dtype=torch.float64)
def _(draw):
    return arguments(draw, 2, t=3, s=5)


@additive_scores.case("gradients reach queries, keys, W, U and v", gradients=True)
def _(draw):
    return arguments(draw, 2, t=3, s=5)


@additive_scores.case("a quarter of a million pairs: no loops")
def _(draw):
    return arguments(draw, 4, t=256, s=256, q=2, k=3, hidden=4)


# ---- masked alignment --------------------------------------------------------


def last_ones(place, start):
    return place >= start


def is_real(energies, lengths, rule=last_ones):
    """Which positions are real by a rule, which knows where the real ones start."""
    s = energies.shape[-1]
    real = rule(torch.arange(s), s - lengths[:, None])
    return real[..., None, :].expand_as(energies)


def softmax(energies, real, fill=-1e30, dim=-1):
    return energies.masked_fill(~real, fill).softmax(dim)


def aligned(energies, lengths, rule=last_ones, fill=-1e30, dim=-1):
    real = is_real(energies, lengths, rule)
    return softmax(energies, real, fill, dim).masked_fill(~real, 0.0)


def added(energies, lengths):
    """Right, but for the gradient, for −∞ is added and NaN mended."""
    low = torch.zeros_like(energies)
    low = low.masked_fill(~is_real(energies, lengths), -torch.inf)
    return (energies + low).softmax(dim=-1).nan_to_num(0.0)


def leaks(alignment, energies, lengths):
    leak = alignment.masked_fill(is_real(energies, lengths), 0.0).abs().max()
    if 0 < leak < 1e-4:
        return f"padding gets a weight of {leak:.0e}, and should get exactly 0"


mask_padding = Exercise(
    "ch01-mask-padding",
    right=lambda energies, lengths: aligned(energies, lengths),
    hint="expected a softmax over the real positions of each source alone, and exactly "
    "0 elsewhere",
    symptoms=leaks,
    mistakes={
        "here the padding stands at the front: the last lengths[n] positions are real "
        "(you mask the end)": lambda energies, lengths: aligned(
            energies, lengths, lambda p, start: p < energies.shape[-1] - start
        ),
        "the mask is upside down: only padding gets weight": (
            partial(aligned, rule=lambda place, start: place < start)
        ),
        "off by one: the first real position gets no weight": (
            partial(aligned, rule=lambda place, start: place > start)
        ),
        "off by one: one position of padding gets weight": (
            partial(aligned, rule=lambda place, start: place >= start - 1)
        ),
        "each source has its own length, and you use that of the first": (
            partial(aligned, rule=lambda place, start: place >= start[0])
        ),
        "nothing is masked, or each source by the longest of the lengths": (
            lambda energies, lengths: energies.softmax(dim=-1)
        ),
        "each source has its own length, and you use the longest": (
            partial(aligned, rule=lambda place, start: place >= start.min())
        ),
        "the rows do not sum to 1: the padding took its share, with an energy of 0": (
            partial(aligned, fill=0.0)
        ),
        "the rows do not sum to 1: the softmax has seen the padding": (
            lambda energies, lengths: (
                energies.softmax(dim=-1) * is_real(energies, lengths)
            )
        ),
        "an energy of 0 is no weight of 0, for exp(0) = 1": (
            lambda energies, lengths: softmax(energies, is_real(energies, lengths), 0.0)
        ),
        "a source of length 0 has no real position: [-0:] is the whole row": (
            partial(aligned, rule=lambda p, start: (p >= start) | (start > p.max()))
        ),
        "the softmax runs over the queries: each row, over the keys, should sum to 1": (
            partial(aligned, dim=1)
        ),
        "a source of length 0 gives NaN: all its energies are −∞, and its softmax is "
        "0/0; it should give zeros": lambda energies, lengths: softmax(
            energies, is_real(energies, lengths), -torch.inf
        ),
        "a source of length 0 should give zeros: equal energies, however low, give "
        "equal weights": lambda energies, lengths: softmax(
            energies, is_real(energies, lengths)
        ),
        "NaN comes back in the gradient: it was mended after the softmax, which still "
        "sends it back": added,
    },
)


@mask_padding.case("equal energies: weights of 1/2 for two positions, of 1/4 for four")
def _(draw):
    return torch.full((2, 3, 4), 2.0), torch.tensor([2, 4])


@mask_padding.case("every axis of another length")
def _(draw):
    s = draw.integer(5, 8)
    return draw.normal(3, 2, s), torch.tensor(draw.shuffled(range(1, s))[:3])


@mask_padding.case("as many sources as queries and positions")
def _(draw):
    return draw.normal(4, 4, 4), torch.tensor(draw.shuffled(range(1, 5)))


@mask_padding.case("a source of length 0 gets zeros")
def _(draw):
    return draw.normal(2, 2, 4), torch.tensor([0, 3])


@mask_padding.case("padding with large energies")
def _(draw):
    energies, lengths = draw.normal(2, 3, 5), torch.tensor([2, 4])
    return energies + 30.0 * ~is_real(energies, lengths), lengths


@mask_padding.case("in double precision", dtype=torch.float64)
def _(draw):
    return draw.normal(2, 3, 4), torch.tensor([3, 2])


@mask_padding.case("gradients are finite, and those of padding are 0", gradients=True)
def _(draw):
    return draw.normal(3, 2, 4), torch.tensor([3, 0, 4])


# ---- temperature -------------------------------------------------------------


def tempered(energies, tau, at_zero=lambda largest: largest):
    gaps = energies - energies.amax(dim=-1, keepdim=True)
    if tau == 0:
        weights = at_zero((gaps == 0).to(energies.dtype))
        return weights / weights.sum(dim=-1, keepdim=True)
    return (gaps / tau).softmax(dim=-1)


def first_alone(largest):
    return largest * (largest.cumsum(dim=-1) == 1)


def overflows(alignment, energies, tau):
    if not isinstance(alignment, Tensor) or not alignment.isnan().any():
        return None
    if tau == 0:
        return "NaN at τ = 0 (is something divided by 0?): what is the limit there?"
    return (
        "energies/τ overflows to infinity, and ∞ − ∞ is NaN: what may you subtract "
        "from a row first, so that nothing in it is above 0?"
    )


temper = Exercise(
    "ch01-temper",
    right=lambda energies, tau: tempered(energies, tau),
    hint="expected softmax(energies / τ) in each row, and for τ = 0 all weight on the "
    "largest energy, however small its lead",
    symptoms=overflows,
    mistakes={
        "the temperature multiplies the energies; it should divide them": (
            lambda energies, tau: (energies * tau).softmax(dim=-1)
        ),
        "the temperature is not used": lambda energies, tau: energies.softmax(dim=-1),
        "the temperature divides the energies before the softmax, not the weights "
        "after it": lambda energies, tau: energies.softmax(dim=-1) / (tau or 1.0),
        "the rows of weights should sum to 1: the softmax is missing": (
            lambda energies, tau: energies / (tau or 1.0)
        ),
        "the softmax runs over the queries: each row, over the keys, should sum to 1": (
            lambda energies, tau: tempered(energies.mT, tau).mT
        ),
        "keys that tie for the largest energy share the weight equally": (
            partial(tempered, at_zero=first_alone)
        ),
        "a small number stands in for τ = 0, and there the largest energy takes all, "
        "however small its lead": lambda energies, tau: tempered(energies, tau or 1e-3),
    },
)


@temper.case("τ = 1 is the plain softmax")
def _(draw):
    return draw.normal(2, 3, 4), 1.0


@temper.case("τ = 2 makes the rows flatter")
def _(draw):
    return draw.normal(2, 3, 4), 2


@temper.case("another temperature")
def _(draw):
    return draw.normal(3, 2, 5), draw.number(0.2, 0.7)


@temper.case("so hot that all keys count the same")
def _(draw):
    return draw.normal(2, 4, 3), 1e9


@temper.case("τ = 0: all weight on the largest energy, shared by keys that tie")
def _(draw):
    tie = draw.number(1.0, 9.0)
    return torch.tensor([[[tie, 0.5, tie, -1.0], [-5.0, -2.0, -3.0, -tie - 5]]]), 0


@temper.case("τ = 0, and a small lead")
def _(draw):
    return 1.0 + 1e-3 * draw.normal(2, 3, 4), 0.0


@temper.case("τ = 1e-38 is as good as 0, and gives no NaN")
def _(draw):
    return 20 * draw.normal(2, 2, 5), 1e-38


@temper.case("in double precision", dtype=torch.float64)
def _(draw):
    return draw.normal(2, 3, 4), draw.number(0.2, 0.7)
