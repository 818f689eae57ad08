"""ch17/drawings_b.py: the walk's numbers, what travels, and what is saved."""

import pytest
import torch

from annotated.chapters.ch17 import drawings_b as ch17b

# ---- the walk ------------------------------------------------------------------


def test_numbers_of_the_walk_are_those_in_sight():
    scores, values = ch17b.walk_numbers()
    assert scores.shape == (8, 8) and values.shape == (8,)
    assert ((10 * scores).round() / 10 == scores).all()
    assert not (scores.signbit() & (scores == 0)).any()
    assert values.min() >= 1 and (values == values.round()).all()
    assert torch.equal(scores, ch17b.walk_numbers()[0])


# ---- work, bytes and time ------------------------------------------------------


def test_work_and_bytes():
    assert ch17b.multiplications(8, 3) == 2 * 8 * 8 * 3
    # queries, keys and values in, output out; scores and weights out and in
    assert ch17b.bytes_moved(8, 3) == 2 * (4 * 24 + 4 * 64)
    assert ch17b.bytes_moved(8, 3, 8) == 2 * 4 * 24
    assert ch17b.bytes_moved(8, 3, 3) == 2 * (2 * 24 + 3 * 2 * 24)


def test_what_a_tile_needs():
    # three times 5 · 3 numbers of two bytes; 5 · 3 and 5 · 5 of four
    assert ch17b.tile_bytes(3, 5) == 3 * 15 * 2 + (15 + 25) * 4


def test_what_takes_longer():
    speed = {"operations per second": 1e3, "bytes per second": 1e2}
    found = ch17b.pace(8, 3, 4, speed)
    moved = [ch17b.bytes_moved(8, 3), ch17b.bytes_moved(8, 3, 4)]
    assert found == pytest.approx([2 * 384, *(10 * count for count in moved)])


def test_what_the_page_says_of_an_a100():
    products, written_out, tiled = ch17b.pace(8192, 64, 128, ch17b.A100)
    assert products < tiled < 2 * products and written_out > 6 * products
    assert ch17b.tile_bytes(64, 128) <= ch17b.A100["bytes"] < ch17b.tile_bytes(64, 256)


# ---- what the time goes to -----------------------------------------------------


def simple_parts():
    """1 product takes 1 s, and so does each other thing; the kernel takes 6.5 s."""
    config = {"heads": 4, "length": 8192, "width": 64}
    both = {"passes": [2.0, 1.0, 2.0], "fresh": [5.0]}
    return {
        "config": config,
        "runs": [
            {"way": "written out", "seconds": [16.0, 99, 16], "products": [6.0]} | both,
            {"way": "tiled", "seconds": [18.0], "products": [7.0]}
            | {"passes": [5.0], "fresh": [1.0]},
            {"way": "fused", "seconds": [6.5, 6.5, 99]},
        ],
    }


def test_parts_add_up():
    found = ch17b.parts_of(simple_parts())
    assert [*found] == [*ch17b.WAYS]
    out, loop, fused = ([*parts.values()] for parts in found.values())
    assert out == [6, 2, 5, 3] and loop == [7, 5, 1, 5] and fused == [6.5]
    record = simple_parts()
    record["runs"][1]["seconds"] = [12.0]
    assert ch17b.parts_of(record)["tiled"]["the rest"] == 0


@pytest.fixture(scope="module")
def saved():
    return ch17b.saved_ways(1024)


def test_what_is_saved(saved, capsys):
    ch17b.check_saved(saved, 1024)
    assert "a matrix is 4.2 MB" in capsys.readouterr().out
    state = 1024 * 256 * 4 / 1e6  # queries of all heads
    rows = 4 * 1024 * 4 / 1e6
    assert saved["our loop"] == pytest.approx(4 * state + rows)
    assert saved["is_causal=True"] == pytest.approx(4 * state + rows)


@pytest.mark.parametrize(
    ("way", "MB"),
    [
        ("our loop", 20.0),
        ("attn_mask, boolean", 20.0),
        ("is_causal=True, dropout_p=0.1", 48.0),
        ("weights written out", 32.0),
        ("nn.MultiheadAttention, need_weights=True", 34.0),
        ("nn.MultiheadAttention, need_weights=False", 19.0),
    ],
)
def test_other_savings_are_refused(saved, way, MB):
    with pytest.raises(AssertionError):
        ch17b.check_saved(saved | {way: MB}, 1024)
