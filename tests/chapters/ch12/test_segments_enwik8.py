"""ch12/segments_enwik8.py, on a stand-in for the download."""

from math import log

import pytest
import torch

from annotated.chapters.ch12 import segments_enwik8 as recipe
from annotated.chapters.ch12.segments_enwik8 import (
    ENWIK8_MODELS,
    enwik8_model,
    train_on_enwik8,
)
from annotated.gpt import next_token_loss
from annotated.recipes.text import TEXT_RECIPES, Corpus
from annotated.segments import SegmentLoss, segments
from annotated.training import evaluate

SMALL = {"d_model": 16, "heads": 2, "layers": 1, "d_ff": 32, "max_len": 8}


@pytest.fixture
def stand_in(monkeypatch):
    train = torch.arange(200, dtype=torch.int16) % 7
    text = Corpus(train, train[:60], None, 256)
    monkeypatch.setattr(recipe, "read_text", {"enwik8": text}.get)
    return text


def test_both_models_have_about_as_many_parameters_and_the_recipes_length():
    with torch.device("meta"):
        plain, remembering = map(enwik8_model, ENWIK8_MODELS)
    counts = [sum(p.numel() for p in m.parameters()) for m in (plain, remembering)]
    assert 40e6 < counts[1] < 43e6
    assert counts[0] == pytest.approx(counts[1], rel=0.01)
    length = TEXT_RECIPES["enwik8"].model["max_len"]
    assert plain.config.max_len == remembering.config.mem_len == length


@pytest.mark.parametrize("kind", ENWIK8_MODELS)
def test_it_reads_round_after_round_and_is_tested_on_the_validation_text(
    kind, stand_in
):
    changes = {"model": SMALL, "batch": 2, "rate": 1e-2, "precision": None}
    model, history, bits = train_on_enwik8(kind, "cpu", steps=40, **changes)
    assert len(history) == 40  # a round is 13 segments
    assert history[-1]["loss"] < history[0]["loss"] / 2
    loss = next_token_loss if kind == "vanilla" else SegmentLoss()
    held_out = segments(stand_in.validation.long(), 2, 8)
    nats = evaluate(model, loss, held_out, weight=lambda b: b[1].numel())
    assert bits == pytest.approx(nats / log(2), abs=1e-9)


def test_a_seed_gives_the_same_model_and_mixed_precision_runs(stand_in):
    changes = {"model": SMALL, "batch": 2, "rate": 1e-2, "steps": 3}
    runs = [train_on_enwik8("Transformer-XL", "cpu", s, **changes) for s in (0, 0, 1)]
    losses = [[record["loss"] for record in history] for _, history, _ in runs]
    assert losses[0] == losses[1] != losses[2]
    assert recipe.TEXT_RECIPES["enwik8"].precision is torch.bfloat16


def test_another_kind_is_refused():
    with pytest.raises(ValueError, match="kind must be one of 'vanilla'"):
        enwik8_model("LSTM")
