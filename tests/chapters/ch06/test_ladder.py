"""ch06/ladder.py: what was recorded is what the page trains."""

import pytest
import torch

from annotated.batches import Vocabulary, make_batch
from annotated.chapters.ch06.ladder import (
    LADDER,
    LADDER_PARTS,
    Rung,
    ladder_pairs,
    ladder_vocabularies,
    rung_scores,
    train_rung,
    translations,
)
from annotated.transformer import Transformer, TransformerConfig


def test_dates_are_translated_into_american_english():
    pairs = ladder_pairs(200, "train", 0)
    assert ("14 Jun 2013", "June 14, 2013") in pairs
    assert len({text for text, _ in pairs}) > 190
    assert not set(pairs) & set(ladder_pairs(200, "test", 0))


def test_the_vocabularies_hold_every_symbol_and_no_other():
    texts, answers = zip(*ladder_pairs(20_000, "train", 0), strict=True)
    for vocabulary, used in zip(ladder_vocabularies(), (texts, answers), strict=True):
        assert set(vocabulary.symbols[3:]) == set("".join(used))


def untrained() -> Rung:
    source, target = ladder_vocabularies()
    torch.manual_seed(0)
    config = TransformerConfig(len(source), len(target), **LADDER)
    return Rung(Transformer(config), source, target, [])


def test_each_rung_has_one_part_more_and_trains():
    sizes = []
    for count in range(len(LADDER_PARTS) + 1):
        rung = train_rung(LADDER_PARTS[:count], seed=3, steps=2)
        assert len(rung.history) == 2
        sizes.append(sum(p.numel() for p in rung.model.parameters()))
    assert sizes[0] == sizes[1]  # an addition has no parameters
    assert sizes[1:] == sorted(set(sizes))


def test_translations_are_what_greedy_decoding_writes():
    rung = untrained()
    texts = ["14 Jun 2013", "2082. máj. 25."]
    source = make_batch([(t, "") for t in texts], rung.source, rung.target).source
    rung.model.eval()
    tokens = torch.full((2, 1), Vocabulary.start)
    for _ in range(3):
        last = rung.model(source, tokens)[:, -1].argmax(dim=-1)
        tokens = torch.cat([tokens, last[:, None]], dim=1)
    for text, row in zip(translations(rung, texts), tokens, strict=True):
        assert text.startswith("".join(rung.target.decode(row[1:])))


@pytest.mark.parametrize("parts", [("norms",), "residual", ("residual", "heads")])
def test_parts_that_there_are_not_are_refused_before_training(parts, monkeypatch):
    monkeypatch.setattr("annotated.chapters.ch06.ladder.fit", None)
    with pytest.raises(ValueError, match=r"^part.*, got '(norms|residual|heads)'"):
        train_rung(parts, seed=0, steps=2)


def test_one_text_is_not_translated_letter_by_letter():
    with pytest.raises(ValueError, match=r"texts must be a list .* '7 mars 2024'"):
        translations(untrained(), "7 mars 2024")


def test_what_it_writes_is_scored_against_unseen_dates(monkeypatch):
    rung = untrained()
    loss, exact = rung_scores(rung, count=20)
    assert loss == pytest.approx(3.6, abs=1.0) and exact == 0
    right = [answer for _, answer in ladder_pairs(20, "test", 0)]
    right[3] = right[4]
    monkeypatch.setattr("annotated.chapters.ch06.ladder.translations", lambda *_: right)
    assert rung_scores(rung, count=20) == (loss, 19)
