"""Patients: a script that is sound, and faults that their families' probes find."""

import pytest
import torch

from annotated.chapters.ch20.patients import (
    FAMILIES,
    FAULTS,
    SOUND,
    drawn_sizes,
    examine,
    part_of,
    patient,
    with_faults,
)
from annotated.checks import Draw
from tests.sample import in_turn


def test_the_sound_script_is_sound_in_any_size():
    assert examine(SOUND) == {}
    assert examine(drawn_sizes(Draw("another size"))) == {}


@pytest.mark.parametrize("name", in_turn(FAULTS))
def test_a_fault_is_found_by_the_probe_of_its_family(name):
    fault = FAULTS[name]
    assert fault.family in examine(with_faults(SOUND, [fault]))


def test_a_patient_is_drawn_by_its_seed_alone():
    torch.manual_seed(1)
    first = patient(7)
    torch.manual_seed(2)
    assert patient(7) == first
    assert len({patient(seed).source for seed in range(50)}) == 50
    drawn = [patient(seed) for seed in range(200)]
    assert {len(one.faults) for one in drawn} == {1, 2}
    assert {fault.family for one in drawn for fault in one.faults} == set(FAMILIES)
    assert first.faults[0].name not in repr(first)


def test_faults_stand_in_the_part_that_is_asked_for():
    for seed in range(20):
        ill = patient(seed, part="look")
        assert ill.part("look") != part_of(SOUND, "look")
        for name in ("read_on", "loss", "Block", "Model", "train"):
            assert ill.part(name) == part_of(SOUND, name)


def test_a_family_or_part_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="family"):
        patient(0, "fever")
    with pytest.raises(ValueError, match="no fault"):
        patient(0, "loss", part="look")
    with pytest.raises(ValueError, match="no function or class 'leg'"):
        patient(0, part="leg")


def test_a_repair_is_checked(capsys):
    ill = patient("two", names=["OneAhead", "sum_of_tokens"])
    assert sorted(ill.check(ill.source)) == ["future", "loss"]
    half = ill.source.replace("tril(1)", "tril()")
    assert ill.check(half) == ["loss"]
    assert "future" not in capsys.readouterr().out.split("✗ loss")[-1]
    assert ill.check(half.replace(', reduction="sum"', "")) == []
    assert "✓ sound" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("def look(", "def look(:", "can't be run: SyntaxError"),
        ("def read_on(", "def reads_on(", "has lost read_on"),
        ("nn.Embedding(V, D)", "nn.Embedding(W, D)", "can't be run: NameError"),
    ],
)
def test_a_script_that_cannot_be_examined_says_why(old, new, said):
    with pytest.raises(ValueError, match=said):
        examine(SOUND.replace(old, new))


def test_a_part_that_is_taken_out_is_no_repair():
    """A step that only looks sound: it computes nothing of its own text."""
    idle = SOUND.replace("x = model.embed(tokens,", "x = model.embed(0 * tokens,")
    assert "cache" in examine(idle)
