"""Public checks of the exercises of chapter 04; ``__init__.py`` says how they work.

What a judge compares with is written here, apart from the module and from the model
answers, and so are the mistakes it knows by name.
"""

import torch
from torch import Tensor

from annotated.checks import Differentiated, expect, public
from annotated.checks.material import draw, expect_gradients, tolerance_of

EXCHANGED = "True and False are exchanged: True = may attend"
HEADLESS = "the axis of the heads is missing: masks have four axes"


def whole(*numbers: int, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.tensor(numbers, dtype=dtype)


def grid(queries: int, keys: int) -> tuple[Tensor, Tensor]:
    """Positions of queries as a column, of keys as a row."""
    return torch.arange(queries)[:, None], torch.arange(keys)


# ---- padding on the left -----------------------------------------------------


def judge_left_padding(mask, lengths, size):
    numbers = lengths.tolist()
    rows = [[False] * (size - n) + [True] * n for n in numbers]
    right = torch.tensor(rows)[:, None, None, :]
    first = torch.tensor([[True] * n + [False] * (size - n) for n in numbers])
    place, start = torch.arange(size), (size - lengths.long())[:, None]
    slices = torch.zeros(len(numbers), size, dtype=torch.bool)
    for row, n in zip(slices, numbers, strict=True):
        row[-n:] = True
    rows = {
        "the first tokens are True; here padding comes first, real tokens last": first,
        EXCHANGED: place < start,
        "these are the places behind as many tokens as are real; the last ones are "
        "real, `lengths` of them": ~first,
        "a sequence of length 0 has no real token: [-0:] is the whole row": slices,
        "one real token is missing in each row": place > start,
        "one place too many is True in each row": place >= start - 1,
        "the length of the first sequence is used for all": (
            (place >= start[:1]).expand(slices.shape)
        ),
        "the mask is as wide as the longest sequence; it should be `size` wide": (
            (place >= start)[:, size - max(numbers) :]
        ),
    }
    axes = {
        "two axes of size 1, for heads and queries, are missing: [:, None, None, :]": (
            right[:, 0, 0]
        ),
        HEADLESS + ", (b, 1, 1, s)": right[:, 0],
        "the tokens stand on the axis of the queries: (b, 1, 1, s), keys last": (
            right.mT
        ),
        "the sequences stand on the axis of the queries: batch first, (b, 1, 1, s)": (
            right.transpose(0, 2)
        ),
    }
    expect(
        mask,
        right,
        hint="expected True at the last `lengths[n]` places of row n, False before",
        mistakes={name: row[:, None, None] for name, row in rows.items()} | axes,
    )


@public("ch04-left-padding", whole(3, 0, 1), 4)
def _(mask, lengths, size):
    "the example: lengths 3, 0 and 1 in rows of 4"
    judge_left_padding(mask, lengths, size)


@public("ch04-left-padding", whole(2, 5), 7)
def _(mask, lengths, size):
    "the batch may be padded further than its longest sequence"
    judge_left_padding(mask, lengths, size)


@public("ch04-left-padding", whole(4, 1, 3, 2), 4)
def _(mask, lengths, size):
    "as many sequences as places"
    judge_left_padding(mask, lengths, size)


# ---- a prefix and then causal ------------------------------------------------


def judge_prefix(mask, prefix, size):
    numbers = prefix.tolist()
    rows = [
        [[j <= max(i, n - 1) for j in range(size)] for i in range(size)]
        for n in numbers
    ]
    right = torch.tensor(rows)[:, None]
    i, j = grid(size, size)
    n = prefix.long()[:, None, None, None]
    mistakes = {
        "joined by &: a key may be seen if it is in the prefix OR not behind the "
        "query": (j < n) & (j <= i),
        "this is the causal mask: within the prefix, everyone sees all of it": (
            (j <= i).expand(right.shape)
        ),
        "only the prefix is seen: behind it, a position sees what came before, too": (
            (j < n).expand(right.shape)
        ),
        "a position does not see itself: its own key is no future": (j < n) | (j < i),
        "the prefix is taken one too long: it is the places 0 to prefix − 1": (
            (j <= n) | (j <= i)
        ),
        "the prefix is taken one too short: it is the places 0 to prefix − 1": (
            (j < n - 1) | (j <= i)
        ),
        "positions of the prefix see all that comes behind it as well": (
            (i < n) | (j <= i)
        ),
        "behind the prefix, the future is seen and the past is not: tril, not triu": (
            (j < n) | (j >= i)
        ),
        EXCHANGED: ~right,
        "queries and keys are exchanged: rows are queries, columns keys": right.mT,
        "the prefix of the first sequence is used for all": (
            right[:1].expand(right.shape)
        ),
        HEADLESS + ", (b, 1, t, t)": right[:, 0],
    }
    if len(numbers) == size:
        side = (j < prefix.long()[:, None]) | (j <= i)
        hint = "the prefixes stand on the axis of the queries: prefix[:, None, None, "
        mistakes[hint + "None] has shape (b, 1, 1, 1)"] = side.expand(right.shape)
    expect(
        mask,
        right,
        hint="expected True where the key is in the prefix or not behind the query",
        mistakes=mistakes,
    )


@public("ch04-prefix", whole(2, 0), 4)
def _(mask, prefix, size):
    "the example: prefixes of 2 and of 0, 4 positions"
    judge_prefix(mask, prefix, size)


@public("ch04-prefix", whole(3, 1, 5), 6)
def _(mask, prefix, size):
    "three prefixes"
    judge_prefix(mask, prefix, size)


@public("ch04-prefix", whole(4, 2, 1, 3), 4)
def _(mask, prefix, size):
    "as many sequences as positions, and one that is all prefix"
    judge_prefix(mask, prefix, size)


# ---- a causal window ---------------------------------------------------------


def judge_window(mask, queries, keys, width):
    right = torch.zeros(1, 1, queries, keys, dtype=torch.bool)
    for row in range(queries):
        own = row + keys - queries
        right[0, 0, row, max(0, own - width + 1) : own + 1] = True
    i, j = grid(queries, keys)
    p = i + keys - queries
    squares = {
        "no window: only the last `width` keys up to one's own are seen": j <= p,
        "the future is seen: a query looks no further than its own key": j > p - width,
        "the window reaches into the future: it ends at one's own key": (
            (j - p).abs() < width
        ),
        "the window is one too wide: one's own key is one of the `width`": (
            (j <= p) & (j >= p - width)
        ),
        "the window is one too narrow: it holds `width` keys": (
            (j <= p) & (j > p - width + 1)
        ),
        "a query does not see its own key: the window ends with it": (
            (j < p) & (j >= p - width)
        ),
        "query i stands at key i; the last query should stand at the last key": (
            (j <= i) & (j > i - width)
        ),
        "the lower edge of the window is not shifted: query i stands at key "
        "i + keys − queries": (j <= p) & (j > i - width),
        "the upper edge of the window is not shifted: query i stands at key "
        "i + keys − queries": (j <= i) & (j > p - width),
        "these are the keys before the window": j <= p - width,
        EXCHANGED: (j > p) | (j <= p - width),
    }
    axes = {
        "queries and keys are exchanged: rows are queries, columns keys": right.mT,
        "two axes of size 1, for batch and heads, are missing: [None, None]": (
            right[0, 0]
        ),
    }
    expect(
        mask,
        right,
        hint="expected the `width` keys that end with the query's own, no others",
        mistakes={name: square[None, None] for name, square in squares.items()} | axes,
    )


@public("ch04-window", 3, 5, 2)
def _(mask, queries, keys, width):
    "the example: 3 queries, 5 keys, a window of 2"
    judge_window(mask, queries, keys, width)


@public("ch04-window", 6, 6, 3)
def _(mask, queries, keys, width):
    "as many queries as keys, a window of 3"
    judge_window(mask, queries, keys, width)


@public("ch04-window", 2, 7, 4)
def _(mask, queries, keys, width):
    "the last 2 queries of 7 keys, a window of 4"
    judge_window(mask, queries, keys, width)


# ---- the masked mean ---------------------------------------------------------


def right_mean(x, mask):
    rows = [one[real] for one, real in zip(x, mask[:, 0, 0], strict=True)]
    return torch.stack([row.sum(dim=0) / max(len(row), 1) for row in rows])


def judge_mean(mean, x, mask):
    dtype, wide, real = x.dtype, x.double(), mask[:, 0, 0, :, None]
    right = right_mean(wide, mask)
    if isinstance(mean, Tensor) and mean.isnan().any():
        if not x.isfinite().all():
            raise AssertionError(
                "the result holds NaN: here the padding does, or infinity, and 0 times "
                "that is NaN; fill it with zeros first"
            )
        if not mask.any(dim=-1).all():
            raise AssertionError(
                "NaN: a sequence with no real token should give zeros, not 0/0"
            )
    total, counts = wide.masked_fill(~real, 0).sum(dim=1), real.sum(dim=1)
    mistakes = {
        "the sum is divided by t, which counts the padding too": total / x.shape[1],
        "the mask is not used": wide.mean(dim=1),
        "this is the mean of the padding: True = a real token": right_mean(wide, ~mask),
        "the sum is not divided by the number of real tokens": total,
        "every sequence has its own number of real tokens; you use the largest": (
            total / counts.max().clamp(min=1)
        ),
        "every sequence has its own number of real tokens; you use that of the batch": (
            total / counts.sum().clamp(min=1)
        ),
        "padding may stand anywhere: take the tokens where the mask is True, not the "
        "first ones": torch.stack(
            [
                one[: int(n)].sum(dim=0) / max(int(n), 1)
                for one, n in zip(wide, counts, strict=True)
            ]
        ),
        "this is the mean of each vector's entries; wanted is that of the tokens": (
            wide.mean(dim=2)
        ),
        "the axis of the tokens should go: (b, d), not (b, 1, d)": right[:, None],
        "squeeze() drops every axis of length 1, also that of a lone sequence or of "
        "width 1; name the axis": right.squeeze(),
        "the mean over tokens is wanted, and each sequence keeps its own: (b, d)": (
            right.mean(dim=0)
        ),
    }
    expect(
        mean,
        right.to(dtype),
        hint="expected the sum over the real tokens, divided by their number (with "
        "nothing added to it)",
        mistakes={name: wrong.to(dtype) for name, wrong in mistakes.items()},
        tolerance=tolerance_of(dtype),
    )


def gaps(*rows: str) -> Tensor:
    """A mask (b, 1, 1, t), written with x for True and - for False."""
    return torch.tensor([[c == "x" for c in row] for row in rows])[:, None, None]


def spoiled(x: Tensor, mask: Tensor) -> Tensor:
    """A copy whose padding holds NaN and infinity."""
    bad = torch.tensor([torch.nan, torch.inf]).repeat(x.shape[1])[: x.shape[1]]
    return torch.where(mask[:, 0, 0, :, None], x, bad[:, None].to(x.dtype))


GRADIENT_OF_NOTHING = (
    "0/0 or 0 times NaN, replaced behind the division, comes back in the gradient: "
    "fill the padding with zeros first, and where nothing is real, divide by 1"
)


def expect_mean_gradients(result: Differentiated, x: Tensor, mask: Tensor) -> None:
    expect_gradients(
        result, right_mean, *(x, mask), names="x", hint=GRADIENT_OF_NOTHING
    )


@public(
    "ch04-masked-mean",
    torch.tensor([[[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]]),
    gaps("xx-"),
)
def _(mean, x, mask):
    "the example: the mean of (1, 2) and (3, 4)"
    judge_mean(mean, x, mask)


@public("ch04-masked-mean", draw(3, 5, 4, seed=80), gaps("xxx--", "-x-xx", "xxxxx"))
def _(mean, x, mask):
    "padding may stand anywhere"
    judge_mean(mean, x, mask)


@public("ch04-masked-mean", draw(2, 3, 2, seed=81), gaps("x-x", "---"))
def _(mean, x, mask):
    "a sequence with no real token gives zeros"
    judge_mean(mean, x, mask)


@public(
    "ch04-masked-mean",
    spoiled(draw(2, 4, 3, seed=82), gaps("xx--", "--xx")),
    gaps("xx--", "--xx"),
)
def _(mean, x, mask):
    "padding that holds NaN and infinity"
    judge_mean(mean, x, mask)


@public(
    "ch04-masked-mean",
    draw(2, 3, 4, seed=84, dtype=torch.float16),
    gaps("xx-", "x-x"),
)
def _(mean, x, mask):
    "float16 in, float16 out"
    judge_mean(mean, x, mask)


@public(
    "ch04-masked-mean", draw(3, 4, 2, seed=83), gaps("xx--", "----", "xxxx"),
    gradients=True,
)  # fmt: skip
def _(result, x, mask):
    "gradients reach x, and are finite where nothing is real"
    expect_mean_gradients(result, x, mask)


# ---- broken: the weights -----------------------------------------------------


def right_weights(energies, mask):
    allowed = mask.expand(energies.shape)
    lowered = energies.detach().masked_fill(~allowed, -torch.inf)
    top = lowered.amax(dim=-1, keepdim=True)
    gap = energies - top.masked_fill(top.isinf(), 0)
    powers = torch.where(allowed, gap, -torch.inf).exp()
    total = powers.sum(dim=-1, keepdim=True)
    return powers / torch.where(total > 0, total, 1)


def judge_weights(weights, energies, mask):
    dtype, wide = energies.dtype, energies.double()
    right = right_weights(wide, mask)
    if isinstance(weights, Tensor) and weights.isnan().any():
        raise AssertionError(
            "NaN: a row with nothing to attend to should get zeros, and the softmax of "
            "−∞ alone is 0/0"
        )
    near = wide.masked_fill(~mask, 0).softmax(dim=-1)
    plain = wide.softmax(dim=-1)
    low = "a real energy may be lower than the number that you fill in; −∞ is below all"
    some = mask.any(dim=-1, keepdim=True)
    mistakes = {
        "a row with nothing to attend to gets the same weight for every key; it should "
        "get zeros": torch.where(some, right, 1 / wide.shape[-1]),
        "a row with nothing to attend to attends to everything; it should get zeros": (
            torch.where(some, right, plain)
        ),
    }
    for power in (4, 5, 6, 9):
        filled = wide.masked_fill(~mask, -(10.0**power)).softmax(dim=-1)
        mistakes[f"{low} (and below −1e{power})"] = filled
    mistakes |= {
        "the mask has no effect: masked_fill returns a new tensor, and leaves its own "
        "alone": plain,
        "masked keys still get weight: −1e-9 is nearly 0, and exp(0) is 1": near,
        "the weights of a row should sum to 1: mask before the softmax, not after it": (
            plain.masked_fill(~mask, 0)
        ),
        "the mask is read the wrong way round: True = may attend": (
            right_weights(wide, ~mask)
        ),
        "the softmax runs over the queries; it belongs over the keys, the last axis": (
            wide.masked_fill(~mask, -1e300).softmax(dim=-2).masked_fill(~mask, 0)
        ),
        "the softmax is missing": wide.masked_fill(~mask, 0),
    }
    expect(
        weights,
        right.to(dtype),
        hint="expected the softmax over the keys that the mask allows, 0 elsewhere",
        mistakes={name: wrong.to(dtype) for name, wrong in mistakes.items()},
        tolerance=tolerance_of(dtype),
    )


def expect_weights_gradients(
    result: Differentiated, energies: Tensor, mask: Tensor
) -> None:
    expect_gradients(
        result,
        right_weights,
        *(energies, mask),
        names="energies",
        hint="is something detached, or 0/0, on the way?",
    )


@public("ch04-repair-weights", torch.tensor([[[[1.0, 1.0, 5.0]]]]), gaps("xx-"))
def _(weights, energies, mask):
    "the example: energies 1, 1 and 5, the last of them masked"
    judge_weights(weights, energies, mask)


@public("ch04-repair-weights", draw(2, 2, 3, 4, seed=90), gaps("xxx-", "x---"))
def _(weights, energies, mask):
    "two sequences, two heads"
    judge_weights(weights, energies, mask)


@public("ch04-repair-weights", draw(2, 1, 3, 5, seed=91), gaps("x-x-x", "-----"))
def _(weights, energies, mask):
    "a sequence with nothing to attend to gets zeros"
    judge_weights(weights, energies, mask)


@public(
    "ch04-repair-weights",
    draw(2, 2, 2, 3, seed=92, dtype=torch.float16),
    gaps("xx-", "---"),
)
def _(weights, energies, mask):
    "float16, which ends at −65504"
    judge_weights(weights, energies, mask)


@public("ch04-repair-weights", 1e7 * (draw(1, 2, 2, 3, seed=94) - 4.0), gaps("xx-"))
def _(weights, energies, mask):
    "energies below −10 million, real ones too"
    judge_weights(weights, energies, mask)


@public(
    "ch04-repair-weights", draw(2, 2, 3, 3, seed=93), gaps("xx-", "---"), gradients=True
)
def _(result, energies, mask):
    "gradients reach the energies, and are finite"
    expect_weights_gradients(result, energies, mask)


# ---- broken: the decoder's mask ----------------------------------------------


def judge_decoder(mask, tokens, pad, training):
    (b, t), rows = tokens.shape, tokens.tolist()
    right = torch.zeros(b, 1, t, t, dtype=torch.bool)
    for n, row in enumerate(rows):
        for query in range(t):
            for key in range(query + 1):
                right[n, 0, query, key] = row[key] != pad
    i, j = grid(t, t)
    real = (tokens != pad)[:, None, None, :]
    when = "" if training else " when training is False: it must be the same then"
    mistakes = {
        "the two masks are joined by |: a key must be real AND not in the future": (
            real | (j <= i)
        ),
        "the future is seen" + when: real.expand(right.shape),
        "padding is seen" + when: (j <= i).expand(right.shape),
        "everything is seen" + when: torch.ones_like(right),
        "a position does not see itself: its own key is no future": real & (j < i),
        "the future is seen and the past is not: tril, not triu": real & (j >= i),
        "the queries of padding are masked as well: they need no mask, only keys do": (
            right & real.mT
        ),
        "the mask of padding stands on the axis of the queries: rows are queries, "
        "columns keys": real.mT & (j <= i),
        "padding is `pad`, whatever its number: not always 0": (
            (tokens != 0)[:, None, None, :] & (j <= i)
        ),
        EXCHANGED: ~right,
        "queries and keys are exchanged: rows are queries, columns keys": right.mT,
        HEADLESS + ", (b, 1, t, t)": right[:, 0],
    }
    expect(
        mask,
        right,
        hint="expected True where the key is real and not behind the query",
        mistakes=mistakes,
    )


@public("ch04-repair-decoder", torch.tensor([[5, 7, 0]]), 0, True)
def _(mask, tokens, pad, training):
    "the example: two words and a padding, in training"
    judge_decoder(mask, tokens, pad, training)


@public("ch04-repair-decoder", torch.tensor([[5, 7, 0]]), 0, False)
def _(mask, tokens, pad, training):
    "the same in evaluation: the same mask"
    judge_decoder(mask, tokens, pad, training)


@public("ch04-repair-decoder", torch.tensor([[3, 4, 1, 1], [2, 0, 5, 1]]), 1, True)
def _(mask, tokens, pad, training):
    "two sentences, and a padding that is not 0"
    judge_decoder(mask, tokens, pad, training)


@public("ch04-repair-decoder", torch.tensor([[0, 0, 4, 2], [6, 0, 3, 1]]), 0, True)
def _(mask, tokens, pad, training):
    "padding in front, and in between"
    judge_decoder(mask, tokens, pad, training)


# ---- broken: the loss --------------------------------------------------------


def right_loss(logits, targets, pad):
    logs = logits - logits.logsumexp(dim=-1, keepdim=True)
    picked = [
        logs[n, i, word]
        for n, row in enumerate(targets.tolist())
        for i, word in enumerate(row)
        if word != pad
    ]
    return -torch.stack(picked).mean() if picked else (logits * 0).sum()


def judge_loss(loss, logits, targets, pad):
    dtype, wide = logits.dtype, logits.double()
    right, real = right_loss(wide, targets, pad), targets != pad
    if isinstance(loss, Tensor) and loss.isnan().any():
        raise AssertionError(
            "NaN: with no real target the loss should be 0, and the mean of nothing is "
            "0/0"
            if not real.any()
            else "the loss is NaN"
        )
    b, t, v = logits.shape
    losses = -wide.log_softmax(dim=-1).gather(2, targets[..., None])[..., 0]
    total, counts = (losses * real).sum(), real.sum()
    means = (losses * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
    viewed = wide.reshape(b, v, t).transpose(1, 2).log_softmax(dim=-1)
    viewed = -viewed.gather(2, targets[..., None])[..., 0]
    mistakes = {
        "the sum is divided by all places: padding counts as a loss of 0": (
            total / real.numel()
        ),
        "the loss at the padding is counted": losses.mean(),
        "the sum is not divided by the number of real targets": total,
        "the sum is divided by the number of sentences": total / b,
        "this is the mean of the sentences' means: words of short sentences count "
        "for more": means.mean(),
        "this is one loss for each sentence; one for the batch is wanted": means,
        "only the loss at the padding is counted": (
            (losses * ~real).sum() / (~real).sum().clamp(min=1)
        ),
        "these are the losses of single places; their mean is wanted": losses * real,
        "view and reshape change which number belongs to which word; use transpose": (
            (viewed * real).sum() / counts.clamp(min=1)
        ),
        "the probabilities have no logarithm": (
            ((losses.neg().exp() * real).sum() / counts.clamp(min=1)).neg()
        ),
    }
    if pad != 0:
        kept = targets != 0
        mistakes["padding is `pad`, whatever its number: not always 0"] = (
            losses * kept
        ).sum() / kept.sum().clamp(min=1)
    expect(
        loss,
        right.to(dtype),
        hint="expected the mean of −log p(target) over the real targets of the batch",
        mistakes={name: wrong.to(dtype) for name, wrong in mistakes.items()},
        tolerance=tolerance_of(dtype),
    )


def expect_loss_gradients(
    result: Differentiated, logits: Tensor, targets: Tensor, pad: int
) -> None:
    expect_gradients(
        result,
        lambda scores, words: right_loss(scores, words, pad),
        *(logits, targets),
        names="logits",
        hint="is something detached, or 0/0, on the way?",
    )


@public("ch04-repair-loss", torch.zeros(1, 3, 4), torch.tensor([[2, 1, 0]]), 0)
def _(loss, logits, targets, pad):
    "the example: four words, all equally likely, give ln 4"
    judge_loss(loss, logits, targets, pad)


@public(
    "ch04-repair-loss",
    draw(2, 4, 5, seed=100),
    torch.tensor([[2, 0, 4, 3], [1, 3, 3, 3]]),
    3,
)
def _(loss, logits, targets, pad):
    "a long sentence and a short one, padding is word 3"
    judge_loss(loss, logits, targets, pad)


@public("ch04-repair-loss", draw(2, 2, 3, seed=101), torch.zeros(2, 2).long(), 0)
def _(loss, logits, targets, pad):
    "with no real target the loss is 0"
    judge_loss(loss, logits, targets, pad)


@public(
    "ch04-repair-loss", draw(2, 3, 4, seed=102), torch.tensor([[1, 2, 0], [3, 0, 0]]),
    0, gradients=True,
)  # fmt: skip
def _(result, logits, targets, pad):
    "gradients reach the logits"
    expect_loss_gradients(result, logits, targets, pad)
