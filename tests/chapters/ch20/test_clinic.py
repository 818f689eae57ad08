"""ch20/clinic.py: the language's floor, the patients' faults, the shortest way."""

import json
import math
import operator

import pytest
import torch

from annotated.attention import record_attention
from annotated.chapters.ch20 import clinic
from annotated.chapters.ch20.clinic_drawings import dear_words, rounded, sentences
from tools import ROOT

RECORD = json.loads((ROOT / "book/results/clinic.json").read_text("utf-8"))
BY_NAME = {p["name"]: p for p in RECORD["patients"]}
MAP = "an attention map"
PATIENTS = {p.name: p for p in clinic.PATIENTS}


def test_texts_follow_the_rule():
    tokens = clinic.texts(400, 0)
    assert (tokens[:, 0] == clinic.START).all()
    count = (tokens == clinic.END).int().argmax(dim=1) - 1
    assert sorted(set(count.tolist())) == list(range(6, 15))
    letters = tokens > clinic.END
    assert letters.sum(dim=1).equal(count)
    pairs = letters[:, 4:] & letters[:, 1:-3]
    same = (tokens[:, 4:] == tokens[:, 1:-3])[pairs].float().mean().item()
    assert same == pytest.approx(0.85 + 0.15 / 8, abs=0.03)


def test_the_floor_is_the_entropy_of_the_rule():
    ids = [clinic.SYMBOLS.index(s) for s in "^abcabc."]
    text = torch.tensor([[*ids, *[clinic.PAD] * 8]])
    end = 1 / 9  # after six letters, there are nine lengths
    chances = [1 / 8] * 3 + [0.85 + 0.15 / 8] * 3 + [end]
    wanted = -sum(map(math.log, chances)) / 7
    assert clinic.floor(text) == pytest.approx(wanted)
    other = text.clone()
    other[0, 4] = clinic.SYMBOLS.index("d")  # and so the last three are no repeats
    assert clinic.floor(other) > clinic.floor(text) + 0.4


def test_a_recorded_map_is_what_attention_used():
    torch.manual_seed(0)
    model = clinic.SummaryAttention(32, 4, may_read=operator.le)
    x = torch.randn(2, 10, 32)
    with record_attention(model) as maps:
        output = model(x)
    keys, _ = model.with_means(x)
    values = model.value_map(keys).unflatten(-1, (4, 8)).transpose(1, 2)
    heads = (maps[""][0] @ values).transpose(1, 2).flatten(2)
    assert torch.allclose(model.output_map(heads), output, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "asked"),
    [("Ada", "abcabc."), ("Dana", "^abcabc."), ("Emre", "bcabc."), ("Kofi", "abcabc")],
)
def test_what_a_loss_asks_for_is_read_from_its_gradient(name, asked):
    ids = [clinic.SYMBOLS.index(s) for s in "^abcabc.··"]
    told = clinic.asked_at(PATIENTS[name], torch.tensor([ids]))
    assert "".join(told) == asked
    padded = clinic.asked_at(PATIENTS["Fay"], torch.tensor([ids]))
    assert padded[-3:] == ["·", "·", ""]


def told(examination, **changed):
    """What an examination says of Ada's record, with some of it changed."""
    return clinic.findings(BY_NAME["Ada"] | changed)[examination]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("^abcabcabc.", "shows"),
        ("^aabaabaab.", "shows"),
        ("^hhhhhhhhhhhh.", "is lost"),  # a constant fits any rule
        ("^·fbfffffffffff.", "is lost"),
        ("^abababab.", "is lost"),
        ("^^.", "is lost"),
    ],
)
def test_the_rule_is_seen_in_letters_that_differ(text, rule):
    said = told("what it writes", writes=[text] * 3)
    assert said == f"The rule {rule}; every text ends."


def test_a_map_tells_weight_on_later_letters():
    kept = {n for n, p in BY_NAME.items() if "No weight" in clinic.findings(p)[MAP]}
    assert BY_NAME.keys() - kept == {"Bo", "Lea"}
    # five letters, and summaries of 0 to 3 and of 4; a row sees those that have ended
    for i, key, weight in [(3, 5, "No"), (4, 6, "No"), (2, 5, "Some"), (3, 6, "Some")]:
        weights = torch.eye(5, 7)
        weights[i, key] = 0.5
        assert (
            told(MAP, map=weights.tolist()) == f"{weight} weight lies on later letters."
        )


def test_sentences_say_the_numbers_that_are_drawn():
    for p in RECORD["patients"]:
        said = sentences(p)
        for examination, names in {
            "the best possible loss": ("loss", "floor"),
            "one batch by heart": ("heart",),
            "another seed": ("loss", "floor", "another"),
            "twice as many steps": ("loss", "floor", "longer"),
        }.items():
            for name in names:
                assert f"{rounded(p[name]):.2f}" in said[examination], (p["name"], name)
        words = said["another seed"]  # whatever is judged stands last
        assert words.index(f"another {p['another']:.2f}. ") > words.index("With this")


def test_what_dear_examinations_repeat_is_counted():
    lea = BY_NAME["Lea"]  # with another seed alone, nobody can be as good
    assert "(60 minutes) for 11 of 12 patients" in dear_words(RECORD)
    patients = [lea | {"another": 1.5}, BY_NAME["Ada"], BY_NAME["Chen"]]
    words = dear_words({"patients": patients})
    assert "(60 minutes) for 3 of 3 patients" in words
    assert "the leaks of Lea, and not Chen's" in words


def test_the_shortest_way_leaves_one_patient():
    told = {name: clinic.findings(p) for name, p in BY_NAME.items()}
    for name in told:
        way = clinic.shortest(RECORD["patients"], name)
        alike = [n for n in told if all(told[n][e] == told[name][e] for e in way)]
        assert alike == [name]
        for left in range(len(way)):
            fewer = way[:left] + way[left + 1 :]
            alike = [n for n in told if all(told[n][e] == told[name][e] for e in fewer)]
            assert len(alike) > 1, "one examination too many"
