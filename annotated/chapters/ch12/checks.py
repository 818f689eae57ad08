"""The exercises of chapter 12; ``__init__.py`` says how one is written."""

import torch

from annotated.checks import Function, Raised, exercise, faults
from annotated.checks.material import memory_kept, with_few_calls

# ---- the other shift ---------------------------------------------------------


def leftovers(x):
    """Pad, one line, skip, cut, without anything hidden afterwards."""
    t, s = x.shape[-2:]
    line = torch.nn.functional.pad(x.flip(-1), (1, 0)).flatten(-2)
    return line[..., t:].unflatten(-1, (t, s))


def for_one_matrix(result, x):
    """Did it fail on the axes in front of the matrices, or on their number?"""
    fails = ("dimension", "to unpack", "invalid for input of size")
    if isinstance(result, Raised) and any(words in result.message for words in fails):
        return (
            "there may be batches and heads in front: t and s are the last two axes, "
            "x.shape[-2:], and what you add or reshape needs the leading axes, too"
        )
    return None


@exercise(
    "ch12-shift",
    "expected in entry (i, j) the score of query i at the distance of key j, s − t + "
    "i − j, and 0 where that is below 0",
    through=with_few_calls,
    symptoms=for_one_matrix,
    broken={
        "loops": "your function calls PyTorch dozens of times: is there a loop over "
        "rows, columns or batches?"
    },
)
def shift_nearest_first(x):
    """Scores by distance, nearest first, to scores by key, (…, t, s)."""
    t, s = x.shape[-2:]
    i, j = torch.arange(t)[:, None], torch.arange(s)
    distance = s - t + i - j  # below 0 in the future
    picked = x.gather(-1, distance.clamp(0, s - 1).expand(x.shape))
    return picked.masked_fill(distance < 0, 0.0)


OTHER_WAY = "that would be right for the chapter's order"
shift_nearest_first.instead(r"""
picked.masked_fill(distance < 0, 0.0)
    leftovers(x)  # right of the diagonal something is left; keys in the future get 0
    leftovers(x.flip(-1)).tril(s - t)  # {OTHER_WAY}; here column 0 is distance 0
    leftovers(x.flip(-1))  # {OTHER_WAY}, leftovers and all; here column 0 is distance 0
    picked.masked_fill(distance < 0, -torch.inf)  # keys in the future get 0, not −∞
    leftovers(x).tril()  # your diagonal ignores the memory: the first query stands at
        key s − t, so tril needs the diagonal s − t
    leftovers(x.flatten(0, -2)).view(x.shape).tril(s - t)
        # rows are shifted across the borders of batches or heads
s - t + i - j -> i - j
        # query i stands at key s − t + i, not at key i: is there a memory in front?
distance.clamp(0, s - 1)
    j  # the distances grow from left to right; the nearest key is the last visible one
    (distance + 1).clamp(0, s - 1)  # each distance is one too large
return picked -> from annotated.transformer_xl import relative_shift\n\n    return
        relative_shift(x.flip(-1)).tril(s - t)\n    return picked  # … calls `annotated`
x.gather -> x.float().gather  # … the dtype is torch.float32
""")


@shift_nearest_first.case("the example: 3 queries, 4 keys")
def _(draw):
    return (10.0 * torch.arange(1, 4)[:, None] + torch.arange(4),)


@shift_nearest_first.case("no memory: as many queries as keys")
def _(draw):
    t = draw.integer(3, 6)
    return (draw.normal(t, t),)


@shift_nearest_first.case("a memory in front, batches and heads")
@shift_nearest_first.case("in double precision", dtype=torch.float64)
@shift_nearest_first.case("gradients reach x", gradients=True)
def _(draw):
    b, h, t, m = draw.sizes(4)
    return (draw.normal(b, h, t, t + m),)


@shift_nearest_first.case("a long segment, without a loop over its rows")
def _(draw):
    return (draw.normal(2, draw.integer(41, 43), draw.integer(48, 52)),)


shift_nearest_first.case(
    "a single query", lambda draw: (draw.normal(2, 1, draw.integer(4, 7)),)
)


# ---- update the memory -------------------------------------------------------


@exercise(
    "ch12-memory",
    "expected the last mem_len of the old memory and the new states, in order",
    through=memory_kept,
    broken={"attached": "a gradient flows out of the memory into earlier segments"},
)
def update(memory, states, mem_len):
    """The last `mem_len` of memory and states, (layers, b, n, d), detached."""
    both = torch.cat([memory, states], dim=2)
    return both[:, :, max(0, both.shape[2] - mem_len) :].detach()


update.instead("""
both[:, :, max(0, both.shape[2] - mem_len) :]
    both[:, :, -mem_len:]  # with mem_len 0 nothing is remembered: what does [-0:] give?
    both[:, :, :mem_len]  # the oldest are kept, not the latest
    both  # everything is kept: is mem_len used?
    torch.nn.functional.pad(both[:, :, max(0, both.shape[2] - mem_len) :], (0, 0, max(0,
        mem_len - both.shape[2]), 0))
        # the result is filled up to mem_len; there is less at the beginning
[memory, states]
    [states]  # the old memory is dropped: a short segment doesn't fill the memory
    [states, memory]  # the segment stands before the old memory
.detach() ->  # … a gradient flows out of the memory
""")


@update.each("""
the example: positions 4 and 5, then 6, 7 and 8 -> 2, 3, 4
at the beginning of a text: no memory yet, and not enough states -> 0, 3, 5
a segment longer than the memory -> 3, 6, 4
mem_len is 0 -> 2, 3, 0
less than mem_len so far -> 2, 3, 7
""")
def _(draw, m, t, mem_len):
    position = torch.arange(4.0, 4 + m + t)[:, None]  # told apart by whole parts
    both = position + draw.uniform(0, 0.5, 3, 2, m + t, 5)
    return both[:, :, :m].clone(), both[:, :, m:].clone(), mem_len


# ---- relative attention ------------------------------------------------------

ROOT, CONTENT, BY_DISTANCE = "q.shape[-1] ** 0.5", "(q + u) @ k.mT", "(q + v) @ r.mT"


@exercise(
    "ch12-attention",
    "expected softmax(((q + u)·k + (q + v)·r of the distance) / √k) · values, for the "
    "keys that a query may see",
    tolerance=1e-4,
)
def relative_attention(q, k, values, r, u, v):
    """Causal attention by contents and distances, (b, t, w)."""
    t, s = q.shape[1], k.shape[1]

    def by_key(x):  # from scores by distance, the nearest first
        line = torch.nn.functional.pad(x.flip(-1), (1, 0)).flatten(1)
        return line[:, t:].unflatten(1, (t, s)).tril(s - t)

    scores = (q + u) @ k.mT + by_key((q + v) @ r.mT)
    future = torch.ones(t, s).triu(s - t + 1).bool()
    scores = (scores / q.shape[-1] ** 0.5).masked_fill(future, -torch.inf)
    weights = scores.softmax(dim=-1)
    return weights @ values


relative_attention.instead("""
by_key((q + v) @ r.mT)
    (q + v) @ r.mT  # (q + v)·r isn't shifted: a column is still a distance, not a key
    by_key((q + v) @ r.flip(0).mT)  # (q + v)·r is shifted as if the
        largest distance came first; here row 0 of r is distance 0
    by_key(q @ r.mT)  # term (d) is missing: v isn't used
    by_key((q + v) @ r.mT) * q.shape[-1] ** 0.5
        # only the first product is divided by √k: divide the sum
(q + u) @ k.mT
    q @ k.mT  # term (c) is missing: u isn't used
    (q + u) @ k.mT * q.shape[-1] ** 0.5
        # only the second product is divided by √k: divide the sum
(q + v) @ r.mT -> (q + u) @ r.mT  # the distances got u; they need v
(q + u) @ k.mT -> (q + v) @ k.mT  # the keys got v; they need u
.masked_fill(future, -torch.inf) -> .masked_fill(by_key((q + v) @
        r.mT) == 0, -torch.inf)
        # keys are hidden where a score is 0, but a visible score may be 0, too
/ q.shape[-1] ** 0.5
    # the factor 1/√k is missing
    / q.shape[-1]  # divided by k, not by √k
    / values.shape[-1] ** 0.5
        # divided by the root of the width of the values, not of the queries
    / s**0.5  # divided by √s, the number of keys: k is the width of a query
.masked_fill(future, -torch.inf)
    # keys in the future are visible
    .masked_fill(future, 0.0)  # a score of 0 isn't a weight of 0: e⁰ is 1
triu(s - t + 1) -> triu(1)  # your mask ignores the memory: the first query stands at
        key s − t, so the diagonal of tril or triu has to move by s − t
(q + u) -> (q + w)
(q + v) -> (q + u)
(q + w) -> (q + v)  # u and v are exchanged: u meets the keys, v the distances
(q + u) -> (u + 0 * q)
(q + v) -> (v + 0 * q)  # terms (a) and (b) are missing: the query isn't used
.masked_fill(future, -torch.inf) ->
weights @ values -> weights.masked_fill(future, 0.0) @ values
        # weights are hidden after the softmax: they no longer sum to 1
""")


def drawn_attention(draw, m):
    b, t, k, w = draw.sizes(4)
    s = t + m
    shapes = (b, t, k), (b, s, k), (b, s, w), (s, k), (k,), (k,)
    return tuple(draw.normal(*shape) for shape in shapes)


@relative_attention.case(
    "the example: without q, u and v a plain average of what is visible"
)
def _(draw):
    q, k, values, r, u, v = drawn_attention(draw, 2)
    return 0 * q, k, values, r, 0 * u, 0 * v


relative_attention.case("no memory", lambda draw: drawn_attention(draw, 0))


@relative_attention.case("a memory in front")
@relative_attention.case("gradients reach all six", gradients=True)
def _(draw):
    return drawn_attention(draw, draw.integer(2, 5))


# ---- how far back ------------------------------------------------------------


@exercise(
    "ch12-reach",
    "expected the first position of what the output looks at, of what that has looked "
    "at, and so on, once for each layer",
    symptoms=lambda result, *_: (
        "the text begins at 0: no position is below"
        if isinstance(result, int) and result < 0
        else None
    ),
)
def first_seen(position, length, mem_len, layers):
    """The first position that can influence the output at `position`."""
    first = position
    for _ in range(layers):
        # a segment's first layer reads the memory before its beginning
        first = max(0, first // length * length - mem_len)
    return first


first_seen.instead("""
return first
    return max(0, position // length * length - layers * mem_len)
        # from the second layer
        on, a position in memory looked back from the beginning of its own segment
    return position // length * length - layers * mem_len
        # … no position is below
max(0, first // length * length - mem_len) -> first // length * length - mem_len
        # … the text begins at 0
first // length * length -> first  # the memory is that of a segment: it begins
        before the segment, not before the position
range(layers)
    range(1)  # is the number of layers used?
    range(layers - 1)  # the first layer looks back as well
    range(layers + 1)  # that is one layer too many
return first -> return position - first + 1
        # the first position is wanted, not how many there are
""")

first_seen.each("""
the example: one layer -> 14, 4, 4, 1
the example: two layers -> 14, 4, 4, 2
the example: a memory of 6 -> 26, 4, 6, 2
a short memory and three layers -> 23, 4, 2, 3
no memory: the segment alone -> 13, 5, 0, 4
more than the text has -> 9, 4, 6, 5
the last position of a segment -> 19, 5, 3, 2
""")(lambda draw, *given: given)


@first_seen.case("somewhere in a long text")
def _(draw):
    length = draw.integer(3, 9)
    layers = draw.integer(2, 4)
    return draw.integer(80, 120), length, length + draw.integer(1, 2), layers


# ---- find the fault ----------------------------------------------------------


@exercise(
    "ch12-reader",
    "expected the mean of the losses of all characters, in bits, with the memory "
    "handed on from segment to segment",
    faults("""
nats, memory = model -> nats, _ = model
        # the memory is thrown away: each segment begins like the first.
torch.cat(losses, dim=1).mean() -> sum(nats.mean() for nats in losses) / len(losses)
        # a short last segment counts as much as a long one.
mean / math.log(2) -> mean * math.log(2)  # nats times ln 2 aren't bits.
"""),
    tolerance=1e-4,
)
def bits_per_character(model, segments):
    """Mean loss of all characters, in bits."""
    import math

    memory, losses = None, []
    for tokens, target in segments:
        nats, memory = model(tokens, target, memory)
        losses.append(nats)
    mean = torch.cat(losses, dim=1).mean()
    return (mean / math.log(2)).item()


bits_per_character.instead("""
mean / math.log(2)
    mean  # that is the loss in nats
    mean.exp()  # that is the perplexity: the bits are its logarithm to base 2
torch.cat(losses, dim=1).mean()
    torch.cat(losses, dim=1).sum()  # that is the sum of all losses, not their mean
    torch.cat(losses, dim=1).sum(dim=0).mean()
        # divided by the characters of one row: a segment has b × t
""")

# the losses depend on the target, on what was read in the segment, and on the memory
_MODEL = Function(
    "(0.3 * target + 0.1 * tokens.cumsum(1) / (1 + tokens.shape[1]) + (2.0 if memory "
    "is None else 0.05 * memory), tokens.sum(1, keepdim=True) + (0.0 if memory is "
    "None else 0.5 * memory))",
    "tokens, target, memory",
)


@bits_per_character.each("""
one segment -> 5
segments of one length -> 4, 4, 4
a last segment that is shorter -> 6, 6, 2
""")
def _(draw, *lengths):
    b = draw.integer(2, 4)
    return _MODEL, [
        (draw.integers(1, 9, b, length), draw.integers(1, 9, b, length))
        for length in lengths
    ]
