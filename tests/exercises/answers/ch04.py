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


WRONG["ch04-prefix"] = {
    "prefix of the first sequence is used": (
        "position < prefix[:, None, None, None]",
        "(position < prefix[0]).expand(len(prefix), 1, 1, -1)",
    ),
    "on the axis of the queries": (
        "return within | before",
        "return ((position < prefix[:, None]) | before).expand(len(prefix), 1, size, "
        "size)",
    ),
    "the shape is (1, 1, 4, 4)": ("prefix[:, None", "prefix.max().view(1)[:, None"),
}

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


WRONG["ch04-window"] = {
    "the lower edge of the window": (
        "key > own",
        "key > torch.arange(queries)[:, None]",
    ),
    "expected torch.bool": ("[None, None]", "[None, None].float()"),
}

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


FILLED = "scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0.0)"
EMPTIED = "softmax(dim=-1).masked_fill(empty, 0.0)"
SUMMED = "/ weights.sum(-1, keepdim=True).clamp(min=1e-6)"
WRONG["ch04-masked-attention"] = {
    "takes sentences for heads": (
        "    empty",
        "    mask = mask[:, 0] if len(mask) == query.shape[1] else mask\n    empty",
    ),
    "last query should stand at the last key": ("tril(s - t)", "tril()"),
    "you mask after the softmax": [(FILLED, "scores"), (EMPTIED, "softmax(-1) * mask")],
    "averages everything": [
        (FILLED, "scores.masked_fill(~mask, -1e9)"),
        (EMPTIED, "softmax(-1)"),
    ],
    "without overflow": [
        (FILLED, "scores.masked_fill(~mask, -1e9)"),
        (EMPTIED, "softmax(-1) * mask"),
    ],
    "a hidden score of 120 leaves": [
        (FILLED, "scores"),
        (EMPTIED, "softmax(-1) * mask"),
        ("weights @ value", f"weights {SUMMED} @ value"),
    ],
    "visible scores near −30000 get": [
        (FILLED, "scores.masked_fill(~mask, -1e4)"),
        (EMPTIED, "softmax(-1) * mask"),
    ],
    "visible scores near −30000 get 0": [
        (FILLED, "scores.exp() * mask"),
        (f"scores.{EMPTIED}", "scores"),
        ("weights @ value", f"weights {SUMMED} @ value"),
    ],
    "beside visible scores near −30000 a hidden key gets": (
        FILLED,
        "scores.masked_fill(~mask, -1e4)",
    ),
    "a NaN of a visible score has gone": [
        (FILLED, "scores.masked_fill(~mask, -torch.inf)"),
        (EMPTIED, "softmax(-1).nan_to_num(0)"),
    ],
    "is what you build here": (
        "weights @ value",
        "torch.nn.functional.scaled_dot_product_attention(query, key, value, mask)",
    ),
}

# ---- the masked mean ---------------------------------------------------------


@right("ch04-masked-mean")
def masked_mean(x, mask):
    means = []
    for one, real in zip(x, mask.flatten(1), strict=True):
        rows = one[real]
        means.append(rows.mean(dim=0) if len(rows) else one[:0].sum(dim=0))
    return torch.stack(means)


CLAMPED = "real.sum(dim=1).clamp(min=1)"
SWEPT = ("x.masked_fill(~real, 0.0)", "(x.nan_to_num(0, 0, 0) * real)")
WRONG["ch04-masked-mean"] = {
    "0/0 was replaced after the division": [
        SWEPT,
        (CLAMPED, "real.sum(dim=1)"),
        ("return total / count", "return torch.where(count > 0, total / count, 0)"),
    ],
    "expected the sum over the real tokens, divided by": (
        CLAMPED,
        "(real.sum(dim=1) + 1e-3)",
    ),
    "these are the first tokens": ("mask[:,", "mask.sort(-1, descending=True)[0][:,"),
    "changes its argument `x` in place": ("x.masked_fill(", "x.masked_fill_("),
    "a NaN at a real token has gone": SWEPT,
    "a NaN at a real token has gone from the mean": [
        (CLAMPED, "real.sum(dim=1)"),
        ("return total / count", "return (total / count).nan_to_num(0)"),
    ],
    "nanmean leaves it out": (
        "return total / count",
        "return x.masked_fill(~real, torch.nan).nanmean(1).nan_to_num(0)",
    ),
    "all sequences are pooled": (
        "return total / count",
        "return x[mask[:, 0, 0]].mean(dim=0)",
    ),
}

# ---- broken: the weights -----------------------------------------------------


@right("ch04-repair-weights")
def masked_weights(scores, mask):
    lowest = torch.finfo(scores.dtype).min
    weights = torch.where(mask, scores, lowest).softmax(dim=-1)
    return torch.where(mask, weights, 0)


LAST = "return weights.masked_fill(empty, 0.0)"
WRONG["ch04-repair-weights"] = {
    "exp(0) is 1": [(FILLED, "scores * mask"), (LAST, "return weights")],
    "gets the same weight for every key": [
        (FILLED, "scores.masked_fill(~mask, -1e9)"),
        (LAST, "return weights"),
    ],
    # right for padding, and for nothing else
    "expected the softmax over the keys that the mask allows": (
        "    empty",
        "    mask = mask[:, :1, :1]\n    empty",
    ),
    "the gradient of scores holds NaN": [
        (FILLED, "scores.exp() * mask"),
        ("scores.softmax(dim=-1)", "(scores / scores.sum(-1, True)).nan_to_num(0)"),
    ],
    "without overflow": [
        (FILLED, "scores.masked_fill(~mask, -1e9)"),
        (LAST, "return weights * mask"),
    ],
    "a hidden score of 120 leaves": [
        (FILLED, "scores"),
        ("scores.softmax(dim=-1)", "scores.softmax(dim=-1) * mask"),
        (LAST, f"return weights {SUMMED}"),
    ],
    "visible scores near −30000 get": [
        (FILLED, "scores.masked_fill(~mask, -20)"),
        (LAST, "return weights * mask"),
    ],
    "visible scores near −30000 get 0": [
        (FILLED, "scores.exp() * mask"),
        ("scores.softmax(dim=-1)", "scores"),
        (LAST, f"return weights {SUMMED}"),
    ],
    "beside visible scores near −30000 a hidden key gets": (
        FILLED,
        "scores.masked_fill(~mask, -1e4)",
    ),
    "a NaN of a visible score has gone": [
        (FILLED, "scores.masked_fill(~mask, -torch.inf)"),
        (LAST, "return weights.nan_to_num(0)"),
    ],
}

# ---- broken: the decoder's mask ----------------------------------------------


@right("ch04-repair-decoder")
def decoder_mask(tokens, pad, training):
    t = tokens.shape[1]
    real = tokens.ne(pad).view(-1, 1, 1, t)
    return real.repeat(1, 1, t, 1).tril()


WRONG["ch04-repair-decoder"] = {
    "future is seen when training is False": (
        "square.tril()",
        "(square.tril() if training else square)",
    ),
    "the queries of padding are masked as well": (
        "return real &",
        "return real & real.mT &",
    ),
    "changes its argument `tokens` in place": (
        "(tokens != pad)",
        "tokens.sub_(pad).bool()",
    ),
}

# ---- broken: the loss --------------------------------------------------------


@right("ch04-repair-loss")
def masked_loss(logits, targets, pad):
    total = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=pad, reduction="sum"
    )
    return total / max(1, int((targets != pad).sum()))


LOSS = "return summed / real.sum().clamp(min=1)"
WRONG["ch04-repair-loss"] = {
    "the mean of nothing is 0/0": (LOSS, "return summed / real.sum()"),
    "a NaN of a real target has gone": (
        LOSS,
        "return (summed / real.sum()).nan_to_num(0)",
    ),
    "expected a tensor, got float": (LOSS, "return (summed / real.sum()).item()"),
    "expected the mean of −log p": (
        "logits[real]",
        "logits[real].masked_fill(torch.arange(logits.shape[-1]) == pad, -1e4)",
    ),
    "infinite: a small probability is rounded to 0": (
        "log_softmax(dim=-1)",
        "softmax(dim=-1).log()",
    ),
}
