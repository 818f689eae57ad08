"""tools/execute.py, its plugin and the book's build: executed once, and shown."""

import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from tools import notebook_named, page

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "notebooks/src/01_tiny.py"
TARGET = "notebooks/01_tiny.ipynb"


def executions(book):
    """How often the notebook ran: it leaves a line each time."""
    runs = book.root / "notebooks/runs.txt"
    return len(runs.read_text().splitlines()) if runs.exists() else 0


def kept(book, stem="01_tiny"):
    """What the cache has of a notebook: nothing, or one run."""
    files = (book.root / "_build/executed/notebooks").glob(f"{stem}.*")
    return [nbformat.read(file, as_version=4) for file in files]


def test_executes_once_and_again_after_an_edit_of_what_it_imports(workshop):
    workshop.tool("notebooks")
    first = workshop.tool("execute")
    assert first.returncode == 0, first.stdout
    assert "CPU-s  notebooks/01_tiny.ipynb" in first.stdout
    (executed,) = kept(workshop)
    assert executed.cells[-1].outputs[0].data["text/plain"] == "42"

    workshop.write("annotated/unused.py", "")
    again = workshop.tool("execute")
    assert again.returncode == 0, again.stdout
    assert again.stdout == "1 of 1 notebooks are in the cache\n"
    assert executions(workshop) == 1

    workshop.replace("annotated/answer.py", "41", "42")
    edited = workshop.tool("execute")
    assert edited.returncode == 0, edited.stdout
    assert executions(workshop) == 2
    (executed,) = kept(workshop)
    assert executed.cells[-1].outputs[0].data["text/plain"] == "43"


CELLS = """\
print("one"); display({"text/plain": "figure"}, raw=True); print("two")

import sys; print("beside", file=sys.stderr); 6 * 7

from IPython.display import clear_output, display
print("gone"); clear_output(); print("here"); handle = display("old", display_id=True)

handle.update("new")

import ipywidgets; ipywidgets.IntSlider(value=3, description="k")

1 / 0"""


def without_chance(notebook):
    """Outputs, without what differs from run to run."""
    outputs = []
    for cell in notebook.cells:
        for output in cell.outputs:
            output.pop("execution_count", None)
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
            output.pop("traceback", None)  # holds the number of the cell
        outputs.append(cell.outputs)
    return outputs


@pytest.mark.slow
def test_what_nbval_executed_is_kept_as_nbclient_would_have_it(workshop):
    cells = [new_code_cell(source) for source in CELLS.split("\n\n")]
    cells[-1].metadata.tags = ["raises-exception"]
    notebook = new_notebook(cells=cells)
    nbformat.write(notebook, workshop.root / TARGET)
    done = workshop.tool("execute", TARGET)
    assert done.returncode == 0, done.stdout
    (executed,) = kept(workshop)
    NotebookClient(notebook, record_timing=False).execute()
    assert without_chance(executed) == without_chance(notebook)
    assert "widgets" not in executed.metadata
    first = executed.cells[0].outputs
    assert [o.get("text") or o.data["text/plain"] for o in first] == [
        "one\n",
        "figure",
        "two\n",
    ]
    assert executed.cells[2].outputs[1].data["text/plain"] == "'new'"


FAULTS = {  # notebook: its fault in place of `first = 1`, and what is said about it
    "02_wrong": ("first = None", "unsupported operand"),
    "03_dead": (
        "import os\n\nfirst = os._exit(3)",
        "FAILED notebooks/03_dead.ipynb",
    ),
    "04_slow": ("import time\n\nfirst = time.sleep(60)", "Timeout of 5 seconds"),
    # no failure, but nobody knows which text of the module was imported
    "05_edited": ("open('../annotated/answer.py', 'a').write('#')\nfirst = 1", ""),
}


@pytest.mark.slow
def test_a_notebook_that_fails_is_not_kept_and_hides_no_other(workshop):
    for stem, (fault, _) in FAULTS.items():
        source = f"notebooks/src/{stem}.py"
        workshop.write(source, workshop.read(SOURCE))
        workshop.replace(source, "first = 1", fault)
    workshop.tool("notebooks")
    # Apart: on a busy machine, five seconds can be too few for any notebook.
    hang = [f"notebooks/{stem}.ipynb" for stem in ("03_dead", "04_slow")]
    ends = [f"notebooks/{stem}.ipynb" for stem in ("02_wrong", "05_edited", "01_tiny")]
    hung = workshop.tool("execute", "--timeout", "5", "--jobs", "1", *hang)
    ended = workshop.tool("execute", "--jobs", "1", *ends)
    assert hung.returncode == ended.returncode == 1
    for stem, (_, message) in FAULTS.items():
        assert message in hung.stdout + ended.stdout, stem
        assert not kept(workshop, stem)
    assert kept(workshop)


# ---- the build --------------------------------------------------------------


@pytest.fixture
def press(workshop):
    """A book that `make book` can build."""
    root = workshop.root
    shutil.copy(ROOT / "Makefile", root)
    (root / ".venv").symlink_to(sys.prefix)
    for folder in (ROOT / "book").iterdir():
        if folder.is_dir() and folder.name not in ("_ext", "results", "exercises"):
            (root / "book" / folder.name).symlink_to(folder)
    # a copy: it takes the folder that it lies in for the book
    copied = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "book/_ext", root / "book/_ext", ignore=copied)
    for real in (ROOT / "annotated/page").glob("*.py"):  # what the extensions import
        if not (root / "annotated/page" / real.name).exists():
            shutil.copy(real, root / "annotated/page")
    static = root / "annotated/page/static"
    static.mkdir(exist_ok=True)
    for name in (
        "tokens.css",
        "spelling_model.js",
        "films_model.js",
        "refinement_model.js",
    ):
        shutil.copy(ROOT / "annotated/page/static" / name, static)
    shutil.copy(ROOT / "CITATION.cff", root)
    workshop.write("book/intro.md", "# Tiny\n\nAll is well {cite}`one`.\n")
    workshop.write("book/bibliography.md", "# References\n\n```{bibliography}\n```\n")
    workshop.write(
        "book/references.bib",
        "@book{one, title={One}, author={Doe, Jo}, year={1}, publisher={Us}}\n",
    )
    workshop.write(
        "_toc.yml",
        "format: jb-book\nroot: book/intro\nchapters:\n"
        "  - file: notebooks/01_tiny\n  - file: book/bibliography\n",
    )
    return workshop


def build(book, *arguments):
    """`make book` in the fixture, with this environment as its .venv."""
    return book.run("make", "-o", ".venv/.installed", "book", *arguments)


@pytest.mark.slow
def test_fails_while_anything_is_broken_and_then_shows_what_was_executed(press):
    faults = {
        "two": ("book/intro.md", "`one`", "`two`"),
        "missing.md": ("book/intro.md", "All is", "[All](missing.md) is"),
        "unheard-of": ("book/intro.md", "well", "well {ref}`unheard-of`"),
        "no-such-heading": (SOURCE, "no time", "no [time](#no-such-heading)"),
    }
    for fault in faults.values():
        press.replace(*fault)
    for _ in range(2):  # the second one reads the pages again, as there were warnings
        failed = build(press)
        assert failed.returncode != 0
        warnings = [line for line in failed.stdout.splitlines() if "WARNING" in line]
        for broken in faults:
            assert any(broken in line for line in warnings), f"{broken}: no warning"
    built = "_build/html/notebooks/01_tiny.html"
    assert "<span></span>42\n" in press.read(built)
    assert executions(press) == 1

    for name, sound, broken in faults.values():
        press.replace(name, broken, sound)
    press.replace("annotated/answer.py", "41", "6")
    again = build(press, "STRICT=")
    assert again.returncode == 0, again.stdout
    assert "<span></span>7\n" in press.read(built)
    assert executions(press) == 2

    # it may have warned, so all pages are read; after that, those that have changed
    whole, same = build(press), build(press)
    press.replace("book/intro.md", "All is", "Everything is")
    edited = build(press)
    assert not any(built.returncode for built in (whole, same, edited)), whole.stdout
    assert "3 added, 0 changed" in whole.stdout
    assert "0 added, 0 changed" in same.stdout
    assert "0 added, 1 changed" in edited.stdout
    assert "Everything is" in press.read("_build/html/book/intro.html")

    press.replace("annotated/answer.py", "6", "7")
    stale = press.run(f"{sys.prefix}/bin/jupyter-book", "build", ".", "--all")
    assert stale.returncode != 0
    assert "notebooks/01_tiny: not executed as it is now" in stale.stdout


@pytest.mark.slow
def test_one_page_is_built_without_the_others(press):
    press.tool("notebooks")
    press.write("notebooks/02_broken.ipynb", "{}")
    done = press.run(".venv/bin/python", "-m", "tools.page", "01")
    assert done.returncode == 0, done.stdout
    built = done.stdout.splitlines()[-1].removeprefix("The page: ")
    assert "<span></span>42\n" in press.read(built)


@pytest.mark.parametrize("name", ["", "x", "21", "13b_"])
def test_a_name_that_begins_no_notebook_is_refused(name):
    with pytest.raises(SystemExit, match=f"as 08 or 13b, got '{name}'"):
        page.main([name])


def test_a_page_is_named_by_its_number_or_its_path():
    names = "1", "01", "notebooks/01_seq2seq_attention.ipynb", "13b"
    found = [notebook_named(name).name[:3] for name in names]
    assert found == ["01_"] * 3 + ["13b"]
