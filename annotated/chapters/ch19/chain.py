"""Chapter 19: a language so small that everything about it can be computed.

Texts are eight letters of four, each drawn by the one before it. With four to the power
of eight texts, the right answer to "what stands at position i, if these others are
visible?" is a sum: the exact denoiser.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from statistics import mean

import torch
from torch import Tensor

LETTERS, LENGTH = "abcd", 8
#: which letter follows which: rows are the letter before
FOLLOWS = torch.tensor(
    [[0, 0.8, 0.2, 0], [0, 0, 0.7, 0.3], [0.1, 0, 0, 0.9], [0.7, 0.3, 0, 0]],
    dtype=torch.float64,
)


@cache
def chances() -> Tensor:
    """Return the chance of every text, an axis of four for each of eight letters."""
    joint = torch.full((4,), 0.25, dtype=torch.float64)
    for _ in range(LENGTH - 1):
        joint = joint[..., None] * FOLLOWS
    return joint


@cache
def bits(places: tuple[int, ...] = tuple(range(LENGTH))) -> float:
    """Return the entropy of the letters at some ``places`` together, in bits."""
    others = [i for i in range(LENGTH) if i not in places]
    joint = chances().sum(dim=others) if others else chances()
    return -(joint * joint.clamp_min(1e-300).log2()).sum().item()


def given(place: int, seen: Sequence[int]) -> float:
    """Return the entropy at a ``place`` for someone who sees others, in bits."""
    return bits(tuple(sorted((*seen, place)))) - bits(tuple(sorted(seen)))


def best_guess(gap: Sequence[int], seen: Sequence[int]) -> float:
    """Return how often the likeliest letters of a ``gap`` are right, given others."""
    others = [i for i in range(LENGTH) if i not in (*gap, *seen)]
    joint = chances().sum(dim=others, keepdim=True) if others else chances()
    return joint.amax(dim=list(gap)).sum().item()


@cache
def lost(rounds: int) -> float:
    """Return what a text loses in bits if it is written in equal ``rounds``.

    Positions are drawn at random, and all of a round are guessed by the exact denoiser,
    each for itself. Lost is the divergence of what is written from the language: what
    the letters of a round cost apart, minus what they cost together.
    """
    size, total = LENGTH // rounds, 0.0
    for visible in range(0, LENGTH, size):
        apart = [
            sum(given(i, seen) for i in block)
            - bits(tuple(sorted((*seen, *block))))
            + bits(seen)
            for seen in combinations(range(LENGTH), visible)
            for block in combinations(sorted({*range(LENGTH)} - {*seen}), size)
        ]
        total += mean(apart)
    return total


@cache
def masked_bits(count: int) -> float:
    """Return the summed loss of the exact denoiser where ``count`` letters are masked.

    In bits: the mean over all such masks.
    """
    return mean(
        sum(given(i, seen) for i in set(range(LENGTH)) - {*seen})
        for seen in combinations(range(LENGTH), LENGTH - count)
    )


def loss_at(t: float) -> float:
    """Return the expected summed loss if each letter is masked with chance ``t``."""
    return sum(
        math.comb(LENGTH, m) * t**m * (1 - t) ** (LENGTH - m) * masked_bits(m)
        for m in range(1, LENGTH + 1)
    )


def mean_over(weigh: Callable[[float], float], low: float, high: float = 1.0) -> float:
    """Return the mean of a function of the share of masks between two shares."""
    n = 2000  # midpoints: the integrand is a polynomial of small degree
    steps = (low + (k + 0.5) * (high - low) / n for k in range(n))
    return mean(weigh(t) for t in steps)


def estimates() -> dict[str, float]:
    """Return bits per letter by what people call the loss of one model, by name."""
    full = mean_over(lambda t: loss_at(t) / t, 0.0)
    cut = mean_over(lambda t: loss_at(t) / t, 0.1)
    five = mean(loss_at(t) / t for t in (0.1, 0.3, 0.5, 0.7, 0.9))
    found = {
        "entropy": bits(),
        "1/t": full,
        "sizes": sum(masked_bits(m) * LENGTH / m for m in range(1, LENGTH + 1))
        / LENGTH,
        "from 0.1, mean": cut,
        "from 0.1, integral": 0.9 * cut,
        "five shares": five,
        "half": 2 * loss_at(0.5),
        "without 1/t": mean_over(loss_at, 0.0),
        "one": LENGTH * masked_bits(1),
    }
    return {name: total / LENGTH for name, total in found.items()}
