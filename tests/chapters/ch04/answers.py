"""Answers to the exercises of chapter 04."""

import torch

from tests.exercises.answers import right, wrong


@right("ch04-prefix")
def prefix_mask(prefix, size):
    mask = torch.ones(len(prefix), 1, size, size, dtype=torch.bool).tril()
    for n, length in enumerate(prefix.tolist()):
        mask[n, :, :, :length] = True
    return mask


@right("ch04-window")
def window_mask(queries, keys, width):
    square = torch.ones(1, 1, keys, keys, dtype=torch.bool)
    return square.tril().triu(1 - width)[:, :, -queries:]


@wrong("ch04-window", "expected the `width` keys that end")
def window_mask(queries, keys, width):
    mask = torch.zeros(1, 1, queries, keys, dtype=torch.bool)
    for i in range(queries):
        own = i + keys - queries
        mask[..., i, own - width + 1 : own + 1] = True  # a start below 0 wraps
    return mask


@right("ch04-masked-attention")
def masked_attention(query, key, value, tokens, pad):
    b, h, t, k = query.shape
    before = tokens.shape[1] - t
    rows = []
    for n in range(b):
        for i in range(t):
            seen = [j for j in range(before + i + 1) if tokens[n, j] != pad]
            scores = torch.einsum("hk,hjk->hj", query[n, :, i], key[n][:, seen])
            weights = (scores / k**0.5).softmax(dim=-1)
            rows.append(torch.einsum("hj,hjv->hv", weights, value[n][:, seen]))
    return torch.stack(rows).view(b, t, h, -1).transpose(1, 2)


@right("ch04-masked-mean")
def masked_mean(x, mask):
    means = []
    for one, real in zip(x, mask.flatten(1), strict=True):
        rows = one[real]
        means.append(rows.mean(dim=0) if len(rows) else one[:0].sum(dim=0))
    return torch.stack(means)


@right("ch04-repair-weights")
def masked_weights(scores, mask):
    lowest = torch.finfo(scores.dtype).min
    weights = torch.where(mask, scores, lowest).softmax(dim=-1)
    return torch.where(mask, weights, 0)


@right("ch04-repair-decoder")
def decoder_mask(tokens, pad, training):
    t = tokens.shape[1]
    real = tokens.ne(pad).view(-1, 1, 1, t)
    return real.repeat(1, 1, t, 1).tril()


@right("ch04-repair-loss")
def masked_loss(logits, targets, pad):
    total = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=pad, reduction="sum"
    )
    return total / max(1, int((targets != pad).sum()))
