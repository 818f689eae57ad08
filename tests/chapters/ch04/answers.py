"""Answers to the exercises of chapter 04."""

import torch

from tests.exercises.answers import WRONG, right, wrong

# ---- a prefix and then causal ------------------------------------------------


@right("ch04-prefix")
def prefix_mask(prefix, size):
    mask = torch.ones(len(prefix), 1, size, size, dtype=torch.bool).tril()
    for n, length in enumerate(prefix.tolist()):
        mask[n, :, :, :length] = True
    return mask


WRONG["ch04-prefix"] = """
position < prefix[:, None, None, None] -> (position < prefix[0]).expand(len(prefix), 1,
        1, -1)  # prefix of the first sequence is used
return within | before -> return ((position < prefix[:, None]) |
        before).expand(len(prefix), 1, size, size)  # on the axis of the queries
prefix[:, None -> prefix.max().view(1)[:, None  # the shape is (1, 1, 4, 4)
"""

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


WRONG["ch04-window"] = """
key > own -> key > torch.arange(queries)[:, None]  # the lower edge of the window
[None, None] -> [None, None].float()  # expected torch.bool
"""

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


WRONG["ch04-masked-attention"] = r"""
\n    empty -> \n    mask = mask[:, 0] if len(mask) == query.shape[1] else
        mask\n    empty  # takes sentences for heads
tril(s - t) -> tril()  # last query should stand at the last key
scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0.0) -> scores
(dim=-1).masked_fill(empty, 0.0) -> (-1) * mask  # you mask after the softmax
-torch.inf).masked_fill(empty, 0.0) -> -1e9)
(dim=-1).masked_fill(empty, 0.0) -> (-1)  # averages everything
-torch.inf).masked_fill(empty, 0.0) -> -1e9)
(dim=-1).masked_fill(empty, 0.0) -> (-1) * mask  # float16 ends
scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0.0) -> scores
(dim=-1).masked_fill(empty, 0.0) -> (-1) * mask
weights @ value -> weights / weights.sum(-1, keepdim=True).clamp(min=1e-6) @ value
        # a hidden score of 120 leaves
-torch.inf).masked_fill(empty, 0.0) -> -1e4)
(dim=-1).masked_fill(empty, 0.0) -> (-1) * mask  # visible scores near −30000 get
scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0.0) -> scores.exp() * mask
scores.softmax(dim=-1).masked_fill(empty, 0.0) -> scores
weights @ value -> weights / weights.sum(-1, keepdim=True).clamp(min=1e-6) @ value
        # visible scores near −30000 get 0
-torch.inf).masked_fill(empty, 0.0) -> -1e4)
        # beside visible scores near −30000 a hidden key gets
-torch.inf).masked_fill(empty, 0.0) -> -torch.inf)
(dim=-1).masked_fill(empty, 0.0) -> (-1).nan_to_num(0)
        # a NaN of a visible score has gone
weights @ value -> torch.nn.functional.scaled_dot_product_attention(query, key, value,
        mask)  # is what you build here
"""

# ---- the masked mean ---------------------------------------------------------


@right("ch04-masked-mean")
def masked_mean(x, mask):
    means = []
    for one, real in zip(x, mask.flatten(1), strict=True):
        rows = one[real]
        means.append(rows.mean(dim=0) if len(rows) else one[:0].sum(dim=0))
    return torch.stack(means)


WRONG["ch04-masked-mean"] = """
x.masked_fill(~real, 0.0) -> (x.nan_to_num(0, 0, 0) * real)
real.sum(dim=1).clamp(min=1) -> real.sum(dim=1)
return total / count -> return torch.where(count > 0, total / count, 0)
        # 0/0 was replaced after the division
real.sum(dim=1).clamp(min=1) -> (real.sum(dim=1) + 1e-3)
        # expected the sum over the real tokens, divided by
mask[:, -> mask.sort(-1, descending=True)[0][:,  # these are the first tokens
x.masked_fill( -> x.masked_fill_(  # changes its argument `x` in place
x.masked_fill(~real, 0.0) -> (x.nan_to_num(0, 0, 0) * real)
        # a NaN at a real token has gone
real.sum(dim=1).clamp(min=1) -> real.sum(dim=1)
return total / count -> return (total / count).nan_to_num(0)
        # a NaN at a real token has gone from the mean
return total / count
    return x.masked_fill(~real, torch.nan).nanmean(1).nan_to_num(0)
        # nanmean leaves it out
    return x[mask[:, 0, 0]].mean(dim=0)  # all sequences are pooled
"""

# ---- broken: the weights -----------------------------------------------------


@right("ch04-repair-weights")
def masked_weights(scores, mask):
    lowest = torch.finfo(scores.dtype).min
    weights = torch.where(mask, scores, lowest).softmax(dim=-1)
    return torch.where(mask, weights, 0)


WRONG["ch04-repair-weights"] = r"""
scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0.0) -> scores * mask
return weights.masked_fill(empty, 0.0) -> return weights  # exp(0) is 1
-torch.inf).masked_fill(empty, 0.0) -> -1e9)
return weights.masked_fill(empty, 0.0) -> return weights
        # gets the same weight for every key
\n    empty -> \n    mask = mask[:, :1, :1]\n    empty
        # expected the softmax over the keys that the mask allows
scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0.0) -> scores.exp() * mask
scores.softmax(dim=-1) -> (scores / scores.sum(-1, True)).nan_to_num(0)
        # the gradient of scores holds NaN
-torch.inf).masked_fill(empty, 0.0) -> -1e9)
return weights.masked_fill(empty, 0.0) -> return weights * mask  # float16 ends
scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0.0) -> scores
scores.softmax(dim=-1) -> scores.softmax(dim=-1) * mask
return weights.masked_fill(empty, 0.0) -> return weights / weights.sum(-1,
        keepdim=True).clamp(min=1e-6)  # a hidden score of 120 leaves
-torch.inf).masked_fill(empty, 0.0) -> -20)
return weights.masked_fill(empty, 0.0) -> return weights * mask
        # visible scores near −30000 get
scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0.0) -> scores.exp() * mask
scores.softmax(dim=-1) -> scores
return weights.masked_fill(empty, 0.0) -> return weights / weights.sum(-1,
        keepdim=True).clamp(min=1e-6)  # visible scores near −30000 get 0
-torch.inf).masked_fill(empty, 0.0) -> -1e4)
        # beside visible scores near −30000 a hidden key gets
-torch.inf).masked_fill(empty, 0.0) -> -torch.inf)
return weights.masked_fill(empty, 0.0) -> return weights.nan_to_num(0)
        # a NaN of a visible score has gone
"""

# ---- broken: the decoder's mask ----------------------------------------------


@right("ch04-repair-decoder")
def decoder_mask(tokens, pad, training):
    t = tokens.shape[1]
    real = tokens.ne(pad).view(-1, 1, 1, t)
    return real.repeat(1, 1, t, 1).tril()


WRONG["ch04-repair-decoder"] = """
square.tril() -> (square.tril() if training else square)
        # future is seen when training is False
return real & -> return real & real.mT &  # the queries of padding are masked as well
(tokens != pad) -> tokens.sub_(pad).bool()  # changes its argument `tokens` in place
"""

# ---- broken: the loss --------------------------------------------------------


@right("ch04-repair-loss")
def masked_loss(logits, targets, pad):
    total = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=pad, reduction="sum"
    )
    return total / max(1, int((targets != pad).sum()))


WRONG["ch04-repair-loss"] = """
return summed / real.sum().clamp(min=1)
    return summed / real.sum()  # the mean of nothing is 0/0
    return (summed / real.sum()).nan_to_num(0)  # a NaN of a real target has gone
    return (summed / real.sum()).item()  # expected a tensor, got float
logits[real] -> logits[real].masked_fill(torch.arange(logits.shape[-1]) == pad, -1e4)
        # expected the mean of −log p
log_softmax(dim=-1) -> softmax(dim=-1).log()
        # infinite: a small probability is rounded to 0
"""
