"""The Makefile explains itself and says clearly what a machine lacks."""

import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(book):
    shutil.copy(ROOT / "Makefile", book.root)
    book.write("pyproject.toml", "")
    return book


def fake_python(book, script):
    book.write("python", f"#!/bin/sh\n{script}\n")
    (book.root / "python").chmod(0o755)
    return "PYTHON=./python"


def test_help_is_what_make_alone_shows_and_names_every_command(folder):
    shown = folder.run("make")
    assert shown.returncode == 0, shown.stdout
    assert folder.run("make", "help").stdout == shown.stdout
    for (
        command
    ) in "book test serve notebooks clean test-gpu bench repository vendor".split():
        assert re.search(rf"^  {command} +\S", shown.stdout, re.M), command


def test_an_old_python_is_refused_by_name(folder):
    old = 'case "$1" in --version) echo Python 3.9.2;; *) exit 1;; esac'
    failed = folder.run("make", "book", fake_python(folder, old))
    assert failed.returncode != 0
    assert "Python 3.11 or newer, and './python' is: Python 3.9.2" in failed.stdout
    assert not (folder.root / ".venv").exists()


def test_a_python_that_is_not_there_is_named(folder):
    failed = folder.run("make", "book", "PYTHON=no-such-python")
    assert failed.returncode != 0
    assert "'no-such-python'" in failed.stdout


def test_a_python_without_venv_is_answered_with_the_package_to_install(folder):
    without = 'case "$2" in *venv*) exit 1;; *) exit 0;; esac'
    failed = folder.run("make", "book", fake_python(folder, without))
    assert failed.returncode != 0
    assert "python3-venv" in failed.stdout
    assert not (folder.root / ".venv").exists()


def test_without_a_gpu_the_gpu_test_says_so_in_a_line(folder):
    (folder.root / ".venv").symlink_to(sys.prefix)
    shown = folder.run(
        "make", "-o", ".venv/.installed", "test-gpu", CUDA_VISIBLE_DEVICES=""
    )
    assert shown.returncode == 0, shown.stdout
    assert shown.stdout == "No CUDA GPU here: nothing to test.\n"


def test_with_a_gpu_every_notebook_is_told_to_use_it(folder):
    # stands in for torch, which finds a GPU, and for pytest
    python = 'case "$1" in -c) exit 0;; *) echo "$ANNOTATED_DEVICE: $*";; esac'
    folder.write(".venv/bin/python", f"#!/bin/sh\n{python}\n")
    (folder.root / ".venv/bin/python").chmod(0o755)
    folder.write("notebooks/01_tiny.ipynb", "")
    shown = folder.run("make", "-o", ".venv/.installed", "test-gpu")
    assert shown.returncode == 0, shown.stdout
    assert shown.stdout.startswith("cuda: -m pytest")
    assert "--nbval-lax" in shown.stdout
    assert "notebooks/01_tiny.ipynb" in shown.stdout


def test_a_benchmark_runs_by_its_name_where_the_peers_are(folder):
    (folder.root / ".venv-bench/bin").mkdir(parents=True)
    folder.write(".venv-bench/bin/python", '#!/bin/sh\necho "ran $*"\n')
    (folder.root / ".venv-bench/bin/python").chmod(0o755)
    quiet = "make", "-o", ".venv-bench/.installed", "bench"
    assert folder.run(*quiet).stdout == "ran -m benchmarks\n"
    assert folder.run(*quiet, "NAME=rhyme").stdout == "ran -m benchmarks rhyme\n"


def test_clean_removes_what_is_built_and_nothing_else(folder):
    before = {path for path in folder.root.rglob("*") if path.is_file()}
    for name in ("_build/html/a.html", "annotated/__pycache__/a.pyc", ".ruff_cache/a"):
        folder.write(name, "")
    folder.write(".venv/lib/__pycache__/a.pyc", "")
    assert folder.run("make", "clean").returncode == 0
    after = {path for path in folder.root.rglob("*") if path.is_file()}
    assert after - before == {folder.root / ".venv/lib/__pycache__/a.pyc"}
    assert before <= after


def test_a_failing_stage_does_not_hide_the_later_ones(folder):
    (folder.root / ".venv/bin").mkdir(parents=True)
    folder.write(".venv/bin/python", '#!/bin/sh\necho "ran $*"\nexit 1\n')
    (folder.root / ".venv/bin/python").chmod(0o755)
    # old, then newer than what they depend on: nothing is to be installed
    folder.write(".venv/.installed", "")
    failed = folder.run("make", "test")
    assert failed.returncode != 0
    for ran in ("ruff check", "tools.notebooks --check", "-n 2", "tests.mutants"):
        assert re.search(rf"^ran .*{ran}", failed.stdout, re.M), ran
    assert "\nFailed: test-lint test-in-step test-notebooks " in failed.stdout
    assert "All tests passed" not in failed.stdout


def test_when_all_stages_pass_it_says_so(folder):
    (folder.root / ".venv/bin").mkdir(parents=True)
    tools = re.findall(r"\$\(BIN\)/([\w-]+)", folder.read("Makefile"))
    for name in {"python", *tools}:
        folder.write(f".venv/bin/{name}", "#!/bin/sh\n")
        (folder.root / ".venv/bin" / name).chmod(0o755)
    folder.write(".venv/.installed", "")
    passed = folder.run("make", "test")
    assert passed.returncode == 0, passed.stdout
    assert passed.stdout.endswith("All tests passed.\n")
