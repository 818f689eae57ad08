"""Answers to the exercises of chapter 04."""

import torch

from tests.exercises.answers import right, wrong

# ---- a prefix and then causal ------------------------------------------------


@right("ch04-prefix")
def prefix_mask(prefix, size):
    mask = torch.ones(len(prefix), 1, size, size, dtype=torch.bool).tril()
    for n, length in enumerate(prefix.tolist()):
        mask[n, :, :, :length] = True
    return mask


@wrong("ch04-prefix", "prefix of the first sequence is used")
def prefix_mask(prefix, size):
    mask = torch.ones(len(prefix), 1, size, size, dtype=torch.bool).tril()
    mask[..., : prefix[0]] = True
    return mask


@wrong("ch04-prefix", "on the axis of the queries")
def prefix_mask(prefix, size):
    j = torch.arange(size)
    mask = (j < prefix[:, None]) | (j <= j[:, None])
    return mask.expand(len(prefix), 1, size, size)


@wrong("ch04-prefix", "the shape is (1, 1, 4, 4)")
def prefix_mask(prefix, size):
    mask = torch.ones(1, 1, size, size, dtype=torch.bool).tril()
    for length in prefix:
        mask[..., :length] = True
    return mask


# ---- a causal window ---------------------------------------------------------


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


@wrong("ch04-window", "the lower edge of the window")
def window_mask(queries, keys, width):
    square = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    return square.tril(keys - queries).triu(1 - width)


@wrong("ch04-window", "expected torch.bool")
def window_mask(queries, keys, width):
    square = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    square = square.tril(keys - queries).triu(keys - queries + 1 - width)
    return torch.zeros(1, 1, queries, keys).masked_fill(~square, -torch.inf)


# ---- masked attention, whole ---------------------------------------------------


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


@wrong("ch04-masked-attention", "takes sentences for heads")
def masked_attention(query, key, value, tokens, pad):
    t = tokens.shape[1]
    mask = (tokens != pad)[:, None, :] & torch.ones(t, t).tril().bool()
    if len(tokens) != query.shape[1]:
        mask = mask[:, None]  # it raised, so I added an axis here
    empty = ~mask.any(dim=-1, keepdim=True)
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0)
    return scores.softmax(dim=-1).masked_fill(empty, 0) @ value


@wrong("ch04-masked-attention", "last query should stand at the last key")
def masked_attention(query, key, value, tokens, pad):
    t, s = query.shape[2], tokens.shape[1]
    mask = (tokens != pad)[:, None, None] & torch.ones(t, s).tril().bool()
    empty = ~mask.any(dim=-1, keepdim=True)
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0)
    return scores.softmax(dim=-1).masked_fill(empty, 0) @ value


@wrong("ch04-masked-attention", "you mask after the softmax")
def masked_attention(query, key, value, tokens, pad):
    t = tokens.shape[1]
    mask = (tokens != pad)[:, None, None] & torch.ones(t, t).tril().bool()
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(dim=-1)
    return (weights * mask) @ value


@wrong("ch04-masked-attention", "averages everything")
def masked_attention(query, key, value, tokens, pad):
    t = tokens.shape[1]
    mask = (tokens != pad)[:, None, None] & torch.ones(t, t).tril().bool()
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return scores.masked_fill(~mask, -1e9).softmax(dim=-1) @ value


@wrong("ch04-masked-attention", "without overflow")
def masked_attention(query, key, value, tokens, pad):
    t = tokens.shape[1]
    mask = (tokens != pad)[:, None, None] & torch.ones(t, t).tril().bool()
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return (scores.masked_fill(~mask, -1e9).softmax(dim=-1) * mask) @ value


@wrong("ch04-masked-attention", "a hidden score of 120 leaves")
@wrong("ch04-masked-attention", "visible scores near −30000 get")
def masked_attention(query, key, value, tokens, pad):
    t, s = query.shape[2], tokens.shape[1]
    mask = (tokens != pad)[:, None, None] & torch.ones(t, s).tril(s - t).bool()
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1) * mask
    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-6) @ value


@wrong("ch04-masked-attention", "visible scores near −30000 get")
def masked_attention(query, key, value, tokens, pad):
    t, s = query.shape[2], tokens.shape[1]
    mask = (tokens != pad)[:, None, None] & torch.ones(t, s).tril(s - t).bool()
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return (scores.masked_fill(~mask, -1e4).softmax(dim=-1) * mask) @ value


@wrong("ch04-masked-attention", "a hidden score of 120 leaves")
@wrong("ch04-masked-attention", "visible scores near −30000 get")
def masked_attention(query, key, value, tokens, pad):
    t, s = query.shape[2], tokens.shape[1]
    mask = (tokens != pad)[:, None, None] & torch.ones(t, s).tril(s - t).bool()
    scores = query @ key.mT / query.shape[-1] ** 0.5
    powers = scores.exp() * mask
    return powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-6) @ value


@wrong("ch04-masked-attention", "beside visible scores near −30000 a hidden key gets")
def masked_attention(query, key, value, tokens, pad):
    t, s = query.shape[2], tokens.shape[1]
    mask = (tokens != pad)[:, None, None] & torch.ones(t, s).tril(s - t).bool()
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = scores.masked_fill(~mask, -1e4).softmax(dim=-1)
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0) @ value


@wrong("ch04-masked-attention", "a NaN of a visible score has gone")
def masked_attention(query, key, value, tokens, pad):
    t, s = query.shape[2], tokens.shape[1]
    mask = (tokens != pad)[:, None, None] & torch.ones(t, s).tril(s - t).bool()
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return weights.nan_to_num(0) @ value


# ---- the masked mean ---------------------------------------------------------


@right("ch04-masked-mean")
def masked_mean(x, mask):
    means = []
    for one, real in zip(x, mask.flatten(1), strict=True):
        rows = one[real]
        means.append(rows.mean(dim=0) if len(rows) else one[:0].sum(dim=0))
    return torch.stack(means)


@wrong("ch04-masked-mean", "0/0 was replaced after the division")
def masked_mean(x, mask):
    real = mask[:, 0, 0, :, None]
    total, count = (x.nan_to_num(0, 0, 0) * real).sum(dim=1), real.sum(dim=1)
    return torch.where(count > 0, total / count, 0)


@wrong("ch04-masked-mean", "expected the sum over the real tokens, divided by")
def masked_mean(x, mask):
    real = mask[:, 0, 0, :, None]
    return x.masked_fill(~real, 0).sum(dim=1) / (real.sum(dim=1) + 1e-3)


@wrong("ch04-masked-mean", "these are the first tokens")
def masked_mean(x, mask):
    counts = mask.sum(dim=-1).flatten().tolist()
    pairs = zip(x, counts, strict=True)
    return torch.stack([one[:n].sum(dim=0) / max(n, 1) for one, n in pairs])


@wrong("ch04-masked-mean", "changes its argument `x` in place")
def masked_mean(x, mask):
    real = mask[:, 0, 0, :, None]
    return x.masked_fill_(~real, 0).sum(dim=1) / real.sum(dim=1).clamp(min=1)


@wrong("ch04-masked-mean", "a NaN at a real token has gone")
def masked_mean(x, mask):
    real = mask[:, 0, 0, :, None]
    return (x.nan_to_num(0, 0, 0) * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)


@wrong("ch04-masked-mean", "a NaN at a real token has gone from the mean")
def masked_mean(x, mask):
    real = mask[:, 0, 0, :, None]
    return (x.masked_fill(~real, 0).sum(dim=1) / real.sum(dim=1)).nan_to_num(0)


# ---- broken: the weights -----------------------------------------------------


@right("ch04-repair-weights")
def masked_weights(scores, mask):
    lowest = torch.finfo(scores.dtype).min
    weights = torch.where(mask, scores, lowest).softmax(dim=-1)
    return torch.where(mask, weights, 0)


@wrong("ch04-repair-weights", "exp(0) is 1")
def masked_weights(scores, mask):
    return (scores * mask).softmax(dim=-1)


@wrong("ch04-repair-weights", "gets the same weight for every key")
def masked_weights(scores, mask):
    return scores.masked_fill(~mask, -1e9).softmax(dim=-1)


@wrong("ch04-repair-weights", "expected the softmax over the keys that the mask allows")
def masked_weights(scores, mask):
    mask = mask[:, :1, :1]  # right for padding, and for nothing else
    empty = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0)
    return scores.softmax(dim=-1).masked_fill(empty, 0)


@wrong("ch04-repair-weights", "the gradient of scores holds NaN")
def masked_weights(scores, mask):
    powers = scores.exp() * mask
    return (powers / powers.sum(dim=-1, keepdim=True)).nan_to_num(0)


@wrong("ch04-repair-weights", "without overflow")
def masked_weights(scores, mask):
    return scores.masked_fill(~mask, -1e9).softmax(dim=-1) * mask


@wrong("ch04-repair-weights", "a hidden score of 120 leaves")
@wrong("ch04-repair-weights", "visible scores near −30000 get")
def masked_weights(scores, mask):
    weights = scores.softmax(dim=-1) * mask
    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-6)


@wrong("ch04-repair-weights", "visible scores near −30000 get")
def masked_weights(scores, mask):
    return scores.masked_fill(~mask, -20).softmax(dim=-1) * mask


@wrong("ch04-repair-weights", "a hidden score of 120 leaves")
@wrong("ch04-repair-weights", "visible scores near −30000 get")
def masked_weights(scores, mask):
    powers = scores.exp() * mask
    return powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-6)


@wrong("ch04-repair-weights", "beside visible scores near −30000 a hidden key gets")
def masked_weights(scores, mask):
    weights = scores.masked_fill(~mask, -1e4).softmax(dim=-1)
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0)


@wrong("ch04-repair-weights", "a NaN of a visible score has gone")
def masked_weights(scores, mask):
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1).nan_to_num(0)


# ---- broken: the decoder's mask ----------------------------------------------


@right("ch04-repair-decoder")
def decoder_mask(tokens, pad, training):
    t = tokens.shape[1]
    real = tokens.ne(pad).view(-1, 1, 1, t)
    return real.repeat(1, 1, t, 1).tril()


@wrong("ch04-repair-decoder", "future is seen when training is False")
def decoder_mask(tokens, pad, training):
    t = tokens.shape[1]
    mask = (tokens != pad)[:, None, None, :].expand(-1, 1, t, t)
    if training:
        mask = mask & torch.ones(t, t, dtype=torch.bool).tril()
    return mask


@wrong("ch04-repair-decoder", "the queries of padding are masked as well")
def decoder_mask(tokens, pad, training):
    real = tokens != pad
    return (real[:, None, None, :] & real[:, None, :, None]).tril()


@wrong("ch04-repair-decoder", "changes its argument `tokens` in place")
def decoder_mask(tokens, pad, training):
    t = tokens.shape[1]
    tokens -= pad
    return tokens.bool()[:, None, None, :] & torch.ones(t, t).tril().bool()


# ---- broken: the loss --------------------------------------------------------


@right("ch04-repair-loss")
def masked_loss(logits, targets, pad):
    total = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=pad, reduction="sum"
    )
    return total / max(1, int((targets != pad).sum()))


@wrong("ch04-repair-loss", "the mean of nothing is 0/0")
def masked_loss(logits, targets, pad):
    return torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, ignore_index=pad
    )


@wrong("ch04-repair-loss", "a NaN of a real target has gone")
def masked_loss(logits, targets, pad):
    return torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, ignore_index=pad
    ).nan_to_num(0)


@wrong("ch04-repair-loss", "expected a tensor, got float")
def masked_loss(logits, targets, pad):
    losses = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, reduction="none"
    )
    real = targets != pad
    return (losses * real).sum().item() / max(real.sum().item(), 1)


@wrong("ch04-repair-loss", "expected the mean of −log p")
def masked_loss(logits, targets, pad):
    words = torch.arange(logits.shape[-1])
    losses = torch.nn.functional.cross_entropy(
        logits.masked_fill(words == pad, -1e4).transpose(1, 2),
        targets,
        reduction="none",
    )
    real = targets != pad
    return (losses * real).sum() / real.sum().clamp(min=1)


@wrong("ch04-repair-loss", "infinite: a small probability is rounded to 0")
def masked_loss(logits, targets, pad):
    logs = logits.softmax(dim=-1).log()
    losses = -logs.gather(2, targets[..., None])[..., 0]
    real = targets != pad
    return losses.masked_fill(~real, 0).sum() / real.sum().clamp(min=1)
