"""tools/findings.py: what differs is listed, and fails only where it has to."""

import json

import pytest

from tools import findings, slices

FINDING = {
    "name": "01-twice",
    "words": "Twice as much.",
    "value": [2.5],
    "band": "> 1 and ≤ 3",
    "held": True,
    "unlike": {"words": "untrained", "value": [0.5], "outside": True},
}
ENOUGH = findings.MACHINES
MACHINES = {f"noise-{number}": [2.0] for number in range(ENOUGH)}
OTHERS = {f"noise-{number}": [0.5] for number in range(ENOUGH)}


CODE = slices.hash_of({"cells": []})  # of a page that calls no `expect`


def record(book, values, others):
    """On machines that ran the page, but for two by their names."""
    book.write("notebooks/01_tiny.ipynb", json.dumps({"cells": []}))
    machines = {
        name: {
            "code": "of yesterday" if name == "old" else CODE,
            "asserts": ["x == y"] if name == "broken" else [],
        }
        for name in values
    }
    entry = {"values": values, "unlike": {"values": others}}
    text = json.dumps({"machines": machines, "findings": {"01-twice": entry}})
    book.write("book/results/findings/01.json", text)


@pytest.mark.parametrize(
    ("band", "numbers", "held"),
    [
        ("> 1 and ≤ 3", [1.5, 3], True),
        ("> 1 and ≤ 3", [1.5, 3.5], False),
        ("> 1 and ≤ 3", [1], False),
        ("≥ 1", [1, "inf"], True),
        ("< 1", ["nan"], False),
    ],
)
def test_a_band_is_read_as_it_is_written(band, numbers, held):
    assert findings.inside(band, numbers) is held


def test_a_finding_that_enough_machines_carry_has_no_fault(book):
    record(book, MACHINES, OTHERS)
    assert findings.faults(FINDING, book.root) == []


@pytest.mark.parametrize(
    ("values", "others", "fault"),
    [
        (
            dict(list(MACHINES.items())[1:]),
            OTHERS,
            f"{ENOUGH - 1} of {ENOUGH} machines are recorded",
        ),
        (
            dict([*list(MACHINES.items())[1:], ("old", [2.0])]),
            OTHERS,
            f"{ENOUGH - 1} of {ENOUGH} machines are recorded",
        ),
        ({**MACHINES, "plain": [0.9]}, OTHERS, "Twice as much. Missed on plain"),
        ({**MACHINES, "plain": [2, 9]}, OTHERS, "Twice as much. Missed on plain"),
        (
            {**MACHINES, "plain": [2]},
            {**OTHERS, "plain": [0, 2]},
            "untrained is in the band",
        ),
        (
            dict([*list(MACHINES.items())[1:], ("broken", [2.0])]),
            OTHERS,
            f"{ENOUGH - 1} of {ENOUGH} machines are recorded",
        ),
    ],
)
def test_any_other_is_the_authors_fault(book, values, others, fault):
    record(book, values, others)
    (line,) = findings.faults(FINDING, book.root)
    assert line.startswith(f"01-twice: {fault}")


def test_a_finding_without_a_record_is_the_authors_fault(book):
    (line,) = findings.faults(FINDING, book.root)
    assert line == f"01-twice: 0 of {ENOUGH} machines are recorded"


def test_an_alternative_that_is_in_the_band_here_is_a_fault(book):
    record(book, MACHINES, OTHERS)
    alike = {**FINDING, "unlike": {"words": "untrained", "value": [2]}}
    (line,) = findings.faults(alike, book.root)
    assert line.endswith("in the band > 1 and ≤ 3, too, on here")


SHOWN = """

# %%
from IPython.display import display

display({{"application/vnd.annotated.finding+json": {}}}, raw=True)
"""


def show(workshop, finding):
    source = "notebooks/src/01_tiny.py"
    workshop.write(source, workshop.read(source) + SHOWN.format(repr(finding)))
    workshop.tool("notebooks")
    assert workshop.tool("execute").returncode == 0


def test_what_differs_is_listed_and_the_book_goes_on_but_the_test_fails(workshop):
    record(workshop, MACHINES, OTHERS)
    show(workshop, {**FINDING, "value": [0.2], "held": False})
    built, tested = workshop.tool("findings"), workshop.tool("findings", "--strict")
    line = (
        "01-twice: Twice as much. Here 0.2, band > 1 and ≤ 3; "
        f"{ENOUGH} recorded machines: 2"
    )
    assert line in built.stdout
    assert (built.returncode, tested.returncode) == (0, 1)


@pytest.mark.slow
def test_what_holds_and_is_recorded_passes(workshop):
    record(workshop, MACHINES, OTHERS)
    show(workshop, FINDING)
    passed = workshop.tool("findings", "--strict")
    assert passed.returncode == 0, passed.stdout
    assert passed.stdout.startswith("1 findings about trained models; 0 differ")


@pytest.mark.slow
def test_a_name_belongs_to_its_page_and_stands_there_once(workshop):
    show(workshop, FINDING)
    show(workshop, FINDING)
    assert "01-twice: twice" in workshop.tool("findings").stdout
    show(workshop, {**FINDING, "name": "02-twice"})
    failed = workshop.tool("findings")
    assert "02-twice: on page 01" in failed.stdout
    assert failed.returncode == 1


def test_what_should_be_stated_and_is_not_fails_the_test(book):
    record(book, MACHINES, OTHERS)
    assert findings.lacking({"01_tiny": ["01-twice"]}, book.root) == []
    (gone,) = findings.lacking({"01_tiny": []}, book.root)
    assert gone == "01-twice: recorded, and not stated"
    cell = {"cell_type": "code", "source": ["expect('01-twice', x)"]}
    book.write("notebooks/01_tiny.ipynb", json.dumps({"cells": [cell]}))
    (unread,) = findings.lacking({}, book.root)
    assert unread == "01_tiny: not executed here as it is now"


PAGE = '''
def trained(steps):
    """Train."""
    return sum(range(steps))


found = trained(3)
expect("00-x", "It is three.", found, above=2)
'''


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("Train.", "Train a model.", True),
        ("It is three.", "It is more than two.", True),
        ("above=2", "above=1", True),
        ("range(steps)", "range(steps + 1)", False),
        ("trained(3)", "trained(4)", False),
    ],
)
def test_findings_depend_on_what_computes_and_not_on_words(old, new, same):
    assert old in PAGE
    changed = slices.slice_of(PAGE.replace(old, new))
    assert (changed == slices.slice_of(PAGE)) == same
