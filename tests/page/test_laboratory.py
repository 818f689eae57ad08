"""annotated/page/laboratory.py, and the file of its experiments."""

import gzip
import json
import re
from importlib import resources
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from annotated.page.frames import static
from annotated.page.laboratory import SHOWN, SWITCHES, laboratory
from annotated.page.laboratory_runs import laboratory_settings

FILE = json.loads(static("laboratory.json"))
NAMES = list(FILE["experiments"])
RESULTS = Path(__file__).parents[2] / "book" / "results"


def recorded(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def options(made) -> dict:
    """What the last script of an element passes on, beside the shared code."""
    script = BeautifulSoup(made.text, "html.parser").find_all("script")[-1].string
    return json.loads(re.search(r"\.\.\.(\{.*\}) \}\);", script)[1])


def test_all_experiments_and_switches_are_offered_without_a_choice():
    assert options(laboratory()) == {"names": NAMES, "switches": list(SWITCHES)}


def test_a_chapter_offers_its_own():
    made = laboratory("mask", switches=["causal"], label='A "mask" <b>')
    assert options(made) == {"names": ["mask"], "switches": ["causal"]}
    section = BeautifulSoup(made.text, "html.parser").section
    assert section["aria-label"] == 'A "mask" <b>'


def test_two_elements_share_their_code_and_no_id():
    both = laboratory().text + laboratory("mask").text
    page = BeautifulSoup(both, "html.parser")
    one, other = page.select("section")
    assert one["id"] != other["id"]
    for kind in ("style", "script"):
        shared = page.select(f"{kind}.annotated-shared")
        assert shared and shared == 2 * shared[: len(shared) // 2]


def test_all_parts_are_sent_and_their_names_stay_their_own():
    parts = resources.files("annotated.page").joinpath("static", "laboratory").iterdir()
    assert {f"laboratory/{part.name}" for part in parts} == set(SHOWN[:-1])
    script = BeautifulSoup(laboratory().text, "html.parser").script.string
    before, _, inside = script.partition("var laboratory = (function () {\n")
    inside, _, after = inside.partition("\nreturn laboratory;\n})();\n")
    for name in ("make", "paintMap", "laboratory"):
        assert f"function {name}(" in inside
        assert f"function {name}(" not in before + after


def test_what_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="experiment must be one of"):
        laboratory("nothing")
    with pytest.raises(ValueError, match="switch must be one of"):
        laboratory(switches=["heat"])


def test_it_is_light():
    assert len(gzip.compress(laboratory().text.encode())) <= 40_000


def test_its_lines_of_comment_are_not_sent():
    assert not re.search(r"^ *// ", laboratory().text, re.MULTILINE)
    assert "serve(self)" in laboratory().text  # nothing else is missing


def test_pytorch_did_what_the_page_says():
    rows = recorded("laboratory")
    assert [(row["experiment"], row["seed"]) for row in rows["rows"]] == [
        (name, seed) for name in NAMES for seed in (0, 1, 2)
    ]
    assert rows["settings"] == {name: laboratory_settings(name) for name in NAMES}
    for row in rows["rows"]:
        bands = FILE["experiments"][row["experiment"]]
        for what in ("exact", "loss"):
            low, high = bands[what]
            assert low <= row[what] <= high, (row["experiment"], row["seed"], what)


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_is_complete(name):
    it = FILE["experiments"][name]
    assert it["question"].endswith("?") and len(it["guesses"]) >= 2 and it["answer"]
    assert it["right"] in range(len(it["guesses"]))
    assert it["exact"][0] < it["exact"][1] and it["loss"][0] < it["loss"][1]
    assert set(it["changes"]) <= {*SWITCHES, "steps"}
    assert laboratory_settings(name) == FILE["settings"] | it["changes"]


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_differs_from_its_control_in_one_thing(name):
    it = FILE["experiments"][name]
    changed, control = (FILE["settings"] | it[one] for one in ("changes", "control"))
    different = {one for one in changed if changed[one] != control[one]} - {"steps"}
    assert len(different) == (name != "whole") and it["against"]
