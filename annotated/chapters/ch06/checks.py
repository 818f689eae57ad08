"""The exercises of chapter 06; ``__init__.py`` says how one is written."""

import torch
from torch import Tensor, nn  # noqa: F401, mistakes use it
from torch.nn.functional import gelu, relu  # noqa: F401

from annotated.checks import Differentiated, Function, Raised, exercise, faults
from annotated.checks.material import sequences_tried, tied

# ---- a residual block --------------------------------------------------------


def not_a_number(y, *arguments):
    if isinstance(y, Tensor) and y.isnan().any():
        return "the result holds NaN: is 0 divided by 0, where all entries are equal?"
    if isinstance(y, Differentiated) and any(g.isnan().any() for g in y.gradients):
        return "a gradient holds NaN: is the root of 0 taken, where entries are equal?"


@exercise(
    "ch06-residual",
    'expected x + f(LN(x)) in "pre", LN(x + f(x)) in "post"',
    symptoms=not_a_number,
)
def residual(x, sublayer, weight, bias, norm):
    """The stream (b, t, d) with what the sublayer gives, normalised."""

    def ln(y):
        variance, mean = torch.var_mean(y, -1, correction=0, keepdim=True)
        return (y - mean) / (variance + 1e-5).sqrt() * weight + bias

    if norm == "pre":
        return x + sublayer(ln(x))
    return ln(x + sublayer(x))


EACH = "each vector has its own"

residual.instead("""
x + sublayer(ln(x)) -> sublayer(ln(x))
ln(x + sublayer(x)) -> ln(sublayer(x))
        # the residual is missing: nothing carries x on
x + sublayer(ln(x)) -> x + sublayer(x)
ln(x + sublayer(x)) -> x + sublayer(x)  # nothing is normalised
x + sublayer(ln(x)) -> x + ln(sublayer(x))
ln(x + sublayer(x)) -> x + ln(sublayer(x))
        # what the sublayer gives is normalised, before it is added
x + sublayer(ln(x)) -> ln(x + sublayer(ln(x)))
ln(x + sublayer(x)) -> ln(x + sublayer(ln(x)))
        # what the sublayer reads is normalised, and the sum
x + sublayer(ln(x)) -> ln(x) + sublayer(ln(x))
ln(x + sublayer(x)) -> x + sublayer(x)
        # in "pre", what is carried on is normalised too
ln(x + sublayer(x)) -> ln(x) + sublayer(x)
        # in "post", only x is normalised, and not the sum
x + sublayer(ln(x)) -> ln(x + sublayer(x))
        # this is post-norm; "pre" normalises what the sublayer reads
ln(x + sublayer(x)) -> x + sublayer(ln(x))
        # this is pre-norm; "post" normalises the sum
(y, -1,
    (y, 1,  # the mean runs over the positions; {EACH}
    (y, 0,  # the mean runs over the batch; {EACH}
    (y, (1, 2),  # the mean runs over all that a sequence holds; {EACH}
    (y, (0, 1),  # the mean runs over batch and positions, as in BatchNorm; {EACH}
(y - mean) / (variance
    y / (variance  # the mean is not subtracted
    y / (y.square().mean(-1, True)  # this is RMSNorm: LN subtracts the mean
* weight + bias
    # weight and bias are not used
    + bias  # the weight is not used
    * weight  # the bias is not used
    * weight + bias * weight  # the bias is added before the weight multiplies
(variance + 1e-5).sqrt()
    (variance.sqrt() + 1e-5)  # ε stands outside the root
    variance.clamp(min=1e-5).sqrt()  # ε is a floor of the variance; it should be added
    variance.sqrt()  # ε is missing, or is only a floor of the deviation
    (variance + 1e-6).sqrt()  # ε is 1e-5; yours is 1e-6
    (variance + 1e-5)  # divided by the variance, not by its root
    1  # not divided by the deviation
correction=0 -> correction=1  # the squares are divided by d − 1, not by d
correction=0 -> correction=1
(variance + 1e-5).sqrt() -> (variance.sqrt() + 1e-5)
        # the squares are divided by d − 1, not by d, and ε stands outside the root
(variance -> (variance.sqrt() ** 2  # … a gradient holds NaN
(y - mean) -> (y - mean.detach())  # … the gradient of x is another one
""")


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

    @residual.case(f'the example, "{_norm}": {_result}')
    def _(draw, norm=_norm):
        x = torch.tensor([[[1.0, 3.0]]])
        return x, Function("2 * x"), torch.ones(2), torch.zeros(2), norm

    @residual.case(f'every axis of another length, "{_norm}"')
    @residual.case(f'in double precision, "{_norm}"', dtype=torch.float64)
    def _(draw, norm=_norm):
        return given(draw, draw.normal(*draw.sizes(3)), norm)

    @residual.case(f'gradients, "{_norm}"', gradients=True)
    def _(draw, norm=_norm):
        return given(draw, draw.normal(2, 3, 5), norm)


@residual.case("vectors so small that ε counts")
def _(draw):
    x = 1e-3 * draw.normal(2, 3, 4)
    return x, Function("x.cumsum(1)"), draw.normal(4), draw.normal(4), "pre"


@residual.case("vectors of equal entries")
@residual.case("gradients where entries are equal", gradients=True)
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


@exercise(
    "ch06-whole-layer", "expected x + attention(LN(x)), and then x + network(LN(x))"
)
def encoder_layer(x, weights, heads, mask):
    """Multi-head self-attention and a network, (b, s, d), in pre-norm."""

    def split(y):
        return y.unflatten(2, (heads, -1)).transpose(1, 2)  # (b, h, s, k)

    def attention(read):
        names = "query", "key", "value"
        q, k, v = (split(read @ weights[name]) for name in names)
        scores = q @ k.mT / k.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return mixed @ weights["output"]

    def network(read):
        inner = torch.relu(read @ weights["inner"] + weights["inner_bias"])
        return inner @ weights["outer"] + weights["outer_bias"]

    def block(y, f, n):
        gain, bias = weights[f"gain_{n}"], weights[f"bias_{n}"]
        size = y.shape[-1:]
        return y + f(torch.nn.functional.layer_norm(y, size, gain, bias))

    return block(block(x, attention, 1), network, 2)


NORMALISED = "y + f(torch.nn.functional.layer_norm(y, size, gain, bias))"
for _hint in residual.mistakes:
    if '"post"' not in _hint:  # what that alone gets wrong does not show in pre-norm
        _mistake = f'residual.mistakes[{_hint!r}](y, f, gain, bias, "pre")'
        encoder_layer.instead(f"{NORMALISED}\n    {_mistake}  # {_hint}")

MIXED = "position and head are mixed up"
STRIPED = "a head has every h-th column: head 1 should have the first k columns"
encoder_layer.instead(r"""
return y + f -> return (n - 1) * (x - y) + y + f  # the last residual adds the first x
network, 2) -> network, 1)  # both blocks use the gain and bias of the first
gain_{n} -> gain_1  # both blocks use the first gain
k.shape[-1] ** 0.5
    1  # the scores are not divided by √k
    x.shape[-1] ** 0.5  # divided by √d: how wide is one head?
(heads, -1) -> (1, -1)  # one head as wide as all: where are the others?
unflatten(2, (heads, -1)).transpose(1, 2) -> unflatten(2, (-1, heads)).permute(0, 3, 1,
        2)  # {STRIPED}
unflatten(2, (heads, -1)).transpose(1, 2) -> reshape(len(x), heads, x.shape[1], -1)
        # {MIXED} when the width is split into heads
.transpose(1, 2).flatten(2) -> .reshape(x.shape)  # {MIXED} when the heads are joined
unflatten(2, (heads, -1)).transpose(1, 2) -> reshape(len(x), heads, x.shape[1], -1)
.transpose(1, 2).flatten(2) -> .reshape(x.shape)
        # {MIXED}, both ways: split the width, and transpose
~mask -> mask  # the mask is the wrong way round: True = may attend
scores.masked_fill(~mask, -torch.inf)
    scores  # the mask has no effect
    scores + mask  # the mask is added as 0 and 1: what makes softmax give exactly 0?
    scores * mask  # hidden scores are 0, and e⁰ isn't 0
scores.masked_fill(~mask, -torch.inf) -> scores
softmax(-1) -> softmax(-1) * (1 if mask is None else mask)
        # the mask comes after the softmax: do the weights that are left sum to 1?
scores.softmax -> scores.masked_fill(torch.ones_like(scores).triu(1) > 0,
        -torch.inf).softmax  # the encoder sees no future: whose mask is that?
scores = q -> v = split(x @ weights["value"])\n        scores = q
        # the values are taken from x as it came; what does the attention read?
@ weights["output"] -> # the output map of the attention is missing
weights[name] -> weights[name].T
weights["output"] -> weights["output"].T
        # a matrix is turned: here each multiplies from the right, read @ W
+ weights["inner_bias"] -> # inner_bias is not used
+ weights["outer_bias"] -> # outer_bias is not used
+ weights["inner_bias"] ->
+ weights["outer_bias"] -> # neither of the network's biases is used
torch.relu(
    (  # nothing comes between the network's two maps
    gelu(  # the network's activation is ReLU, not GELU
""")


def matrices(draw, d, f):
    w = {name: draw.normal(d, d) for name in ("query", "key", "value", "output")}
    w |= {"inner": draw.normal(d, f), "inner_bias": draw.normal(f)}
    w |= {"outer": draw.normal(f, d), "outer_bias": draw.normal(d)}
    return w | {f"{of}_{n}": draw.normal(d) for n in (1, 2) for of in ("gain", "bias")}


@encoder_layer.case("the example: (1, 3) becomes (0, 5)")
def _(draw):
    drawn = matrices(draw, 2, 2).items()
    weights = {n: torch.eye(2) if w.dim() > 1 else torch.zeros(2) for n, w in drawn}
    weights |= {"gain_1": torch.ones(2), "gain_2": torch.ones(2)}
    return torch.tensor([[[1.0, 3.0]]]), weights, 1, None


@encoder_layer.each("""
one head, no mask -> 1, 3, 4, 1, False
three heads, every axis of another length -> 2, 5, 12, 3, False
two heads, a padded batch -> 3, 5, 6, 2, True
vectors so small that ε counts -> 2, 3, 4, 2, False, 1e-3
""")
@encoder_layer.each("gradients reach x -> 2, 3, 4, 2, True", gradients=True)
def _(draw, b, s, d, heads, padded, scale=1):
    mask = padding(draw, b, s) if padded else None
    return scale * draw.normal(b, s, d), matrices(draw, d, 7), heads, mask


# ---- a decoder layer ---------------------------------------------------------


def sizes(result):
    """The hint for an attention whose mask has another size than its scores."""
    if isinstance(result, Raised) and "must match the size" in result.message:
        return (
            "a mask doesn't fit its attention: has each the mask of the keys that it "
            "reads?"
        )


@exercise(
    "ch06-decoder-layer",
    "expected the target's attention to itself, then to the memory, then the "
    "feed-forward network, each sum normalised by its own norm",
    symptoms=lambda y, *_: sizes(y),
)
def decoder_layer(x, memory, parts, mask, memory_mask):
    """Attention to the target, attention to the source, feed-forward network."""
    sublayers = {
        "a": lambda y: parts["attention"](y, y, mask),
        "c": lambda y: parts["cross_attention"](y, memory, memory_mask),
        "f": parts["feed_forward"],
    }
    stream = x
    for name, n in ("a1", "c2", "f3"):
        norm, f = parts[f"norm_{n}"], sublayers[name]
        stream = norm(stream + f(stream))
    return stream


decoder_layer.instead("""
norm(stream + f(stream))
    stream + f(norm(stream))  # this is pre-norm; "post" normalises the sum
    norm(f(stream))  # the residual is missing: nothing carries x on
    stream + f(stream)  # nothing is normalised
    stream + norm(f(stream))  # what the sublayer gives is normalised, not the sum
    norm(stream + f(norm(stream)))
        # both are normalised, what the sublayer reads and the sum
    norm(stream) + f(stream)  # in "post", only x is normalised, and not the sum
    norm((x if name == "f" else stream) + f(stream))
        # the last residual adds the x of the beginning
    norm((x if name == "c" else stream) + f(stream))
        # the residual of the cross-attention adds the x of the beginning
    (stream + f(norm(stream)) if name == "a" else norm(stream + f(stream)))
        # the first block is pre-norm; "post" normalises the sum
(y, memory, memory_mask)
    (y, y, mask)  # in cross-attention the target asks the target: where is the memory?
    (x, memory, memory_mask)
        # cross-attention asks with x as it came, not with what the first block gave
    (memory, y, mask)
        # in cross-attention the memory asks the target; it should be asked
    (memory, y, memory_mask)
        # in cross-attention the memory asks the target, with the mask of the memory
    (y, parts["norm_2"](memory), memory_mask)
        # the memory is normalised; it comes ready from the encoder
    (y, memory, None)  # the mask of the memory is not passed on
    (y, memory, mask)  # the mask of the target is used twice
(y, y, mask)
    (y, memory, memory_mask)
        # both attentions go to the memory; the first is the target's to itself
    (y, y, None)  # the mask of the target is not passed on
    (y, y, memory_mask)  # the mask of the memory is used twice
parts["cross_attention"] -> parts["attention"]
        # parts['attention'] is used twice: the memory has a function of its own
"a1", "c2", "f3"
    "c1", "a2", "f3"  # the memory is asked first, before the target itself
    "c2", "a1", "f3"  # the memory is asked first, before the target itself, and each
        norm goes with its block
    "a1", "f3", "c2"  # the feed-forward network comes before the cross-attention
    "a1", "f2", "c3"  # the feed-forward network comes before the cross-attention, and
        norm_2 and norm_3 go with the places, not with the blocks
    "a1", "f3"  # the cross-attention is missing
    "c2", "f3"  # the self-attention is missing
    "a1", "c2"  # the feed-forward network is missing
    "a2", "c1", "f3"  # norm_1 and norm_2 are exchanged
    "a1", "c3", "f2"  # norm_2 and norm_3 are exchanged
    "a3", "c2", "f1"  # norm_1 and norm_3 are exchanged
    "a1", "c1", "f1"  # norm_1 is used for all three blocks
(y, y, mask) -> (y, y, memory_mask)
(y, memory, memory_mask) -> (y, memory, mask)  # the masks are exchanged
parts["attention"] -> parts["first"]
parts["cross_attention"] -> parts["attention"]
parts["first"] -> parts["cross_attention"]  # the two attention functions are exchanged
parts[f"norm_{n}"] -> parts.pop(f"norm_{n}")  # … changes its argument `parts` in place
(y, memory, memory_mask) -> (y, memory.detach(), memory_mask)
        # … no gradient reaches memory
""")

NUMBER_PARTS = {
    "attention": Function("query + 3 * key", "query, key, mask"),
    "cross_attention": Function("2 * query + 7 * key", "query, key, mask"),
    "feed_forward": Function("3 * x"),
    "norm_1": Function("x / 6"),
    "norm_2": Function("x - 3"),
    "norm_3": Function("x / 2"),
}
VECTOR_PARTS = {
    "attention": attention(0.5),
    "cross_attention": attention(1.5),
    "feed_forward": NETWORK,
    "norm_1": FIRST,
    "norm_2": SECOND,
    "norm_3": THIRD,
}


@decoder_layer.case("the example: 3 looks at 2 and becomes 37")
def _(draw):
    x, memory = torch.tensor([[[3.0]]]), torch.tensor([[[2.0]]])
    return x, memory, NUMBER_PARTS, None, None


@decoder_layer.each("""
source and target of one length, with their masks -> 4
a source longer than the target -> 6
a source shorter than the target -> 3
""")
@decoder_layer.each("in double precision -> 5", dtype=torch.float64)
@decoder_layer.each("gradients reach x and the memory -> 5", gradients=True)
def _(draw, s):
    x, memory = draw.normal(2, 4, 5), draw.normal(2, s, 5)
    return x, memory, VECTOR_PARTS, causal(draw, 2, 4), padding(draw, 2, s)


# ---- find the fault: a decoder layer that sees the future ----------------------


@exercise(
    "ch06-repair-decoder",
    "expected the layer as given, without its faults, else unchanged",
    faults(r"""
tril() -> tril(1)  # change the last position of x; does the one before move?
return x -> x = x - x.mean(1, keepdim=True)\n    return x
        # change the last position of x; does the first one move?
memory, memory_mask) -> memory, None)
        # change the padding of the source; does anything move?
"""),
)
def decoder_layer(x, memory, parts, memory_mask):
    """A pre-norm decoder layer in which no position sees a later one."""
    t = x.shape[1]
    mask = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
    read = parts["norm_1"](x)
    x = x + parts["attention"](read, read, mask[None, None])
    read = parts["norm_2"](x)
    x = x + parts["cross_attention"](read, memory, memory_mask)
    return x + parts["feed_forward"](parts["norm_3"](x))


decoder_layer.instead(r"""
return x -> x = x - x.mean(-1, keepdim=True)\n    return x
        # a mean is still subtracted, of each vector now: nothing is subtracted there
parts["cross_attention"](read, memory, -> parts["cross_attention"](read,
        parts["norm_2"](memory),  # the memory is read as it is: you norm it, too
tril() -> tril(-1)  # now a position does not see itself
tril() -> tril(-1)\n    mask[0, 0] = True  # … without its faults, else unchanged
""")


@decoder_layer.case("every axis of another length")
def _(draw):
    b, t, s, d = draw.sizes(4, 3)
    x, memory = draw.normal(b, t, d), draw.normal(b, s, d)
    return x, memory, VECTOR_PARTS, padding(draw, b, s)


@decoder_layer.case("source and target of one length")
def _(draw):
    b, t, d = draw.sizes(3, 3)
    return draw.normal(b, t, d), draw.normal(b, t, d), VECTOR_PARTS, padding(draw, b, t)


@decoder_layer.case("gradients reach x and the memory", gradients=True)
def _(draw):
    x, memory = draw.normal(2, 4, 3), draw.normal(2, 5, 3)
    return x, memory, VECTOR_PARTS, padding(draw, 2, 5)


# ---- tie the weights ---------------------------------------------------------

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


@exercise(
    "ch06-tie",
    "the three modules should hold one parameter, that of source",
    symptoms=not_refused,
    through=tied,
)
def tie(source, target, output):
    """Let two embeddings and an output layer share the parameter of the first."""
    table = source.weight
    for module in (target, output):
        if module.weight.shape != table.shape:
            raise ValueError(f"{table.shape} is not {module.weight.shape}")
    target.weight = output.weight = table


ONE = "it is one parameter, but"
tie.instead(r"""
target.weight = output.weight = table
    target, output = source, source
        # nothing is tied: a name for a module or a weight changes no module
    target.weight, output.weight = (nn.Parameter(table.clone()) for _ in 'to')
        # the numbers are equal, but copied: after one step they differ
    target.weight, output.weight = (nn.Parameter(table) for _ in 'to')
        # the numbers lie in one place, but in three parameters with a gradient each
    target.weight = table  # the output is not tied
    output.weight = table  # the target is not tied
    source.weight = target.weight = output.weight  # {ONE} that of the output
    source.weight = output.weight = target.weight  # {ONE} that of the target
    source.weight = target.weight = output.weight = nn.Parameter(table.clone())
        # {ONE} a new one: an optimiser has the source's
    target.weight = output.weight = table\n    output.bias =
        nn.Parameter(torch.zeros(2))  # something is left to learn besides the table
table = source.weight
    table = nn.init.normal_(source.weight)  # the source has other numbers than before
    table = source.weight.requires_grad_(False)  # the table no longer learns
raise ValueError(f"{table.shape} is not {module.weight.shape}")
    pass  # {ALL_THE_SAME}
    raise ValueError("{table.shape} is not {module.weight.shape}")
        # the message should hold two numbers that should be equal and are not
ValueError
    AssertionError  # {ASSERT}
    RuntimeError  # {LATE}
{module.weight.shape}") -> {module.weight.shape}")\n        module.weight = table
        # {TOO_LATE}
module.weight.shape != table.shape
    len(module.weight) != len(table)  # … the sizes do not fit
""")

tie.case("one parameter, that of the source", lambda draw: (tuple(draw.sizes(2)),) * 3)


@tie.each("""
two vocabularies: refused -> (2, 0), (0, 0)
embeddings of two widths: refused -> (0, 1), (0, 0)
an output for another vocabulary: refused -> (0, 0), (7, 0)
an output for wider vectors: refused -> (0, 0), (0, 3)
an output that is turned: refused -> (0, 0), (-5, 5)
""")
def _(draw, *sizes):  # of target and output, beyond those of the source
    d = draw.integer(10, 30)
    return (d + 5, d), *((d + 5 + more, d + wider) for more, wider in sizes)


@tie.each(
    "\n".join(f"of one size or of two ({n}) -> " for n in range(4)), graded_only=True
)
def _(draw):
    d, more = draw.integer(10, 30), draw.choice([0, 7])
    return (d + 5, d), (d + 5 + more, d), (d + 5, d)


# ---- find the leak of the future ---------------------------------------------

ELSEWHERE = "it does, if other symbols allow it: are several sequences tried?"


@exercise(
    "ch06-find-leak",
    "change one position, and compare the logits of those before it",
    through=sequences_tried,
    broken={
        "length": "call the model with all `length` positions: its logits may depend "
        "on the length",
        "few": "it does not, but to be sure takes each symbol at each position after "
        "the first, in the 10 sequences the text asks for",
    },
)
def leaks(model, length, vocab):
    """Does a later symbol change an earlier logit?"""
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            changed = ids.repeat(vocab, 1)  # one row for each symbol
            changed[:, place] = torch.arange(vocab)
            moved = (model(changed) - model(ids))[:, :place]
            if moved.abs().max() > 1e-3:
                return True
    return False


def model(expression, vocab):
    """A model; `one` (b, t, v) says which symbol stands where, `at(i)` (t, 1) is 1 at
    place i, and `next(n)` is `one`, seen from n places before."""
    one = f"torch.nn.functional.one_hot(ids, {vocab}).float()"
    at = "lambda i: torch.eye(ids.shape[1])[i, :, None]"
    text = f"(lambda one, at, next: {expression})"
    return Function(f"{text}({one}, {at}, lambda n: {one}.roll(-n, 1))", "ids")


# A model of places i and j and a symbol c, and what an answer may miss in it.
@leaks.each("""
sums up to each position -> "one.cumsum(1)"
sums over what is still to come -> "one.flip(1).cumsum(1).flip(1)"
        # it does: are two sequences compared (not one, changed in place), each logit?
sums up to the position before -> "one.cumsum(1) - one"
        # it does not: are later logits compared? do ids changed in place stay changed?
sums, divided by the length -> "one.cumsum(1) / ids.shape[1]"
the sum of all less what comes later, up to rounding -> "one + (ids.sum(1, True) / 7 -
        (ids / 7).flip(1).cumsum(1).flip(1))[..., None]"
        # it does not: the last digits differ by rounding
the first position sees the second -> "one + at(0) * next(1)"
        # it does, the first logit on the second symbol: is every position changed?
the last position is seen from before -> "one + at(-2) * next(1)"
        # it does, the last logit but one on the last symbol: is it compared?
a position sees the third one after it -> "one + at({i}) * next(3)"
        # it does, over a distance: which positions are compared with the change?
a small leak, one logit -> "one + 0.02 * next(1) * torch.eye({v})[{c}]"
        # it does, in one logit, by 0.02: how much is due to rounding?
every position sees the next -> "one + next(1)"
        # it does, but the sum of the logits stays: is each logit compared?
one symbol shows -> "one + at(0) * (ids[:, {j}] == {c})[:, None, None]"
        # it does, by one symbol at one position: is each symbol tried at each position,
        and is each earlier position compared?
another symbol shows -> "one + at(1) * (ids[:, {j}] == {c})[:, None, None]"
        # {one symbol shows}
one symbol lowers logits -> "one - at(0) * (ids[:, {j}] == {c})[:, None, None]"
        # it does, one symbol lowers a logit: is each symbol tried, either sign counted?
another symbol lowers logits -> "one - at(1) * (ids[:, {j}] == {c})[:, None, None]"
        # {one symbol lowers logits}
""")
def _(draw, expression):
    length, v = draw.integer(6, 8), draw.integer(40, 50)
    numbers = {"i": draw.integer(1, 2), "j": draw.integer(2, 5)}
    numbers |= {"c": draw.integer(2, 39), "v": v}
    return model(expression.format(**numbers), v), length, v


@leaks.each("""
a position sees the next, if symbols allow it (0) -> 0  # {ELSEWHERE}
a position sees the next, if symbols allow it (1) -> 1  # {ELSEWHERE}
a position sees the next, if symbols allow it (2) -> 2  # {ELSEWHERE}
""")
def _(draw, rest):  # of one size, so that one sequence misses one of them
    allowed = f"((ids + {rest}) % 3 > 0)[..., None]"
    return model(f"one + at(2) * next(1) * {allowed}", 9), 5, 9


@leaks.case("as many sequences as the text asks for")
def _(draw):
    return model("one.cumsum(1)", 20), 5, 20, True


BY_HEART = """
few symbols, sums up to each position -> "one.cumsum(1)", 9
more symbols, a position sees the next -> "one + at(2) * next(1)", 20
"""


@leaks.each(BY_HEART, graded_only=True)
def _(draw, expression, v):  # of sizes from above, so that no size tells a result
    return model(expression, v), 5, v


leaks.instead(r"""
[:, :place]
    [:, :1]  # {the last position is seen from before}
    [:, place - 1]  # {a position sees the third one after it}
return True -> pass  # {sums over what is still to come}
range(1, length) -> [length - 1]  # {the first position sees the second}
moved.abs().max()
    moved.max()  # {one symbol lowers logits}
    moved.sum(-1).abs().max()  # {every position sees the next}
1e-3
    0.1  # {a small leak, one logit}
    0.0  # {the sum of all less what comes later, up to rounding}
range(10)
    range(1)  # {ELSEWHERE}
    range(3)  # {few}
model(ids))[:, :place] -> model(ids[:, :place]))[:, :place]  # {length}
[:, :place] -> [:, : place + 1]  # it does not: a logit may depend on the symbol at its
        own position, and before it
- model(ids) -> - before
(1, length)) -> (1, length)).repeat(vocab, 1)\n        before = model(ids)
ids.repeat(vocab, 1) -> ids  # {sums up to the position before}
ids.repeat(vocab, 1) -> ids.clone()
torch.arange(vocab) -> (ids[:, place] + 1) % vocab  # {one symbol shows}
(model(changed) - model(ids))[:, :place]
    1.0 * (model(changed).argmax(-1) != model(ids).argmax(-1))[:, :place]
        # … it does, by one symbol at one position
    (model(changed) - model(ids))[:, :place].mean(-1)
        # … not one, changed in place
""")
