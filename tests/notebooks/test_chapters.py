"""What every chapter has to be, as far as its text alone can show it.

(`make test-in-step` sees to it that a notebook is what its source makes of it.)
"""

import ast
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from tools import source

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))

# A chapter has one main page; deeper ones, NNb_…, stand under it.
MAIN = [path for path in CHAPTERS if path.stem[2] == "_"]
MINUTES = {True: 35, False: 20}  # a main page; a deeper one
WORDS, LINES = 200, 12  # a minute's reading

# The parts of a chapter that leave a call in it, or a heading (see each message).
CALLS = {
    "check_close": "the proof that derivation, module and reference agree",
    "show_source": "the class that ships, from the module's own source",
}
MOVING = {"explorer", "play"}  # or a chapter's own, whose cell says "Try it"
PICTURED = {"chain", "blocks"}  # or a chapter's own drawings, of annotated.page.chNN
HEADINGS = ("pitfalls", "exercises", "remember", "further reading")
FOLDED = {"setup", "hide-input", "hide-cell", "remove-input", "remove-cell"}


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def chapter(path):
    return nbformat.read(path, as_version=4)


def in_sight(chapter):
    """The code cells that the page shows unfolded."""
    return [
        cell
        for cell in code_cells(chapter)
        if not FOLDED & set(cell.metadata.get("tags", []))
    ]


def code_cells(chapter):
    return [cell for cell in chapter.cells if cell.cell_type == "code"]


def calls(chapter):
    """Every call of a plain name in the chapter, as (name, node)."""
    for cell in code_cells(chapter):
        tree = ast.parse(TransformerManager().transform_cell(cell.source))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                yield node.func.id, node


def headings(chapter):
    lines = [
        line
        for cell in chapter.cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
    ]
    return [line.lower() for line in lines if line.startswith("## ")]


def test_there_are_chapters():
    assert CHAPTERS, "notebooks/ holds no .ipynb"


def test_opens_with_its_title_and_goes_on_with_the_setup_cell(chapter):
    first, second = chapter.cells[:2]
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")
    assert source.is_setup(second)


@pytest.mark.parametrize("path", MAIN, ids=lambda path: path.stem, indirect=True)
def test_has_the_parts_of_a_chapter(chapter):
    called = {name for name, _ in calls(chapter)}
    code = "\n".join(cell.source for cell in code_cells(chapter))
    drawn = set(re.findall(r"^ch\d\d\.", code, re.MULTILINE))
    for name, part in CALLS.items():
        assert name in called, f"no {name}(…): {part}"
    moves = called & MOVING or "#@title Try it" in code
    assert moves, f"no interactive figure: one of {sorted(MOVING)}"
    pictured = called & PICTURED or drawn
    assert pictured, f"no picture of matrices or blocks: {sorted(PICTURED)}"
    titles = headings(chapter)
    for part in HEADINGS:
        assert any(part in title for title in titles), f"no section {part!r}"


def test_is_read_in_the_time_that_a_page_may_take(path, chapter):
    prose = [cell.source for cell in chapter.cells if cell.cell_type == "markdown"]
    words = sum(len(re.findall(r"[\w'’-]+", text)) for text in prose)
    lines = [
        line
        for cell in in_sight(chapter)
        for line in cell.source.splitlines()
        if line.strip()
    ]
    minutes = words / WORDS + len(lines) / LINES
    assert minutes <= MINUTES[path in MAIN], f"{words} words, {len(lines)} lines"


def test_what_only_proves_is_folded(chapter):
    """No assertion stands in sight, and a folded proof says what it established."""
    bare = [cell.source for cell in in_sight(chapter) if "assert " in cell.source]
    assert bare == []
    for cell in code_cells(chapter):
        tags = set(cell.metadata.get("tags", []))
        assert "proof" not in tags or "hide-input" in tags, cell.source


def test_a_cell_is_one_thought(chapter):
    cells = []
    for cell in in_sight(chapter):
        lines = [line for line in cell.source.splitlines() if line.strip()]
        cells.append((len(lines), lines[0]))
    assert [cell for cell in cells if cell[0] > 25] == []
    median = statistics.median(length for length, _ in cells)
    assert median <= 8, f"half of the code cells have {median} lines or more"


def test_open_cells_run_without_the_folded_ones(chapter, tmp_path):
    """A learner who skips proofs and drawings meets no NameError."""
    chapter.cells = [
        cell
        for cell in chapter.cells
        if cell.metadata.get("cellView") != "form"
        or "setup" in cell.metadata.get("tags", [])
    ]
    nbformat.write(chapter, tmp_path / "open.ipynb")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821"]
    options = ["--output-format", "json", str(tmp_path)]
    found = subprocess.run([*command, *options], capture_output=True, text=True)
    names = {re.search("`(.*)`", one["message"])[1] for one in json.loads(found.stdout)}
    assert names == set()


def test_no_comment_splits_a_paragraph(chapter):
    """A line that begins a comment ends the paragraph before it (CommonMark 4.6)."""
    split = re.compile(r"[^\n>]\n<!--(?:[^-]|-(?!->))*-->\n(?!\n|<|[-*$#] )[^\n]+")
    for cell in chapter.cells:
        if cell.cell_type == "markdown":
            found = split.search(cell.source)
            assert not found, found and found[0]
