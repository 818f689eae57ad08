"""Answers to the exercises of chapter 17."""

import math

import torch

from tests.exercises.answers import RIGHT, right, wrong


@right("ch17-sinks")
def sink_mask(t, s, window, sinks):
    whole = torch.ones(s, s, dtype=torch.bool).tril()
    far = whole.tril(-window)  # at least as far back as the window is wide
    far[:, :sinks] = False
    return (whole ^ far)[-t:]


@right("ch17-count")
def pairs(n, stride):
    def triangle(x):
        return x * (x + 1) // 2

    whole, rest = divmod(n, stride)
    jumps = stride * triangle(whole - 1) + rest * whole
    within = whole * triangle(stride) + triangle(rest)
    near = triangle(min(n, stride)) + stride * max(n - stride, 0)
    return near + jumps, within + jumps


@wrong("ch17-count", "a number for each pair")
def table(n, stride):
    i, j = torch.arange(n)[:, None], torch.arange(n)
    strided = (i - j < stride) | ((i - j) % stride == 0)
    fixed = (i // stride == j // stride) | (j % stride == stride - 1)
    return strided.tril().sum().item(), fixed.tril().sum().item()


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


@wrong("ch17-backward", "a tensor of yours requires a gradient")
def attention_backward(q, k, v, output, lse, upstream, allowed, block):
    hidden = ~allowed(torch.arange(len(q))[:, None], torch.arange(len(k)))
    with torch.enable_grad():
        q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
        scores = (q @ k.mT / q.shape[1] ** 0.5).masked_fill(hidden, -1e9)
        return torch.autograd.grad(scores.softmax(-1) @ v, (q, k, v), upstream)


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


@wrong("ch17-online", "each block is computed twice")
def two_passes(q, k, v, allowed, block):
    i, blocks = torch.arange(len(q))[:, None], torch.arange(len(k)).split(block)

    def scores(j):
        z = q @ k[j].mT / q.shape[1] ** 0.5
        return z.masked_fill(~allowed(i, j), -torch.inf)

    top = torch.stack([scores(j).amax(dim=1) for j in blocks]).amax(dim=0)[:, None]
    top = top.nan_to_num(neginf=0.0)
    total = sum((scores(j) - top).exp().sum(dim=1, keepdim=True) for j in blocks)
    output = sum((scores(j) - top).exp() @ v[j] for j in blocks)
    return output / total.masked_fill(total == 0, 1.0)


@wrong("ch17-online", "e to a large number")
def without_maximum(q, k, v, allowed, block):
    i, total, output = torch.arange(len(q))[:, None], 0, 0
    for j in torch.arange(len(k)).split(block):
        scores = (q @ k[j].mT / q.shape[1] ** 0.5).double()
        weights = scores.exp() * allowed(i, j)
        total = total + weights.sum(dim=1, keepdim=True)
        output = output + weights @ v[j].double()
    return (output / (total + (total == 0))).to(q)


def called_back(work):
    """What PyTorch lets call Python."""
    found = []
    torch.zeros(1).apply_(lambda _: found.append(work()) or 0.0)
    return found[0]


@wrong("ch17-online", "much larger than a block's scores")
def hidden_table(q, k, v, allowed, block):
    def work():
        seen = allowed(torch.arange(len(q))[:, None], torch.arange(len(k)))
        scores = (q @ k.mT / q.shape[1] ** 0.5).masked_fill(~seen, -torch.inf)
        return scores.softmax(-1).nan_to_num() @ v

    return called_back(work)


@wrong("ch17-backward", "a tensor of yours requires a gradient")
def hidden_gradients(*given):
    return called_back(lambda: attention_backward(*given))


@wrong("ch17-chunks", "is there a loop")
def hidden_loop(*given):
    return called_back(lambda: looped(*given))


@wrong("ch17-fault", "depends on keys and values of later ones")
def all_at_once(q, k, v, window, sizes):
    return masked(q, k, v, window), min(window, len(k))


@wrong("ch17-layers", "expected a tensor, got a list")
def listed(masks):
    return layers_needed(masks).tolist()
