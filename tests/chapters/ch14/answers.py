"""Answers to the exercises of chapter 14."""

import torch

from tests.exercises.answers import right, wrong


@right("ch14-undo")
def undo(y1, y2, y3, F, G, H):
    back = y3.clone()
    back -= H(y1, y2)
    factor = torch.exp(G(y1, back))
    middle = y2 * (1 / factor)
    return y1 - F(middle, back), middle, back


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


@right("ch14-replay")
def replay(f, state, x):
    before = torch.random.get_rng_state().clone()
    try:
        torch.random.set_rng_state(state)
        return f(x)
    finally:
        torch.random.set_rng_state(before)


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


@right("ch14-stack")
def undo_all(blocks, y):
    d = y.shape[-1] // 2
    y1, y2 = y[..., :d], y[..., d:]
    for n in range(len(blocks) - 1, -1, -1):
        F, G = blocks[n]
        y2 = y2 - G(y1)
        y1 = y1 - F(y2)
    return y2
