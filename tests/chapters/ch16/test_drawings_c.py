"""ch16/drawings_c.py: drafts, readings step by step, and what is said of them."""

import pytest
import torch

from annotated.chapters.ch16 import drawings_c as ch16c
from annotated.speculative import expected_speedup


def test_without_the_file_the_page_says_so():
    for html in (ch16c.missing(), ch16c.steps_explorer(None, {}, {})):
        assert "was recorded, in book/results/drafts.json" in html.text


def test_chi2_of_counts():
    counts, p = torch.tensor([10.0, 20, 30, 40]), torch.tensor([0.1, 0.2, 0.3, 0.4])
    assert ch16c.chi2(counts, p) == pytest.approx(0, abs=1e-5)
    assert ch16c.chi2(counts.flip(0), p) == pytest.approx(90 + 5 + 100 / 30 + 22.5)


def test_the_best_number_of_guesses_is_found():
    one = {"acceptance": 0.6, "cost": 0.2, "written": []}
    assert ch16c.best_theory(one) == (expected_speedup(0.6, 2, 0.2), 2)
    assert ch16c.best_theory(one | {"cost": 0.0})[1] == 8
    rows = [{"guesses": t, "seconds": s} for t, s in ((1, 4.0), (2, 2.0), (3, 8.0))]
    assert ch16c.measured({"written": rows}, 3.0) == (0.375, 1.5)
