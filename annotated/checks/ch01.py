"""The exercises of chapter 01; ``__init__.py`` says how one is written."""

from functools import partial

import torch
from torch import Tensor

from annotated.checks import Exercise
from annotated.checks.material import first_if_differentiated, without_loops

# ---- additive scores ---------------------------------------------------------


def scores(queries, keys, W_q, W_k, w, score=lambda q, k, w: torch.tanh(q + k) @ w):
    """Scores of the mapped queries and keys, which one sum can broadcast."""
    asked, offered = queries @ W_q.mT, keys @ W_k.mT
    return score(asked[..., :, None, :], offered[..., None, :, :], w)


def looped(result, *arguments):
    if result == "loops":
        return (
            "a loop over queries or keys: the answer is right, and slow; let one sum "
            "broadcast over both"
        )


additive_scores = Exercise(
    "ch01-additive-scores",
    symptoms=looped,
    through=without_loops,
    right=lambda queries, keys, W_q, W_k, w: scores(queries, keys, W_q, W_k, w),
    hint="expected w · tanh(W_q q + W_k k) for each query and each key",
    mistakes={
        "tanh is missing, and without it the query has no say (section 1.6)": (
            partial(scores, score=lambda q, k, w: (q + k) @ w)
        ),
        "tanh acts on the sum W_q q + W_k k, not on its two parts one by one": (
            partial(scores, score=lambda q, k, w: (q.tanh() + k.tanh()) @ w)
        ),
        "tanh comes before w, not after it": (
            partial(scores, score=lambda q, k, w: torch.tanh((q + k) @ w))
        ),
        "w is missing: the components are weighted by w, not only added": (
            partial(scores, score=lambda q, k, w: torch.tanh(q + k).sum(dim=-1))
        ),
        "these are weights: return the scores, before the softmax": (
            lambda *given: scores(*given).softmax(dim=-1)
        ),
        "queries and keys are exchanged: e[…, i, j] is for query i and key j": (
            lambda *given: scores(*given).mT
        ),
        "squeeze() drops every axis of length 1, also that of a lone source or query": (
            lambda *given: scores(*given).squeeze()
        ),
        "W_q and W_k are exchanged: W_q maps the queries, W_k the keys": (
            lambda queries, keys, W_q, W_k, w: scores(queries, keys, W_k, W_q, w)
        ),
        "the queries are rows here, and q W_q is not W_q q": (
            lambda queries, keys, W_q, W_k, w: scores(queries, keys, W_q.mT, W_k.mT, w)
        ),
    },
)


def arguments(draw, *batch, t, s, q=4, k=7, hidden=6):
    """queries, keys, W_q, W_k, w."""
    shapes = (*batch, t, q), (*batch, s, k), (hidden, q), (hidden, k), (hidden,)
    return tuple(draw.normal(*shape) for shape in shapes)


@additive_scores.case("the three words of section 1.2, without a batch axis")
def _(draw):
    eye = torch.eye(3)
    return eye[[2, 1, 0]], eye, eye, eye, torch.full((3,), -7.0)


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


@additive_scores.case("gradients reach queries, keys, W_q, W_k and w", gradients=True)
def _(draw):
    return arguments(draw, 2, t=3, s=5)


@additive_scores.case("a quarter of a million pairs: no loops")
def _(draw):
    return arguments(draw, 4, t=256, s=256, q=2, k=3, hidden=4)


# ---- masked weights --------------------------------------------------------


def last_ones(place, start):
    return place >= start


def is_real(scores, lengths, rule=last_ones):
    """Which positions are real by a rule, which knows where the real ones start."""
    s = scores.shape[-1]
    real = rule(torch.arange(s), s - lengths[:, None])
    return real[..., None, :].expand_as(scores)


def softmax(scores, real, fill=-1e30, dim=-1):
    return scores.masked_fill(~real, fill).softmax(dim)


def aligned(scores, lengths, rule=last_ones, fill=-1e30, dim=-1):
    real = is_real(scores, lengths, rule)
    return softmax(scores, real, fill, dim).masked_fill(~real, 0.0)


def added(scores, lengths):
    """Right, but for the gradient, for −∞ is added and NaN mended."""
    low = torch.zeros_like(scores)
    low = low.masked_fill(~is_real(scores, lengths), -torch.inf)
    return (scores + low).softmax(dim=-1).nan_to_num(0.0)


def leaks(weights, scores, lengths):
    leak = weights.masked_fill(is_real(scores, lengths), 0.0).abs().max()
    if 0 < leak < 1e-4:
        return f"padding gets a weight of {leak:.0e}, and should get exactly 0"
    if (
        scores.max() < -100
        and not weights.sum(dim=-1).isclose(lengths[:, None] * 0.0 + 1).all()
    ):
        return (
            "real scores of −200 get no weight: their exponentials are 0. Is the "
            "largest score that you subtract that of a real position?"
        )


mask_padding = Exercise(
    "ch01-mask-padding",
    right=lambda scores, lengths: aligned(scores, lengths),
    hint="expected a softmax over the real positions of each source alone, and exactly "
    "0 elsewhere",
    symptoms=leaks,
    mistakes={
        "here the padding stands at the front: the last lengths[n] positions are real "
        "(you mask the end)": lambda scores, lengths: aligned(
            scores, lengths, lambda p, start: p < scores.shape[-1] - start
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
            lambda scores, lengths: scores.softmax(dim=-1)
        ),
        "each source has its own length, and you use the longest": (
            partial(aligned, rule=lambda place, start: place >= start.min())
        ),
        "the rows do not sum to 1: the padding took its share, with a score of 0": (
            partial(aligned, fill=0.0)
        ),
        "the rows do not sum to 1: the softmax has seen the padding": (
            lambda scores, lengths: scores.softmax(dim=-1) * is_real(scores, lengths)
        ),
        "a score of 0 is no weight of 0, for exp(0) = 1": (
            lambda scores, lengths: softmax(scores, is_real(scores, lengths), 0.0)
        ),
        "a source of length 0 has no real position: [-0:] is the whole row": (
            partial(aligned, rule=lambda p, start: (p >= start) | (start > p.max()))
        ),
        "the softmax runs over the queries: each row, over the keys, should sum to 1": (
            partial(aligned, dim=1)
        ),
        "a source of length 0 gives NaN: all its scores are −∞, and its softmax is "
        "0/0; it should give zeros": lambda scores, lengths: softmax(
            scores, is_real(scores, lengths), -torch.inf
        ),
        "a source of length 0 should give zeros: equal scores, however low, give "
        "equal weights": lambda scores, lengths: softmax(
            scores, is_real(scores, lengths)
        ),
        "NaN comes back in the gradient: it was mended after the softmax, which still "
        "sends it back": added,
    },
)


@mask_padding.case("equal scores: weights of 1/2 for two positions, of 1/4 for four")
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


@mask_padding.case("padding with large scores")
def _(draw):
    scores, lengths = draw.normal(2, 3, 5), torch.tensor([2, 4])
    return scores + 30.0 * ~is_real(scores, lengths), lengths


@mask_padding.case("gradients are finite, and those of padding are 0", gradients=True)
def _(draw):
    return draw.normal(3, 2, 4), torch.tensor([3, 0, 4])


@mask_padding.case("scores of −200 are scores like any other")
def _(draw):
    return draw.normal(2, 3, 5) - 200.0, torch.tensor([2, 4])


# ---- temperature -------------------------------------------------------------


def tempered(scores, tau, at_zero=lambda largest: largest):
    gaps = scores - scores.amax(dim=-1, keepdim=True)
    if tau == 0:
        weights = at_zero((gaps == 0).to(scores.dtype))
        return weights / weights.sum(dim=-1, keepdim=True)
    return (gaps / tau).softmax(dim=-1)


def first_alone(largest):
    return largest * (largest.cumsum(dim=-1) == 1)


def all_of_them(scores, tau):
    largest = scores == scores.amax(dim=-1, keepdim=True)
    return tempered(scores, tau) if tau else largest.to(scores.dtype)


def not_a_number(weights, scores, tau):
    if tau == 0 and isinstance(weights, Tensor) and weights.isnan().any():
        return "NaN at τ = 0 (is something divided by 0?): what is the limit there?"
    if tau and isinstance(weights, Tensor) and weights.isnan().any():
        return (
            f"NaN at τ = {tau:g}: a score of 3 is divided to 300, whose exponential "
            "is ∞ for the computer, and ∞/∞ is NaN"
        )


temper = Exercise(
    "ch01-temper",
    right=lambda scores, tau: tempered(scores, tau),
    hint="expected softmax(scores / τ) in each row, and for τ = 0 all weight on the "
    "largest score, however small its lead",
    symptoms=not_a_number,
    mistakes={
        "the temperature multiplies the scores; it should divide them": (
            lambda scores, tau: (scores * tau).softmax(dim=-1)
        ),
        "the temperature is not used": lambda scores, tau: scores.softmax(dim=-1),
        "the temperature divides the scores before the softmax, not the weights "
        "after it": lambda scores, tau: scores.softmax(dim=-1) / (tau or 1.0),
        "the rows of weights should sum to 1: the softmax is missing": (
            lambda scores, tau: scores / (tau or 1.0)
        ),
        "the softmax runs over the queries: each row, over the keys, should sum to 1": (
            lambda scores, tau: tempered(scores.mT, tau).mT
        ),
        "keys that tie for the largest score share the weight equally": (
            partial(tempered, at_zero=first_alone)
        ),
        "keys that tie for the largest score get 1 each: they should share it": (
            all_of_them
        ),
        "a small number stands in for τ = 0, and there the largest score takes all, "
        "however small its lead": lambda scores, tau: tempered(scores, tau or 1e-3),
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


@temper.case("so cold that exponentials overflow: τ = 0.01")
def _(draw):
    return 3.0 + draw.normal(2, 3, 4), 0.01


@temper.case("so hot that all keys count the same")
def _(draw):
    return draw.normal(2, 4, 3), 1e9


@temper.case("τ = 0: all weight on the largest score, shared by keys that tie")
def _(draw):
    tie = draw.number(1.0, 9.0)
    return torch.tensor([[[tie, 0.5, tie, -1.0], [-5.0, -2.0, -3.0, -tie - 5]]]), 0


@temper.case("τ = 0, and a small lead")
def _(draw):
    return 1.0 + 1e-3 * draw.normal(2, 3, 4), 0.0


@temper.case("τ = 0, and the smallest lead that a number can have")
def _(draw):
    rows = torch.tensor([[1.0], [1e-20]]) * draw.number(1.0, 2.0)
    lead = torch.nextafter(rows, torch.tensor(torch.inf))
    return torch.cat([rows, lead, rows / 2, -rows], dim=-1)[None], 0.0


@temper.case("in double precision", dtype=torch.float64)
def _(draw):
    return draw.normal(2, 3, 4), draw.number(0.2, 0.7)


# ---- one step of a decoder ---------------------------------------------------


def side_by_side(*parts):
    return torch.cat(parts, dim=-1)


def step(
    state,
    last,
    states,
    mask,
    scorer,
    gru,
    head,
    *,
    weigh=lambda scores, mask: scores.masked_fill(~mask, -torch.inf).softmax(dim=-1),
    read=side_by_side,
    answer=lambda new, context, old: side_by_side(new, context),
    result=lambda logits, new, weights, old: (logits, new, weights),
    asks=lambda old, last, gru: old,
    score=lambda q, k, w: torch.tanh(q + k) @ w,
    passed_on=lambda context: context,
    scored_with=lambda weight: weight,
    biased=1.0,
):
    """A step of which each part can be another one."""
    query = asks(state, last, gru)[:, None, :]
    scorer = map(scored_with, scorer)
    weights = weigh(scores(query, states, *scorer, score=score)[:, 0], mask)
    context = passed_on((weights[:, None, :] @ states)[:, 0])
    new = torch.gru_cell(read(last, context), state, *gru)
    logits = answer(new, context, state) @ head[0].mT + biased * head[1]
    return result(logits, new, weights, state)


def updated(old, last, gru):  # the state that has read the symbol, and no context
    missing = gru[0].shape[1] - last.shape[1]
    return torch.gru_cell(torch.nn.functional.pad(last, (0, missing)), old, *gru)


DETACHED = "is detached: the loss can't tell the scores where to look (section 1.5)"


SEEN_FIRST = (
    "NaN: the softmax gives all weight to padding, and then you divide 0 by 0; hide "
    "the scores before the softmax"
)


def renormalised(scores, mask):
    """Weights that are right until padding outweighs all the rest."""
    weights = scores.softmax(dim=-1) * mask
    return weights / weights.sum(dim=-1, keepdim=True)


def outweighed(draw, d):
    """Keys (2, 4, d), their mask, and W_k and w that let padding win by hundreds."""
    mask = torch.arange(4) < torch.tensor([[2], [3]])
    keys = draw.normal(2, 4, d) / 1000
    keys[~mask] = 30.0
    return keys, mask, draw.normal(64, d).abs() + 0.1, torch.full((64,), 20.0)


def leaks_to_masked(result, mask):
    """A symptom: a low score, where it should be −∞; or none of the weight left."""
    if result[-1].isnan().any():
        return SEEN_FIRST
    leak = (result[-1] * ~mask.view(len(mask), *[1] * (result[-1].dim() - 2), -1)).max()
    if 0 < leak < 1e-4:
        return (
            f"padding gets a weight of {leak:.0e}, and should get exactly 0: its score "
            "should be −∞"
        )


decoder_step = Exercise(
    "ch01-decoder-step",
    symptoms=lambda result, state, last, states, mask, *rest: leaks_to_masked(
        result, mask
    ),
    through=first_if_differentiated,
    right=lambda state, last, states, mask, scorer, gru, head: step(
        state, last, states, mask, scorer, gru, head
    ),
    hint="expected logits, new state and weights: look back with the old state, update "
    "with last and context, answer from new state and context",
    mistakes={
        f"the context {DETACHED}": partial(step, passed_on=Tensor.detach),
        "W_q, W_k and w are detached: no gradient reaches them, so they never learn": (
            partial(step, scored_with=Tensor.detach)
        ),
        f"the weight of each state {DETACHED}": partial(
            step,
            weigh=lambda scores, mask: (
                scores.masked_fill(~mask, -torch.inf).softmax(dim=-1).detach()
            ),
        ),
        "tanh is missing, and without it the query has no say (section 1.6)": (
            partial(step, score=lambda q, k, w: (q + k) @ w)
        ),
        "the bias of the head is missing": partial(step, biased=0.0),
        "the softmax runs over the batch: the weights of each source should sum to 1": (
            partial(
                step,
                weigh=lambda scores, mask: scores.masked_fill(~mask, -1e30).softmax(
                    dim=0
                ),
            )
        ),
        "padding gets weight: the mask isn't used": (
            partial(step, weigh=lambda scores, mask: scores.softmax(dim=-1))
        ),
        "the mask is upside down: True means that a position may be attended to": (
            partial(
                step,
                weigh=lambda scores, mask: scores.masked_fill(mask, -1e30).softmax(
                    dim=-1
                ),
            )
        ),
        "beside padding the weights do not sum to 1: the softmax has seen it": (
            partial(step, weigh=lambda scores, mask: scores.softmax(dim=-1) * mask)
        ),
        SEEN_FIRST: partial(step, weigh=renormalised),
        "the weights should be positive and sum to 1: these are scores": (
            partial(step, weigh=lambda scores, mask: scores.masked_fill(~mask, 0.0))
        ),
        "the GRU reads the last symbol first, and then the context": (
            partial(step, read=lambda last, context: side_by_side(context, last))
        ),
        "the logits are of the old state: answer after the update": (
            partial(step, answer=lambda new, context, old: side_by_side(old, context))
        ),
        "the head reads the new state first, and then the context": (
            partial(step, answer=lambda new, context, old: side_by_side(context, new))
        ),
        "the state that you return is the old one": (
            partial(
                step, result=lambda logits, new, weights, old: (logits, old, weights)
            )
        ),
        "these are probabilities: return the logits, before the softmax": (
            partial(
                step,
                result=lambda logits, new, weights, old: (
                    logits.softmax(dim=-1),
                    new,
                    weights,
                ),
            )
        ),
        "the query is the state before the step, not one that is updated already": (
            partial(step, asks=updated)
        ),
        "return the logits, the new state and the weights, in this order": (
            partial(
                step, result=lambda logits, new, weights, old: (logits, weights, new)
            )
        ),
    },
)


def parts_of_a_step(draw, b, s, d=4, e=3, m=5, hidden=6, v=7):
    """state, last, states, mask, scorer, gru, head."""
    scorer = draw.normal(hidden, d), draw.normal(hidden, m), draw.normal(hidden)
    gru = draw.normal(3 * d, e + m), draw.normal(3 * d, d)
    gru = *gru, draw.normal(3 * d), draw.normal(3 * d)
    head = draw.normal(v, d + m), draw.normal(v)
    state, last, states = draw.normal(b, d), draw.normal(b, e), draw.normal(b, s, m)
    return state, last, states, draw.mask(b, s), scorer, gru, head


@decoder_step.case("one source, nothing masked")
def _(draw):
    state, last, states, mask, *rest = parts_of_a_step(draw, 1, 4)
    return state, last, states, mask | True, *rest


@decoder_step.case("a batch with padding, every axis of another length")
def _(draw):
    b, s, d, e, m, hidden = draw.sizes(6, low=2, high=9)
    return parts_of_a_step(draw, b, s, d, e, m, hidden, v=11)


@decoder_step.case("last symbol, state and encoder states of one width")
def _(draw):
    return parts_of_a_step(draw, 3, 4, d=4, e=4, m=4)


@decoder_step.case("padding that would outweigh all the rest")
def _(draw):
    state, last, _, _, _, *rest = parts_of_a_step(draw, 2, 4)
    states, mask, W_k, w = outweighed(draw, d=5)
    W_q = draw.normal(64, 4) / 1000
    return state, last, states, mask, (W_q, W_k, w), *rest


@decoder_step.case(
    "gradients of the logits reach states and all weights", gradients=True
)
def _(draw):
    return parts_of_a_step(draw, 3, 4)


# ---- find the fault ----------------------------------------------------------


def attention(
    queries, keys, mask, W_q, W_k, w, score=None, late=None, dim=-1, detached=False
):
    given = {} if score is None else {"score": score}
    raw, mask = scores(queries, keys, W_q, W_k, w, **given), mask[:, None, :]
    if late:
        weights = late(raw, mask)
    else:
        weights = raw.masked_fill(~mask, -1e30).softmax(dim=dim)
    return (weights.detach() if detached else weights) @ keys, weights


def masked_late(scores, mask):
    return scores.softmax(dim=-1) * mask


def apart(q, k, w):
    return (q.tanh() + k.tanh()) @ w


mended_attention = Exercise(
    "ch01-mended-attention",
    right=lambda queries, keys, mask, W_q, W_k, w: attention(
        queries, keys, mask, W_q, W_k, w
    ),
    hint="expected contexts and weights of additive attention, over the keys that the "
    "mask allows",
    symptoms=lambda result, queries, keys, mask, *rest: leaks_to_masked(result, mask),
    through=first_if_differentiated,
    mistakes={
        f"the weight of each key {DETACHED}": partial(attention, detached=True),
        "the query still has no say: it adds the same number to all scores of a row": (
            partial(attention, score=apart)
        ),
        "where keys are masked, the rows still don't sum to 1": (
            partial(attention, late=masked_late)
        ),
        SEEN_FIRST: partial(attention, late=renormalised),
        "both faults are still there: the query has no say, and where keys are masked, "
        "the rows don't sum to 1": partial(attention, score=apart, late=masked_late),
        "without any tanh the query has no say, either": (
            partial(attention, score=lambda q, k, w: (q + k) @ w)
        ),
        "tanh comes before w, not after it": (
            partial(attention, score=lambda q, k, w: torch.tanh((q + k) @ w))
        ),
        "the softmax runs over the queries: each row, over the keys, should sum to 1": (
            partial(attention, dim=1)
        ),
        "the mask isn't used: padding gets weight": (
            lambda queries, keys, mask, W_q, W_k, w: attention(
                queries, keys, mask | True, W_q, W_k, w
            )
        ),
    },
)


@mended_attention.case("nothing masked")
def _(draw):
    queries, keys, *rest = arguments(draw, 2, t=3, s=4)
    return queries, keys, torch.ones(2, 4, dtype=torch.bool), *rest


@mended_attention.case("a batch with padding, every axis of another length")
def _(draw):
    b, t, s, q, k, hidden = draw.sizes(6, high=9)
    s += 8  # several keys are left in each row, so that the scores matter
    queries, keys, *rest = arguments(draw, b, t=t, s=s, q=q, k=k, hidden=hidden)
    return queries, keys, draw.mask(b, s), *rest


@mended_attention.case("padding that would outweigh all the rest")
def _(draw):
    keys, mask, W_k, w = outweighed(draw, d=5)
    W_q = draw.normal(64, 4) / 1000
    return draw.normal(2, 3, 4), keys, mask, W_q, W_k, w


@mended_attention.case(
    "gradients of the contexts reach queries, keys, W_q, W_k and w", gradients=True
)
def _(draw):
    queries, keys, *rest = arguments(draw, 2, t=3, s=5)
    return queries, keys, draw.mask(2, 5), *rest


@mended_attention.case("as many queries as keys as sources")
def _(draw):
    queries, keys, *rest = arguments(draw, 7, t=7, s=7)
    return queries, keys, draw.mask(7, 7), *rest
