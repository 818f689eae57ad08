"""Answers to the exercises of chapter 14."""

import torch
from torch.nn import functional as nnf

from tests.exercises.answers import right, wrong

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


@wrong("ch14-undo", "has to be divided")
def undo(y1, y2, y3, F, G, H):
    x3 = y3 - H(y1, y2)
    x2 = torch.exp(G(y1, x3)) * y2
    x1 = y1 - F(x2, x3)
    return x1, x2, x3


@wrong("ch14-undo", "yours look at outputs")
def undo(y1, y2, y3, F, G, H):
    return y1 - F(y2, y3), y2 * (-G(y1, y3)).exp(), y3 - H(y1, y2)


# ---- a backward pass that rebuilds -------------------------------------------


@right("ch14-backward")
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


@wrong("ch14-backward", "from the first to the last")
def backward(f, weights, y1, y2, dy1, dy2):
    grads = []
    for w in weights:
        with torch.enable_grad():
            z, w = y1.detach().requires_grad_(), w.detach().requires_grad_()
            a = f(z, w)
            a.backward(dy2)
        y1, y2, dy1, dy2 = y2 - a.detach(), y1, dy2, dy1 + z.grad
        grads.append(w.grad)
    return y1, y2, dy1, dy2, grads


@wrong("ch14-backward", "so do their gradients")
def backward(f, weights, y1, y2, dy1, dy2):
    grads = []
    for w in reversed(weights):
        with torch.enable_grad():
            z, w = y1.detach().requires_grad_(), w.detach().requires_grad_()
            a = f(z, w)
            a.backward(dy2)
        y1, y2, dy1 = y2 - a.detach(), y1, dy1 + z.grad
        grads = [w.grad, *grads]
    return y1, y2, dy1, dy2, grads


@wrong("ch14-backward", "in the order of the weights")
def backward(f, weights, y1, y2, dy1, dy2):
    grads = []
    for w in reversed(weights):
        with torch.enable_grad():
            z, w = y1.detach().requires_grad_(), w.detach().requires_grad_()
            a = f(z, w)
            a.backward(dy2)
        y1, y2, dy1, dy2 = y2 - a.detach(), y1, dy2, dy1 + z.grad
        grads.append(w.grad)
    return y1, y2, dy1, dy2, grads


@wrong("ch14-backward", "directly, and through f")
def backward(f, weights, y1, y2, dy1, dy2):
    grads = []
    for w in reversed(weights):
        with torch.enable_grad():
            z, w = y1.detach().requires_grad_(), w.detach().requires_grad_()
            a = f(z, w)
        dz, dw = torch.autograd.grad(a, (z, w), dy2)
        y1, y2, dy1, dy2 = y2 - a.detach(), y1, dy2, dz
        grads = [dw, *grads]
    return y1, y2, dy1, dy2, grads


@wrong("ch14-backward", "in a tensor that it was given")
def backward(f, weights, y1, y2, dy1, dy2):
    grads = []
    for w in reversed(weights):
        w.requires_grad_()
        with torch.enable_grad():
            z = y1.detach().requires_grad_()
            a = f(z, w)
        dz, dw = torch.autograd.grad(a, (z, w), dy2)
        y1, y2, dy1, dy2 = y2 - a.detach(), y1, dy2, dy1 + dz
        grads = [dw, *grads]
    return y1, y2, dy1, dy2, grads


# ---- the same dice -----------------------------------------------------------


@right("ch14-replay")
def replay(f, state, x):
    before = torch.random.get_rng_state().clone()
    try:
        torch.random.set_rng_state(state)
        return f(x)
    finally:
        torch.random.set_rng_state(before)


@wrong("ch14-replay", "put it back to where it was")
def replay(f, state, x):
    torch.set_rng_state(state)
    return f(x)


@wrong("ch14-replay", "other random numbers were drawn")
def replay(f, state, x):
    now = torch.get_rng_state()
    result = f(x)
    torch.set_rng_state(now)
    return result


@wrong("ch14-replay", "it had moved on since")
def replay(f, state, x):
    torch.set_rng_state(state)
    y = f(x)
    torch.set_rng_state(state)
    return y


@wrong("ch14-replay", "no gradient flows from the result to x")
def replay(f, state, x):
    now = torch.get_rng_state()
    torch.set_rng_state(state)
    result = f(x.detach().requires_grad_())
    torch.set_rng_state(now)
    return result


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


@wrong("ch14-chunks", "don't see what stands before the chunk")
def in_chunks(f, x, size, reach):
    return torch.cat([f(part) for part in x.split(size, dim=-2)], dim=-2)


@wrong("ch14-chunks", "nothing was taken along there")
def in_chunks(f, x, size, reach):
    out = []
    for i in range(0, x.shape[-2], size):
        out.append(f(x[..., max(0, i - reach) : i + size, :])[..., reach:, :])
    return torch.cat(out, dim=-2)


@wrong("ch14-chunks", "more than size + reach positions")
def in_chunks(f, x, size, reach):
    return f(x)


@wrong("ch14-chunks", "the last chunk is missing")
def in_chunks(f, x, size, reach):
    out = []
    for n in range(x.shape[-2] // size):
        first = max(0, n * size - reach)
        part = f(x[..., first : (n + 1) * size, :])
        out.append(part[..., n * size - first :, :])
    return torch.cat(out, dim=-2) if out else x[..., :0, :]


@wrong("ch14-chunks", "part of the result")
def in_chunks(f, x, size, reach):
    out = []
    for i in range(0, x.shape[-2], size):
        padded = nnf.pad(x, (0, 0, 0, 0))[..., max(0, i - reach) : i + size, :]
        out.append(f(padded))
    return torch.cat(out, dim=-2)


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


@wrong("ch14-stack", "all three faults are still there")
def undo_all(blocks, y):
    y1, y2 = y.chunk(2)
    for F, G in blocks:
        y1 = y1 - F(y2)
        y2 = y2 - G(y1)
    return y1


@wrong("ch14-stack", "two faults are left")
def undo_all(blocks, y):
    y1, y2 = y.chunk(2, dim=-1)
    for F, G in blocks:
        y1 = y1 - F(y2)
        y2 = y2 - G(y1)
    return y1


@wrong("ch14-stack", "has to be undone first")
def undo_all(blocks, y):
    y1, y2 = y.chunk(2, dim=2)
    for F, G in reversed(blocks):
        y1 = y1 - F(y2)
        y2 = y2 - G(y1)
    return y1


@wrong("ch14-stack", "from the first to the last")
def undo_all(blocks, y):
    y1, y2 = y.chunk(2, dim=-1)
    for F, G in blocks:
        y2 = y2 - G(y1)
        y1 = y1 - F(y2)
    return y1


@wrong("ch14-chunks", "size is the length of a chunk")
def in_chunks(f, x, size, reach):
    return torch.cat([f(part) for part in x.chunk(size, dim=-2)], dim=-2)


@wrong("ch14-backward", "take copies that do")
def backward(f, weights, y1, y2, dy1, dy2):
    for w in reversed(weights):
        with torch.enable_grad():
            z = y1.detach().requires_grad_()
            a = f(z, w)
        a.backward(dy2)
        y1, y2, dy1, dy2 = y2 - a.detach(), y1, dy2, dy1 + z.grad
    return y1, y2, dy1, dy2, [w.grad for w in weights]


@wrong("ch14-replay", "no gradient flows from the result to x")
def replay(f, state, x):
    with torch.no_grad(), torch.random.fork_rng():
        torch.set_rng_state(state)
        return f(x)
