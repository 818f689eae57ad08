"""annotated/recipes.py: what was recorded is what the pages and benchmarks train."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from annotated.data import date_pairs
from annotated.recipes import (
    DATES,
    POSITIONS,
    WAYS,
    Reader,
    date_reader,
    date_symbols,
    one_cycle,
    previous_symbol_loss,
    read_dates,
    reading_task,
    skewed_lengths,
    train_dates,
    uniform_lengths,
)
from annotated.recurrent_attention import AdditiveAttention

RESULTS = Path(__file__).parents[1] / "book" / "results"


def recorded(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def test_every_record_is_of_its_recipe():
    assert recorded("dates")["config"] == DATES
    assert recorded("positions")["config"] == POSITIONS


def test_one_cycle_rises_for_a_tenth_of_the_steps():
    optimizer, schedule = one_cycle(nn.Linear(1, 1), 0.5, 100)
    rates = []
    for _ in range(100):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert max(rates) == pytest.approx(0.5) and rates.index(max(rates)) == 9
    assert rates[0] < 0.1 and rates[-1] < 1e-3


# ---- dates -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def pairs():
    return date_pairs(DATES["pairs"], "train", seed=0)


@pytest.fixture(scope="module")
def symbols(pairs):
    return date_symbols(pairs)


def test_symbols_are_those_of_the_texts_and_of_iso_dates(pairs, symbols):
    source, target = symbols
    assert set("".join(text for text, _ in pairs)) == set(source.symbols[3:])
    assert "".join(target.symbols[3:]) == " -0123456789"


@pytest.mark.parametrize("way", WAYS)
def test_a_reader_is_as_large_as_the_recorded_one(way, symbols):
    model = date_reader(way, *symbols)
    sizes = {r["parameters"] for r in recorded("dates")["single"] if r["way"] == way}
    assert {sum(p.numel() for p in model.parameters())} == sizes
    assert model.decoder.query == WAYS[way][1]


def test_a_reader_follows_from_its_seed_and_takes_a_class(symbols):
    class Mine(AdditiveAttention):
        pass

    def weights(*arguments):
        return torch.cat([p.flatten() for p in date_reader(*arguments).parameters()])

    first = weights("additive", *symbols, 0)
    assert torch.equal(first, weights(Mine, *symbols, 0))
    assert not torch.equal(first, weights("additive", *symbols, 1))
    assert isinstance(date_reader(Mine, *symbols).decoder.attention, Mine)


def test_training_reads_every_pair_once_an_epoch(pairs, symbols):
    model, seen = date_reader("none", *symbols), []
    history = train_dates(model, pairs[:130], symbols, epochs=2, on_step=seen.append)
    assert seen == [1, 2, 3, 4, 5, 6]
    rates = [record["learning_rate"] for record in history]
    assert max(rates) <= DATES["rate"] and rates[-1] < 0.01 * max(rates)
    assert history[-1]["loss"] < history[0]["loss"]
    again = train_dates(date_reader("none", *symbols), pairs[:130], symbols, epochs=2)
    assert [r["loss"] for r in again] == [r["loss"] for r in history]
    other = train_dates(date_reader("none", *symbols), pairs[:130], symbols, seed=1)
    assert other[0]["loss"] != history[0]["loss"]


def test_reading_gives_a_text_and_its_weights(symbols):
    model = date_reader("additive", *symbols).train()
    texts, weights = read_dates(model, ["7. 3. 2024", "9. 11. 1999"], symbols, 5)
    assert model.training and len(texts) == 2
    assert all(set(text) <= set("0123456789- ") for text in texts)
    assert weights.shape[::2] == (2, 11) and weights.shape[1] <= 5
    assert torch.allclose(weights.sum(-1), torch.ones(2, weights.shape[1]))
    assert (weights[0, :, 10] == 0).all()  # the first text is shorter


# ---- the symbol one position before ----------------------------------------------


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
    torch.manual_seed(0)
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
