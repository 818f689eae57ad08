"""ch05/drawings.py: what its proofs refuse."""

import math

import pytest
import torch

from annotated.chapters.ch05 import drawings as ch05
from annotated.positions import rotary_embedding, sinusoidal_encoding
from tests.defined import defined

PAGE = "05_positional_encoding"


def test_a_turn_to_the_other_side_is_refused(capsys):
    turn, half_split = defined(PAGE, "turn", "rotary_half_split")
    ch05.check_rotary(turn)
    assert capsys.readouterr().out.count("✓") == 7
    with pytest.raises(AssertionError, match="turn, pair by pair"):
        ch05.check_rotary(lambda pair, position, speed: turn(pair, -position, speed))
    ch05.check_half_split(half_split, turn)
    with pytest.raises(AssertionError, match="half-split"):
        ch05.check_half_split(rotary_embedding, turn)


def test_positions_are_as_alike_as_their_dot_product_says():
    rows = sinusoidal_encoding(50, 12, 100.0).double()
    away = torch.tensor([0, 3, 49])
    found = ch05.similarity(away, 12, 100.0)
    torch.testing.assert_close(found, rows[away] @ rows[0] / 6, atol=1e-6, rtol=0)


def test_a_pair_meets_new_angles_if_it_goes_further_and_had_not_been_round():
    turns = torch.tensor([3.0, 3.0, 0.5, 0.5, 0.5])
    now = torch.tensor([9.0, 1.0, 0.6, 0.5, 0.2])
    new = ch05.new_angles(2 * math.pi * turns, 2 * math.pi * now)
    assert new.tolist() == [False, False, True, False, False]


def test_a_decoder_that_ignores_start_is_refused():
    class Model(torch.nn.Module):
        def __init__(self, counts):
            super().__init__()
            self.counts = counts

        def encode(self, rows):
            return None

        def decode(self, tokens, memory, start=0, kept=None):
            places = torch.arange(tokens.shape[1]) + self.counts * start
            return (tokens + places).double()[..., None], kept

    rows = torch.arange(12).view(2, 6)
    ch05.check_steps(Model(counts=True), rows, 0)
    with pytest.raises(AssertionError, match="one step at a time"):
        ch05.check_steps(Model(counts=False), rows, 0)
