"""Slips of the sources: each shows its effect, and is guarded by a test of the book."""

import inspect
import re
from pathlib import Path

import pytest
import torch
import yaml

from annotated.chapters.ch20 import slips
from annotated.chapters.ch20.drawings import slips_table

ROOT = Path(__file__).resolve().parents[3]
SLIPS = slips.slips()
FAMILIES = "mask position loss normalisation scale decoding batch claim code".split()
TRAINED = "position-zero"  # takes 9 CPU seconds: the record has it
# statements on PyTorch, Python, or numbers, on which no code of the book stands
PLAIN = {
    *("mean-grows", "equal-entries", "not-a-module", "lost-exponent", "counted-twice"),
    *("not-indented", "bare-except", "byte-masks", "axis-alone", "sixteen-matrices"),
    *("cleared-between", "not-divided", "own-layer-norm"),
}
every = pytest.mark.parametrize("slip", SLIPS.values(), ids=SLIPS)


@pytest.mark.parametrize("name", sorted(SLIPS.keys() - {TRAINED}))
def test_each_slip_shows_its_effect(name):
    before = torch.get_rng_state()
    numbers = slips.run(name, 2)
    assert abs(numbers["wrong"] - numbers["right"]) >= SLIPS[name].least
    assert numbers == slips.run(name, 2), "a seed decides"
    assert torch.equal(before, torch.get_rng_state()), (
        "and nobody else's numbers change"
    )
    words = SLIPS[name].said([numbers])
    assert words.endswith((".", ")")) and not re.search(r"[{}]|nan|inf\b", words)


@every
def test_the_repair_is_the_books_own(slip):
    ours = {
        name
        for name, thing in vars(slips).items()
        if (inspect.getmodule(thing) or slips) is not slips
        and inspect.getmodule(thing).__name__.startswith("annotated.")
    } | {"attended", "on_hidden", "Layer"}
    used = set(re.findall(r"\w+", slip.code())) & ours
    assert bool(used) != (slip.id in PLAIN), used


@every
def test_its_guard_is_a_test(slip):
    path, _, name = slip.guard.partition("::")
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE)


@every
def test_its_words_are_in_their_place(slip):
    sources = yaml.safe_load((ROOT / "book/sources.yml").read_text("utf-8"))
    sections = {s["key"]: {one["key"] for one in s["sections"]} for s in sources}
    assert slip.section in sections[slip.source[:2]]
    assert slip.family in FAMILIES and len(slip.title.split()) <= 10
    assert (ROOT / "notebooks/src" / f"{slip.page}.py").is_file()
    assert slip.chapter == int(slip.page[:2])


def test_the_table_has_a_row_for_each_that_opens_to_its_code():
    names = {
        word for slip in SLIPS.values() for word in re.findall(r"{(\w+)", slip.effect)
    }
    rows = [{"slip": i, "seed": 0} | dict.fromkeys(names, 1.0) for i in SLIPS]
    text = slips_table({"rows": rows}).text
    assert text.count("<tbody>") == text.count("<details>") == len(SLIPS)
    assert "def thrown_away():" in text
    assert '<a href="04c_broken_masks.html">4c</a>' in text
