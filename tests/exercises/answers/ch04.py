"""Answers to the exercises of chapter 04."""

import torch

from tests.exercises.answers import right, wrong

# ---- padding on the left -----------------------------------------------------


@right("ch04-left-padding")
def left_padding_mask(lengths, size):
    mask = torch.zeros(len(lengths), 1, 1, size, dtype=torch.bool)
    for n, length in enumerate(lengths.tolist()):
        mask[n, 0, 0, size - length :] = True
    return mask


@wrong("ch04-left-padding", "[-0:] is the whole row")
def left_padding_mask(lengths, size):
    mask = torch.zeros(len(lengths), 1, 1, size, dtype=torch.bool)
    for n, length in enumerate(lengths):
        mask[n, ..., -length:] = True
    return mask


@wrong("ch04-left-padding", "changes its argument `lengths` in place")
def left_padding_mask(lengths, size):
    lengths.neg_().add_(size)
    return (torch.arange(size) >= lengths[:, None])[:, None, None, :]


@wrong("ch04-left-padding", "the dtype is torch.int32, expected torch.bool")
def left_padding_mask(lengths, size):
    return (torch.arange(size) >= size - lengths[:, None]).int()[:, None, None, :]


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


# ---- the masked mean ---------------------------------------------------------


@right("ch04-masked-mean")
def masked_mean(x, mask):
    means = []
    for one, real in zip(x, mask.flatten(1), strict=True):
        rows = one[real]
        means.append(rows.mean(dim=0) if len(rows) else one[:0].sum(dim=0))
    return torch.stack(means)


@wrong("ch04-masked-mean", "0/0 was replaced, but behind the division")
def masked_mean(x, mask):
    real = mask[:, 0, 0, :, None]
    total, count = (x.nan_to_num(0, 0, 0) * real).sum(dim=1), real.sum(dim=1)
    return torch.where(count > 0, total / count, 0)


@wrong("ch04-masked-mean", "with nothing added to it")
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


# ---- broken: the weights -----------------------------------------------------


@right("ch04-repair-weights")
def masked_weights(energies, mask):
    lowest = torch.finfo(energies.dtype).min
    weights = torch.where(mask, energies, lowest).softmax(dim=-1)
    return torch.where(mask, weights, 0)


@wrong("ch04-repair-weights", "exp(0) is 1")
def masked_weights(energies, mask):
    return (energies * mask).softmax(dim=-1)


@wrong("ch04-repair-weights", "without overflow")
def masked_weights(energies, mask):
    return energies.masked_fill(~mask, -1e9).softmax(dim=-1)


@wrong("ch04-repair-weights", "a real energy may be lower")
def masked_weights(energies, mask):
    weights = energies.masked_fill(~mask, -1e4).softmax(dim=-1)
    return weights * mask.any(dim=-1, keepdim=True)


@wrong("ch04-repair-weights", "the gradient of energies holds NaN")
def masked_weights(energies, mask):
    powers = energies.exp() * mask
    return (powers / powers.sum(dim=-1, keepdim=True)).nan_to_num(0)


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
