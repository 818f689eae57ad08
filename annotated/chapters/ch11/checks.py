"""The exercises of chapter 11; ``__init__.py`` says how one is written."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from annotated.checks import Function, exercise, faults

# ---- windows that overlap ------------------------------------------------------


def not_three(result, ids, length, stride):
    if not (isinstance(result, tuple | list) and len(result) == 3):
        return None
    if isinstance(result[2], Tensor) and result[2].dtype != torch.bool:
        return "the third tensor says yes or no: bool"
    rows = len(range(0, len(ids) - length, stride))
    if len(result[0]) <= rows or len(result[0]) == len(ids) - length:
        return None
    if rows * stride + length == len(ids):
        return (
            "one window too many: nothing follows the last character of the last one, "
            "so its target is missing"
        )
    return "more windows than there are: what is left at the end is dropped"


@exercise(
    "ch11-windows",
    "expected windows that begin 0, stride, 2·stride … characters into the text, the "
    "same one character later, and which targets no window before has counted",
    symptoms=not_three,
)
def overlapping(ids, length, stride):
    """Windows, their targets, and which targets count; (b, t) each."""
    begins = range(0, len(ids) - length, stride)
    windows = torch.stack([ids[i : i + length] for i in begins])
    targets = torch.stack([ids[i + 1 : i + length + 1] for i in begins])
    place, row = torch.arange(length), torch.arange(len(begins))[:, None]
    count = (row == 0) | (place >= length - stride)
    return windows, targets, count


overlapping.instead(r"""
ids[i + 1 : i + length + 1]
    ids[i : i + length]
        # the targets are the windows themselves: each target is one character later
    ids[i : i + length].roll(-1)  # the targets are shifted within each window; the last
        one is the character that follows in the text
range(0, len(ids) - length, stride)
    range(0, len(ids) - length, length)
        # the windows lie end to end; the next one begins `stride` further
    range(0, max(len(ids) - length - 1, 1), stride)
        # the last window is missing, though all its targets are there
    range(len(ids) - length)
        # windows begin at every character; they should begin every `stride`
(row == 0) | (place >= length - stride)
    (row >= 0) & (place >= 0)
        # everything counts, so that some characters count several times
    (row >= 0) & (place >= length - stride)
        # the first window counts only its end; none has counted its beginning
    (row == 0) | (place < stride)
        # the first `stride` targets of a window count; new are the last ones
    (row == 0) | (place >= stride)  # what overlaps is length − stride, not stride
    (row > 0) & (place < length - stride)  # it is the other way round: True = counts
range(0, len(ids) - length, stride) -> range(0, len(ids) - length + 1, stride)
ids[i + 1 : i + length + 1] -> ids.roll(-1)[i : i + length]  # … its target is missing
begins = -> ids = torch.cat([ids, ids.new_zeros(length)])\n    begins =
        # … what is left at the end is dropped
""")

overlapping.case(
    "the example: nine characters, windows of 4, 2 apart",
    lambda draw: (torch.arange(9), 4, 2),
)
overlapping.each("""
another text; some characters are left at the end -> 19, 5, 3
a text that ends with the last target -> 14, 7, 2
windows that do not overlap -> 14, 4, 4
one character further each time -> 9, 5, 1
""")(lambda draw, size, *window: (draw.integers(0, 90, size), *window))


# ---- bits per character --------------------------------------------------------


def ruled_out(result, *_):
    number = isinstance(result, int | float | Tensor)
    if number and not torch.as_tensor(result).isfinite().all():
        return (
            "infinity or NaN: the softmax of a small logit is rounded to 0 before its "
            "logarithm is taken"
        )


@exercise(
    "ch11-bits",
    "expected all bits of the targets that count, over all their characters",
    symptoms=ruled_out,
)
def bits_per_character(logits, targets, sizes, count):
    """All bits of the targets that count, divided by all their characters."""
    logs = logits.log_softmax(dim=-1).gather(-1, targets[..., None])[..., 0]  # (b, t)
    bits, characters = -logs / math.log(2), sizes[targets]
    return (bits[count].sum() / characters[count].sum()).item()


bits_per_character.instead("""
/ math.log(2)
    / 1  # these are nats; a bit is ln 2 of them
    * math.log(2)  # nats are multiplied by ln 2; they should be divided by it
(bits[count].sum() / characters[count].sum())
    bits[count].mean()  # these are bits per token: sizes are not used
    (bits / characters)[count].mean()  # this is the mean of each token's own bits per
        character; all bits are divided by all characters
    (bits.sum() / characters.sum())  # targets that do not count are among them
    (bits[count].sum() / characters.sum())  # targets that do not count bring characters
    ((bits * count).sum(1) / (characters * count).sum(1)).mean()
        # this is the mean over the rows, which need not be equally long
logits.log_softmax(dim=-1) -> (logits * math.log(2))
        # the logits are not probabilities: where is the softmax?
-logs -> logs  # the sign is wrong: a surprise is positive
log_softmax(dim=-1) -> softmax(dim=-1).log()  # … rounded to 0 before its logarithm
""")


@bits_per_character.case("the example: 0.75 bits")
def _(draw):
    chances = torch.tensor([[[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]])
    everything = torch.ones(1, 2, dtype=torch.bool)
    return chances.log(), torch.tensor([[0, 1]]), torch.tensor([1, 3, 2]), everything


@bits_per_character.case("a target that the model rules out: 200 below the others")
def _(draw):
    logits = draw.normal(1, 3, 4)
    logits[0, 1, 2] -= 200
    targets, everything = torch.tensor([[0, 2, 3]]), torch.ones(1, 3, dtype=torch.bool)
    return logits, targets, draw.integers(1, 9, 4), everything


@bits_per_character.case("rows that count more, and less")
def _(draw):
    b, t, v = draw.sizes(3, 3, 8)
    count = draw.mask(b, t)
    count[0, :] = True
    tokens = draw.integers(0, v - 1, b, t)
    return 2 * draw.normal(b, t, v), tokens, draw.integers(1, 9, v), count


@bits_per_character.case("every token is one character, and everything counts")
def _(draw):
    b, t, v = draw.sizes(3)
    tokens, one = draw.integers(0, v - 1, b, t), torch.ones(v, dtype=torch.int64)
    return 2 * draw.normal(b, t, v), tokens, one, torch.ones(b, t, dtype=torch.bool)


# ---- which characters may be drawn ---------------------------------------------


def not_bool(result, *_):
    if isinstance(result, Tensor) and result.dtype != torch.bool:
        return "the result says yes or no: bool"


@exercise(
    "ch11-nucleus",
    "expected the likeliest characters, up to and with the one that reaches p",
    symptoms=not_bool,
)
def may_be_drawn(logits, temperature, p):
    """Which characters top-p keeps, after the temperature; bool (b, v)."""
    chances = (logits / temperature).softmax(dim=-1)
    falling, places = chances.sort(dim=-1, descending=True)
    reached = falling.cumsum(dim=-1)  # with the character itself
    kept = (reached - falling < p) | torch.tensor(p == 1)
    return torch.zeros_like(kept).scatter(-1, places, kept)


may_be_drawn.instead("""
(logits / temperature).softmax(dim=-1)
    logits.softmax(dim=-1)  # the temperature is not used
    (logits * temperature).softmax(dim=-1)
        # the temperature multiplies the logits; it should divide them
    (logits.softmax(dim=-1) / temperature).softmax(dim=-1)
        # the temperature divides probabilities; it should divide the logits
    logits.softmax(dim=-1) / temperature  # softmax(logits) / temperature does not sum
        to 1; the temperature divides the logits, before the softmax
reached - falling < p
    reached <= p  # the character that reaches p is dropped; it should be kept
    falling >= p  # p is a sum of probabilities; here each one alone is compared with it
    falling >= p * falling[:, :1]
        # this is min-p: each probability is compared with the largest
torch.zeros_like(kept).scatter(-1, places, kept)
    (chances.cumsum(dim=-1) - chances < p) | torch.tensor(p == 1)  # the probabilities
        are added up in the order of the ids; the likeliest come first
    kept  # the result is in the order of the probabilities, not in that of the logits
    kept.gather(-1, places)  # brought back to the order of the logits the wrong way
        round: `gather` where `scatter` is needed, or indices that were not inverted
    torch.zeros_like(kept).scatter(-1, places, kept)[:1].expand_as(kept)
        # each row has its own nucleus
    chances >= 1 - p
        # p is a sum of probabilities; here each one alone is compared with 1 − p
descending=True -> descending=False  # the least likely characters come first here
falling < p) | torch.tensor(p == 1) -> falling < p - 1e-6)
        # at p = 1 everything is kept, also what is too small to change a rounded sum
""")


@may_be_drawn.case("the example: the last three of five")
def _(draw):
    return torch.tensor([[0.05, 0.1, 0.25, 0.2, 0.4]]).log(), 1.0, 0.7


@may_be_drawn.case("four rows, each with a nucleus of its own")
def _(draw):
    spread = torch.tensor([[0.3], [1.0], [2.0], [4.0]])
    return spread * draw.normal(4, 11), 1.0, draw.number(0.7, 0.8)


may_be_drawn.each("""
a low temperature leaves fewer -> 0.3, 0.3, 0.9
a high temperature leaves more -> 2, 3.0, 0.6
""")(lambda draw, spread, *given: (spread * draw.normal(3, 12), *given))


@may_be_drawn.each("""
one character that has more than p is left alone -> 4, 12, 0.5
p = 1 keeps everything -> 2, 40, 1
""")
def _(draw, symbol, lead, p):  # beside 40 more, the others vanish in float32
    logits = draw.normal(2, 7)
    logits[:, symbol] += lead
    return logits, 1.0, p


# ---- a GPT ---------------------------------------------------------------------


def norm(x):
    return F.layer_norm(x, x.shape[-1:])


def no_number(result, *_):
    if isinstance(result, Tensor) and result.isnan().any():
        return (
            "NaN: the first position, which has only itself, must be allowed to look "
            "at itself; or a mask multiplied 0 by ∞ (use `masked_fill`)"
        )


ITSELF = "a position may look at itself, too"
ROWS = "a matrix W maps x to Wx: with rows, x @ W.T"


@exercise(
    "ch11-gpt",
    "expected embedding + position; in each layer attention to the past, then the "
    "network, each added to the stream and reading its LN; LN; the embedding again",
    symptoms=no_number,
)
def gpt(tokens, embedding, positions, layers):
    """Logits (b, t, v) of what comes next at each position."""
    t, d = tokens.shape[1], embedding.shape[1]

    def norm(y):
        return F.layer_norm(y, (d,))

    past = torch.ones(t, t).tril().bool()  # (t, t), True = may look
    x = embedding[tokens] + positions[:t]  # (b, t, d)
    for w in layers:
        y = norm(x)
        q, k, v = (y @ w[name].T for name in ("query", "key", "value"))
        scores = (q @ k.mT / d**0.5).masked_fill(~past, -torch.inf)
        mixed = scores.softmax(dim=-1) @ v
        middle = x + mixed @ w["output"].T
        y = norm(middle)
        x = middle + (y @ w["inner"].T).relu() @ w["outer"].T
    return norm(x) @ embedding.T


gpt.instead("""
tril()
    fill_(1)  # every position sees the whole sequence: where is the causal mask?
    triu()  # the mask is upside down: positions see the future, not the past
    tril(1)  # the mask lets each position see one step ahead
    tril(-1)  # … NaN: the first position
@ w["output"].T
    # what attention mixes goes through `"output"` before it is added
    @ w["output"]  # {ROWS}, for the output, too
w[name].T
    w[name]  # {ROWS}, for query, key and value, too
    (w[name] if name == "query" else w[name].T)  # {ROWS}, for the query, too
    (w[name] if name == "key" else w[name].T)  # {ROWS}, for the key, too
    (w[name] if name == "value" else w[name].T)  # {ROWS}, for the value, too
    (w[name] if name != "value" else w[name].T)  # {ROWS}, for query and key, too
(y @ w["inner"].T).relu()
    F.gelu(y @ w["inner"].T)  # the network uses ReLU, not GELU
    (y @ w["inner"].T)  # the network is linear: where is the ReLU?
+ positions[:t]
    # the positions are not added
    + positions[-t:]  # the last positions of the table are taken, not the first
    * d**0.5 + positions[:t]  # the embedding is not multiplied by √d in this model
/ d**0.5
    # scores are divided by √d
    / d  # scores are divided by d, not by √d
y = norm(x) -> y = x  # attention reads the stream without its LN
y = norm(middle)
    y = norm(x)  # the network reads the stream from before the attention
    y = middle  # the network reads the stream without its LN
norm(x) @ embedding -> x @ embedding  # the LN after the last layer is missing
scores.softmax(dim=-1) -> scores.softmax(dim=-2)
        # the softmax runs over the queries; each row of weights sums to 1
-torch.inf -> 0.0
        # future scores are multiplied by 0, which still has weight; −∞ has none
in layers -> in layers[-1:]  # only the last layer is applied
tril() -> tril(-1)
softmax(dim=-1) -> softmax(dim=-1).nan_to_num()  # {ITSELF}
tril() -> tril(-1)
-torch.inf -> -1e9  # {ITSELF}: the first one has nothing else
x + mixed -> mixed
middle + (y -> (y  # what is added to the stream replaces it: where is the residual?
y = norm(x) -> y = x
x + mixed @ w["output"].T -> norm(x + mixed @ w["output"].T)
y = norm(middle) -> y = middle
middle + (y @ w["inner"].T).relu() @ w["outer"].T -> norm(middle + (y @
        w["inner"].T).relu() @ w["outer"].T)
        # the sums are normalised, not what the sublayers read (post-norm)
y = norm(x) -> y = x
y = norm(middle) -> y = middle  # nothing is normalised before the sublayers
x + mixed -> norm(x) + mixed
middle + (y -> norm(middle) + (y
        # the normalised stream is carried on; add to the stream itself
w[name].T -> w[name]
w["output"].T -> w["output"]  # {ROWS}
""")


def parts(draw, layers, t, d, v, f, n):
    shapes = dict.fromkeys(("query", "key", "value", "output"), (d, d))
    shapes |= {"inner": (f, d), "outer": (d, f)}
    made = [{k: 0.7 * draw.normal(*shape) for k, shape in shapes.items()}
            for _ in range(layers)]  # fmt: skip
    tokens = draw.integers(0, v - 1, 2, t)
    return tokens, draw.normal(v, d), draw.normal(n, d), made


gpt.each("""
no layer: embedding, position, LN, and the embedding again -> 0, 5, 4, 7, 6, 8
one layer -> 1, 5, 4, 7, 6, 8
a single token -> 2, 1, 4, 7, 6, 3
""")(parts)


@gpt.case("three layers, every axis of another length")
def _(draw):
    t, d, v, f = draw.sizes(4, 4, 9)
    return parts(draw, 3, t, d, v, f, t + 3)


# ---- a sampling loop -----------------------------------------------------------


@exercise(
    "ch11-repair",
    "expected the first character at which the probabilities that top-k keeps of "
    "softmax(logits / temperature), brought to a sum of 1, exceed the draw",
    faults("""
ids[:, -context:] -> ids[:, :context]
        # the window does not slide: the first characters are read, not the last
(logits / temperature).softmax(dim=-1) -> logits.softmax(dim=-1)
        # the temperature changes nothing: probabilities divided by it, and brought back
        to a sum of 1, are what they were
chances = chances / chances.sum(dim=-1, keepdim=True) -> # what top-k keeps does not add
        up to 1, so a large draw finds nothing, and id 0 is written
"""),
)
def write_on(logits_of, prompt, draws, temperature, k, context):
    """Go on after a prompt, one character for each draw; ids (1, n)."""
    ids = prompt
    for draw in draws:
        logits = logits_of(ids[:, -context:])[:, -1]  # (1, v)
        chances = (logits / temperature).softmax(dim=-1)
        chances = chances * (chances >= chances.topk(k).values[:, -1:])
        chances = chances / chances.sum(dim=-1, keepdim=True)
        symbol = (chances.cumsum(dim=-1) > draw).int().argmax(dim=-1)  # (1,)
        ids = torch.cat([ids, symbol[:, None]], dim=1)
    return ids[:, prompt.shape[1] :]


write_on.instead("""
ids[:, -context:]
    ids  # everything is read, more than the model can
    ids[:, -1:]  # only the last character is read; the model can see more
(logits / temperature).softmax(dim=-1)
    (logits.softmax(-1) / temperature).softmax(-1)
        # the temperature divides probabilities; it should divide the logits
    (logits * temperature).softmax(dim=-1)
        # the temperature multiplies the logits; it should divide them
(chances.cumsum(dim=-1) > draw).int().argmax(dim=-1)
    chances.argmax(dim=-1)  # the likeliest character is always taken; the draw decides
    (chances.cumsum(dim=-1) >= draw).int().argmax(dim=-1)  # a draw of 0 writes a
        character whose probability is 0: the sum should exceed the draw
chances * (chances >= chances.topk(k).values[:, -1:]) -> chances
        # all characters may be drawn: where is top-k?
topk(k) -> topk(max(k - 1, 1))  # k characters may be drawn, not k − 1
[:, prompt.shape[1] :] -> # the prompt is returned as well
[:, -1] -> [:, 0]
        # the logits of the first position are used; those of the last are wanted
""")


def model_of(v, weight):
    """A function of all ids that it reads: logits (1, t, v)."""
    total = "(ids.double() * torch.arange(1, ids.shape[1] + 1)).cumsum(1)[..., None]"
    return Function(f"{weight} * torch.sin({total} + 1.7 * torch.arange({v}))", "ids")


@write_on.each("""
the toy model, cold: 3, 4, 5, 6 -> 0.5, 0.9, 0.6, 0.97
draws of 0 -> 0.0, 0.5, 0.0
""")
def _(draw, *draws):
    toy = "-2.0 * (torch.arange(9) - ids[..., None] - 1.2).abs().double()"
    draws = torch.tensor(draws, dtype=torch.float64)
    return Function(toy, "ids"), torch.tensor([[2]]), draws, 0.1, 2, 3


table = """
temperature 1, everything kept, all that was written fits -> 1, 1.0, None, 12
a low temperature -> 4, 0.4, None, 14
a high temperature -> 2, 2.0, None, 12
top-k, with draws near 1 -> 3, 1.5, 3, 14
a window that slides -> 3, 1.0, None, 4
all of it, and a prompt that is longer than the context -> 5, 2.0, 4, 3
"""


@write_on.each(table, dtype=torch.float64)
def _(draw, s, temperature, k, context):
    v = draw.integer(8, 10)
    prompt, draws = draw.integers(0, v - 1, 1, s), draw.uniform(0.02, 0.98, 9)
    if k:
        draws[::3] = draw.uniform(0.95, 0.99, 3)
    return model_of(v, 2.0), prompt, draws, temperature, k or v, context
