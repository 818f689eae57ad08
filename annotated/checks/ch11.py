"""The exercises of chapter 11; ``__init__.py`` says how one is written."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from annotated.checks import Exercise, Function

# ---- windows that overlap ------------------------------------------------------


def starts(n, length, stride):
    return range(0, n - length, stride)


def cut(ids, length, stride, *, begins=starts, target=None, counted=None):
    begins = list(begins(len(ids), length, stride))
    target = target or (lambda ids, i, length: ids[i + 1 : i + length + 1])
    counted = counted or (
        lambda row, j, length, stride: row == 0 or j >= length - stride
    )
    windows = torch.stack([ids[i : i + length] for i in begins])
    targets = torch.stack([target(ids, i, length) for i in begins])
    count = [
        [bool(counted(row, j, length, stride)) for j in range(length)]
        for row in range(len(begins))
    ]
    return windows, targets, torch.tensor(count)


def cutting(**changes):
    return lambda *given: cut(*given, **changes)


def not_three(result, ids, length, stride):
    if not (isinstance(result, tuple | list) and len(result) == 3):
        return None
    if isinstance(result[2], Tensor) and result[2].dtype != torch.bool:
        return "the third tensor says yes or no: bool"
    rows = len(starts(len(ids), length, stride))
    if len(result[0]) <= rows or len(result[0]) == len(ids) - length:
        return None
    if rows * stride + length == len(ids):
        return (
            "one window too many: nothing follows the last character of the last one, "
            "so its target is missing"
        )
    return "more windows than there are: what is left at the end is dropped"


windows = Exercise(
    "ch11-windows",
    right=cut,
    symptoms=not_three,
    hint="expected windows that begin 0, stride, 2·stride … characters into the text, "
    "the same one character later, and which targets no window before has counted",
    mistakes={
        "the targets are the windows themselves: each target is one character later": (
            cutting(target=lambda ids, i, length: ids[i : i + length])
        ),
        "the targets are shifted within each window; the last one is the character "
        "that follows in the text": cutting(
            target=lambda ids, i, length: ids[i : i + length].roll(-1)
        ),
        "the windows lie end to end; the next one begins `stride` further": cutting(
            begins=lambda n, length, stride: range(0, n - length, length)
        ),
        "the last window is missing, though all its targets are there": cutting(
            begins=lambda n, length, stride: range(0, max(n - length - 1, 1), stride)
        ),
        "windows begin at every character; they should begin every `stride`": cutting(
            begins=lambda n, length, stride: range(n - length)
        ),
        "everything counts, so that some characters count several times": cutting(
            counted=lambda *_: True
        ),
        "the first window counts only its end; none has counted its beginning": cutting(
            counted=lambda row, j, length, stride: j >= length - stride
        ),
        "the first `stride` targets of a window count; new are the last ones": cutting(
            counted=lambda row, j, length, stride: row == 0 or j < stride
        ),
        "what overlaps is length − stride, not stride": cutting(
            counted=lambda row, j, length, stride: row == 0 or j >= stride
        ),
        "it is the other way round: True = counts": cutting(
            counted=lambda row, j, length, stride: row > 0 and j < length - stride
        ),
    },
)


@windows.case("the example: nine characters, windows of 4, 2 apart")
def _(draw):
    return torch.arange(9), 4, 2


@windows.case("another text; some characters are left at the end")
def _(draw):
    return draw.integers(0, 90, 5 + 3 * 4 + 2), 5, 3


@windows.case("a text that ends with the last target")
def _(draw):
    return draw.integers(0, 90, 7 + 2 * 3 + 1), 7, 2


@windows.case("windows that do not overlap")
def _(draw):
    return draw.integers(0, 90, 14), 4, 4


@windows.case("one character further each time")
def _(draw):
    return draw.integers(0, 90, 9), 5, 1


# ---- bits per character --------------------------------------------------------


def costs(logits, targets, log=torch.Tensor.log2):
    chances = logits.softmax(dim=-1).gather(-1, targets[..., None])
    return -log(chances[..., 0])


def per_character(logits, targets, sizes, count):
    return (costs(logits, targets)[count].sum() / sizes[targets][count].sum()).item()


bits = Exercise(
    "ch11-bits",
    right=per_character,
    hint="expected all bits of the targets that count, over all their characters",
    mistakes={
        "these are nats; a bit is ln 2 of them": lambda logits, targets, sizes, count: (
            per_character(logits, targets, sizes, count) * math.log(2)
        ),
        "nats are multiplied by ln 2; they should be divided by it": (
            lambda logits, targets, sizes, count: (
                per_character(logits, targets, sizes, count) * math.log(2) ** 2
            )
        ),
        "these are bits per token: sizes are not used": (
            lambda logits, targets, sizes, count: (
                costs(logits, targets)[count].mean().item()
            )
        ),
        "this is the mean of each token's own bits per character; all bits are divided "
        "by all characters": lambda logits, targets, sizes, count: (
            (costs(logits, targets) / sizes[targets])[count].mean().item()
        ),
        "targets that do not count are among them": (
            lambda logits, targets, sizes, count: (
                costs(logits, targets).sum() / sizes[targets].sum()
            ).item()
        ),
        "targets that do not count bring characters": (
            lambda logits, targets, sizes, count: (
                costs(logits, targets)[count].sum() / sizes[targets].sum()
            ).item()
        ),
        "this is the mean over the rows, which need not be equally long": (
            lambda logits, targets, sizes, count: (
                (
                    (costs(logits, targets) * count).sum(1)
                    / (sizes[targets] * count).sum(1)
                )
                .mean()
                .item()
            )
        ),
        "the logits are not probabilities: where is the softmax?": (
            lambda logits, targets, sizes, count: (
                -logits.gather(-1, targets[..., None])[..., 0][count].sum()
                / sizes[targets][count].sum()
            ).item()
        ),
        "the sign is wrong: a surprise is positive": (
            lambda logits, targets, sizes, count: (
                -per_character(logits, targets, sizes, count)
            )
        ),
    },
)


@bits.case("the example: 0.75 bits")
def _(draw):
    chances = torch.tensor([[[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]])
    everything = torch.ones(1, 2, dtype=torch.bool)
    return chances.log(), torch.tensor([[0, 1]]), torch.tensor([1, 3, 2]), everything


@bits.case("rows that count more, and less")
def _(draw):
    b, t, v = draw.sizes(3, 3, 8)
    count = draw.mask(b, t)
    count[0, :] = True
    tokens = draw.integers(0, v - 1, b, t)
    return 2 * draw.normal(b, t, v), tokens, draw.integers(1, 9, v), count


@bits.case("every token is one character, and everything counts")
def _(draw):
    b, t, v = draw.sizes(3)
    tokens, one = draw.integers(0, v - 1, b, t), torch.ones(v, dtype=torch.int64)
    return 2 * draw.normal(b, t, v), tokens, one, torch.ones(b, t, dtype=torch.bool)


# ---- which characters may be drawn ---------------------------------------------


def nucleus(logits, temperature, p, *, heat=None, before=None):
    heat = heat or (lambda z, temperature: (z / temperature).softmax(dim=-1))
    chances = heat(logits, temperature)
    falling, places = chances.sort(dim=-1, descending=True)
    reached = falling.cumsum(dim=-1)
    kept = before(falling, reached, p) if before else reached - falling < p
    return torch.zeros_like(kept).scatter(-1, places, kept | (torch.tensor(p) == 1))


def nucleus_with(**changes):
    return lambda *given: nucleus(*given, **changes)


def unsorted(logits, temperature, p):
    chances = (logits / temperature).softmax(dim=-1)
    return (chances.cumsum(dim=-1) - chances < p) | (torch.tensor(p) == 1)


def in_order(logits, temperature, p):
    falling = (logits / temperature).softmax(dim=-1).sort(-1, descending=True)[0]
    return (falling.cumsum(dim=-1) - falling < p) | (torch.tensor(p) == 1)


def first_row_for_all(logits, temperature, p):
    return nucleus(logits, temperature, p)[:1].expand_as(logits)


def gathered(logits, temperature, p):
    chances = (logits / temperature).softmax(dim=-1)
    falling, places = chances.sort(dim=-1, descending=True)
    kept = (falling.cumsum(dim=-1) - falling < p) | (torch.tensor(p) == 1)
    return kept.gather(-1, places)


def above_the_rest(logits, temperature, p):
    return (logits / temperature).softmax(dim=-1) >= 1 - p


def not_bool(result, *_):
    if isinstance(result, Tensor) and result.dtype != torch.bool:
        return "the result says yes or no: bool"


drawn = Exercise(
    "ch11-nucleus",
    right=nucleus,
    symptoms=not_bool,
    hint="expected the likeliest characters, up to and with the one that reaches p",
    mistakes={
        "the character that reaches p is dropped; it should be kept": nucleus_with(
            before=lambda falling, reached, p: reached <= p
        ),
        "the probabilities are added up in the order of the ids; the likeliest come "
        "first": unsorted,
        "the result is in the order of the probabilities, not in that of the logits": (
            in_order
        ),
        "brought back to the order of the logits the wrong way round: `gather` where "
        "`scatter` is needed, or indices that were not inverted": gathered,
        "the least likely characters come first here": lambda logits, *given: nucleus(
            -logits, *given
        ),
        "the temperature is not used": nucleus_with(
            heat=lambda z, temperature: z.softmax(dim=-1)
        ),
        "the temperature multiplies the logits; it should divide them": nucleus_with(
            heat=lambda z, temperature: (z * temperature).softmax(dim=-1)
        ),
        "the temperature divides probabilities; it should divide the logits": (
            nucleus_with(
                heat=lambda z, temperature: (z.softmax(dim=-1) / temperature).softmax(
                    dim=-1
                )
            )
        ),
        "softmax(logits) / temperature does not sum to 1; the temperature divides the "
        "logits, before the softmax": nucleus_with(
            heat=lambda z, temperature: z.softmax(dim=-1) / temperature
        ),
        "each row has its own nucleus": first_row_for_all,
        "at p = 1 everything is kept, also what is too small to change a rounded sum": (
            lambda logits, temperature, p: nucleus(logits, temperature, p - 1e-6)
        ),
        "p is a sum of probabilities; here each one alone is compared with it": (
            nucleus_with(before=lambda falling, reached, p: falling >= p)
        ),
        "p is a sum of probabilities; here each one alone is compared with 1 − p": (
            above_the_rest
        ),
        "this is min-p: each probability is compared with the largest": nucleus_with(
            before=lambda falling, reached, p: falling >= p * falling[:, :1]
        ),
    },
)


@drawn.case("the example: the last three of five")
def _(draw):
    return torch.tensor([[0.05, 0.1, 0.25, 0.2, 0.4]]).log(), 1.0, 0.7


@drawn.case("four rows, each with a nucleus of its own")
def _(draw):
    spread = torch.tensor([[0.3], [1.0], [2.0], [4.0]])
    return spread * draw.normal(4, 11), 1.0, draw.number(0.7, 0.8)


@drawn.case("a low temperature leaves fewer")
def _(draw):
    return 0.3 * draw.normal(3, 12), 0.3, 0.9  # still leaves several


@drawn.case("a high temperature leaves more")
def _(draw):
    return 2 * draw.normal(3, 12), 3.0, 0.6


@drawn.case("one character that has more than p is left alone")
def _(draw):
    logits = draw.normal(2, 7)
    logits[:, 4] += 12
    return logits, 1.0, 0.5


@drawn.case("p = 1 keeps everything")
def _(draw):
    logits = draw.normal(2, 7)
    logits[:, 2] += 40  # beside it, the others vanish in float32
    return logits, 1.0, 1


# ---- a GPT ---------------------------------------------------------------------


def norm(x):
    return F.layer_norm(x, x.shape[-1:])


def gpt(
    tokens,
    embedding,
    positions,
    layers,
    *,
    past=lambda t: torch.ones(t, t).tril().bool(),
    begin=lambda e, p: e + p,
    scale=lambda d: d**-0.5,
    attend=lambda x, f: x + f(norm(x)),
    map_each=lambda x, f: x + f(norm(x)),
    both=None,
    mix=None,
    out=lambda mixed, w: mixed @ w["output"].T,
    bend=torch.relu,
    last=norm,
):
    t, d = tokens.shape[1], embedding.shape[1]
    x = begin(embedding[tokens], positions[:t])

    def attention(y, w):
        q, k, v = (y @ w[name].T for name in ("query", "key", "value"))
        scores = (q @ k.mT * scale(d)).masked_fill(~past(t), float("-inf"))
        weights = mix(scores) if mix else scores.softmax(dim=-1)
        return out(weights.nan_to_num() @ v, w)

    def network(y, w):
        return bend(y @ w["inner"].T) @ w["outer"].T

    for w in layers:
        if both:
            x = both(x, lambda y, w=w: attention(y, w), lambda y, w=w: network(y, w))
        else:
            x = attend(x, lambda y, w=w: attention(y, w))
            x = map_each(x, lambda y, w=w: network(y, w))
    return last(x) @ embedding.T


def gpt_with(**changes):
    return lambda *given: gpt(*given, **changes)


def transposed(tokens, embedding, positions, layers):
    turned = [
        {n: m if n in ("inner", "outer") else m.T for n, m in w.items()} for w in layers
    ]
    return gpt(tokens, embedding, positions, turned)


def no_number(result, *_):
    if isinstance(result, Tensor) and result.isnan().any():
        return (
            "NaN: the first position, which has only itself, must be allowed to look "
            "at itself; or a mask multiplied 0 by ∞ (use `masked_fill`)"
        )


whole = Exercise(
    "ch11-gpt",
    right=gpt,
    symptoms=no_number,
    hint="expected embedding + position; in each layer attention to the past, then the "
    "network, each added to the stream and reading its LN; LN; the embedding again",
    mistakes={
        "every position sees the whole sequence: where is the causal mask?": gpt_with(
            past=lambda t: torch.ones(t, t).bool()
        ),
        "the mask is upside down: positions see the future, not the past": gpt_with(
            past=lambda t: torch.ones(t, t).triu().bool()
        ),
        "a position may look at itself, too": gpt_with(
            past=lambda t: torch.ones(t, t).tril(-1).bool()
        ),
        "a position may look at itself, too: the first one has nothing else": gpt_with(
            past=lambda t: torch.ones(t, t).tril(-1).bool(),
            mix=lambda scores: scores.clamp(min=-1e9).softmax(dim=-1),
        ),
        'what attention mixes goes through `"output"` before it is added': gpt_with(
            out=lambda mixed, w: mixed
        ),
        "the network uses ReLU, not GELU": gpt_with(bend=F.gelu),
        "the network is linear: where is the ReLU?": gpt_with(bend=lambda y: y),
        "the mask lets each position see one step ahead": gpt_with(
            past=lambda t: torch.ones(t, t).tril(1).bool()
        ),
        "the positions are not added": gpt_with(begin=lambda e, p: e),
        "the last positions of the table are taken, not the first": (
            lambda tokens, embedding, positions, layers: gpt(
                tokens, embedding, positions[-tokens.shape[1] :], layers
            )
        ),
        "scores are divided by √d": gpt_with(scale=lambda d: 1.0),
        "scores are divided by d, not by √d": gpt_with(scale=lambda d: 1 / d),
        "what is added to the stream replaces it: where is the residual?": gpt_with(
            attend=lambda x, f: f(norm(x)), map_each=lambda x, f: f(norm(x))
        ),
        "the sums are normalised, not what the sublayers read (post-norm)": gpt_with(
            attend=lambda x, f: norm(x + f(x)), map_each=lambda x, f: norm(x + f(x))
        ),
        "nothing is normalised before the sublayers": gpt_with(
            attend=lambda x, f: x + f(x), map_each=lambda x, f: x + f(x)
        ),
        "the normalised stream is carried on; add to the stream itself": gpt_with(
            attend=lambda x, f: norm(x) + f(norm(x)),
            map_each=lambda x, f: norm(x) + f(norm(x)),
        ),
        "the network reads the stream from before the attention": gpt_with(
            both=lambda x, attention, network: x + attention(norm(x)) + network(norm(x))
        ),
        "the network reads the stream without its LN": gpt_with(
            map_each=lambda x, f: x + f(x)
        ),
        "the LN after the last layer is missing": gpt_with(last=lambda x: x),
        "the softmax runs over the queries; each row of weights sums to 1": gpt_with(
            mix=lambda scores: scores.softmax(dim=-2)
        ),
        "future scores are multiplied by 0, which still has weight; −∞ has none": (
            gpt_with(
                mix=lambda scores: scores.masked_fill(scores.isinf(), 0.0).softmax(
                    dim=-1
                )
            )
        ),
        "only the last layer is applied": (
            lambda tokens, embedding, positions, layers: gpt(
                tokens, embedding, positions, layers[-1:]
            )
        ),
        "a matrix W maps x to Wx: with rows, x @ W.T": transposed,
    },
)


def parts(draw, layers, t, d, v, f, n):
    shapes = dict.fromkeys(("query", "key", "value", "output"), (d, d))
    shapes |= {"inner": (f, d), "outer": (d, f)}
    made = [{k: 0.7 * draw.normal(*shape) for k, shape in shapes.items()}
            for _ in range(layers)]  # fmt: skip
    tokens = draw.integers(0, v - 1, 2, t)
    return tokens, draw.normal(v, d), draw.normal(n, d), made


@whole.case("no layer: embedding, position, LN, and the embedding again")
def _(draw):
    return parts(draw, 0, 5, 4, 7, 6, 8)


@whole.case("one layer")
def _(draw):
    return parts(draw, 1, 5, 4, 7, 6, 8)


@whole.case("three layers, every axis of another length")
def _(draw):
    t, d, v, f = draw.sizes(4, 4, 9)
    return parts(draw, 3, t, d, v, f, t + 3)


@whole.case("a single token")
def _(draw):
    return parts(draw, 2, 1, 4, 7, 6, 3)


# ---- a sampling loop -----------------------------------------------------------


def heated(z, temperature):
    return (z / temperature).softmax(dim=-1)


def shared(chances):
    return chances / chances.sum(dim=-1, keepdim=True)


def largest(chances, k):
    return chances * (chances >= chances.topk(k).values[:, -1:])


def write_on(
    logits_of,
    prompt,
    draws,
    temperature,
    k,
    context,
    *,
    read=lambda ids, context: ids[:, -context:],
    place=-1,
    heat=heated,
    keep=lambda chances, k: shared(largest(chances, k)),
    pick=lambda chances, draw: (chances.cumsum(dim=-1) > draw).int().argmax(dim=-1),
    cut=lambda ids, s: ids[:, s:],
):
    ids = prompt
    for draw in draws:
        logits = logits_of(read(ids, context))[:, place]
        symbol = pick(keep(heat(logits, temperature), k), draw)
        ids = torch.cat([ids, symbol[:, None]], dim=1)
    return cut(ids, prompt.shape[1])


def writing(**changes):
    return lambda *given: write_on(*given, **changes)


FAULTS = {
    "the window does not slide: the first characters are read, not the last": {
        "read": lambda ids, context: ids[:, :context]
    },
    "the temperature changes nothing: probabilities divided by it, and brought back to "
    "a sum of 1, are what they were": {"heat": lambda z, temperature: z.softmax(-1)},
    "what top-k keeps does not add up to 1, so a large draw finds nothing, and id 0 is "
    "written": {"keep": largest},
}


def broken(*given):
    changes = {
        name: change for fault in FAULTS.values() for name, change in fault.items()
    }
    return write_on(*given, **changes)


repair = Exercise(
    "ch11-repair",
    right=write_on,
    hint="expected the first character at which the probabilities that top-k keeps of "
    "softmax(logits / temperature), brought to a sum of 1, exceed the draw",
    mistakes={
        **{fault: writing(**changes) for fault, changes in FAULTS.items()},
        "everything is read, more than the model can": writing(
            read=lambda ids, context: ids
        ),
        "only the last character is read; the model can see more": writing(
            read=lambda ids, context: ids[:, -1:]
        ),
        "the temperature divides probabilities; it should divide the logits": writing(
            heat=lambda z, temperature: (z.softmax(-1) / temperature).softmax(-1)
        ),
        "the temperature multiplies the logits; it should divide them": writing(
            heat=lambda z, temperature: (z * temperature).softmax(dim=-1)
        ),
        "all characters may be drawn: where is top-k?": writing(
            keep=lambda chances, k: chances
        ),
        "k characters may be drawn, not k − 1": writing(
            keep=lambda chances, k: shared(largest(chances, max(k - 1, 1)))
        ),
        "the prompt is returned as well": writing(cut=lambda ids, s: ids),
        "the logits of the first position are used; those of the last are wanted": (
            writing(place=0)
        ),
        "the likeliest character is always taken; the draw decides": writing(
            pick=lambda chances, draw: chances.argmax(dim=-1)
        ),
        "nothing is repaired yet": broken,
    },
)


def model_of(v, weight):
    """A function of all ids that it reads: logits (1, t, v)."""
    total = "(ids.double() * torch.arange(1, ids.shape[1] + 1)).cumsum(1)[..., None]"
    return Function(f"{weight} * torch.sin({total} + 1.7 * torch.arange({v}))", "ids")


@repair.case("the toy model, cold: 3, 4, 5, 6")
def _(draw):
    toy = "-2.0 * (torch.arange(9) - ids[..., None] - 1.2).abs().double()"
    draws = torch.tensor([0.5, 0.9, 0.6, 0.97], dtype=torch.float64)
    return Function(toy, "ids"), torch.tensor([[2]]), draws, 0.1, 2, 3


for line, s, temperature, k, context in (
    ("temperature 1, everything kept, all that was written fits", 1, 1.0, None, 12),
    ("a low temperature", 4, 0.4, None, 14),
    ("a high temperature", 2, 2.0, None, 12),
    ("top-k, with draws near 1", 3, 1.5, 3, 14),
    ("a window that slides", 3, 1.0, None, 4),
    ("all of it, and a prompt that is longer than the context", 5, 2.0, 4, 3),
):

    @repair.case(line, dtype=torch.float64)
    def _(draw, s=s, temperature=temperature, k=k, context=context):
        v = draw.integer(8, 10)
        prompt, draws = draw.integers(0, v - 1, 1, s), draw.uniform(0.02, 0.98, 9)
        if k:
            draws[::3] = draw.uniform(0.95, 0.99, 3)
        return model_of(v, 2.0), prompt, draws, temperature, k or v, context
