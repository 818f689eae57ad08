"""Answers to the exercises of chapter 02."""

import torch

from tests.exercises.answers import WRONG, right, wrong

# ---- self-attention with a temperature ---------------------------------------


@right("ch02-tempered")
def tempered(x, tau):
    q = x / tau[:, None, None]
    return torch.nn.functional.scaled_dot_product_attention(q, x, x, scale=1.0)


WRONG["ch02-tempered"] = r"""
tau[:, None, None] -> tau  # does τ, (b,), line up
\n    raw -> \n    x /= tau[:, None, None] ** 0.5\n    raw
        # changes its argument `x` in place
/ tau -> / tau.detach()  # no gradient reaches tau
[:, None, None] -> [:, None]  # one more axis did not help
softmax(dim=-1) -> softmax(dim=0)  # over the sequences of the batch
"""

# ---- self-attention, whole -----------------------------------------------------


@right("ch02-self-attention")
def self_attention(x, W_q, W_k, W_v):
    scores = torch.einsum("btd,dk,ek,bse->bts", x, W_q, W_k, x)
    weights = torch.softmax(scores / W_q.size(1) ** 0.5, dim=2)
    return torch.einsum("bts,bsd,dv->btv", weights, x, W_v)


WRONG["ch02-self-attention"] = """
query.shape -> x.shape  # scaled by the width of x
dim=-1) -> dim=-1).detach()  # gradient
@ value
    # the mix is still to come
    @ x  # what does a word hand over
scores.softmax(dim=-1) @ value ->
        torch.nn.functional.scaled_dot_product_attention(query, key, value)
        # is what you build here
/ query.shape[-1] ** 0.5 ->
dim=-1) -> dim=-1) / query.shape[-1] ** 0.5  # it belongs before it
key.transpose(1, 2) -> key.reshape(key.mT.shape)  # which number belongs to which word
"""

# ---- find the fault ------------------------------------------------------------


@right("ch02-repair-attention")
def attention(query, key, value):
    scores = torch.einsum("btk,bsk->bts", query, key) * key.shape[2] ** -0.5
    return torch.einsum("bts,bsv->btv", scores.softmax(dim=2), value)


WRONG["ch02-repair-attention"] = """
scores.softmax(dim=-1) @ value ->
        torch.nn.functional.scaled_dot_product_attention(query, key, value)
        # is what you build here
shape[-1] ** 0.5 -> shape[-1]  # divided by k, not by
key.transpose(1, 2) -> key.view(key.mT.shape)  # compare one score
shape[-1] -> shape[1]  # over which width
query.shape[-1] -> key.shape[1]  # scaled by the number of keys
/ query.shape[-1] ** 0.5 ->  # by the root of the right width
scores.softmax(dim=-1) -> (scores.exp() / scores.exp().sum(dim=-1, keepdim=True))
        # does the exponential of a large score overflow?
dim=-1) -> dim=1)  # sum to 1
"""

# ---- the factor of other entries ---------------------------------------------


@right("ch02-uniform-factor")
def uniform_factor(width):
    q, k = 2 * torch.rand(10_000, width) - 1, 2 * torch.rand(10_000, width) - 1
    return 1 / (q * k).sum(dim=-1).std()


WRONG["ch02-uniform-factor"] = """
return 3 / -> return 4 /  # measured, the factor is a different one
3 / width**0.5
    width**0.5 / 3  # that is the spread
    1 / (1 / 3)  # depends on it
    3 / (width - 1) ** 0.5  # the root of the width itself
    3 / int(width**0.5)  # is it rounded
3 / width** -> 1 / 3 / width**  # the 3 is on the wrong
"""

# ---- equivariance ------------------------------------------------------------


@right("ch02-is-equivariant")
def is_equivariant(f):
    swaps = []
    for i in range(6):
        for j in range(i):
            x, p = torch.randn(6, 3, dtype=torch.float64), torch.arange(6)
            p[i], p[j] = j, i
            swaps.append(torch.allclose(f(x)[p], f(x[p])))
    return all(swaps)


@wrong("ch02-is-equivariant", "do they really change their places")
def is_equivariant(f):
    for _ in range(20):
        x, p = torch.randn(6, 3), torch.randperm(3)
        if not torch.allclose(f(x[:, p]), f(x)[:, p], atol=1e-5):
            return False
    return True


@wrong("ch02-is-equivariant", "is a `return` missing")
def is_equivariant(f):
    x, p = torch.randn(6, 3), torch.randperm(6)
    print(torch.allclose(f(x[p]), f(x)[p], atol=1e-5))


@wrong("ch02-is-equivariant", "how many do you try")
def is_equivariant(f):
    p = torch.randperm(7)
    for _ in range(20):
        x = torch.randn(7, 4)
        if not torch.allclose(f(x[p]), f(x)[p], atol=1e-5):
            return False
    return True


WRONG["ch02-is-equivariant"] = """
atol=1e-5 -> atol=0.03  # how much is due to rounding
torch.randperm(7) -> torch.tensor([0, 2, 1, 3, 4, 5, 6])  # is one shuffle enough
range(20) -> range(1)  # how many do you try
range(20) -> range(3)  # do you try
f(x[shuffle]), f(x)[shuffle] -> f(x[shuffle])[:, 0], f(x)[shuffle][:, 0]  # one column
randn(7, 4) -> randn(3, 4)
randperm(7) -> randperm(3)  # rows further down
"""
