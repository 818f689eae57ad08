"""Answers to the exercises of chapter 12."""

import math

import torch
from torch.nn import functional as F

from tests.exercises.answers import right, wrong

# ---- the other shift ---------------------------------------------------------


@right("ch12-shift")
def shift_nearest_first(x):
    t, s = x.shape[-2:]
    distance = torch.arange(s - t, s)[:, None] - torch.arange(s)  # (t, s)
    index = distance.clamp(min=0).expand(x.shape)
    return torch.gather(x, -1, index) * (distance >= 0)


@wrong("ch12-shift", "right of the diagonal something is left")
def shift_nearest_first(x):
    t, s = x.shape[-2:]
    x = F.pad(torch.flip(x, (-1,)), (1, 0))
    x = x.reshape(*x.shape[:-2], s + 1, t)[..., 1:, :]
    return x.reshape(*x.shape[:-2], t, s)


@wrong("ch12-shift", "is there a memory in front?")
def shift_nearest_first(x):
    t, s = x.shape[-2:]
    i, j = torch.arange(t)[:, None], torch.arange(s)[None]
    out = x.gather(-1, (i - j).clamp(min=0).expand_as(x))
    return out.masked_fill(i < j, 0)


@wrong("ch12-shift", "your diagonal ignores the memory")
def shift_nearest_first(x):
    t, s = x.shape[-2:]
    line = F.pad(x.flip(-1), (1, 0)).flatten(-2)[..., t:]
    return line.unflatten(-1, (t, s)).tril()


@wrong("ch12-shift", "hundreds of times")
def shift_nearest_first(x):
    t, s = x.shape[-2:]
    out = torch.zeros_like(x)
    for i in range(t):
        for j in range(s):
            if s - t + i - j >= 0:
                out[..., i, j] = x[..., i, s - t + i - j]
    return out


# ---- update the memory -------------------------------------------------------


@right("ch12-memory")
def update(memory, states, mem_len):
    n = memory.shape[2] + states.shape[2]
    with torch.no_grad():
        joined = torch.cat((memory, states), dim=-2)
        return joined.narrow(2, n - min(n, mem_len), min(n, mem_len))


@wrong("ch12-memory", "what does [-0:] give?")
def update(memory, states, mem_len):
    return torch.cat([memory, states], dim=2)[:, :, -mem_len:].detach()


@wrong("ch12-memory", "a gradient flows out of the memory")
def update(memory, states, mem_len):
    joined = torch.cat([memory.detach(), states], dim=2)
    return joined[:, :, max(0, joined.shape[2] - mem_len) :]


@wrong("ch12-memory", "a short segment doesn't fill the memory")
def update(memory, states, mem_len):
    return states[:, :, max(0, states.shape[2] - mem_len) :].detach()


# ---- relative attention ------------------------------------------------------


@right("ch12-attention")
def relative_attention(q, k, values, r, u, v):
    t, s = q.shape[1], k.shape[1]
    distance = torch.arange(s - t, s)[:, None] - torch.arange(s)
    pairs = r[distance.clamp(min=0)]  # (t, s, k)
    scores = torch.einsum("btk,bsk->bts", q + u, k)
    scores = scores + torch.einsum("btk,tsk->bts", q + v, pairs)
    scores = scores / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(distance < 0, float("-inf"))
    return torch.einsum("bts,bsw->btw", scores.softmax(-1), values)


@wrong("ch12-attention", "as if the largest distance came first")
def relative_attention(q, k, values, r, u, v):
    t, s = q.shape[1], k.shape[1]
    x = F.pad((q + v) @ r.T, (1, 0)).view(len(q), s + 1, t)[:, 1:].view(len(q), t, s)
    scores = ((q + u) @ k.transpose(1, 2) + x) / q.shape[-1] ** 0.5
    future = torch.ones(t, s).triu(s - t + 1).bool()
    return scores.masked_fill(future, -1e9).softmax(-1) @ values


@wrong("ch12-attention", "a column is still a distance")
def relative_attention(q, k, values, r, u, v):
    t, s = q.shape[1], k.shape[1]
    scores = (q + u) @ k.mT + (q + v) @ r.T
    future = torch.ones(t, s).triu(s - t + 1).bool()
    scores = scores.masked_fill(future, -torch.inf) / q.shape[-1] ** 0.5
    return scores.softmax(-1) @ values


@wrong("ch12-attention", "divided by √s, the number of keys")
def relative_attention(q, k, values, r, u, v):
    t, s = q.shape[1], k.shape[1]
    distance = torch.arange(s - t, s)[:, None] - torch.arange(s)
    pairs = r[distance.clamp(min=0)]
    scores = (q + u) @ k.mT + torch.einsum("btk,tsk->bts", q + v, pairs)
    scores = (scores / math.sqrt(s)).masked_fill(distance < 0, -torch.inf)
    return scores.softmax(-1) @ values


@wrong("ch12-attention", "u and v are exchanged")
def relative_attention(q, k, values, r, u, v):
    t, s = q.shape[1], k.shape[1]
    distance = torch.arange(s - t, s)[:, None] - torch.arange(s)
    pairs = r[distance.clamp(min=0)]
    scores = (q + v) @ k.mT + torch.einsum("btk,tsk->bts", q + u, pairs)
    scores = (scores / q.shape[-1] ** 0.5).masked_fill(distance < 0, -torch.inf)
    return scores.softmax(-1) @ values


@wrong("ch12-attention", "only the first product is divided")
def relative_attention(q, k, values, r, u, v):
    t, s = q.shape[1], k.shape[1]
    pairs = r[(torch.arange(s - t, s)[:, None] - torch.arange(s)).clamp(min=0)]
    scores = (q + u) @ k.mT / q.shape[-1] ** 0.5
    scores = scores + torch.einsum("btk,tsk->bts", q + v, pairs)
    future = torch.ones(t, s).triu(s - t + 1).bool()
    return scores.masked_fill(future, -torch.inf).softmax(-1) @ values


@wrong("ch12-attention", "your mask ignores the memory")
def relative_attention(q, k, values, r, u, v):
    t, s = q.shape[1], k.shape[1]
    pairs = r[(torch.arange(s - t, s)[:, None] - torch.arange(s)).clamp(min=0)]
    scores = (q + u) @ k.mT + torch.einsum("btk,tsk->bts", q + v, pairs)
    visible = torch.ones(t, s).tril().bool()
    scores = scores.masked_fill(~visible, -torch.inf) / q.shape[-1] ** 0.5
    return scores.softmax(-1) @ values


# ---- how far back ------------------------------------------------------------


@right("ch12-reach")
def first_seen(position, length, mem_len, layers):
    needed = {position}
    for _ in range(layers):
        seen = set()
        for p in needed:
            start = p - p % length
            seen |= set(range(max(0, start - mem_len), p + 1))
        needed = seen
    return min(needed)


@wrong("ch12-reach", "looked back from the beginning of its own segment")
def first_seen(position, length, mem_len, layers):
    return max(0, position // length * length - mem_len * layers)


@wrong("ch12-reach", "not before the position")
def first_seen(position, length, mem_len, layers):
    return max(0, position - mem_len * layers)


@wrong("ch12-reach", "how many there are")
def first_seen(position, length, mem_len, layers):
    first = position
    for _ in range(layers):
        first = max(0, first // length * length - mem_len)
    return position - first + 1


# ---- find the fault ----------------------------------------------------------


@right("ch12-reader")
def bits_per_character(model, segments):
    memory, total, count = None, 0.0, 0
    for tokens, target in segments:
        nats, memory = model(tokens, target, memory)
        total, count = total + nats.sum(), count + target.numel()
    return total / count / math.log(2)


@wrong("ch12-reader", "counts as much as a long one")
def bits_per_character(model, segments):
    memory, total = None, 0.0
    for tokens, target in segments:
        nats, memory = model(tokens, target, memory)
        total = total + nats.mean().item()
    return total / len(segments) / math.log(2)


@wrong("ch12-reader", "the memory is thrown away")
def bits_per_character(model, segments):
    nats = torch.cat([model(x, y, None)[0] for x, y in segments], dim=1)
    return nats.mean().item() / math.log(2)


@wrong("ch12-reader", "that is the loss in nats")
def bits_per_character(model, segments):
    memory, every = None, []
    for tokens, target in segments:
        nats, memory = model(tokens, target, memory)
        every += nats.flatten().tolist()
    return sum(every) / len(every)


@wrong("ch12-reader", "that is the perplexity")
def bits_per_character(model, segments):
    memory, every = None, []
    for tokens, target in segments:
        nats, memory = model(tokens, target, memory)
        every += nats.flatten().tolist()
    return math.exp(sum(every) / len(every))


@wrong("ch12-reader", "the characters of one row")
def bits_per_character(model, segments):
    memory, total, count = None, 0.0, 0
    for tokens, target in segments:
        nats, memory = model(tokens, target, memory)
        total, count = total + nats.sum(), count + target.shape[1]
    return total / count / math.log(2)
