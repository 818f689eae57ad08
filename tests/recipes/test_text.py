"""annotated/recipes/text.py: what the page trains."""

import math

import pytest
import torch
from torch.nn import functional as F

from annotated.attention import record_attention
from annotated.data.text import random_windows, standard_library
from annotated.gpt import GPT, GPTConfig
from annotated.recipes import text as recipe
from annotated.recipes.text import (
    TEXT_MODELS,
    TEXT_RECIPES,
    TEXTS,
    bits_by_position,
    bits_per_character,
    read_text,
    run_text_recipe,
    text_model,
    train_text,
)

V, SHAKESPEARE = 96, "shakespeare, CPU"


def draw_tokens(b: int = 3, t: int = 20, size: int = V) -> torch.Tensor:
    return torch.randint(size, (b, t))


# ---- texts and recipes -------------------------------------------------------------


def test_the_library_is_read_whole_as_characters():
    text = read_text("library")
    assert text.size == len(text.characters) == 96
    for ids, split in zip(text[:2], ("train", "validation"), strict=True):
        assert (
            "".join(text.characters.decode(ids[:500])) == standard_library(split)[:500]
        )
        assert len(ids) == len(standard_library(split))


def test_shakespeare_brings_its_own_characters(monkeypatch):
    parts = {"train": "to be", "validation": "or not?"}
    monkeypatch.setattr(recipe, "tinyshakespeare", parts.get)
    text = read_text("shakespeare")
    assert text.characters.symbols == tuple(sorted(set("to beor not?")))
    assert "".join(text.characters.decode(text.validation)) == "or not?"
    assert text.size == len(text.characters)


def test_enwik8_is_read_as_bytes(monkeypatch):
    parts = {"train": bytes(range(256)), "validation": b"\xff\x00"}
    monkeypatch.setattr(recipe, "enwik8", parts.get)
    text = read_text("enwik8")
    assert text.train.tolist() == list(range(256)) and text.size == 256
    assert text.validation.tolist() == [255, 0] and text.characters is None
    window, target = next(random_windows(text.train, 5, 2, 1, 0))
    assert window.dtype == target.dtype == torch.int64


@pytest.mark.parametrize("name", TEXT_RECIPES)
def test_every_recipe_makes_a_model_and_a_text_that_is_there(name):
    recipe = TEXT_RECIPES[name]
    assert recipe.text in TEXTS
    assert GPTConfig(96, **recipe.model).norm == "pre"
    with torch.device("meta"):
        count = sum(p.numel() for p in GPT(GPTConfig(256, **recipe.model)).parameters())
    most = {"library": 63_000, "enwik8": 44e6}.get(name, 11e6)
    assert 0.8 * most < count < most or name == "shakespeare, CPU"


@pytest.mark.parametrize("way", TEXT_MODELS)
def test_all_models_have_about_as_many_parameters(way):
    wanted = sum(p.numel() for p in text_model("attention", V).parameters())
    count = sum(p.numel() for p in text_model(way, V).parameters())
    assert count == pytest.approx(wanted, rel=0.02)


def test_the_average_weighs_all_of_the_past_alike_and_attention_does_not():
    past = torch.ones(9, 9).tril() / torch.arange(1, 10)[:, None]
    for way in ("average", "attention"):
        model = text_model(way, V)
        with record_attention(model) as maps:
            model(torch.arange(9)[None])
        alike = [torch.allclose(w, past.expand_as(w)) for (w,) in maps.values()]
        assert len(alike) == 2 and all(alike) == (way == "average")


@pytest.mark.parametrize("way", TEXT_MODELS)
def test_every_model_learns_and_the_recipe_may_be_changed(way):
    ids = torch.arange(10).repeat(60) % 7  # what follows is certain in most places
    model = text_model(way, V, recipe=TEXT_RECIPES["library"])
    before = bits_per_character(model, ids, 64)
    history = train_text(model, ids, steps=30, batch=4)
    assert len(history) == 30 and history[0]["loss"] > history[-1]["loss"]
    assert bits_per_character(model, ids, 64) < before / 2
    rates = [record["learning_rate"] for record in history]
    assert max(rates) == pytest.approx(TEXT_RECIPES["library"].rate, rel=0.05)
    assert rates.index(max(rates)) in (1, 2, 3) and rates[-1] < max(rates) / 100


def test_one_call_trains_a_recipe_and_says_how_well(monkeypatch):
    small = TEXT_RECIPES["library"]._replace(text="shakespeare")
    monkeypatch.setitem(recipe.TEXT_RECIPES, "small", small)
    parts = {"train": "abcabc" * 50, "validation": "abcabc" * 25}
    monkeypatch.setattr(recipe, "tinyshakespeare", parts.get)
    model, history, bits = run_text_recipe("small", seed=1, steps=40, batch=4)
    assert len(history) == 40 and model.config.vocab_size == 3
    ids = read_text("shakespeare").validation
    assert bits == bits_per_character(model, ids, 64)
    assert bits < 0.3, "it learned its text; chance is 1.6"
    torch.manual_seed(1)
    same = GPT(GPTConfig(3, **small.model))
    train_text(same, read_text("shakespeare").train, small, 1, steps=40, batch=4)
    assert torch.equal(same.embedding.weight, model.embedding.weight)


def test_weight_decay_and_precision_are_those_of_the_recipe(monkeypatch):
    seen = {}

    def fake(model, loss, batches, optimizer, **extras):
        seen.update(extras, decay=optimizer.param_groups[0]["weight_decay"])
        seen["windows"] = next(iter(batches))[0].shape
        return []

    monkeypatch.setattr(recipe, "fit", fake)
    shakespeare = TEXT_RECIPES["shakespeare"]
    train_text(text_model("average", V), torch.arange(300) % 90, shakespeare)
    assert seen["decay"] == shakespeare.decay > 0 and seen["clip"] == 1.0
    assert seen["precision"] == torch.bfloat16
    assert seen["windows"] == (shakespeare.batch, shakespeare.model["max_len"])
    train_text(text_model("average", V), torch.arange(300) % 90)
    assert seen["decay"] == 0 and seen["precision"] is None


# ---- bits --------------------------------------------------------------------------


class Certain(torch.nn.Module):
    """It gives 7 of 8 to the token after its own; and is surer at later positions."""

    def __init__(self, later: bool = False):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.later = later

    def forward(self, tokens):
        assert not self.training and not torch.is_grad_enabled()
        sure = torch.full((tokens.shape[1],), 7.0)
        if self.later:
            sure = 7.0 * 2.0 ** torch.arange(tokens.shape[1])
        right = F.one_hot((tokens + 1) % 8, 8).float()
        return (right * sure[:, None] + (1 - right) * sure.new_tensor(1 / 7)).log()


@pytest.mark.parametrize("length", [5, 16, 99, 150])
def test_bits_are_minus_log2_in_the_mean_of_all_characters(length):
    model, ids = Certain().train(), torch.arange(100) % 8
    ids[50:] = 3  # from here on always wrong, but for one step
    wrong = sum((ids[:-1] + 1) % 8 != ids[1:]).item()
    chance = 7 / (7 + 7 / 7)
    wanted = -(99 - wrong) * math.log2(chance) - wrong * math.log2((1 - chance) / 7)
    assert bits_per_character(model, ids, length) == pytest.approx(
        wanted / 99, rel=1e-5
    )


def test_bits_by_position_are_means_over_whole_windows():
    model, ids = Certain(later=True), torch.arange(100) % 8
    by_position = bits_by_position(model, ids, 6, size=4)
    chances = [7 * 2**i / (7 * 2**i + 1) for i in range(6)]
    assert by_position.tolist() == pytest.approx(
        [-math.log2(c) for c in chances], rel=1e-4
    )
    model = text_model("attention", V)
    ids = draw_tokens(1, 641)[0]
    mean = bits_by_position(model, ids, 64).mean().item()
    assert mean == pytest.approx(bits_per_character(model, ids, 64), rel=1e-5)
    with pytest.raises(ValueError, match="got length=64 and targets=63"):
        bits_by_position(model, ids[:64], 64)


# ---- what depends on length ---------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: read_text("wiki"), "name must be one of 'library', .* got 'wiki'"),
        (lambda: run_text_recipe("GPU"), "name must be one of 'library', .* got 'GPU'"),
        (lambda: text_model("lstm", V), "way must be one of 'attention', .* 'lstm'"),
    ],
)
def test_an_honest_mistake_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
