"""Answers to the exercises of chapter 02."""

import torch

from tests.exercises.answers import right, wrong

# ---- self-attention with a temperature ---------------------------------------


@right("ch02-tempered")
def tempered(x, tau):
    q = x / tau[:, None, None]
    return torch.nn.functional.scaled_dot_product_attention(q, x, x, scale=1.0)


@wrong("ch02-tempered", "does τ, (b,), line up")
def tempered(x, tau):
    return (x @ x.transpose(1, 2) / tau).softmax(dim=-1) @ x


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


# ---- self-attention, whole -----------------------------------------------------


@right("ch02-self-attention")
def self_attention(x, W_q, W_k, W_v):
    scores = torch.einsum("btd,dk,ek,bse->bts", x, W_q, W_k, x)
    weights = torch.softmax(scores / W_q.size(1) ** 0.5, dim=2)
    return torch.einsum("bts,bsd,dv->btv", weights, x, W_v)


@wrong("ch02-self-attention", "scaled by the width of x")
def self_attention(x, W_q, W_k, W_v):
    d = x.shape[-1]
    query, key, value = x @ W_q, x @ W_k, x @ W_v
    return torch.softmax(query @ key.transpose(1, 2) / d**0.5, dim=-1) @ value


@wrong("ch02-self-attention", "gradient")
def self_attention(x, W_q, W_k, W_v):
    query, key = x @ W_q, x @ W_k
    weights = (query @ key.transpose(1, 2) / W_q.shape[1] ** 0.5).softmax(-1)
    return weights.detach() @ (x @ W_v)


@wrong("ch02-self-attention", "the mix is still to come")
def self_attention(x, W_q, W_k, W_v):
    query, key = x @ W_q, x @ W_k
    return (query @ key.transpose(1, 2) / W_q.shape[1] ** 0.5).softmax(-1)


@wrong("ch02-self-attention", "is what you build here")
def self_attention(x, W_q, W_k, W_v):
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(x @ W_q, x @ W_k, x @ W_v)


@wrong("ch02-self-attention", "what does a word hand over")
def self_attention(x, W_q, W_k, W_v):
    scores = torch.bmm(x @ W_q, (x @ W_k).transpose(1, 2)) / W_k.shape[-1] ** 0.5
    return torch.bmm(scores.softmax(dim=2), x)


@wrong("ch02-self-attention", "it belongs before it")
def self_attention(x, W_q, W_k, W_v):
    weights = torch.softmax(x @ W_q @ (x @ W_k).transpose(1, 2), dim=-1)
    return weights / W_q.shape[1] ** 0.5 @ (x @ W_v)


@wrong("ch02-self-attention", "which number belongs to which word")
def self_attention(x, W_q, W_k, W_v):
    query, key, value = x @ W_q, x @ W_k, x @ W_v
    b, t, k = key.shape
    return torch.softmax(query @ key.reshape(b, k, t) / k**0.5, dim=-1) @ value


@wrong("ch02-repair-attention", "is what you build here")
def attention(query, key, value):
    return torch.nn.functional.scaled_dot_product_attention(query, key, value)


@wrong("ch02-repair-attention", "divided by k, not by")
def attention(query, key, value):
    scores = query @ key.transpose(1, 2) / query.shape[-1]
    return torch.softmax(scores, dim=-1) @ value


# ---- the factor of other entries ---------------------------------------------


@right("ch02-uniform-factor")
def uniform_factor(width):
    q, k = 2 * torch.rand(10_000, width) - 1, 2 * torch.rand(10_000, width) - 1
    return 1 / (q * k).sum(dim=-1).std()


@wrong("ch02-uniform-factor", "measured, the factor is a different one")
def uniform_factor(width):
    q, k = torch.rand(10_000, width), torch.rand(10_000, width)
    return 1 / (q * k).sum(dim=-1).std().item()


@wrong("ch02-uniform-factor", "that is the spread")
def uniform_factor(width):
    q, k = 2 * torch.rand(10_000, width) - 1, 2 * torch.rand(10_000, width) - 1
    return float((q * k).sum(dim=-1).std())


@wrong("ch02-uniform-factor", "the 3 is on the wrong side")
def uniform_factor(width):
    return 1 / (3 * width**0.5)


@wrong("ch02-uniform-factor", "depends on it")
def uniform_factor(width):
    return 1 / (1 / 3)


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


@wrong("ch02-is-equivariant", "is one shuffle enough")
def is_equivariant(f):
    x, p = torch.randn(5, 3), torch.tensor([0, 2, 1, 3, 4])
    return torch.allclose(f(x[p]), f(x)[p], atol=1e-5)


@wrong("ch02-is-equivariant", "how many do you try")
def is_equivariant(f):
    x, p = torch.randn(6, 3), torch.randperm(6)
    return torch.allclose(f(x[p]), f(x)[p], atol=1e-5)


@wrong("ch02-is-equivariant", "rows further down")
def is_equivariant(f):
    trials = [(torch.randn(3, 4), torch.randperm(3)) for _ in range(30)]
    return all(torch.allclose(f(x[p]), f(x)[p], atol=1e-5) for x, p in trials)


# ---- find the fault ------------------------------------------------------------


@right("ch02-repair-attention")
def attention(query, key, value):
    scores = torch.einsum("btk,bsk->bts", query, key) * key.shape[2] ** -0.5
    return torch.einsum("bts,bsv->btv", scores.softmax(dim=2), value)


@wrong("ch02-repair-attention", "compare one score")
def attention(query, key, value):
    b, s, k = key.shape
    scores = query @ key.view(b, k, s) / k**0.5
    return scores.softmax(dim=2) @ value


@wrong("ch02-repair-attention", "over which width")
def attention(query, key, value):
    scores = query @ key.transpose(1, 2) / query.shape[1] ** 0.5
    return scores.softmax(dim=-1) @ value


@wrong("ch02-repair-attention", "sum to 1")
def attention(query, key, value):
    scores = torch.matmul(query, key.transpose(-2, -1)) / query.size(-1) ** 0.5
    return torch.matmul(scores.softmax(dim=1), value)
