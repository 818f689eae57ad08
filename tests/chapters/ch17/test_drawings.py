"""ch17/drawings.py: pairs by formula, and its proofs."""

import pytest
import torch

from annotated.attention import MultiHeadAttention
from annotated.chapters.ch17 import drawings as ch17

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
    layer = MultiHeadAttention(8, 2, causal=True).double()
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    past = torch.ones(5, 5).tril().bool()
    torch.testing.assert_close(ch17.dense(layer, x, past), layer(x))
