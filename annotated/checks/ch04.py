"""The exercises of chapter 04; ``__init__.py`` says how one is written."""

from functools import partial

import torch

from annotated.checks import Exercise

POLARITY = "True and False are exchanged: True = may attend"
TURNED = "queries and keys are exchanged: rows are queries, columns keys"
HEADLESS = "the axis of the heads is missing: masks have four axes"
ONESELF = "a position does not see itself: its own key isn't the future"


def grid(queries, keys):
    """Positions of queries as a column, of keys as a row."""
    return torch.arange(queries)[:, None], torch.arange(keys)


# ---- a prefix and then causal ------------------------------------------------


def prefixed(rule=lambda i, j, n: (j < n) | (j <= i), axes=lambda mask: mask):
    """A function that makes a mask by a rule for query i, key j and prefix n."""

    def mask(prefix, size):
        square = rule(*grid(size, size), prefix[:, None, None, None])
        return axes(square.expand(len(prefix), 1, size, size))

    return mask


prefix_mask = Exercise(
    "ch04-prefix",
    right=prefixed(),
    hint="expected True where the key is in the prefix or not after the query",
    mistakes={
        "joined by &: may a key be seen only if it is in the prefix AND not after the "
        "query?": prefixed(lambda i, j, n: (j < n) & (j <= i)),
        "this is the causal mask: within the prefix, everyone sees all of it": (
            prefixed(lambda i, j, n: j <= i)
        ),
        "only the prefix is seen: after it, a position sees what came before, too": (
            prefixed(lambda i, j, n: j < n)
        ),
        ONESELF: prefixed(lambda i, j, n: (j < n) | (j < i)),
        "the prefix is taken one too long: it is the positions 0 to prefix − 1": (
            prefixed(lambda i, j, n: (j <= n) | (j <= i))
        ),
        "the prefix is taken one too short: it is the positions 0 to prefix − 1": (
            prefixed(lambda i, j, n: (j < n - 1) | (j <= i))
        ),
        "positions of the prefix see all that comes after it as well": (
            prefixed(lambda i, j, n: (i < n) | (j <= i))
        ),
        "after the prefix, the future is seen and the past is not": (
            prefixed(lambda i, j, n: (j < n) | (j >= i))
        ),
        "the prefix of the first sequence is used for all": (
            prefixed(lambda i, j, n: (j < n[:1]) | (j <= i))
        ),
        "the prefixes stand on the axis of the queries": (
            prefixed(lambda i, j, n: (j < n[:, 0, 0]) | (j <= i))
        ),
        POLARITY: prefixed(axes=lambda mask: ~mask),
        TURNED: prefixed(axes=lambda mask: mask.mT),
        f"{HEADLESS}, (b, 1, t, t)": prefixed(axes=lambda mask: mask[:, 0]),
    },
)


@prefix_mask.case("the example: prefixes of 2 and of 0, 4 positions")
def _(draw):
    return torch.tensor([2, 0]), 4


@prefix_mask.case("three prefixes")
def _(draw):
    size = draw.integer(5, 8)
    return torch.tensor(draw.shuffled(range(1, size))[:3]), size


@prefix_mask.case("as many sequences as positions, and one that is all prefix")
def _(draw):
    return torch.tensor(draw.shuffled(range(1, 5))), 4


# ---- a causal window ---------------------------------------------------------


def windowed(rule=lambda i, j, p, w: (j <= p) & (j > p - w), axes=lambda mask: mask):
    """A function that makes a mask by a rule for query i, which stands at key p, for
    key j and a window of w."""

    def mask(queries, keys, width):
        i, j = grid(queries, keys)
        return axes(rule(i, j, i + keys - queries, width)[None, None])

    return mask


window_mask = Exercise(
    "ch04-window",
    right=windowed(),
    hint="expected the `width` keys that end with the query's own, no others",
    mistakes={
        "no window: only the last `width` keys up to one's own are seen": (
            windowed(lambda i, j, p, w: j <= p)
        ),
        "the future is seen: a query attends to nothing after its own key": (
            windowed(lambda i, j, p, w: j > p - w)
        ),
        "the window reaches into the future: it ends at one's own key": (
            windowed(lambda i, j, p, w: (j - p).abs() < w)
        ),
        "the window is one too wide: one's own key is one of the `width`": (
            windowed(lambda i, j, p, w: (j <= p) & (j >= p - w))
        ),
        "the window is one too narrow: it holds `width` keys": (
            windowed(lambda i, j, p, w: (j <= p) & (j > p - w + 1))
        ),
        "a query does not see its own key: the window ends with it": (
            windowed(lambda i, j, p, w: (j < p) & (j >= p - w))
        ),
        "query i stands at key i; the last query should stand at the last key": (
            windowed(lambda i, j, p, w: (j <= i) & (j > i - w))
        ),
        "the lower edge of the window stands where it would with as many queries as "
        "keys": windowed(lambda i, j, p, w: (j <= p) & (j > i - w)),
        "the upper edge of the window stands where it would with as many queries as "
        "keys": windowed(lambda i, j, p, w: (j <= i) & (j > p - w)),
        "these are the keys before the window": windowed(lambda i, j, p, w: j <= p - w),
        POLARITY: windowed(axes=lambda mask: ~mask),
        TURNED: windowed(axes=lambda mask: mask.mT),
        "two axes of size 1, for batch and heads, are missing": (
            windowed(axes=lambda mask: mask[0, 0])
        ),
    },
)


@window_mask.case("the example: 3 queries, 5 keys, a window of 2")
def _(draw):
    return 3, 5, 2


@window_mask.case("as many queries as keys, a window of 3")
def _(draw):
    return (size := draw.integer(5, 9)), size, 3


@window_mask.case("the last queries of more keys")
def _(draw):
    width = draw.integer(2, 3)
    queries = width + draw.integer(1, 2)  # more than the window is wide: else a lower
    return queries, queries + draw.integer(4, 6), width  # edge unmoved hides nothing


@window_mask.case("a window of 1 is one's own key")
def _(draw):
    return 3, draw.integer(4, 7), 1


@window_mask.case("a window wider than all keys")
def _(draw):
    return 4, draw.integer(5, 8), 20


# ---- masked attention, whole ---------------------------------------------------


def scaled(query, key, mask):
    return query @ key.mT / query.shape[-1] ** 0.5


def attention(
    rule=lambda i, j, real: real & (j <= i),
    scores=scaled,
    softmax=lambda scores, mask: weights(scores, mask),
    axes=lambda mask: mask,
    first=lambda t, s: s - t,
):
    """A function that attends under a rule for a query that stands at i, key j and the
    real keys."""

    def attend(query, key, value, tokens, pad):
        t, s = query.shape[2], tokens.shape[1]
        i, j = grid(t, s)
        mask = axes(rule(i + first(t, s), j, (tokens != pad)[:, None, None, :]))
        return softmax(scores(query, key, mask), mask) @ value

    return attend


LARGE = (
    "a hidden score of 120 leaves the visible keys 0 or NaN: hide it before the "
    "exponential, not after"
)
LOW = (
    "visible scores near −30000 get 0 or NaN: is a hidden score lower than these, and "
    "the largest visible one subtracted before exp?"
)
WON = (
    "beside visible scores near −30000 a hidden key gets the weight: the number that "
    "hides it must be lower than any score"
)
GONE = "a NaN of a visible score has gone: is every NaN there a 0/0?"


def lost(weights, scores):
    """The hint for an answer that gives the last query no weights at all, or those of a
    hidden key, the third, where one of its scores is extreme; each time it has
    something to attend to."""
    last = weights[..., -1, :]
    if scores.min() < -1e4 and last[..., 2].max() > 0.5:
        return WON
    if not last.sum() > 0 and not scores.isnan().any():  # 0 or NaN
        if scores.max() > 100:
            return LARGE
        if scores.min() < -1e4:
            return LOW


def extreme(*scores):
    """Arguments with these scores for four keys; the third key is padding."""
    query, key = torch.ones(1, 1, 4, 1), torch.tensor(scores)[None, None, :, None]
    return query, key, torch.eye(4)[None, None], torch.tensor([[5, 7, 0, 6]]), 0


def late(scores, mask):
    return scores.softmax(dim=-1).masked_fill(~mask, 0.0)


masked_attention = Exercise(
    "ch04-masked-attention",
    right=attention(),
    hint="expected softmax(q kᵀ/√k) v over the real keys that are not after the query",
    mistakes={
        "the future is seen": attention(lambda i, j, real: real),
        "padding is seen": attention(lambda i, j, real: (j <= i) | (real & False)),
        "the two masks are joined by |: is it enough for a key to be real, wherever it "
        "stands?": attention(lambda i, j, real: real | (j <= i)),
        ONESELF: attention(lambda i, j, real: real & (j < i)),
        "the future is seen and the past is not": (
            attention(lambda i, j, real: real & (j >= i))
        ),
        "the mask of padding stands on the axis of the queries": (
            attention(lambda i, j, real: real.mT[:, :, -len(i) :] & (j <= i))
        ),
        "the queries of padding are masked as well: only keys need it": (
            attention(lambda i, j, real: real & real.mT[:, :, -len(i) :] & (j <= i))
        ),
        "query i stands at key i; the last query should stand at the last key": (
            attention(first=lambda t, s: 0)
        ),
        POLARITY: attention(axes=lambda mask: ~mask),
        "the mask has no axis for the heads, so it takes sentences for heads": (
            attention(axes=lambda mask: mask[:, 0])
        ),
        "every sentence has its own padding: you use the first one's for all": (
            attention(axes=lambda mask: mask[:1])
        ),
        "a row with nothing to attend to gives NaN: what is the softmax of nothing but "
        "−∞?": attention(softmax=lambda *both: filled(*both, fill=-torch.inf)),
        "a row with nothing to attend to averages everything; it should give zeros": (
            attention(softmax=lambda *both: filled(*both, fill=-1e9))
        ),
        GONE: attention(
            softmax=lambda *both: filled(*both, fill=-torch.inf).nan_to_num(0.0)
        ),
        "masked keys still get weight: exp(0) is 1": (
            attention(softmax=lambda *both: filled(*both, fill=0.0))
        ),
        "the weights of a row should sum to 1: you mask after the softmax": (
            attention(softmax=late)
        ),
        "the softmax runs over the queries; it belongs over the keys": (
            attention(softmax=lambda e, mask: weights(e.mT, mask.mT).mT)
        ),
        "the factor 1/√k is missing": (attention(scores=lambda q, k, mask: q @ k.mT)),
        "divided by k, not by √k": (
            attention(scores=lambda q, k, mask: q @ k.mT / q.shape[-1])
        ),
        "padding is `pad`, whatever its number: not always 0": (
            lambda q, k, v, tokens, pad: attention()(q, k, v, tokens, 0)
        ),
        "this is without a mask": attention(
            lambda i, j, real: (real | True) & (j == j)
        ),
    },
    symptoms=lambda output, query, key, value, tokens, pad: lost(
        output, query @ key.mT
    ),
)


def sentences(draw, b, t, pad, h=2):
    """Queries, keys and values of two widths, and tokens with padding at the end."""
    lengths = torch.tensor(draw.shuffled(range(1, t))[:b])
    words = draw.integers(10, 19, b, t)
    words[:, 0] = 0 if pad else 10  # a word like any other, where 0 is not padding
    tokens = words.masked_fill(torch.arange(t) >= lengths[:, None], pad)
    query, key = draw.normal(2, b, h, t, 4)
    return query, key, draw.normal(b, h, t, 3), tokens, pad


@masked_attention.case("the example: equal scores, two words and one pad")
def _(draw):
    zeros = torch.zeros(1, 1, 3, 2)
    return zeros, zeros.clone(), torch.eye(3)[None, None], torch.tensor([[5, 7, 0]]), 0


@masked_attention.case("every axis of another length")
def _(draw):
    return sentences(draw, 3, 6, 0)


@masked_attention.case("as many sentences as heads, and padding that is not 0")
def _(draw):
    return sentences(draw, 2, 5, draw.integer(1, 9))


@masked_attention.case("two new queries, and the keys of earlier words")
def _(draw):
    query, key, value, tokens, pad = sentences(draw, 3, 6, 0)
    return query[:, :, -2:], key, value, tokens, pad


@masked_attention.case("padding in front: the first queries have nothing to attend to")
def _(draw):
    query, key, value, _, pad = sentences(draw, 2, 4, 1)
    return query, key, value, torch.tensor([[1, 1, 0, 3], [1, 4, 0, 2]]), pad


@masked_attention.case("in half precision", dtype=torch.float16)
def _(draw):
    return sentences(draw, 2, 5, 0)


@masked_attention.case("a hidden score of 120")
def _(draw):
    return extreme(0.0, 2.0, 120.0, 1.0)


@masked_attention.case("visible scores near −30000, a hidden one of 0")
def _(draw):
    return extreme(-30000.0, -29998.0, 0.0, -29999.0)


@masked_attention.case("a NaN in a query is not hidden")
def _(draw):
    query, key, value, tokens, pad = sentences(draw, 2, 4, 0)
    query[0, 0, 1, 0] = torch.nan
    return query, key, value, tokens, pad


@masked_attention.case("gradients, finite ones everywhere", gradients=True)
def _(draw):
    query, key, value, _, pad = sentences(draw, 2, 4, 0)
    return query, key, value, torch.tensor([[0, 0, 6, 3], [8, 4, 5, 0]]), pad


# ---- the masked mean ---------------------------------------------------------


def count(real):
    return real.sum(dim=1)  # (b, 1)


def masked(x, mask, over=lambda real: count(real).clamp(min=1)):
    real = mask[:, 0, 0, :, None]
    return x.masked_fill(~real, 0.0).sum(dim=1) / over(real)


def multiplied(x, mask):
    real = mask[:, 0, 0, :, None]
    return (x * real).sum(dim=1) / count(real).clamp(min=1)


def mended(x, mask):
    real = mask[:, 0, 0, :, None]
    total = (x.nan_to_num(0.0, 0.0, 0.0) * real).sum(dim=1)
    return torch.where(count(real) > 0, total / count(real), 0.0)


def swept(x, mask):
    return masked(x.nan_to_num(0.0, 0.0, 0.0), mask)


masked_mean = Exercise(
    "ch04-masked-mean",
    right=lambda x, mask: masked(x, mask),
    hint="expected the sum over the real tokens, divided by their number",
    mistakes={
        "NaN: a sequence with no real token should give zeros, not 0/0": (
            partial(masked, over=count)
        ),
        "NaN: here the padding holds NaN and infinity, and 0 times these is NaN": (
            multiplied
        ),
        "a NaN at a real token has gone: what did you replace besides padding?": swept,
        "a NaN at a real token has gone from the mean: is every NaN there a 0/0?": (
            lambda x, mask: masked(x, mask, over=count).nan_to_num(0.0)
        ),
        "NaN comes back in the gradient: 0/0 was replaced after the division": (mended),
        "the sum is divided by t, which counts the padding too": (
            partial(masked, over=lambda real: real.shape[1])
        ),
        "the mask is not used": lambda x, mask: x.mean(dim=1),
        "this is the mean of the padding: True = a real token": (
            lambda x, mask: masked(x, ~mask)
        ),
        "the sum is not divided by the number of real tokens": (
            partial(masked, over=lambda real: 1)
        ),
        "every sequence has its own number of real tokens; you use the largest": (
            partial(masked, over=lambda real: count(real).max().clamp(min=1))
        ),
        "every sequence has its own number of real tokens; you use that of the batch": (
            partial(masked, over=lambda real: real.sum().clamp(min=1))
        ),
        "padding may stand anywhere: these are the first tokens, as many as are real": (
            lambda x, mask: masked(x, mask.sort(descending=True).values)
        ),
        "a small number is added to that of the tokens": (
            partial(masked, over=lambda real: count(real) + 1e-6)
        ),
        "this is the mean of each vector's entries; wanted is that of the tokens": (
            lambda x, mask: x.mean(dim=2)
        ),
        "the axis of the tokens should go: (b, d), not (b, 1, d)": (
            lambda x, mask: masked(x, mask)[:, None]
        ),
        "squeeze() drops every axis of length 1, also that of a lone sequence": (
            lambda x, mask: masked(x, mask).squeeze()
        ),
        "the mean over tokens is wanted, and each sequence keeps its own: (b, d)": (
            lambda x, mask: masked(x, mask).mean(dim=0)
        ),
    },
)


def gaps(*rows):
    """A mask (b, 1, 1, t), written with x for True and - for False."""
    return torch.tensor([[c == "x" for c in row] for row in rows])[:, None, None]


def spoiled(x, mask):
    """A copy whose padding holds NaN and infinity in turn."""
    bad = torch.tensor([torch.nan, torch.inf]).repeat(x.shape[1])[: x.shape[1]]
    return torch.where(mask[:, 0, 0, :, None], x, bad[:, None].to(x.dtype))


@masked_mean.case("the example: the mean of (1, 2) and (3, 4)")
def _(draw):
    return torch.tensor([[[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]]), gaps("xx-")


@masked_mean.case("padding may stand anywhere")
def _(draw):
    b, t, d = draw.sizes(3, low=3)
    return draw.normal(b, t, d), draw.mask(b, 1, 1, t)


@masked_mean.case("as many sequences as tokens and entries")
def _(draw):
    return draw.normal(3, 3, 3), gaps("x--", "-xx", "xxx")


@masked_mean.case("a sequence with no real token gives zeros")
def _(draw):
    return draw.normal(2, 3, 4), gaps("x-x", "---")


@masked_mean.case("padding that holds NaN and infinity")
def _(draw):
    mask = gaps("xx--", "--xx")
    return spoiled(draw.normal(2, 4, 3), mask), mask


@masked_mean.case("a NaN at a real token is not hidden")
def _(draw):
    x = draw.normal(2, 3, 2)
    x[0, 1, 0] = torch.nan
    return x, gaps("xx-", "x-x")


@masked_mean.case("in double precision", dtype=torch.float64)
def _(draw):
    return draw.normal(2, 5, 3), draw.mask(2, 1, 1, 5)


@masked_mean.case("gradients reach x, and are finite", gradients=True)
def _(draw):
    mask = gaps("x--x", "----", "xxxx")
    return spoiled(draw.normal(3, 4, 2), mask), mask


# ---- broken: the weights -----------------------------------------------------


def weights(scores, mask, fill=-torch.inf, empty=0.0):
    """Weights of the allowed keys, and ``empty`` in a row without any; None: of all."""
    some = mask.any(dim=-1, keepdim=True)
    filled = scores.masked_fill(~mask & some, fill).softmax(dim=-1)
    return filled if empty is None else torch.where(some, filled, empty)


def filled(scores, mask, fill):
    return scores.masked_fill(~mask, fill).softmax(dim=-1)


masked_weights = Exercise(
    "ch04-repair-weights",
    right=lambda scores, mask: weights(scores, mask),
    hint="expected the softmax over the keys that the mask allows, 0 elsewhere",
    mistakes={
        "NaN: the softmax of nothing but −∞ is 0/0; a row with nothing to attend to "
        "should get zeros": partial(filled, fill=-torch.inf),
        "a row with nothing to attend to gets the same weight for every key; it should "
        "get zeros": lambda e, mask: weights(e, mask, empty=1 / e.shape[-1]),
        "a row with nothing to attend to attends to everything; it should get zeros": (
            partial(weights, empty=None)
        ),
        GONE: lambda scores, mask: filled(scores, mask, -torch.inf).nan_to_num(0.0),
        "the mask has no effect: masked_fill returns a new tensor, and leaves its own "
        "alone": lambda scores, mask: scores.softmax(dim=-1),
        "masked keys still get weight: −1e-9 is nearly 0, and exp(0) is 1": (
            partial(filled, fill=-1e-9)
        ),
        "the weights of a row should sum to 1: you mask after the softmax": (
            lambda scores, mask: scores.softmax(dim=-1).masked_fill(~mask, 0.0)
        ),
        "the mask is read the wrong way round: True = may attend": (
            lambda scores, mask: weights(scores, ~mask)
        ),
        "the softmax runs over the queries; it belongs over the keys": (
            lambda e, mask: filled(e.mT, mask.mT, -1e30).mT.masked_fill(~mask, 0.0)
        ),
        "the softmax is missing": lambda e, mask: e.masked_fill(~mask, 0.0),
    },
    symptoms=lambda output, scores, mask: lost(output, scores),
)


@masked_weights.case("the example: scores 1, 1 and 5, the last of them masked")
def _(draw):
    return torch.tensor([[[[1.0, 1.0, 5.0]]]]), gaps("xx-")


@masked_weights.case("every axis of another length")
def _(draw):
    b, h, t, s = draw.sizes(4, low=3)
    return draw.normal(b, h, t, s), draw.mask(b, 1, 1, s)


@masked_weights.case("a mask for each head and each query")
def _(draw):
    return draw.normal(2, 3, 4, 5), draw.mask(2, 3, 4, 5)


@masked_weights.case("a sequence with nothing to attend to gets zeros")
def _(draw):
    return draw.normal(2, 1, 3, 5), gaps("x-x-x", "-----")


@masked_weights.case("in half precision", dtype=torch.float16)
def _(draw):
    return draw.normal(2, 2, 3, 4), draw.mask(2, 1, 1, 4)


@masked_weights.case("a hidden score of 120")
def _(draw):
    return torch.tensor([[[[0.0, 2.0, 120.0, 1.0]]]]), gaps("xx-x")


@masked_weights.case("visible scores near −30000, a hidden one of 0")
def _(draw):
    return torch.tensor([[[[-30000.0, -29998.0, 0.0, -29999.0]]]]), gaps("xx-x")


@masked_weights.case("a NaN in a visible score is not hidden")
def _(draw):
    scores = draw.normal(2, 1, 2, 3)
    scores[0, 0, 1, 1] = torch.nan
    return scores, gaps("xxx", "x-x")


@masked_weights.case("gradients reach the scores, and are finite", gradients=True)
def _(draw):
    return draw.normal(2, 3, 4, 3), gaps("xx-", "---")


# ---- broken: the decoder's mask ----------------------------------------------


def decoder(rule=lambda i, j, real: real & (j <= i), axes=None, otherwise=None):
    """A function that makes a mask by a rule for query i, key j and the real keys;
    in evaluation by another one, if there is one."""

    def mask(tokens, pad, training):
        b, t = tokens.shape
        real = (tokens != pad)[:, None, None, :]
        chosen = rule if training or not otherwise else otherwise
        mask = chosen(*grid(t, t), real).expand(b, 1, t, t)
        return axes(mask) if axes else mask

    return mask


SEEN = {
    "the future is seen": lambda i, j, real: real,
    "padding is seen": lambda i, j, real: j <= i,
    "everything is seen": lambda i, j, real: real | True,
}

decoder_mask = Exercise(
    "ch04-repair-decoder",
    right=decoder(),
    hint="expected True where the key is real and not after the query",
    mistakes={
        f"{hint} when training is False: it must be the same then": (
            decoder(otherwise=rule)
        )
        for hint, rule in SEEN.items()
    }
    | {hint: decoder(rule) for hint, rule in SEEN.items()}
    | {
        "the two masks are joined by |: is it enough for a key to be real, wherever "
        "it stands?": decoder(lambda i, j, real: real | (j <= i)),
        ONESELF: decoder(lambda i, j, real: real & (j < i)),
        "the future is seen and the past is not": (
            decoder(lambda i, j, real: real & (j >= i))
        ),
        "the queries of padding are masked as well: only keys need it": (
            decoder(lambda i, j, real: real & real.mT & (j <= i))
        ),
        "the mask of padding stands on the axis of the queries: rows are queries, "
        "columns keys": decoder(lambda i, j, real: real.mT & (j <= i)),
        "padding is `pad`, whatever its number: not always 0": (
            lambda tokens, pad, training: decoder()(tokens, 0, training)
        ),
        POLARITY: decoder(axes=lambda mask: ~mask),
        TURNED: decoder(axes=lambda mask: mask.mT),
        f"{HEADLESS}, (b, 1, t, t)": decoder(axes=lambda mask: mask[:, 0]),
    },
)


def padded(draw, b, t, pad):
    """Words from 0 to 9, with padding in every row, wherever it falls."""
    return draw.integers(0, 9, b, t).masked_fill(~draw.mask(b, t), pad)


@decoder_mask.case("the example: two words and one pad, in training")
def _(draw):
    return torch.tensor([[5, 7, 0]]), 0, True


@decoder_mask.case("the same in evaluation: the same mask")
def _(draw):
    return torch.tensor([[5, 7, 0]]), 0, False


@decoder_mask.case("two sentences, and a padding that is not 0")
def _(draw):
    words = [[3, 4, 1, 1], [2, 0, 5, 1]]
    return torch.tensor(words), 1, True


@decoder_mask.case("padding in front, and in between")
def _(draw):
    pad = draw.integer(2, 9)
    return padded(draw, 3, 6, pad), pad, True


@decoder_mask.case("as many sentences as positions, in evaluation")
def _(draw):
    pad = draw.integer(2, 9)
    return padded(draw, 4, 4, pad), pad, False


# ---- broken: the loss --------------------------------------------------------


def losses(logits, targets):
    logs = logits - logits.logsumexp(dim=-1, keepdim=True)
    return -logs.gather(2, targets[..., None])[..., 0]


def mean_loss(logits, targets, pad, over=None, of=losses):
    real = targets != pad
    total = (of(logits, targets) * real).sum()
    return total / (over(real) if over else real.sum().clamp(min=1))


def sentence_means(logits, targets, pad):
    real = targets != pad
    return (losses(logits, targets) * real).sum(1) / real.sum(1).clamp(min=1)


def padding_alone(logits, targets, pad):
    padding = targets == pad
    return (losses(logits, targets) * padding).sum() / padding.sum().clamp(min=1)


def viewed(logits, targets):
    b, t, v = logits.shape
    return losses(logits.reshape(b, v, t).transpose(1, 2), targets)


masked_loss = Exercise(
    "ch04-repair-loss",
    right=lambda logits, targets, pad: mean_loss(logits, targets, pad),
    hint="expected the mean of −log p(target) over the real targets of the batch",
    mistakes={
        "NaN: with no real target the loss should be 0, and the mean of nothing is "
        "0/0": partial(mean_loss, over=lambda real: real.sum()),
        "the sum is divided by all positions: padding counts as a loss of 0": (
            partial(mean_loss, over=lambda real: real.numel())
        ),
        "a NaN of a real target has gone: is every NaN there a 0/0?": (
            lambda *given: mean_loss(*given, over=lambda real: real.sum()).nan_to_num(0)
        ),
        "the loss at the padding is counted": (
            lambda logits, targets, pad: losses(logits, targets).mean()
        ),
        "the sum is not divided by the number of real targets": (
            partial(mean_loss, over=lambda real: 1)
        ),
        "the sum is divided by the number of sentences": partial(mean_loss, over=len),
        "this is the mean of the sentences' means: words of short sentences count for "
        "more": lambda *given: sentence_means(*given).mean(),
        "this is one loss for each sentence; one for the batch is wanted": (
            sentence_means
        ),
        "only the loss at the padding is counted": padding_alone,
        "these are the losses of single positions; their mean is wanted": (
            lambda logits, targets, pad: losses(logits, targets) * (targets != pad)
        ),
        "view and reshape change which number belongs to which word": (
            partial(mean_loss, of=viewed)
        ),
        "infinite: a small probability is rounded to 0, and log 0 is −∞; log_softmax "
        "and logsumexp never form it": partial(
            mean_loss, of=lambda *given: -losses(*given).neg().exp().log()
        ),
        "the probabilities have no logarithm": (
            partial(mean_loss, of=lambda *given: -losses(*given).neg().exp())
        ),
        "padding is `pad`, whatever its number: not always 0": (
            lambda logits, targets, pad: mean_loss(logits, targets, 0)
        ),
    },
)


@masked_loss.case("the example: four words, all equally likely, give ln 4")
def _(draw):
    return torch.zeros(1, 3, 4), torch.tensor([[2, 1, 0]]), 0


@masked_loss.case("a long sentence and a short one, padding is word 3")
def _(draw):
    targets = torch.tensor([[2, 0, 4, 3], [1, 3, 3, 3]])
    return draw.normal(2, 4, 5), targets, 3


@masked_loss.case("padding in front, and in between")
def _(draw):
    pad = draw.integer(1, 9)
    return draw.normal(3, 6, 10), padded(draw, 3, 6, pad), pad


@masked_loss.case("with no real target the loss is 0")
def _(draw):
    return draw.normal(2, 2, 3), torch.zeros(2, 2).long(), 0


@masked_loss.case("a NaN at a real target is not hidden")
def _(draw):
    logits = draw.normal(2, 3, 4)
    logits[0, 1, 2] = torch.nan
    return logits, torch.tensor([[1, 2, 0], [3, 0, 0]]), 0


@masked_loss.case("a target whose logit is 1000 below the largest")
def _(draw):
    return torch.tensor([[[0.0, 1000.0, 0.0]]]), torch.tensor([[0]]), 2


@masked_loss.case("in double precision", dtype=torch.float64)
def _(draw):
    return draw.normal(2, 5, 10), padded(draw, 2, 5, 4), 4


@masked_loss.case("gradients reach the logits", gradients=True)
def _(draw):
    return draw.normal(2, 3, 4), torch.tensor([[1, 2, 0], [3, 0, 0]]), 0


@masked_loss.case("gradients with no real target: finite ones", gradients=True)
def _(draw):
    return draw.normal(2, 2, 3), torch.ones(2, 2).long(), 1
