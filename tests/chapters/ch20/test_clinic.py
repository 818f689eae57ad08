"""ch20/clinic.py: the language's floor, the patients' faults, the shortest way."""

import json
import math

import pytest
import torch

from annotated.chapters.ch20 import clinic
from annotated.chapters.ch20.clinic_drawings import clinic_explorer, sentences
from tools import ROOT

RECORD = json.loads((ROOT / "book/results/clinic.json").read_text("utf-8"))
BY_NAME = {p["name"]: p for p in RECORD["patients"]}
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


def logits_see_later(name: str) -> set[tuple[int, int]]:
    torch.manual_seed(0)
    model = PATIENTS[name].make().eval()
    tokens, later = clinic.texts(2, 1)[:, :12], set()
    for j in range(12):
        changed = tokens.clone()
        changed[:, j] = 3 + (tokens[:, j] + 1) % 8
        with torch.no_grad():
            moved = (model(tokens) != model(changed)).any(dim=-1).any(dim=0)
        later |= {(i, j) for i in moved.nonzero().flatten().tolist() if i < j}
    return later


@pytest.mark.parametrize("name", PATIENTS)
def test_only_three_see_later_symbols(name):
    later = logits_see_later(name)
    if name == "Gita":  # random, and so everything moves
        return
    assert bool(later) == (name in ("Bo", "Chen", "Lea"))
    if name == "Bo":
        assert all(i // 4 == j // 4 for i, j in later)
        assert {(0, 3), (4, 7)} <= later


def test_a_right_comparison_of_chunks_sees_nothing_later():
    torch.manual_seed(0)
    model = clinic.small(lambda: clinic.SummaryAttention(32, 4)).eval()
    tokens = clinic.texts(2, 1)
    changed = torch.cat([tokens[:, :6], 3 + (tokens[:, 6:] + 1) % 8], dim=1)
    with torch.no_grad():
        assert model(tokens)[:, :6].equal(model(changed)[:, :6])
        assert not model(tokens)[:, 6:].equal(model(changed)[:, 6:])


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


def test_each_patient_has_all_answers():
    assert [*BY_NAME] == [*PATIENTS]
    for p in RECORD["patients"]:
        assert [*sentences(p)] == [*clinic.findings(p)] == [*clinic.EXAMINATIONS]
        assert p["diagnosis"] in clinic.DIAGNOSES
        assert max(map(len, sentences(p).values())) < 180
    assert "clinic" in clinic_explorer(RECORD).text
