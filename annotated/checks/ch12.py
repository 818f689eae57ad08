"""The exercises of chapter 12; ``__init__.py`` says how one is written."""

import math
from functools import partial

import torch

from annotated.checks import Exercise, Function
from annotated.checks.material import memory_kept, without_loops

# ---- the other shift ---------------------------------------------------------


def by_key(x, *, distance=lambda i, j, t, s: s - t + i - j, future=0.0):
    """Entry (i, j) of the result is column ``distance(i, j, t, s)`` of row i."""
    t, s = x.shape[-2:]
    i, j = torch.arange(t)[:, None], torch.arange(s)
    column = distance(i, j, t, s).expand(t, s)
    picked = x.gather(-1, column.clamp(0, s - 1).expand(x.shape))
    return torch.where(s - t + i - j >= 0, picked, torch.as_tensor(future).to(x))


def leftovers(x, first=True):
    """Pad, one line, skip, cut, without anything hidden afterwards."""
    t, s = x.shape[-2:]
    line = torch.nn.functional.pad(x.flip(-1) if first else x, (1, 0)).flatten(-2)
    return line[..., t:].unflatten(-1, (t, s))


def all_as_rows(x):
    """Batches and heads taken for more rows of one matrix."""
    t, s = x.shape[-2:]
    rows = leftovers(x.flatten(0, -2)).view(x.shape)
    return rows.tril(s - t)


shift = Exercise(
    "ch12-shift",
    right=by_key,
    through=without_loops,
    symptoms=lambda result, *_: (
        "your function calls PyTorch hundreds of times: is there a loop over rows, "
        "columns or batches?"
        if isinstance(result, str) and result == "loops"
        else None
    ),
    hint="expected in entry (i, j) the score of query i at the distance of key j, "
    "s − t + i − j, and 0 where that is below 0",
    mistakes={
        "right of the diagonal something is left; keys in the future get 0": leftovers,
        "that would be right for the chapter's order; here column 0 is distance 0": (
            lambda x: leftovers(x, first=False).tril(x.shape[-1] - x.shape[-2])
        ),
        "that would be right for the chapter's order, leftovers and all; here column "
        "0 is distance 0": partial(leftovers, first=False),
        "keys in the future get 0, not −∞": partial(by_key, future=-math.inf),
        "query i stands at key s − t + i, not at key i: is there a memory in front?": (
            lambda x: torch.where(
                torch.arange(x.shape[-2])[:, None] >= torch.arange(x.shape[-1]),
                by_key(x, distance=lambda i, j, t, s: i - j),
                0.0,
            )
        ),
        "the distances grow from left to right; the nearest key is the last visible "
        "one": partial(by_key, distance=lambda i, j, t, s: j + 0 * i),
        "your diagonal ignores the memory: the first query stands at key s − t, so "
        "tril needs the diagonal s − t": lambda x: leftovers(x).tril(),
        "each distance is one too large": (
            partial(by_key, distance=lambda i, j, t, s: s - t + i - j + 1)
        ),
        "rows are shifted across the borders of batches or heads": all_as_rows,
    },
)


@shift.case("the example: 3 queries, 4 keys")
def _(draw):
    return (10.0 * torch.arange(1, 4)[:, None] + torch.arange(4),)


@shift.case("no memory: as many queries as keys")
def _(draw):
    t = draw.integer(3, 6)
    return (draw.normal(t, t),)


@shift.case("a memory in front, batches and heads")
def _(draw):
    b, h, t, m = draw.sizes(4)
    return (draw.normal(b, h, t, t + m),)


@shift.case("a long segment, without a loop over its cells")
def _(draw):
    return (draw.normal(2, draw.integer(11, 13), draw.integer(18, 22)),)


@shift.case("a single query")
def _(draw):
    return (draw.normal(2, 1, draw.integer(4, 7)),)


@shift.case("gradients reach x", gradients=True)
def _(draw):
    t, m = draw.sizes(2)
    return (draw.normal(2, t, t + m),)


# ---- update the memory -------------------------------------------------------


def last(memory, states, mem_len, *, joined=lambda m, x: torch.cat([m, x], dim=2)):
    everything = joined(memory, states)
    return everything[:, :, max(0, everything.shape[2] - mem_len) :].detach()


def picked(pick):
    """What ``pick`` takes of memory and states, one after the other."""
    return lambda m, x, mem_len: pick(torch.cat([m, x], dim=2), mem_len).detach()


update = Exercise(
    "ch12-memory",
    right=last,
    through=memory_kept,
    symptoms=lambda result, *_: (
        "a gradient flows out of the memory into earlier segments"
        if isinstance(result, str) and result == "attached"
        else None
    ),
    hint="expected the last mem_len of the old memory and the new states, in order",
    mistakes={
        "with mem_len 0 nothing is remembered: what does [-0:] give?": picked(
            lambda both, mem_len: both[:, :, -mem_len:]
        ),
        "the old memory is dropped: a short segment doesn't fill the memory": (
            partial(last, joined=lambda m, x: x)
        ),
        "the oldest are kept, not the latest": picked(
            lambda both, mem_len: both[:, :, :mem_len]
        ),
        "the segment stands before the old memory": (
            partial(last, joined=lambda m, x: torch.cat([x, m], dim=2))
        ),
        "everything is kept: is mem_len used?": picked(lambda both, mem_len: both),
        "the result is filled up to mem_len; there is less at the beginning": picked(
            lambda both, mem_len: torch.nn.functional.pad(
                both[:, :, max(0, both.shape[2] - mem_len) :],
                (0, 0, max(0, mem_len - both.shape[2]), 0),
            )
        ),
    },
)

for _line, _sizes in {
    "the example: positions 4 and 5, then 6, 7 and 8": (2, 3, 4),
    "at the beginning of a text: no memory yet, and not enough states": (0, 3, 5),
    "a segment longer than the memory": (3, 6, 4),
    "mem_len is 0": (2, 3, 0),
    "less than mem_len so far": (2, 3, 7),
}.items():

    @update.case(_line)
    def _(draw, sizes=_sizes):
        m, t, mem_len = sizes
        position = torch.arange(4.0, 4 + m + t)[:, None]  # told apart by whole parts
        both = position + draw.uniform(0, 0.5, 3, 2, m + t, 5)
        return both[:, :, :m].clone(), both[:, :, m:].clone(), mem_len


# ---- relative attention ------------------------------------------------------


def attend(
    q,
    k,
    values,
    r,
    u,
    v,
    *,
    width=lambda q, values: q.shape[-1] ** 0.5,
    content=lambda q, u, v: q + u,
    position=lambda q, u, v: q + v,
    rows=lambda r: r,
    moved=by_key,
    masked=True,
    diagonal=lambda t, s: s - t + 1,
):
    t, s = q.shape[1], k.shape[1]
    scores = content(q, u, v) @ k.mT + moved(position(q, u, v) @ rows(r).mT)
    scores = scores / width(q, values)
    if masked:
        future = torch.ones(t, s).triu(diagonal(t, s)).bool()
        scores = scores.masked_fill(future, -torch.inf)
    return scores.softmax(dim=-1) @ values


def zeroed(*given):
    """Weights are hidden after the softmax."""
    q, k, _, r, u, v = given
    everything = torch.eye(k.shape[1]).to(q).expand(len(q), -1, -1)
    weights = attend(q, k, everything, r, u, v, masked=False)
    return weights.tril(k.shape[1] - q.shape[1]) @ given[2]


attention = Exercise(
    "ch12-attention",
    right=attend,
    hint="expected softmax(((q + u)·k + (q + v)·r of the distance) / √k) · values, for "
    "the keys that a query may see",
    tolerance=1e-4,
    mistakes={
        "(q + v)·r isn't shifted: a column is still a distance, not a key": partial(
            attend, moved=lambda x: x
        ),
        "(q + v)·r is shifted as if the largest distance came first; here row 0 of r "
        "is distance 0": partial(attend, rows=lambda r: r.flip(0)),
        "the factor 1/√k is missing": partial(attend, width=lambda q, values: 1.0),
        "divided by k, not by √k": partial(attend, width=lambda q, v: q.shape[-1]),
        "divided by the root of the width of the values, not of the queries": partial(
            attend, width=lambda q, values: values.shape[-1] ** 0.5
        ),
        "divided by √s, the number of keys: k is the width of a query": partial(
            attend, width=lambda q, values: values.shape[-2] ** 0.5
        ),
        "u and v are exchanged: u meets the keys, v the distances": partial(
            attend, content=lambda q, u, v: q + v, position=lambda q, u, v: q + u
        ),
        "term (c) is missing: u isn't used": partial(attend, content=lambda q, u, v: q),
        "term (d) is missing: v isn't used": partial(
            attend, position=lambda q, u, v: q
        ),
        "terms (a) and (b) are missing: the query isn't used": partial(
            attend,
            content=lambda q, u, v: u + 0 * q,
            position=lambda q, u, v: v + 0 * q,
        ),
        "only the first product is divided by √k: divide the sum": partial(
            attend, position=lambda q, u, v: (q + v) * q.shape[-1] ** 0.5
        ),
        "only the second product is divided by √k: divide the sum": partial(
            attend, content=lambda q, u, v: (q + u) * q.shape[-1] ** 0.5
        ),
        "keys in the future are visible": partial(attend, masked=False),
        "your mask ignores the memory: the first query stands at key s − t, so the "
        "diagonal of tril or triu has to move by s − t": partial(
            attend, diagonal=lambda t, s: 1
        ),
        "weights are hidden after the softmax: they no longer sum to 1": zeroed,
    },
)


def drawn_attention(draw, m):
    b, t, k, w = draw.sizes(4)
    s = t + m
    shapes = (b, t, k), (b, s, k), (b, s, w), (s, k), (k,), (k,)
    return tuple(draw.normal(*shape) for shape in shapes)


@attention.case("the example: without q, u and v a plain average of what is visible")
def _(draw):
    q, k, values, r, u, v = drawn_attention(draw, 2)
    return 0 * q, k, values, r, 0 * u, 0 * v


@attention.case("no memory")
def _(draw):
    return drawn_attention(draw, 0)


@attention.case("a memory in front")
def _(draw):
    return drawn_attention(draw, draw.integer(2, 5))


@attention.case("gradients reach all six", gradients=True)
def _(draw):
    return drawn_attention(draw, 3)


# ---- how far back ------------------------------------------------------------


def reached(
    position,
    length,
    mem_len,
    layers,
    *,
    begin=lambda position, length: position // length * length,
):
    for _ in range(layers):
        position = max(0, begin(position, length) - mem_len)
    return position


def from_begin(position, length, mem_len, layers, *, least=0):
    return max(least, position // length * length - layers * mem_len)


reach = Exercise(
    "ch12-reach",
    right=reached,
    hint="expected the first position of what the output looks at, of what that has "
    "looked at, and so on, once for each layer",
    mistakes={
        "from the second layer on, a position in memory looked back from the beginning "
        "of its own segment": from_begin,
        "the text begins at 0: no position is below": partial(
            from_begin, least=-(10**6)
        ),
        "the memory is that of a segment: it begins before the segment, not before the "
        "position": partial(reached, begin=lambda position, length: position),
        "is the number of layers used?": (
            lambda position, length, mem_len, layers: reached(
                position, length, mem_len, 1
            )
        ),
        "the first layer looks back as well": (
            lambda position, length, mem_len, layers: reached(
                position, length, mem_len, layers - 1
            )
        ),
        "that is one layer too many": (
            lambda position, length, mem_len, layers: reached(
                position, length, mem_len, layers + 1
            )
        ),
        "the first position is wanted, not how many there are": (
            lambda position, *rest: position - reached(position, *rest) + 1
        ),
    },
)

for _line, _given in {
    "the example: one layer": (14, 4, 4, 1),
    "the example: two layers": (14, 4, 4, 2),
    "the example: a memory of 6": (26, 4, 6, 2),
    "a short memory and three layers": (23, 4, 2, 3),
    "no memory: the segment alone": (13, 5, 0, 4),
    "more than the text has": (9, 4, 6, 5),
    "the last position of a segment": (19, 5, 3, 2),
}.items():

    @reach.case(_line)
    def _(draw, given=_given):
        return given


@reach.case("somewhere in a long text")
def _(draw):
    length = draw.integer(3, 9)
    layers = draw.integer(2, 4)
    return draw.integer(80, 120), length, length + draw.integer(1, 2), layers


# ---- find the fault ----------------------------------------------------------


BITS = 1 / math.log(2)  # in a nat


def read(
    model,
    segments,
    *,
    carried=True,
    mean=lambda losses: torch.cat(losses, dim=1).mean().item(),
    unit=BITS,
):
    memory, losses = None, []
    for tokens, target in segments:
        nats, new = model(tokens, target, memory)
        memory = new if carried else None
        losses.append(nats)
    return mean(losses) * unit


def mean_of_means(losses):
    return sum(nats.mean().item() for nats in losses) / len(losses)


def sum_of_all(losses):
    return torch.cat(losses, dim=1).sum().item()


def perplexity(losses):
    return torch.cat(losses, dim=1).mean().exp().item()


def sum_of_rows(losses):
    return torch.cat(losses, dim=1).sum(dim=0).mean().item()


_FAULTS = {  # hint: what is wrong, alone and together
    "the memory is thrown away: each segment begins like the first": {"carried": False},
    "a short last segment counts as much as a long one": {"mean": mean_of_means},
    "nats times ln 2 aren't bits": {"unit": math.log(2)},
    "that is the loss in nats": {"unit": 1.0},
    "that is the sum of all losses, not their mean": {"mean": sum_of_all},
    "that is the perplexity: the bits are its logarithm to base 2": {
        "mean": perplexity,
        "unit": 1.0,
    },
    "divided by the characters of one row: a segment has b × t": {"mean": sum_of_rows},
}

reader = Exercise(
    "ch12-reader",
    right=read,
    hint="expected the mean of the losses of all characters, in bits, with the memory "
    "handed on from segment to segment",
    tolerance=1e-4,
    mistakes={hint: partial(read, **wrong) for hint, wrong in _FAULTS.items()}
    | {
        "unchanged: all three faults are still there": partial(
            read, carried=False, mean=mean_of_means, unit=math.log(2)
        ),
        "the unit is right now; two faults are left": partial(
            read, carried=False, mean=mean_of_means
        ),
        "the memory is handed on now; two faults are left": partial(
            read, mean=mean_of_means, unit=math.log(2)
        ),
        "every character counts the same now; two faults are left": partial(
            read, carried=False, unit=math.log(2)
        ),
    },
)

# the losses depend on the target, on what was read in the segment, and on the memory
_MODEL = Function(
    "(0.3 * target + 0.1 * tokens.cumsum(1) / (1 + tokens.shape[1])"
    " + (2.0 if memory is None else 0.05 * memory),"
    " tokens.sum(1, keepdim=True) + (0.0 if memory is None else 0.5 * memory))",
    "tokens, target, memory",
)


def cut(draw, *lengths):
    b = draw.integer(2, 4)
    return [
        (draw.integers(1, 9, b, length), draw.integers(1, 9, b, length))
        for length in lengths
    ]


for _line, _lengths in {
    "one segment": (5,),
    "segments of one length": (4, 4, 4),
    "a last segment that is shorter": (6, 6, 2),
}.items():

    @reader.case(_line)
    def _(draw, lengths=_lengths):
        return _MODEL, cut(draw, *lengths)
