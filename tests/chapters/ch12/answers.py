"""Answers to the exercises of chapter 12."""

import math

import torch

from tests.exercises.answers import WRONG, right, wrong

# ---- the other shift ---------------------------------------------------------


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


WRONG["ch12-shift"] = r"""
.tril(s - t) -> # right of the diagonal something is left
return line
    i, j = torch.arange(t)[:, None], torch.arange(s)\n    return x.gather(-1, (i -
        j).clamp(min=0).expand_as(x)).tril()\n    return line
        # is there a memory in front?
    from annotated.transformer_xl import relative_shift\n\n    return
        relative_shift(x.flip(-1)).tril(s - t)\n    return line  # calls `annotated`
tril(s - t) -> tril()  # your diagonal ignores the memory
x.flip(-1) -> x.flip(-1).float()  # the dtype is torch.float32
"""

# ---- update the memory -------------------------------------------------------


@right("ch12-memory")
def update(memory, states, mem_len):
    n = memory.shape[2] + states.shape[2]
    with torch.no_grad():
        joined = torch.cat((memory, states), dim=-2)
        return joined.narrow(2, n - min(n, mem_len), min(n, mem_len))


WRONG["ch12-memory"] = """
first: -> -mem_len:  # what does [-0:] give?
.detach() -> # a gradient flows out of the memory
[memory, states] -> [states]  # a short segment doesn't fill the memory
"""

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


WRONG["ch12-attention"] = """
r.flip(0).T -> r.T  # as if the largest distance came first
r.flip(0).T -> r.T
line.unflatten(1, (t, s)) -> by_distance  # a column is still a distance
q.shape[-1] ** 0.5 -> s**0.5  # divided by √s, the number of keys
q + v -> q + u  # the distances got u; they need v
q + u -> q + v  # the keys got v; they need u
q + u -> q + w
q + v -> q + u
q + w -> q + v  # u and v are exchanged
(q + u) @ k.mT -> (q + u) @ k.mT / q.shape[-1] ** 0.5
(t, s))) / q.shape[-1] ** 0.5 -> (t, s)))  # only the first product is divided
tril(s - t) -> tril()  # your mask ignores the memory
-torch.inf -> 0.0  # a score of 0 isn't a weight of 0
"""

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


WRONG["ch12-reach"] = r"""
for -> return max(0, position // length * length - mem_len * layers)\n    for
        # looked back from the beginning of its own segment
begin - mem_len -> position - mem_len  # not before the position
for -> asked = position\n    for
return position -> return asked - position + 1  # how many there are
"""

# ---- find the fault ----------------------------------------------------------


@right("ch12-reader")
def bits_per_character(model, segments):
    memory, total, count = None, 0.0, 0
    for tokens, target in segments:
        nats, memory = model(tokens, target, memory)
        total, count = total + nats.sum(), count + target.numel()
    return total / count / math.log(2)


WRONG["ch12-reader"] = """
torch.cat(losses, dim=1).mean()
    torch.stack([n.mean() for n in losses]).mean()  # counts as much as a long one
    torch.cat(losses, dim=1).sum(0).mean()  # the characters of one row
nats, memory = -> nats, _ =  # the memory is thrown away
(mean / torch.tensor(2.0).log())
    mean  # that is the loss in nats
    mean.exp()  # that is the perplexity
"""
