"""The exercises of chapter 02; ``__init__.py`` says how one is written."""

import torch
from torch import Tensor

from annotated.checks import Exercise, Function, tensor_for_bool

# ---- self-attention with a temperature ---------------------------------------


def attend(x, raw, axis=-1):
    return raw.softmax(axis) @ x


def products(x):
    return x @ x.mT


def each(tau):
    return tau[:, None, None]


WRONG_AXIS = "τ is divided along the wrong axis: here it meets words, not sequences"

tempered = Exercise(
    "ch02-tempered",
    right=lambda x, tau: attend(x, products(x) / each(tau)),
    hint="expected the average of x with weights softmax(x xᵀ / τ)",
    mistakes={
        "the temperature multiplies the raw weights; it should divide them": (
            lambda x, tau: attend(x, products(x) * each(tau))
        ),
        "the temperature is not used": lambda x, tau: attend(x, products(x)),
        "the temperature divides the weights after the softmax; it belongs before it": (
            lambda x, tau: attend(x, products(x)) / each(tau)
        ),
        "the raw weights are divided by √k as well: here only by τ": (
            lambda x, tau: attend(x, products(x) / each(tau) / x.shape[-1] ** 0.5)
        ),
        "the raw weights are divided by √τ: here by τ": (
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
    [[-0.5, -0.5, -0.5], [2.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 2.0]]
)


@tempered.case("the four words of section 2.2, τ = 1")
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


# ---- the scaling -------------------------------------------------------------


def energies(q, k):
    return q @ k.mT


def overflows(result, q, k):
    if isinstance(result, Tensor) and result.isinf().any():
        return (
            f"the energies overflow: {q.dtype} ends at {torch.finfo(q.dtype).max:.0f}, "
            "and the product is above that before it is divided (section 2.7)"
        )


scaled_energies = Exercise(
    "ch02-scaled-energies",
    right=lambda q, k: energies(q, k) / q.shape[-1] ** 0.5,
    hint="expected q·k/√k for each query and each key",
    symptoms=overflows,
    mistakes={
        "the factor 1/√k is missing": energies,
        "divided by k, not by √k": lambda q, k: energies(q, k) / q.shape[-1],
        "multiplied by √k; it should divide": (
            lambda q, k: energies(q, k) * q.shape[-1] ** 0.5
        ),
        "divided by the root of the number of keys: k is the width, the last axis": (
            lambda q, k: energies(q, k) / k.shape[1] ** 0.5
        ),
        "divided by the root of the number of queries: k is the width, the last axis": (
            lambda q, k: energies(q, k) / q.shape[1] ** 0.5
        ),
        "divided by the root of the batch size: k is the width, the last axis": (
            lambda q, k: energies(q, k) / len(q) ** 0.5
        ),
        "these are weights: return the energies, before the softmax": (
            lambda q, k: (energies(q, k) / q.shape[-1] ** 0.5).softmax(-1)
        ),
        "queries and keys are exchanged: row i, column j is query i with key j": (
            lambda q, k: energies(k, q) / q.shape[-1] ** 0.5
        ),
        "view and reshape change which number belongs to which key": (
            lambda q, k: q @ k.reshape(k.mT.shape) / q.shape[-1] ** 0.5
        ),
    },
)


@scaled_energies.case("one query, two keys, width 4: the energies are 5 and 1")
def _(draw):
    keys = torch.tensor([[[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 0.0, 0.0]]])
    return torch.tensor([[[1.0, 2.0, 3.0, 4.0]]]), keys


@scaled_energies.case("every axis of another length")
def _(draw):
    b, t, s, k = draw.sizes(4)
    return draw.normal(b, t, k), draw.normal(b, s, k)


@scaled_energies.case("in double precision", dtype=torch.float64)
def _(draw):
    return draw.normal(2, 3, 5), draw.normal(2, 4, 5)


@scaled_energies.case("float16, width 4096: large energies, and no infinity")
def _(draw):
    size = draw.choice([8.0, 10.0, 12.0])
    q, k = torch.full((1, 2, 4096), size), torch.full((1, 3, 4096), 8.0)
    return q.half(), k.half()


# ---- the factor of other entries ---------------------------------------------

uniform_factor = Exercise(
    "ch02-uniform-factor",
    right=lambda width: 3 / width**0.5,
    tolerance=0.03,  # an answer may measure on the spot
    hint="measured, the factor is another one: draw thousands of pairs, and divide 1 "
    "by the spread of their dot products",
    mistakes={
        "that is the factor for variance 1; here q and k have variance 1/3": (
            lambda width: width**-0.5
        ),
        "each of the two has variance 1/3: what is the variance of a product?": (
            lambda width: (3 / width) ** 0.5
        ),
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


def commutes(f, tolerance=1e-5, count=40, draw=torch.randn, shuffle=torch.randperm):
    """Does ``f`` commute with shuffles of rows, as far as a few of them tell?"""
    for _ in range(count):
        x, p = draw(7, 4), shuffle(7)
        if not torch.allclose(f(x[p]), f(x)[p], atol=tolerance, rtol=0.0):
            return False
    return True


def invariant(f):
    x, p = torch.randn(7, 4), torch.randperm(7)
    return f(x).shape == f(x[p]).shape and torch.allclose(f(x), f(x[p]), atol=1e-5)


INVARIANT = "that is invariant, f(x[p]) = f(x), which is another property"
EXACT = "it is equivariant: a sum in another order differs in its last digits"
UNMOVED = "it is not: are the rows shuffled, and do they really change their places?"
ROLLING = "it commutes with rolling, but not with every shuffle"
REVERSING = "it commutes with reversing, but not with every shuffle"
POSITIVE = "only numbers below 0 tell: which x do you try?"
LOOSE = "a small difference is a difference: how much is due to rounding?"
ONE_SWAP = "only a shuffle that moves a certain row tells: is one shuffle enough?"

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
    },
)

FUNCTIONS = [  # a function of the rows, its name, and what an answer may miss in it
    ("2 * x", "every row for itself", None),
    ("x.softmax(dim=-1)", "a softmax within each row", None),
    ("x - x.mean(dim=0)", "the mean does not care for order", EXACT),
    ("x.cumsum(dim=0)", "a sum of all rows so far", UNMOVED),
    ("x[:, :1].square()", "it may change the width", None),
    ("(x @ x.mT).softmax(dim=-1) @ x", "self-attention", EXACT),
    ("0 * x + x.mean(dim=0)", "the same in every row", None),
    ("x.roll(1, dims=0)", "the rows moved on by one", ROLLING),
    ("x.flip(0)", "the rows reversed", REVERSING),
    ("x.sort(dim=0).values", "the rows sorted", INVARIANT),
    (
        "x @ x.mT",
        "all products of two rows",
        "the rows move with the shuffle, but the columns do too",
    ),
    ("x + x.clamp(max=0).cumsum(dim=0)", "numbers below 0 summed", POSITIVE),
    ("x + 1e-2 * torch.arange(len(x))[:, None]", "a little of each number", LOOSE),
    (
        "(x @ x.mT).masked_fill(torch.ones(len(x), len(x)).triu(1).bool(), -math.inf)"
        ".softmax(dim=-1) @ x",
        "causal attention",
        "causal attention knows the order (section 2.4)",
    ),
]

for expression, name, missed in FUNCTIONS:
    shown = f"{expression}: " if len(expression) < 20 else ""
    is_equivariant.case(f"{shown}{name}", hint=missed)(
        lambda draw, expression=expression: (Function(expression),)
    )


@is_equivariant.case("one row treated in another way", hint=ONE_SWAP)
def _(draw):
    size = draw.number(1.5, 4.0)
    changed = ["{} * x[:1], x[1:]", "x[:-1], {} * x[-1:]"]
    return (Function(f"torch.cat([{draw.choice(changed).format(round(size, 2))}])"),)
