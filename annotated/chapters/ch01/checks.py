"""The exercises of chapter 01; ``__init__.py`` says how one is written."""

import torch
from torch import Tensor

from annotated.checks import exercise
from annotated.checks.material import (
    first_if_differentiated,
    first_two_if_differentiated,
    without_loops,
)

NO_TANH = "without it the query has no say (section 1.6)"
BY_ROW = "the softmax runs over the queries: each row, over the keys, should sum to 1"

# ---- additive scores ---------------------------------------------------------


@exercise(
    "ch01-additive-scores",
    "expected w · tanh(W_q q + W_k k) for each query and each key",
    through=without_loops,
    broken={
        "loops": "a loop over queries or keys: the answer is right, and slow; let one "
        "sum broadcast over both"
    },
)
def additive_scores(queries, keys, W_q, W_k, w):
    """Scores (…, t, s) of queries (…, t, q) and keys (…, s, k)."""
    asked, offered = queries @ W_q.mT, keys @ W_k.mT
    sums = asked[..., :, None, :] + offered[..., None, :, :]
    return sums.tanh() @ w


additive_scores.instead(r"""
sums.tanh() @ w
    sums @ w  # tanh is missing, and {NO_TANH}
    (sums @ w).tanh()  # tanh comes before w, not after it
    sums.tanh().sum(dim=-1)
        # w is missing: the components are weighted by w, not only added
    (sums.tanh() @ w).softmax(dim=-1)
        # these are weights: return the scores, before the softmax
    (sums.tanh() @ w).mT  # queries and keys are exchanged: row i is for query i
    (sums.tanh() @ w).squeeze()
        # squeeze() drops every axis of length 1, also that of a lone source or query
queries @ W_q.mT, keys @ W_k.mT
    queries @ W_k.mT, keys @ W_q.mT
        # W_q and W_k are exchanged: W_q maps the queries, W_k the keys
    queries @ W_q, keys @ W_k  # the queries are rows here, and q W_q is not W_q q
sums.tanh() -> sums
\n    sums -> \n    asked, offered = asked.tanh(), offered.tanh()\n    sums
        # tanh acts on the sum W_q q + W_k k, not on its two parts one by one
asked[..., :, None, :] -> asked[:, :, None, :]
offered[..., None, :, :] -> offered[:, None, :, :]  # … your code raised IndexError
asked, -> W_q, W_k = (W.T if W.shape[0] == W.shape[1] else W for W in (W_q, W_k))\n
        \n    asked,  # … q W_q is not W_q q
queries @ W_q.mT -> queries @ W_q.detach().mT  # … no gradient reaches W_q
""")


def arguments(draw, batch, t, s, q=4, k=7, hidden=6):
    """queries, keys, W_q, W_k, w."""
    shapes = (*batch, t, q), (*batch, s, k), (hidden, q), (hidden, k), (hidden,)
    return tuple(draw.normal(*shape) for shape in shapes)


@additive_scores.case("the three words of section 1.2, without a batch axis")
def _(draw):
    eye = torch.eye(3)
    return eye[[2, 1, 0]], eye, -eye, 2 * eye, torch.full((3,), 7.0)


@additive_scores.case("every axis of another length")
def _(draw):
    b, *sizes = draw.sizes(6, high=9)
    return arguments(draw, [b], *sizes)


additive_scores.each("""
square matrices, as many queries as keys: nothing is exchanged -> [2], 3, 3, 4, 4, 4
two batch axes -> [2, 5], 3, 4
one source and one query -> [1], 1, 5
a quarter of a million pairs: no loops -> [4], 256, 256, 2, 3, 4
""")(arguments)
additive_scores.each(
    "gradients reach queries, keys, W_q, W_k and w -> [2], 3, 5", gradients=True
)(arguments)


# ---- masked weights --------------------------------------------------------


def is_real(scores, lengths):
    """Which positions are real, the last ones: (b, 1, s)."""
    s = scores.shape[-1]
    return (torch.arange(s) >= s - lengths[:, None])[:, None, :]


def leaks(weights, scores, lengths):
    leak = weights.masked_fill(is_real(scores, lengths), 0.0).abs().max()
    if 0 < leak < 1e-4:
        return "padding gets a little weight, and should get exactly 0"
    if (
        scores.max() < -100
        and not weights.sum(dim=-1).isclose(lengths[:, None] * 0.0 + 1).all()
    ):
        return (
            "real scores of −200 get no weight: their exponentials are 0. Is the "
            "largest score that you subtract that of a real position?"
        )


@exercise(
    "ch01-mask-padding",
    "expected a softmax over the real positions of each source alone, and exactly 0 "
    "elsewhere",
    symptoms=leaks,
)
def mask_padding(scores, lengths):
    """Weights (b, t, s) in which the last `lengths[n]` positions are real."""
    s, lowest = scores.shape[-1], torch.finfo(scores.dtype).min
    place, start = torch.arange(s), s - lengths[:, None]
    real = (place >= start)[:, None, :]  # (b, 1, s)
    weights = scores.masked_fill(~real, lowest).softmax(dim=-1)
    return weights.masked_fill(~real, 0.0)  # for sources of length 0


OWN_LENGTH = "each source has its own length, and you use"
mask_padding.instead("""
place >= start
    place < lengths[:, None]  # here the padding stands at the front: the last
        lengths[n] positions are real (you mask the end)
    place < start  # the mask is upside down: only padding gets weight
    place > start  # off by one: the first real position gets no weight
    place >= start - 1  # off by one: one position of padding gets weight
    place >= start[:1]  # {OWN_LENGTH} that of the first
    place >= start.min().view(1, 1)  # {OWN_LENGTH} the longest
    (place >= start) | (start > place.max())
        # a source of length 0 has no real position: [-0:] is the whole row
return weights.masked_fill(~real, 0.0)
    return scores.softmax(dim=-1)
        # nothing is masked, or each source by the longest of the lengths
    return weights  # a source of length 0 should give zeros: equal scores, however low,
        give equal weights
lowest) -> 0.0)
        # the rows do not sum to 1: the padding took its share, with a score of 0
scores.masked_fill(~real, lowest) -> scores
        # the rows do not sum to 1: the softmax has seen the padding
softmax(dim=-1) -> softmax(dim=1)  # {BY_ROW}
lowest) -> 0.0)
weights.masked_fill(~real, 0.0) -> weights
        # a score of 0 is no weight of 0, for exp(0) = 1
lowest) -> -torch.inf)
weights.masked_fill(~real, 0.0) -> weights  # a source of length 0 gives NaN: all its
        scores are −∞, and its softmax is 0/0; it should give zeros
scores.masked_fill(~real, lowest) -> (scores +
        torch.zeros(real.shape).masked_fill(~real,
        -torch.inf))
weights.masked_fill(~real, 0.0) -> weights.nan_to_num(0.0)  # NaN comes back in the
        gradient: it was mended after the softmax, which still sends it back
lowest) -> -20.0)
weights.masked_fill(~real, 0.0) -> weights * (lengths > 0)[:, None, None]
        # … and should get exactly 0
(place >= start)[:, None, :] -> place >= s - lengths  # … your code raised RuntimeError
scores.masked_fill(~real, lowest).softmax(dim=-1)
    (scores - scores.masked_fill(~real, 0.0).amax(-1, True)).exp() * real
        # … real scores of −200 get no weight
""")


mask_padding.case(
    "equal scores: weights of 1/2 for two positions, of 1/4 for four",
    lambda draw: (torch.full((2, 3, 4), 2.0), torch.tensor([2, 4])),
)
mask_padding.case(
    "as many sources as queries and positions",
    lambda draw: (draw.normal(4, 4, 4), torch.tensor(draw.shuffled(range(1, 5)))),
)
mask_padding.case(
    "scores of −200 are scores like any other",
    lambda draw: (draw.normal(2, 3, 5) - 200.0, torch.tensor([2, 4])),
)


@mask_padding.case("every axis of another length")
def _(draw):
    s = draw.integer(5, 8)
    return draw.normal(3, 2, s), torch.tensor(draw.shuffled(range(1, s))[:3])


@mask_padding.case("padding with large scores")
def _(draw):
    scores, lengths = draw.normal(2, 3, 5), torch.tensor([2, 4])
    return scores + 30.0 * ~is_real(scores, lengths), lengths


@mask_padding.case("a source of length 0 gets zeros")
@mask_padding.case("gradients are finite, and those of padding are 0", gradients=True)
def _(draw):
    return draw.normal(3, 2, 4), torch.tensor([3, 0, 4])


# ---- temperature -------------------------------------------------------------


def not_a_number(weights, scores, tau):
    if tau == 0 and isinstance(weights, Tensor) and weights.isnan().any():
        return "NaN at τ = 0 (is something divided by 0?): what is the limit there?"
    if tau and isinstance(weights, Tensor) and weights.isnan().any():
        return (
            f"NaN at τ = {tau:g}: a score of 3 is divided to 300, whose exponential "
            "is ∞ for the computer, and ∞/∞ is NaN"
        )


@exercise(
    "ch01-temper",
    "expected softmax(scores / τ) in each row, and for τ = 0 all weight on the "
    "largest score, however small its lead",
    symptoms=not_a_number,
)
def temper(scores, tau):
    """Weights (b, t, s): softmax(scores / tau), and its limit at tau = 0."""
    if tau > 0:
        return (scores / tau).softmax(dim=-1)
    largest = (scores == scores.amax(dim=-1, keepdim=True)).to(scores.dtype)
    return largest / largest.sum(dim=-1, keepdim=True)


TIES = "keys that tie for the largest score"
temper.instead(r"""
(scores / tau).softmax(dim=-1)
    (scores * tau).softmax(dim=-1)
        # the temperature multiplies the scores; it should divide them
    scores.softmax(dim=-1)  # the temperature is not used
    scores.softmax(dim=-1) / tau  # the temperature divides the scores before the
        softmax, not the weights after it
    scores / tau  # the rows of weights should sum to 1: the softmax is missing
    (scores / tau).softmax(dim=1)  # {BY_ROW}
    (scores / tau).exp() / (scores / tau).exp().sum(dim=-1, keepdim=True)
        # … NaN at τ = 0.01
largest / largest.sum(dim=-1, keepdim=True)
    largest * (largest.cumsum(dim=-1) == 1)  # {TIES} share the weight equally
    largest  # {TIES} get 1 each: they should share it
if tau -> tau = tau or 1e-3\n    if tau  # a small number stands in for τ = 0, and there
        the largest score takes all, however small its lead
if tau > 0: -> tau = max(tau, 1e-6)\n    if tau > 0:  # … however small its lead
if tau > 0:
    if tau >= 0:\n        scores = scores - scores.amax(-1, True)  # … NaN at τ = 0
""")


temper.each("""
τ = 1 is the plain softmax -> 0, 1, 1.0
τ = 2 makes the rows flatter -> 0, 1, 2
so hot that all keys count the same -> 0, 1, 1e9
so cold that exponentials overflow: τ = 0.01 -> 3, 1, 0.01
τ = 0, and a small lead -> 1, 1e-3, 0.0
""")(lambda draw, mean, spread, tau: (mean + spread * draw.normal(2, 3, 4), tau))


@temper.case("another temperature")
@temper.case("in double precision", dtype=torch.float64)
def _(draw):
    return draw.normal(3, 2, 5), draw.number(0.2, 0.7)


@temper.case("τ = 0: all weight on the largest score, shared by keys that tie")
def _(draw):
    tie = draw.number(1.0, 9.0)
    return torch.tensor([[[tie, 0.5, tie, -1.0], [-5.0, -2.0, -3.0, -tie - 5]]]), 0


@temper.case("τ = 0, and the smallest lead that a number can have")
def _(draw):
    rows = torch.tensor([[1.0], [1e-20]]) * draw.number(1.0, 2.0)
    lead = torch.nextafter(rows, torch.tensor(torch.inf))
    return torch.cat([rows, lead, rows / 2, -rows], dim=-1)[None], 0.0


# ---- padding that outweighs all the rest ---------------------------------------

SEEN_FIRST = (
    "NaN: before it is hidden, padding takes all the weight (then 0 is "
    "divided by 0), or its exponential overflows (and ∞ · 0 is NaN); hide the scores "
    "before the softmax"
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
            "padding gets a little weight, and should get exactly 0: its score should "
            "be −∞"
        )


# ---- one step of a decoder ---------------------------------------------------


DETACHED = "is detached: the loss can't tell the scores where to look (section 1.5)"


@exercise(
    "ch01-decoder-step",
    "expected logits, new state and weights: look back with the old state, update "
    "with last and context, answer from new state and context",
    symptoms=lambda result, _, last, states, mask, *rest: leaks_to_masked(result, mask),
    through=first_two_if_differentiated,
)
def decoder_step(state, last, states, mask, scorer, gru, head):
    """Logits (b, v), new state (b, d) and weights (b, s)."""
    W_q, W_k, w = scorer
    sums = (state @ W_q.mT)[:, None] + states @ W_k.mT  # (b, s, h)
    scores = sums.tanh() @ w
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    context = (weights[:, None] @ states)[:, 0]
    new = torch.gru_cell(torch.cat([last, context], dim=-1), state, *gru)
    logits = torch.cat([new, context], dim=-1) @ head[0].mT + head[1]
    return logits, new, weights


decoder_step.instead(r"""
(weights[:, None] @ states)[:, 0] -> (weights[:, None] @ states)[:, 0].detach()
        # the context {DETACHED}
= scorer -> = (weight.detach() for weight in scorer)
        # W_q, W_k and w are detached: no gradient reaches them, so they never learn
sums.tanh() @ w -> sums @ w  # tanh is missing, and {NO_TANH}
+ head[1] -> # the bias of the head is missing
scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    scores.masked_fill(~mask, -torch.inf).softmax(dim=-1).detach()
        # the weight of each state {DETACHED}
    scores.masked_fill(~mask, -1e30).softmax(dim=0)
        # the softmax runs over the batch: the weights of each source should sum to 1
    scores.softmax(dim=-1)  # padding gets weight: the mask isn't used
    scores.masked_fill(mask, -1e30).softmax(dim=-1)
        # the mask is upside down: True means that a position may be attended to
    scores.softmax(dim=-1) * mask
        # beside padding the weights do not sum to 1: the softmax has seen it
    renormalised(scores, mask)  # {SEEN_FIRST}
    scores.masked_fill(~mask, 0.0)
        # the weights should be positive and sum to 1: these are scores
[last, context] -> [context, last]
        # the GRU reads the last symbol first, and then the context
[new, context]
    [state, context]  # the logits are of the old state: answer after the update
    [context, new]  # the head reads the new state first, and then the context
return logits, new, weights
    return logits, state, weights  # the state that you return is the old one
    return logits.softmax(dim=-1), new, weights
        # these are probabilities: return the logits, before the softmax
    return logits, weights, new
        # return the logits, the new state and the weights, in this order
    return logits, new.detach(), weights  # the state that you return is detached: no
        gradient flows from one step to the step before
sums = (state @ -> sums = (torch.gru_cell(torch.nn.functional.pad(last, (0,
        states.shape[2])), state, *gru) @
        # the query is the state before the step, not one that is updated already
logits = -> sums = (new @ W_q.mT)[:, None] + states @ W_k.mT\n    scores = sums.tanh() @
        w\n    weights = scores.masked_fill(~mask,
        -torch.inf).softmax(dim=-1)\n    context = (weights[:, None] @ states)[:,
        0]\n    logits =  # you look back once more, with the new state: the answer
        takes the context of the old one
-torch.inf -> -20.0  # … its score should be −∞
(state @ W_q.mT)[:, None] + -> state @ W_q.mT +  # … your code raised RuntimeError
""")


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


decoder_step.each(
    "last symbol, state and encoder states of one width -> 3, 4, 4, 4, 4"
)(parts_of_a_step)
decoder_step.case(
    "gradients of the logits and of the state reach states and all weights",
    lambda draw: parts_of_a_step(draw, 3, 4),
    gradients=True,
)


@decoder_step.case("padding that would outweigh all the rest")
def _(draw):
    state, last, _, _, _, *rest = parts_of_a_step(draw, 2, 4)
    states, mask, W_k, w = outweighed(draw, d=5)
    W_q = draw.normal(64, 4) / 1000
    return state, last, states, mask, (W_q, W_k, w), *rest


# ---- find the fault ----------------------------------------------------------


@exercise(
    "ch01-mended-attention",
    "expected contexts and weights of additive attention, over the keys that the mask "
    "allows",
    symptoms=lambda result, queries, keys, mask, *rest: leaks_to_masked(result, mask),
    through=first_if_differentiated,
)
def mended_attention(queries, keys, mask, W_q, W_k, w):
    """Contexts (b, t, k) and weights (b, t, s)."""
    asked, offered = (queries @ W_q.mT)[:, :, None], (keys @ W_k.mT)[:, None]
    scores = (asked + offered).tanh() @ w  # one tanh, of the sum
    weights = scores.masked_fill(~mask[:, None], -torch.inf).softmax(dim=-1)
    return weights @ keys, weights


mended_attention.instead("""
weights @ keys -> weights.detach() @ keys  # the weight of each key {DETACHED}
(asked + offered).tanh()
    (asked.tanh() + offered.tanh())
        # the query still has no say: it adds the same number to all scores of a row
    (asked + offered)  # without any tanh the query has no say, either
(asked + offered).tanh() @ w -> ((asked + offered) @ w).tanh()
        # tanh comes before w, not after it
scores.masked_fill(~mask[:, None], -torch.inf).softmax(dim=-1)
    scores.softmax(dim=-1) * mask[:, None]
        # where keys are masked, the rows still don't sum to 1
    renormalised(scores, mask[:, None])  # {SEEN_FIRST}
    scores.masked_fill(~mask[:, None], -1e30).softmax(dim=1)  # {BY_ROW}
    scores.softmax(dim=-1)  # the mask isn't used: padding gets weight
(asked + offered).tanh() -> (asked.tanh() + offered.tanh())
scores.masked_fill(~mask[:, None], -torch.inf).softmax(dim=-1) -> scores.softmax(dim=-1)
        * mask[:, None]  # both faults are still there: the query has no say, and where
        keys are masked, the rows don't sum to 1
-torch.inf -> -20.0  # … its score should be −∞
""")


@mended_attention.case("nothing masked")
def _(draw):
    queries, keys, *rest = arguments(draw, [2], 3, 4)
    return queries, keys, torch.ones(2, 4, dtype=torch.bool), *rest


@mended_attention.case("a batch with padding, every axis of another length")
def _(draw):
    b, t, s, q, k, hidden = draw.sizes(6, high=9)
    s += 8  # several keys are left in each row, so that the scores matter
    queries, keys, *rest = arguments(draw, [b], t, s, q, k, hidden)
    return queries, keys, draw.mask(b, s), *rest


@mended_attention.case("padding that would outweigh all the rest")
def _(draw):
    keys, mask, W_k, w = outweighed(draw, d=5)
    W_q = draw.normal(64, 4) / 1000
    return draw.normal(2, 3, 4), keys, mask, W_q, W_k, w


@mended_attention.each("as many queries as keys as sources -> 7, 7, 7")
@mended_attention.each(
    "gradients of the contexts reach queries, keys, W_q, W_k and w -> 2, 3, 5",
    gradients=True,
)
def _(draw, b, t, s):
    queries, keys, *rest = arguments(draw, [b], t, s)
    return queries, keys, draw.mask(b, s), *rest
