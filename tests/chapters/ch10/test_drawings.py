"""ch10/drawings.py: what it measures, and what its explorer is checked with."""

import hashlib

import pytest
import torch
from torch import nn

from annotated.chapters.ch10 import drawings as ch10
from annotated.classifier import ClassifierConfig, TransformerClassifier
from annotated.page.frames import static
from annotated.page.notebook import recorded
from annotated.page.packed import pack_films, unpack_films
from annotated.recipes.classification import (
    CLASSIFICATION_RECIPES,
    GOOD,
    BagOfEmbeddings,
    Labelled,
    Words,
    make_classifier,
    order_task,
)

TEXTS = [("def", "f", "a"), ("def", "g", "b", "a"), ("def", "f", "b")]


@pytest.fixture
def task():
    answers = torch.tensor([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    texts = dict.fromkeys(("train", "validation", "test"), TEXTS)
    every = dict.fromkeys(texts, answers)
    return Labelled(("has f", "has g"), texts, every, Words(TEXTS))


class Finds(nn.Module):
    """Says yes to its two labels where a token for each is there."""

    def __init__(self, *tokens):
        super().__init__()
        self.tokens, self.unused = tokens, nn.Parameter(torch.zeros(1))

    def forward(self, ids):
        there = [(ids == token).any(dim=1) for token in self.tokens]
        return 2.0 * torch.stack(there, dim=1) - 1


def test_tokens_become_lines():
    tokens = "def f ( a ) : ⏎ ⇥ if a : ⏎ ⇥ return 0 ⏎ ⇤ b ⏎ ⇤".split()
    assert ch10.as_text(tokens) == (
        "def f ( a ) :\n    if a :\n        return 0\n    b"
    )


def test_a_function_is_found_by_its_labels(task):
    assert ch10.by_labels(task, "has g", most=4) == 1
    assert ch10.by_labels(task, "has f", "has g", most=4) == 0
    with pytest.raises(ValueError):
        ch10.by_labels(task, "has g", most=3)


def test_the_classifier_is_proved(capsys, monkeypatch):
    ch10.check_classifier()
    assert capsys.readouterr().out.count("✓") == 2
    monkeypatch.setattr(
        "annotated.classifier.pool", lambda states, real, pooling: states.mean(1)
    )
    with pytest.raises(AssertionError, match="is its parts"):
        ch10.check_classifier()


def test_a_blind_model_gets_half_of_the_verdicts():
    task = order_task()
    model = make_classifier("bag", task, CLASSIFICATION_RECIPES["order"])
    assert ch10.right_share(model, task) == 0.5
    assert ch10.right_share(model, task, "train") == 0.5
    ids = task.words.ids([(word,) for word in GOOD]).flatten()

    class EndsWell(nn.Linear):  # what the last word but one says
        def forward(self, tokens):
            return 2.0 * torch.isin(tokens[:, -2:-1], ids) - 1

    assert ch10.right_share(EndsWell(1, 1), task) == 1


def test_twins_that_pairs_of_neighbours_tell_apart_are_refused(capsys):
    ch10.check_twins(order_task())
    assert capsys.readouterr().out.startswith("✓ 36 pairs")
    texts = {"test": [("not", "good", ",", "bad"), ("not", "bad", ",", "good")]}
    answers = {"test": torch.tensor([[0.0], [1.0]])}
    with pytest.raises(AssertionError):
        ch10.check_twins(Labelled(("praise",), texts, answers, Words(texts["test"])))


@pytest.mark.slow
def test_examples_are_right_and_short():
    from annotated.recipes.classification import functions_task

    task = functions_task()
    sure = 2 * task.answers["test"] - 1
    shown = ch10.examples(task, sure)
    assert len(shown) == 4
    for name, text in shown.items():
        assert text[1] == name and 25 <= len(text) <= 56
    assert ch10.examples(task, -sure) == {}


def test_survivors_of_deletion(task):
    f, g = task.words.ids([("f", "g")])[0].tolist()
    a = task.words.ids([("a",)]).item()
    # only the first text holds both labels; f is its second token, a its third
    task = task._replace(answers=dict.fromkeys(task.texts, task.answers["test"]))
    methods = {
        "its own": lambda ids, label: (ids[0] == (f, a)[label]).float(),
        "the first": lambda ids, label: (ids[0] == f).float(),
    }
    found = ch10.survivors(Finds(f, a), task, methods, most=2)
    assert found["its own"]["asked"][:2] == [1, 0]
    assert found["its own"]["others"][:2] == [1, 1]
    assert found["the first"]["asked"][:2] == [1, 0.5]
    assert found["the first"]["others"][:2] == [1, 0.5]
    both = ch10.survivors(
        Finds(f, a),
        task,
        {"both": lambda ids, label: torch.tensor([0.0, 2.0, 1.0])},
        most=2,
    )["both"]
    assert both == {"asked": [1, 0.5, 0], "others": [1, 0.5, 0]}
    assert g != f


def test_keywords_among_three_tokens(task, monkeypatch):
    texts = ("def", "f", "a", "b", "c"), ("def", "g", "a", "b", "c")
    answers = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    task = task._replace(texts={"test": texts}, answers={"test": answers})
    task = task._replace(words=Words(texts))
    f, g = task.words.ids([("f", "g")])[0].tolist()
    monkeypatch.setattr(ch10, "KEYWORDS", {"has f": "f", "has g": "g"})
    methods = {
        "its own": lambda ids, label: (ids[0] == (f, g)[label]).float(),
        "that of g": lambda ids, label: torch.arange(5.0) + 9 * (ids[0] == g),
        "the last three": lambda ids, label: torch.arange(5.0),
    }
    shares = ch10.keyword_shares(Finds(f, g), task, methods)
    assert shares == {"its own": 1, "that of g": 0.5, "the last three": 0}
    task.answers["test"][0, 0] = 0.0  # now it's wrong about f
    assert ch10.keyword_shares(Finds(f, g), task, methods)["that of g"] == 1


@pytest.fixture
def films():
    """A bag and an encoder for a few words."""
    torch.manual_seed(0)
    words = Words([("a", "film", "not", "bad", ",", "good")])
    sizes = {"d_model": 8, "heads": 2, "layers": 2, "d_ff": 12, "max_len": 9}
    config = ClassifierConfig(len(words), 1, **sizes)
    bag, encoder = BagOfEmbeddings(len(words), 1, 8), TransformerClassifier(config)
    for model in (bag, encoder):
        for name, weight in model.named_parameters():
            weight.data += 0.5 * torch.randn_like(weight)
            if "embedding" in name:
                weight.data[0] = 0.0
    return bag.eval(), encoder.eval(), words


def test_packed_films_are_the_same_but_for_rounding(films):
    bag, encoder, words = films
    script = pack_films("films", *films)
    assert script.startswith('(globalThis.annotatedModels ||= {})["films"] = {')
    packed, rounded, again = unpack_films(script)
    assert again.symbols == words.symbols and not packed.training
    ids = words.ids([("a", "film", "neither"), ("not", "bad")])
    torch.testing.assert_close(packed(ids), bag(ids))
    for name, weight in encoder.state_dict().items():
        room = weight.abs().amax(dim=-1, keepdim=True) / 254 if weight.dim() == 2 else 0
        difference = (rounded.state_dict()[name] - weight).abs()
        assert (difference <= room + 1e-6).all(), name
    assert pack_films("films", packed, rounded, again) == script


def test_the_film_reader_brings_the_recorded_models():
    record = recorded("films_page")
    script = static(ch10.MODELS).encode()
    assert len(script) == record["bytes"] < 1.3e6
    assert hashlib.sha256(script).hexdigest() == record["sha256"]
