"""Answers to the exercises of chapter 02."""

import torch

from tests.exercises.answers import right, wrong

# ---- self-attention with a temperature ---------------------------------------


@right("ch02-tempered")
def tempered(x, tau):
    q = x / tau[:, None, None]
    return torch.nn.functional.scaled_dot_product_attention(q, x, x, scale=1.0)


@wrong("ch02-tempered", "changes its argument `x` in place")
def tempered(x, tau):
    values = x.clone()
    x /= tau[:, None, None] ** 0.5
    return torch.bmm(torch.bmm(x, x.transpose(1, 2)).softmax(dim=-1), values)


@wrong("ch02-tempered", "no gradient reaches tau")
def tempered(x, tau):
    raws = [one @ one.T / t for one, t in zip(x, tau.tolist(), strict=True)]
    pairs = zip(raws, x, strict=True)
    return torch.stack([raw.softmax(-1) @ one for raw, one in pairs])


@wrong("ch02-tempered", "one more axis did not help")
def tempered(x, tau):
    weights = torch.softmax(x @ x.transpose(-1, -2) / tau.unsqueeze(-1), dim=-1)
    return weights @ x


# ---- the scaling -------------------------------------------------------------


@right("ch02-scaled-energies")
def scaled_energies(q, k):
    root = q.size(2) ** 0.25
    return torch.einsum("btk,bsk->bts", q / root, k / root)


@wrong("ch02-scaled-energies", "the energies overflow")
def scaled_energies(q, k):
    return q @ k.transpose(1, 2) / q.shape[-1] ** 0.5


@wrong("ch02-scaled-energies", "the dtype is torch.float32")
def scaled_energies(q, k):
    return q.float() @ k.float().transpose(1, 2) / q.shape[-1] ** 0.5


@wrong("ch02-scaled-energies", "the shape is")
def scaled_energies(q, k):
    return ((q[0] / q.shape[-1] ** 0.5) @ k[0].T)[None]


# ---- the factor of other entries ---------------------------------------------


@right("ch02-uniform-factor")
def uniform_factor(width):
    q, k = 2 * torch.rand(10_000, width) - 1, 2 * torch.rand(10_000, width) - 1
    return 1 / (q * k).sum(dim=-1).std()


@wrong("ch02-uniform-factor", "measured, the factor is another one")
def uniform_factor(width):
    q, k = torch.rand(10_000, width), torch.rand(10_000, width)
    return 1 / (q * k).sum(dim=-1).std().item()


@wrong("ch02-uniform-factor", "that is the spread")
def uniform_factor(width):
    q, k = 2 * torch.rand(10_000, width) - 1, 2 * torch.rand(10_000, width) - 1
    return float((q * k).sum(dim=-1).std())


@wrong("ch02-uniform-factor", "depends on it")
def uniform_factor(width):
    return 1 / (1 / 3)


# ---- equivariance ------------------------------------------------------------


@right("ch02-is-equivariant")
def is_equivariant(f):
    x = torch.randn(5, 3, dtype=torch.float64)
    swaps = []
    for i in range(5):
        for j in range(i):
            p = torch.arange(5)
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


@wrong("ch02-is-equivariant", "is one shuffle enough")
def is_equivariant(f):
    x, p = torch.randn(5, 3), torch.tensor([0, 2, 1, 3, 4])
    return torch.allclose(f(x[p]), f(x)[p], atol=1e-5)
