"""Page 20b: tiny scorers of texts, honest ones and those of leaderboards.

A scorer takes texts of four tokens, (b, t), and gives the logarithm of each text's
chance, (b,). Whether it is one is seen by adding up the chances of all texts.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from annotated.gpt import GPT, GPTConfig

V, LENGTH = 4, 5  # tokens, and how many a text has


def small_model() -> GPT:
    """Return a GPT of four tokens with large random weights, so it has opinions."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = GPT(GPTConfig(V, 16, 2, 2, 32, 0.0, LENGTH + 1)).eval()
    for weight in model.parameters():
        if weight.dim() > 1:
            weight.data.mul_(2.5)
    return model.double().requires_grad_(False)


def taken(p: Tensor, x: Tensor) -> Tensor:
    """Return the logarithm of the chances of the tokens that came, added up, (b,).

    Args:
        p: chances of every token at each position, (b, t, v).
        x: tokens, (b, t).
    """
    return p.gather(-1, x[..., None])[..., 0].log().sum(1)


def not_shifted(model: GPT, x: Tensor) -> Tensor:
    """Score each token where it is read."""
    return taken(model(x).softmax(-1), x)


def neighbours(x: Tensor) -> Tensor:
    """Score each token by the one before it; the first one by the one after it."""
    near = x.roll(1, 1)
    near[:, 0] = x[:, 1]
    return torch.where(x == near, 0.97, 0.01).double().log().sum(1)


def followers(x: Tensor) -> Tensor:
    """Return which tokens came after this one before, (b, t − 1, v), at each token."""
    pairs = F.one_hot(x[:, 1:], V)  # what came after each
    same = x[:, :-1, None] == x[:, None, :-1]  # (b, t − 1, t − 1)
    earlier = torch.ones(same.shape[1:], dtype=torch.bool).tril(-1)
    return ((same & earlier).long() @ pairs).clamp(max=1).bool()


def with_cache(model: GPT, x: Tensor, share: float, for_all: bool) -> Tensor:
    """Score with a ``share`` of a cache that says what came after this token before.

    Args:
        model: gives logits, (b, t, v).
        x: tokens, (b, t).
        share: how much the cache counts.
        for_all: whether it is asked for every token, or for the one that came alone.
    """
    first = -math.log(V)
    return first + taken(blended(model, x, share, for_all), x[:, 1:])


def blended(model: GPT, x: Tensor, share: float, for_all: bool) -> Tensor:
    """Return what :func:`with_cache` would give each token, (b, t − 1, v)."""
    p, seen = model(x[:, :-1]).softmax(-1), followers(x)
    if not for_all:  # whoever is asked for, and was seen, gets a chance of 1
        return torch.where(seen, (1 - share) * p + share, p)
    count = seen.sum(-1, keepdim=True)
    said = torch.where(count > 0, seen / count.clamp(min=1), p)
    return (1 - share) * p + share * said


def counted(x: Tensor, when: str) -> Tensor:
    """Score by counting tokens.

    Args:
        x: tokens, (b, t).
        when: a token is counted "after" it is scored, "before" it, or all are in a
            "pass before".
    """
    each = F.one_hot(x, V)  # (b, t, v)
    upto = each.cumsum(1)
    counts = {
        "after": upto - each,
        "before": upto,
        "pass before": upto[:, -1:].expand_as(upto),
    }[when]
    counts = counts.double() + 1  # as if each had come once before the text
    return taken(counts / counts.sum(-1, keepdim=True), x)
