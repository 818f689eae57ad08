"""ch01/drawings.py: what its proofs refuse, and what its figures compute."""

import pytest
import torch

from annotated.batches import date_pairs
from annotated.chapters.ch01 import drawings as ch01
from annotated.chapters.ch01.dates import date_reader, date_symbols
from tests.defined import defined

PAIRS = [("7 Mar 2024", "2024-03-07"), ("on May 8, 1950", "1950-05-08")]
SYMBOLS = date_symbols(PAIRS)
PAGE = "01_seq2seq_attention"


def test_a_step_that_asks_with_its_new_state_is_refused(capsys):
    decoder_step, attend = defined(PAGE, "decoder_step", "attend")
    ch01.check_decoder(decoder_step, PAIRS, SYMBOLS)
    assert capsys.readouterr().out.count("✓") == 1

    def asks_late(state, last, states, scorer, gru, head):
        state = gru(torch.cat([last, states[0]]), state)
        context, weights = attend(state, states, states, *scorer)
        return head(torch.cat([state, context])), state, weights

    with pytest.raises(AssertionError, match="decoder_step, date by date"):
        ch01.check_decoder(asks_late, PAIRS, SYMBOLS)


def test_the_check_of_location_sensitive_attention_changes_no_later_draw(
    capsys, monkeypatch
):
    def next_number():
        torch.manual_seed(1)
        ch01.check_located(torch.randn(2, 3, 5), torch.randn(2, 4, 7), [4, 2])
        return torch.rand(())

    number = next_number()
    assert capsys.readouterr().out.count("✓") == 3
    monkeypatch.setattr(ch01, "check_same", lambda *args: None)
    assert next_number() == number


def test_days_of_the_test_must_not_be_trained_on(capsys):
    train, test = (date_pairs(20, part, seed=0) for part in ("train", "test"))
    ch01.check_days(train, test)
    assert "3/7/24" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="belongs to train"):
        ch01.check_days(test, train)
    with pytest.raises(AssertionError, match="is in training"):
        ch01.check_days(train + test[:1], test)


def test_equal_rows_are_told_from_others(capsys):
    ch01.check_rows(
        date_reader(defined(PAGE, "NoTanh"), *SYMBOLS), "7 May 1950", SYMBOLS
    )
    assert capsys.readouterr().out.count("✓") == 2
    reader = date_reader("additive", *SYMBOLS)
    reader.decoder.attention.direction.weight.data *= 100
    with pytest.raises(AssertionError, match="all rows are equal"):
        ch01.check_rows(reader, "7 May 1950", SYMBOLS)


def test_a_loss_that_counts_padding_is_refused(capsys, monkeypatch):
    ch01.check_loss()
    assert capsys.readouterr().out.count("✓") == 1

    def over_all(model, batch):
        logits = model(batch.source, batch.lengths, batch.target)
        return torch.nn.functional.cross_entropy(logits.mT, batch.labels)

    monkeypatch.setattr(ch01, "teacher_forcing_loss", over_all)
    with pytest.raises(AssertionError, match="teacher_forcing_loss"):
        ch01.check_loss()
