"""Answers to the exercises of chapter 01."""

import torch

from tests.exercises.answers import right, wrong

# ---- additive scores ---------------------------------------------------------


@right("ch01-additive-scores")
def additive_scores(queries, keys, W, U, v):
    asked = torch.nn.functional.linear(queries, W)
    offered = torch.nn.functional.linear(keys, U)
    sums = asked[..., None, :] + offered[..., None, :, :]
    return torch.einsum("...h,h->...", sums.tanh(), v)


@wrong("ch01-additive-scores", "your code raised IndexError")
def additive_scores(queries, keys, W, U, v):
    a, b = queries @ W.T, keys @ U.T
    return torch.tanh(a[:, :, None, :] + b[:, None, :, :]) @ v


@wrong("ch01-additive-scores", "q W is not W q")
def additive_scores(queries, keys, W, U, v):
    if W.shape[0] != W.shape[1] or U.shape[0] != U.shape[1]:
        W, U = W.T, U.T
    a, b = queries @ W, keys @ U
    return torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ v


@wrong("ch01-additive-scores", "squeeze() drops every axis")
def additive_scores(queries, keys, W, U, v):
    a, b = queries @ W.T, keys @ U.T
    sums = torch.tanh(a[..., :, None, :] + b[..., None, :, :])
    return (sums @ v[:, None]).squeeze()


@wrong("ch01-additive-scores", "no gradient reaches W")
def additive_scores(queries, keys, W, U, v):
    a, b = queries @ W.detach().T, keys @ U.T
    return torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ v


# ---- masked alignment --------------------------------------------------------


@right("ch01-mask-padding")
def mask_padding(energies, lengths):
    rows = torch.zeros_like(energies)
    for n, length in enumerate(lengths.tolist()):
        if length:
            rows[n, :, -length:] = energies[n, :, -length:].softmax(dim=-1)
    return rows


@wrong("ch01-mask-padding", "with an energy of 0")
def mask_padding(energies, lengths):
    s = energies.shape[-1]
    real = (torch.arange(s) >= s - lengths[:, None])[:, None, :]
    return (energies * real).softmax(dim=-1) * real


@wrong("ch01-mask-padding", "and should get exactly 0")
def mask_padding(energies, lengths):
    s = energies.shape[-1]
    padding = (torch.arange(s) < s - lengths[:, None])[:, None, :]
    weights = energies.masked_fill(padding, -20.0).softmax(dim=-1)
    return weights * (lengths > 0)[:, None, None]


@wrong("ch01-mask-padding", "your code raised RuntimeError")
def mask_padding(energies, lengths):
    s = energies.shape[-1]
    padding = torch.arange(s) < s - lengths
    weights = energies.masked_fill(padding, torch.finfo(energies.dtype).min).softmax(-1)
    return weights.masked_fill(padding, 0.0)


@wrong("ch01-mask-padding", "NaN comes back in the gradient")
def mask_padding(energies, lengths):
    s = energies.shape[-1]
    real = (torch.arange(s) >= s - lengths[:, None])[:, None, :]
    powers = energies.exp() * real
    return (powers / powers.sum(dim=-1, keepdim=True)).nan_to_num(0.0)


# ---- temperature -------------------------------------------------------------


@right("ch01-temper")
def temper(energies, tau):
    wide = energies.double()
    wide = (wide - wide.amax(dim=-1, keepdim=True)) / max(tau, 1e-300)
    powers = wide.exp()
    return (powers / powers.sum(dim=-1, keepdim=True)).to(energies.dtype)


@wrong("ch01-temper", "energies/τ overflows")
def temper(energies, tau):
    if tau == 0:
        largest = energies == energies.amax(dim=-1, keepdim=True)
        return (largest / largest.sum(dim=-1, keepdim=True)).to(energies.dtype)
    return (energies / tau).softmax(dim=-1)


@wrong("ch01-temper", "NaN at τ = 0")
def temper(energies, tau):
    energies = energies - energies.max(dim=-1, keepdim=True).values
    return (energies / tau).softmax(dim=-1)


@wrong("ch01-temper", "keys that tie")
def temper(energies, tau):
    if tau == 0:
        chosen = torch.nn.functional.one_hot(energies.argmax(-1), energies.shape[-1])
        return chosen.to(energies.dtype)
    gaps = energies - energies.amax(dim=-1, keepdim=True)
    return (gaps / tau).softmax(dim=-1)
