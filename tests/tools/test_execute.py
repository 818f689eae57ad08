"""tools/execute.py and the book's build: one cache, and failures that stay failures."""

import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from jupyter_cache import get_cache

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "notebooks/src/01_tiny.py"
TARGET = "notebooks/01_tiny.ipynb"


def executions(book):
    """How often the notebook ran: it leaves a line each time."""
    runs = book.root / "notebooks/runs.txt"
    return len(runs.read_text().splitlines()) if runs.exists() else 0


def cached_text(book):
    """What the last cell showed, as the newest cache has it."""
    caches = (book.root / "_build/.jupyter_cache").iterdir()
    newest = max(caches, key=lambda path: path.stat().st_mtime)
    notebook = nbformat.reads(book.read(TARGET), as_version=4)
    _, executed = get_cache(newest).merge_match_into_notebook(notebook)
    return executed.cells[-1].outputs[0].data["text/plain"]


def build(book):
    """`make book` in the fixture, with this environment as its .venv."""
    return book.run("make", "-o", ".venv/.installed", "book")


@pytest.fixture
def press(workshop):
    """A book that `make book` can build."""
    root = workshop.root
    shutil.copy(ROOT / "Makefile", root)
    (root / ".venv").symlink_to(sys.prefix)
    for folder in (ROOT / "book").iterdir():
        if folder.is_dir() and folder.name not in ("_ext", "results"):
            (root / "book" / folder.name).symlink_to(folder)
    # a copy: it takes the folder that it lies in for the book
    copied = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "book/_ext", root / "book/_ext", ignore=copied)
    workshop.write("book/intro.md", "# Tiny\n\nAll is well {cite}`one`.\n")
    workshop.write("book/references.md", "# References\n\n```{bibliography}\n```\n")
    workshop.write(
        "book/references.bib",
        "@book{one, title={One}, author={Doe, Jo}, year={1}, publisher={Us}}\n",
    )
    workshop.write(
        "_toc.yml",
        "format: jb-book\nroot: book/intro\nchapters:\n"
        "  - file: notebooks/01_tiny\n  - file: book/references\n",
    )
    return workshop


def test_executes_once_and_again_only_after_an_edit_in_annotated(workshop):
    workshop.tool("notebooks")
    first = workshop.tool("execute")
    assert first.returncode == 0, first.stdout
    assert f"starts  {TARGET}" in first.stdout
    assert f"done    {TARGET}" in first.stdout
    assert "CPU-s" in first.stdout
    assert executions(workshop) == 1
    assert cached_text(workshop) == "42"

    again = workshop.tool("execute")
    assert again.returncode == 0, again.stdout
    assert "1 of 1 notebooks" in again.stdout
    assert executions(workshop) == 1

    workshop.replace("annotated/answer.py", "41", "42")
    edited = workshop.tool("execute")
    assert edited.returncode == 0, edited.stdout
    assert executions(workshop) == 2
    assert cached_text(workshop) == "43"


def test_a_cell_that_fails_is_shown_and_fails_again(workshop):
    workshop.replace(SOURCE, "ANSWER + first", "ANSWER + 'first'")
    workshop.write(
        "notebooks/src/02_good.py", workshop.read("notebooks/src/01_tiny.py")
    )
    workshop.replace("notebooks/src/02_good.py", "ANSWER + 'first'", "ANSWER + 2")
    workshop.tool("notebooks")
    for attempt in range(2):
        failed = workshop.tool("execute")
        assert failed.returncode == 1
        assert f"{TARGET} failed" in failed.stdout
        assert "ANSWER + 'first'" in failed.stdout
        assert "TypeError: unsupported operand" in failed.stdout
        assert "\x1b" not in failed.stdout
        # the good one ran, and only once
        assert ("done    notebooks/02_good.ipynb" in failed.stdout) == (attempt == 0)


def test_a_kernel_that_dies_is_a_failure_of_its_notebook(workshop):
    workshop.replace(SOURCE, "first = 1", "import os\n\nos._exit(3)\nfirst = 1")
    workshop.tool("notebooks")
    failed = workshop.tool("execute")
    assert failed.returncode == 1
    assert f"{TARGET} failed" in failed.stdout
    assert "DeadKernelError" in failed.stdout


def test_a_cell_that_takes_too_long_is_a_failure_of_its_notebook(workshop):
    workshop.replace(SOURCE, "first = 1", "import time\n\nfirst = time.sleep(60)")
    workshop.tool("notebooks")
    failed = workshop.tool("execute", "--timeout", "1")
    assert failed.returncode == 1
    assert "timed out" in failed.stdout
    assert "time.sleep(60)" in failed.stdout


def test_a_cache_that_cannot_be_written_is_answered_without_a_traceback(workshop):
    workshop.tool("notebooks")
    workshop.write("in_the_way", "")
    failed = workshop.tool("execute", ANNOTATED_CACHE="in_the_way/cache")
    assert failed.returncode == 1
    assert "in_the_way/cache" in failed.stdout
    assert "ANNOTATED_CACHE" in failed.stdout
    assert "Traceback" not in failed.stdout


def test_the_build_takes_its_outputs_from_the_same_cache(press):
    first = build(press)
    assert first.returncode == 0, first.stdout
    assert "Using cached notebook" in first.stdout
    page = press.read("_build/html/notebooks/01_tiny.html")
    assert "42" in page
    assert executions(press) == 1

    second = build(press)
    assert second.returncode == 0, second.stdout
    assert executions(press) == 1

    press.replace("annotated/answer.py", "41", "6")
    third = build(press)
    assert third.returncode == 0, third.stdout
    assert executions(press) == 2
    assert "<span></span>7\n" in press.read("_build/html/notebooks/01_tiny.html")


def test_a_broken_cell_fails_the_build_each_time(press):
    press.replace(SOURCE, "ANSWER + first", "ANSWER / 0")
    for _ in range(2):
        failed = build(press)
        assert failed.returncode != 0
        assert "ZeroDivisionError" in failed.stdout


def test_a_broken_citation_or_link_fails_the_build_each_time(press):
    press.replace("book/intro.md", "`one`", "`two`")
    press.replace("book/intro.md", "well", "[well](missing.md), {ref}`unheard-of`")
    press.replace(SOURCE, "no time", "no [time](#no-such-heading)")
    for _ in range(2):  # an incremental build would pass the second time
        failed = build(press)
        assert failed.returncode != 0
        warnings = [line for line in failed.stdout.splitlines() if "WARNING" in line]
        for broken in ("two", "missing.md", "unheard-of", "no-such-heading"):
            assert any(broken in line for line in warnings), f"{broken}: no warning"
