"""ch01/dates.py: the models of chapter 01 that read dates."""

import pytest
import torch

from annotated.batches import date_pairs
from annotated.chapters.ch01.dates import (
    DATE_READERS,
    DATES,
    date_reader,
    date_symbols,
    read_dates,
    train_date_reader,
)
from annotated.recurrent_attention import AdditiveAttention
from benchmarks.record import read as recorded


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


@pytest.mark.parametrize("way", DATE_READERS)
def test_a_reader_is_as_large_as_the_recorded_one(way, symbols):
    model = date_reader(way, *symbols)
    sizes = {r["parameters"] for r in recorded("dates")["single"] if r["way"] == way}
    assert {sum(p.numel() for p in model.parameters())} == sizes
    assert model.decoder.query == DATE_READERS[way][1]


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
    history = train_date_reader(
        model, pairs[:130], symbols, epochs=2, on_step=seen.append
    )
    assert seen == [1, 2, 3, 4, 5, 6]
    rates = [record["learning_rate"] for record in history]
    assert max(rates) <= DATES["rate"] and rates[-1] < 0.01 * max(rates)
    assert history[-1]["loss"] < history[0]["loss"]
    again = train_date_reader(
        date_reader("none", *symbols), pairs[:130], symbols, epochs=2
    )
    assert [r["loss"] for r in again] == [r["loss"] for r in history]
    other = train_date_reader(
        date_reader("none", *symbols), pairs[:130], symbols, seed=1
    )
    assert other[0]["loss"] != history[0]["loss"]


def test_reading_gives_a_text_and_its_weights(symbols):
    model = date_reader("additive", *symbols).train()
    texts, weights = read_dates(model, ["7. 3. 2024", "9. 11. 1999"], symbols, 5)
    assert model.training and len(texts) == 2
    assert all(set(text) <= set("0123456789- ") for text in texts)
    assert weights.shape[::2] == (2, 11) and weights.shape[1] <= 5
    assert torch.allclose(weights.sum(-1), torch.ones(2, weights.shape[1]))
    assert (weights[0, :, 10] == 0).all()  # the first text is shorter
