"""ch04/drawings.py: what its pictures compute, and what its checks refuse."""

import pytest
import torch

from annotated.chapters.ch04 import drawings as ch04
from tests.defined import defined
from tests.shown import cells


def named(name, masking):
    def slip(scores, mask):
        return masking(scores, mask)

    slip.__name__ = name
    return slip


def test_slips_that_look_alike_are_named():
    scores, mask = torch.randn(1, 3, 3), torch.tensor([[[True, True, False]]])
    slips = [
        named(name, lambda scores, mask, i=i: scores + i)
        for i, name in enumerate(ch04.SYMPTOMS)
    ]
    ch04.check_slips(slips, scores, mask)
    alike = named("inverted", lambda scores, mask: scores)
    with pytest.raises(AssertionError, match="thrown_away and inverted give the same"):
        ch04.check_slips([*slips[:2], alike, *slips[3:]], scores, mask)


def test_a_number_that_does_not_hide_is_refused():
    hide, _ = defined("04b_hidden_places", "weights_with", "hidden")
    ch04.check_fills(hide)
    for wrong in (
        lambda fill, *rest: hide(max(fill, -1e4), *rest),
        lambda fill, *rest: hide(min(fill, -6e4), *rest),
    ):
        with pytest.raises(AssertionError):
            ch04.check_fills(wrong)


def test_what_is_left_is_said_of_each_call():
    _, *rows = cells(ch04.nothing_left())
    kinds = {name: said for name, *said in rows}
    assert len(kinds) == 4
    assert {"NaN", "zeros", "numbers"} >= set().union(*kinds.values())
    # what a residual brings isn't zero
    assert "zeros" not in kinds["nn.Transformer\u200bEncoderLayer"]
