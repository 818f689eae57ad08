"""ch18/memory_calculator.py: what the controls ask for."""

import re

import pytest
from bs4 import BeautifulSoup

from annotated.chapters.ch18 import memory_calculator as calculator
from annotated.gpt2 import SIZES

MEDIUM = calculator.START | calculator.MODELS["GPT-2 medium"]


@pytest.fixture(scope="module")
def shown():
    return BeautifulSoup(calculator.memory_calculator().text, "html.parser")


@pytest.mark.parametrize("size", SIZES)
def test_published_sizes_are_those_of_chapter_16(size):
    name = f"GPT-2 {size if size != 'xl' else 'XL'}"
    config, _ = calculator.asked(MEDIUM | calculator.MODELS[name])
    assert config == SIZES[size]


def test_controls_become_options():
    _, options = calculator.asked(MEDIUM)
    wanted = {"precision": "float32", "checkpointed": False, "accumulating": False}
    wanted |= {"foreach": True, "shards": 1, "stage": 0}
    assert options == wanted
    changed = {"precision": "autocast to bfloat16", "checkpointed": True}
    changed |= {"processes": 4, "shared": "gradients, too", "accumulating": True}
    _, options = calculator.asked(MEDIUM | changed)
    wanted |= {"precision": "mixed", "checkpointed": True, "accumulating": True}
    assert options == wanted | {"shards": 4, "stage": 2}


def test_only_checkpoints_are_enough(shown):
    """The answer below the calculator is true, and so is the question."""
    changes = {
        "half the layers": {"layers": 12},
        "autocast": {"precision": "autocast to bfloat16"},
        "eight cards": {"processes": 8, "shared": calculator.STAGES[3]},
        "checkpoints": {"checkpointed": True},
    }
    found = {
        name: calculator.memory_bytes(MEDIUM | change)["total"] / 1e9
        for name, change in changes.items()
    }
    assert {name for name, size in found.items() if size < 24} == {"checkpoints"}
    answer = shown.select_one("details").text
    said = [int(size) for size in re.findall(r"(\d+) GB", answer)]
    assert "of which 9.9 are the three tables" in answer  # 3 · 4 · 16 · 1024 · 50,257
    fewer = MEDIUM | {"accumulating": True, "batch": 4}
    found["fewer texts"] = calculator.memory_bytes(fewer)["total"] / 1e9
    assert said == [round(size) for size in found.values()]
    question = shown.select_one(".annotated-question").text
    assert f"needs {calculator.gigabytes(MEDIUM)} for batches of 16" in question
    assert calculator.memory_bytes(MEDIUM)["24"] < 16


def test_what_an_update_takes_that_is_not_fused():
    said = calculator.sharded_said()
    assert "133 GB alone. That's 20 bytes per parameter and not 16" in said
