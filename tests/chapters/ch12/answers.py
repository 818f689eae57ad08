"""Answers to the exercises of chapter 12."""

import math

import torch

from tests.exercises.answers import right, wrong


@right("ch12-shift")
def shift_nearest_first(x):
    t, s = x.shape[-2:]
    distance = torch.arange(s - t, s)[:, None] - torch.arange(s)  # (t, s)
    index = distance.clamp(min=0).expand(x.shape)
    return torch.gather(x, -1, index) * (distance >= 0)


@wrong("ch12-shift", "a loop over rows")
def shift_nearest_first(x):
    t, s = x.shape[-2:]
    rows = [x[..., i, : s - t + i + 1].flip(-1) for i in range(t)]
    return torch.stack(
        [torch.nn.functional.pad(r, (0, s - r.shape[-1])) for r in rows], -2
    )


@wrong("ch12-shift", "there may be batches and heads in front")
def shift_nearest_first(x):  # the published shift, for a single matrix
    t, s = x.shape
    padded = torch.cat([torch.zeros(t, 1), x.flip(-1)], dim=1)
    return padded.view(s + 1, t)[1:].view(t, s).tril(s - t)


@wrong("ch12-shift", "there may be batches and heads in front")
def shift_nearest_first(x):
    t, s = x.shape[-2:]
    padded = torch.cat([torch.zeros(t, 1), x.flip(-1)], dim=-1)
    return padded.view(s + 1, t)[1:].view(t, s).tril(s - t)


@right("ch12-memory")
def update(memory, states, mem_len):
    n = memory.shape[2] + states.shape[2]
    with torch.no_grad():
        joined = torch.cat((memory, states), dim=-2)
        return joined.narrow(2, n - min(n, mem_len), min(n, mem_len))


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


@right("ch12-reader")
def bits_per_character(model, segments):
    memory, total, count = None, 0.0, 0
    for tokens, target in segments:
        nats, memory = model(tokens, target, memory)
        total, count = total + nats.sum(), count + target.numel()
    return total / count / math.log(2)
