"""ch07/drawings_c.py: bits, meanings of ε, and what has to show."""

import pytest
import torch

from annotated.chapters.ch07 import drawings_c as ch07c


@pytest.mark.parametrize(
    ("number", "dtype", "bits"),
    [
        (1.0, torch.bfloat16, "bits: 0 01111111 0000000"),
        (-1.5, torch.float16, "bits: 1 01111 1000000000"),
        (2.0, torch.float32, "bits: 0 10000000 " + 23 * "0"),
    ],
)
def test_bits_are_those_of_the_number(number, dtype, bits):
    assert ch07c.bits(torch.tensor(number, dtype=dtype)) == bits


def test_a_break_that_leaves_something_out_has_to_show():
    ch07c.left_out({"nothing": (0, 1.0), "model": (0.2, 1.5)})
    with pytest.raises(AssertionError, match="schedule: off by 0"):
        ch07c.left_out({"nothing": (0, 1.0), "schedule": (0, 1.0)})


def test_three_meanings_of_epsilon_differ_in_who_shares_it():
    found = ch07c.who_shares(torch.tensor([2]), 5, 0.4)
    padding = [row[0, 0].item() for row in found.values()]
    right = [row[0, 2].item() for row in found.values()]
    assert padding == pytest.approx([0.08, 0.1, 0]) and right == pytest.approx(
        [0.68, 0.6, 0.6]
    )
    assert all(row.sum().item() == pytest.approx(1) for row in found.values())
