"""ch20/leaks.py: who sees whom, and what two ways of asking say."""

import operator

import pytest
import torch

from annotated.chapters.ch20 import leaks

TOKENS = leaks.digits(2, seed=1)[:, :16]


def made(make):
    torch.manual_seed(0)
    return make().eval()


@pytest.mark.parametrize(
    ("make", "later"),
    [
        (leaks.reader, 0),
        (lambda: leaks.with_summaries(operator.lt), 0),
        (lambda: leaks.with_summaries(operator.le), 4 * 6),  # 3 + 2 + 1 in each chunk
        (leaks.normed_over_time, 16 * 15 // 2),
    ],
)
def test_reach_is_what_moves(make, later):
    seen = leaks.reach(made(make), TOKENS, 10)
    assert seen.triu(1).sum() == later
    assert seen.tril().sum() == 16 * 17 // 2


@pytest.mark.parametrize(
    ("x", "text"),
    [(0.0, "0.0"), (2.134, "2.13"), (4.8e-7, "5 · 10⁻⁷"), (9.99e-12, "1 · 10⁻¹¹")],
)
def test_differences_are_readable(x, text):
    assert leaks.readable(x) == text


def test_the_lines_of_a_cut_stand_below_each_other():
    change = torch.tensor([0.0, 0.5, 0.0, 1.0])
    ids = torch.tensor([1, 2, 3, 4])
    lines = leaks.cut_lines(ids, ids, change, 1).splitlines()
    assert lines[0] == "text    1 2 | 3 4" and lines[2].startswith("logits  . x |")
    assert lines[3] == "1 of 2 logits before the cut move, by 0.50 at most"
