"""Answers to the exercises of chapter 02."""

import torch

from tests.exercises.answers import right, wrong


@right("ch02-tempered")
def tempered(x, tau):
    q = x / tau[:, None, None]
    return torch.nn.functional.scaled_dot_product_attention(q, x, x, scale=1.0)


@right("ch02-self-attention")
def self_attention(x, W_q, W_k, W_v):
    scores = torch.einsum("btd,dk,ek,bse->bts", x, W_q, W_k, x)
    weights = torch.softmax(scores / W_q.size(1) ** 0.5, dim=2)
    return torch.einsum("bts,bsd,dv->btv", weights, x, W_v)


@right("ch02-repair-attention")
def attention(query, key, value):
    scores = torch.einsum("btk,bsk->bts", query, key) * key.shape[2] ** -0.5
    return torch.einsum("bts,bsv->btv", scores.softmax(dim=2), value)


@right("ch02-uniform-factor")
def uniform_factor(width):
    q, k = 2 * torch.rand(10_000, width) - 1, 2 * torch.rand(10_000, width) - 1
    return 1 / (q * k).sum(dim=-1).std()


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
