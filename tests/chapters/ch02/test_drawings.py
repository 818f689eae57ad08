"""ch02/drawings.py: what it finds in looks and runs, and what it refuses."""

import json
import re

import pytest
import torch
from torch.nn import functional as F

from annotated.chapters.ch02 import drawings as ch02

X = torch.tensor([[2.0, 0, 0, -1], [0, 2, 0, 1], [0.5, 0.5, 1, 0], [1.5, -0.5, 1, 0]])
PARTS = {
    "animal": ["cat", "dog", "cow", "goose"],
    "place": ["street", "bridge", "river", "path"],
    "reason": ["tired", "wide", "hungry", "icy"],
}


def checks(explorer):
    return json.loads(re.search(r'-checks">(.*?)</script>', explorer.text)[1])


@pytest.mark.parametrize(
    ("right", "step"),
    [
        ([1, 1, 1], 20),
        ([0.5, 1, 1], 40),
        ([1, 0.9, 1], 60),  # once right, then wrong again
        ([1, 1, 0.9], float("inf")),
    ],
)
def test_a_reader_has_learned_when_it_stays_right(right, step):
    rows = [{"roles": "three", "right": right}, {"roles": "gru", "right": [0, 0, 0]}]
    run = {"steps": [20, 40, 60], "rows": rows}
    assert ch02.settled(run, "three", None) == [step]
    assert ch02.settled(run, "three", 1.0) == []


def test_the_sentence_found_is_one_where_the_answer_is_right():
    cases = [("cat", "street", "tired"), ("cat", "street", "wide")]
    looks = torch.zeros(2, 2, 11)
    looks[0, 1, 5], looks[0, 1, 1] = 0.9, 0.1  # tired, yet it looks at the street
    looks[1, 1, 1], looks[1, 1, 5] = 0.6, 0.4  # wide, and it looks at the cat
    noun, right = torch.tensor([1, 5]), torch.tensor([0, 1])
    text = ch02.found(cases, right, right, looks, noun).text
    assert "<em>tired</em>: 90% of the second look goes to <em>street</em>" in text
    text = ch02.found(cases, torch.tensor([1, 1]), right, looks, noun).text
    assert "<em>wide</em>: 60% of the second look goes to <em>cat</em>" in text


def test_a_second_look_finds_the_noun_that_a_first_one_cannot():
    second, first, mirrored, _ = checks(ch02.second_look(X))
    found = [check["values"]["weights"][:2] for check in (second, first, mirrored)]
    assert found[0] == pytest.approx([0.35, 0.10], abs=0.005)
    assert found[1][0] == pytest.approx(found[1][1])
    assert found[2] == pytest.approx(found[0][::-1])


def test_a_taste_likes_the_films_on_its_side():
    spots = torch.tensor([[1.0, 0.2], [-1.0, 0.1], [0.3, -0.9]])
    for degrees, liked in ((0, "c, a"), (180, "b"), (90, "b, a"), (270, "c")):
        text = ch02.films("abc", spots, degrees).text
        assert f"A taste at {degrees}° likes {liked}." in text


def test_attention_by_hand_is_pytorchs():
    q, k, v = torch.randn(3, 7), torch.randn(5, 7), torch.randn(5, 4)
    ours, theirs = ch02.by_hand(q, k, v, 7**-0.5), F.scaled_dot_product_attention
    torch.testing.assert_close(ours, theirs(q, k, v), rtol=0, atol=1e-5)
