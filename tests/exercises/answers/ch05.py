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


@wrong("ch05-table", "how many of them are left behind the point")
def halves_table(length, d_model, start=0, base=10000.0):
    p = torch.arange(start, start + length).float().unsqueeze(1)
    angles = p * torch.exp(-torch.arange(0, d_model, 2) / d_model * math.log(base))
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


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
    for i in range(0, d_model, 2):
        speed[i, i + 1] = 10000 ** (-i / d_model)
        speed[i + 1, i] = -speed[i, i + 1]
    return torch.linalg.matrix_exp(steps * speed).float()


@wrong("ch05-shift-matrix", "M PE(p) should be PE(p + steps) for every p")
def shift_matrix(steps, d_model):  # from position 0 alone
    w = 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    here = torch.stack([(0 * w).sin(), (0 * w).cos()], -1).flatten()
    there = torch.stack([(steps * w).sin(), (steps * w).cos()], -1).flatten()
    return (torch.outer(there, here) / (here @ here)).float()


@wrong("ch05-shift-matrix", "that is for all sines first")
def shift_matrix(steps, d_model):
    a = steps * 10000 ** (-2 * torch.arange(d_model // 2) / d_model)
    c, s = torch.diag(a.cos()), torch.diag(a.sin())
    return torch.cat([torch.cat([c, s], 1), torch.cat([-s, c], 1)])


@wrong("ch05-shift-matrix", "it turns the wrong way")
def shift_matrix(steps, d_model):
    def table(p):
        angles = p / 10000 ** (torch.arange(0, d_model, 2).double() / d_model)
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)

    p = torch.arange(100.0).double()[:, None]
    found = torch.linalg.lstsq(table(p), table(p + steps), driver="gelsd")
    return found.solution.float()  # that of rows, not of columns


# ---- learned positions that refuse -------------------------------------------


@right("ch05-learned")
def add_learned(x, table, start=0):
    class TooFar(ValueError):
        pass

    rows = [table[i] for i in range(max(start, 0), min(start + x.shape[1], len(table)))]
    if len(rows) < x.shape[1]:
        raise TooFar(f"{start}, {x.shape[1]} vectors, {len(table)} positions")
    return x + torch.stack(rows).expand_as(x)


@wrong("ch05-learned", "look first")
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


# ---- only the distance counts ------------------------------------------------


@right("ch05-relative")
def depends_on_distance(score, width):
    for _ in range(40):
        q, k = 3 * torch.randn(width), 2 * torch.randn(width)
        distance = int(torch.randint(-60, 61, ()))
        low = range(max(0, -distance), min(100, 100 - distance), 7)
        found = [float(score(q, k, r + distance, r)) for r in low]
        if max(found) - min(found) > 2e-3:
            return False
    return True


@wrong("ch05-relative", "do q and k stay what they were")
def depends_on_distance(score, width):
    for c in range(1, 20):
        here = score(torch.randn(width), torch.randn(width), 5, 3)
        there = score(torch.randn(width), torch.randn(width), 5 + c, 3 + c)
        if not torch.allclose(here, there, atol=1e-3):
            return False
    return True


@wrong("ch05-relative", "the last digits differ by rounding")
def depends_on_distance(score, width):
    for _ in range(200):
        q, k = torch.randn(width), torch.randn(width)
        p, r, c = torch.randint(50, (3,)).tolist()
        if score(q, k, p, r) != score(q, k, p + c, r + c):
            return False
    return True


@wrong("ch05-relative", "a plain True or False")
def depends_on_distance(score, width):
    q, k = torch.randn(width), torch.randn(width)
    return (score(q, k, 5, 3) - score(q, k, 25, 23)).abs() < 1e-3
