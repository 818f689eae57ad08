"""ch12/drawings_c.py, ch12b.py: runs are found, positions drawn, proofs hold."""

import pytest
import torch
from bs4 import BeautifulSoup

from annotated.adaptive import AdaptiveEmbedding
from annotated.chapters.ch12 import drawings_b as ch12b
from annotated.chapters.ch12 import drawings_c as ch12c
from annotated.page.notebook import recorded


def cells(html):
    rows = BeautifulSoup(html.text, "html.parser").select("tbody tr")
    return [[cell.text for cell in row.select("td")] for row in rows]


@pytest.fixture(scope="module")
def runs():
    return recorded("lengths")["runs"]


def test_runs_are_found_by_their_lengths_and_options(runs):
    assert len(ch12c.bits(runs, 32, 64)) == 3
    assert len(ch12c.bits(runs, 32, 64, clamp_len=63)) == 3
    assert len(ch12c.bits(runs, 32, 32, clamp_len=63)) == 0
    plain, same = (
        ch12c.bits(runs, 32, 256, **option) for option in ({}, {"same_length": True})
    )
    assert (plain != same).all()


def test_the_proofs_of_the_pages_hold(capsys):
    for proof in (
        *(ch12c.check_options, ch12c.check_swapped, ch12c.check_distances),
        ch12b.check_softmax,
    ):
        proof()
        assert "✓" in capsys.readouterr().out, proof.__name__
    assert "0 of 15" in str(cells(ch12c.shifts_table()))
    assert [row[0] for row in cells(ch12c.entropy_table())] == ["1.74", "1.75"]


def test_the_weight_of_each_table_is_shown():
    with torch.device("meta"):
        plain = AdaptiveEmbedding(267_735, 1024)
        adaptive = AdaptiveEmbedding(267_735, 1024, cutoffs=[20_000, 40_000, 200_000])
    rows = cells(ch12b.sizes_table(plain, adaptive))
    assert rows[0] == ["1024", "20.5"] and rows[-1] == ["16", "1.1"] and len(rows) == 4


def test_positions_seen_twice_are_shaded():
    drawn = BeautifulSoup(ch12c.seen([0, 1, 2, 3], range(2, 6)).text, "html.parser")
    shaded = [r for r in drawn.select("rect") if r.get("fill-opacity")]
    assert len(drawn.select("rect")) == 8 and len(shaded) == 4
    assert "2 positions are seen twice" in drawn.svg["aria-label"]
    none = BeautifulSoup(ch12c.seen([0, 1], range(2, 6)).text, "html.parser")
    assert not [r for r in none.select("rect") if r.get("fill-opacity")]
