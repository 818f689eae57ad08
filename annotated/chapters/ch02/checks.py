"""The exercises of chapter 02; ``__init__.py`` says how one is written."""

import torch

from annotated.checks import (
    Function,
    Raised,
    exercise,
    faults,
    fused,
    overflown,
)
from annotated.checks.material import written_out

# ---- self-attention with a temperature ---------------------------------------


def ill_fitting(result, *_):
    """Did broadcasting fail, as it does for (b, t, t) divided by (b,)?"""
    if isinstance(result, Raised) and "must match the size" in result.message:
        return "two shapes don't fit each other: does τ, (b,), line up with (b, t, t)?"
    return None


@exercise(
    "ch02-tempered",
    "expected the average of x with weights softmax(x xᵀ / τ)",
    symptoms=ill_fitting,
)
def tempered(x, tau):
    """Self-attention of (b, t, k); one temperature per sequence, (b,)."""
    each = tau[:, None, None]
    scores = x @ x.mT / each  # (b, t, t)
    weights = scores.softmax(-1)
    return weights @ x


VIEWED = "view and reshape change which number belongs to which word"
WRONG_AXIS = "τ is divided along the wrong axis: here it meets words, not sequences"

tempered.instead(r"""
/ each
    * each  # the temperature multiplies the scores; it should divide them
    # the temperature is not used
    / each / x.shape[-1] ** 0.5  # the scores are divided by √k, too: here by τ only
    / each ** 0.5  # the scores are divided by √τ: here by τ
    / tau[0]  # every sequence has its own temperature; you use the first for all
    / tau  # {WRONG_AXIS}
    / tau[:, None]  # {WRONG_AXIS}; one more axis did not help
scores.softmax(-1)
    scores.softmax(1)
        # the softmax runs over the wrong axis: row i, over all j, should sum to 1
    scores.softmax(0)  # the softmax runs over the sequences of the batch (as it does
        for three axes if dim isn't given): row i, over all j, should sum to 1
    scores  # the softmax is missing: the weights of a row should sum to 1
x.mT -> x.reshape(x.mT.shape)  # {VIEWED}
weights @ x -> weights
        # these are the weights: the average of the inputs is still to come
/ each ->
weights @ x -> weights @ x / each
        # the temperature divides the weights after the softmax; it belongs before it
each = tau[ -> each = tau.detach()[  # … no gradient reaches tau
each = tau[ -> x /= tau[:, None, None] ** 0.5\n    each = tau[
        # … changes its argument `x` in place
""")

WORDS = torch.tensor(
    [
        [2.0, 0.0, 0.0, -1.0],
        [0.0, 2.0, 0.0, 1.0],
        [0.5, 0.5, 1.0, 0.0],
        [1.5, -0.5, 1.0, 0.0],
    ]
)
tempered.case(
    "the four words of section 2.1, τ = 1",
    lambda draw: (WORDS[None], torch.tensor([1.0])),
)
tempered.case(
    "the same words twice, cold and warm",
    lambda draw: (torch.stack([WORDS, WORDS]), torch.tensor([0.5, 8.0])),
)


@tempered.each("as many sequences as words: each keeps its own τ -> 3, 3, 5, 0.3, 5.0")
@tempered.each("in double precision -> 2, 4, 3, 0.5, 4.0", dtype=torch.float64)
@tempered.each("gradients reach x and τ -> 2, 3, 4, 0.5, 4.0", gradients=True)
def _(draw, b, t, k, low, high):
    return draw.normal(b, t, k), draw.uniform(low, high, b)


@tempered.case("every axis of another length")
def _(draw):
    b, t, k = draw.sizes(3)
    return draw.normal(b, t, k), draw.uniform(0.3, 9.0, b)


# ---- self-attention, whole -----------------------------------------------------


@exercise(
    "ch02-self-attention",
    "expected softmax(Q Kᵀ / √k) V with Q = x W_q, K = x W_k, V = x W_v",
    through=written_out,
    symptoms=fused,
)
def self_attention(x, W_q, W_k, W_v):
    """Outputs (b, t, v) of words (b, t, d)."""
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    width = k.shape[-1]
    scores = q @ k.mT / width**0.5  # (b, t, t)
    weights = scores.softmax(-1)
    return weights @ v


SUMS = "over which width does q·k sum?"
SHARES = "what sums to 1 for each query?"

self_attention.instead("""
width**0.5
    1  # the division by √k is missing
    width  # divided by k, not by √k
    x.shape[-1] ** 0.5  # scaled by the width of x: {SUMS}
    v.shape[-1] ** 0.5  # scaled by the width of the values: {SUMS}
    x.shape[1] ** 0.5  # scaled by the number of words: {SUMS}
scores.softmax(-1)
    scores.softmax(1)  # the softmax runs over the wrong axis: {SHARES}
    scores.softmax(0)  # the softmax runs over the sequences of the batch: {SHARES}
    scores  # the softmax is missing
x @ W_q, x @ W_k
    x @ W_k, x @ W_q  # queries and keys have changed places
    x @ W_q, x @ W_q  # the keys are made by the matrix of the queries
weights @ v
    weights @ x  # the weights mix the inputs: what does a word hand over?
    weights  # these are the weights: the mix is still to come
k.mT -> k.reshape(k.mT.shape)  # {VIEWED}
/ width**0.5 ->
weights @ v -> weights @ v / width**0.5
        # the division stands after the softmax; it belongs before it
scores.softmax(-1) -> scores.softmax(-1).detach()  # … gradient
weights @ v
    torch.nn.functional.scaled_dot_product_attention(q, k, v)
        # … is what you build here
""")


@self_attention.case("every axis of another length")
def _(draw):
    b, t, d, k, v = draw.sizes(5, low=3, high=8)  # none is the square of another
    return draw.normal(b, t, d), *(draw.normal(d, n) for n in (k, k, v))


@self_attention.case(
    "the words of section 2.3 with its three matrices",
    # √d = k here, so that it can't tell one mistake from another
    hint="expected −0.98, 0.99, 0 and −0.88, rounded; the case with other lengths says "
    "more",
)
def _(draw):
    W_q = torch.tensor([[2.0, 0.0], [0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    W_k = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [0.0, 0.0]])
    return WORDS[None], W_q, W_k, torch.tensor([[0.0], [0.0], [0.0], [1.0]])


self_attention.case(
    "as many words as sequences, and all widths equal",
    lambda draw: (draw.normal(4, 4, 4), *(draw.normal(4, 4) for _ in range(3))),
)
self_attention.case(
    "gradients reach x and all three matrices",
    lambda draw: (draw.normal(2, 3, 4), *(draw.normal(4, n) for n in (5, 5, 2))),
    gradients=True,
)


# ---- find the fault ------------------------------------------------------------


@exercise(
    "ch02-repair-attention",
    "expected softmax(query · keyᵀ / √k) · value, as in section 2.3",
    faults("""
softmax(-1) -> softmax(1)  # do the weights of a query sum to 1?
shape[-1] -> shape[1]  # over which width does the dot product sum?
key.mT -> key.reshape(key.mT.shape)
        # compare one score with the dot product it should be.
"""),
    through=written_out,
    symptoms=lambda y, *_: fused(y) or overflown(y),
)
def attention(query, key, value):
    """Outputs (b, t, v) of queries (b, t, k)."""
    scores = query @ key.mT  # not reshape: a row is one key
    # the width, not the number of queries
    scores = scores / query.shape[-1] ** 0.5
    return scores.softmax(-1) @ value  # over the keys, not the queries


attention.instead("""
query.shape[-1] ** 0.5
    1  # the scores aren't divided by the root of the right width, √k
    query.shape[-1]  # divided by k, not by √k
    value.shape[-1] ** 0.5  # scaled by the width of the values: {SUMS}
    key.shape[1] ** 0.5
        # scaled by the number of keys: over which width does the dot product sum?
scores.softmax(-1) @ value
    torch.nn.functional.scaled_dot_product_attention(query, key, value)
        # … is what you build here
scores.softmax(-1)
    (scores.exp() / scores.exp().sum(dim=-1, keepdim=True))
        # … does the exponential of a large score overflow?
""")


@attention.case("two keys, and one of them matches")
def _(draw):
    key = torch.tensor([[[3.0, 0.0], [0.0, 3.0]]])
    return torch.tensor([[[2.0, 0.0]]]), key, torch.tensor([[[1.0], [5.0]]])


@attention.case("every axis of another length")
def _(draw):
    b, t, s, k, v = draw.sizes(5)
    return draw.normal(b, t, k), draw.normal(b, s, k), draw.normal(b, s, v)


@attention.case(
    "scores of several thousand",
    dtype=torch.float64,  # rounding may decide between two such scores in float32
)
def _(draw):
    key = 100 * draw.normal(2, 5, 8)
    return 100 * draw.normal(2, 3, 8), key, draw.normal(2, 5, 4)


@attention.case("a sequence that looks at itself")
def _(draw):
    x = draw.normal(2, 6, 3)
    return x, x.clone(), x.clone()


@attention.case("one query more changes nothing for the others")
def _(draw):
    query = draw.normal(1, draw.integer(7, 12), 4)
    return query, draw.normal(1, 5, 4), draw.normal(1, 5, 2)


# ---- the factor of other entries ---------------------------------------------


@exercise(
    "ch02-uniform-factor",
    "measured, the factor is a different one: draw thousands of pairs, and divide 1 by "
    "the spread of their dot products",
    tolerance=0.03,  # an answer may measure on the spot
)
def uniform_factor(width):
    """What scores of uniform entries are multiplied by, for a variance of 1."""
    # E[x²] is 1/3 for x uniform in [−1, 1], so E[(q_d k_d)²] = 1/3 · 1/3 = 1/9,
    # the scores have variance width/9, and spread √width / 3
    return 3 / width**0.5


uniform_factor.instead("""
3 / width**0.5
    1 / width**0.5  # that is the factor for variance 1; here q and k have variance 1/3
    (3 / width) ** 0.5
        # each of the two has variance 1/3: what is the variance of a product?
    1 / width**0.5 / 3  # the 3 is on the wrong side: do smaller entries need a smaller
        factor, or a larger one?
    width**0.5 / 3  # that is the spread; the factor is what brings it to 1
    width / 9  # that is the variance; the factor is what brings the spread to 1
    9 / width  # that is 1 over the variance; the factor is 1 over its root
    3.0  # the spread grows with the width: the factor depends on it
    3 / width  # divided by the width; the spread grows as its root
    3 / (width - 1) ** 0.5  # the spread grows as the root of the width itself
    3 / int(width**0.5)  # the root of the width is no whole number: is it rounded?
return 3 / -> return 4 /  # … measured, the factor is a different one
""")

uniform_factor.case("width 64", lambda draw: (64,))
uniform_factor.case("width 256: half of that", lambda draw: (256,))
uniform_factor.case("width 12", lambda draw: (12,))
uniform_factor.case("another width", lambda draw: (draw.integer(100, 900),))


# ---- equivariance ------------------------------------------------------------

ONE_SWAP = "only a shuffle that moves a certain row tells: is one shuffle enough?"


@exercise(
    "ch02-is-equivariant",
    "compare f(x[p]) with f(x)[p]",
    luck=True,
)
def is_equivariant(f):
    """Does shuffling the rows of the input only shuffle those of the output?"""
    for _ in range(40):
        x, p = torch.randn(7, 4), torch.randperm(7)
        if not torch.allclose(f(x[p]), f(x)[p], atol=1e-5, rtol=0.0):
            return False
    return True


def cycled(n):
    """Three rows move round, at random places: never an odd shuffle."""
    shuffled, places = torch.arange(n), torch.randperm(n)[:3]
    shuffled[places] = places.roll(1)
    return shuffled


# what stands before a colon is the function itself; what an answer may miss in it
@is_equivariant.each("""
2 * x: each row on its own -> "2 * x"
x.softmax(dim=-1): a softmax within each row -> "x.softmax(dim=-1)"
x - x.mean(dim=0): the mean of all rows taken away -> "x - x.mean(dim=0)"  # it is
        equivariant. If you compare f(x[p]) with f(x)[p], allow for rounding:
        torch.allclose allows 1e-8 near zero, so pass atol=1e-5. If with f(x), that is
        invariance
x.cumsum(dim=0): a sum of all rows so far -> "x.cumsum(dim=0)"
        # it is not: are the rows shuffled, and do they really change their places?
x[:, :1].square(): squares of the first column: a narrower output -> "x[:, :1].square()"
self-attention -> "(x @ x.mT).softmax(dim=-1) @ x"
        # {x - x.mean(dim=0): the mean of all rows taken away}
the mean in every row -> "0 * x + x.mean(dim=0)"
x.roll(1, dims=0): the rows moved on by one -> "x.roll(1, dims=0)"
        # it commutes with rolling, but not with every shuffle
x.flip(0): the rows reversed -> "x.flip(0)"
        # it commutes with reversing, but not with every shuffle
the rows sorted -> "x.sort(dim=0).values"
        # that is invariant, f(x[p]) = f(x), which is another property
x @ x.mT: the dot products of all pairs of rows -> "x @ x.mT"
        # the rows move with the shuffle, but the columns do too
a running sum of the numbers below 0 added -> "x + x.clamp(max=0).cumsum(dim=0)"
        # only numbers below 0 tell: which x do you try?
a little added to every second row -> "x + 0.012 * (torch.arange(len(x)) % 2)[:, None]"
        # a small difference is a difference: how much is due to rounding?
causal attention -> "(x @ x.mT).masked_fill(torch.ones(len(x), len(x)).triu(1).bool(),
        -math.inf).softmax(dim=-1) @ x"
        # causal attention knows the order (section 2.6)
all rows from the fifth on doubled -> "torch.cat([x[:4], 2 * x[4:]])"
        # the rows further down are treated in another way: how many do you try?
one column moved on by one row -> "torch.cat([x[:, :-1], x[:, -1:].roll(1, 0)], 1)"
        # it shows in one column alone: do you compare them all?
a running sum, but only if all numbers add up to more than 0 -> "x.cumsum(dim=0) if
        x.sum() > 0 else x"  # order matters for some inputs only: how many do you try?
a running sum, but only if all numbers add up to less than 0 -> "x.cumsum(dim=0) if
        x.sum() < 0 else x"
        # {a running sum, but only if all numbers add up to more than 0}
""")
def _(draw, expression):
    return (Function(expression),)


FLIPPED = (
    "half of all shuffles do not tell: how many do you try? With equal numbers in two "
    "rows none does"
)


@is_equivariant.each("""
all rows times +1 or −1; each swap flips the sign -> "x[:, 0]"  # {FLIPPED}
the sign flipped, by the order in the last column -> "x[:, -1]"  # {FLIPPED}
the sign flipped, by the order of the sums -> "x.sum(dim=1)"  # {FLIPPED}
the sign flipped, by the order of the largest numbers -> "x.amax(dim=1)"  # {FLIPPED}
""")
def _(draw, key):
    pairs = "torch.ones(len(x), len(x)).triu(1) > 0"
    sign = f"torch.where({pairs}, ({key} - {key}[:, None]).sign(), 1).prod()"
    return (Function(f"x * {sign}"),)


@is_equivariant.case(
    "one row multiplied by a number, the others unchanged", hint=ONE_SWAP
)
def _(draw):
    size = draw.number(1.5, 4.0)
    changed = ["{} * x[:1], x[1:]", "x[:-1], {} * x[-1:]"]
    return (Function(f"torch.cat([{draw.choice(changed).format(round(size, 2))}])"),)


# which of them, and with which numbers, only the seed knows
@is_equivariant.each(
    "\n".join(
        f"one of the functions above, with other numbers ({n}) -> " for n in range(6)
    ),
    graded_only=True,
    hint="what is said of it above holds here, too",
)
def _(draw):
    same = "2 * x", "x.softmax(dim=-1)", "x - x.mean(dim=0)", "0 * x + x.mean(dim=0)"
    other = "x.cumsum(dim=0)", "x.roll(1, dims=0)", "x.flip(0)", "x.sort(dim=0).values"
    inner, outer = (round(draw.number(0.6, 1.0), 3) for _ in range(2))
    expression = draw.choice(draw.choice([same, other]))
    return (Function(f"{outer} * (lambda x: {expression})({inner} * x)"),)


is_equivariant.instead("""
f(x[p]), f(x)[p] -> f(x[p])[:, 0], f(x)[p][:, 0]  # {one column moved on by one row}
f(x)[p] -> f(x)  # {the rows sorted}
1e-5
    0.0  # {self-attention}
    1e-8  # … pass atol=1e-5
    0.1  # {a little added to every second row}
torch.randn(7, 4)
    torch.rand(7, 4)  # {a running sum of the numbers below 0 added}
    torch.randint(-2, 3, (7, 4)).float()  # … equal numbers in two
    -torch.rand(7, 4)  # {a running sum, but only if all numbers add up to more than 0}
torch.randperm(7)
    torch.arange(7)  # {x.cumsum(dim=0): a sum of all rows so far}
    torch.arange(7).roll(1)  # {x.roll(1, dims=0): the rows moved on by one}
    torch.arange(7).flip(0)  # {x.flip(0): the rows reversed}
    torch.tensor([0, 2, 1, 3, 4, 5, 6])  # {ONE_SWAP}
    cycled(7)  # {all rows times +1 or −1; each swap flips the sign}
randn(7 -> randn(3
randperm(7 -> randperm(3  # {all rows from the fifth on doubled}
range(40)
    range(1)  # … how many do you try
    range(3)  # … do you try
""")
