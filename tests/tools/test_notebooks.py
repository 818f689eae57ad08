"""tools/notebooks.py, tools/source.py: one way, stable ids, nothing left of a run."""

import ast
import json
import sys
from types import ModuleType

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from tools import notebooks, source

SOURCE = "notebooks/src/01_tiny.py"
TARGET = "notebooks/01_tiny.ipynb"


def generate(book):
    assert notebooks.main([], book.root) == 0
    return nbformat.reads(book.read(TARGET), as_version=4)


def ids(notebook):
    return [cell.id for cell in notebook.cells]


def edit_notebook(book, change):
    notebook = json.loads(book.read(TARGET))
    change(notebook)
    book.write(TARGET, json.dumps(notebook, indent=1))


# ---- what is generated ------------------------------------------------------


def test_generates_a_valid_notebook_without_outputs(book):
    notebook = generate(book)
    nbformat.validate(notebook)
    assert [cell.cell_type for cell in notebook.cells] == [
        "markdown",
        "code",
        "code",
        "markdown",
        "code",
        "code",
    ]
    assert notebook.metadata.kernelspec.name == "python3"
    assert notebooks.leftovers(notebook) == []


def test_two_people_generate_the_same_bytes_and_again_nothing_is_written(book):
    first = generate(book)
    text, path = book.read(TARGET), book.root / TARGET
    before = path.stat().st_mtime_ns
    generate(book)
    assert path.stat().st_mtime_ns == before
    path.unlink()
    assert ids(generate(book)) == ids(first)
    assert book.read(TARGET) == text


def test_an_edit_in_place_is_a_diff_of_one_line(book):
    generate(book)
    before = book.read(TARGET).splitlines()
    book.replace(SOURCE, "first = 1\n", "first = 2\n")
    generate(book)
    after = book.read(TARGET).splitlines()
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert changed == [('    "first = 1\\n",', '    "first = 2\\n",')]


def test_a_new_cell_leaves_the_other_ids_alone(book):
    before = ids(generate(book))
    book.replace(SOURCE, "# %%\nwith", "# %%\nsecond = 2\n\n# %%\nwith")
    after = generate(book)
    new = [cell for cell in after.cells if cell.id not in before]
    assert [cell.source for cell in new] == ["second = 2"]
    assert [i for i in ids(after) if i in before] == before


def test_a_moved_cell_keeps_its_id(book):
    cell = '# %%\nfirst = 1\nprint("device", device)\n\n'
    before = generate(book)
    moved = next(c.id for c in before.cells if c.source.startswith("first"))
    book.replace(SOURCE, cell, "")
    book.write(SOURCE, book.read(SOURCE) + "\n" + cell)
    after = generate(book)
    assert after.cells[-1].id == moved
    assert set(ids(after)) == set(ids(before))


def test_cells_that_are_alike_get_ids_of_their_own(book):
    book.write(SOURCE, book.read(SOURCE) + "\n# %%\nfirst\n\n# %%\nfirst\n")
    after = ids(generate(book))
    assert len(set(after)) == len(after) == 8


def test_ids_that_a_merge_has_doubled_are_mended(book):
    good = ids(generate(book))
    edit_notebook(book, lambda n: n["cells"][5].update(id=n["cells"][2]["id"]))
    mended = ids(generate(book))
    assert mended[:5] == good[:5]
    assert len(set(mended)) == len(mended)


def test_what_a_run_or_an_editor_left_is_stripped(book):
    generate(book)
    clean = book.read(TARGET)

    def run(notebook):
        notebook["metadata"]["widgets"] = {"state": {}}
        notebook["cells"][2]["metadata"]["tags"] = ["hide-cell"]
        notebook["cells"][4]["source"] = ["first = 3"]
        notebook["cells"][2]["execution_count"] = 3
        notebook["cells"][2]["outputs"] = [
            {"name": "stdout", "output_type": "stream", "text": ["1"]}
        ]

    edit_notebook(book, run)
    generate(book)
    assert book.read(TARGET) == clean


def test_tags_and_mystnb_metadata_reach_the_notebook(book):
    header = '# %% tags=["hide-input"] mystnb={"image": {"alt": "a line"}}\nfirst = 1\n'
    book.replace(SOURCE, "# %%\nfirst = 1\n", header)
    cell = generate(book).cells[2]
    assert cell.metadata["tags"] == ["hide-input"]
    assert cell.metadata["mystnb"] == {"image": {"alt": "a line"}}


# ---- what is folded --------------------------------------------------------


def folded(book, header, code):
    """The metadata of a cell, and its lines."""
    book.replace(SOURCE, "# %%\nfirst = 1\n", f"# %%{header}\n{code}\nfirst = 1\n")
    cell = next(c for c in generate(book).cells if c.source.endswith("device)"))
    return cell.metadata, cell.source.splitlines()


@pytest.mark.parametrize("tag", ["hide-input", "hide-cell", "remove-input"])
def test_what_the_page_folds_is_folded_everywhere_under_its_title(book, tag):
    metadata, lines = folded(book, f' What is inside tags=["{tag}"]', "x = 1")
    assert lines[:2] == ["#@title What is inside", "x = 1"]
    assert metadata["cellView"] == "form" and "title" not in metadata
    assert metadata["jupyter"] == {"source_hidden": True}


def test_what_is_in_sight_stays_in_sight(book):
    metadata, lines = folded(book, "", "x = 1")
    assert lines[0] == "x = 1" and metadata == {}
    with pytest.raises(AssertionError):  # nobody would see the title
        folded(book, " A title", "y = 2")


@pytest.mark.parametrize(
    ("tag", "code", "title"),
    [
        (
            "hide-cell",
            'show(f, alt="Two bars. One is", caption="C")',
            "Figure: Two bars",
        ),
        ("hide-cell", 'show_table(["a"], [], "Loss by step")', "Table: Loss by step"),
        (
            "hide-cell",
            'explorer(s, d, c, label="Build a mask")',
            "Try it: Build a mask",
        ),
        ("proof", 'check_close("equals the loop", a, b)', "Proof: equals the loop"),
        ("proof", 'check_same("equals x", f, g, x)', "Proof: equals x"),
        ("proof", "assert 1", "Proof"),
        ("hide-cell", "say(f'{x}')", "The sentence below, with its numbers"),
        ("hide-cell", "%time x = 2", "Code"),
        ("hide-cell", f'chain(a, alt="{"word " * 30}")', "Picture: word"),
    ],
)
def test_a_title_follows_from_what_the_cell_shows(book, tag, code, title):
    _, lines = folded(book, f' tags=["hide-input", "{tag}"]', code)
    assert lines[0].startswith(f"#@title {title}") and len(lines[0]) < 85


# ---- the setup cell ---------------------------------------------------------


def test_the_setup_cell_is_short_and_leaves_torch_and_numpy_alone():
    text = source.setup_cell()
    where = source.repository()
    assert len(text.splitlines()) <= 6
    assert f"git+{where['url']}@{where['branch']}" in text
    assert "torch" not in text.replace("annotated-transformers", "")
    assert "numpy" not in text


def test_the_setup_cell_reaches_the_notebook_with_its_tag(book):
    (cell,) = [c for c in generate(book).cells if source.is_setup(c)]
    title, _, code = cell.source.partition("\n")
    assert code == source.IMPORTS + source.setup_cell(book.root) and title.startswith(
        "#@title Set-up"
    )


def test_the_setup_cell_installs_what_is_missing_and_goes_on(monkeypatch):
    def install(magic, line):
        installed.append((magic, line))
        for name in ("annotated", "annotated.page.notebook"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        sys.modules["annotated.page.notebook"].setup = lambda seed: (
            f"device, seed {seed}"
        )

    installed = []
    shell = ModuleType("shell")
    shell.run_line_magic = install
    monkeypatch.setitem(sys.modules, "annotated", None)  # so that importing fails
    monkeypatch.setitem(sys.modules, "annotated.page.notebook", None)
    code = TransformerManager().transform_cell(source.setup_cell())
    names = {"get_ipython": lambda: shell}
    exec(compile(ast.parse(code), "setup cell", "exec"), names)
    assert names["device"] == "device, seed 0"
    ((magic, line),) = installed
    assert magic == "pip"
    assert line.startswith('install --quiet "annotated-transformers[notebooks] @ git')


SETUP = '# %% tags=["setup"]\n# (generated by tools/notebooks.py)\n'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (SETUP, "", "exactly one code cell tagged setup, found 0"),
        (SETUP, SETUP + "\n" + SETUP, "exactly one code cell tagged setup, found 2"),
        ("# (generated by", "# (made by", "holds only '# (generated by tools/"),
        ("# %%\nfirst", '# %% colour="red"\nfirst', "cell metadata ['colour']"),
    ],
)
@pytest.mark.parametrize("arguments", [[], ["--check"]])
def test_a_source_that_cannot_be_used_is_named(
    book, capsys, old, new, message, arguments
):
    book.replace(SOURCE, old, new)
    assert notebooks.main(arguments, book.root) == 1
    said = capsys.readouterr().err
    assert "notebooks/src/01_tiny.py" in said
    assert message in said
    assert not (book.root / TARGET).exists()


# ---- --check ----------------------------------------------------------------


def has_outputs(notebook):
    output = {"name": "stdout", "output_type": "stream", "text": ["1"]}
    notebook["cells"][2]["outputs"] = [output]


DRIFT = {
    "out of step with its source": lambda n: n["cells"][2].update(source=["first = 3"]),
    "has outputs": has_outputs,
    "has execution counts": lambda n: n["cells"][2].update(execution_count=1),
    "has metadata.widgets": lambda n: n["metadata"].update(widgets={}),
}


def check(book):
    """The exit code of `--check`, and whether it left every file alone."""
    files = {f: f.read_bytes() for f in book.root.rglob("*") if f.is_file()}
    code = notebooks.main(["--check"], book.root)
    now = {f: f.read_bytes() for f in book.root.rglob("*") if f.is_file()}
    assert now == files, "--check wrote"
    return code


def test_check_accepts_what_was_just_generated(book, capsys):
    generate(book)
    assert check(book) == 0
    assert "the notebooks of 1 source(s) are in step" in capsys.readouterr().out


@pytest.mark.parametrize("problem", DRIFT)
def test_check_names_a_notebook_that_was_changed(book, capsys, problem):
    generate(book)
    edit_notebook(book, DRIFT[problem])
    assert check(book) == 1
    assert f"{TARGET}: {problem}" in capsys.readouterr().err


def test_check_names_every_missing_notebook(book, capsys):
    book.write("notebooks/src/02_other.py", book.read(SOURCE))
    assert check(book) == 1
    said = capsys.readouterr().err
    assert f"{TARGET}: missing" in said
    assert "notebooks/02_other.ipynb: missing" in said


@pytest.mark.parametrize("text", ["", "[]", "<<<<<<< ours", '{"cells": 3}'])
def test_check_names_a_file_that_is_no_notebook(book, capsys, text):
    book.write(TARGET, text)
    assert check(book) == 1
    assert f"{TARGET}: not a notebook" in capsys.readouterr().err
    generate(book)
    assert check(book) == 0


def test_check_names_an_orphan_and_generating_leaves_it(book, capsys):
    generate(book)
    scratch = "notebooks/02_scratch.ipynb", "notebooks/exercises/01_tiny.ipynb"
    for name in scratch:
        book.write(name, book.read(TARGET))
    assert check(book) == 1
    said = capsys.readouterr().err
    generate(book)
    for name in scratch:
        assert f"{name}: orphaned, there is no notebooks/src/" in said
        assert (book.root / name).exists()


def test_a_page_of_exercises_without_a_source_is_removed(book):
    book.write("book/exercises/01_tiny.ipynb", "{}")
    generate(book)
    assert not (book.root / "book/exercises/01_tiny.ipynb").exists()
