"""recipes/date_transformer.py: the runs of chapter 07, and what is measured."""

import pytest
import torch
from torch import nn

from annotated.batches import Vocabulary
from annotated.recipes.date_transformer import (
    FEW,
    FIRST_STEPS,
    begin,
    date_batches,
    date_model,
    dates,
    differences,
    how_well,
    label_loss,
    train_date_transformer,
    train_on_few,
)


def test_a_beginning_is_followed_by_the_high_rate():
    rate = begin(1e-3, 40)
    assert rate(40) == 1e-3 and rate(41) == pytest.approx(1e-2 * (40 / 41) ** 0.5)
    assert rate(160) == pytest.approx(0.5e-2)


def test_unseen_dates_are_none_of_those_for_training():
    train, test = dates(), dates("test", 50)
    assert test.source.symbols == train.source.symbols
    assert not {day for _, day in train.pairs} & {day for _, day in test.pairs}
    assert dates("train", 7).pairs == train.pairs[:7]


def test_batches_hold_every_pair_once_in_each_pass_and_follow_their_seed():
    data = dates("train", 128)

    def days(seed):
        labels = [b.labels for b in date_batches(seed, 4, data)]
        return ["".join(data.target.decode(row)) for row in torch.cat(labels)]

    wanted = sorted(day for _, day in data.pairs)
    first, second = days(0)[:128], days(0)[128:]
    assert sorted(first) == sorted(second) == wanted
    assert first != second and days(0) == days(0) != days(1)


def test_models_and_runs_follow_their_seed():
    weights = [date_model(s).source_embedding.weight for s in (1, 1, 2)]
    assert weights[0].equal(weights[1]) and not weights[1].equal(weights[2])
    assert all(date_model(0, norm).config.norm == norm for norm in ("pre", "post"))


def test_the_loss_is_the_mean_over_real_labels():
    batch, model = next(date_batches(0, 1, dates("train", 9))), date_model(0)
    batch = batch._replace(
        target=nn.functional.pad(batch.target, (0, 3)),
        labels=nn.functional.pad(batch.labels, (0, 3)),
    )
    logits = model(batch.source, batch.target).log_softmax(dim=-1)
    wanted = [
        -logits[i, j, symbol].item()
        for i, row in enumerate(batch.labels.tolist())
        for j, symbol in enumerate(row)
        if symbol
    ]
    mean = sum(wanted) / len(wanted)
    assert label_loss(model, batch).item() == pytest.approx(mean, abs=1e-5)


def test_step_n_has_the_rate_of_step_n():
    history = train_date_transformer(lambda n: 1e-4 * n, 0, 3)
    assert [r["learning_rate"] for r in history] == pytest.approx([1e-4, 2e-4, 3e-4])


class Sure(nn.Module):
    """Says the same symbol everywhere, with a certain confidence."""

    def __init__(self, symbol: int, confidence: float, size: int):
        super().__init__()
        chances = torch.full((size,), (1 - confidence) / (size - 1))
        chances[symbol] = confidence
        self.logs = nn.Parameter(chances.log())

    def forward(self, source, target):
        return self.logs.expand(*target.shape, -1)


def test_what_a_model_makes_of_dates_is_counted_by_real_symbols():
    data = dates("test", 40)
    end, size = Vocabulary.end, len(data.target)
    found = how_well(Sure(end, 0.6, size), data)
    assert found["right"] == pytest.approx(1 / 11)  # the end, once in a date
    assert found["exact"] == 0 and found["confidence"] == pytest.approx(0.6)
    wrong = torch.tensor(0.4 / (size - 1)).log().item()
    right = torch.tensor(0.6).log().item()
    assert found["loss"] == pytest.approx(-(10 * wrong + right) / 11, rel=1e-5)


def test_padding_counts_for_nothing_in_what_is_measured():
    data = dates("test", 1)._replace(pairs=[("1 2", "1"), ("2 1", "2024")])
    found = how_well(Sure(Vocabulary.end, 0.6, len(data.target)), data)
    assert found["confidence"] == pytest.approx(0.6)
    assert found["right"] == pytest.approx(2 / 7)


@pytest.mark.slow
def test_the_few_pairs_are_learned_with_dropout_and_smoothing(monkeypatch):
    monkeypatch.setitem(FEW, "pairs", 64)
    monkeypatch.setitem(FEW, "steps", 25)
    data = dates("train", 64)
    model = train_on_few(0.0, 0.0, 0)
    assert how_well(model, data)["loss"] < 1.9 and model.config.norm == "pre"
    dropped = train_on_few(0.2, 0.1, 0)
    assert dropped.config.dropout == 0.2
    pairs = zip(model.parameters(), dropped.parameters(), strict=True)
    assert all(one.shape == other.shape for one, other in pairs)


def test_outputs_that_are_all_one_vector_do_not_differ():
    model = date_model(0)
    (batch,) = date_batches(0, 1)
    untrained = differences(model, batch)
    assert 0.3 < untrained < 1
    norm = model.decoder.layers[-1].residuals[-1].norm
    nn.init.zeros_(norm.weight)
    nn.init.ones_(norm.bias)
    assert differences(model, batch) == 0.0
    assert not model.decoder._forward_hooks


def test_each_beginning_reaches_or_leaves_the_high_rate():
    ends = {name: rate(160) for name, rate in FIRST_STEPS.items()}
    assert set(ends.values()) == {1e-2, 1e-3}
    small = FIRST_STEPS["five small steps"]
    assert small(5) == FIRST_STEPS["five high steps"](6)
    assert FIRST_STEPS["sixty high steps"](60) == 1e-2 == 10 * small(1)
    assert FIRST_STEPS["one small step"](1) == small(1)
    assert FIRST_STEPS["five tiny steps"](5) == small(5) / 4
    assert FIRST_STEPS["five tiny steps"](6) == small(6) == 1e-2
