"""ch17/drawings.py: pairs by formula, blocks that are computed, graphs."""

import pytest
import torch
from bs4 import BeautifulSoup

from annotated.attention import MultiHeadAttention
from annotated.chapters.ch17 import drawings as ch17
from annotated.sparse import block_layout, strided_patterns


def soup(html):
    return BeautifulSoup(html.text, "html.parser")


def cells(html):
    return [
        [cell.text for cell in row.select("th, td")] for row in soup(html).select("tr")
    ]


# by hand, 6 positions and l = 2: rows see 1 2 2 2 2 2, 1 1 2 2 3 3 and 1 2 1 2 1 2,
# and the ends at 1, 3 and 5 are seen by 5, 3 and 1
SIX = {
    "full": 21,
    "window": 11,
    "every l-th": 12,
    "strided, both": 17,
    "a stretch": 9,
    "ends of stretches": 9,
    "fixed, both": 15,
}


def test_pairs_are_those_that_one_counts_by_hand(capsys):
    assert {name: pairs for name, _, pairs in ch17.formulas(6, 2)} == SIX
    assert ch17.counted(6, 2) == SIX
    ch17.check_counts((6, 2), (12, 3))
    assert "for 2 sizes" in capsys.readouterr().out


def test_formulas_that_differ_from_the_masks_are_found(monkeypatch):
    monkeypatch.setattr(ch17, "counted", lambda *size: SIX)
    with pytest.raises(AssertionError):
        ch17.check_counts((12, 3))


def test_the_table_has_each_pattern_and_its_share():
    _, *rows = cells(ch17.pairs_table(6, 2))
    assert [row[0] for row in rows] == list(SIX)
    assert [row[2] for row in rows] == [str(pairs) for pairs in SIX.values()]
    assert rows[0][3] == "100.0%" and rows[1][3] == f"{11 / 21:.1%}"


def test_the_blocks_drawn_are_those_that_are_computed():
    near, _ = strided_patterns(4)
    layout = block_layout(near, 4, 16)
    drawn = soup(ch17.blocks_picture({"one": layout, "other": layout}))
    frames = drawn.select("rect")
    pairs = [one for one in frames if one["stroke"] == "none"]
    kept = int(layout.allowed.sum())
    assert len(pairs) == 2 * kept
    assert len(frames) - len(pairs) == 2 * (1 + len(layout.rows))
    assert f"{kept} of {layout.computed} computed" in drawn.text
    # the first position sees itself alone: the corner of the first block
    corner, second = pairs[0], pairs[kept]
    assert float(corner["y"]) == 24 and float(corner["x"]) == 1
    assert float(second["x"]) > 160
    below = {float(one["y"]) for one in pairs[:kept]}
    assert sum(float(one["x"]) < 2 for one in pairs[:kept]) == 4  # see the first
    assert all(float(one["y"]) >= float(one["x"]) + 22.9 for one in pairs[:kept])
    assert len(below) == 16


def test_two_layers_are_drawn_beside_what_is_heard():
    near, every = (p.mask(8)[0, 0] for p in strided_patterns(2))
    html = ch17.heard_picture(near, [every, near])
    _, second, last = soup(html).select("svg")
    assert str(last) == str(second)
    assert "15 of 36 pairs" in html.text and "layer 2" in html.text


def test_a_graph_says_who_has_heard_from_whom():
    chain = torch.eye(4).bool()
    for one in range(3):
        chain[one, one + 1] = chain[one + 1, one] = True
    drawn = soup(ch17.graph_picture("abcd", chain, layers=2))
    alt = drawn.select("[aria-label]")
    said = " ".join(one["aria-label"] for one in alt)
    assert "a 0 1 2 hidden" in said and "d hidden 2 1 0" in said
    assert "not within 2 layers" in drawn.text


def test_masks_by_hand_are_held_against_the_module(capsys):
    i, j = torch.arange(12)[:, None], torch.arange(12)
    masks = {
        "window": (j <= i) & (i - j < 3),
        "every l-th": (j <= i) & ((i - j) % 3 == 0),
        "a stretch": (j <= i) & (i // 3 == j // 3),
        "ends of stretches": (j <= i) & (j % 3 == 2),
    }
    ch17.check_masks(masks, 3)
    assert "exactly" in capsys.readouterr().out
    for name in masks:
        with pytest.raises(AssertionError):
            ch17.check_masks(masks | {name: ~masks[name]}, 3)


def test_block_attention_is_held_against_dense(monkeypatch, capsys):
    ch17.check_attention(length=19, block=4)
    assert "✓ 6 patterns" in capsys.readouterr().out
    dense, seen = ch17.dense, torch.ones(19, 19).tril().bool()
    monkeypatch.setattr(ch17, "dense", lambda layer, x, mask: dense(layer, x, seen))
    with pytest.raises(AssertionError):
        ch17.check_attention(length=19, block=4)


def test_dense_writes_out_the_layer():
    torch.manual_seed(0)
    layer = MultiHeadAttention(8, 2, causal=True).double()
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    past = torch.ones(5, 5).tril().bool()
    torch.testing.assert_close(ch17.dense(layer, x, past), layer(x))
