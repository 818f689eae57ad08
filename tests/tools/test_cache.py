"""tools/cache.py: outputs hold until something changes that they depend on."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import cache

CODE = """\
%%time
try:
    from annotated.answer import ANSWER
except ModuleNotFoundError:
    %pip install annotated
explorer(static("explorer.js"), recorded("run"))
check("ch01-tiny", ANSWER)
ch02.draw()"""

FILES = {
    "annotated/answer.py": "def ANSWER():\n    import annotated.deeper\n",
    "annotated/deeper.py": "",
    "annotated/other.py": "",
    "annotated/checks/__init__.py": "'''Such as ch02-other.'''\n",
    "annotated/chapters/__init__.py": "",
    "annotated/chapters/ch01/__init__.py": "",
    "annotated/chapters/ch02/__init__.py": "",
    "annotated/chapters/ch01/checks.py": "from annotated.checks import material\n",
    "annotated/chapters/ch02/checks.py": "",
    "annotated/checks/material.py": "",
    "annotated/page/static/explorer.js": 'load("shared.js", "folder/part.js")',
    "annotated/page/static/folder/part.js": "",
    "annotated/page/static/other.js": "",
    "annotated/page/static/shared.js": "",
    "book/results/other.json": "{}",
}


@pytest.fixture
def notebook(book):
    for name, text in FILES.items():
        book.write(name, text)
    cells = [new_markdown_cell("# recorded other, as prose"), new_code_cell(CODE)]
    return new_notebook(cells=cells)


def place(book, notebook):
    return cache.place(book.root / "notebooks/01_tiny.ipynb", notebook, book.root)


@pytest.mark.parametrize(
    "name",
    [
        "annotated/__init__.py",
        "annotated/answer.py",
        "annotated/deeper.py",
        "annotated/chapters/ch01/checks.py",
        "annotated/checks/material.py",
        "annotated/page/static/explorer.js",
        "annotated/page/static/folder/part.js",
        "annotated/page/static/shared.js",
        "book/results/run.json",
        "requirements.txt",
    ],
)
def test_an_edit_of_what_is_used_counts_until_it_is_taken_back(book, notebook, name):
    before, text = place(book, notebook), book.read(name)
    book.write(name, text + "# edited\n")
    assert place(book, notebook) != before
    book.write(name, text)
    assert place(book, notebook) == before


@pytest.mark.parametrize(
    "name",
    [
        "annotated/other.py",
        "annotated/chapters/ch02/checks.py",
        "annotated/page/static/other.js",
        "book/results/other.json",
        "book/intro.md",
    ],
)
def test_an_edit_of_anything_else_does_not(book, notebook, name):
    before = place(book, notebook)
    book.write(name, "'edited'\n")
    assert place(book, notebook) == before


def test_code_counts_and_prose_does_not(book, notebook, monkeypatch):
    before = place(book, notebook)
    prose, code = notebook.cells
    prose.source = "# another title"
    code.metadata.tags = ["hide-input"]
    assert place(book, notebook) == before
    code.metadata.tags = ["raises-exception"]
    tolerant = place(book, notebook)
    code.source += "\n"
    edited = place(book, notebook)
    monkeypatch.setenv("ANNOTATED_DEVICE", "cuda")
    assert len({before, tolerant, edited, place(book, notebook)}) == 4


def test_the_last_outputs_are_kept_and_given_to_the_notebook(book, notebook):
    output = new_output("stream", text="done")
    notebook.cells[1].outputs = [output]
    for pins in ("torch==1\n", "torch==2\n"):
        book.write("requirements.txt", pins)
        cache.keep(notebook, place(book, notebook))
    (kept,) = (book.root / cache.FOLDER / "notebooks").iterdir()
    assert kept == place(book, notebook)

    fresh = new_notebook(cells=[new_code_cell(CODE)])
    cache.take_outputs(fresh, cache.read(kept))
    assert fresh.cells[0].outputs == [output]
