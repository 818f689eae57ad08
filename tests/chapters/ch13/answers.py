"""Answers to the exercises of chapter 13."""

import torch
from torch.nn import functional as F

from tests.exercises.answers import RIGHT, right, wrong


@right("ch13-buckets")
def bucket_ids(x, turns, real):
    rounds = []
    for turn in turns:
        turned = x.matmul(turn)
        top, low = turned.max(-1), turned.min(-1)
        n = turn.shape[1]
        ids = torch.where(top.values >= -low.values, top.indices, n + low.indices)
        ids[~real] = 2 * n
        rounds.append(ids)
    return torch.stack(rounds, dim=1)


@right("ch13-unsort")
def unsort(y, order):
    result = torch.empty_like(y)
    return result.scatter(1, order[..., None].expand_as(y), y)


@right("ch13-unsort")
def unsort(y, order):
    return torch.func.vmap(lambda a, o: a[o.argsort()])(y, order)


@wrong("ch13-unsort", "again and again")
def unsort(y, order):
    return torch.stack([a[o.argsort()] for a, o in zip(y, order, strict=True)])


@wrong("ch13-unsort", "again and again")
def unsort(y, order):
    result, rows = torch.empty_like(y), torch.arange(len(y))
    for column, p in zip(order.unbind(1), y.unbind(1), strict=True):
        result[rows, column] = p
    return result


@wrong("ch13-unsort", "again and again")
def unsort(y, order):
    result = torch.zeros_like(y)
    for b in range(len(y)):
        for p in range(y.shape[1]):
            result[b, order[b, p]] = y[b, p]
    return result


@right("ch13-join")
def join(outputs, lses):
    largest = lses.amax(dim=0).clamp(min=-1e30)
    powers = torch.exp(lses - largest)
    share = powers / powers.sum(dim=0).clamp(min=1e-30)
    return torch.einsum("rbt,rbtv->btv", share, outputs)


@right("ch13-encoder")
def encoder_round(x, values, bucket, c):
    t, n = len(x), len(x) // c
    order = bucket.argsort(stable=True)
    at = torch.arange(-c, 2 * c) + torch.arange(0, t, c)[:, None]  # (n, 3c), places
    window, rows = order[at.clamp(0, t - 1)], order.view(n, c)
    scores = x[rows] @ F.normalize(x, dim=-1)[window].mT
    scores = scores.masked_fill(rows[..., None] == window[:, None], -1e5)
    scores = scores.masked_fill(((at < 0) | (at >= t))[:, None], float("-inf"))
    output = torch.softmax(scores, -1) @ values[window]
    return output.flatten(0, 1)[order.argsort()]


@wrong("ch13-encoder", "a number for each pair of positions")
def encoder_round(x, values, bucket, c):
    t = len(x)
    order = bucket.argsort(stable=True)
    chunk = torch.empty_like(order)
    chunk[order] = torch.arange(t) // c
    far = (chunk[:, None] - chunk[None]).abs() > 1
    scores = x @ F.normalize(x, dim=1).t()
    scores = scores.masked_fill(far, float("-inf"))
    scores = scores.masked_fill(torch.eye(t, dtype=torch.bool), -1e6)
    return torch.softmax(scores, 1) @ values


@wrong("ch13-encoder", "a loop over pairs of positions")
def encoder_round(x, values, bucket, c):
    keys, chunk = F.normalize(x, dim=-1), torch.empty_like(bucket)
    chunk[bucket.argsort(stable=True)] = torch.arange(len(x)) // c
    rows = []
    for i in range(len(x)):
        near = [j for j in range(len(x)) if abs(chunk[i] - chunk[j]) <= 1 and j != i]
        near = near or [i]
        rows.append((x[i] @ keys[near].T).softmax(0) @ values[near])
    return torch.stack(rows)


@right("ch13-fault")
def lsh_attention(x, values, buckets, c):
    at = torch.arange(len(x))
    numerator, lses = [], []
    scores = x @ F.normalize(x, dim=-1).T
    scores = scores.masked_fill(at > at[:, None], -torch.inf)
    scores = scores.masked_fill(at == at[:, None], -1e5)
    for bucket in buckets:
        chunk = torch.empty_like(at)
        chunk[bucket.argsort(stable=True)] = at // c
        looks = torch.where(chunk == 0, 1, chunk - 1)
        seen = (chunk == chunk[:, None]) | (chunk == looks[:, None])
        masked = scores.masked_fill(~seen, -torch.inf)
        numerator.append(masked.softmax(1) @ values)
        lses.append(masked.logsumexp(1))
    share = torch.softmax(torch.stack(lses), 0)  # (r, t)
    return torch.einsum("rt,rtv->tv", share, torch.stack(numerator))


RIGHT["ch13-fault"] = """
torch.cat([first, rows[:-1]]) -> rows.roll(1, 0)  # as the published codes do
"""
