"""Chapter 19's small language, and how often answers are mixed."""

import itertools
import math
import random

import pytest
import torch

from annotated.chapters.ch19 import chain, drawings, drawings_b
from annotated.data.spelling import pronunciations


def test_the_entropy_is_that_of_its_steps():
    steps, share = 2.0, torch.full((4,), 0.25, dtype=torch.float64)  # log2 4
    for _ in range(chain.LENGTH - 1):
        rows = -torch.special.xlogy(chain.FOLLOWS, chain.FOLLOWS).sum(1) / math.log(2)
        steps += (share * rows).sum().item()
        share = share @ chain.FOLLOWS
    assert math.isclose(chain.bits(), steps)
    assert torch.allclose(chain.chances().sum(), torch.tensor(1.0).double())


def test_more_rounds_lose_less_and_one_symbol_a_round_nothing():
    lost = [chain.lost(rounds) for rounds in (1, 2, 4, 8)]
    assert abs(lost[-1]) < 1e-9
    assert all(later < before / 2 for before, later in itertools.pairwise(lost))
    drawings.check_lost()


def test_what_is_a_bound_and_what_is_not():
    drawings_b.check_estimates()


@pytest.mark.parametrize("text", range(4))
def test_the_denoiser_guesses_what_enumeration_gives(text):
    ids = drawings_b.drawn_text(text)
    masked = [i % 3 != 1 for i in range(len(ids))]
    chances = torch.zeros(len(ids), 4, dtype=torch.float64)
    for other in itertools.product(range(4), repeat=len(ids)):
        if all(m or a == b for m, a, b in zip(masked, ids, other, strict=True)):
            p = chain.chances()[other]
            for i, letter in enumerate(other):
                chances[i, letter] += p
    wanted = chances / chances.sum(dim=1, keepdim=True)
    assert torch.allclose(drawings_b.guesses(ids, masked), wanted)


@pytest.mark.parametrize("word", ["often", "pecan", "angeline", "either"])
def test_answers_are_mixed_as_often_as_draws_say(word):
    answers, draw = pronunciations()[word], random.Random(0)
    longest = max(map(len, answers))
    padded = [(*one, *[""] * (longest - len(one))) for one in answers]
    mixed = {False: 0, True: 0}
    for _ in range(4000):
        said = tuple(draw.choice(padded)[i] for i in range(longest))
        mixed[False] += said not in padded
        size = len(draw.choice(answers))  # the length first
        alike = [one for one in answers if len(one) == size]
        mixed[True] += tuple(draw.choice(alike)[i] for i in range(size)) not in answers
    for known, count in mixed.items():
        assert abs(drawings.mixed(answers, known) - count / 4000) < 0.03
