"""The runner of mutants: it says which faults the tests do not find, and why."""

import ast
import re
import shutil
import subprocess
import sys

import pytest

from tests.mutants.run import ROOT, faults, files_of_tests, modules, settings

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
HALF = "half\n    number / 2 -> number * 2  # doubled\n"
COUNT = "count\n    < -> <=  # one more\n"


@pytest.fixture
def mutants(tmp_path):
    """A package of one module, and a function that runs the mutants given on it."""
    folder = tmp_path / "tests" / "mutants"
    (folder / "faults").mkdir(parents=True)
    for name in ("sample.py", "mutants/run.py", "mutants/__main__.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests" / name)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (tmp_path / "annotated").mkdir()
    (tmp_path / "annotated" / "__init__.py").touch()
    (tmp_path / "annotated" / "tiny.py").write_text(MODULE)
    (tmp_path / "tests" / "test_tiny.py").write_text(TESTS)

    def run(table, options=("--all",), seconds=60):
        (folder / "faults" / "tiny.py").write_text(f"TABLE = {table!r}")
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
    status, said = mutants(HALF + COUNT)
    assert status == 0, said
    assert "2 of 2 faults found" in said


@pytest.mark.parametrize(
    ("owner", "fault", "trouble"),
    [
        ("half", "number / 2 -> 3  # equal where it is tried", "no test noticed"),
        ("half", "number * 3 -> 0  # of old", "half holds this 0 times"),
        ("half", "number -> 0  # several times there", "half holds this 3 times"),
        ("third", "number -> 0  # of old", "annotated/tiny.py has no third"),
        ("half", "number / 2 -> number /  # unreadable", "invalid syntax"),
        ("half", "def half -> def halve  # renamed", "cannot import name 'half'"),
    ],
)
def test_any_other_fault_is_named_with_what_is_wrong(mutants, owner, fault, trouble):
    status, said = mutants(f"{owner}\n    {fault}")
    assert status == 1, said
    name, told = said.split("\n", 1)
    assert name == f"tiny.{owner}: {fault.partition('# ')[2]}"
    assert trouble in told


def test_a_fault_without_an_end_is_cut_off_and_named(mutants):
    status, said = mutants(COUNT + "    n += 1 -> pass  # endless", seconds=3)
    assert status == 1
    assert "tiny.count: endless\n    no end after 3 CPU seconds" in said
    assert "1 of 2 faults found" in said


def test_a_test_that_fails_without_a_fault_proves_nothing(mutants):
    (mutants.folder / "tests" / "test_tiny.py").write_text(TESTS.replace("3", "4"))
    status, said = mutants(HALF)
    assert status == 1
    assert "without any fault its tests fail too" in said
    assert "test_tiny.py::test_half" in said


def test_a_run_on_another_copy_proves_nothing(mutants):
    other = f"import sys; sys.path.insert(0, {str(mutants.folder)!r})\n"
    wrong = TESTS.replace("3", "4")
    (mutants.folder / "tests" / "test_tiny.py").write_text(other + wrong)
    status, said = mutants(HALF)
    assert status == 1
    assert "the tests ran on something else than the copy" in said


# ---- which are tried -----------------------------------------------------------


@pytest.fixture
def repository(mutants):
    """The package under git, on a branch: a function that runs git there."""

    def git(*arguments):
        who = ("-c", "user.name=A", "-c", "user.email=a@b")
        subprocess.run(["git", *who, *arguments], cwd=mutants.folder, check=True)

    table = mutants.folder / "tests" / "mutants" / "faults" / "tiny.py"
    table.write_text(f"TABLE = {TABLE!r}")
    git("init", "--quiet", "--initial-branch=main")
    commit(git)
    git("checkout", "--quiet", "-b", "work")
    git("commit", "--quiet", "--allow-empty", "--message=begin")
    return git


TABLE = HALF + COUNT + "    0 -> 3  # from 3\n"


def commit(git):
    git("add", "--all")
    git("commit", "--quiet", "--message=a step")


def edit(mutants, name, old, new):
    path = mutants.folder / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("name", "old", "new", "tried"),
    [
        ("pyproject.toml", "pytest", "other", 0),
        ("annotated/tiny.py", "LIMIT = 3", "LIMIT = 4", 0),
        ("annotated/tiny.py", "return number / 2", "return (number / 2)", 1),
        ("annotated/tiny.py", "n = 0", "n = +0", 2),
        ("tests/test_tiny.py", "half(6) == 3", "half(8) == 4", 3),
    ],
)
def test_what_the_branch_changes_is_tried(mutants, repository, name, old, new, tried):
    edit(mutants, name, old, new)
    assert f"{tried} of {tried} faults found" in mutants(TABLE, ())[1]
    commit(repository)
    repository("checkout", "--quiet", "-B", "main")  # landed: the last commit counts
    assert f"{tried} of {tried} faults found" in mutants(TABLE, ())[1]


def test_a_fault_that_is_new_is_tried(mutants, repository):
    more = TABLE.replace(HALF, HALF + "    2 -> 1  # whole\n")
    assert "2 of 2 faults found" in mutants(more, ())[1]


def test_of_many_sixty_are_tried_of_each_function_the_first_and_the_rest_named(
    mutants, repository
):
    wrong = "".join(f"    number / 2 -> {i} + 4  # {i}\n" for i in range(70))
    status, said = mutants(TABLE.replace(HALF, f"half\n{wrong}"), ())
    assert status == 0 and "60 of 60 faults found" in said
    assert "Left to test-all: 10 faults of tiny.half\n" in said


def test_without_a_history_there_is_nothing_to_compare_with(mutants):
    status, said = mutants(TABLE, ())
    assert status == 0 and "Compared with nothing" in said
    assert "0 of 0 faults found" in said


# ---- the tables --------------------------------------------------------------


def complete(module):
    """Pages are seen in a browser; of recipes, what may go wrong unseen has faults."""
    tools = "frames|notebook|packed|pictures|play|svg"
    return not re.match(rf"page/(?!({tools})$)|chapters/|recipes/", module)


COMPLETE = [*filter(complete, modules())]


def test_there_is_a_table_for_each_module():
    package = ROOT / "annotated"
    folders = ("", "data/", "page/")
    files = [file for f in folders for file in package.glob(f"{f}[!_]*.py")]
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


@pytest.mark.parametrize("rows", ["a -> b", "a  # no arrow", "a\n        b"])
def test_rows_are_read_and_one_that_is_not_complete_is_refused(tmp_path, rows):
    file = tmp_path / "tests" / "mutants" / "faults" / "tiny.py"
    file.parent.mkdir(parents=True)
    head = 'TABLE = r"""half\n    a\\nb  # c -> "\\\\n" +\n            1  # d\n'
    file.write_text(head + '    two\n        2  # e\n        # f\n"""')
    assert [(f.old, f.new, f.reason) for f in faults("tiny", tmp_path)] == [
        ("a\nb  # c", r'"\n" + 1', "d"),
        ("two", "2", "e"),
        ("two", "", "f"),
    ]
    settings.cache_clear()
    file.write_text(f'{head}    {rows}\n"""')
    with pytest.raises(ValueError, match="tiny: this row is not complete: "):
        faults("tiny", tmp_path)


@pytest.mark.parametrize("module", modules())
def test_no_two_faults_have_the_same_name_and_their_tests_exist(module):
    assert all(file.is_file() for file in files_of_tests(module))
    names = [fault.name for fault in faults(module)]
    assert len(names) == len(set(names))
