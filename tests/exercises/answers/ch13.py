"""Answers to the exercises of chapter 13."""

import torch
from torch.nn import functional as F

from tests.exercises.answers import right, wrong

# ---- bucket ids ----------------------------------------------------------------


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


@wrong("ch13-buckets", "where are the opposites?")
def bucket_ids(x, turns, real):
    turned = x.unsqueeze(1) @ turns
    ids = turned.argmax(-1)
    return ids.masked_fill(~real.unsqueeze(1), 2 * turns.shape[-1])


@wrong("ch13-buckets", "the rounds come before the positions")
def bucket_ids(x, turns, real):
    turned = torch.einsum("btk,rkn->btrn", x, turns)
    ids = torch.cat([turned, -turned], -1).argmax(-1)
    return ids.masked_fill(~real[..., None], 2 * turns.shape[-1])


@wrong("ch13-buckets", "padding gets 2n")
def bucket_ids(x, turns, real):
    turned = x[:, None] @ turns
    ids = torch.cat([turned, -turned], -1).argmax(-1)
    return ids * real[:, None]


@wrong("ch13-buckets", "padding is hashed like the rest")
def bucket_ids(x, turns, real):
    turned = x[:, None] @ turns
    return torch.cat([turned, -turned], -1).argmax(-1)


# ---- undo the sort -------------------------------------------------------------


@right("ch13-unsort")
def unsort(y, order):
    result = torch.empty_like(y)
    return result.scatter(1, order[..., None].expand_as(y), y)


@wrong("ch13-unsort", "that sorts once more")
def unsort(y, order):
    return torch.take_along_dim(y, order[..., None], dim=1)


@wrong("ch13-unsort", "by the order of the first")
def unsort(y, order):
    return y[:, order[0].argsort()]


@wrong("ch13-unsort", "again and again")
def unsort(y, order):
    return torch.stack([a[o.argsort()] for a, o in zip(y, order, strict=True)])


@wrong("ch13-unsort", "again and again")
def unsort(y, order):
    place = order.argsort(1)
    return torch.stack([a[i] for a, i in zip(y, place, strict=True)])


@wrong("ch13-unsort", "again and again")
def unsort(y, order):
    result, rows = torch.empty_like(y), torch.arange(len(y))
    for column, p in zip(order.unbind(1), y.unbind(1), strict=True):
        result[rows, column] = p
    return result


@right("ch13-unsort")
def unsort(y, order):
    return torch.func.vmap(lambda a, o: a[o.argsort()])(y, order)


@wrong("ch13-unsort", "again and again")
def unsort(y, order):
    result = torch.zeros_like(y)
    for b in range(len(y)):
        for p in range(y.shape[1]):
            result[b, order[b, p]] = y[b, p]
    return result


# ---- join the rounds -----------------------------------------------------------


@right("ch13-join")
def join(outputs, lses):
    largest = lses.amax(dim=0).clamp(min=-1e30)
    powers = torch.exp(lses - largest)
    share = powers / powers.sum(dim=0).clamp(min=1e-30)
    return torch.einsum("rbt,rbtv->btv", share, outputs)


@wrong("ch13-join", "the gradient of outputs holds NaN")
def join(outputs, lses):
    return (lses.softmax(0)[..., None] * outputs).sum(0).nan_to_num()


@wrong("ch13-join", "infinity divided by")
def join(outputs, lses):
    nobody = (lses == -torch.inf).all(0)
    powers = lses.exp()
    share = powers / powers.sum(0).masked_fill(nobody, 1)
    return (share[..., None] * outputs).sum(0)


@wrong("ch13-join", "infinity divided by")
def join(outputs, lses):
    powers = lses.exp()
    share = powers / powers.sum(0)
    return (share.unsqueeze(-1) * outputs).sum(0)


@wrong("ch13-join", "gets zeros, not NaN")
def join(outputs, lses):
    return (lses.softmax(0)[..., None] * outputs).sum(0)


@wrong("ch13-join", "every round counts the same")
def join(outputs, lses):
    return outputs.mean(0)


@wrong("ch13-join", "over positions")
def join(outputs, lses):
    nobody = (lses == -torch.inf).all(0)
    share = lses.masked_fill(nobody, 0).softmax(-1)
    return (share[..., None] * outputs).sum(0).masked_fill(nobody[..., None], 0)


# ---- look to both sides --------------------------------------------------------


@right("ch13-encoder")
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


@wrong("ch13-encoder", "nothing wraps around")
def encoder_round(x, values, bucket, c):
    order = bucket.argsort(stable=True)
    rows = order.view(-1, c)
    if len(rows) < 3:
        window = order.expand(len(rows), -1)
    else:
        window = torch.cat([rows.roll(1, 0), rows, rows.roll(-1, 0)], 1)
    scores = x[rows] @ F.normalize(x, dim=-1)[window].mT
    scores = scores.masked_fill(window[:, None] == rows[..., None], -1e5)
    output = scores.softmax(-1) @ values[window]
    return output.flatten(0, 1)[order.argsort()]


@wrong("ch13-encoder", "keys of zeros at the ends still get weight")
def encoder_round(x, values, bucket, c):
    order = bucket.argsort(stable=True)
    keys, out = F.pad(F.normalize(x, dim=-1)[order], (0, 0, c, c)), []
    v = F.pad(values[order], (0, 0, c, c))
    for s in range(0, len(x), c):
        scores = x[order[s : s + c]] @ keys[s : s + 3 * c].T
        itself = torch.arange(c)[:, None] + c == torch.arange(3 * c)
        scores = scores.masked_fill(itself, -torch.inf)
        out.append(scores.softmax(-1) @ v[s : s + 3 * c])
    return torch.cat(out)[order.argsort()]


@wrong("ch13-encoder", "yours only looks back")
def encoder_round(x, values, bucket, c):
    order = bucket.argsort(stable=True)
    out = torch.zeros_like(values)
    keys = F.normalize(x, dim=-1)
    for s in range(0, len(x), c):
        mine, near = order[s : s + c], order[max(0, s - c) : s + c]
        scores = x[mine] @ keys[near].T
        scores = scores.masked_fill(mine[:, None] == near, -1e5)
        out[mine] = scores.softmax(-1) @ values[near]
    return out


@wrong("ch13-encoder", "still sorted")
def encoder_round(x, values, bucket, c):
    order = bucket.argsort(stable=True)
    keys, out = F.normalize(x, dim=-1), []
    for s in range(0, len(x), c):
        mine, near = order[s : s + c], order[max(0, s - c) : s + 2 * c]
        scores = x[mine] @ keys[near].T
        scores = scores.masked_fill(mine[:, None] == near, -1e5)
        out.append(scores.softmax(-1) @ values[near])
    return torch.cat(out)


@wrong("ch13-encoder", "looks at itself although others")
def encoder_round(x, values, bucket, c):
    t = len(x)
    chunk = torch.empty_like(bucket)
    chunk[bucket.argsort(stable=True)] = torch.arange(t) // c
    far = (chunk[:, None] - chunk).abs() > 1
    scores = x @ F.normalize(x, dim=1).T
    scores = scores.masked_fill(torch.eye(t, dtype=torch.bool), -10.0)
    return scores.masked_fill(far, -torch.inf).softmax(1) @ values


# ---- find the fault ------------------------------------------------------------


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


def _colleague(x, values, buckets, c, places, undo, dim):
    keys = F.normalize(x, dim=-1)
    outputs, lses = [], []
    for bucket in buckets:
        order = bucket.argsort(stable=True)
        rows = torch.arange(len(x)).view(-1, c) if places else order.view(-1, c)
        window = torch.cat([torch.cat([rows[1:2], rows[:-1]]), rows], dim=1)
        q, k, v = (y[order] if places else y for y in (x, keys, values))
        scores = q[rows] @ k[window].mT
        i, j = rows[:, :, None], window[:, None, :]
        scores = scores.masked_fill(j > i, -torch.inf).masked_fill(j == i, -1e5)
        back = order.argsort() if undo else order
        outputs.append((scores.softmax(-1) @ v[window]).flatten(0, 1)[back])
        lses.append(scores.logsumexp(-1).flatten()[back])
    share = torch.stack(lses).softmax(dim)
    return (share[..., None] * torch.stack(outputs)).sum(0)


@wrong("ch13-fault", "all three faults are still there")
def lsh_attention(x, values, buckets, c):
    return _colleague(x, values, buckets, c, places=True, undo=False, dim=-1)


@wrong("ch13-fault", "compares places in the sorted line")
def lsh_attention(x, values, buckets, c):
    return _colleague(x, values, buckets, c, places=True, undo=True, dim=0)


@wrong("ch13-fault", "does `[order]` undo a sort?")
def lsh_attention(x, values, buckets, c):
    return _colleague(x, values, buckets, c, places=False, undo=False, dim=0)


@wrong("ch13-fault", "along which axis is the softmax?")
def lsh_attention(x, values, buckets, c):
    return _colleague(x, values, buckets, c, places=False, undo=True, dim=-1)
