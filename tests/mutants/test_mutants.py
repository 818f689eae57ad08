"""The tests find faults: each mutant of the package makes its module's tests fail."""

import ast
import importlib
import inspect
from collections import Counter

import pytest

from tests.mutants import datasets_table, table
from tests.mutants.run import ROOT, copy_package, mutate, start

pytestmark = pytest.mark.mutants

FAULTS = table.FAULTS | datasets_table.FAULTS
BAD_INPUT = table.BAD_INPUT | datasets_table.BAD_INPUT

# the heart of the book: several faults of each function and class are tried
SEVERAL = (
    *("masks", "attention", "positions", "transformer", "decoding"),
    *("seq2seq", "data", "training"),
)
CHECKS = ("check_shape", "check_close")
MUTANTS = [
    pytest.param(module, *fault, bad_input, id=f"{module}: {fault[2]}")
    for table, bad_input in ((FAULTS, False), (BAD_INPUT, True))
    for module, faults in table.items()
    for fault in faults
]


@pytest.mark.parametrize(("module", "old", "new", "reason", "bad_input"), MUTANTS)
def test_a_fault_is_found(module, old, new, reason, bad_input, tmp_path):
    package = copy_package(tmp_path)
    mutate(package / f"{module}.py", old, new)
    status, said = start(tmp_path, module, bad_input, looked_at_through(module, old))
    assert status != pytest.ExitCode.OK, f"nobody noticed: {reason}"
    # anything else is a fault of the mutant: it cannot be imported, or never ends
    assert status == pytest.ExitCode.TESTS_FAILED, f"exit status {status}\n{said}"


@pytest.mark.parametrize("bad_input", [False, True])
@pytest.mark.parametrize("module", FAULTS)
def test_without_a_fault_all_is_well(module, bad_input, tmp_path):
    copy_package(tmp_path)
    status, said = start(tmp_path, module, bad_input)
    assert status == pytest.ExitCode.OK, said


# ---- the table ---------------------------------------------------------------


def owner(module: str, old: str) -> str:
    """The function or class of a module that holds a text."""
    text = (ROOT / "annotated" / f"{module}.py").read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{module}.py holds this not once:\n{old}"
    line = 1 + text[: text.index(old)].count("\n")
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first <= line <= node.end_lineno:
                return node.name
    raise AssertionError(f"{module}.py holds this in no function or class:\n{old}")


def looked_at_through(module: str, old: str) -> list[str]:
    """The owner of a text; if it is private, also the things that use it."""
    name = owner(module, old)
    if not name.startswith("_"):
        return [name]
    text = (ROOT / "annotated" / f"{module}.py").read_text(encoding="utf-8")
    used_by = [
        node.name
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and name in ast.get_source_segment(text, node)
    ]
    return [name, *used_by]


def public_things(module: str) -> dict[str, object]:
    found = vars(importlib.import_module(f"annotated.{module}"))
    return {
        name: thing
        for name, thing in found.items()
        if (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == f"annotated.{module}"
        and not name.startswith("_")
    }


def test_each_module_has_both_kinds_of_mutants():
    assert set(FAULTS) == set(BAD_INPUT)
    assert set(SEVERAL) <= set(FAULTS)


@pytest.mark.parametrize("module", FAULTS)
def test_every_public_name_has_mutants(module):
    faults = FAULTS[module] + BAD_INPUT[module]
    counts = Counter(owner(module, old) for old, _, _ in faults)
    for name, thing in public_things(module).items():
        record = inspect.isclass(thing) and issubclass(thing, tuple)
        several = (module in SEVERAL and not record) or name in CHECKS
        least = 3 if several else 1
        assert counts[name] >= least, f"{name} has {counts[name]} mutants"


def test_no_mutant_stands_twice():
    ids = [mutant.id for mutant in MUTANTS]
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    for module, old, new, *_ in (mutant.values for mutant in MUTANTS):
        assert old != new, (module, old)
