"""What the Makefile removes, leaves out and reports."""

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


def test_without_a_gpu_the_gpu_test_says_so_in_a_line(folder):
    (folder.root / ".venv").symlink_to(sys.prefix)
    shown = folder.run(
        "make", "-o", ".venv/.installed", "test-gpu", CUDA_VISIBLE_DEVICES=""
    )
    assert shown.returncode == 0, shown.stdout
    assert shown.stdout == "No CUDA GPU here: nothing to test.\n"


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
    assert "-m not slow" in failed.stdout and "tests.mutants --all" not in failed.stdout
    everything = folder.run("make", "test-all").stdout
    assert "not slow" not in everything and "tests.mutants --all" in everything


def test_when_all_stages_pass_it_says_so(folder):
    (folder.root / ".venv/bin").mkdir(parents=True)
    tools = re.findall(r"\$\(BIN\)/([\w-]+)", folder.read("Makefile"))
    for name in {"python", *tools}:
        folder.write(f".venv/bin/{name}", "#!/bin/sh\n")
        (folder.root / ".venv/bin" / name).chmod(0o755)
    folder.write(".venv/.installed", "")
    folder.write("_build/html/index.html", "")
    passed = folder.run("make", "test")
    assert passed.returncode == 0, passed.stdout
    assert passed.stdout.endswith("All tests passed.\n")
