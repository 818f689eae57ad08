"""The exercises of chapter 06; ``__init__.py`` says how one is written."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from annotated.checks import (
    Differentiated,
    Exercise,
    Function,
    Raised,
    tensor_for_bool,
)
from annotated.checks.material import tied

# ---- a residual, in both orders ----------------------------------------------


def pre_norm(x, f, norm):
    return x + f(norm(x))


def post_norm(x, f, norm):
    return norm(x + f(x))


def in_both(block):
    return {"pre": block, "post": block}


RIGHT_BLOCKS = {"pre": pre_norm, "post": post_norm}
WRONG_BLOCKS = {
    'this is post-norm; "pre" normalises what the sublayer reads': {"pre": post_norm},
    'this is pre-norm; "post" normalises the sum': {"post": pre_norm},
    "the residual is missing: nothing carries x on": {
        "pre": lambda x, f, norm: f(norm(x)),
        "post": lambda x, f, norm: norm(f(x)),
    },
    "nothing is normalised": in_both(lambda x, f, norm: x + f(x)),
    "what the sublayer gives is normalised, before it is added": (
        in_both(lambda x, f, norm: x + norm(f(x)))
    ),
    "both are normalised, what the sublayer reads and the sum": (
        in_both(lambda x, f, norm: norm(x + f(norm(x))))
    ),
    'in "pre", what is carried on is normalised too': {
        "pre": lambda x, f, norm: norm(x) + f(norm(x))
    },
    'in "post", only x is normalised, and not the sum': {
        "post": lambda x, f, norm: norm(x) + f(x)
    },
}

# ---- a residual block --------------------------------------------------------


def rooted(variance):
    return (variance + 1e-5).sqrt()


def normalised(y, axes=-1, correction=0, centred=True, root=rooted):
    variance, mean = torch.var_mean(y, axes, correction=correction, keepdim=True)
    return (y - mean if centred else y) / root(variance)


def layer_norm(y, weight, bias, **changed):
    return normalised(y, **changed) * weight + bias


def residual(x, sublayer, weight, bias, norm, *, ln=layer_norm, **blocks):
    block = (RIGHT_BLOCKS | blocks)[norm]
    return block(x, sublayer, lambda y: ln(y, weight, bias))


ROOTS = {
    "ε stands outside the root": lambda variance: variance.sqrt() + 1e-5,
    "ε is a floor of the variance; it should be added": (
        lambda variance: variance.clamp(min=1e-5).sqrt()
    ),
    "ε is missing, or is only a floor of the deviation": Tensor.sqrt,
    "ε is 1e-5; yours is 1e-6": lambda variance: (variance + 1e-6).sqrt(),
    "divided by the variance, not by its root": lambda variance: variance + 1e-5,
    "not divided by the deviation": lambda variance: 1.0,
}
AXES = {
    "the positions": 1,
    "the batch": 0,
    "all that a sequence holds": (1, 2),
    "batch and positions, as in batch normalisation": (0, 1),
}
NORMS = {
    "the squares are divided by d − 1, not by d": partial(layer_norm, correction=1),
    "the squares are divided by d − 1, not by d, and ε stands outside the root": (
        partial(layer_norm, correction=1, root=ROOTS["ε stands outside the root"])
    ),
    "the mean is not subtracted": partial(layer_norm, centred=False),
    "weight and bias are not used": lambda y, weight, bias: normalised(y),
    "the weight is not used": lambda y, weight, bias: normalised(y) + bias,
    "the bias is not used": lambda y, weight, bias: normalised(y) * weight,
    "the bias is added before the weight multiplies": (
        lambda y, weight, bias: (normalised(y) + bias) * weight
    ),
}
NORMS |= {hint: partial(layer_norm, root=root) for hint, root in ROOTS.items()}
NORMS |= {
    f"the mean runs over {what}; each vector has its own": partial(
        layer_norm, axes=axes
    )
    for what, axes in AXES.items()
}


def not_a_number(y, *arguments):
    if isinstance(y, Tensor) and y.isnan().any():
        return "the result holds NaN: is 0 divided by 0, where all entries are equal?"
    if isinstance(y, Differentiated) and any(g.isnan().any() for g in y.gradients):
        return "a gradient holds NaN: is the root of 0 taken, where entries are equal?"


residual_block = Exercise(
    "ch06-residual",
    right=residual,
    hint='expected x + f(LN(x)) in "pre", LN(x + f(x)) in "post"',
    symptoms=not_a_number,
    mistakes={hint: partial(residual, **wrong) for hint, wrong in WRONG_BLOCKS.items()}
    | {hint: partial(residual, ln=wrong) for hint, wrong in NORMS.items()},
)


def given(draw, x, norm):
    width = x.shape[-1]
    mixed = Function("1.5 * x.flip(-1) + x.relu()")
    return x, mixed, draw.normal(width), draw.normal(width), norm


def some_equal(draw):
    """The entries of some vectors are equal; their mean is exact in any precision."""
    x = draw.normal(2, 3, 4)
    x[:, 1] = (8 * x[:, 1, :1]).round() / 8
    return x


for _norm, _result in {"post": "(−1, 1)", "pre": "(−1, 5)"}.items():

    @residual_block.case(f'the example, "{_norm}": {_result}')
    def _(draw, norm=_norm):
        x = torch.tensor([[[1.0, 3.0]]])
        return x, Function("2 * x"), torch.ones(2), torch.zeros(2), norm

    @residual_block.case(f'every axis of another length, "{_norm}"')
    def _(draw, norm=_norm):
        return given(draw, draw.normal(*draw.sizes(3)), norm)


@residual_block.case("vectors so small that ε counts")
def _(draw):
    x = 1e-3 * draw.normal(2, 3, 4)
    return x, Function("x.cumsum(1)"), draw.normal(4), draw.normal(4), "pre"


@residual_block.case("vectors of equal entries")
def _(draw):
    return given(draw, some_equal(draw), "pre")


@residual_block.case("in double precision", dtype=torch.float64)
def _(draw):
    return given(draw, draw.normal(2, 3, 4), "post")


@residual_block.case("gradients reach x, the weight and the bias", gradients=True)
def _(draw):
    return given(draw, draw.normal(2, 3, 5), "post")


@residual_block.case("gradients where entries are equal", gradients=True)
def _(draw):
    return given(draw, some_equal(draw), "pre")


# ---- what layers are put together from ---------------------------------------


def attention(scale):
    """Attention of a query to a key, which is the value, too; a mask of four axes."""
    energies = f"{scale} * query @ key.mT"
    masked = "e if mask is None else e.masked_fill(~mask[:, 0], -torch.inf)"
    weights = f"(lambda e: {masked})({energies}).softmax(-1)"
    return Function(f"{weights} @ key", "query, key, mask")


def norm(scale, shift):
    """A layer normalisation of its own scale and shift."""
    plain = "torch.nn.functional.layer_norm(x, x.shape[-1:])"
    return Function(f"{scale} * {plain} + {shift}")


FIRST, SECOND, THIRD = norm(1.5, 0.25), norm(0.75, -0.5), norm(1.25, 0.5)
NETWORK = Function("(x.roll(1, -1) + 0.5).relu() - 0.25 * x")


def padding(draw, b, s):
    """A mask (b, 1, 1, s), with something real in each row, and some padding."""
    return torch.arange(s) < draw.integers(1, s - 1, b)[:, None, None, None]


def causal(draw, b, t):
    """A mask (b, 1, t, t): `padding`, and nothing of the future."""
    return padding(draw, b, t) & torch.ones(t, t).tril().bool()


# ---- an encoder layer, from its matrices --------------------------------------


def by_heads(x, heads):
    b, s, d = x.shape
    return x.reshape(b, s, heads, d // heads).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).flatten(-2)


def hidden(scores, mask):
    return scores.masked_fill(~mask, -torch.inf)


def whole_layer(
    x,
    weights,
    heads,
    mask,
    *,
    block=pre_norm,
    ln=layer_norm,
    split=by_heads,
    join=joined,
    scale=lambda k, d: k**-0.5,
    hide=hidden,
    hide_weights=lambda shares, mask: shares,
    without=(),
    relu=torch.relu,
    second=2,
    values=None,
    mapped=True,
    causal=False,
):
    """An encoder layer; the switches are what goes wrong with it."""
    w = weights | {name: torch.zeros_like(weights[name]) for name in without}

    def norm(n):
        return lambda y: ln(y, w[f"gain_{n}"], w[f"bias_{n}"])

    def attend(read):
        query, key = (split(read @ w[name], heads) for name in ("query", "key"))
        value = split((read if values is None else values(x, read)) @ w["value"], heads)
        scores = query @ key.mT * scale(query.shape[-1], x.shape[-1])
        if mask is not None:
            scores = hide(scores, mask)
        if causal:
            square = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
            scores = scores.masked_fill(~square.tril(), -torch.inf)
        shares = scores.softmax(-1)
        if mask is not None:
            shares = hide_weights(shares, mask)
        mixed = join(shares @ value)
        return mixed @ w["output"] if mapped else mixed

    def network(read):
        inner = relu(read @ w["inner"] + w["inner_bias"])
        return inner @ w["outer"] + w["outer_bias"]

    middle = block(x, attend, norm(1))
    return block(middle, network, norm(second))


def one_head(x, heads):
    return x[:, None]


WHOLE = {
    "the scores are not divided by √k": {"scale": lambda k, d: 1.0},
    "divided by √d: how wide is one head?": {"scale": lambda k, d: d**-0.5},
    "one head as wide as all: where are the others?": {"split": one_head},
    "position and head are mixed up when the width is split into heads": {
        "split": lambda x, heads: x.reshape(
            x.shape[0], heads, x.shape[1], x.shape[2] // heads
        )
    },
    "position and head are mixed up when the heads are joined": {
        "join": lambda x: x.reshape(x.shape[0], x.shape[2], -1)
    },
    "positions and heads are mixed up, both ways: split the width, then transpose": {
        "split": lambda x, heads: x.reshape(
            x.shape[0], heads, x.shape[1], x.shape[2] // heads
        ),
        "join": lambda x: x.reshape(x.shape[0], x.shape[2], -1),
    },
    "the mask has no effect": {"hide": lambda scores, mask: scores},
    "the mask is the wrong way round: True = may attend": {
        "hide": lambda scores, mask: hidden(scores, ~mask)
    },
    "the mask is added as 0 and 1: what does softmax need to give exactly 0?": {
        "hide": torch.add
    },
    "hidden scores are 0, and e⁰ isn't 0": {"hide": torch.mul},
    "the mask comes after the softmax: do the weights that are left sum to 1?": {
        "hide": lambda scores, mask: scores,
        "hide_weights": torch.mul,
    },
    "inner_bias is not used": {"without": ["inner_bias"]},
    "outer_bias is not used": {"without": ["outer_bias"]},
    "neither of the network's biases is used": {
        "without": ["inner_bias", "outer_bias"]
    },
    "nothing comes between the network's two maps": {"relu": lambda y: y},
    "the network's activation is ReLU, not GELU": {"relu": gelu},
    "the output map of the attention is missing": {"mapped": False},
    "both blocks use the gain and bias of the first": {"second": 1},
    "the values are taken from x as it came; what does the attention read?": {
        "values": lambda x, read: x
    },
    "the encoder sees no future: whose mask is that?": {"causal": True},
    "this is post-norm; the norm comes before the sublayer here": {"block": post_norm},
    "a residual is missing: nothing carries x on": {
        "block": lambda x, f, norm: f(norm(x))
    },
    "nothing is normalised": {"block": lambda x, f, norm: x + f(x)},
    "what is carried on is normalised too": {
        "block": lambda x, f, norm: norm(x) + f(norm(x))
    },
    "the squares are divided by d − 1, not by d": {
        "ln": partial(layer_norm, correction=1)
    },
}
WHOLE |= {hint: {"ln": partial(layer_norm, root=root)} for hint, root in ROOTS.items()}

encoder_layer = Exercise(
    "ch06-whole-layer",
    right=whole_layer,
    hint="expected x + attention(LN(x)), and then x + network(LN(x))",
    mistakes={hint: partial(whole_layer, **wrong) for hint, wrong in WHOLE.items()},
)


def matrices(draw, d, d_ff):
    weights = {n: draw.normal(d, d) for n in ("query", "key", "value", "output")}
    weights |= {"inner": draw.normal(d, d_ff), "inner_bias": draw.normal(d_ff)}
    weights |= {"outer": draw.normal(d_ff, d), "outer_bias": draw.normal(d)}
    for n in (1, 2):
        weights |= {f"gain_{n}": draw.normal(d), f"bias_{n}": draw.normal(d)}
    return weights


@encoder_layer.case("the example: (1, 3) becomes (0, 5)")
def _(draw):
    names = ("query", "key", "value", "output", "inner", "outer")
    weights = {name: torch.eye(2) for name in names}
    weights |= {f"gain_{n}": torch.ones(2) for n in (1, 2)}
    zeros = ("bias_1", "bias_2", "inner_bias", "outer_bias")
    weights |= {name: torch.zeros(2) for name in zeros}
    return torch.tensor([[[1.0, 3.0]]]), weights, 1, None


@encoder_layer.case("one head, no mask")
def _(draw):
    return draw.normal(1, 3, 4), matrices(draw, 4, 7), 1, None


@encoder_layer.case("three heads, every axis of another length")
def _(draw):
    return draw.normal(2, 5, 12), matrices(draw, 12, 7), 3, None


@encoder_layer.case("two heads, a padded batch")
def _(draw):
    return draw.normal(3, 5, 6), matrices(draw, 6, 8), 2, padding(draw, 3, 5)


@encoder_layer.case("vectors so small that ε counts")
def _(draw):
    return 1e-3 * draw.normal(2, 3, 4), matrices(draw, 4, 6), 2, None


@encoder_layer.case("gradients reach x", gradients=True)
def _(draw):
    return draw.normal(2, 3, 4), matrices(draw, 4, 6), 2, padding(draw, 2, 3)


# ---- a decoder layer ---------------------------------------------------------


def to_itself(attend, x, memory, mask, memory_mask):
    return attend(x, x, mask)


def to_memory(attend, x, memory, mask, memory_mask):
    return attend(x, memory, memory_mask)


def decoder(
    x,
    memory,
    parts,
    mask,
    memory_mask,
    *,
    sublayers="acf",
    norms=(1, 2, 3),
    own=to_itself,
    cross=to_memory,
    post=post_norm,
):
    """The sublayers are a, attention, c, cross-attention, and f, the network."""
    others = memory, mask, memory_mask
    functions = {
        "a": lambda y: own(parts["attention"], y, *others),
        "c": lambda y: cross(parts["cross_attention"], y, *others),
        "f": parts["feed_forward"],
    }
    for sublayer, n in zip(sublayers, norms, strict=True):
        x = post(x, functions[sublayer], parts[f"norm_{n}"])
    return x


def with_parts(change):
    def answer(x, memory, parts, *masks):
        return decoder(x, memory, parts | change(parts), *masks)

    return answer


def with_masks(choose):
    return lambda *given: decoder(*given[:3], *choose(*given[3:]))


def asks_with_the_first_x(x, *given):
    def first(attend, y, *others):
        return to_memory(attend, x, *others)

    return decoder(x, *given, cross=first)


def first_target_again(x, memory, parts, *masks):
    middle = decoder(x, memory, parts, *masks, sublayers="ac", norms=(1, 2))
    return parts["norm_3"](x + parts["feed_forward"](middle))


ATTENTIONS = {
    "in cross-attention the target asks the target: where is the memory?": (
        partial(decoder, cross=to_itself)
    ),
    "both attentions go to the memory; the first is the target's to itself": (
        partial(decoder, own=to_memory)
    ),
    "the two attention functions are exchanged": with_parts(
        lambda parts: {
            "attention": parts["cross_attention"],
            "cross_attention": parts["attention"],
        }
    ),
    "parts['attention'] is used twice: the memory has a function of its own": (
        with_parts(lambda parts: {"cross_attention": parts["attention"]})
    ),
    "cross-attention asks with x as it came, not with what the first block gave": (
        asks_with_the_first_x
    ),
    "in cross-attention the memory asks the target; it should be asked": partial(
        decoder, cross=lambda attend, x, memory, mask, _: attend(memory, x, mask)
    ),
    "in cross-attention the memory asks the target, with the mask of the memory": (
        partial(
            decoder, cross=lambda attend, x, memory, _, mask: attend(memory, x, mask)
        )
    ),
    "the memory is normalised; it comes ready from the encoder": (
        lambda x, memory, parts, *masks: decoder(
            x, parts["norm_2"](memory), parts, *masks
        )
    ),
}
SUBLAYERS = {
    "the memory is asked first, before the target itself": ("caf", (1, 2, 3)),
    "the feed-forward network comes before the cross-attention": ("afc", (1, 3, 2)),
    "the feed-forward network comes before the cross-attention, and norm_2 and "
    "norm_3 go with the places, not with the blocks": ("afc", (1, 2, 3)),
    "the memory is asked first, before the target itself, and each norm goes with its "
    "block": ("caf", (2, 1, 3)),
    "the cross-attention is missing": ("af", (1, 3)),
    "the self-attention is missing": ("cf", (2, 3)),
    "the feed-forward network is missing": ("ac", (1, 2)),
    "norm_1 and norm_2 are exchanged": ("acf", (2, 1, 3)),
    "norm_2 and norm_3 are exchanged": ("acf", (1, 3, 2)),
    "norm_1 and norm_3 are exchanged": ("acf", (3, 2, 1)),
    "norm_1 is used for all three blocks": ("acf", (1, 1, 1)),
}
MASKS = {
    "the mask of the target is not passed on": lambda mask, memory: (None, memory),
    "the mask of the memory is not passed on": lambda mask, memory: (mask, None),
    "the masks are exchanged": lambda mask, memory: (memory, mask),
    "the mask of the target is used twice": lambda mask, memory: (mask, mask),
    "the mask of the memory is used twice": lambda mask, memory: (memory, memory),
}

decoder_layer = Exercise(
    "ch06-decoder-layer",
    right=decoder,
    hint="expected the target's attention to itself, then to the memory, then the "
    "feed-forward network, each sum normalised by its own norm",
    mistakes={
        hint: partial(decoder, post=wrong["post"])
        for hint, wrong in WRONG_BLOCKS.items()
        if "post" in wrong
    }
    | ATTENTIONS
    | {
        hint: partial(decoder, sublayers=sublayers, norms=norms)
        for hint, (sublayers, norms) in SUBLAYERS.items()
    }
    | {hint: with_masks(choose) for hint, choose in MASKS.items()}
    | {"the last residual adds the x of the beginning": first_target_again},
)

NUMBER_PARTS = {
    "attention": Function("query + 3 * key", "query, key, mask"),
    "cross_attention": Function("query + 10 * key", "query, key, mask"),
    "feed_forward": Function("3 * x"),
    **{
        "norm_1": Function("x / 6"),
        "norm_2": Function("x - 3"),
        "norm_3": Function("x / 2"),
    },
}
VECTOR_PARTS = {
    "attention": attention(0.5),
    "cross_attention": attention(1.5),
    "feed_forward": NETWORK,
    **{"norm_1": FIRST, "norm_2": SECOND, "norm_3": THIRD},
}


@decoder_layer.case("the example: 3 looks at 2 and becomes 44")
def _(draw):
    x, memory = torch.tensor([[[3.0]]]), torch.tensor([[[2.0]]])
    return x, memory, NUMBER_PARTS, None, None


for _line, _options in {
    "source and target of one length, with their masks": {"s": 4},
    "a source longer than the target": {"s": 6},
    "a source shorter than the target": {"s": 3},
    "in double precision": {"s": 5, "dtype": torch.float64},
    "gradients reach x and the memory": {"s": 5, "gradients": True},
}.items():
    _s = _options.pop("s")

    @decoder_layer.case(_line, **_options)
    def _(draw, s=_s):
        x, memory = draw.normal(2, 4, 5), draw.normal(2, s, 5)
        return x, memory, VECTOR_PARTS, causal(draw, 2, 4), padding(draw, 2, s)


# ---- find the fault: a decoder layer that sees the future ----------------------


def repaired(x, memory, parts, memory_mask, *, diagonal=0, centred=False, padded=True):
    """A pre-norm decoder layer; the switches are the faults of the one given."""
    t = x.shape[1]
    mask = torch.ones(t, t, dtype=torch.bool).tril(diagonal)[None, None]
    read = parts["norm_1"](x)
    x = x + parts["attention"](read, read, mask)
    read = parts["norm_2"](x)
    x = x + parts["cross_attention"](read, memory, memory_mask if padded else None)
    if centred:
        x = x - x.mean(1, keepdim=True)
    return x + parts["feed_forward"](parts["norm_3"](x))


DIAGONAL = "a fault is left: change the last position of x; does the one before move?"
CENTRED = "a fault is left: change the last position of x; does the first one move?"
PADDED = "a fault is left: change the padding of the source; does anything move?"
LEFT = {
    DIAGONAL: {"diagonal": 1},
    CENTRED: {"centred": True},
    PADDED: {"padded": False},
    f"{DIAGONAL} And does the first one?": {"diagonal": 1, "centred": True},
    f"{DIAGONAL} And if you change the padding of the source?": {
        "diagonal": 1,
        "padded": False,
    },
    f"{CENTRED} And if you change the padding of the source?": {
        "centred": True,
        "padded": False,
    },
    "all three faults are still there": {
        "diagonal": 1,
        "centred": True,
        "padded": False,
    },
    "now a position does not see itself": {"diagonal": -1},
}

repair_decoder = Exercise(
    "ch06-repair-decoder",
    right=repaired,
    hint="expected the layer as given, without its faults, else unchanged",
    mistakes={hint: partial(repaired, **faults) for hint, faults in LEFT.items()},
)


@repair_decoder.case("every axis of another length")
def _(draw):
    b, t, s, d = draw.sizes(4, 3)
    x, memory = draw.normal(b, t, d), draw.normal(b, s, d)
    return x, memory, VECTOR_PARTS, padding(draw, b, s)


@repair_decoder.case("source and target of one length")
def _(draw):
    b, t, d = draw.sizes(3, 3)
    return draw.normal(b, t, d), draw.normal(b, t, d), VECTOR_PARTS, padding(draw, b, t)


@repair_decoder.case("gradients reach x and the memory", gradients=True)
def _(draw):
    x, memory = draw.normal(2, 4, 3), draw.normal(2, 5, 3)
    return x, memory, VECTOR_PARTS, padding(draw, 2, 5)


# ---- tie the weights ---------------------------------------------------------


def tying(
    weights=lambda source, target, output: (source, source, source),
    kind=ValueError,
    say=str,
    also=lambda source, target, output: None,
):
    """An answer: the weights that three modules get, and what it raises if they do not
    fit."""

    def answer(*modules):
        given = [module.weight for module in modules]
        shapes = [tuple(weight.shape) for weight in given]
        if kind and len(set(shapes)) > 1:
            raise kind(say(shapes))
        for module, weight in zip(modules, weights(*given), strict=True):
            module.weight = weight
        also(*modules)

    return answer


def too_late(source, target, output):
    for module in target, output:
        if module.weight.shape != source.weight.shape:
            raise ValueError(f"{source.weight.shape}, {module.weight.shape}")
        module.weight = source.weight


ASSERT = "an assert is gone when Python runs with -O: refuse in a way that stays"
LATE = "this is raised on the way: look at all sizes first, and refuse (a ValueError)"


ALL_THE_SAME = "the sizes do not fit, and you tie the modules all the same"
TOO_LATE = "you refuse, but a weight has changed already"


def not_refused(result, *shapes):
    if len(set(shapes)) == 1:
        return None
    if isinstance(result, Raised):
        return ASSERT if result.kind == "AssertionError" else LATE
    if not result["refused"]:
        return ALL_THE_SAME
    return None if all(result["unchanged"]) else TOO_LATE


def new(weight):
    return nn.Parameter(weight.clone())


tie = Exercise(
    "ch06-tie",
    right=tying(),
    hint="the three modules should hold one parameter, that of source",
    symptoms=not_refused,
    through=tied,
    mistakes={
        "nothing is tied: a name for a module or a weight changes no module": (
            tying(lambda source, target, output: (source, target, output))
        ),
        "the numbers are equal, but copied: after one step they differ": (
            tying(lambda source, *_: (source, new(source), new(source)))
        ),
        "the numbers lie in one place, but in three parameters with a gradient each": (
            tying(lambda s, *_: (s, nn.Parameter(s), nn.Parameter(s)))
        ),
        "the output is not tied": tying(
            lambda source, _, output: (source, source, output)
        ),
        "the target is not tied": tying(
            lambda source, target, _: (source, target, source)
        ),
        "it is one parameter, but that of the output": (
            tying(lambda source, target, output: [output] * 3)
        ),
        "it is one parameter, but that of the target": (
            tying(lambda source, target, output: [target] * 3)
        ),
        "it is one parameter, but a new one: an optimiser has the source's": (
            tying(lambda source, *_: [new(source)] * 3)
        ),
        "the source has other numbers than before": (
            tying(also=lambda source, *_: nn.init.normal_(source.weight))
        ),
        "the table no longer learns": (
            tying(also=lambda source, *_: source.requires_grad_(False))
        ),
        "something is left to learn besides the table": (
            tying(
                also=lambda *modules: setattr(modules[2], "bias", new(torch.zeros(2)))
            )
        ),
        ALL_THE_SAME: tying(kind=None),
        TOO_LATE: too_late,
        "the message should hold two numbers that should be equal and are not": (
            tying(say=lambda shapes: "the sizes differ")
        ),
        ASSERT: tying(kind=AssertionError),
        LATE: tying(kind=RuntimeError),
    },
)


@tie.case("one parameter, that of the source")
def _(draw):
    return (tuple(draw.sizes(2)),) * 3


for _line, _sizes in {  # of target and output, beyond those of the source
    "two vocabularies: refused": ((2, 0), (0, 0)),
    "embeddings of two widths: refused": ((0, 1), (0, 0)),
    "an output for another vocabulary: refused": ((0, 0), (7, 0)),
    "an output for wider vectors: refused": ((0, 0), (0, 3)),
    "an output that is turned: refused": ((0, 0), (-5, 5)),
}.items():

    @tie.case(_line)
    def _(draw, sizes=_sizes):
        d = draw.integer(10, 30)
        return (d + 5, d), *((d + 5 + more, d + wider) for more, wider in sizes)


# ---- find the leak of the future ---------------------------------------------


def largest(difference):
    return difference.abs().max()


def leaks(
    model,
    length,
    vocab,
    sequences=10,
    places=lambda length: range(1, length),
    symbols=lambda old, vocab: torch.arange(vocab),
    compared=slice,
    size=largest,
    tolerance=1e-3,
):
    """Does a symbol at a later place change a logit at an earlier one?"""
    for _ in range(sequences):
        ids = torch.randint(vocab, (1, length))
        for place in places(length):
            new = symbols(ids[:, place], vocab)
            changed = ids.repeat(len(new), 1)
            changed[:, place] = new
            if size((model(changed) - model(ids))[:, compared(place)]) > tolerance:
                return True
    return False


def in_place(model, length, vocab):
    ids = torch.randint(vocab, (1, length))
    before = model(ids)
    for place in range(1, length):
        for symbol in range(vocab):
            ids[0, place] = symbol
            if largest((model(ids) - before)[:, :place]) > 1e-3:
                return True
    return False


def cut(model, length, vocab):
    ids = torch.randint(vocab, (1, length))
    return bool(largest(model(ids[:, :-1]) - model(ids)[:, :-1]) > 1e-3)


OWN = "it does not: a logit may depend on the symbol at its own position, and before it"
ITSELF = "it does: do you compare two sequences, or one, changed in place, with itself?"
EARLIER = (
    "it does not, each logit depends on earlier symbols alone: are positions after the "
    "change compared, or do ids that are changed in place stay changed?"
)
FIRST_PLACE = (
    "it does, the first logit on the second symbol: is every position changed?"
)
LAST_PLACE = "it does, the last logit but one on the last symbol: is it compared?"
DISTANCE = "it does, over a distance: which positions are compared with the change?"
SYMBOL = (
    "it does, by one symbol at one position: is each symbol tried at each position, "
    "and is each earlier position compared?"
)
LOWERED = (
    "it does, by one symbol, which lowers a logit: is each symbol tried, and do "
    "differences count with either sign?"
)
SMALL = "it does, in one logit, by 0.02: how much is due to rounding?"
BALANCED = "it does, but the sum of the logits stays: is each logit compared?"
ELSEWHERE = "it does, if other symbols allow it: are several sequences tried?"
ROUNDING = "it does not: the last digits differ by rounding"
LENGTH = "it does not: its logits depend on the length, which should stay the same"

find_leak = Exercise(
    "ch06-find-leak",
    right=leaks,
    hint="change one position, and compare the logits of those before it",
    symptoms=tensor_for_bool,
    mistakes={
        OWN: partial(leaks, compared=lambda place: slice(place + 1)),
        ITSELF: lambda model, length, vocab: False,
        EARLIER: in_place,
        FIRST_PLACE: partial(leaks, places=lambda length: [length - 1]),
        LAST_PLACE: partial(leaks, compared=lambda place: 0),
        DISTANCE: partial(leaks, compared=lambda place: place - 1),
        SYMBOL: partial(leaks, symbols=lambda old, vocab: (old + 1) % vocab),
        LOWERED: partial(leaks, size=torch.max),
        SMALL: partial(leaks, tolerance=0.1),
        BALANCED: partial(leaks, size=lambda moved: largest(moved.sum(-1))),
        ELSEWHERE: partial(leaks, sequences=1),
        ROUNDING: partial(leaks, tolerance=0.0),
        LENGTH: cut,
    },
)


def model(expression, vocab):
    """A model; `one` (b, t, v) says which symbol stands where, `at(i)` (t, 1) is 1 at
    place i, and `next(n)` is `one`, seen from n places before."""
    one = f"torch.nn.functional.one_hot(ids, {vocab}).float()"
    at = "lambda i: torch.eye(ids.shape[1])[i, :, None]"
    text = f"(lambda one, at, next: {expression})"
    return Function(f"{text}({one}, {at}, lambda n: {one}.roll(-n, 1))", "ids")


# A model of places i and j and a symbol c, what it is, and what an answer may miss.
MODELS = {
    "one.cumsum(1)": ("sums up to each position", None),
    "one.flip(1).cumsum(1).flip(1)": ("sums over what is still to come", ITSELF),
    "one.cumsum(1) - one": ("sums up to the position before", EARLIER),
    "one.cumsum(1) / ids.shape[1]": ("sums, divided by the length", LENGTH),
    "one + (ids.sum(1, True) / 7 - (ids / 7).flip(1).cumsum(1).flip(1))[..., None]": (
        "the sum of all less what comes later, up to rounding",
        ROUNDING,
    ),
    "one + at(0) * next(1)": ("the first position sees the second", FIRST_PLACE),
    "one + at(-2) * next(1)": ("the last position is seen from before", LAST_PLACE),
    "one + at({i}) * next(3)": ("a position sees the third one after it", DISTANCE),
    "one + 0.02 * next(1) * torch.eye({v})[{c}]": ("a small leak, one logit", SMALL),
    "one + next(1)": ("every position sees the next", BALANCED),
}
SHOWN = "(ids[:, {j}] == {c})[:, None, None]"
MODELS |= {
    f"one + at(0) * {SHOWN}": ("one symbol shows", SYMBOL),
    f"one + at(1) * {SHOWN}": ("another symbol shows", SYMBOL),
    f"one - at(0) * {SHOWN}": ("one symbol lowers logits", LOWERED),
    f"one - at(1) * {SHOWN}": ("another symbol lowers logits", LOWERED),
}

for _expression, (_line, _missed) in MODELS.items():

    @find_leak.case(_line, hint=_missed)
    def _(draw, expression=_expression):
        length, v = draw.integer(6, 8), draw.integer(40, 50)
        numbers = {"i": draw.integer(1, 2), "j": draw.integer(2, 5)}
        numbers |= {"c": draw.integer(2, 39), "v": v}
        return model(expression.format(**numbers), v), length, v


for _rest in range(3):  # of one size, so that one sequence misses one of them

    @find_leak.case(
        f"a position sees the next, if symbols allow it ({_rest})", hint=ELSEWHERE
    )
    def _(draw, rest=_rest):
        allowed = f"((ids + {rest}) % 3 > 0)[..., None]"
        return model(f"one + at(2) * next(1) * {allowed}", 9), 5, 9
