"""Answers to the exercises of chapter 05."""

import math

import numpy as np
import torch

from tests.exercises.answers import right, wrong

# ---- sines first -------------------------------------------------------------


@right("ch05-table")
def halves_table(length, d_model, start=0, base=10000.0):
    angles = np.arange(start, start + length)[:, None] / np.power(
        base, np.arange(0, d_model, 2) / d_model
    )
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return torch.from_numpy(table.astype(np.float32))


@wrong("ch05-table", "i runs up to d − 1")
def halves_table(length, d_model, start=0, base=10000.0):
    p = torch.arange(start, start + length).float().unsqueeze(1)
    angles = p / base ** (2 * torch.arange(d_model) / d_model)
    half = d_model // 2
    return torch.cat([angles[:, :half].sin(), angles[:, half:].cos()], dim=-1)


@wrong("ch05-table", "expected a tensor, got a list")
def halves_table(length, d_model, start=0, base=10000.0):
    speeds = [base ** (-2 * i / d_model) for i in range(d_model // 2)]
    rows = range(start, start + length)
    return [
        [f(p * speed) for f in (math.sin, math.cos) for speed in speeds] for p in rows
    ]


@wrong("ch05-table", "the dtype is torch.float64")
def halves_table(length, d_model, start=0, base=10000.0):
    p = torch.arange(start, start + length).double()[:, None]
    angles = p / base ** (torch.arange(0, d_model, 2).double() / d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


# ---- the rotation matrix -----------------------------------------------------


@right("ch05-shift-matrix")
def shift_matrix(steps, d_model):
    speed = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(half := d_model // 2):
        speed[i, half + i] = 10000 ** (-2 * i / d_model)
        speed[half + i, i] = -speed[i, half + i]
    return torch.linalg.matrix_exp(steps * speed).float()


@wrong("ch05-shift-matrix", "M PE(p) should be PE(p + steps) for every p")
def shift_matrix(steps, d_model):  # from position 0 alone
    w = 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    here = torch.cat([(0 * w).sin(), (0 * w).cos()])
    there = torch.cat([(steps * w).sin(), (steps * w).cos()])
    return (torch.outer(there, here) / (here @ here)).float()


@right("ch05-shift-matrix")
def shift_matrix(steps, d_model):
    a = steps * 10000 ** (-2 * torch.arange(d_model // 2) / d_model)
    c, s = torch.diag(a.cos()), torch.diag(a.sin())
    return torch.cat([torch.cat([c, s], 1), torch.cat([-s, c], 1)])


@wrong("ch05-shift-matrix", "that is for the chapter's table")
def shift_matrix(steps, d_model):  # the chapter's own
    blocks = []
    for i in range(d_model // 2):
        angle = steps * 10000 ** (-2 * i / d_model)
        c, s = math.cos(angle), math.sin(angle)
        blocks.append(torch.tensor([[c, s], [-s, c]]))
    return torch.block_diag(*blocks)


@wrong("ch05-shift-matrix", "it turns the wrong way")
def shift_matrix(steps, d_model):
    def table(p):
        angles = p / 10000 ** (torch.arange(0, d_model, 2).double() / d_model)
        return torch.cat([angles.sin(), angles.cos()], -1)

    p = torch.arange(100.0).double()[:, None]
    found = torch.linalg.lstsq(table(p), table(p + steps), driver="gelsd")
    return found.solution.float()  # that of rows, not of columns


# ---- write rotary positions --------------------------------------------------


@right("ch05-rotary")
def rotary(x, start=0, half_split=False):
    t, k = x.shape[-2:]
    if half_split:
        pairs = x.unflatten(-1, (2, k // 2)).mT
    else:
        pairs = x.unflatten(-1, (k // 2, 2))
    speeds = torch.tensor([10000 ** (-2 * i / k) for i in range(k // 2)])
    angles = torch.arange(start, start + t).double()[:, None] * speeds.double()
    turns = torch.polar(torch.ones_like(angles), angles)
    turned = torch.view_as_complex(pairs.double().contiguous()) * turns
    back = torch.view_as_real(turned).to(x.dtype)
    return (back.mT if half_split else back).flatten(-2)


@right("ch05-rotary")
def rotary(x, start=0, half_split=False):  # angles in single precision
    k = x.shape[-1]
    p = torch.arange(start, start + x.shape[-2])
    a = p[:, None] / 10000 ** (torch.arange(0, k, 2) / k)
    if half_split:
        c, s = a.cos().repeat(1, 2), a.sin().repeat(1, 2)
        first, second = x.chunk(2, dim=-1)
        return x * c + torch.cat([-second, first], dim=-1) * s
    even, odd = x[..., ::2], x[..., 1::2]
    turned = even * a.cos() - odd * a.sin(), even * a.sin() + odd * a.cos()
    return torch.stack(turned, -1).flatten(-2)


@wrong("ch05-rotary", "you pair neighbours where")
def rotary(x, start=0, half_split=False):
    i = torch.arange(x.shape[-1] // 2, dtype=x.dtype)
    p = torch.arange(start, start + x.shape[-2], dtype=x.dtype)
    a = torch.outer(p, 10000.0 ** (-2 * i / x.shape[-1]))
    even, odd = x[..., ::2], x[..., 1::2]
    turned = even * a.cos() - odd * a.sin(), even * a.sin() + odd * a.cos()
    return torch.stack(turned, -1).flatten(-2)


@wrong("ch05-rotary", "you pair the halves where")
def rotary(x, start=0, half_split=False):
    k = x.shape[-1]
    speeds = 10000.0 ** (-torch.arange(0, k, 2, dtype=x.dtype) / k)
    p = torch.arange(start, start + x.shape[-2], dtype=x.dtype)
    a = (p[:, None] * speeds).repeat(1, 2)
    swapped = torch.cat([-x[..., k // 2 :], x[..., : k // 2]], dim=-1)
    return x * a.cos() + swapped * a.sin()


@wrong("ch05-rotary", "is b computed from the new a?")
def rotary(x, start=0, half_split=False):
    x, k = x.clone(), x.shape[-1]
    for row in range(x.shape[-2]):
        for i in range(k // 2):
            a, b = (i, k // 2 + i) if half_split else (2 * i, 2 * i + 1)
            angle = (start + row) / 10000 ** (2 * i / k)
            c, s = math.cos(angle), math.sin(angle)
            x[..., row, a] = x[..., row, a].clone() * c - x[..., row, b].clone() * s
            x[..., row, b] = x[..., row, a].clone() * s + x[..., row, b].clone() * c
    return x


@wrong("ch05-rotary", "interleaved pairs come back half-split")
def rotary(x, start=0, half_split=False):
    k = x.shape[-1]
    first, second = x.chunk(2, -1) if half_split else (x[..., ::2], x[..., 1::2])
    p = torch.arange(start, start + x.shape[-2], dtype=x.dtype)
    a = p[:, None] / 10000 ** (torch.arange(0, k, 2, dtype=x.dtype) / k)
    c, s = a.cos(), a.sin()
    return torch.cat([first * c - second * s, first * s + second * c], dim=-1)


@wrong("ch05-rotary", "half-split, but angle i stands beside dimensions 2i")
def rotary(x, start=0, half_split=False):
    k = x.shape[-1]
    p = torch.arange(start, start + x.shape[-2], dtype=x.dtype)
    a = torch.outer(p, 10000.0 ** (-torch.arange(0, k, 2, dtype=x.dtype) / k))
    a = a.repeat_interleave(2, dim=-1)
    if half_split:
        swapped = torch.cat([-x[..., k // 2 :], x[..., : k // 2]], dim=-1)
    else:
        swapped = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2)
    return x * a.cos() + swapped * a.sin()


@wrong("ch05-rotary", "your positions run along the heads")
def rotary(x, start=0, half_split=False):
    k, axis = x.shape[-1], min(x.ndim - 2, 1)
    p = torch.arange(start, start + x.shape[axis], dtype=x.dtype)
    a = torch.outer(p, 10000.0 ** (-torch.arange(0, k, 2, dtype=x.dtype) / k))
    if x.ndim == 4:
        a = a[:, None]
    c, s = a.cos(), a.sin()
    if half_split:
        first, second = x.chunk(2, -1)
        return torch.cat([first * c - second * s, first * s + second * c], dim=-1)
    even, odd = x[..., ::2], x[..., 1::2]
    turned = even * c - odd * s, even * s + odd * c
    return torch.stack(turned, -1).flatten(-2)


@wrong("ch05-rotary", "interleaved, but angle i stands beside dimensions i and k/2 + i")
def rotary(x, start=0, half_split=False):
    k = x.shape[-1]
    p = torch.arange(start, start + x.shape[-2], dtype=x.dtype)
    a = torch.outer(p, 10000.0 ** (-torch.arange(0, k, 2, dtype=x.dtype) / k))
    a = torch.cat([a, a], dim=-1)
    if half_split:
        swapped = torch.cat([-x[..., k // 2 :], x[..., : k // 2]], dim=-1)
    else:
        swapped = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2)
    return x * a.cos() + swapped * a.sin()


@wrong("ch05-rotary", "the result is float32, x is float64")
def rotary(x, start=0, half_split=False):  # right but for its dtype
    x, k = x.float(), x.shape[-1]
    i = torch.arange(start, start + x.shape[-2])[:, None]
    a = i * 10000.0 ** (-torch.arange(0, k, 2) / k)
    even, odd = x.chunk(2, dim=-1) if half_split else (x[..., ::2], x[..., 1::2])
    turned = even * a.cos() - odd * a.sin(), even * a.sin() + odd * a.cos()
    return torch.cat(turned, -1) if half_split else torch.stack(turned, -1).flatten(-2)


# ---- learned positions that refuse -------------------------------------------


@right("ch05-learned")
def add_learned(x, table, start=0):
    class TooFar(ValueError):
        pass

    rows = [table[i] for i in range(max(start, 0), min(start + x.shape[1], len(table)))]
    if len(rows) < x.shape[1]:
        raise TooFar(f"{start}, {x.shape[1]} vectors, {len(table)} positions")
    return x + torch.stack(rows).expand_as(x)


@wrong("ch05-learned", "raise a ValueError")
def add_learned(x, table, start=0):
    return x + table[torch.arange(start, start + x.shape[1])]


@wrong("ch05-learned", "the message should name max_len")
def add_learned(x, table, start=0):
    if start < 0 or start + x.shape[1] > len(table):
        raise ValueError(f"there is no position {start + x.shape[1] - 1}: {start}")
    return x + table[start : start + x.shape[1]]


@wrong("ch05-learned", "no gradient reaches table")
def add_learned(x, table, start=0):
    end, max_len = start + x.shape[1], len(table)
    if start < 0 or end > max_len:
        raise ValueError(f"positions {start} to {end - 1}, max_len {max_len}")
    positions = torch.nn.Embedding.from_pretrained(table.detach())
    return x + positions(torch.arange(start, end))


# ---- only the offset counts --------------------------------------------------


@right("ch05-relative")
def depends_on_offset(score, width):
    for _ in range(40):
        q, k = 3 * torch.randn(width), 2 * torch.randn(width)
        distance = int(torch.randint(-60, 61, ()))
        low = range(max(0, -distance), min(100, 100 - distance), 7)
        found = [float(score(q, k, r + distance, r)) for r in low]
        if max(found) - min(found) > 2e-3:
            return False
    return True


@wrong("ch05-relative", "do q and k stay what they were")
def depends_on_offset(score, width):
    for c in range(1, 20):
        here = score(torch.randn(width), torch.randn(width), 5, 3)
        there = score(torch.randn(width), torch.randn(width), 5 + c, 3 + c)
        if not torch.allclose(here, there, atol=1e-3):
            return False
    return True


@wrong("ch05-relative", "the last digits differ by rounding")
def depends_on_offset(score, width):
    for _ in range(200):
        q, k = torch.randn(width), torch.randn(width)
        p, r, c = torch.randint(50, (3,)).tolist()
        if score(q, k, p, r) != score(q, k, p + c, r + c):
            return False
    return True


@wrong("ch05-relative", "a plain True or False")
def depends_on_offset(score, width):
    q, k = torch.randn(width), torch.randn(width)
    return (score(q, k, 5, 3) - score(q, k, 25, 23)).abs() < 1e-3


def same_once(score, width):
    q, k = torch.randn(width), torch.randn(width)
    p, r = torch.randint(101, (2,)).tolist()
    c = torch.randint(-min(p, r), 101 - max(p, r), ()).item()
    here, there = score(q, k, p, r), score(q, k, p + c, r + c)
    return torch.allclose(here, there, atol=1e-3)


@right("ch05-relative")
def depends_on_offset(score, width):
    def differs():
        q, k = torch.randn(width), torch.randn(width)
        p, r = torch.randint(101, (2,)).tolist()
        c = torch.randint(-min(p, r), 101 - max(p, r), ()).item()
        return (score(q, k, p, r) - score(q, k, p + c, r + c)).abs() > 1e-3

    return not any(differs() for _ in range(200))


@wrong("ch05-relative", "is a single difference enough")
def depends_on_offset(score, width):
    return sum(same_once(score, width) for _ in range(200)) > 150


@wrong("ch05-relative", "is a single difference enough")
def depends_on_offset(score, width):
    return sum(same_once(score, width) for _ in range(200)) > 190


# ---- find the fault: a decoder that stutters ---------------------------------


@right("ch05-stutter")
def decode_step(x, table, cache):
    old, outputs = cache.shape[1], []
    for i in range(x.shape[1]):
        new = x[:, i] + table[old + i]
        cache = torch.cat([cache, new[:, None]], dim=1)
        weights = torch.einsum("bd,bsd->bs", new, cache) / new.shape[-1] ** 0.5
        outputs.append(torch.einsum("bs,bsd->bd", weights.softmax(-1), cache))
    return torch.stack(outputs, dim=1), cache


@wrong("ch05-stutter", "which tokens, cached and new, does your mask let")
def decode_step(x, table, cache):
    start = cache.shape[1]
    x = x + table[start : start + x.shape[1]]
    cache = torch.cat([cache, x], dim=1)
    scores = x @ cache.transpose(1, 2) / x.shape[-1] ** 0.5
    allowed = torch.ones_like(scores[0]).tril().bool()
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
    return weights @ cache, cache


@wrong("ch05-stutter", "later ones too")
def decode_step(x, table, cache):
    start = cache.shape[1]
    x = x + table[start : start + x.shape[1]]
    cache = torch.cat([cache, x], dim=1)
    weights = (x @ cache.mT / x.shape[-1] ** 0.5).softmax(dim=-1)
    return weights @ cache, cache


@wrong("ch05-stutter", "begins at position 0 again")
def decode_step(x, table, cache):
    s = cache.shape[1]
    x = x + table[: x.shape[1]]
    cache = torch.cat([cache, x], dim=1)
    scores = x @ cache.mT / x.shape[-1] ** 0.5
    past = torch.arange(cache.shape[1]) <= torch.arange(x.shape[1])[:, None] + s
    return scores.where(past, -torch.inf).softmax(-1) @ cache, cache


@wrong("ch05-stutter", "nothing has been repaired yet")
def decode_step(x, table, cache):
    x = x + table[: x.shape[1]]
    cache = torch.cat([cache, x], dim=1)
    scores = x @ cache.transpose(1, 2) / x.shape[-1] ** 0.5
    allowed = torch.ones_like(scores[0]).tril().bool()
    return scores.masked_fill(~allowed, -1e9).softmax(dim=-1) @ cache, cache
