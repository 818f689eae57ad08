"""Answers to the exercises of chapter 17."""

import math

import torch

from tests.exercises.answers import RIGHT, WRONG, right, wrong

# ---- a window and the first tokens -------------------------------------------


@right("ch17-sinks")
def sink_mask(t, s, window, sinks):
    whole = torch.ones(s, s, dtype=torch.bool).tril()
    far = whole.tril(-window)  # at least as far back as the window is wide
    far[:, :sinks] = False
    return (whole ^ far)[-t:]


WRONG["ch17-sinks"] = """
torch.arange(s - t, s)[:, None]
    torch.arange(t)[:, None]  # yours are the first
(i - j < window)
    (i - j <= window)  # the query's own is one of them
    (j >= s - window)  # a window of its own
    (i - j < window - sinks)  # on top of the window
| (j < sinks)
    # the first tokens are forgotten
    | (j <= sinks)  # one sink too many
wanted & (j <= i)
    wanted  # the future is seen
    wanted & (j < i)  # sees its own key
    (wanted & (j <= i)).float()  # the dtype is torch.float32
    ~(wanted & (j <= i))  # the other way round
"""


@wrong("ch17-sinks", "by queries that come before it")
def column(t, s, window, sinks):
    mask = torch.ones(s, s, dtype=torch.bool).tril().triu(1 - window)
    mask[:, :sinks] = True
    return mask[s - t :]


# ---- count it ----------------------------------------------------------------


@right("ch17-count")
def pairs(n, stride):
    def triangle(x):
        return x * (x + 1) // 2

    whole, rest = divmod(n, stride)
    jumps = stride * triangle(whole - 1) + rest * whole
    within = whole * triangle(stride) + triangle(rest)
    near = triangle(min(n, stride)) + stride * max(n - stride, 0)
    return near + jumps, within + jumps


WRONG["ch17-count"] = """
(i + 1).clamp(max=stride) + i // stride
    (i + 1).clamp(max=stride) + i // stride + 1  # own key is in both steps
    stride + i // stride  # the first queries have fewer
    (i + 1).clamp(max=stride + 1) + i // stride  # in the second step alone
i % stride + 1 + i // stride
    i % stride + 1 + (i + 1) // stride  # sees itself in both steps
    i % stride + i // stride  # a query sees its own key
    (stride + i // stride)  # the rest of its stretch
i = torch.arange(n) -> i = torch.arange(n // stride * stride)  # after the whole
return strided.sum().item(), fixed.sum().item()
    return fixed.sum().item(), strided.sum().item()  # strided comes first
    return strided.sum().item()  # expected 2 values
"""


@wrong("ch17-count", "a number for each pair")
def table(n, stride):
    i, j = torch.arange(n)[:, None], torch.arange(n)
    strided = (i - j < stride) | ((i - j) % stride == 0)
    fixed = (i // stride == j // stride) | (j % stride == stride - 1)
    return strided.tril().sum().item(), fixed.tril().sum().item()


# ---- how many layers? --------------------------------------------------------


@right("ch17-layers")
def layers_needed(masks):
    t, rounds = len(masks[0]), len(masks)
    heard = [{i} for i in range(t)]
    found = [0 if t == 1 else -1] * t
    for layer in range(rounds * t):
        shown = [row.nonzero().flatten().tolist() for row in masks[layer % rounds]]
        heard = [heard[i].union(*(heard[j] for j in shown[i])) for i in range(t)]
        for i in range(t):
            if len(heard[i]) == t and found[i] < 0:
                found[i] = layer + 1
    return torch.tensor(found)


WRONG["ch17-layers"] = """
step = masks[layer % len(masks)] | own
    step = masks[layer % len(masks)]  # stays in its stream
    step = torch.stack(masks).any(0) | own  # not all of them at once
    step = masks[layer % len(masks)].T | own  # yours are exchanged
    step = masks[0] | own  # all layers have the first mask
step.float() @ heard.float() > 0
    heard.float() @ step.float() > 0  # the later layer comes first
heard.all(dim=1)
    heard.all(dim=0)  # a column a key, which is heard
    heard.all()  # when each of them has
= layer\\n -> = layer + 1\\n  # that's 0 layers
range(len(masks) * t) -> range(len(masks) + 1)  # you stop after the last mask
layers = own, -> layers = own.long(),
heard.all(dim=1) -> (heard > 0).all(dim=1)
heard = step.float() @ heard.float() > 0 -> heard = step.long() @ heard
        # your counts of ways overflow
return layers -> return layers.max()  # the shape is (), expected
"""

# ---- the softmax in blocks ---------------------------------------------------


@right("ch17-online")
def online_attention(q, k, v, allowed, block):
    i = torch.arange(q.shape[0]).unsqueeze(1)
    output, lse = torch.zeros(len(q), v.shape[1]), torch.full((len(q), 1), -torch.inf)
    for j in torch.arange(k.shape[0]).split(block):  # joined by log-sum-exps
        scores = (q / k.shape[1] ** 0.5) @ k[j].T
        scores = torch.where(allowed(i, j), scores, -torch.inf)
        joined = torch.logaddexp(lse, scores.logsumexp(dim=1, keepdim=True))
        old, new = lse - joined, scores - joined
        output = output * old.exp().nan_to_num(0) + new.exp().nan_to_num(0) @ v[j]
        lse = joined
    return output


WRONG["ch17-online"] = """
total = total * factor -> total = total
output = output * factor -> output = output
        # were taken with an older maximum
output = output * factor -> output = output  # and so must the output
total = total * factor -> total = total  # and so must the sum
/ q.shape[1] ** 0.5 -> # aren't divided by
range(0, len(k), block) -> range(0, len(k) // block * block, block)  # may be shorter
allowed(i, j)
    allowed(i, torch.arange(len(j)))  # counted from the first block on
    allowed(j, i)  # the queries' positions first
new = torch.maximum(top, scores.amax(dim=1, keepdim=True))
    new = scores.amax(dim=1, keepdim=True)  # or e to a large number
    new = torch.zeros_like(top)  # Look at a query
new.masked_fill(new == -torch.inf, 0.0) -> new  # −∞ − (−∞)
total.masked_fill(total == 0, 1.0) -> total  # 0 / 0
-torch.inf)\\n        new -> -1e9)\\n        new  # an average of what it
(top - safe).exp() -> top.exp()  # the two maxima
"""


@wrong("ch17-online", "much larger than a block's scores")
def all_blocks(q, k, v, allowed, block):
    i, outputs, lses = torch.arange(len(q))[:, None], [], []
    for j in torch.arange(len(k)).split(block):
        scores = q @ k[j].mT / q.shape[1] ** 0.5
        scores = scores.masked_fill(~allowed(i, j), -torch.inf)
        outputs.append(scores.softmax(-1).nan_to_num() @ v[j])
        lses.append(scores.logsumexp(-1))
    shares = torch.stack(lses).softmax(0).nan_to_num()
    return (shares[..., None] * torch.stack(outputs)).sum(0)


# ---- join the parts ----------------------------------------------------------


@right("ch17-join")
def join(outputs, lses):
    lse = torch.logsumexp(lses, dim=0)
    shares = torch.nan_to_num(torch.exp(lses - lse))  # −∞ − (−∞) where nobody saw a key
    return torch.einsum("nt,ntv->tv", shares, outputs), lse


@right("ch17-join")
def join(outputs, lses):
    output, lse = outputs[0], lses[0]
    for other, more in zip(outputs[1:], lses[1:], strict=True):
        both = torch.logaddexp(lse, more)
        share = (more - both).exp().nan_to_num()[:, None]
        output, lse = (1 - share) * output + share * other, both
    return output, lse


WRONG["ch17-join"] = """
top = lses.amax(dim=0) -> top = lses.nan_to_num(neginf=0.0).mean(dim=0)  # not a number
output = output / total.masked_fill(total == 0, 1.0)[:, None]
    output = outputs.mean(dim=0)  # every part counts the same
    # isn't divided by the sum
return output, shift + total.log()
    return output, total.log()  # what was subtracted before
    return output, lses.sum(dim=0)  # their logarithms don't
    return output, top  # the largest log-sum-exp
    return output, shift + (total + 1e-20).log()  # a finite log-sum-exp
    return output, shift + total.masked_fill(total == 0, 1.0).log()  # 0 say
    return output  # two tensors are asked for
top.masked_fill(top == -torch.inf, 0.0)
    top  # −∞ − (−∞)
    torch.zeros_like(top)  # e to a large log-sum-exp
    torch.full_like(top, lses.max())  # with one maximum
"""


# ---- backward, block by block ------------------------------------------------


@right("ch17-backward")
def attention_backward(q, k, v, output, lse, upstream, allowed, block):
    i, scale = torch.arange(q.shape[0]).unsqueeze(1), math.sqrt(q.shape[1])
    mean = torch.einsum("tv,tv->t", upstream, output).unsqueeze(1)
    dq, dk, dv = 0, [], []
    for j in torch.arange(k.shape[0]).split(block):
        z = torch.einsum("tk,sk->ts", q / scale, k[j]) - lse[:, None]
        p = torch.where(allowed(i, j), z.exp(), 0.0)
        dz = p * (upstream @ v[j].T - mean)
        dq = dq + dz @ k[j] / scale
        dk.append(dz.T @ q / scale)
        dv.append(p.T @ upstream)
    return dq, torch.cat(dk), torch.cat(dv)


RIGHT["ch17-backward"] = """
(scores - shift).exp() -> (scores - lse[:, None]).exp().nan_to_num(0.0)
        # NaN becomes 0 before anything else takes it over
"""
WRONG["ch17-backward"] = """
(scores - shift).exp()
    scores.softmax(dim=1).nan_to_num()  # each block's softmax sums to 1
    (scores - lse[:, None]).exp()  # −∞ − (−∞)
dp - mean
    dp  # its row's average is subtracted
    dp - (weights * dp).sum(dim=1, keepdim=True)  # keys in other blocks
dz = factor * weights -> dz = weights  # what flows back through
scores = factor * (q @ k[j].mT) -> scores = q @ k[j].mT  # these aren't the weights
range(0, len(k), block) -> range(0, len(k) // block * block, block)  # may be shorter
allowed(i, j) -> allowed(i, torch.arange(len(j)))  # counted from the first block on
dq += dz @ k[j] -> dq = dz @ k[j]  # is the last one's
dz.mT @ q -> weights.mT @ q  # through the scores, by dz
return dq, dk, dv -> return dq, dk  # expected 3 values
(scores - shift).exp() -> (scores - lse[:, None]).exp()
return dq, dk, dv -> return [torch.nan_to_num(x) for x in (dq, dk, dv)]
        # zeros in place of NaN come too late
scores = scores.masked_fill(~allowed(i, j), -torch.inf) -> seen = allowed(i, j)
weights = (scores - shift).exp() -> weights = (scores - shift).exp() * seen
        # at large scores, hidden ones
for start -> rebuilt = []\\n    for start
dq += dz @ k[j] -> dq += dz @ k[j]\\n        rebuilt.append(weights)
        # keep something of each block
range(0, len(k), block) -> [0]
min(start + block, len(k)) -> len(k)  # compute all pairs together
"""


@wrong("ch17-backward", "a tensor of yours requires a gradient")
def attention_backward(q, k, v, output, lse, upstream, allowed, block):
    hidden = ~allowed(torch.arange(len(q))[:, None], torch.arange(len(k)))
    with torch.enable_grad():
        q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
        scores = (q @ k.mT / q.shape[1] ** 0.5).masked_fill(hidden, -1e9)
        return torch.autograd.grad(scores.softmax(-1) @ v, (q, k, v), upstream)


# ---- a window in chunks ------------------------------------------------------


@right("ch17-chunks")
def window_attention(q, k, v, window):
    (t, width), w = q.shape, window
    pad = torch.nn.functional.pad
    keys, values = (pad(x, (0, 0, w - 1, -t % w)) for x in (k, v))
    keys, values = (x.unfold(0, 2 * w - 1, w) for x in (keys, values))
    queries = pad(q, (0, 0, 0, -t % w)).reshape(-1, w, width)
    scores = torch.einsum("nwk,nkj->nwj", queries, keys) * width**-0.5
    place = torch.arange(2 * w - 1) - torch.arange(w)[:, None]  # 0 … w − 1 is seen
    before = torch.arange(len(queries))[:, None] * w + torch.arange(2 * w - 1) < w - 1
    hidden = (place < 0) | (place >= w) | before[:, None]
    weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=2)
    return torch.einsum("nwj,nvj->nwv", weights, values).reshape(-1, v.shape[1])[:t]


WRONG["ch17-chunks"] = """
(distance >= 0) & -> # the future is seen
(distance < window)
    (distance <= window)  # the query's own is one of them
    (distance < 2 * window)  # sees the whole chunk before
& (j[:, None] >= 0) -> & (j >= starts)[:, None]  # sees itself alone
/ q.shape[1] ** 0.5 -> # aren't divided
[:t] -> # isn't cut
-torch.inf -> 0.0  # still gets weight
softmax(dim=-1) -> softmax(dim=1)  # over the keys
"""


@wrong("ch17-chunks", "zeros get weight")
def padded(q, k, v, window):
    t, n = len(q), -(-len(q) // window)
    pad = torch.nn.functional.pad
    rest = n * window - t
    a, b, c = (pad(x, (0, 0, 0, rest)).view(n, window, -1) for x in (q, k, v))
    b, c = (torch.cat([pad(x, (0, 0, 0, 0, 1, 0))[:-1], x], dim=1) for x in (b, c))
    i, j = torch.arange(window)[:, None] + window, torch.arange(2 * window)
    scores = a @ b.mT / q.shape[1] ** 0.5
    scores = scores.masked_fill((j > i) | (i - j >= window), -torch.inf)
    return (scores.softmax(-1) @ c).flatten(0, 1)[:t]


@wrong("ch17-chunks", "is there a loop")
def looped(q, k, v, window):
    outputs = []
    for i in range(len(q)):
        first = max(0, i - window + 1)
        scores = k[first : i + 1] @ q[i] / q.shape[1] ** 0.5
        outputs.append(scores.softmax(0) @ v[first : i + 1])
    return torch.stack(outputs)


@wrong("ch17-chunks", "a number for each pair")
def masked(q, k, v, window):
    hidden = ~torch.ones(len(q), len(q), dtype=torch.bool).tril().triu(1 - window)
    scores = q @ k.mT / q.shape[1] ** 0.5
    return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v


# ---- find the fault ----------------------------------------------------------


@right("ch17-fault")
def read(q, k, v, window, sizes):
    outputs, end = [], 0
    for size in sizes:
        first, start, end = max(0, end - window), end, end + size
        scores = q[start:end] @ k[first:end].mT / q.shape[1] ** 0.5
        later = torch.ones_like(scores).triu(start - first + 1)
        gone = torch.ones_like(scores).tril(start - first - window)
        scores = scores.masked_fill((later + gone).bool(), -torch.inf)
        outputs.append(scores.softmax(-1) @ v[first:end])
    return torch.cat(outputs), min(window, end)


WRONG["ch17-fault"] = """
seen = (i - j < window) & (j <= i)
    seen = i - j < window  # a fault is left: within a piece
    seen = (i - j).abs() < window  # later tokens are still seen
    seen = j <= i  # isn't all in the window
    seen = (i - j <= window) & (j <= i)  # own is one of them
    seen = (i - j < window) & (j < i)  # a token sees itself
torch.arange(end - len(keys), end) -> torch.arange(len(keys))
        # a fault is left: where in the text
seen = (i - j < window) & (j <= i) -> seen = i - j < window
torch.arange(end - len(keys), end) -> torch.arange(len(keys))
        # two faults are left: within a piece
k[start:end]]) -> k[start:end]])[-window:]
v[start:end]]) -> v[start:end]])[-window:]  # which keys do its first tokens need
keys, values = keys[-window:], values[-window:] -> # the cache grows
return torch.cat(outputs), len(keys) -> return torch.cat(outputs)  # two values
"""
