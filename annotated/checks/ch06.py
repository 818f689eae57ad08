"""Public checks of the exercises of chapter 06; ``__init__.py`` says how they work.

What a judge compares with is written here, apart from the module and from the model
answers, and so are the mistakes it knows by name.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from annotated.checks import Differentiated, Function, Raised, expect, public
from annotated.checks.material import draw, expect_gradients, tolerance_of

# ---- a residual, in both orders, and what it is mistaken for -----------------


def right_block(x, sublayer, norm, order):
    if order == "pre":
        return torch.add(x, sublayer(norm(x)))
    return norm(torch.add(sublayer(x), x))


WRONG_BLOCKS = {
    "pre": {
        'this is post-norm; "pre" normalises what the sublayer reads': (
            lambda x, f, norm: norm(x + f(x))
        ),
        "what is carried on is normalised too: add to x itself, not to the norm of x": (
            lambda x, f, norm: norm(x) + f(norm(x))
        ),
        "the residual is missing: what the sublayer finds is added to x": (
            lambda x, f, norm: f(norm(x))
        ),
        "what the sublayer found is normalised; in pre-norm it is what it reads": (
            lambda x, f, norm: x + norm(f(x))
        ),
        "nothing is normalised": lambda x, f, norm: x + f(x),
        'the sum is normalised as well; in "pre" only what the sublayer reads is': (
            lambda x, f, norm: norm(x + f(norm(x)))
        ),
    },
    "post": {
        'this is pre-norm; "post" normalises the sum': (
            lambda x, f, norm: x + f(norm(x))
        ),
        "only what the sublayer found is normalised; in post-norm the sum is": (
            lambda x, f, norm: x + norm(f(x))
        ),
        "only x is normalised; in post-norm the sum is": (
            lambda x, f, norm: norm(x) + f(x)
        ),
        "the residual is missing: what the sublayer finds is added to x": (
            lambda x, f, norm: norm(f(x))
        ),
        "nothing is normalised": lambda x, f, norm: x + f(x),
        "what the sublayer reads is normalised as well; in post-norm only the sum is": (
            lambda x, f, norm: norm(x + f(norm(x)))
        ),
    },
}

# ---- a residual block --------------------------------------------------------


def normalised(x, weight, bias, eps=1e-5):
    variances, means = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return bias + weight * (x - means) * (variances + eps).rsqrt()


def right_residual(x, sublayer, weight, bias, norm):
    def layer_norm(y):
        return normalised(y, weight, bias)

    return right_block(x, sublayer, layer_norm, norm)


FAR = (
    "entries near 1000 that differ by 1: the mean of the squares less the square of "
    "the mean loses all digits here; take the mean of the squared distances"
)


BLOCK = 'expected x + f(LN(x)) in "pre", LN(x + f(x)) in "post"'
NAN = (
    "the result holds NaN: is it 0/0, for a vector of equal entries? ε belongs under "
    "the root, and the variance is divided by d, not by d − 1"
)


def judge_far(y, x, sublayer, weight, bias, norm):
    """Vectors far from 0, for which one way to the variance is no way at all."""
    options = {"hint": FAR, "nan": FAR, "tolerance": 1e-2}
    judge_residual(y, x, sublayer, weight, bias, norm, **options)


def judge_residual(
    y, x, sublayer, weight, bias, norm, hint=BLOCK, nan=NAN, tolerance=None
):
    dtype, d = x.dtype, x.shape[-1]
    wide, gain, shift = x.double(), weight.double(), bias.double()
    right = right_residual(wide, sublayer, gain, shift, norm)

    def centred(z, axes=-1):
        return z - z.mean(dim=axes, keepdim=True)

    def divided(z, by):
        return centred(z) / by * gain + shift

    def floored(z):
        variance = z.var(dim=-1, correction=0, keepdim=True)
        if (variance > 1e-5).all():  # no floor can be seen
            return (variance + 1e-5).sqrt()
        return variance.clamp(min=1e-5).sqrt()

    unbiased = {
        "the deviation is the unbiased one, over d − 1; divide the squares by d": (
            lambda z: divided(z, (z.var(dim=-1, keepdim=True) + 1e-5).sqrt())
        ),
        "this is the unbiased deviation, and ε outside the root; wanted is "
        "√(variance + ε), the squares divided by d": (
            lambda z: divided(z, z.std(dim=-1, keepdim=True) + 1e-5)
        ),
    }
    norms = {} if d == 1 else unbiased  # one number has no unbiased deviation
    norms |= {
        "ε stands outside the root: wanted is √(variance + ε)": (
            lambda z: divided(z, z.std(dim=-1, correction=0, keepdim=True) + 1e-5)
        ),
        "ε is added to the variance, and is no floor: wanted is √(variance + ε)": (
            lambda z: divided(z, floored(z))
        ),
        "ε is missing, or is only a floor: wanted is √(variance + ε)": (
            lambda z: divided(z, z.std(dim=-1, correction=0, keepdim=True))
        ),
        "ε is 1e-5; yours is 1e-6": lambda z: normalised(z, gain, shift, 1e-6),
        "it is divided by the variance; wanted is its root": (
            lambda z: divided(z, z.var(dim=-1, correction=0, keepdim=True) + 1e-5)
        ),
        "the mean is not subtracted before weight and bias": (
            lambda z: (
                z / (z.var(dim=-1, correction=0, keepdim=True) + 1e-5).sqrt() * gain
                + shift
            )
        ),
        "it is not divided by the deviation": lambda z: centred(z) * gain + shift,
        "weight and bias are not used": lambda z: normalised(z, 1.0, 0 * shift),
        "the weight is not used": lambda z: normalised(z, 1.0, shift),
        "the bias is not used": lambda z: normalised(z, gain, 0 * shift),
        "the bias is added before the weight multiplies: ŷ · weight + bias": (
            lambda z: (normalised(z, 1.0, 0 * shift) + shift) * gain
        ),
    }
    for what, axes in (
        ("over the places", 1),
        ("over the sequences of the batch", 0),
        ("over places and entries together", (1, 2)),
        ("over batch and places, as batch normalisation has it", (0, 1)),
    ):
        name = f"mean and deviation are taken {what}; each vector has its own: dim=-1"
        norms[name] = lambda z, axes=axes: (
            centred(z, axes)
            / (z.var(dim=axes, correction=0, keepdim=True) + 1e-5).sqrt()
            * gain
            + shift
        )
    mistakes = {
        name: block(wide, sublayer, lambda z: normalised(z, gain, shift))
        for name, block in WRONG_BLOCKS[norm].items()
    }
    mistakes |= {
        name: right_block(wide, sublayer, wrong, norm) for name, wrong in norms.items()
    }
    if isinstance(y, Tensor) and y.isnan().any():
        raise AssertionError(nan)
    expect(
        y,
        right.to(dtype),
        hint=hint,
        mistakes={name: wrong.to(dtype) for name, wrong in mistakes.items()},
        tolerance=tolerance or tolerance_of(dtype),
    )


def expect_residual_gradients(result, x, sublayer, weight, bias, norm) -> None:
    expect_gradients(
        result,
        lambda x, weight, bias: right_residual(x, sublayer, weight, bias, norm),
        *(x, weight, bias),
        names="x weight bias",
        hint="is something detached, or computed without gradients, or a root of 0, "
        "on the way?",
    )


ONE, NONE = torch.tensor([1.0, 1.0]), torch.tensor([0.0, 0.0])


@public(
    "ch06-residual", torch.tensor([[[1.0, 3.0]]]), Function("2 * x"), ONE, NONE, "post"
)
def _(y, x, sublayer, weight, bias, norm):
    "the example: the sum 3, 9 becomes −1, 1"
    judge_residual(y, x, sublayer, weight, bias, norm)


@public(
    "ch06-residual", torch.tensor([[[1.0, 3.0]]]), Function("2 * x"), ONE, NONE, "pre"
)
def _(y, x, sublayer, weight, bias, norm):
    "the example in the other order: −1, 5"
    judge_residual(y, x, sublayer, weight, bias, norm)


SWAP = Function("1.5 * x.flip(-1) + x.relu()")

for _norm in ("post", "pre"):

    @public(
        "ch06-residual",
        *(draw(2, 3, 5, seed=110), SWAP, draw(5, seed=111), draw(5, seed=112), _norm),
    )
    def _(y, x, sublayer, weight, bias, norm):
        "two sequences, weights and biases of all kinds"
        judge_residual(y, x, sublayer, weight, bias, norm)


@public(
    "ch06-residual",
    4e-3 * draw(2, 2, 4, seed=113),
    *(Function("x.cumsum(1)"), draw(4, seed=114), draw(4, seed=115), "pre"),
)
def _(y, x, sublayer, weight, bias, norm):
    "vectors so small that ε counts"
    judge_residual(y, x, sublayer, weight, bias, norm)


@public(
    "ch06-residual",
    *(draw(2, 3, 1, seed=103), SWAP, draw(1, seed=104), draw(1, seed=105), "post"),
)
def _(y, x, sublayer, weight, bias, norm):
    "vectors of width 1: the bias is left"
    judge_residual(y, x, sublayer, weight, bias, norm)


@public(
    "ch06-residual",
    *(draw(2, 2, 1, seed=106).repeat(1, 1, 3), SWAP),
    *(draw(3, seed=107), draw(3, seed=108), "pre"),
)
def _(y, x, sublayer, weight, bias, norm):
    "all entries of a vector are equal"
    judge_residual(y, x, sublayer, weight, bias, norm)


for _dtype, _norm in ((torch.float16, "post"), (torch.bfloat16, "pre")):

    @public(
        "ch06-residual",
        *(draw(2, 2, 4, seed=109, dtype=_dtype), Function("x.relu()")),
        *(draw(4, seed=101, dtype=_dtype), draw(4, seed=102, dtype=_dtype), _norm),
    )
    def _(y, x, sublayer, weight, bias, norm):
        "half precision"
        judge_residual(y, x, sublayer, weight, bias, norm)


def far(*shape: int, seed: int, offset: float = 1000.0) -> Tensor:
    """Eighths near a large number, so that means are exact in float32."""
    return offset + (8 * draw(*shape, seed=seed)).round() / 8


@public(
    "ch06-residual",
    *(far(2, 2, 4, seed=119), Function("x.roll(1, -1)")),
    *(draw(4, seed=100), draw(4, seed=99), "post"),
)
def _(y, x, sublayer, weight, bias, norm):
    "large entries, small differences"
    judge_far(y, x, sublayer, weight, bias, norm)


@public(
    "ch06-residual",
    draw(2, 3, 4, seed=116),
    *(SWAP, draw(4, seed=117), draw(4, seed=118), "post"),
    gradients=True,
)
def _(result, x, sublayer, weight, bias, norm):
    "gradients reach x, the weight and the bias"
    expect_residual_gradients(result, x, sublayer, weight, bias, norm)


# ---- what layers are put together from ---------------------------------------


def attention(scale: float) -> Function:
    """Attention of a query to a key, which is the value, too; a mask of four axes."""
    energies = f"{scale} * query @ key.mT"
    masked = "e if mask is None else e.masked_fill(~mask[:, 0], -torch.inf)"
    weights = f"(lambda e: {masked})({energies}).softmax(-1)"
    return Function(f"{weights} @ key", "query, key, mask")


def norm(scale: float, shift: float) -> Function:
    """A layer normalisation of its own scale and shift."""
    plain = "torch.nn.functional.layer_norm(x, x.shape[-1:])"
    return Function(f"{scale} * {plain} + {shift}")


FIRST, SECOND, THIRD = norm(1.5, 0.25), norm(0.75, -0.5), norm(1.25, 0.5)
EACH = Function("(x.roll(1, -1) + 0.5).relu() - 0.25 * x")


def gaps(*rows: str) -> Tensor:
    """A mask (b, 1, 1, s), written with x for True and - for False."""
    return torch.tensor([[c == "x" for c in row] for row in rows])[:, None, None]


def triangle(*rows: str) -> Tensor:
    """A mask (b, 1, t, t): `gaps`, and nothing of the future."""
    real = gaps(*rows)
    return real & torch.ones(real.shape[-1], real.shape[-1]).tril().bool()


# ---- an encoder layer --------------------------------------------------------


def right_encoder(x, attend, feed_forward, norm_1, norm_2, order, mask):
    x = right_block(x, lambda y: attend(y, y, mask), norm_1, order)
    return right_block(x, feed_forward, norm_2, order)


def judge_encoder(y, x, attend, feed_forward, norm_1, norm_2, order, mask):
    dtype, wide = x.dtype, x.double()

    def of(block, x=wide, each=feed_forward, n1=norm_1, n2=norm_2, mask=mask):
        return block(block(x, lambda z: attend(z, z, mask), n1), each, n2)

    def block(x, sublayer, norm):
        return right_block(x, sublayer, norm, order)

    def reads(norm, x):
        return norm(x) if order == "pre" else x

    right = right_encoder(wide, attend, feed_forward, norm_1, norm_2, order, mask)
    middle = block(wide, lambda z: attend(z, z, mask), norm_1)
    found = feed_forward(reads(norm_2, middle))
    attended = attend(reads(norm_1, wide), reads(norm_1, wide), mask)
    mistakes = {name: of(wrong) for name, wrong in WRONG_BLOCKS[order].items()}
    mistakes |= {
        "norm_1 and norm_2 are exchanged: norm_1 belongs to the attention": (
            of(block, n1=norm_2, n2=norm_1)
        ),
        "norm_1 is used twice: the second block has norm_2": of(block, n2=norm_1),
        "norm_2 is used twice: the first block has norm_1": of(block, n1=norm_2),
        "the feed-forward network comes first; the attention should": (
            block(
                block(wide, feed_forward, norm_2),
                lambda z: attend(z, z, mask),
                norm_1,
            )
        ),
        "the feed-forward network is missing": middle,
        "the attention is missing": block(wide, feed_forward, norm_2),
        "the second block starts from x again; it goes on from the first": (
            block(wide, feed_forward, norm_2)
            + (attended if order == "pre" else 0 * attended)
        ),
        "the second residual adds the first x; it adds what the first block gave": (
            wide + found if order == "pre" else norm_2(wide + found)
        ),
    }
    if mask is not None:
        mistakes["the mask is not passed on"] = of(block, mask=None)
    if order == "pre":
        mistakes |= {
            "the query is normalised and the key is not: both are what the sublayer "
            "reads": block(
                wide + attend(norm_1(wide), wide, mask), feed_forward, norm_2
            ),
            "the key is normalised and the query is not: both are what the sublayer "
            "reads": block(
                wide + attend(wide, norm_1(wide), mask), feed_forward, norm_2
            ),
            "the layer's end is normalised; in pre-norm only the end of the stack is": (
                norm_2(right)
            ),
        }
    expect(
        y,
        right.to(dtype),
        hint="expected one residual around the attention, then one around the "
        "feed-forward network, each with its own norm",
        mistakes={name: wrong.to(dtype) for name, wrong in mistakes.items()},
        tolerance=tolerance_of(dtype),
    )


def expect_encoder_gradients(result, x, attend, each, norm_1, norm_2, order, mask):
    expect_gradients(
        result,
        lambda x: right_encoder(x, attend, each, norm_1, norm_2, order, mask),
        x,
        names="x",
        hint="is something detached, or computed without gradients, on the way?",
    )


COUNTED = (
    Function("10 * query + key", "query, key, mask"),
    *(Function("3 * x"), Function("x / 2"), Function("x - 1")),
)
ENCODER = attention(0.5), EACH, FIRST, SECOND


@public("ch06-encoder-layer", torch.tensor([[[2.0]]]), *COUNTED, "post", gaps("x"))
def _(y, x, attend, feed_forward, norm_1, norm_2, order, mask):
    'the example: "post", 47'
    judge_encoder(y, x, attend, feed_forward, norm_1, norm_2, order, mask)


@public("ch06-encoder-layer", torch.tensor([[[2.0]]]), *COUNTED, "pre", gaps("x"))
def _(y, x, attend, feed_forward, norm_1, norm_2, order, mask):
    'the example: "pre", 49'
    judge_encoder(y, x, attend, feed_forward, norm_1, norm_2, order, mask)


for _order in ("post", "pre"):

    @public(
        "ch06-encoder-layer",
        *(draw(2, 4, 3, seed=120), *ENCODER, _order, gaps("xxx-", "xx--")),
    )
    def _(y, x, attend, feed_forward, norm_1, norm_2, order, mask):
        "a padded batch"
        judge_encoder(y, x, attend, feed_forward, norm_1, norm_2, order, mask)


@public(
    "ch06-encoder-layer",
    *(draw(2, 3, 4, seed=121), *ENCODER, "pre", gaps("xxx", "x--")),
    gradients=True,
)
def _(result, x, attend, feed_forward, norm_1, norm_2, order, mask):
    "gradients reach x"
    expect_encoder_gradients(
        result, x, attend, feed_forward, norm_1, norm_2, order, mask
    )


# ---- a decoder layer ---------------------------------------------------------


def right_decoder(x, memory, parts, mask, memory_mask):
    itself, source = parts["attention"], parts["cross_attention"]
    x = parts["norm_1"](x + itself(x, x, mask))
    x = parts["norm_2"](x + source(x, memory, memory_mask))
    return parts["norm_3"](x + parts["feed_forward"](x))


def judge_decoder(y, x, memory, parts, mask, memory_mask):
    dtype, wide, far = x.dtype, x.double(), memory.double()
    attend, look = parts["attention"], parts["cross_attention"]
    each = parts["feed_forward"]
    norms = parts["norm_1"], parts["norm_2"], parts["norm_3"]
    n1, n2, n3 = norms

    def itself(z):
        return attend(z, z, mask)

    def source(z):
        return look(z, far, memory_mask)

    def post(x, sublayer, norm):
        return norm(x + sublayer(x))

    def of(one=itself, two=source, three=each, norms=norms, block=post):
        return block(block(block(wide, one, norms[0]), two, norms[1]), three, norms[2])

    right = right_decoder(wide, far, parts, mask, memory_mask)
    first = post(wide, itself, n1)
    second = post(first, source, n2)
    mistakes = {name: of(block=wrong) for name, wrong in WRONG_BLOCKS["post"].items()}
    mistakes |= {
        "in cross-attention the target asks the target: its keys are the memory": (
            of(two=lambda z: look(z, z, mask))
        ),
        "both attentions go to the memory: the first one is the target's to itself": (
            of(one=lambda z: attend(z, far, memory_mask))
        ),
        "the two attentions are exchanged: first the target looks at itself, then at "
        "the memory": post(post(post(wide, source, n1), itself, n2), each, n3),
        "the two attention functions are exchanged": of(
            lambda z: look(z, z, mask), lambda z: attend(z, far, memory_mask)
        ),
        "parts['attention'] is used twice: the memory has parts['cross_attention']": (
            of(two=lambda z: attend(z, far, memory_mask))
        ),
        "cross-attention asks with x as it came; it asks with what the first block "
        "gave": post(n2(first + look(wide, far, memory_mask)), each, n3),
        "the feed-forward network comes before the cross-attention": (
            post(post(first, each, n2), source, n3)
        ),
        "the cross-attention is missing": post(first, each, n3),
        "the self-attention is missing": post(post(wide, source, n2), each, n3),
        "the feed-forward network is missing": second,
        "the last residual adds x as it came; it adds what the block before gave": (
            n3(wide + each(second))
        ),
        "the memory is normalised: it comes ready from the encoder": (
            of(two=lambda z: look(z, n2(far), memory_mask))
        ),
        "the mask of the target is not passed on": (
            of(one=lambda z: attend(z, z, None))
        ),
        "the mask of the memory is not passed on": (
            of(two=lambda z: look(z, far, None))
        ),
        "the norms stand in another order: norm_1, norm_2, norm_3": (
            of(norms=(n3, n2, n1))
        ),
        "norm_1 is used for all three blocks": of(norms=(n1, n1, n1)),
    }
    for name, wrong in (
        ("norm_1 and norm_2 are exchanged", (n2, n1, n3)),
        ("norm_2 and norm_3 are exchanged", (n1, n3, n2)),
    ):
        mistakes[name] = of(norms=wrong)
    sizes = wide.shape[1], far.shape[1]
    if sizes[0] == sizes[1]:
        mistakes |= {
            "the masks are exchanged: cross-attention has the memory's, self-attention "
            "the target's": of(
                lambda z: attend(z, z, memory_mask), lambda z: look(z, far, mask)
            ),
            "the mask of the target is used twice: cross-attention has that of the "
            "memory": of(two=lambda z: look(z, far, mask)),
            "the mask of the memory is used twice: self-attention has that of the "
            "target": of(one=lambda z: attend(z, z, memory_mask)),
            "in cross-attention the memory asks the target: the query is the "
            "target": of(two=lambda z: look(far, z, mask)),
            "in cross-attention the memory asks the target, with the mask of the "
            "memory: the query is the target": of(
                two=lambda z: look(far, z, memory_mask)
            ),
        }
    expect(
        y,
        right.to(dtype),
        hint="expected the target's attention to itself, then to the memory, then the "
        "feed-forward network, each sum normalised by its own norm",
        mistakes={name: wrong.to(dtype) for name, wrong in mistakes.items()},
        tolerance=tolerance_of(dtype),
    )


def expect_decoder_gradients(
    result: Differentiated, x, memory, parts, mask, memory_mask
) -> None:
    expect_gradients(
        result,
        lambda x, memory: right_decoder(x, memory, parts, mask, memory_mask),
        *(x, memory),
        names="x memory",
        hint="is something detached, or computed without gradients, on the way?",
    )


COUNTED_PARTS = {
    "attention": Function("query + 2 * key", "query, key, mask"),
    "cross_attention": Function("query + 100 * key", "query, key, mask"),
    "feed_forward": Function("3 * x"),
    "norm_1": Function("x / 4"),
    "norm_2": Function("x - 1"),
    "norm_3": Function("x / 2"),
}
PARTS = {
    "attention": attention(0.5),
    "cross_attention": attention(1.5),
    "feed_forward": EACH,
    "norm_1": FIRST,
    "norm_2": SECOND,
    "norm_3": THIRD,
}


@public(
    "ch06-decoder-layer",
    *(torch.tensor([[[3.0]]]), torch.tensor([[[2.0]]]), COUNTED_PARTS),
    *(triangle("x"), gaps("x")),
)
def _(y, x, memory, parts, mask, memory_mask):
    "the example: 3 looks at 2 and becomes 410"
    judge_decoder(y, x, memory, parts, mask, memory_mask)


@public(
    "ch06-decoder-layer",
    *(draw(2, 4, 3, seed=130), draw(2, 4, 3, seed=131), PARTS),
    *(triangle("xxx-", "xxxx"), gaps("xxxx", "xx--")),
)
def _(y, x, memory, parts, mask, memory_mask):
    "source and target of one length: the masks must not be exchanged"
    judge_decoder(y, x, memory, parts, mask, memory_mask)


@public(
    "ch06-decoder-layer",
    *(draw(2, 3, 4, seed=132), draw(2, 5, 4, seed=133), PARTS),
    *(triangle("xxx", "xx-"), gaps("xxxxx", "xxx--")),
)
def _(y, x, memory, parts, mask, memory_mask):
    "a source that is longer than the target"
    judge_decoder(y, x, memory, parts, mask, memory_mask)


@public(
    "ch06-decoder-layer",
    *(draw(2, 3, 4, seed=134), draw(2, 2, 4, seed=135), PARTS),
    *(triangle("xx-", "xxx"), gaps("xx", "x-")),
    gradients=True,
)
def _(result, x, memory, parts, mask, memory_mask):
    "gradients reach x and the memory"
    expect_decoder_gradients(result, x, memory, parts, mask, memory_mask)


# ---- tie the weights ---------------------------------------------------------

RATE = 0.1  # of the step that moves what was tied


def modules(source: tuple, target: tuple, output: tuple, dtype: str = "float32"):
    """Two embeddings and an output layer, with weights that only this seed gives."""
    made = [
        nn.Embedding(*source),
        nn.Embedding(*target),
        nn.Linear(*output, bias=False),
    ]
    for seed, module in enumerate(made, 140):
        module.to(getattr(torch, dtype))
        module.weight.data.copy_(draw(*module.weight.shape, seed=seed))
    return made


def tied(tie: Callable, vocab: int, d_model: int, dtype: str) -> dict:
    """Let an answer tie three modules, take a step, and tell what came of it."""
    with torch.enable_grad():
        sizes = (vocab, d_model), (vocab, d_model), (d_model, vocab)
        made = modules(*sizes, dtype)
        owned = [module.weight for module in made]
        tie(*made)
        weights = [module.weight for module in made]
        told = {
            "whose": [
                next((i for i, own in enumerate(owned) if own is weight), -1)
                for weight in weights
            ],
            "parameters": [isinstance(weight, nn.Parameter) for weight in weights],
            "places": [
                weight.data_ptr() == weights[0].data_ptr() for weight in weights
            ],
            "count": len(list(nn.ModuleList(made).parameters())),
            "before": [weight.detach().clone() for weight in weights],
        }
        source, target, output = made
        ids = torch.arange(vocab)
        logits = output(target(ids)) + output(source(ids.flip(0)))
        logits.sin().sum().backward()
        with torch.no_grad():
            for parameter in nn.ModuleList(made).parameters():
                if parameter.grad is not None:
                    parameter -= RATE * parameter.grad
        told["after"] = [module.weight.detach().clone() for module in made]
        return told


def stepped(table: Tensor) -> Tensor:
    """Where the step that `tied` takes leads, with one table for all three."""
    with torch.enable_grad():
        leaf, ids = table.clone().requires_grad_(), torch.arange(len(table))
        logits = leaf[ids] @ leaf.mT + leaf[ids.flip(0)] @ leaf.mT
        [gradient] = torch.autograd.grad(logits.sin().sum(), leaf)
    return table - RATE * gradient


NAMES = "source", "target", "output"


def judge_tied(told, vocab, d_model, dtype):
    whose, before, after = told["whose"], told["before"], told["after"]
    table = draw(vocab, d_model, seed=140).to(getattr(torch, dtype))
    if len(set(whose)) > 1 or whose[0] != 0:
        _not_one(told, table)
    expect(
        before[0],
        table,
        hint="the table of the source has other numbers than before: it is to be kept",
    )
    expect(
        told["count"],
        1,
        hint="the three modules have further parameters: only one is to be left",
    )
    if torch.equal(after[0], before[0]):
        raise AssertionError(
            "a step of training does not move the table: does it require gradients?"
        )
    for weight in after:
        expect(
            weight,
            stepped(table.double()).to(table.dtype),
            hint="a step of training moves the table, but not by the sum of the three "
            "gradients",
            tolerance=tolerance_of(table.dtype),
        )


def _not_one(told, table: Tensor) -> None:
    whose, places = told["whose"], told["places"]
    equal = [
        weight.shape == table.shape and torch.equal(weight, told["before"][0])
        for weight in told["before"]
    ]
    others = [name for name, i in zip(NAMES, whose, strict=True) if i != 0]
    if not all(told["parameters"]):
        raise AssertionError("not all three weights are parameters any more")
    if whose == [1, 1, 1] or whose == [2, 2, 2]:
        raise AssertionError(
            f"it is one parameter, but that of `{NAMES[whose[0]]}`: that of `source` "
            "is to be kept"
        )
    if len(set(whose)) == 1 and told["count"] == 1:
        raise AssertionError(
            "it is one parameter, but a new one: the one of `source` is to be kept, so "
            "that an optimiser that has it goes on"
        )
    if whose == [0, 1, 2] and not any(equal[1:]):
        raise AssertionError(
            "nothing is tied: `target = source` gives a name, and changes no module; "
            "what has to be set is the attribute `weight` of a module"
        )
    if all(places):
        raise AssertionError(
            f"the numbers lie in one place, but they are {told['count']} parameters, "
            "each with a gradient of its own: set the parameter itself, neither its "
            ".data nor a new nn.Parameter"
        )
    if all(equal):
        raise AssertionError(
            "the numbers are equal, but copied: after one step they differ. The three "
            "modules are to hold one parameter"
        )
    raise AssertionError(
        f"not one parameter: the weight of {' and '.join(others)} is another one than "
        "that of `source`"
    )


def refused(tie: Callable, *sizes: int) -> dict:
    """Let an answer tie modules that do not fit; what it says, and what it changed."""
    with torch.enable_grad():
        made = modules(sizes[:2], sizes[2:4], sizes[4:])
        owned = [module.weight for module in made]
        kept = [weight.detach().clone() for weight in owned]
        message = None
        try:
            tie(*made)
        except ValueError as error:
            message = str(error)
        changed = [
            name
            for name, module, own, value in zip(NAMES, made, owned, kept, strict=True)
            if module.weight is not own or not torch.equal(module.weight, value)
        ]
    return {"message": message, "changed": changed}


def judge_misfit(told, *sizes):
    v, d, v_target, d_target, inputs, outputs = sizes
    if isinstance(told, Raised):
        hint = "an assert is gone when Python runs with -O; " * (
            told.kind == "AssertionError"
        )
        raise AssertionError(
            f"your code raised {told.kind} ({told.message[:60]!r}): {hint}look at the "
            "sizes before you set a weight, and raise a ValueError"
        )
    if told["message"] is None:
        raise AssertionError(
            f"the tables of source and target are {v} × {d} and {v_target} × "
            f"{d_target}, the weight of the output {outputs} × {inputs}: they do not "
            "fit, so raise; your code does not"
        )
    if told["changed"]:
        raise AssertionError(
            f"it refuses, but the weight of {' and '.join(told['changed'])} is already "
            "another one: look at all the sizes before you set a weight"
        )
    pairs = (v, v_target), (d, d_target), (v, outputs), (d, inputs)
    differing = [pair for pair in pairs if len(set(pair)) > 1]
    if not any(all(str(n) in told["message"] for n in pair) for pair in differing):
        first = " and ".join(map(str, differing[0]))
        raise AssertionError(
            f"the message should hold the two numbers that differ, {first} here; it "
            f"is: {told['message'][:100]!r}"
        )


@public("ch06-tie", 7, 3, "float32", through=tied)
def _(told, vocab, d_model, dtype):
    "one parameter, the one of the source; a step moves it for all three"
    judge_tied(told, vocab, d_model, dtype)


@public("ch06-tie", 4, 4, "float32", through=tied)
def _(told, vocab, d_model, dtype):
    "as many symbols as the vectors are wide"
    judge_tied(told, vocab, d_model, dtype)


_FITTED = "source_rows, source_width, target_rows, target_width, inputs, outputs"

for _line, _sizes in (
    ("two vocabularies: refused", (17, 3, 25, 3, 3, 17)),
    ("an output for another vocabulary: refused", (16, 3, 16, 3, 3, 24)),
    ("an output for wider vectors: refused", (15, 12, 15, 12, 23, 15)),
):

    def _judge(told, v, d, v_target, d_target, inputs, outputs):
        judge_misfit(told, v, d, v_target, d_target, inputs, outputs)

    _judge.__doc__ = _line
    public("ch06-tie", *_sizes, through=refused, raises=True)(_judge)

# ---- find the leak of the future ---------------------------------------------

# Logits of symbols: of each place alone, summed over the places so far, and the like.
ALONE = "torch.nn.functional.one_hot(ids, {v}).float()"


def model(expression: str, vocab: int) -> Function:
    """A model; `one` (b, t, v) says which symbol stands where, `ids` is (b, t)."""
    one = ALONE.format(v=vocab)
    return Function(f"(lambda one: {expression})({one})", "ids")


def watched(leaks: Callable, model: Function, length: int, vocab: int) -> dict:
    """Let an answer look for a leak; its verdict, and whether its ids stay changed."""
    handed, changed = {}, [False]

    def seen(ids):
        if isinstance(ids, Tensor) and ids.ndim == 2:
            now = ids.clone()
            # tensors that are held are not freed, so a place in memory is one tensor
            _, first, last = handed.get(ids.data_ptr(), (ids, now, None))
            handed[ids.data_ptr()] = ids, first, now
            if first.shape == now.shape:
                places = int((first != now).any(dim=0).sum())
                again = last is not None and torch.equal(last, now)
                changed[0] |= places > 1 or (places == 1 and again)
        return model(ids)

    return {"verdict": leaks(seen, length, vocab), "changed": changed[0]}


def judge_leaks(told, right, hint):
    verdict = told["verdict"]
    if isinstance(verdict, Tensor) and verdict.numel() == 1:
        raise AssertionError(
            "your function returns a tensor: bool(…) makes a plain True or False of it"
        )
    if told["changed"] and isinstance(verdict, bool) and verdict is not right:
        hint = (
            f"it should be {right}; your ids are changed in place and stay changed: "
            "change a copy (.clone()), or put the old symbol back"
        )
    expect(verdict, right, hint=hint)


OWN = (
    "it does not leak: a logit may depend on the symbol of its own place, and on those "
    "before; when place j changes, compare the places before j alone"
)
LEAKS = "it does: every logit depends on the last symbol"
MIDDLE = (
    "it does: the first logit depends on the second symbol, and no other on what comes "
    "later; change every place, and compare all places before it"
)
SYMBOL = (
    "it does, but only where a later symbol is the last of the vocabulary; put every "
    "symbol at every place, and compare all logits"
)
ROUNDED = (
    "it does not: what differs are the last digits, which is rounding; compare with a "
    "tolerance"
)
LENGTH = (
    "it does not: its logits depend on the length alone; change symbols, and cut "
    "nothing off"
)


NEXT = (
    "it does, by few symbols only: put every symbol at every place, in 10 random "
    "sequences, and count differences of either sign"
)
LOWERED = (
    "it does, in few sequences, and it only ever lowers a logit: a difference counts "
    "with either sign, take .abs()"
)
ELSEWHERE = (
    "it does, but only where the place before holds certain symbols: draw the other "
    "places at random, 10 times; zeros or one sequence may miss it"
)


def elsewhere(place: int, but: int, vocab: int, far: int = 1) -> Function:
    """A place sees one that is so far behind it, unless it holds the symbol `but`."""
    here = f"torch.eye(ids.shape[1])[{place}, :, None]"
    there = f"(ids != {but})[..., None] * {here}"
    return model(f"one.cumsum(1) + {there} * one.roll(-{far}, 1)", vocab)


def rarely(by: float, modulus: int, rest: int, vocab: int) -> Function:
    """The first logit moves where the symbols, weighed by place, have a certain sum."""
    weights = "torch.arange(ids.shape[1]) * 7 + 3"
    hit = f"((ids * ({weights})).sum(1) % {modulus} == {rest})[:, None, None]"
    first = "torch.eye(ids.shape[1])[0, :, None]"
    return model(f"one.cumsum(1) + {by} * {hit} * {first}", vocab)


def leak_judge(line: str, leaks: bool, hint: str) -> Callable:
    def judge(told, model, length, vocab):
        judge_leaks(told, leaks, hint)

    judge.__doc__ = line
    return judge


for _line, _model, _length, _vocab, *_rest in (
    ("sums over the places so far: False", model("one.cumsum(1)", 5), 6, 5, False, OWN),
    (
        "sums over the places still to come: True",
        model("one.flip(1).cumsum(1).flip(1)", 5),
        *(6, 5, True, LEAKS),
    ),
    (
        "only the first place sees the one behind it: True",
        model("one + torch.eye(ids.shape[1])[0, :, None] * one.roll(-1, 1)", 4),
        *(7, 4, True, MIDDLE),
    ),
    (
        "one symbol of the vocabulary shows through: True",
        model("one.cumsum(1) + (ids == 5).any(1)[:, None, None] * 0.5", 6),
        *(5, 6, True, SYMBOL),
    ),
    (
        "few symbols show through: True",
        rarely(0.5, 71, 62, 10),
        *(10, 10, True, NEXT),
    ),
    (
        "some symbols lower a logit, none raises one: True",
        rarely(-0.5, 41, 3, 10),
        *(10, 10, True, LOWERED),
    ),
    *(
        (
            f"a place sees the next one, unless it holds a {but}: True",
            elsewhere(3, but, 3),
            *(6, 3, True, ELSEWHERE),
        )
        for but in range(3)
    ),
    (
        "all minus what comes later, up to rounding: False",
        model("(one * 0.3).sum(1, True) - (one * 0.3).flip(1).cumsum(1).flip(1)", 3),
        *(8, 3, False, ROUNDED),
    ),
    (
        "sums so far, divided by the length: False",
        model("one.cumsum(1) / ids.shape[1]", 4),
        *(5, 4, False, LENGTH),
    ),
):
    declare = public("ch06-find-leak", _model, _length, _vocab, through=watched)
    declare(leak_judge(_line, *_rest))
