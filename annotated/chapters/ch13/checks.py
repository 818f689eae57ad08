"""The exercises of chapter 13; ``__init__.py`` says how one is written."""

import math

import torch

from annotated.checks import exercise, faults
from annotated.checks.material import with_few_calls, within_windows

# ---- bucket ids ----------------------------------------------------------------


@exercise(
    "ch13-buckets",
    "expected the number of the largest of [x·turn, −x·turn], and 2n for padding",
)
def bucket_ids(x, turns, real):
    """The bucket of each vector in each round, (b, r, t)."""
    turned, n = torch.einsum("btk,rkn->brtn", x, turns), turns.shape[-1]
    ids = torch.cat([turned, -turned], dim=-1).argmax(dim=-1)
    return torch.where(real[:, None], ids, 2 * n)


bucket_ids.instead("""
torch.cat([turned, -turned], dim=-1)
    turned  # a column and its opposite are two buckets: where are the opposites?
    turned.abs()  # a column and its opposite are two buckets: yours are one
    torch.stack([turned, -turned], -1).flatten(-2)
        # first all columns, then all opposites: bucket n is the opposite of bucket 0
    torch.cat([-turned, turned], dim=-1)
        # first the columns, then their opposites: yours are the other way round
torch.where(real[:, None], ids, 2 * n)
    ids  # padding is hashed like the rest
    torch.where(real[:, None], ids, n)
        # padding gets 2n, a number that no other vector has
    torch.where(real[:, None], ids, -1)  # padding gets 2n, so that a sort puts it last
    torch.where(real[:, None], ids, 0)
        # padding gets 2n: bucket 0 has vectors of its own
    torch.where(~real[:, None], ids, 2 * n)
        # True is real and False is padding: yours are exchanged
    torch.where(real[:, None], ids, 2 * n).mT.contiguous()
        # the rounds come before the positions: (b, r, t)
    torch.where(real[:, None], ids, 2 * n).transpose(0, 1).contiguous()
        # the batch comes first: (b, r, t)
x, turns) -> x, turns[:1].expand_as(turns))  # every round uses the first matrix
""")


@bucket_ids.case("the example: S and B of the chapter, no turn")
def _(draw):
    x = torch.tensor([[[-7.0, -4.0], [-4.0, -7.0]]])
    return x, torch.eye(2)[None], torch.ones(1, 2, dtype=torch.bool)


@bucket_ids.case("a batch, several rounds, no padding")
def _(draw):
    b, t, k, r = draw.sizes(4)
    real = torch.ones(b, 2 * t, dtype=torch.bool)
    return draw.normal(b, 2 * t, k), draw.normal(r, k, 3), real


@bucket_ids.case("padding at the end of some sequences")
def _(draw):
    b, t, k, r = draw.sizes(4, low=3, high=8)
    lengths = torch.tensor([t + 4 - min(i, t) for i in range(b)])
    real = torch.arange(t + 4) < lengths[:, None]
    return draw.normal(b, t + 4, k), draw.normal(r, k, 4), real


@bucket_ids.case("vectors of any length: short and long ones")
def _(draw):
    x = draw.normal(2, 9, 5) * 10 ** draw.uniform(-3, 3, 2, 9, 1)
    return x, draw.normal(3, 5, 2), torch.arange(9) < torch.tensor([[9], [6]])


# ---- undo the sort -------------------------------------------------------------


@exercise(
    "ch13-unsort",
    "expected y[b, p] at position order[b][p] of the result",
    through=with_few_calls,
    broken={
        "loops": "your function calls PyTorch again and again: is there a loop over "
        "sequences or positions?"
    },
)
def unsort(y, order):
    """Sorted outputs, back in the order of the sequence, (b, t, v)."""
    place = order.argsort(dim=-1)  # (b, t): where each position stands
    return y.gather(1, place[..., None].expand_as(y))


unsort.instead("""
order.argsort(dim=-1)
    order  # that sorts once more: `order` says who stands at a place, and you need the
        place at which each one stands
    order[:1].argsort(dim=-1).expand_as(order)
        # all sequences are brought back by the order of the first
    torch.arange(y.shape[1]).expand_as(order)  # still sorted
    order.flip(-1)  # the order is turned round, not undone
    order.argsort(0).remainder(y.shape[1])
        # argsort runs over the sequences of the batch, not over positions
y.gather(1, place[..., None].expand_as(y))
    torch.stack([a[i] for a, i in zip(y, place, strict=True)])  # … again and again
""")


@unsort.case("the example: 2, 0, 1")
def _(draw):
    return torch.tensor([[[10.0], [11.0], [12.0]]]), torch.tensor([[2, 0, 1]])


def orders(draw, b, t):
    return torch.tensor([draw.shuffled(range(t)) for _ in range(b)])


@unsort.case("one sequence, several values each")
def _(draw):
    t, v = draw.sizes(2, low=4, high=9)
    return draw.normal(1, t, v), orders(draw, 1, t)


@unsort.case("a batch, each sequence with an order of its own")
def _(draw):
    b, t, v = draw.sizes(3, low=3, high=9)
    return draw.normal(b, t + 5, v), orders(draw, b, t + 5)


unsort.case(
    "a large batch, without a loop",
    lambda draw: (draw.normal(48, 48, 2), orders(draw, 48, 48)),
)


@unsort.case("gradients go back the same way", gradients=True)
def _(draw):
    b, t, v = draw.sizes(3)
    return draw.normal(b, t + 3, v), orders(draw, b, t + 3)


# ---- join the rounds -----------------------------------------------------------


@exercise(
    "ch13-join",
    "expected a sum of the outputs, each times e^lse over the sum of all rounds' "
    "e^lse, and zeros where no round saw anybody",
    symptoms=lambda result, outputs, lses: (
        "e to a large number is infinite or 0, and infinity by infinity, or 0 by 0, is "
        "NaN: subtract the largest log-sum-exp of each query's own rounds first"
        if isinstance(result, torch.Tensor)
        and not result.isfinite().all()
        and lses.max() > 90
        else None
    ),
)
def join(outputs, lses):
    """The rounds' outputs, joined, (b, t, v)."""
    nobody = (lses == -torch.inf).all(dim=0)  # (b, t)
    safe = torch.where(nobody, 0.0, lses)
    shares = safe.softmax(dim=0)  # (r, b, t)
    total = (shares[..., None] * outputs).sum(dim=0)
    return torch.where(nobody[..., None], 0.0, total)


join.instead("""
safe.softmax(dim=0)
    torch.full_like(safe, 1 / len(safe))
        # every round counts the same: weigh each by what it divided by
    (lses > -math.inf) / (lses > -math.inf).sum(dim=0)  # every round that saw somebody
        counts the same: weigh each by what it divided by
    torch.ones_like(safe)  # the outputs are added up: weigh each by its share
    safe.softmax(dim=-1)  # the shares sum to 1 over positions; they have to over rounds
    safe.softmax(dim=1)  # the shares sum to 1 over the batch; they have to over rounds
    safe / safe.sum(dim=0)  # lse is a logarithm: the shares are in proportion to e^lse
    ((safe - safe.max()).exp() / (safe - safe.max()).exp().sum(dim=0)).nan_to_num()
        # one maximum for all queries: each needs that of its own rounds
    safe.exp()  # e^lse isn't divided by the sum over all rounds
    (safe == safe.amax(dim=0)).to(safe)  # the heaviest round alone counts
0.0, total
    math.nan, total  # a query that saw nobody in any round gets zeros, not NaN
    outputs.mean(dim=0), total
        # a query that saw nobody in any round gets zeros, not an average
torch.where(nobody, 0.0, lses) -> lses
torch.where(nobody[..., None], 0.0, total) -> total.nan_to_num()
        # … the gradient of outputs holds NaN
safe.softmax(dim=0) -> safe.exp() / safe.exp().sum(0)  # … infinity by
torch.where(nobody, 0.0, lses) -> lses
safe.softmax(dim=0) -> safe.exp() / safe.exp().sum(0)
torch.where(nobody[..., None], 0.0, total) -> total  # … infinity by infinity
torch.where(nobody, 0.0, lses) -> lses
torch.where(nobody[..., None], 0.0, total) -> total  # … gets zeros, not NaN
safe.softmax(dim=0) -> (lses - lses.max()).exp() / (lses - lses.max()).exp().sum(0)
        # … each query's own rounds
""")


@join.case("the example: log 3 and log 5")
def _(draw):
    lses = torch.tensor([[[3.0]], [[5.0]]]).log()
    return torch.tensor([[[[44.0]]], [[[40.0]]]]), lses


@join.each("""
several rounds, every axis of another length -> 0, 1
large log-sum-exps -> 500, 1
log-sum-exps near 500 for one query, near −500 for the next -> 500, -1
""")
@join.each("gradients reach outputs and log-sum-exps -> 0, 1", gradients=True)
def _(draw, mean, sign):
    r, b, t, v = draw.sizes(4)
    means = mean * sign ** torch.arange(t)
    return draw.normal(r, b, t, v), means + 2 * draw.normal(r, b, t)


@join.case("some rounds saw nobody")
def _(draw):
    r, b, t, v = draw.sizes(4, low=3, high=7)
    seen = draw.mask(b, t, r).permute(2, 0, 1)
    return draw.normal(r, b, t, v), draw.normal(r, b, t).masked_fill(~seen, -math.inf)


@join.case("a query that saw nobody in any round")
@join.case("gradients are numbers where a query saw nobody", gradients=True)
def _(draw):
    r, b, t, v = draw.sizes(4, low=3, high=7)
    lses = draw.normal(r, b, t)
    lses[0, 1, 0] = lses[:, 0, 1] = -math.inf
    return draw.normal(r, b, t, v), lses


# ---- look to both sides --------------------------------------------------------


BOTH = "each chunk looks at the one before and at the one after; yours only looks"


@exercise(
    "ch13-encoder",
    "expected for each query the softmax average of the others in its chunk, the one "
    "before and the one after, in the order of the sequence",
    tolerance=1e-4,
    through=within_windows,
    broken={
        "dense": "a number for each pair of positions is what LSH attention avoids: a "
        "chunk needs the keys of three",
        "loops": "so many calls of PyTorch: is there a loop over pairs of positions?",
    },
)
def encoder_round(x, values, bucket, c):
    """A round of LSH attention that looks one chunk back and one ahead, (t, v)."""
    keys, t = x / x.norm(dim=-1, keepdim=True), len(x)
    order = bucket.argsort(stable=True)
    output = torch.zeros_like(values)
    for start in range(0, t, c):
        rows = order[start : start + c]
        window = order[max(0, start - c) : start + 2 * c]
        scores = x[rows] @ keys[window].mT
        itself = rows[:, None] == window
        scores = scores.masked_fill(itself & (t > 1), -torch.inf)
        output[rows] = scores.softmax(dim=-1) @ values[window]
    return output


encoder_round.instead("""
itself & (t > 1) -> itself
scores.softmax(dim=-1) -> torch.cat([scores, scores.new_zeros(len(rows), 3 * c -
        len(window))], dim=1).softmax(dim=-1)[:, : len(window)]
        # keys of zeros at the ends still get weight (e^0 is 1): hide them
order[max(0, start - c) : start + 2 * c]
    order[max(0, start - c) : start + c]  # {BOTH} back
    order[start : start + 2 * c]  # {BOTH} ahead
    order[start : start + c]  # a chunk sees its neighbours, too
    order.roll(c - start)[: min(3 * c, t)]
        # nothing wraps around: the first chunk has none before it, the last none after
    torch.cat([order[max(2 * c, t - c) :] if start == 0 else order[:0], order[max(0,
        start - c) : start + 2 * c]])
        # the first chunk wraps around to the last; it has none before it
    torch.cat([order[max(0, start - c) : start + 2 * c], order[: c if start + c == t >
        2 * c else 0]])
        # the last chunk wraps around to the first; it has none after it
    torch.cat([order[max(0, start - c) :][:c], rows, order[min(start + c, t - c) :][
        :c]])
        # where a neighbour is missing, your chunk stands in for it, and its keys count
        twice: the first and the last chunk look at two chunks only
    order  # every chunk sees every other: that is exact attention
x / x.norm(dim=-1, keepdim=True) -> x  # keys aren't of length 1
x[rows] @ -> keys[rows] @
        # queries keep their length; only keys are brought to length 1
keys[window].mT -> keys[window].mT / x.shape[-1] ** 0.5
        # the scores are divided by √k; here they aren't
rows[:, None] == window
    (rows[:, None] == window) & (t < 0)
        # a query looks at itself although others are there
    rows[:, None] <= window
        # keys that come later are hidden: an encoder has no causal mask
    (rows[:, None] == window) | (bucket[rows][:, None] != bucket[window])
        # only keys of the query's own bucket are seen; the window's others count
bucket.argsort(stable=True)
    torch.arange(t)  # the sequence isn't sorted by bucket
    bucket.argsort(stable=True, descending=True)  # sort by bucket, the lowest first,
        and within a bucket by position: is your sort stable, and not turned round?
-torch.inf -> 0.0  # what isn't seen has the score 0; it needs −∞
return output
    return output[order]  # the outputs are still sorted
    return output[order][order]  # the outputs are sorted twice, not brought back
""")


def drawn_round(draw, n, c, buckets=4):
    k, v = draw.sizes(2, low=3)
    t = n * c
    bucket = draw.integers(0, buckets - 1, t)
    return draw.normal(t, k), draw.normal(t, v), bucket, c


@encoder_round.each("""
the example: one chunk holds all -> (1, 1), (5, 7)
three chunks: the middle one sees all, the others don't wrap -> (3, 3), (3, 4)
many chunks -> (5, 7), (2, 4)
chunks of one -> (6, 8), (1, 1)
alone in the whole sequence -> (1, 1), (1, 1)
so many chunks that no table of all pairs fits -> (40, 44), (3, 3)
""")
@encoder_round.each("gradients reach x and values -> (5, 5), (3, 3)", gradients=True)
def _(draw, chunks, length):
    return drawn_round(draw, draw.integer(*chunks), draw.integer(*length))


@encoder_round.case("long vectors in opposite directions")
def _(draw):
    k, v = draw.sizes(2, low=3)
    side = torch.tensor([[1.0], [-1.0]])
    x = side * 40 * torch.nn.functional.normalize(draw.normal(1, k), dim=-1)
    return x, draw.normal(2, v), torch.tensor([0, 1]), 2


# ---- find the fault ------------------------------------------------------------

BEFORE = "torch.cat([first, rows[:-1]])"


@exercise(
    "ch13-fault",
    "expected each round causal by position in the sequence, brought back to its "
    "order, and joined by shares that sum to 1 over the rounds",
    faults("""
rows[..., None], window[:, None] -> place[rows][..., None], place[window][:, None]
        # the future is still seen: `j > i` compares places in the sorted line
output.flatten(0, 1)[place] -> output.flatten(0, 1)[order]
lse.flatten()[place] -> lse.flatten()[order]
        # outputs still belong to other positions: does `[order]` undo a sort?
softmax(dim=0) -> softmax(dim=-1)
        # the shares of the rounds don't sum to 1: along which axis is the softmax?
"""),
    tolerance=1e-4,
    also=(BEFORE, "rows.roll(1, dims=0)"),  # the published convention
)
def lsh_attention(x, values, buckets, c):
    """Causal LSH attention, its rounds joined, (t, v)."""
    keys = x / x.norm(dim=-1, keepdim=True)
    outputs, lses = [], []
    for bucket in buckets:
        order = bucket.argsort(stable=True)
        place, rows = order.argsort(), order.view(-1, c)
        first = rows[1:2] if len(rows) > 1 else rows
        window = torch.cat([torch.cat([first, rows[:-1]]), rows], dim=1)
        scores = x[rows] @ keys[window].mT
        i, j = rows[..., None], window[:, None]
        scores = scores.masked_fill(j > i, -torch.inf)
        scores = scores.masked_fill(j == i, -1e5)
        output = scores.softmax(dim=-1) @ values[window]
        lse = scores.logsumexp(dim=-1)
        outputs.append(output.flatten(0, 1)[place])
        lses.append(lse.flatten()[place])
    shares = torch.stack(lses).softmax(dim=0)
    return (shares[..., None] * torch.stack(outputs)).sum(dim=0)


lsh_attention.instead("""
lse.flatten()[place] -> lse.flatten()[order]
        # the outputs are brought back now, the log-sum-exps aren't
output.flatten(0, 1)[place] -> output.flatten(0, 1)[order]
        # the outputs aren't brought back to their positions
torch.stack(lses).softmax(dim=0) -> torch.full((len(lses), 1), 1 / len(lses))
        # the rounds count the same now; each should by what it divided by
-1e5 -> 0.0  # a query looks at itself although others are there
x / x.norm(dim=-1, keepdim=True) -> x  # keys have to stay at length 1
torch.cat([first, rows[:-1]]) -> rows.roll(-1, dims=0)
        # a chunk looks one back, not one ahead
torch.cat([first, rows[:-1]])
    torch.cat([rows[1:2], rows[:-1]])  # … your code raised RuntimeError
""")


def drawn_rounds(draw, r, n, c):
    k, v = draw.sizes(2, low=3)
    t = n * c
    return draw.normal(t, k), draw.normal(t, v), draw.integers(0, 3, r, t), c


lsh_attention.case(
    "one round", lambda draw: drawn_rounds(draw, 1, 7, draw.integer(2, 3))
)


@lsh_attention.case("one chunk that holds all")
def _(draw):
    return drawn_rounds(draw, 2, 1, draw.integer(4, 6))


@lsh_attention.case("all in one bucket: nothing moves")
def _(draw):
    x, values, buckets, c = drawn_rounds(draw, 2, 3, 4)
    return x, values, 0 * buckets, c


@lsh_attention.case("values of 1 give outputs of 1")
def _(draw):
    x, values, buckets, c = drawn_rounds(draw, 3, 5, 2)
    return x, torch.ones_like(values), buckets, c


@lsh_attention.case("several rounds")
@lsh_attention.case("gradients reach x and values", gradients=True)
def _(draw):
    return drawn_rounds(draw, 3, draw.integer(4, 6), draw.integer(2, 4))
