"""Answers to the exercises of chapter 14."""

import torch

from tests.exercises.answers import WRONG, right, wrong

# ---- undo three streams ------------------------------------------------------


@right("ch14-undo")
def undo(y1, y2, y3, F, G, H):
    back = y3.clone()
    back -= H(y1, y2)
    factor = torch.exp(G(y1, back))
    middle = y2 * (1 / factor)
    return y1 - F(middle, back), middle, back


@wrong("ch14-undo", "in the order of the forward pass")
def undo(y1, y2, y3, F, G, H):
    x1 = y1 - F(y2, y3)
    x2 = y2 / torch.exp(G(x1, y3))
    x3 = y3 - H(x1, x2)
    return x1, x2, x3


WRONG["ch14-undo"] = """
y2 / G -> y2 * G  # has to be divided
G(y1, x3) -> G(y1, y3)
F(x2, x3) -> F(y2, y3)  # yours look at outputs
"""

# ---- a backward pass that rebuilds -------------------------------------------


@right("ch14-backward")
def backward(f, weights, y1, y2, dy1, dy2):
    gradients = {}
    for n in range(len(weights) - 1, -1, -1):
        added, pull = torch.func.vjp(f, y1, weights[n])
        dz, gradients[n] = pull(dy2)
        y1, y2, dy1, dy2 = y2 - added, y1, dy2, dy1 + dz
    return y1, y2, dy1, dy2, [gradients[n] for n in sorted(gradients)]


@wrong("ch14-backward", "the graphs of several layers are in memory")
def backward(f, weights, y1, y2, dy1, dy2):
    """Rebuild everything first, then one graph forward from there."""
    x1, x2 = y1, y2
    for w in weights[::-1]:
        x1, x2 = x2 - f(x1, w), x1
    with torch.enable_grad():
        z1, z2 = x1.clone().requires_grad_(), x2.clone().requires_grad_()
        leaves = [w.clone().requires_grad_() for w in weights]
        u, v = z1, z2
        for w in leaves:
            u, v = v, u + f(v, w)
        loss = (u * dy1).sum() + (v * dy2).sum()
    dz1, dz2, *dw = torch.autograd.grad(loss, [z1, z2, *leaves])
    return x1, x2, dz1, dz2, dw


@wrong("ch14-backward", "take copies that do")
def backward(f, weights, y1, y2, dy1, dy2):
    for w in reversed(weights):
        with torch.enable_grad():
            z = y1.detach().requires_grad_()
            a = f(z, w)
        a.backward(dy2)
        y1, y2, dy1, dy2 = y2 - a.detach(), y1, dy2, dy1 + z.grad
    return y1, y2, dy1, dy2, [w.grad for w in weights]


@wrong("ch14-backward", "gradients are off in your function")
def backward(f, weights, y1, y2, dy1, dy2):
    slopes = []
    for w in reversed(weights):
        z, w = y1.clone().requires_grad_(), w.clone().requires_grad_()
        a = f(z, w)
        dz, dw = torch.autograd.grad(a, (z, w), dy2)
        slopes.insert(0, dw)
        y1, y2, dy1, dy2 = y2 - a, y1, dy2, dy1 + dz
    return y1, y2, dy1, dy2, slopes


WRONG["ch14-backward"] = """
reversed(weights) -> weights
insert(0, dw) -> append(dw)  # from the first to the last
dy1, dy2 = dy2, dy1 + dz2 -> dy1 = dy1 + dz2  # so do their gradients
insert(0, dw) -> append(dw)  # in the order of the weights
dy1 + dz2 -> dz2  # directly, and through f
w = w.detach() -> w = w  # in a tensor that it was given
"""

# ---- the same dice -----------------------------------------------------------


@right("ch14-replay")
def replay(f, state, x):
    before = torch.random.get_rng_state().clone()
    try:
        torch.random.set_rng_state(state)
        return f(x)
    finally:
        torch.random.set_rng_state(before)


WRONG["ch14-replay"] = """
torch.set_rng_state(now)
    # put it back to where it was
    torch.set_rng_state(state)  # it had moved on since
torch.set_rng_state(state) -> # other random numbers were drawn
f(x)
    f(x.detach().requires_grad_())  # no gradient flows from the result to x
    torch.no_grad()(f)(x)  # is a detach in the way, or no_grad?
"""

# ---- chunks that look back ---------------------------------------------------


@right("ch14-chunks")
def in_chunks(f, x, size, reach):
    parts = x.split(size, dim=-2)
    result, before = [], x[..., :0, :]
    for part in parts:
        together = torch.cat([before, part], dim=-2)
        result.append(f(together)[..., before.shape[-2] :, :])
        before = together[..., max(0, together.shape[-2] - reach) :, :]
    return torch.cat(result, dim=-2)


@wrong("ch14-chunks", "size is the length of a chunk")
def in_chunks(f, x, size, reach):
    return torch.cat([f(part) for part in x.chunk(size, dim=-2)], dim=-2)


@wrong("ch14-chunks", "the last chunk is missing")
def in_chunks(f, x, size, reach):
    out = []
    for n in range(x.shape[-2] // size):
        first = max(0, n * size - reach)
        part = f(x[..., first : (n + 1) * size, :])
        out.append(part[..., n * size - first :, :])
    return torch.cat(out, dim=-2) if out else x[..., :0, :]


WRONG["ch14-chunks"] = r"""
first = max(0, begin - reach) -> first = begin  # don't see what stands before the chunk
begin - first : -> reach:  # nothing was taken along there
results = []
    return f(x)\n    results = []  # more than size + reach positions
    size, results = 1, []  # more often than there are chunks
seen[..., begin - first :, :] -> seen  # part of the result
"""

# ---- find the fault ----------------------------------------------------------


@right("ch14-stack")
def undo_all(blocks, y):
    d = y.shape[-1] // 2
    y1, y2 = y[..., :d], y[..., d:]
    for n in range(len(blocks) - 1, -1, -1):
        F, G = blocks[n]
        y2 = y2 - G(y1)
        y1 = y1 - F(y2)
    return y2


WRONG["ch14-stack"] = r"""
dim=-1 -> dim=0
reversed(blocks) -> blocks
y2 = y2 - G(y1)\n        y1 = y1 - F(y2) -> y1 = y1 - F(y2)\n        y2 = y2 - G(y1)
        # three faults are left
reversed(blocks) -> blocks
y2 = y2 - G(y1)\n        y1 = y1 - F(y2) -> y1 = y1 - F(y2)\n        y2 = y2 - G(y1)
        # two faults are left: the blocks are
y2 = y2 - G(y1)\n        y1 = y1 - F(y2) -> y1 = y1 - F(y2)\n        y2 = y2 - G(y1)
        # a fault is left: in a block
reversed(blocks) -> blocks  # a fault is left: the blocks are
dim=-1 -> dim=0  # a fault is left: along which axis
"""
