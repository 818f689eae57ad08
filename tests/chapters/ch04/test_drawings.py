"""ch04/drawings.py: what its pictures compute, and what its checks refuse."""

import pytest
import torch

from annotated.chapters.ch04 import drawings as ch04
from tests.shown import cells

VECTORS = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(1))
PAST, ALL = ch04.CAUSALITY
ZERO, PLAIN, FINITE = ch04.HIDING


def test_a_mask_is_built_from_words_order_and_clicks():
    mask, _ = ch04.build(VECTORS, 4, PAST, ZERO, [[0, 5], [3, 1]])
    for i in range(6):
        for j in range(6):
            visible = j <= i and j < 4 and i < 5  # the last begins with none
            assert mask[i, j] == visible ^ ((i, j) in ((0, 5), (3, 1)))
    assert ch04.build(VECTORS, 4, ALL, ZERO, [])[0].sum() == 20


def test_scores_are_those_of_words_and_of_one_pad():
    queries, keys = VECTORS
    shown = [[5, j] for j in range(5)]
    _, weights = ch04.build(VECTORS, 5, ALL, ZERO, [[0, 5], *shown])
    vectors = torch.cat([keys[:5], keys[6:]])
    by_hand = (queries[0] @ vectors.T / 2).softmax(dim=0)
    assert weights[0].allclose(by_hand, atol=1e-6)
    by_hand = (queries[6] @ keys[:5].T / 2).softmax(dim=0)
    assert weights[5, :5].allclose(by_hand, atol=1e-6)


@pytest.mark.parametrize(
    ("hiding", "left"), [(ZERO, 0.0), (PLAIN, torch.nan), (FINITE, 1 / 6)]
)
def test_hidden_keys_get_weight_only_where_none_is_visible(hiding, left):
    one = ch04.build(VECTORS, 6, PAST, hiding, [[5, 5]])[1][5]
    assert one.tolist() == [0, 0, 0, 0, 0, 1]
    none = ch04.build(VECTORS, 6, PAST, hiding, [])[1][5]
    assert none.allclose(torch.full((6,), left), equal_nan=True)


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


def hide(fill, scores, precision, strength=1.0):
    scores = torch.tensor(scores).to(precision) * strength
    return scores.masked_fill(torch.tensor([False, False, True]), fill).softmax(dim=0)


def test_a_number_that_does_not_hide_is_refused():
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
