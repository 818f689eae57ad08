"""Public checks of the exercises of chapter 03; ``__init__.py`` says how they work.

What a judge compares with is written here, apart from the module and from the model
answers, and so are the mistakes it knows by name. Heads are cut and joined here by
slices, and parameters are counted on layers that are really made.
"""

import torch
from torch import Tensor, nn

from annotated.checks import Function, expect, public
from annotated.checks.material import draw, expect_gradients, tolerance_of

MIXES = "numbers of one token end up in another token's row"

# ---- split packed heads ------------------------------------------------------

PARTS = "queries", "keys", "values"


def right_split(x, heads):
    d = x.shape[-1] // 3
    k = d // heads
    return tuple(
        torch.stack(
            [x[:, :, p * d + j * k : p * d + (j + 1) * k] for j in range(heads)], dim=1
        )
        for p in range(3)
    )


def wrong_splits(x, heads):
    """Hint -> what the mistake gives for queries, keys and values."""
    b, t, width = x.shape
    d, k = width // 3, width // 3 // heads
    right, thirds = right_split(x, heads), x.split(d, dim=-1)
    wrong = {f"these are the {name}": (right[p],) * 3 for p, name in enumerate(PARTS)}
    wrong |= {
        f"{MIXES}: view as (b, t, h, k) first, and then transpose axes 1 and 2": [
            part.reshape(b, heads, t, k) for part in thirds
        ],
        f"{MIXES}: view leaves b and t where they are, (b, t, 3, h, k), and then "
        "transpose or permute": [x.reshape(b, 3, heads, t, k)[:, p] for p in range(3)],
        f"{MIXES}: a view begins with the axes that x begins with, (b, t, 3, h, k)": [
            x.reshape(3, b, heads, t, k)[p] for p in range(3)
        ],
        "you read x head by head, with query, key and value in each; here all queries "
        "come first, then all keys, then all values: (3, h, k)": [
            torch.stack(
                [x[:, :, (3 * j + p) * k : (3 * j + p + 1) * k] for j in range(heads)],
                dim=1,
            )
            for p in range(3)
        ],
        "you take every third number; the queries are the first third of the width": [
            torch.stack(x[:, :, p::3].split(k, dim=-1), dim=1) for p in range(3)
        ],
        "every h-th number goes to the same head; a head has k numbers side by side": [
            torch.stack([part[:, :, j::heads] for j in range(heads)], dim=1)
            for part in thirds
        ],
        "the axes are (b, t, h, k), expected (b, h, t, k): transpose axes 1 and 2": [
            part.transpose(1, 2) for part in right
        ],
        "the axes are (b, h, k, t), expected (b, h, t, k)": [part.mT for part in right],
        "the axes are (h, b, t, k), expected (b, h, t, k): the batch comes first": [
            part.transpose(0, 1) for part in right
        ],
        "the heads of all sequences are put one behind another, and then read "
        "sequence by sequence; use stack(…, dim=1), or a view and a transpose": [
            torch.cat(part.split(k, dim=-1)).reshape(b, heads, t, k) for part in thirds
        ],
        "the heads come in reverse order": [part.flip(1) for part in right],
    }
    if t % 3 == 0:
        side = "you cut the tokens into three parts; it is the width, the last axis"
        wrong[side] = [
            third.reshape(b, t // 3, heads, -1).transpose(1, 2)
            for third in x.chunk(3, dim=1)
        ]
    return wrong


def judge_split(parts, x, heads):
    right, wrong = right_split(x, heads), wrong_splits(x, heads)
    if isinstance(parts, Tensor):
        hint = f"expected a tuple of three, got one tensor {tuple(parts.shape)}"
        if parts.dim() == 5 and len(parts) == 3:
            hint += "; unbind(0) makes a tuple of it"
        raise AssertionError(hint)
    if not isinstance(parts, list | tuple) or len(parts) != 3:
        if parts is None:
            expect(parts, right, hint="expected a tuple of three")
        many = isinstance(parts, list | tuple)
        kind = f"{len(parts)} values" if many else f"a {type(parts).__name__}"
        raise AssertionError(f"expected a tuple of three, got {kind}")
    for p, (name, part) in enumerate(zip(PARTS, parts, strict=True)):
        try:
            expect(
                part,
                right[p],
                hint=f"head j has the columns j·k to (j+1)·k of the {name}",
                mistakes={hint: three[p] for hint, three in wrong.items()},
                tolerance=tolerance_of(x.dtype),
            )
        except AssertionError as error:
            raise AssertionError(f"the {name}: {error}") from None


@public("ch03-split-packed", torch.arange(72.0).view(2, 3, 12), 2)
def _(parts, x, heads):
    "the example: 2 sequences of 3 tokens, 2 heads of width 2"
    judge_split(parts, x, heads)


@public("ch03-split-packed", draw(2, 5, 36, seed=80), 3)
def _(parts, x, heads):
    "every axis of another length"
    judge_split(parts, x, heads)


@public("ch03-split-packed", draw(3, 3, 27, seed=81), 3)
def _(parts, x, heads):
    "as many sequences as tokens, heads and numbers in a head"
    judge_split(parts, x, heads)


# ---- merge folded heads ------------------------------------------------------


def right_merge(y, heads):
    return torch.cat([y[j::heads] for j in range(heads)], dim=-1)


def judge_merge(x, y, heads):
    folded, t, k = y.shape
    b, d = folded // heads, heads * k
    four = torch.stack([y[n * heads : (n + 1) * heads] for n in range(b)])
    right = right_merge(y, heads)
    head_major = (
        "you read all sequences of head 0 first; here the heads of one sequence are "
        "neighbours: row n·h + j is head j of sequence n"
    )
    mistakes = {
        head_major: torch.cat(y.split(b), dim=-1),
        f"{MIXES}: h has to stand beside k, (b, t, h, k), before the two "
        "become one axis": y.reshape(b, t, d),
        f"{MIXES}: the tokens stand in front of b and h here": (
            y.transpose(0, 1).reshape(b, t, d)
        ),
        head_major + ", and h has to stand beside k before the two become one": (
            y.reshape(heads, b, t, k).transpose(0, 1).reshape(b, t, d)
        ),
        "the numbers of the heads are dealt out in turn; the k numbers of a head stay "
        "side by side": torch.stack([y[j::heads] for j in range(heads)], -1).flatten(2),
        "the heads come in reverse order": torch.cat(
            [y[j::heads] for j in reversed(range(heads))], dim=-1
        ),
        "the axes are (b, t, h, k): h and k are to become one": four.transpose(1, 2),
        "the axes are (b, h, t, k): the heads are to be put side by side": four,
        "the axes are (t, b, d), expected (b, t, d)": right.transpose(0, 1),
        "the axes are (b, d, t), expected (b, t, d)": right.mT,
        "the heads are added up; they stand side by side": four.sum(dim=1),
        "the heads are averaged; they stand side by side": four.mean(dim=1),
    }
    expect(
        x,
        right,
        hint="head j of sequence n, y[n·h + j], becomes the columns j·k to (j+1)·k",
        mistakes=mistakes,
        tolerance=tolerance_of(y.dtype),
    )


@public("ch03-merge-folded", torch.arange(24.0).view(4, 3, 2), 2)
def _(x, y, heads):
    "the example: 2 sequences of 3 tokens, 2 heads of width 2"
    judge_merge(x, y, heads)


@public("ch03-merge-folded", draw(6, 5, 4, seed=82), 3)
def _(x, y, heads):
    "2 sequences, 3 heads, every axis of another length"
    judge_merge(x, y, heads)


@public("ch03-merge-folded", draw(9, 3, 3, seed=83), 3)
def _(x, y, heads):
    "as many sequences as heads, tokens and numbers in a head"
    judge_merge(x, y, heads)


def judge_merge_gradients(result, y, heads):
    expect_gradients(
        result,
        lambda folded: right_merge(folded, heads),
        y,
        names="y",
        hint="is something detached, or made of plain numbers, on the way?",
    )


@public("ch03-merge-folded", draw(6, 2, 3, seed=84), 2, gradients=True)
def _(result, y, heads):
    "gradients reach y"
    judge_merge_gradients(result, y, heads)


# ---- count parameters --------------------------------------------------------


def right_count(d_model, heads, key_value_heads, bias):
    shared = key_value_heads * (d_model // heads)
    layers = [
        nn.Linear(d_model, width, bias=bias, device="meta")
        for width in (d_model, shared, shared, d_model)
    ]
    return sum(p.numel() for layer in layers for p in layer.parameters())


def judge_count(count, d_model, heads, key_value_heads, bias):
    right = right_count(d_model, heads, key_value_heads, bias)
    d, k = d_model, d_model // heads
    s, one = key_value_heads * k, int(bias)
    square, narrow = d * (d + one), s * (d + one)
    kind = type(count).__name__
    if isinstance(count, float):
        raise AssertionError(
            "expected a whole number, got a float: dividing by // leaves it whole"
        )
    if isinstance(count, Tensor) and count.numel() == 1:
        raise AssertionError("expected a whole number, got a tensor: int(…) makes one")
    if type(count) is not int:
        expect(count, right, hint=f"expected a whole number, int, got {kind}")
    mistakes = {
        "one of the four maps is missing: queries, keys, values, output": (
            3 * square if s == d else right
        ),
        "the biases are missing": 2 * d * d + 2 * s * d,
        "biases are counted, although there are none": 2 * (d + s) * (d + 1),
        "keys and values are as wide as the queries here: they are made for "
        "key_value_heads heads only, each of width d_model / heads": 4 * square,
        "the output map is missing (its matrix, and its bias if there is one)": (
            square + 2 * narrow
        ),
        "the output map is missing, and keys and values are made for every head": (
            3 * square
        ),
        "keys or values are forgotten: both have a map": 2 * square + narrow,
        "the maps of keys and values are forgotten": 2 * square,
        "you let the queries have key_value_heads heads: they keep all": (
            square + 3 * narrow
        ),
        "all four maps have the width of the keys: queries and output keep d_model": (
            4 * narrow
        ),
        "a bias has one number for each number that comes out: those of keys and "
        "values are as narrow as these": 2 * square + 2 * d * s + 2 * d * one,
        "only queries and output have a bias here: keys and values have one too": (
            2 * square + 2 * d * s
        ),
        "the bias of the output map is missing": d * d + square + 2 * narrow,
        "one bias is counted; each of the four maps has its own": (
            2 * d * d + 2 * s * d + d * one
        ),
        "each shared head is counted with the width d_model; it has d_model / heads": (
            2 * square + 2 * key_value_heads * square
        ),
        "the map of one shared head is counted; there are key_value_heads of them": (
            2 * square + 2 * k * (d + one)
        ),
        "a head has the width d_model / heads, also where heads are shared; you "
        "divide by key_value_heads": 2 * square
        + 2 * (d // key_value_heads) * (d + one),
        "each head is counted with the width d_model; that is the width of all heads "
        "together, and one has d_model / heads": (
            (heads + 2 * key_value_heads) * square + heads * d * d + d * one
        ),
        "this is multiplied by the number of heads; the width d_model is that of all "
        "heads together": heads * right,
    }
    expect(
        count,
        right,
        hint="add up four maps: queries and output of width d_model, keys and values "
        "of width key_value_heads · d_model / heads, each with its bias if there is "
        "one",
        mistakes=mistakes,
        tolerance=0.0,  # a count is right or wrong
    )


@public("ch03-count-parameters", 8, 4, 1, True)
def _(count, d_model, heads, key_value_heads, bias):
    "the example: d_model = 8, four heads that share keys and values"
    judge_count(count, d_model, heads, key_value_heads, bias)


@public("ch03-count-parameters", 512, 8, 8, True)
def _(count, d_model, heads, key_value_heads, bias):
    "d_model = 512, 8 heads, nothing shared"
    judge_count(count, d_model, heads, key_value_heads, bias)


@public("ch03-count-parameters", 768, 12, 3, False)
def _(count, d_model, heads, key_value_heads, bias):
    "d_model = 768, 12 heads, 3 of keys and values, no bias"
    judge_count(count, d_model, heads, key_value_heads, bias)


@public("ch03-count-parameters", 768, 12, 3, True)
def _(count, d_model, heads, key_value_heads, bias):
    "the same with biases"
    judge_count(count, d_model, heads, key_value_heads, bias)


# ---- find the transposed view ------------------------------------------------


def splitting(expression: str) -> Function:
    """A candidate, written with its sizes b, t, k at hand."""
    sizes = "lambda b, t, k: " + expression
    return Function(f"({sizes})(len(x), x.shape[1], x.shape[2] // heads)", "x, heads")


def judge_mixing(verdict, right, hint):
    if isinstance(verdict, Tensor) and verdict.numel() == 1:
        raise AssertionError(
            "your function returns a tensor: bool(…) makes a plain True or False of it"
        )
    if type(verdict).__module__ == "numpy":
        raise AssertionError(
            "your function returns an object of numpy: bool(…) makes a plain True or "
            "False of it"
        )
    expect(verdict, right, hint=hint)


@public("ch03-mixes-tokens", splitting("x.reshape(b, t, heads, k).transpose(1, 2)"))
def _(verdict, split):
    "candidate_a: a view and a transpose"
    judge_mixing(
        verdict,
        False,
        "it mixes none: row [n, j, i] holds numbers of token i of sequence n alone. "
        "Do you compare that row with x[n, i]?",
    )


@public("ch03-mixes-tokens", splitting("x.reshape(b, heads, t, k)"))
def _(verdict, split):
    "candidate_b: a view alone"
    judge_mixing(
        verdict,
        True,
        "it does: with two heads and four tokens, the first row of head 0 is the first "
        "half of token 0, and its second row the other half of token 0. Do you try "
        "several tokens and several heads, and can you tell the tokens apart?",
    )


@public(
    "ch03-mixes-tokens",
    splitting("torch.cat(x.chunk(heads, dim=-1)).reshape(b, heads, t, k)"),
)
def _(verdict, split):
    "candidate_c: cut into heads, joined along the batch, then a view"
    judge_mixing(
        verdict,
        True,
        "it does, from one sequence to another: head 0 of sequence 1 becomes head 1 "
        "of sequence 0. Try a batch of several, and give every token of every "
        "sequence a label of its own",
    )


@public("ch03-mixes-tokens", splitting("x.reshape(b, t, k, heads).permute(0, 3, 1, 2)"))
def _(verdict, split):
    "a split that deals the numbers out in turn: other heads, the same tokens"
    judge_mixing(
        verdict,
        False,
        "it mixes no tokens, it only makes other heads: do not compare with the right "
        "split, but see from which token each number comes",
    )


_SPLIT = "x.reshape(b, t, heads, k).transpose(1, 2)"


@public("ch03-mixes-tokens", splitting(f"{_SPLIT}.flip(1)"))
def _(verdict, split):
    "the right split with its heads in reverse order"
    judge_mixing(verdict, False, "it mixes no tokens: only the heads change places")


@public("ch03-mixes-tokens", splitting(f"{_SPLIT}.flip(2)"))
def _(verdict, split):
    "the right split with its tokens in reverse order"
    judge_mixing(
        verdict,
        True,
        "it does: row i holds the numbers of another token. Do you look at which token "
        "stands where, and not only whether a row holds one token?",
    )


@public(
    "ch03-mixes-tokens",
    splitting(f"torch.cat([{_SPLIT}[..., :-1], {_SPLIT}[..., -1:].flip(2)], dim=-1)"),
)
def _(verdict, split):
    "the last number of each row comes from another token"
    judge_mixing(
        verdict,
        True,
        "it does, in the last number of each row: look at all numbers",
    )
