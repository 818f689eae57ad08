"""The runner of mutants: it says which faults the tests do not find, and why."""

import ast
import json
import re
import shutil
import subprocess
import sys

import pytest

from tests.mutants.__main__ import in_sample
from tests.mutants.run import ROOT, Fault, faults, modules

MODULE = '''\
LIMIT = 3


def half(number):
    """Return half of a number."""
    return number / 2


def count(limit):
    n = 0
    while n < limit:
        n += 1
    return n
'''
TESTS = """\
from annotated.tiny import count, half


def test_half():
    assert half(6) == 3


def test_count():
    assert count(2) == 2
"""
FOUND = ("number / 2", "number * 2", "doubled")


@pytest.fixture
def mutants(tmp_path):
    """A package of one module, and a function that runs the mutants given on it."""
    folder = tmp_path / "tests" / "mutants"
    (folder / "faults").mkdir(parents=True)
    for name in ("run.py", "__main__.py"):
        shutil.copy(ROOT / "tests" / "mutants" / name, folder)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (tmp_path / "annotated").mkdir()
    (tmp_path / "annotated" / "__init__.py").touch()
    (tmp_path / "annotated" / "tiny.py").write_text(MODULE)
    (tmp_path / "tests" / "test_tiny.py").write_text(TESTS)

    def run(table, *options, seconds=60):
        (folder / "faults" / "tiny.py").write_text(f"FAULTS = {table!r}")
        code = (
            "from tests.mutants import run; from tests.mutants.__main__ import main;"
            f"run.SECONDS = {seconds}; run.LATE = (); raise SystemExit(main())"
        )
        command = [sys.executable, "-c", code, "--jobs", "1", *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    run.folder = tmp_path
    return run


def test_faults_that_tests_find_are_well(mutants):
    status, said = mutants({"half": [FOUND], "count": [("<", "<=", "one more")]})
    assert status == 0, said
    assert "2 of 2 faults found" in said


@pytest.mark.parametrize(
    ("owner", "fault", "trouble"),
    [
        ("half", ("number / 2", "3", "equal where it is tried"), "no test noticed"),
        ("half", ("number * 3", "0", "of old"), "half holds this 0 times"),
        ("half", ("number", "0", "several times there"), "half holds this 3 times"),
        ("third", ("number", "0", "of old"), "annotated/tiny.py has no third"),
        ("half", ("number / 2", "number /", "unreadable"), "invalid syntax"),
        ("half", ("def half", "def halve", "renamed"), "cannot import name 'half'"),
    ],
)
def test_any_other_fault_is_named_with_what_is_wrong(mutants, owner, fault, trouble):
    status, said = mutants({owner: [fault]})
    assert status == 1, said
    name, told = said.split("\n", 1)
    assert name == f"tiny.{owner}: {fault[2]}"
    assert trouble in told


def test_a_fault_without_an_end_is_cut_off_and_named(mutants):
    table = {"count": [("n += 1", "pass", "endless"), ("<", "<=", "one more")]}
    status, said = mutants(table, seconds=3)
    assert status == 1
    assert "tiny.count: endless\n    no end after 3 CPU seconds" in said
    assert "1 of 2 faults found" in said


def test_a_test_that_fails_without_a_fault_proves_nothing(mutants):
    (mutants.folder / "tests" / "test_tiny.py").write_text(TESTS.replace("3", "4"))
    status, said = mutants({"half": [FOUND]})
    assert status == 1
    assert "without any fault its tests fail too" in said
    assert "test_tiny.py::test_half" in said


def test_a_run_on_another_copy_proves_nothing(mutants):
    other = f"import sys; sys.path.insert(0, {str(mutants.folder)!r})\n"
    wrong = TESTS.replace("3", "4")
    (mutants.folder / "tests" / "test_tiny.py").write_text(other + wrong)
    status, said = mutants({"half": [FOUND]})
    assert status == 1
    assert "the tests ran on something else than the copy" in said


def test_what_changed_is_run_and_a_sample_of_the_rest(mutants):
    reasons = [str(i) for i in range(40)]
    wrong = [("number / 2", f"{reason} + 4", reason) for reason in reasons]
    table = {"half": wrong, "count": [("<", "<=", "one more")]}
    assert "41 of 41" in mutants(table, "--all")[1]
    ran = int(mutants(table)[1].split(" of ")[0])
    assert 0 < ran < 20
    module = mutants.folder / "annotated" / "tiny.py"
    module.write_text(MODULE.replace("n = 0", "n = int()"))
    assert f"{ran + 1} of {ran + 1}" in mutants(table)[1]


def test_what_a_name_finds_is_remembered(mutants):
    table = {"half": [FOUND, ("2", "1", "whole")], "count": [("<", "<=", "one more")]}
    assert "2 of 2" in mutants(table, "tiny.half")[1]
    assert "1 of 1" in mutants(table, "tiny.count: one")[1]
    found = mutants.folder / "tests" / "mutants" / "found.json"
    assert json.loads(found.read_text()).keys() == {"tiny.half", "tiny.count"}
    assert "1 of 1" in mutants(table, "tiny.half: whole")[1]  # not all of its faults
    assert json.loads(found.read_text()).keys() == {"tiny.half", "tiny.count"}
    table["half"].append(("2", "2.0", "the same"))
    assert "2 of 3" in mutants(table, "tiny.half")[1]
    assert json.loads(found.read_text()).keys() == {"tiny.count"}


def test_in_time_every_fault_is_in_a_sample():
    fault = Fault("masks", "causal_mask", "old", "new", "inverted")
    samples = sum(in_sample(fault, seed=str(commit)) for commit in range(800))
    assert 70 < samples < 130


# ---- the tables --------------------------------------------------------------


def complete(module):
    """Pages are seen in a browser; of recipes, what may go wrong unseen has faults."""
    tools = "frames|notebook|packed|pictures|play|svg"
    return not re.match(rf"page/(?!({tools})$)|recipes/", module)


COMPLETE = [*filter(complete, modules())]


def test_there_is_a_table_for_each_module():
    package = ROOT / "annotated"
    files = [*package.glob("[!_]*.py"), *package.glob("page/[!_]*.py")]
    here = {f.relative_to(package).with_suffix("").as_posix() for f in files}
    assert set(COMPLETE) == {*filter(complete, here)} - {"notebook"}  # a name, kept


@pytest.mark.parametrize("module", COMPLETE)
def test_every_public_function_and_class_has_faults(module):
    tree = ast.parse((ROOT / "annotated" / f"{module}.py").read_text("utf-8"))
    public = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"
        if any(isinstance(part, ast.FunctionDef) for part in ast.walk(node))
    }
    tried = {fault.owner.split(".")[0] for fault in faults(module)}
    assert public <= tried


@pytest.mark.parametrize("module", modules())
def test_no_two_faults_have_the_same_name(module):
    names = [fault.name for fault in faults(module)]
    assert len(names) == len(set(names))
