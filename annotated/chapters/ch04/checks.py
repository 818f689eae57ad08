"""The exercises of chapter 04; ``__init__.py`` says how one is written."""

import torch

from annotated.checks import Raised, exercise, fused
from annotated.checks.material import written_out

POLARITY = "True and False are exchanged: True = may attend"
TURNED = "queries and keys are exchanged: rows are queries, columns keys"
HEADLESS = "the axis of the heads is missing: masks have four axes"
ONESELF = "a position does not see itself: its own key isn't the future"
JOINED = (
    "the two masks are joined by |: is it enough for a key to be real, wherever "
    "it stands?"
)
QUERIES = "the queries of padding are masked as well: only keys need it"
NUMBER = "padding is `pad`, whatever its number: not always 0"
ON_QUERIES = "the mask of padding stands on the axis of the queries"
AT_THE_END = "query i stands at key i; the last query should stand at the last key"
SUM_TO_1 = "the weights of a row should sum to 1: you mask after the softmax"
OVER_QUERIES = "the softmax runs over the queries; it belongs over the keys"


def grid(queries, keys):
    """Positions of queries as a column, of keys as a row."""
    return torch.arange(queries)[:, None], torch.arange(keys)


# ---- a prefix and then causal ------------------------------------------------


@exercise(
    "ch04-prefix", "expected True where the key is in the prefix or not after the query"
)
def prefix_mask(prefix, size):
    """Mask (b, 1, t, t): the prefix for all, and what came before."""
    i, j = torch.arange(size)[:, None], torch.arange(size)
    n = prefix[:, None, None, None]  # (b, 1, 1, 1)
    mask = (j < n) | (j <= i)  # (b, 1, t, t)
    return mask.expand(len(prefix), 1, size, size)


WITHIN = "it is the positions 0 to prefix − 1"
prefix_mask.instead("""
(j < n) | (j <= i)
    (j < n) & (j <= i)  # joined by &: may a key be seen only if it is in the prefix AND
        not after the query?
    j <= i + 0 * n
        # this is the causal mask: within the prefix, everyone sees all of it
    (j < n).expand(-1, -1, size, -1)
        # only the prefix is seen: after it, a position sees what came before, too
    (j < n) | (j < i)  # {ONESELF}
    (j <= n) | (j <= i)  # the prefix is taken one too long: {WITHIN}
    (j < n - 1) | (j <= i)  # the prefix is taken one too short: {WITHIN}
    (i < n) | (j <= i)  # positions of the prefix see all that comes after it as well
    (j < n) | (j >= i)  # after the prefix, the future is seen and the past is not
    (j < n[:1]) | (j <= i)  # the prefix of the first sequence is used for all
    (j < n[:, 0, 0]) | (j <= i)  # the prefixes stand on the axis of the queries
return mask.expand(len(prefix), 1, size, size)
    return ~mask  # {POLARITY}
    return mask.mT  # {TURNED}
    return mask[:, 0]  # {HEADLESS}, (b, 1, t, t)
mask.expand(len(prefix), 1, size, size) -> ((j < n.max()) | (j <= i))[None, None]
        # … the shape is (1, 1, 4, 4)
""")


prefix_mask.case(
    "the example: prefixes of 2 and of 0, 4 positions",
    lambda draw: (torch.tensor([2, 0]), 4),
)
prefix_mask.case(
    "as many sequences as positions, and one that is all prefix",
    lambda draw: (torch.tensor(draw.shuffled(range(1, 5))), 4),
)


@prefix_mask.case("three prefixes")
def _(draw):
    size = draw.integer(5, 8)
    return torch.tensor(draw.shuffled(range(1, size))[:3]), size


# ---- a causal window ---------------------------------------------------------


@exercise(
    "ch04-window", "expected the `width` keys that end with the query's own, no others"
)
def window_mask(queries, keys, width):
    """Mask (1, 1, t, s): the last `width` keys up to the query's own."""
    i, j = torch.arange(queries)[:, None], torch.arange(keys)
    own = i + keys - queries  # of the queries
    mask = (j <= own) & (j > own - width)
    return mask[None, None]


EDGE = "edge of the window stands where it would with as many queries as keys"
window_mask.instead("""
(j <= own) & (j > own - width)
    j <= own  # no window: only the last `width` keys up to one's own are seen
    j > own - width  # the future is seen: a query attends to nothing after its own key
    (j - own).abs() < width
        # the window reaches into the future: it ends at one's own key
    (j <= own) & (j >= own - width)
        # the window is one too wide: one's own key is one of the `width`
    (j <= own) & (j > own - width + 1)
        # the window is one too narrow: it holds `width` keys
    (j < own) & (j >= own - width)
        # a query does not see its own key: the window ends with it
    (j <= i) & (j > i - width)  # {AT_THE_END}
    (j <= own) & (j > i - width)  # the lower {EDGE}
    (j <= i) & (j > own - width)  # the upper {EDGE}
    j <= own - width  # these are the keys before the window
mask[None, None]
    ~mask[None, None]  # {POLARITY}
    mask[None, None].mT  # {TURNED}
    mask  # two axes of size 1, for batch and heads, are missing
[None, None] -> [None, None].float()  # … expected torch.bool
""")

window_mask.case(
    "the example: 3 queries, 5 keys, a window of 2", lambda draw: (3, 5, 2)
)
window_mask.case(
    "as many queries as keys, a window of 3",
    lambda draw: ((size := draw.integer(5, 9)), size, 3),
)
window_mask.case(
    "a window of 1 is one's own key", lambda draw: (3, draw.integer(4, 7), 1)
)
window_mask.case(
    "a window wider than all keys", lambda draw: (4, draw.integer(5, 8), 20)
)


@window_mask.case("the last queries of more keys")
def _(draw):
    width = draw.integer(2, 3)
    queries = width + draw.integer(1, 2)  # more than the window is wide: else a lower
    return queries, queries + draw.integer(4, 6), width  # edge unmoved hides nothing


# ---- a row that is lost ------------------------------------------------------

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


SIXTEEN = "float16 ends at −65504, and the number that you fill in doesn't fit"


def lost(weights, scores):
    """The hint for an answer that gives the last query no weights at all, or those of a
    hidden key, the third, where one of its scores is extreme; each time it has
    something to attend to; and for a number that float16 cannot hold."""
    if isinstance(weights, Raised):
        return SIXTEEN if "Half" in weights.message else None
    last = weights[..., -1, :]
    if scores.min() < -1e4 and last[..., 2].max() > 0.5:
        return WON
    if not last.sum() > 0 and not scores.isnan().any():  # 0 or NaN
        if scores.max() > 100:
            return LARGE
        if scores.min() < -1e4:
            return LOW


def gaps(*rows):
    """A mask (b, 1, 1, t), written with x for True and - for False."""
    return torch.tensor([[c == "x" for c in row] for row in rows])[:, None, None]


# ---- masked attention, whole ---------------------------------------------------


def scored(draw, *scores):
    """Arguments with these scores, one for each key; the third key is padding."""
    t, key = len(scores), torch.tensor(scores)[None, None, :, None]
    tokens = torch.tensor([[5, 7, 0, 6]])[:, :t]
    return torch.ones(1, 1, t, 1), key, torch.eye(t)[None, None], tokens, 0


@exercise(
    "ch04-masked-attention",
    "expected softmax(q kᵀ/√k) v over the real keys that are not after the query",
    through=written_out,
    symptoms=lambda y, query, key, *_: fused(y) or lost(y, query @ key.mT),
)
def masked_attention(query, key, value, tokens, pad):
    """Attention (b, h, t, v) to the real keys that are not after the query."""
    t, s = query.shape[2], tokens.shape[1]
    i, j = torch.arange(t)[:, None], torch.arange(s)
    own = i + s - t  # the last query's own key is the last one
    real = (tokens != pad)[:, None, None, :]  # (b, 1, 1, s)
    mask = real & (j <= own)  # (b, 1, t, s)
    empty = ~mask.any(dim=-1, keepdim=True)
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    return weights.masked_fill(empty, 0.0) @ value


masked_attention.instead(r"""
real & (j <= own)
    real.expand(-1, -1, t, -1)  # the future is seen
    j <= own + 0 * real  # padding is seen
    real | (j <= own)  # {JOINED}
    real & (j < own)  # {ONESELF}
    real & (j >= own)  # the future is seen and the past is not
    real.mT[:, :, -t:] & (j <= own)  # {ON_QUERIES}
    real & real.mT[:, :, -t:] & (j <= own)  # {QUERIES}
    real & (j <= i)  # {AT_THE_END}
    ~(real & (j <= own))  # {POLARITY}
    (real & (j <= own))[:, 0]
        # the mask has no axis for the heads, so it takes sentences for heads
    (real & (j <= own))[:1]
        # every sentence has its own padding: you use the first one's for all
    torch.ones(t, s) > 0  # this is without a mask
-torch.inf -> 0.0  # masked keys still get weight: exp(0) is 1
weights.masked_fill(empty, 0.0)
    weights  # a row with nothing to attend to gives NaN: what is the softmax of
        nothing but −∞?
    weights.nan_to_num(0.0)  # {GONE}
softmax(-1) -> softmax(-2).nan_to_num(0.0) * mask  # {OVER_QUERIES}
query.shape[-1] ** 0.5
    1  # the factor 1/√k is missing
    query.shape[-1]  # divided by k, not by √k
tokens != pad -> tokens != 0  # {NUMBER}
-torch.inf -> -1e9
.masked_fill(empty, 0.0) ->
        # a row with nothing to attend to averages everything; it should give zeros
scores.masked_fill(~mask, -torch.inf) -> scores
masked_fill(empty -> masked_fill(~mask  # {SUM_TO_1}
\n    empty
    \n    mask = mask[:, 0] if len(mask) == query.shape[1] else mask\n    empty
        # … takes sentences for heads
weights.masked_fill(empty, 0.0) @ value
    torch.nn.functional.scaled_dot_product_attention(query, key, value, mask)
        # … is what you build here
-torch.inf -> -1e9
weights.masked_fill(empty, 0.0) -> weights * mask  # … float16 ends
scores.masked_fill(~mask, -torch.inf) -> scores
weights.masked_fill(empty, 0.0) -> weights * mask / (weights * mask).sum(-1,
        keepdim=True).clamp(min=1e-6)
        # … a hidden score of 120 leaves
-torch.inf -> -1e4
weights.masked_fill(empty, 0.0) -> weights * mask  # … visible scores near −30000 get
scores.masked_fill(~mask, -torch.inf).softmax(-1) -> scores.exp() * mask
weights.masked_fill(empty, 0.0) -> weights / weights.sum(-1,
        keepdim=True).clamp(min=1e-6)
        # … visible scores near −30000 get 0
-torch.inf -> -1e4  # … beside visible scores near −30000 a hidden key gets
""")


def sentences(draw, b, t, pad, h=2):
    """Queries, keys and values of two widths, and tokens with padding at the end."""
    lengths = torch.tensor(draw.shuffled(range(1, t))[:b])
    words = draw.integers(10, 19, b, t)
    words[:, 0] = 0 if pad else 10  # a word like any other, where 0 is not padding
    tokens = words.masked_fill(torch.arange(t) >= lengths[:, None], pad)
    query, key = draw.normal(2, b, h, t, 4)
    return query, key, draw.normal(b, h, t, 3), tokens, pad


masked_attention.each("""
every axis of another length -> 3, 6, 0
as many sentences as heads, and padding that is not 0 -> 2, 5, 7
""")(sentences)
masked_attention.each("in half precision -> 2, 5, 0", dtype=torch.float16)(sentences)
masked_attention.each("""
the example: equal scores, two words and one pad -> 0.0, 0.0, 0.0
a hidden score of 120 -> 0.0, 2.0, 120.0, 1.0
visible scores near −30000, a hidden one of 0 -> -30000.0, -29998.0, 0.0, -29999.0
""")(scored)


@masked_attention.case("two new queries, and the keys of earlier words")
def _(draw):
    query, key, value, tokens, pad = sentences(draw, 3, 6, 0)
    return query[:, :, -2:], key, value, tokens, pad


@masked_attention.case("padding in front: the first queries have nothing to attend to")
@masked_attention.case("gradients, finite ones everywhere", gradients=True)
def _(draw):
    query, key, value, _, pad = sentences(draw, 2, 4, 1)
    return query, key, value, torch.tensor([[1, 1, 0, 3], [1, 4, 0, 2]]), pad


@masked_attention.case("a NaN in a query is not hidden")
def _(draw):
    query, key, value, tokens, pad = sentences(draw, 2, 4, 0)
    query[0, 0, 1, 0] = torch.nan
    return query, key, value, tokens, pad


# ---- the masked mean ---------------------------------------------------------

REPLACED = "a NaN at a real token has gone"


@exercise(
    "ch04-masked-mean", "expected the sum over the real tokens, divided by their number"
)
def masked_mean(x, mask):
    """Mean (b, d) of the tokens of x, (b, t, d), at which the mask is True."""
    real = mask[:, 0, 0, :, None]  # (b, t, 1)
    total = x.masked_fill(~real, 0.0).sum(dim=1)
    count = real.sum(dim=1).clamp(min=1)  # (b, 1); 0 real tokens: 0 / 1
    return total / count


OWN = "every sequence has its own number of real tokens; you use"
masked_mean.instead("""
.clamp(min=1)
    # NaN: a sequence with no real token should give zeros, not 0/0
    + 1e-6  # a small number is added to that of the tokens
x.masked_fill(~real, 0.0)
    (x * real)  # NaN: here the padding holds NaN and infinity, and 0 times these is NaN
    (x.nan_to_num(0.0, 0.0, 0.0) * real)
        # {REPLACED}: what did you replace besides padding?
real.sum(dim=1).clamp(min=1)
    x.shape[1]  # the sum is divided by t, which counts the padding too
    1  # the sum is not divided by the number of real tokens
    real.sum(dim=1).max().clamp(min=1)  # {OWN} the largest
    real.sum().clamp(min=1)  # {OWN} that of the batch
    (real.sum(dim=1) + 1e-3)  # … expected the sum over the real tokens, divided by
mask[:, 0, 0, :, None]
    ~mask[:, 0, 0, :, None]  # this is the mean of the padding: True = a real token
    mask.sort(descending=True).values[:, 0, 0, :, None]
        # padding may stand anywhere: these are the first tokens, as many as are real
total / count
    x.mean(dim=1)  # the mask is not used
    x.mean(dim=2)
        # this is the mean of each vector's entries; wanted is that of the tokens
    (total / count)[:, None]  # the axis of the tokens should go: (b, d), not (b, 1, d)
    (total / count).squeeze()
        # squeeze() drops every axis of length 1, also that of a lone sequence
    (total / count).mean(dim=0)
        # the mean over tokens is wanted, and each sequence keeps its own: (b, d)
    total.sum(dim=0) / real.sum().clamp(min=1)
        # all sequences are pooled into one mean; each keeps its own: (b, d)
.clamp(min=1) ->
x.masked_fill(~real, 0.0) -> (x.nan_to_num(0.0, 0.0, 0.0) * real)
total / count -> torch.where(count > 0, total / count, 0.0)
        # NaN comes back in the gradient: 0/0 was replaced after the division
.clamp(min=1) ->
total / count -> (total / count).nan_to_num(0.0)
        # {REPLACED} from the mean: is every NaN there a 0/0?
total / count -> x.masked_fill(~real, torch.nan).nanmean(1).where(real.any(1), 0.0)
        # {REPLACED}: nanmean leaves it out of the sum and of the count
x.masked_fill( -> x.masked_fill_(  # … changes its argument `x` in place
""")


def spoiled(x, mask):
    """A copy whose padding holds NaN and infinity in turn."""
    bad = torch.tensor([torch.nan, torch.inf]).repeat(x.shape[1])[: x.shape[1]]
    return torch.where(mask[:, 0, 0, :, None], x, bad[:, None].to(x.dtype))


@masked_mean.case("the example: the mean of (1, 2) and (3, 4)")
def _(draw):
    return torch.tensor([[[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]]), gaps("xx-")


@masked_mean.case("padding may stand anywhere")
@masked_mean.case("in double precision", dtype=torch.float64)
def _(draw):
    b, t, d = draw.sizes(3, low=3)
    return draw.normal(b, t, d), draw.mask(b, 1, 1, t)


masked_mean.each("""
as many sequences as tokens and entries -> 3, "x--", "-xx", "xxx"
a sequence with no real token gives zeros -> 4, "x-x", "---"
""")(lambda draw, d, *rows: (draw.normal(len(rows), 3, d), gaps(*rows)))


@masked_mean.each('padding that holds NaN and infinity -> 3, "xx--", "--xx"')
@masked_mean.each(
    'gradients reach x, and are finite -> 2, "x--x", "----", "xxxx"', gradients=True
)
def _(draw, d, *rows):
    mask = gaps(*rows)
    return spoiled(draw.normal(len(rows), 4, d), mask), mask


@masked_mean.case("a NaN at a real token is not hidden")
def _(draw):
    x = draw.normal(2, 3, 2)
    x[0, 1, 0] = torch.nan
    return x, gaps("xx-", "x-x")


# ---- broken: the weights -----------------------------------------------------


@exercise(
    "ch04-repair-weights",
    "expected the softmax over the keys that the mask allows, 0 elsewhere",
    symptoms=lambda output, scores, mask: lost(output, scores),
)
def masked_weights(scores, mask):
    """Weights (b, h, t, s) of the keys that the mask allows."""
    empty = ~mask.any(dim=-1, keepdim=True)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    return weights.masked_fill(empty, 0.0)


ZEROS = "it should get zeros"
masked_weights.instead(r"""
weights.masked_fill(empty, 0.0)
    weights  # NaN: the softmax of nothing but −∞ is 0/0; {ZEROS}
    weights.masked_fill(empty, 1 / scores.shape[-1])
        # a row with nothing to attend to gets the same weight for every key; {ZEROS}
    weights.where(~empty, scores.softmax(-1))
        # a row with nothing to attend to attends to everything; {ZEROS}
    weights.nan_to_num(0.0)  # {GONE}
scores.masked_fill(~mask, -torch.inf)
    scores  # the mask has no effect: masked_fill returns a new tensor, and leaves its
        own alone
    scores.masked_fill(~mask, -1e-9)
        # masked keys still get weight: −1e-9 is nearly 0, and exp(0) is 1
empty = -> mask = ~mask\n    empty =
        # the mask is read the wrong way round: True = may attend
.softmax(-1)
    .softmax(-2).nan_to_num(0.0) * mask  # {OVER_QUERIES}
    .masked_fill(~mask, 0.0)  # the softmax is missing
scores.masked_fill(~mask, -torch.inf) -> scores
masked_fill(empty -> masked_fill(~mask  # {SUM_TO_1}
\n    empty
    \n    mask = mask[:, :1, :1]\n    empty
        # … expected the softmax over the keys that the mask allows
scores.masked_fill(~mask, -torch.inf) -> (scores * mask)
weights.masked_fill(empty, 0.0) -> weights  # … exp(0) is 1
-torch.inf -> -1e9
weights.masked_fill(empty, 0.0) -> weights  # … gets the same weight for every key
scores.masked_fill(~mask, -torch.inf).softmax(-1) -> scores.exp() * mask\n    weights =
        (weights / weights.sum(-1, True)).nan_to_num(0)
        # … the gradient of scores holds NaN
-torch.inf -> -1e9
weights.masked_fill(empty, 0.0) -> weights * mask  # … float16 ends
scores.masked_fill(~mask, -torch.inf) -> scores
weights.masked_fill(empty, 0.0) -> weights * mask / (weights * mask).sum(-1,
        keepdim=True).clamp(min=1e-6)
        # … a hidden score of 120 leaves
-torch.inf -> -20
weights.masked_fill(empty, 0.0) -> weights * mask  # … visible scores near −30000 get
scores.masked_fill(~mask, -torch.inf).softmax(-1) -> scores.exp() * mask
weights.masked_fill(empty, 0.0) -> weights / weights.sum(-1,
        keepdim=True).clamp(min=1e-6)
        # … visible scores near −30000 get 0
-torch.inf -> -1e4  # … beside visible scores near −30000 a hidden key gets
""")


masked_weights.each("""
the example: scores 1, 1 and 5, the last of them masked -> "xx-", 1.0, 1.0, 5.0
a hidden score of 120 -> "xx-x", 0.0, 2.0, 120.0, 1.0
visible scores near −30000, a hidden one of 0 -> "xx-x", -3e4, -29998.0, 0.0, -29999.0
""")(lambda draw, mask, *scores: (torch.tensor([[[scores]]]), gaps(mask)))


@masked_weights.case("every axis of another length")
def _(draw):
    b, h, t, s = draw.sizes(4, low=3)
    return draw.normal(b, h, t, s), draw.mask(b, 1, 1, s)


@masked_weights.case("a mask for each head and each query")
@masked_weights.case("in half precision", dtype=torch.float16)
def _(draw):
    return draw.normal(2, 3, 4, 5), draw.mask(2, 3, 4, 5)


@masked_weights.case("a sequence with nothing to attend to gets zeros")
@masked_weights.case("gradients reach the scores, and are finite", gradients=True)
def _(draw):
    return draw.normal(2, 1, 3, 5), gaps("x-x-x", "-----")


@masked_weights.case("a NaN in a visible score is not hidden")
def _(draw):
    scores = draw.normal(2, 1, 2, 3)
    scores[0, 0, 1, 1] = torch.nan
    return scores, gaps("xxx", "x-x")


# ---- broken: the decoder's mask ----------------------------------------------


@exercise(
    "ch04-repair-decoder", "expected True where the key is real and not after the query"
)
def decoder_mask(tokens, pad, training):
    """Mask (b, 1, t, t): real keys that are not in the future."""
    b, t = tokens.shape
    i, j = torch.arange(t)[:, None], torch.arange(t)
    real = (tokens != pad)[:, None, None, :]
    mask = real & (j <= i)  # in evaluation too: the future is still there
    return mask.expand(b, 1, t, t)


EVALUATED = "when training is False: it must be the same then"
decoder_mask.instead("""
real & (j <= i)
    real & (j <= i) if training else real  # the future is seen {EVALUATED}
    real & (j <= i) if training else j <= i  # padding is seen {EVALUATED}
    real & (j <= i) if training else j >= 0  # everything is seen {EVALUATED}
    real  # the future is seen
    j <= i  # padding is seen
    j >= 0  # everything is seen
    real | (j <= i)  # {JOINED}
    real & (j < i)  # {ONESELF}
    real & (j >= i)  # the future is seen and the past is not
    real & real.mT & (j <= i)  # {QUERIES}
    real.mT & (j <= i)  # {ON_QUERIES}: rows are queries, columns keys
    ~(real & (j <= i))  # {POLARITY}
    (real & (j <= i)).mT  # {TURNED}
tokens != pad -> tokens != 0  # {NUMBER}
.expand(b, 1, t, t) -> [:, 0]  # {HEADLESS}, (b, 1, t, t)
(tokens != pad) -> tokens.sub_(pad).bool()  # … changes its argument `tokens` in place
""")


def padded(draw, b, t, pad):
    """Words from 0 to 9, with padding in every row, wherever it falls."""
    return draw.integers(0, 9, b, t).masked_fill(~draw.mask(b, t), pad)


decoder_mask.each("""
the example: two words and one pad, in training -> [[5, 7, 0]], 0, True
the same in evaluation: the same mask -> [[5, 7, 0]], 0, False
two sentences, and a padding that is not 0 -> [[3, 4, 1, 1], [2, 0, 5, 1]], 1, True
""")(lambda draw, words, pad, training: (torch.tensor(words), pad, training))


@decoder_mask.each("""
padding in front, and in between -> 3, 6, True
as many sentences as positions, in evaluation -> 4, 4, False
""")
def _(draw, rows, length, training):
    pad = draw.integer(2, 9)
    return padded(draw, rows, length, pad), pad, training


# ---- broken: the loss --------------------------------------------------------


@exercise(
    "ch04-repair-loss",
    "expected the mean of −log p(target) over the real targets of the batch",
)
def masked_loss(logits, targets, pad):
    """Mean loss over the real targets of a batch."""
    real = targets != pad
    logs = logits.log_softmax(-1)
    losses = -logs.gather(2, targets[..., None])[..., 0]
    total = (losses * real).sum()
    count = real.sum().clamp(min=1)
    return total / count


masked_loss.instead(r"""
real.sum().clamp(min=1)
    real.sum()
        # NaN: with no real target the loss should be 0, and the mean of nothing is 0/0
    real.numel()  # the sum is divided by all positions: padding counts as a loss of 0
    1  # the sum is not divided by the number of real targets
    len(real)  # the sum is divided by the number of sentences
total / count
    losses.mean()  # the loss at the padding is counted
    losses * real  # these are the losses of single positions; their mean is wanted
targets != pad
    targets == pad  # only the loss at the padding is counted
    targets != 0  # {NUMBER}
logits.log_softmax(-1)
    logits.reshape(logits.mT.shape).mT.log_softmax(-1)
        # view and reshape change which number belongs to which word
    logits.softmax(-1).log()  # infinite: a small probability is rounded to 0, and log 0
        is −∞; log_softmax and logsumexp never form it
    logits.softmax(-1)  # the probabilities have no logarithm
.clamp(min=1) ->
total / count -> (total / count).nan_to_num(0)
        # a NaN of a real target has gone: is every NaN there a 0/0?
.sum()\n    count -> .sum(1)\n    count
real.sum() -> real.sum(1)
total / count -> (total / count).mean()  # this is the mean of the sentences' means:
        words of short sentences count for more
.sum()\n    count -> .sum(1)\n    count
real.sum() -> real.sum(1)
        # this is one loss for each sentence; one for the batch is wanted
total / count
    losses[real].mean()  # … the mean of nothing is 0/0
    losses[real].mean().nan_to_num(0)  # … a NaN of a real target has gone
    (total / count).item()  # … expected a tensor, got float
logits.log_softmax(-1)
    logits.masked_fill(torch.arange(logits.shape[-1]) == pad, -1e4).log_softmax(-1)
        # … expected the mean of −log p
""")


@masked_loss.case("the example: four words, all equally likely, give ln 4")
def _(draw):
    return torch.zeros(1, 3, 4), torch.tensor([[2, 1, 0]]), 0


@masked_loss.each("""
a long sentence and a short one, padding is word 3 -> 5, 3, [2, 0, 4, 3], [1, 3, 3, 3]
with no real target the loss is 0 -> 3, 0, [0, 0], [0, 0]
""")
@masked_loss.each(
    "gradients with no real target: finite ones -> 3, 0, [0, 0], [0, 0]", gradients=True
)
def _(draw, v, pad, *rows):
    return draw.normal(2, len(rows[0]), v), torch.tensor(rows), pad


@masked_loss.case("padding in front, and in between")
@masked_loss.case("in double precision", dtype=torch.float64)
@masked_loss.case("gradients reach the logits", gradients=True)
def _(draw):
    pad = draw.integer(1, 9)
    return draw.normal(3, 6, 10), padded(draw, 3, 6, pad), pad


@masked_loss.case("a NaN at a real target is not hidden")
def _(draw):
    logits = draw.normal(2, 3, 4)
    logits[0, 1, 2] = torch.nan
    return logits, torch.tensor([[1, 2, 0], [3, 0, 0]]), 0


@masked_loss.case("a target whose logit is 1000 below the largest")
def _(draw):
    return torch.tensor([[[0.0, 1000.0, 0.0]]]), torch.tensor([[0]]), 2
