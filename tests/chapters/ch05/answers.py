"""Answers to the exercises of chapter 05."""

import numpy as np
import torch

from tests.exercises.answers import RIGHT, right, wrong


@right("ch05-table")
def halves_table(length, d_model, start=0, base=10000.0):
    angles = np.arange(start, start + length)[:, None] / np.power(
        base, np.arange(0, d_model, 2) / d_model
    )
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return torch.from_numpy(table.astype(np.float32))


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


RIGHT["ch05-relative"] = "return True -> return torch.tensor(True)  # a tensor"


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


@right("ch05-stutter")
def decode_step(x, table, cache):
    old, outputs = cache.shape[1], []
    for i in range(x.shape[1]):
        new = x[:, i] + table[old + i]
        cache = torch.cat([cache, new[:, None]], dim=1)
        weights = torch.einsum("bd,bsd->bs", new, cache) / new.shape[-1] ** 0.5
        outputs.append(torch.einsum("bs,bsd->bd", weights.softmax(-1), cache))
    return torch.stack(outputs, dim=1), cache
