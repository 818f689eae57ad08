"""The exercises of chapter 02; ``__init__.py`` says how one is written."""

from functools import partial

import torch

from annotated.checks import Exercise, Function, Raised, tensor_for_bool
from annotated.checks.material import written_out

# ---- self-attention with a temperature ---------------------------------------


def attend(x, raw, axis=-1):
    return raw.softmax(axis) @ x


def products(x):
    return x @ x.mT


def each(tau):
    return tau[:, None, None]


WRONG_AXIS = "τ is divided along the wrong axis: here it meets words, not sequences"


def ill_fitting(result, *_):
    """Did broadcasting fail, as it does for (b, t, t) divided by (b,)?"""
    if isinstance(result, Raised) and "must match the size" in result.message:
        return "two shapes don't fit each other: does τ, (b,), line up with (b, t, t)?"
    return None


tempered = Exercise(
    "ch02-tempered",
    right=lambda x, tau: attend(x, products(x) / each(tau)),
    symptoms=ill_fitting,
    hint="expected the average of x with weights softmax(x xᵀ / τ)",
    mistakes={
        "the temperature multiplies the scores; it should divide them": (
            lambda x, tau: attend(x, products(x) * each(tau))
        ),
        "the temperature is not used": lambda x, tau: attend(x, products(x)),
        "the temperature divides the weights after the softmax; it belongs before it": (
            lambda x, tau: attend(x, products(x)) / each(tau)
        ),
        "the scores are divided by √k as well: here only by τ": (
            lambda x, tau: attend(x, products(x) / each(tau) / x.shape[-1] ** 0.5)
        ),
        "the scores are divided by √τ: here by τ": (
            lambda x, tau: attend(x, products(x) / each(tau) ** 0.5)
        ),
        "the softmax runs over the wrong axis: row i, over all j, should sum to 1": (
            lambda x, tau: attend(x, products(x) / each(tau), 1)
        ),
        "every sequence has its own temperature, and you use the first for all": (
            lambda x, tau: attend(x, products(x) / tau[0])
        ),
        "these are the weights: the average of the inputs is still to come": (
            lambda x, tau: (products(x) / each(tau)).softmax(-1)
        ),
        "the softmax is missing: the weights of a row should sum to 1": (
            lambda x, tau: products(x) / each(tau) @ x
        ),
        "view and reshape change which number belongs to which word": (
            lambda x, tau: attend(x, x @ x.reshape(x.mT.shape) / each(tau))
        ),
        WRONG_AXIS: lambda x, tau: attend(x, products(x) / tau),
        f"{WRONG_AXIS}; one more axis did not help": (
            lambda x, tau: attend(x, products(x) / tau[:, None])
        ),
    },
)

WORDS = torch.tensor(
    [
        [2.0, 0.0, 0.0, -1.0],
        [0.0, 2.0, 0.0, 1.0],
        [0.5, 0.5, 1.0, 0.0],
        [1.5, -0.5, 1.0, 0.0],
    ]
)


@tempered.case("the four words of section 2.1, τ = 1")
def _(draw):
    return WORDS[None], torch.tensor([1.0])


@tempered.case("the same words twice, cold and warm")
def _(draw):
    return torch.stack([WORDS, WORDS]), torch.tensor([0.5, 8.0])


@tempered.case("every axis of another length")
def _(draw):
    b, t, k = draw.sizes(3)
    return draw.normal(b, t, k), draw.uniform(0.3, 9.0, b)


@tempered.case("as many sequences as words: each keeps its own τ")
def _(draw):
    return draw.normal(3, 3, 5), draw.uniform(0.3, 5.0, 3)


@tempered.case("in double precision", dtype=torch.float64)
def _(draw):
    return draw.normal(2, 4, 3), draw.uniform(0.5, 4.0, 2)


@tempered.case("gradients reach x and τ", gradients=True)
def _(draw):
    return draw.normal(2, 3, 4), draw.uniform(0.5, 4.0, 2)


# ---- self-attention, whole -----------------------------------------------------


def fused(result, *_):
    """Was PyTorch's attention called? ``written_out`` then leaves no width."""
    if isinstance(result, torch.Tensor) and result.shape[-1:] == (0,):
        return "write it out: the attention you call ready-made is what you build here"
    return None


def project_and_attend(x, W_q, W_k, W_v, scale=None, keys=None, axis=-1):
    q, k, v = x @ W_q, x @ (W_k if keys is None else keys), x @ W_v
    scale = W_q.shape[-1] ** -0.5 if scale is None else scale
    return (q @ k.mT * scale).softmax(axis) @ v


self_attention = Exercise(
    "ch02-self-attention",
    right=project_and_attend,
    through=written_out,
    symptoms=fused,
    hint="expected softmax(Q Kᵀ / √k) V with Q = x W_q, K = x W_k, V = x W_v",
    mistakes={
        "the division by √k is missing": partial(project_and_attend, scale=1.0),
        "divided by k, not by √k": (
            lambda x, W_q, W_k, W_v: project_and_attend(
                x, W_q, W_k, W_v, 1 / W_q.shape[-1]
            )
        ),
        "scaled by the width of x: over which width does q·k sum?": (
            lambda x, W_q, W_k, W_v: project_and_attend(
                x, W_q, W_k, W_v, x.shape[-1] ** -0.5
            )
        ),
        "scaled by the width of the values: over which width does q·k sum?": (
            lambda x, W_q, W_k, W_v: project_and_attend(
                x, W_q, W_k, W_v, W_v.shape[-1] ** -0.5
            )
        ),
        "scaled by the number of words: over which width does q·k sum?": (
            lambda x, W_q, W_k, W_v: project_and_attend(
                x, W_q, W_k, W_v, x.shape[1] ** -0.5
            )
        ),
        "the softmax runs over the wrong axis: what sums to 1 for each query?": (
            partial(project_and_attend, axis=1)
        ),
        "the softmax runs over the sequences of the batch: what sums to 1 for each "
        "query?": partial(project_and_attend, axis=0),
        "queries and keys have changed places": (
            lambda x, W_q, W_k, W_v: project_and_attend(x, W_k, W_q, W_v)
        ),
        "the keys are made by the matrix of the queries": (
            lambda x, W_q, W_k, W_v: project_and_attend(x, W_q, W_q, W_v)
        ),
        "the weights mix the inputs: what does a word hand over?": (
            lambda x, W_q, W_k, W_v: (
                (x @ W_q @ (x @ W_k).mT * W_q.shape[-1] ** -0.5).softmax(-1) @ x
            )
        ),
        "these are the weights: the mix is still to come": (
            lambda x, W_q, W_k, W_v: (
                x @ W_q @ (x @ W_k).mT * W_q.shape[-1] ** -0.5
            ).softmax(-1)
        ),
        "the division stands after the softmax; it belongs before it": (
            lambda x, W_q, W_k, W_v: (
                project_and_attend(x, W_q, W_k, W_v, 1.0) / W_q.shape[-1] ** 0.5
            )
        ),
        "view and reshape change which number belongs to which word": (
            lambda x, W_q, W_k, W_v: repaired(x @ W_q, x @ W_k, x @ W_v, reshaped)
        ),
        "the softmax is missing": (
            lambda x, W_q, W_k, W_v: (
                x @ W_q @ (x @ W_k).mT * W_q.shape[-1] ** -0.5 @ (x @ W_v)
            )
        ),
    },
)


@self_attention.case("every axis of another length")
def _(draw):
    b, t, d, k, v = draw.sizes(5, low=3, high=8)  # none is the square of another
    return draw.normal(b, t, d), *(draw.normal(d, n) for n in (k, k, v))


@self_attention.case(
    "the words of section 2.3 with its three matrices",
    hint="not what these give: the case with other lengths says more",  # √d = k here
)
def _(draw):
    W_q = torch.tensor([[2.0, 0.0], [0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    W_k = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [0.0, 0.0]])
    return WORDS[None], W_q, W_k, torch.tensor([[0.0], [0.0], [0.0], [1.0]])


@self_attention.case("as many words as sequences, and all widths equal")
def _(draw):
    return draw.normal(4, 4, 4), *(draw.normal(4, 4) for _ in range(3))


@self_attention.case("gradients reach x and all three matrices", gradients=True)
def _(draw):
    return draw.normal(2, 3, 4), *(draw.normal(4, n) for n in (5, 5, 2))


# ---- the factor of other entries ---------------------------------------------

uniform_factor = Exercise(
    "ch02-uniform-factor",
    right=lambda width: 3 / width**0.5,
    tolerance=0.03,  # an answer may measure on the spot
    hint="measured, the factor is a different one: draw thousands of pairs, and divide "
    "1 by the spread of their dot products",
    mistakes={
        "that is the factor for variance 1; here q and k have variance 1/3": (
            lambda width: width**-0.5
        ),
        "each of the two has variance 1/3: what is the variance of a product?": (
            lambda width: (3 / width) ** 0.5
        ),
        "the 3 is on the wrong side: do smaller entries need a smaller factor, or a "
        "larger one?": lambda width: width**-0.5 / 3,
        "that is the spread; the factor is what brings it to 1": (
            lambda width: width**0.5 / 3
        ),
        "that is the variance; the factor is what brings the spread to 1": (
            lambda width: width / 9
        ),
        "that is 1 over the variance; the factor is 1 over its root": (
            lambda width: 9 / width
        ),
        "the spread grows with the width: the factor depends on it": lambda width: 3.0,
        "divided by the width; the spread grows as its root": lambda width: 3 / width,
    },
)


@uniform_factor.case("width 64")
def _(draw):
    return (64,)


@uniform_factor.case("width 256: half of that")
def _(draw):
    return (256,)


@uniform_factor.case("another width")
def _(draw):
    return (draw.integer(100, 900),)


# ---- equivariance ------------------------------------------------------------


def commutes(
    f, tolerance=1e-5, count=40, draw=torch.randn, shuffle=torch.randperm, rows=7
):
    """Does ``f`` commute with shuffles of rows, as far as a few of them tell?"""
    for _ in range(count):
        x, p = draw(rows, 4), shuffle(rows)
        if not torch.allclose(f(x[p]), f(x)[p], atol=tolerance, rtol=0.0):
            return False
    return True


def invariant(f):
    x, p = torch.randn(7, 4), torch.randperm(7)
    return f(x).shape == f(x[p]).shape and torch.allclose(f(x), f(x[p]), atol=1e-5)


INVARIANT = "that is invariant, f(x[p]) = f(x), which is another property"
EXACT = (
    "it is equivariant. If you compare f(x[p]) with f(x)[p], allow for rounding: a sum "
    "in another order differs in its last digits. If with f(x), that is invariance"
)
UNMOVED = "it is not: are the rows shuffled, and do they really change their places?"
ROLLING = "it commutes with rolling, but not with every shuffle"
REVERSING = "it commutes with reversing, but not with every shuffle"
POSITIVE = "only numbers below 0 tell: which x do you try?"
LOOSE = "a small difference is a difference: how much is due to rounding?"
ONE_SWAP = "only a shuffle that moves a certain row tells: is one shuffle enough?"
SOME = "order matters for some inputs only: how many do you try?"
PARITY = "half of all shuffles do not tell: how many do you try?"
FEW_ROWS = "the rows further down are treated in another way: how many do you try?"


def cycled(n):
    """Three rows move round, at random places: never an odd shuffle."""
    shuffled, places = torch.arange(n), torch.randperm(n)[:3]
    shuffled[places] = places.roll(1)
    return shuffled


is_equivariant = Exercise(
    "ch02-is-equivariant",
    right=commutes,
    symptoms=tensor_for_bool,
    hint="compare f(x[p]) with f(x)[p]",
    mistakes={
        INVARIANT: invariant,
        EXACT: lambda f: commutes(f, tolerance=0.0),
        UNMOVED: lambda f: commutes(f, shuffle=torch.arange),
        ROLLING: lambda f: commutes(f, shuffle=lambda n: torch.arange(n).roll(1)),
        REVERSING: lambda f: commutes(f, shuffle=lambda n: torch.arange(n).flip(0)),
        POSITIVE: lambda f: commutes(f, draw=torch.rand),
        LOOSE: lambda f: commutes(f, tolerance=0.1),
        ONE_SWAP: lambda f: commutes(
            f, shuffle=lambda n: torch.tensor([0, 2, 1, *range(3, n)])
        ),
        PARITY: lambda f: commutes(f, shuffle=cycled),
        SOME: lambda f: commutes(f, draw=lambda *size: -torch.rand(*size)),
        FEW_ROWS: lambda f: commutes(f, rows=3),
    },
)

FUNCTIONS = [  # a function of the rows, its name, and what an answer may miss in it
    ("2 * x", "each row on its own", None),
    ("x.softmax(dim=-1)", "a softmax within each row", None),
    ("x - x.mean(dim=0)", "the mean of all rows taken away", EXACT),
    ("x.cumsum(dim=0)", "a sum of all rows so far", UNMOVED),
    ("x[:, :1].square()", "squares of the first column: a narrower output", None),
    ("(x @ x.mT).softmax(dim=-1) @ x", "self-attention", EXACT),
    ("0 * x + x.mean(dim=0)", "the mean in every row", None),
    ("x.roll(1, dims=0)", "the rows moved on by one", ROLLING),
    ("x.flip(0)", "the rows reversed", REVERSING),
    ("x.sort(dim=0).values", "the rows sorted", INVARIANT),
    (
        "x @ x.mT",
        "the dot products of all pairs of rows",
        "the rows move with the shuffle, but the columns do too",
    ),
    (
        "x + x.clamp(max=0).cumsum(dim=0)",
        "a running sum of the numbers below 0 added",
        POSITIVE,
    ),
    (
        "x + 1e-2 * torch.arange(len(x))[:, None]",
        "a little added to each row, by its place",
        LOOSE,
    ),
    (
        "(x @ x.mT).masked_fill(torch.ones(len(x), len(x)).triu(1).bool(), -math.inf)"
        ".softmax(dim=-1) @ x",
        "causal attention",
        "causal attention knows the order (section 2.6)",
    ),
    ("torch.cat([x[:4], 2 * x[4:]])", "all rows from the fifth on doubled", FEW_ROWS),
]

# +1 or −1: every exchange of two rows changes the sign
SIGN = (
    "torch.where(torch.ones(len(x), len(x)).triu(1) > 0, "
    "(x[:, {0}] - x[:, {0}, None]).sign(), 1).prod()"
)
FUNCTIONS += [
    (
        f"x * {SIGN.format(0)}",
        "all rows times +1 or −1; each swap flips the sign",
        PARITY,
    ),
    (
        "x.cumsum(dim=0) if x.sum() > 0 else x",
        "a running sum, but only if all numbers add up to more than 0",
        SOME,
    ),
    (
        "x.cumsum(dim=0) if x.sum() < 0 else x",
        "a running sum, but only if all numbers add up to less than 0",
        SOME,
    ),
]

for expression, name, missed in FUNCTIONS:
    shown = f"{expression}: " if len(expression) < 20 else ""
    is_equivariant.case(f"{shown}{name}", hint=missed)(
        lambda draw, expression=expression: (Function(expression),)
    )


@is_equivariant.case(
    "one row multiplied by a number, the others unchanged", hint=ONE_SWAP
)
def _(draw):
    size = draw.number(1.5, 4.0)
    changed = ["{} * x[:1], x[1:]", "x[:-1], {} * x[-1:]"]
    return (Function(f"torch.cat([{draw.choice(changed).format(round(size, 2))}])"),)


# ---- find the fault ------------------------------------------------------------


def repaired(query, key, value, turn=lambda key: key.mT, width=-1, axis=-1):
    return (query @ turn(key) / query.shape[width] ** 0.5).softmax(axis) @ value


def reshaped(key):
    return key.reshape(key.mT.shape)


AXIS = "a fault is left: do the weights of a query sum to 1?"
WIDTH = "a fault is left: over which width does the dot product sum?"
TURN = "a fault is left: compare one score with the dot product it should be"

repair_attention = Exercise(
    "ch02-repair-attention",
    right=repaired,
    through=written_out,
    symptoms=fused,
    hint="expected softmax(query · keyᵀ / √k) · value, as in section 2.3",
    mistakes={
        AXIS: partial(repaired, axis=1),
        WIDTH: partial(repaired, width=1),
        TURN: partial(repaired, turn=reshaped),
        f"{AXIS} And another: over which width does the dot product sum?": (
            partial(repaired, axis=1, width=1)
        ),
        f"{AXIS} And another: is every score the dot product it should be?": (
            partial(repaired, axis=1, turn=reshaped)
        ),
        f"{WIDTH} And another: is every score the dot product it should be?": (
            partial(repaired, width=1, turn=reshaped)
        ),
        "all three faults are still there": (
            partial(repaired, width=1, axis=1, turn=reshaped)
        ),
        "the division is missing": (
            lambda query, key, value: (query @ key.mT).softmax(-1) @ value
        ),
        "divided by k, not by √k": (
            lambda query, key, value: (
                (query @ key.mT / query.shape[-1]).softmax(-1) @ value
            )
        ),
    },
)


@repair_attention.case("two keys, and one of them matches")
def _(draw):
    key = torch.tensor([[[3.0, 0.0], [0.0, 3.0]]])
    return torch.tensor([[[2.0, 0.0]]]), key, torch.tensor([[[1.0], [5.0]]])


@repair_attention.case("every axis of another length")
def _(draw):
    b, t, s, k, v = draw.sizes(5)
    return draw.normal(b, t, k), draw.normal(b, s, k), draw.normal(b, s, v)


@repair_attention.case("a sequence that looks at itself")
def _(draw):
    x = draw.normal(2, 6, 3)
    return x, x.clone(), x.clone()


@repair_attention.case("one query more changes nothing for the others")
def _(draw):
    query = draw.normal(1, draw.integer(7, 12), 4)
    return query, draw.normal(1, 5, 4), draw.normal(1, 5, 2)
