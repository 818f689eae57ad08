"""ch05/reading.py: who names the symbol one position before."""

import pytest
import torch

from annotated.chapters.ch05.reading import (
    POSITIONS,
    Reader,
    by_zone,
    guessing,
    previous_symbol_loss,
    reading_task,
    skewed_lengths,
    uniform_lengths,
    zone,
)


def test_lengths_are_uniform_or_skewed():
    generator = torch.Generator().manual_seed(0)
    even = torch.cat([uniform_lengths(generator) for _ in range(100)])
    assert (even.min(), even.max()) == (8, 32) and abs(even.float().mean() - 20) < 1
    skewed = torch.cat([skewed_lengths(generator) for _ in range(100)])
    assert skewed.min() == 4 and skewed.max() <= 80
    assert abs(skewed.float().mean() - 15.5) < 1 and skewed.median() < 14


def test_the_loss_asks_for_the_symbol_before_at_real_positions():
    tokens, mask = reading_task(torch.tensor([3, 6]), torch.Generator().manual_seed(1))
    assert tokens.shape == (2, 6) and mask.shape == (2, 1, 1, 6)
    logits = torch.randn(2, 6, POSITIONS["symbols"])
    wanted = [
        -logits[i, j].log_softmax(dim=-1)[tokens[i, j - 1]]
        for i, length in enumerate((3, 6))
        for j in range(1, length)
    ]
    loss = previous_symbol_loss(lambda *_: logits, (tokens, mask))
    torch.testing.assert_close(loss, torch.stack(wanted).mean())


@pytest.mark.parametrize(
    ("way", "knows"),
    [
        ("sinusoidal", True),
        ("learned", True),
        ("learned, large", True),
        ("rotary", True),
        ("none", False),
    ],
)
def test_a_reader_knows_the_order_by_its_positions_alone(way, knows):
    model = Reader(way).double()
    tokens, mask = reading_task(torch.tensor([7]), torch.Generator().manual_seed(1))
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    moved = model(tokens, mask)[:, order]
    equal = torch.allclose(model(tokens[:, order], mask), moved, atol=1e-9)
    assert equal == (not knows)


def test_a_reader_does_not_see_padding():
    model = Reader("sinusoidal")
    tokens, mask = reading_task(torch.tensor([3, 6]), torch.Generator().manual_seed(1))
    other = torch.where(mask[:, 0, 0], tokens, (tokens + 1) % POSITIONS["symbols"])
    assert torch.equal(model(other, mask)[0, :3], model(tokens, mask)[0, :3])


def test_guessing_names_the_commonest_of_the_others():
    assert guessing(2) == 1  # the only other one
    assert 1 / 16 < guessing(1000, count=20) < 0.1


def test_zones_are_told_by_how_many_sequences_came_so_far():
    names = [zone(seen) for seen in (0, 1, 100, 101, 999, 1000)]
    assert names == ["never", "rarely", "rarely", "between", "between", "often"]
    run = {"seen": [1000, 50, 50, 0], "ends": {"1": 1.0, "2": 0.5, "3": 0.0}}
    assert by_zone([run]) == {"often": [1.0], "rarely": [0.25]}
