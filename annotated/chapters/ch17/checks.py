"""The exercises of chapter 17; ``__init__.py`` says how one is written."""

import torch

from annotated.checks import Function, exercise, faults
from annotated.checks.material import (
    forgetting,
    in_one_pass,
    in_pieces,
    without_table,
    without_table_or_loop,
)

# ---- a window and the first tokens -------------------------------------------


@exercise(
    "ch17-sinks",
    "expected True where a key isn't after its query, and is one of the last `window` "
    "or of the first `sinks`",
)
def sink_mask(t, s, window, sinks):
    """Who sees whom: a causal window and the first tokens, (t, s)."""
    i = torch.arange(s - t, s)[:, None]  # the queries are the last t
    j = torch.arange(s)
    wanted = (i - j < window) | (j < sinks)
    return wanted & (j <= i)


sink_mask.instead("""
i - j < window
    i - j <= window  # a window of w has w keys, and the query's own is one of them
    i - j < window - sinks  # the sinks come on top of the window's keys
    s - 1 - j < window  # each query has a window of its own
torch.arange(s - t, s)[:, None]
    torch.arange(t)[:, None]  # the queries are the last of the keys; yours are the
        first
    torch.arange(t)[:, None] + s - t + 1  # each query stands one place too late
wanted & (j <= i)
    wanted  # the future is seen: later keys have i − j < w as well
    wanted & (j < i)  # a query sees its own key
    ((i - j).abs() < window) | (j < sinks) & (j <= i)
        # the window goes both ways
    (i - j < window) & (j <= i) | (j < sinks)
        # a first token is seen by queries that come before it
    ~(wanted & (j <= i))  # True is what may be seen; yours is the other way round
    (wanted & (j <= i)).float()  # … the dtype is torch.float32
| (j < sinks)
    & (j < sinks)  # a key needs one of the two: the window, or to be a first token
    | (j <= sinks)  # there's one sink too many
    | (i < sinks)  # the first tokens are seen by all; yours see all
    | (j >= s - sinks)  # the sinks are the first tokens, not the last
    # the first tokens are forgotten
""")


@sink_mask.each("""
the example -> [2, 2], [6, 6], [2, 2], [1, 1]
as many queries as keys -> [0, 0], [9, 14], [3, 5], [1, 2]
one query, after a long text -> [1, 1], [15, 30], [4, 6], [2, 3]
a few queries at once -> [3, 5], [12, 20], [2, 6], [1, 3]
no sinks -> [2, 5], [8, 12], [2, 4], [0, 0]
a window of one key -> [4, 6], [9, 12], [1, 1], [1, 3]
queries among the sinks -> [0, 0], [7, 9], [1, 2], [4, 6]
a window that all fit into -> [3, 5], [6, 8], [9, 12], [1, 2]
""")
def _(draw, t, *others):
    s, window, sinks = (draw.integer(*between) for between in others)
    return draw.integer(*t) or s, s, window, sinks


# ---- count it ----------------------------------------------------------------


@exercise(
    "ch17-count",
    "expected the sum over the queries of the keys that each one sees, a key that's in "
    "both steps once",
    tolerance=1e-12,
    through=without_table,
    broken={"table": "a tensor holds a number for each pair: count without this table"},
)
def pairs(n, stride):
    """How many pairs strided and fixed attention have, two integers."""
    strided = sum(min(i + 1, stride) + i // stride for i in range(n))
    fixed = sum(i % stride + 1 + i // stride for i in range(n))
    return strided, fixed


pairs.instead("""
min(i + 1, stride) + i // stride
    min(i + 1, stride) + i // stride + 1
        # strided: a query's own key is in both steps, and counts once
    stride + i // stride  # strided: the first queries have fewer keys to see
    min(i + 1, stride + 1) + i // stride
        # strided: the key at a distance of `stride` is in the second step alone
    min(i + 1, stride)  # strided: that's the first step alone
    i // stride + 1  # strided: that's the second step alone
    min(i + 1, stride) + -(-i // stride)
        # strided: one key is too many unless the last jump is a whole one
i % stride + 1 + i // stride
    i % stride + 1 + (i + 1) // stride
        # fixed: the last of a stretch sees itself in both steps; that's one pair
    stride + i // stride  # fixed: a query doesn't see the rest of its stretch
    i % stride + i // stride  # fixed: a query sees its own key
    i % stride + 1 + i // stride * stride
        # fixed: of an earlier stretch, only the last is seen
    i % stride + 1  # fixed: that's the first step alone
    (i + 1) // stride  # fixed: that's the second step alone
return strided, fixed
    return fixed, strided  # strided comes first, then fixed
    return (n * (n + 1) // 2,) * 2  # that's every pair of full attention
    return (n * (stride + n / stride),) * 2
        # that tells how the number grows; a count is asked for
    far = n * (n // stride - 1) // 2; return (n * stride - stride * (stride - 1) // 2 +
        far, n * (stride + 1) // 2 + far)
        # the formulas of section 17.2 hold if `stride` divides n; here it needn't
min(i + 1, stride) + i // stride for i in range(n)
        -> min(i + 1, stride) + i // stride for i in range(n // stride * stride)
i % stride + 1 + i // stride for i in range(n)
        -> i % stride + 1 + i // stride for i in range(n // stride * stride)
        # what's left after the whole stretches counts as well
return strided, fixed -> return strided  # … expected 2 values
""")


@pairs.each("""
the example -> [5, 5], [2, 2]
`stride` divides n -> [30, 30], [5, 6]
`stride` doesn't divide n -> [31, 34], [5, 7]
one query more than whole stretches -> [37, 37], [4, 4]
a stride of 1 -> [20, 40], [1, 1]
one stretch holds all -> [10, 15], [16, 30]
so many that a table of pairs is forbidden -> [3000, 4000], [50, 60]
""")
def _(draw, n, stride):
    return draw.integer(*n), draw.integer(*stride)


# ---- how many layers? --------------------------------------------------------


@exercise(
    "ch17-layers",
    "expected the number of layers after which each position has heard all, itself "
    "through the stream, others through layers one after the other",
)
def layers_needed(masks):
    """After how many layers each position has heard all, (t,)."""
    t = len(masks[0])
    own = torch.eye(t, dtype=torch.bool)
    heard, layers = own, torch.full((t,), -1)
    for layer in range(len(masks) * t):
        layers[heard.all(dim=1) & (layers < 0)] = layer
        step = (masks[layer % len(masks)] | own).float()
        heard = step @ heard.float() > 0  # is there a way: no counts
    return layers


layers_needed.instead(r"""
masks[layer % len(masks)] | own
    masks[layer % len(masks)]  # what a position has heard stays in its stream, also
        where a layer doesn't show it to itself
    masks[layer % len(masks)].mT | own  # a row is a query, which hears, and a column a
        key, which is heard: yours are exchanged
    masks[0] | own  # all layers have the first mask
    torch.stack(masks).any(dim=0) | own  # a layer has one mask, not all of them at once
    masks[min(layer, len(masks) - 1)] | own  # after the last mask, the first comes
        again
    masks[-1 - layer % len(masks)] | own  # the masks come in the other order
step @ heard.float() > 0
    heard.float() @ step > 0  # a layer passes on what was heard in those before it: in
        your product, the later layer comes first
range(len(masks) * t)
    range(len(masks) + 1)  # you stop after the last mask; then the first comes again
    range(t)  # you stop too early: each new voice may take a whole round of masks
    range(max(t, 2 * len(masks)) + 1)  # you stop too early: with three masks, each new
        voice may take three layers
    range(65)  # you stop after 64 layers: a long line needs one for each neighbour
= layer
    = layer + 1  # before any layer, each has heard itself: that's 0 layers
    = max(layer, 1)  # … that's 0 layers
heard.all(dim=1) -> heard.all().expand(t)
        # that's when everyone has heard all; asked is when each of them has
heard = step @ heard.float() > 0 -> before, heard = heard, step @ heard.float() > 0\n
        \n        if before.equal(heard):\n            break
        # a layer that adds nothing isn't the end: the next mask may add something
heard.all(dim=1) -> heard.all(dim=0)  # … a column a key, which is heard
return layers -> return layers.max()  # … the shape is (), expected
heard, layers = own, -> heard, layers = own.long(),
heard.all(dim=1) -> (heard > 0).all(dim=1)
(masks[layer % len(masks)] | own).float() -> (masks[layer % len(masks)] | own).long()
step @ heard.float() > 0 -> step @ heard
        # your counts of ways overflow: whether there's a way is enough
""")


@layers_needed.each("""
the example -> 5, 5, "abs(i - j) < 2"
a long line, in any order -> 70, 75, "abs(i - j) < 2"
one position alone -> 1, 1, "i == j"
a mask that shows nobody itself -> 5, 9, "(i - j) % t == 1"
rows and columns of an image -> 16, 20, "i // 4 == j // 4", "i % 4 == j % 4"
a new voice in every third layer -> 4, 5, "i == j", "i == j", "abs(i - j) < 2"
three masks, one after the other -> 9, 14, "(3 * i + j) % 7 == 1", "(i * j + i) % 5 ==
        3", "(2 * i + 7 * j) % 11 < 2"
a layer that adds nothing, and others that do -> 5, 5, "abs(i - j) < 2", "i == j",
        "abs(i - j) < 2"
a causal window: only one can hear all -> 9, 14, "(j <= i) & (i - j < 4)"
two groups that never hear each other -> 6, 9, "i % 2 == j % 2", "i == j"
two groups, and a listener that hears both -> 6, 9, "(i % 2 == j % 2) | (i == t - 1)"
""")
def _(draw, low, high, *rules):
    t = draw.integer(low, high)
    i = torch.tensor(draw.shuffled(range(t)) if t > 5 else range(t))
    return ([Function(rule, "i, j, t")(i[:, None], i, t) for rule in rules],)


# ---- the softmax in blocks ---------------------------------------------------


def not_a_number(result, *arguments):
    results = result if isinstance(result, list | tuple) else [result]
    if not all(one.isfinite().all() for one in results):
        return (
            "not a number: −∞ − (−∞), 0 / 0, or e to a large number? Look at a query "
            "that has seen nobody yet, and at large scores, hidden ones, too"
        )


@exercise(
    "ch17-online",
    "expected the softmax average over all keys that a query may see, of all blocks "
    "together, and zeros where there's none",
    symptoms=not_a_number,
    tolerance=1e-4,
    through=in_one_pass,
    broken={
        "table": "a tensor is much larger than a block's scores: does it hold all "
        "pairs, or something of all blocks?",
        "twice": "each block is computed twice: the maximum of all blocks isn't known "
        "before the last one, so what was summed up has to change with it",
    },
)
def online_attention(q, k, v, allowed, block):
    """Attention over blocks of keys, (t, v)."""
    i = torch.arange(len(q))[:, None]
    top = q.new_full((len(q), 1), -torch.inf)  # the largest score so far
    total, output = torch.zeros_like(top), q.new_zeros(len(q), v.shape[1])
    for start in range(0, len(k), block):
        j = torch.arange(start, min(start + block, len(k)))
        scores = q @ k[j].mT / q.shape[1] ** 0.5
        scores = scores.masked_fill(~allowed(i, j), -torch.inf)
        new = torch.maximum(top, scores.amax(dim=1, keepdim=True))
        safe = new.masked_fill(new == -torch.inf, 0.0)
        weights, factor = (scores - safe).exp(), (top - safe).exp()
        total = total * factor + weights.sum(dim=1, keepdim=True)
        output = output * factor + weights @ v[j]
        top = new
    return output / total.masked_fill(total == 0, 1.0)


online_attention.instead(r"""
total * factor -> total
output * factor -> output
        # sum and output of earlier blocks were taken with an older maximum: they have
        to change with it
output * factor -> output
        # the sum changes with the maximum, and so must the output
total * factor -> total
        # the output changes with the maximum, and so must the sum
(top - safe).exp()
    (safe - top).clamp(max=60).exp()  # with a larger maximum, what was summed up
        becomes smaller: yours grows
    top.exp()  # the factor is e to the difference of the two maxima
/ q.shape[1] ** 0.5
    / q.shape[1]  # scores are divided by √k, not by k
    # the scores aren't divided by √k
safe = new.masked_fill(new == -torch.inf, 0.0) -> safe = new
output / total.masked_fill(total == 0, 1.0) -> (output / total).nan_to_num()
        # a query that has seen nobody yet becomes NaN, and stays so: zeros in place of
        NaN come too late
range(0, len(k), block)
    range(0, len(k) - block + 1, block)  # the last block may be shorter; it counts, too
allowed(i, j)
    allowed(i, j - start)  # a key's position is counted from the first block on
    allowed(j, i)  # `allowed` takes the queries' positions first
    (i >= 0)  # `allowed` isn't asked: hidden keys are seen
-torch.inf)\n        new -> -1e9)\n        new
        # a query with nobody to see gets zeros, not an average of what it may not see
-torch.inf)\n        new -> 0.0)\n        new
        # what is hidden has a score of 0, and still gets weight
weights, factor = (scores - safe).exp(), (top - safe).exp()
    weights, factor = (scores - safe).softmax(dim=1).nan_to_num(), 1.0
        # each block's softmax sums to 1, so that all blocks count the same
weights @ v[j] -> weights @ v[j] / total.clamp(min=1e-9)
return output / total.masked_fill(total == 0, 1.0) -> return output
        # you divide in each block by the sum so far; what came before needs that, too
return output / total.masked_fill(total == 0, 1.0) -> return output
        # the output isn't divided by the sum yet
new = torch.maximum(top, scores.amax(dim=1, keepdim=True))
    new = scores.amax(dim=1, keepdim=True)  # … or e to a large number
    new = torch.zeros_like(top)  # … Look at a query
new.masked_fill(new == -torch.inf, 0.0) -> new  # … −∞ − (−∞)
total.masked_fill(total == 0, 1.0) -> total  # … 0 / 0
""")

ALL = "(i >= 0) & (j >= 0)"


@online_attention.each(f"""
one block holds all keys -> 5, 7, 9, 1, "{ALL}"
blocks of three, and a rest -> 5, 11, 3, 1, "{ALL}"
blocks of a single key -> 4, 6, 1, 1, "{ALL}"
a window: at first, late queries see nobody -> 9, 9, 2, 1, "(j <= i) & (i - j < 2)"
the first block shows nothing to anybody -> 5, 8, 3, 1, "(i >= 0) & (j > 2)"
some queries see nobody at all -> 6, 6, 4, 1, "j + 2 < i"
large scores -> 6, 9, 2, 1000, "{ALL}"
so many that a table of pairs is forbidden -> 150, 600, 10, 1, "{ALL}"
""")
def _(draw, t, s, block, scale, allowed):
    k, v = draw.sizes(2)
    given = draw.normal(t, k), scale * draw.normal(s, k), draw.normal(s, v)
    return *given, Function(allowed, "i, j"), block


@online_attention.case("the example, one key at a time")
def _(draw):
    v = torch.tensor(draw.shuffled([[10.0], [20.0], [30.0]]))
    k = torch.tensor([[3.0], [1.0], [1.0]]).log()
    return torch.ones(1, 1), k, v, Function(ALL, "i, j"), 1


# ---- join the parts ----------------------------------------------------------


def not_joined(result, outputs, lses):
    if isinstance(result, torch.Tensor):
        return "two tensors are asked for: the output, and the joined log-sum-exp"
    output, lse = result
    if not output.isfinite().all() or not (lse < torch.inf).all():
        return "not a number: −∞ − (−∞), 0 / 0, or e to a large log-sum-exp?"
    if lse[(lses == -torch.inf).all(dim=0)].isfinite().any():
        return "nobody saw a key: a finite log-sum-exp, 0 say, counts when joined again"


@exercise(
    "ch17-join",
    "expected the average of the outputs, each weighted by e^lse, and the logarithm of "
    "the sum of all e^lse; zeros and −∞ where nobody saw a key",
    symptoms=not_joined,
    tolerance=1e-4,
)
def join(outputs, lses):
    """Output and log-sum-exp over all workers' keys, (t, v) and (t,)."""
    lse = lses.logsumexp(dim=0)
    # a query that has seen nobody: −∞ − (−∞) is NaN
    shares = (lses - lse).exp().nan_to_num()
    return (shares[..., None] * outputs).sum(dim=0), lse


join.instead("""
(lses - lse).exp().nan_to_num()
    torch.full_like(lses, 1 / len(lses))  # every part counts the same: weigh by e^lse
    (lses > -torch.inf) / (lses > -torch.inf).sum(dim=0).clamp(min=1)
        # every part that saw a key counts the same: weigh by e^lse
    (lses == lses.amax(dim=0)).to(lses)  # the part that counts most isn't the only one
    lses.nan_to_num(neginf=0.0)  # lse is a logarithm: a part counts by e^lse
    (lses - lses.amax(dim=0)).exp().nan_to_num()
        # the output isn't divided by the sum of what the parts count
sum(dim=0), lse
    sum(dim=0), lse - lses.amax(dim=0).nan_to_num(neginf=0.0)
        # the joined log-sum-exp lacks what was subtracted before the exponential
    sum(dim=0), lse.exp()  # the joined log-sum-exp is a logarithm; yours is the sum
    sum(dim=0), lses.amax(dim=0)  # the largest log-sum-exp isn't that of all keys
    sum(dim=0), lses.sum(dim=0)  # the sums of weights add up, their logarithms don't
    sum(dim=0), lses.mean(dim=0)  # a mean of log-sum-exps isn't that of all keys
    sum(dim=0), torch.where(lse > -torch.inf, shares * lses.clamp(min=-1e30), lses).sum(
        dim=0)  # the log-sum-exp isn't averaged: it grows with each part
lses.logsumexp(dim=0) -> (lses - lses.max()).exp().sum(dim=0).log() + lses.max()
nan_to_num() -> nan_to_num(posinf=0.0)  # with one maximum for all queries, those whose
        log-sum-exps are far below it get lost
lses.logsumexp(dim=0)
    (lses - (m := lses.nan_to_num(neginf=0.0).mean(0))).exp().sum(dim=0).log() + m
        # … not a number
    lses.exp().sum(dim=0).log()  # … e to a large log-sum-exp
.nan_to_num() -> # … −∞ − (−∞)
sum(dim=0), lse
    sum(dim=0), lse.clamp(min=-46)  # … a finite log-sum-exp
    sum(dim=0), lse.nan_to_num(neginf=0.0)  # … 0 say
    sum(dim=0)  # … two tensors are asked for
""")


@join.each("""
the example, a worker that saw nothing included -> 0, 1, "example"
every axis of another length -> 0, 1, "all"
log-sum-exps in the hundreds, and far apart -> 400, 1, "apart"
in the hundreds for one query, far below zero for the next -> 400, -1, "all"
some workers saw no key for some queries -> 0, 1, "some"
nobody saw a key for one of the queries -> 400, 1, "nobody"
""")
def _(draw, mean, sign, seen):
    if seen == "example":
        parts = draw.shuffled([[12.0, 2.0], [30.0, 4.0], [0.0, 0.0]])
        return torch.tensor(parts)[:, None, :1], torch.tensor(parts)[:, 1:].log()
    n, t, v = draw.sizes(3, low=3, high=7)
    spread = 300 if seen == "apart" else 2
    lses = mean * sign ** torch.arange(t) + spread * draw.normal(n, t)
    if seen in ("some", "nobody"):
        lses = lses.masked_fill(~draw.mask(t, n).mT, -torch.inf)
    if seen == "nobody":
        lses[:, draw.integer(0, t - 1)] = -torch.inf
    return draw.normal(n, t, v) * (lses > -torch.inf)[..., None], lses


# ---- backward, block by block ------------------------------------------------


@exercise(
    "ch17-backward",
    "expected the gradients of q, k and v, from weights e^(score − lse), added up over "
    "all blocks",
    symptoms=not_a_number,
    tolerance=3e-4,
    through=forgetting,
    broken={
        "table": "your tensors hold far more at once than the arguments and a block's "
        "scores: do you compute all pairs together, or keep something of each block?",
        "autograd": "a tensor of yours requires a gradient: autograd has to stay off "
        "here, since the gradients are for you to compute",
    },
)
def attention_backward(q, k, v, output, lse, upstream, allowed, block):
    """The gradients of q, k and v, (t, k), (s, k) and (s, v)."""
    i, factor = torch.arange(len(q))[:, None], q.shape[1] ** -0.5
    dq, dk, dv = (torch.zeros_like(x) for x in (q, k, v))
    shift = lse.masked_fill(lse == -torch.inf, 0.0)[:, None]
    mean = (upstream * output).sum(dim=1, keepdim=True)  # of dp, in a row
    for start in range(0, len(k), block):
        j = torch.arange(start, min(start + block, len(k)))
        scores = factor * (q @ k[j].mT)
        scores = scores.masked_fill(~allowed(i, j), -torch.inf)
        weights = (scores - shift).exp()  # once more
        dp = upstream @ v[j].mT
        dz = factor * weights * (dp - mean)
        dq += dz @ k[j]
        dk[j], dv[j] = dz.mT @ q, weights.mT @ upstream
    return dq, dk, dv


attention_backward.instead(r"""
(scores - shift).exp()
    scores.softmax(dim=1).nan_to_num()  # each block's softmax sums to 1, but it's the
        whole row whose weights do
    scores.exp()  # e^score isn't a weight yet: it isn't divided by the row's sum
    (scores - lse[:, None]).exp()  # … −∞ − (−∞)
dp - mean
    dp  # from each dp, its row's average is subtracted
    dp - (weights * dp).sum(dim=1, keepdim=True)  # a row has keys in other blocks, too
.sum(dim=1, keepdim=True) -> .mean(dim=1, keepdim=True)
        # a product of two vectors is a sum over the width; you average
factor * weights * (dp - mean)
    weights * (dp - mean)  # what flows back through the scores is divided by √k, too
    factor * (weights * dp - mean)  # a row's sum is multiplied by the weight, too
    factor * (dp - mean)  # in dz, the weight is missing
    factor * weights * (1 - weights) * dp  # a score changes a row's other weights, too
scores = factor * (q @ k[j].mT) -> scores = q @ k[j].mT
        # the scores aren't divided by √k, so these aren't the weights
scores = factor * (q @ k[j].mT) -> scores = q @ k[j].mT
dz = factor * weights -> dz = weights  # you never divide by √k
allowed(i, j)
    allowed(i, j - start)  # a key's position is counted from the first block on
    allowed(j, i)  # `allowed` takes the queries' positions first
    (i >= 0)  # `allowed` isn't asked: hidden keys get gradients
-torch.inf)\n        weights -> 0.0)\n        weights
        # what is hidden has a score of 0, and still gets weight
-torch.inf)\n        weights -> -1e9)\n        weights
lse.masked_fill(lse == -torch.inf, 0.0) -> lse.clamp(min=-1e9)
        # a query that sees nobody has no weights: −1e9 less −1e9 is 0, and e^0 is 1
range(0, len(k), block)
    range(0, len(k) - block + 1, block)  # the last block may be shorter; it counts, too
dq += dz @ k[j]
    dq = dz @ k[j]  # each block adds to the gradient of q: yours is the last one's
    dq += weights @ k[j]  # q gets its gradient through the scores, by dz
dz.mT @ q -> weights.mT @ q  # k gets its gradient through the scores, by dz
weights.mT @ upstream
    weights.mT @ output  # what flows back to v is upstream, weighted; not the output
    dz.mT @ upstream  # v has no part in the scores: it gets the weights, not dz
return dq, dk, dv
    return dk, dq, dv  # the gradients come in the order q, k, v
    return dq, *(x * (lse > -torch.inf).all() for x in (dk, dv))
        # zeros in place of NaN come too late: now no key gets a gradient
    return dq, dk  # … expected 3 values
for start -> upstream = torch.ones_like(output)\n    for start
        # `upstream` isn't used: these are the gradients of another loss
scores = scores.masked_fill(~allowed(i, j), -torch.inf) -> seen = allowed(i, j)
shift).exp() -> shift).exp() * seen  # … at large scores, hidden ones
for start -> rebuilt = []\n    for start
dq += dz @ k[j] -> dq += dz @ k[j]\n        rebuilt.append(weights)
        # … keep something of each block
range(0, len(k), block) -> [0]
min(start + block, len(k)) -> len(k)  # … compute all pairs together
""")


@attention_backward.each(f"""
the example, one key at a time -> 1, 3, 1, "{ALL}"
one block holds all keys -> 5, 7, 9, "{ALL}"
blocks of three, and a rest -> 5, 11, 3, "{ALL}"
blocks of a single key -> 4, 6, 1, "{ALL}"
a causal window -> 9, 9, 2, "(j <= i) & (i - j < 3)"
some queries see nobody at all -> 6, 6, 4, "j + 2 < i"
scores near 100, and near −100 -> 6, 9, 2, "{ALL}", 0
hidden keys with scores near 100 -> 6, 9, 4, "(i >= 0) & (j < 7)", 7
so many that all pairs at once are forbidden -> 300, 1000, 10, "{ALL}"
""")
def _(draw, t, s, block, rule, large=None):
    k, v = draw.sizes(2, low=3)
    q, keys, values = draw.normal(t, k), draw.normal(s, k), draw.normal(s, v)
    upstream, allowed = draw.normal(t, v), Function(rule, "i, j")
    if large is not None:  # from this key on, scores of ±100 and a little
        q[:, 0] = 100 * k**0.5 * (-1.0) ** torch.arange(t)
        keys[:, 0] = torch.arange(s) >= large
    if t == 1:
        q = upstream = torch.ones(1, 1)
        both = torch.tensor(draw.shuffled([[2.0, 10.0], [1.0, 20.0], [1.0, 40.0]]))
        keys, values = both[:, :1].log(), both[:, 1:]
    scores = q.double() @ keys.double().mT / q.shape[1] ** 0.5
    seen = allowed(torch.arange(t)[:, None], torch.arange(s))
    scores = scores.masked_fill(~seen, -torch.inf)
    output = (scores.softmax(dim=1).nan_to_num() @ values.double()).float()
    lse = scores.logsumexp(dim=1).float()
    return q, keys, values, output, lse, upstream, allowed, block


# ---- a window in chunks ------------------------------------------------------


@exercise(
    "ch17-chunks",
    "expected for each query the softmax average over itself and the `window` − 1 keys "
    "before it",
    through=without_table_or_loop,
    broken={
        "table": "a tensor holds a number for each pair, or nearly: a chunk needs the "
        "keys of two",
        "loops": "so many calls of PyTorch: is there a loop over queries or chunks?",
    },
)
def window_attention(q, k, v, window):
    """Causal attention in a window, chunk by chunk, (t, v)."""
    t = len(q)
    starts = torch.arange(0, t, window)[:, None]
    i = starts + torch.arange(window)  # (n, w), positions of the queries
    j = starts + torch.arange(-window, window)  # (n, 2w), of the keys
    keys, values = k[j.clamp(0, t - 1)], v[j.clamp(0, t - 1)]
    scores = q[i.clamp(max=t - 1)] @ keys.mT / q.shape[1] ** 0.5
    distance = i[:, :, None] - j[:, None]  # (n, w, 2w)
    seen = (distance >= 0) & (distance < window) & (j[:, None] >= 0)
    weights = scores.masked_fill(~seen, -torch.inf).softmax(dim=-1)
    return (weights @ values).flatten(0, 1)[:t]


window_attention.instead("""
softmax(dim=-1) -> softmax(dim=1)  # weights sum to 1 over the keys, not the queries
(distance >= 0) & (distance < window) & (j[:, None] >= 0)
    (distance < window) & (j[:, None] >= 0)  # the future is seen, as far as the chunk
        goes
    (distance >= 0) & (j[:, None] >= 0)  # a query sees the whole chunk before its own,
        and that's more than `window` keys
    (distance >= 0) & (distance <= window) & (j[:, None] >= 0)
        # a window of w has w keys, and the query's own is one of them
    (distance >= 0) & (distance < window) & (j >= starts)[:, None]
        # a chunk sees itself alone: its first queries lack what's just before them
    (j[:, None] >= 0).expand(-1, window, -1)
        # two chunks are seen as a whole: within them, the window has to be masked
distance = i[:, :, None] - j[:, None]
    distance = torch.arange(window)[:, None] - torch.arange(2 * window)
        # you compare a place in a chunk with one in two chunks; those are `window`
        apart
& (j[:, None] >= 0) -> & (j[:, None] >= 0 - window)
keys, values = k[j.clamp(0, t - 1)], v[j.clamp(0, t - 1)] -> keys, values = (x[j.clamp(
        0, t - 1)] * (j >= 0)[..., None] for x in (k, v))
        # before the first chunk there are no keys: zeros get weight (e^0 is 1)
& (j[:, None] >= 0) -> & (j[:, None] >= 0 - window)
keys, values = k[j.clamp(0, t - 1)], v[j.clamp(0, t - 1)] -> padded = -(-t // window) *
        window; keys, values = (torch.cat([x, x.new_zeros(padded - t, x.shape[1])])[j]
        for x in (k, v))
        # the first chunk looks back at the last one: nothing comes before it
-torch.inf -> 0.0  # what's hidden has a score of 0, and still gets weight
/ q.shape[1] ** 0.5
    / q.shape[1]  # scores are divided by √k, not by k
    # the scores aren't divided by √k
[:t] -> # each query has one output: the last chunk was filled up, and isn't cut
""")


@window_attention.each("""
the example: values are positions, and all scores are equal -> 8, 8, 3, 3
chunks that fill the text -> 12, 12, 3, 4
a rest at the end -> 13, 14, 5, 6
a text that's shorter than the window -> 3, 4, 5, 6
one query, in its own window -> 1, 1, 3, 3
a window of one key -> 5, 6, 1, 1
as long as the window -> 5, 5, 5, 5
so many that a table of pairs is forbidden -> 400, 410, 4, 5
""")
@window_attention.each(
    "gradients reach q, k and v, through the rest, too -> 10, 11, 4, 4", gradients=True
)
def _(draw, *between):
    t, window = draw.integer(*between[:2]), draw.integer(*between[2:])
    if between == (8, 8, 3, 3):
        v = torch.arange(8.0)[:, None]
        return torch.zeros(8, 2), draw.normal(8, 2), v, window
    k, v = draw.sizes(2)
    return draw.normal(t, k), draw.normal(t, k), draw.normal(t, v), window


# ---- find the fault ----------------------------------------------------------


@exercise(
    "ch17-fault",
    "expected for each token the average over itself and the `window` − 1 before it, "
    "whatever the pieces, and the number of keys that are kept",
    faults("""
(i - j < window) & (j <= i)
    i - j < window  # within a piece, who sees whom?
torch.arange(end - len(keys), end)
    torch.arange(len(keys))  # where in the text is the first key of the cache?
k[start:end]]) -> k[start:end]])[-window:]
v[start:end]]) -> v[start:end]])[-window:]
        # when a piece is longer than the window, which keys do its first tokens need?
"""),
    through=in_pieces,
    broken={
        "later": "what you give for a piece depends on keys and values of later ones: "
        "it's read before they are known, so go from piece to piece"
    },
    symptoms=lambda result, *_: (
        "two values are asked for: the outputs, and how many keys are kept"
        if isinstance(result, torch.Tensor)
        else None
    ),
)
def read(q, k, v, window, sizes):
    """The outputs of a text that arrives in pieces, and the keys kept."""
    keys, values, outputs, start = k[:0], v[:0], [], 0
    for size in sizes:
        end = start + size
        keys = torch.cat([keys, k[start:end]])
        values = torch.cat([values, v[start:end]])
        i = torch.arange(start, end)[:, None]
        j = torch.arange(end - len(keys), end)
        seen = (i - j < window) & (j <= i)
        scores = q[start:end] @ keys.mT / q.shape[1] ** 0.5
        weights = scores.masked_fill(~seen, -torch.inf).softmax(dim=1)
        outputs.append(weights @ values)
        keys, values = keys[-window:], values[-window:]  # for the next piece
        start = end
    return torch.cat(outputs), len(keys)


read.instead("""
(i - j < window) & (j <= i)
    (i - j <= window) & (j <= i)  # a window of w has w keys, and the token's own is
        one of them
    (i - j < window) & (j < i)  # a token sees itself
    j <= i  # what the cache still holds isn't all in the window of each token of a
        piece
    (i - j).abs() < window  # within a piece, later tokens are still seen
keys, values = keys[-window:], values[-window:]
    keys = keys  # the cache grows with the text: `window` keys are enough
    keys, values = keys[-window - 1 :], values[-window - 1 :]
        # the cache keeps `window` keys, and not one more
return torch.cat(outputs), len(keys) -> return torch.cat(outputs)  # … two values
""")


@read.each("""
the example, in one piece -> 3, [8]
the example, in two pieces -> 3, [5, 3]
the example, one token at a time -> 3, [1, 1, 1, 1, 1, 1, 1, 1]
a prompt within the window, then single tokens -> 5, [4, 1, 1, 1, 1, 1]
a prompt that's longer than the window -> 4, [9, 1, 1, 1]
several tokens at once, after the window is full -> 3, [4, 3, 1, 2, 5]
a window that's never full -> 9, [2, 2, 2]
a window of one token -> 1, [3, 1, 2]
""")
def _(draw, window, sizes):
    t, (k, v) = sum(sizes), draw.sizes(2)
    if (window, t) == (3, 8):
        return (
            torch.zeros(t, k),
            draw.normal(t, k),
            torch.arange(8.0)[:, None],
            3,
            sizes,
        )
    return draw.normal(t, k), draw.normal(t, k), draw.normal(t, v), window, sizes
