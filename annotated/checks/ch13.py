"""The exercises of chapter 13; ``__init__.py`` says how one is written."""

import math
from functools import partial

import torch

from annotated.checks import Exercise
from annotated.checks.material import with_few_calls

# ---- bucket ids ----------------------------------------------------------------


def hashed(
    x,
    turns,
    real,
    *,
    signs=lambda turned: torch.cat([turned, -turned], dim=-1),
    padding=lambda n: 2 * n,
):
    turned = torch.einsum("btk,rkn->brtn", x, turns)
    ids = signs(turned).argmax(dim=-1)
    if padding is None:
        return ids
    return torch.where(real[:, None], ids, padding(turns.shape[-1]))


buckets = Exercise(
    "ch13-buckets",
    right=hashed,
    hint="expected the number of the largest of [x·turn, −x·turn], and 2n for padding",
    mistakes={
        "a column and its opposite are two buckets: where are the opposites?": partial(
            hashed, signs=lambda turned: turned
        ),
        "a column and its opposite are two buckets: yours are one": partial(
            hashed, signs=lambda turned: turned.abs()
        ),
        "first all columns, then all opposites: bucket n is the opposite of bucket 0": (
            partial(
                hashed,
                signs=lambda turned: torch.stack([turned, -turned], -1).flatten(-2),
            )
        ),
        "first the columns, then their opposites: yours are the other way round": (
            partial(hashed, signs=lambda turned: torch.cat([-turned, turned], dim=-1))
        ),
        "padding is hashed like the rest": partial(hashed, padding=None),
        "padding gets 2n, a number that no other vector has": partial(
            hashed, padding=lambda n: n
        ),
        "padding gets 2n, so that a sort puts it last": partial(
            hashed, padding=lambda n: -1
        ),
        "padding gets 2n: bucket 0 has vectors of its own": partial(
            hashed, padding=lambda n: 0
        ),
        "True is real and False is padding: yours are exchanged": (
            lambda x, turns, real: hashed(x, turns, ~real)
        ),
        "the rounds come before the positions: (b, r, t)": (
            lambda x, turns, real: hashed(x, turns, real).mT.contiguous()
        ),
        "the batch comes first: (b, r, t)": (
            lambda x, turns, real: hashed(x, turns, real).transpose(0, 1).contiguous()
        ),
        "every round uses the first matrix": (
            lambda x, turns, real: hashed(x, turns[:1].expand_as(turns), real)
        ),
    },
)


@buckets.case("the example: S and B of the chapter, no turn")
def _(draw):
    x = torch.tensor([[[-7.0, -4.0], [-4.0, -7.0]]])
    return x, torch.eye(2)[None], torch.ones(1, 2, dtype=torch.bool)


@buckets.case("a batch, several rounds, no padding")
def _(draw):
    b, t, k, r = draw.sizes(4)
    real = torch.ones(b, 2 * t, dtype=torch.bool)
    return draw.normal(b, 2 * t, k), draw.normal(r, k, 3), real


@buckets.case("padding at the end of some sequences")
def _(draw):
    b, t, k, r = draw.sizes(4, low=3, high=8)
    lengths = torch.tensor([t + 4 - min(i, t) for i in range(b)])
    real = torch.arange(t + 4) < lengths[:, None]
    return draw.normal(b, t + 4, k), draw.normal(r, k, 4), real


@buckets.case("vectors of any length: short and long ones")
def _(draw):
    x = draw.normal(2, 9, 5) * 10 ** draw.uniform(-3, 3, 2, 9, 1)
    return x, draw.normal(3, 5, 2), torch.arange(9) < torch.tensor([[9], [6]])


# ---- undo the sort -------------------------------------------------------------


def gathered(y, order, *, place=lambda order: order.argsort(dim=-1)):
    return y.gather(1, place(order)[..., None].expand_as(y))


unsort = Exercise(
    "ch13-unsort",
    right=gathered,
    through=with_few_calls,
    symptoms=lambda result, *_: (
        "your function calls PyTorch again and again: is there a loop over "
        "sequences or positions?"
        if isinstance(result, str) and result == "loops"
        else None
    ),
    hint="expected y[b, p] at position order[b][p] of the result",
    mistakes={
        "that sorts once more: `order` says who stands at a place, and you need the "
        "place at which each one stands": partial(gathered, place=lambda order: order),
        "all sequences are brought back by the order of the first": partial(
            gathered, place=lambda order: order[:1].argsort(dim=-1).expand_as(order)
        ),
        "still sorted": lambda y, order: y.clone(),
        "the order is turned round, not undone": partial(
            gathered, place=lambda order: order.flip(-1)
        ),
        "argsort runs over the sequences of the batch, not over positions": (
            lambda y, order: gathered(
                y, order, place=lambda o: o.argsort(0).remainder(y.shape[1])
            )
        ),
    },
)


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


@unsort.case("a large batch, without a loop")
def _(draw):
    return draw.normal(48, 48, 2), orders(draw, 48, 48)


@unsort.case("gradients go back the same way", gradients=True)
def _(draw):
    b, t, v = draw.sizes(3)
    return draw.normal(b, t + 3, v), orders(draw, b, t + 3)


# ---- join the rounds -----------------------------------------------------------


def joined(outputs, lses, *, share=lambda lses: lses.softmax(dim=0), empty=0.0):
    nobody = (lses == -math.inf).all(dim=0)
    shares = share(torch.where(nobody, 0.0, lses))
    total = (shares[..., None] * outputs).sum(dim=0)
    return torch.where(nobody[..., None], empty, total)


join = Exercise(
    "ch13-join",
    right=joined,
    hint="expected a sum of the outputs, each times e^lse over the sum of all rounds' "
    "e^lse, and zeros where no round saw anybody",
    mistakes={
        "every round counts the same: weigh each by what it divided by": partial(
            joined,
            share=lambda lses: torch.full_like(lses, 1 / len(lses)),
        ),
        "every round that saw somebody counts the same: weigh each by what it divided "
        "by": partial(
            joined,
            share=lambda lses: (
                (lses > -math.inf).to(lses) / (lses > -math.inf).sum(dim=0)
            ),
        ),
        "the outputs are added up: weigh each by its share": partial(
            joined, share=torch.ones_like
        ),
        "the shares sum to 1 over positions; they have to over rounds": partial(
            joined, share=lambda lses: lses.softmax(dim=-1)
        ),
        "the shares sum to 1 over the batch; they have to over rounds": partial(
            joined, share=lambda lses: lses.softmax(dim=1)
        ),
        "lse is a logarithm: the shares are in proportion to e^lse": partial(
            joined, share=lambda lses: lses / lses.sum(dim=0)
        ),
        "e^lse isn't divided by the sum over all rounds": partial(
            joined, share=lambda lses: lses.exp()
        ),
        "the heaviest round alone counts": partial(
            joined, share=lambda lses: (lses == lses.amax(dim=0)).to(lses)
        ),
        "a query that saw nobody in any round gets zeros, not NaN": partial(
            joined, empty=math.nan
        ),
        "a query that saw nobody in any round gets zeros, not an average": (
            lambda outputs, lses: torch.where(
                (lses == -math.inf).all(dim=0)[..., None],
                outputs.mean(dim=0),
                joined(outputs, lses),
            )
        ),
    },
    symptoms=lambda result, outputs, lses: (
        "e to a large number is infinite, and infinity divided by infinity is NaN: "
        "subtract the largest log-sum-exp first"
        if isinstance(result, torch.Tensor)
        and not result.isfinite().all()
        and lses.max() > 90
        else None
    ),
)


@join.case("the example: log 3 and log 5")
def _(draw):
    lses = torch.tensor([[[3.0]], [[5.0]]]).log()
    return torch.tensor([[[[44.0]]], [[[40.0]]]]), lses


@join.case("several rounds, every axis of another length")
def _(draw):
    r, b, t, v = draw.sizes(4)
    return draw.normal(r, b, t, v), 2 * draw.normal(r, b, t)


@join.case("large log-sum-exps")
def _(draw):
    r, b, t, v = draw.sizes(4)
    return draw.normal(r, b, t, v), 500 + 2 * draw.normal(r, b, t)


@join.case("some rounds saw nobody")
def _(draw):
    r, b, t, v = draw.sizes(4, low=3, high=7)
    seen = draw.mask(b, t, r).permute(2, 0, 1)
    return draw.normal(r, b, t, v), draw.normal(r, b, t).masked_fill(~seen, -math.inf)


@join.case("a query that saw nobody in any round")
def _(draw):
    r, b, t, v = draw.sizes(4, low=3, high=7)
    lses = draw.normal(r, b, t)
    lses[:, 0, 1] = -math.inf
    return draw.normal(r, b, t, v), lses


@join.case("gradients reach outputs and log-sum-exps", gradients=True)
def _(draw):
    r, b, t, v = draw.sizes(4)
    return draw.normal(r, b, t, v), draw.normal(r, b, t)


@join.case("gradients are numbers where a query saw nobody", gradients=True)
def _(draw):
    r, b, t, v = draw.sizes(4, low=3, high=7)
    lses = draw.normal(r, b, t)
    lses[0, 1, 0] = lses[:, 0, 1] = -math.inf
    return draw.normal(r, b, t, v), lses


# ---- look to both sides --------------------------------------------------------


def dense(
    x,
    values,
    bucket,
    c,
    *,
    near=lambda i, j, n: (i - j).abs() <= 1,
    keys=lambda x: x / x.norm(dim=-1, keepdim=True),
    scale=lambda x: 1.0,
    hidden=lambda i, j: i == j,
    order=lambda bucket: bucket.argsort(stable=True),
    fill=-math.inf,
):
    """All scores, of which a mask hides what is not in the window."""
    t = len(x)
    place = order(bucket).argsort()
    chunk, at = place // c, torch.arange(t)
    seen = near(chunk[:, None], chunk, t // c) & ~hidden(at[:, None], at)
    seen = seen | (torch.eye(t).bool() & ~seen.any(dim=-1, keepdim=True))
    scores = torch.where(seen, scale(x) * x @ keys(x).mT, fill)
    return scores.softmax(dim=-1) @ values


def sorted_still(x, values, bucket, c):
    return dense(x, values, bucket, c)[bucket.argsort(stable=True)]


def sorted_twice(x, values, bucket, c):
    order = bucket.argsort(stable=True)
    return dense(x, values, bucket, c)[order][order]


_SIDES = {
    "each chunk looks at the one before and at the one after; yours only looks back": {
        "near": lambda i, j, n: (i - j == 0) | (i - j == 1)
    },
    "each chunk looks at the one before and at the one after; yours only looks ahead": {
        "near": lambda i, j, n: (j - i == 0) | (j - i == 1)
    },
    "a chunk sees its neighbours, too": {"near": lambda i, j, n: i == j},
    "nothing wraps around: the first chunk has none before it, the last none after": {
        "near": lambda i, j, n: torch.isin((i - j) % n, torch.tensor([0, 1, n - 1]))
    },
    "the first chunk wraps around to the last; it has none before it": {
        "near": lambda i, j, n: ((i - j).abs() <= 1) | ((i == 0) & (j == n - 1))
    },
    "every chunk sees every other: that is exact attention": {
        "near": lambda i, j, n: (i - j).abs() >= 0
    },
    "keys aren't of length 1": {"keys": lambda x: x},
    "queries keep their length; only keys are brought to length 1": {
        "scale": lambda x: 1 / x.norm(dim=-1, keepdim=True)
    },
    "the scores are divided by √k; here they aren't": {
        "scale": lambda x: x.shape[-1] ** -0.5
    },
    "a query looks at itself although others are there": {
        "hidden": lambda i, j: torch.zeros_like(i == j)
    },
    "keys that come later are hidden: an encoder has no causal mask": {
        "hidden": lambda i, j: i <= j
    },
    "the sequence isn't sorted by bucket": {
        "order": lambda bucket: torch.arange(len(bucket))
    },
    "sort by bucket, the lowest first, and within a bucket by position: is your sort "
    "stable, and not turned round?": {
        "order": lambda bucket: bucket.argsort(stable=True, descending=True)
    },
    "what isn't seen has the score 0; it needs −∞": {"fill": 0.0},
}


def own_bucket(x, values, bucket, c):
    same = bucket[:, None] == bucket
    return dense(x, values, bucket, c, hidden=lambda i, j: (i == j) | ~same)


def zero_keys(x, values, bucket, c):
    """Missing neighbours are filled up with keys and values of zeros, not hidden."""
    t, k = x.shape
    order = bucket.argsort(stable=True)
    ends = torch.cat([x.new_zeros(c, k), x[order], x.new_zeros(c, k)])
    padded = torch.nn.functional.pad(values[order], (0, 0, c, c))
    window = torch.arange(0, t, c)[:, None] + torch.arange(3 * c)
    here = torch.arange(c, t + c).view(-1, c)
    keys = torch.nn.functional.normalize(ends, dim=-1)
    scores = ends[here] @ keys[window].mT
    scores = scores.masked_fill(here[..., None] == window[:, None], -1e5)
    output = (scores.softmax(dim=-1) @ padded[window]).flatten(0, 1)
    return output[order.argsort()]


encoder = Exercise(
    "ch13-encoder",
    right=dense,
    hint="expected for each query the softmax average of the others in its chunk, the "
    "one before and the one after, in the order of the sequence",
    tolerance=1e-4,
    mistakes={hint: partial(dense, **wrong) for hint, wrong in _SIDES.items()}
    | {
        "only keys of the query's own bucket are seen; the window's others count": (
            own_bucket
        ),
        "keys of zeros at the ends still get weight (e^0 is 1): hide them": zero_keys,
        "the outputs are still sorted": sorted_still,
        "the outputs are sorted twice, not brought back": sorted_twice,
    },
)


def drawn_round(draw, n, c, buckets=4):
    k, v = draw.sizes(2, low=3)
    t = n * c
    bucket = draw.integers(0, buckets - 1, t)
    return draw.normal(t, k), draw.normal(t, v), bucket, c


@encoder.case("the example: one chunk holds all")
def _(draw):
    return drawn_round(draw, 1, draw.integer(5, 7))


@encoder.case("three chunks: the middle one sees all, the others don't wrap around")
def _(draw):
    return drawn_round(draw, 3, draw.integer(3, 4))


@encoder.case("many chunks")
def _(draw):
    return drawn_round(draw, draw.integer(5, 7), draw.integer(2, 4))


@encoder.case("chunks of one")
def _(draw):
    return drawn_round(draw, draw.integer(6, 8), 1)


@encoder.case("long vectors in opposite directions")
def _(draw):
    k, v = draw.sizes(2, low=3)
    side = torch.tensor([[1.0], [-1.0]])
    x = side * 40 * torch.nn.functional.normalize(draw.normal(1, k), dim=-1)
    return x, draw.normal(2, v), torch.tensor([0, 1]), 2


@encoder.case("alone in the whole sequence")
def _(draw):
    return drawn_round(draw, 1, 1)


@encoder.case("gradients reach x and values", gradients=True)
def _(draw):
    return drawn_round(draw, 5, 3)


# ---- find the fault ------------------------------------------------------------


def rounds_of(
    x,
    values,
    buckets,
    c,
    *,
    future=lambda order: order,
    back=lambda order: order.argsort(),
    lse_back=lambda order: order.argsort(),
    share=lambda lses: lses.softmax(dim=0),
    own=-1e5,
    keys=lambda x: x / x.norm(dim=-1, keepdim=True),
    before=lambda rows: torch.cat([rows[1:2], rows[:-1]]),
):
    """As the chapter writes it; what is passed is what a fault changes."""
    outputs, lses = [], []
    for bucket in buckets:
        order = bucket.argsort(stable=True)
        rows = order.view(-1, c)
        window = torch.cat([before(rows), rows], dim=1)
        scores = x[rows] @ keys(x)[window].mT
        numbered = future(order).view(-1, c)
        near = torch.cat([before(numbered), numbered], dim=1)
        scores = scores.masked_fill(near[:, None] > numbered[..., None], -math.inf)
        scores = scores.masked_fill(window[:, None] == rows[..., None], own)
        output = scores.softmax(dim=-1) @ values[window]
        outputs.append(output.flatten(0, 1)[back(order)])
        lses.append(scores.logsumexp(dim=-1).flatten()[lse_back(order)])
    shares = share(torch.stack(lses))
    return (shares[..., None] * torch.stack(outputs)).sum(dim=0)


_PLACES = {"future": lambda order: torch.arange(len(order))}
_NOT_BACK = {"back": lambda order: order, "lse_back": lambda order: order}
_POSITIONS = {"share": lambda lses: lses.softmax(dim=-1)}
_EVEN = {"share": lambda lses: torch.full_like(lses, 1 / len(lses))}

fault = Exercise(
    "ch13-fault",
    right=rounds_of,
    hint="expected each round causal by position in the sequence, brought back to its "
    "order, and joined by shares that sum to 1 over the rounds",
    tolerance=1e-4,
    mistakes={
        "the future is still seen: `j > i` compares places in the sorted line": partial(
            rounds_of, **_PLACES
        ),
        "outputs still belong to other positions: does `[order]` undo a sort?": partial(
            rounds_of, **_NOT_BACK
        ),
        "the outputs are brought back now, the log-sum-exps aren't": partial(
            rounds_of, lse_back=lambda order: order
        ),
        "the log-sum-exps are brought back now, the outputs aren't": partial(
            rounds_of, back=lambda order: order
        ),
        "the shares of the rounds don't sum to 1: along which axis is the softmax?": (
            partial(rounds_of, **_POSITIONS)
        ),
        "outputs are causal now; two faults are left": partial(
            rounds_of, **_NOT_BACK, **_POSITIONS
        ),
        "outputs are back in their order; two faults are left": partial(
            rounds_of, **_PLACES, **_POSITIONS
        ),
        "the shares are right; two faults are left": partial(
            rounds_of, **_PLACES, **_NOT_BACK
        ),
        "unchanged: all three faults are still there": partial(
            rounds_of, **_PLACES, **_NOT_BACK, **_POSITIONS
        ),
        "the rounds count the same now; each should by what it divided by": partial(
            rounds_of, **_EVEN
        ),
        "a query looks at itself although others are there": partial(
            rounds_of, own=0.0
        ),
        "keys have to stay at length 1": partial(rounds_of, keys=lambda x: x),
        "the first chunk looks at the second, not at the last": partial(
            rounds_of, before=lambda rows: rows.roll(1, dims=0)
        ),
        "a chunk looks one back, not one ahead": partial(
            rounds_of, before=lambda rows: rows.roll(-1, dims=0)
        ),
    },
)


def drawn_rounds(draw, r, n, c):
    k, v = draw.sizes(2, low=3)
    t = n * c
    return draw.normal(t, k), draw.normal(t, v), draw.integers(0, 3, r, t), c


@fault.case("one round")
def _(draw):
    return drawn_rounds(draw, 1, 7, draw.integer(2, 3))


@fault.case("all in one bucket: nothing moves")
def _(draw):
    x, values, buckets, c = drawn_rounds(draw, 2, 3, 4)
    return x, values, 0 * buckets, c


@fault.case("values of 1 give outputs of 1")
def _(draw):
    x, values, buckets, c = drawn_rounds(draw, 3, 5, 2)
    return x, torch.ones_like(values), buckets, c


@fault.case("several rounds")
def _(draw):
    return drawn_rounds(draw, 3, draw.integer(4, 6), draw.integer(2, 4))


@fault.case("gradients reach x and values", gradients=True)
def _(draw):
    return drawn_rounds(draw, 2, 4, 3)
