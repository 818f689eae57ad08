"""Files under the names that learning platforms give them, and what is in them."""

import json
import os
import zipfile

import pytest

from grading.collect import collect, identify
from grading.normalise import context_cells, normalise, suspicions
from tests.exercises.submissions import Maker
from tools.exercises import (
    exercises,
    read_exercises,
    source_of,
    student_notebook,
)
from tools.source import setup_cell

NAMES = {
    "lovelaceada_4711_88001_02_self_attention.ipynb": ("lovelaceada", "4711"),
    "lovelaceada_LATE_4711_88001_02_self_attention-2.ipynb": ("lovelaceada", "4711"),
    "Ada Lovelace_4711_assignsubmission_file_02_self_attention.ipynb": (
        "ada_lovelace",
        "4711",
    ),
    "Ada Lovelace_4711_assignsubmission_file_/Copy of 02_x (1).ipynb": (
        "ada_lovelace",
        "4711",
    ),
    "ada/ch02/02_self_attention.ipynb": ("ada", ""),
    "ch02-ada/notebooks/exercises/02_self_attention.ipynb": ("ada", ""),
    "ada.ipynb": ("ada", ""),
    "ada@school.org - Copy of 02_self_attention (3).ipynb": ("ada@school.org", ""),
    "ada_02_self_attention.ipynb": ("ada", ""),
    "../../=cmd()_1_2_x.ipynb": ("cmd", "1"),
}


@pytest.mark.parametrize("path", NAMES)
def test_who_handed_a_file_in(path):
    who = identify(path)
    assert (who["student"], who.get("lms", "")) == NAMES[path]


@pytest.mark.parametrize(
    "path", ["02_self_attention.ipynb", "Copy of 02_self_attention.ipynb", "-.ipynb"]
)
def test_nobody_is_invented(path):
    assert identify(path) is None


def test_a_pattern_of_ones_own():
    pattern = r"group\d-(?P<student>\w+)-.*"
    assert identify("group7-ada-final.ipynb", pattern)["student"] == "ada"
    assert identify("ada.ipynb", pattern) is None


def notebook(*sources):
    cells = [{"cell_type": "code", "metadata": {}, "source": s} for s in sources]
    return json.dumps({"cells": cells})


def test_the_newest_of_several_counts_and_the_others_are_named(tmp_path):
    text = "# exercise: ch02-x"
    for name, when in [
        ("ada_1_7_02_x.ipynb", 300),
        ("ada_1_9_02_x-1.ipynb", 100),
        ("ada_1_8_02_x-2.ipynb", 200),
    ]:
        (tmp_path / name).write_text(notebook(text, name))
        os.utime(tmp_path / name, (when, when))
    taken, odd = collect(tmp_path)
    assert [s.source for s in taken] == ["ada_1_8_02_x-2.ipynb"]
    assert sorted(file for file, _ in odd) == [
        "ada_1_7_02_x.ipynb",
        "ada_1_9_02_x-1.ipynb",
    ]


def test_archives_are_opened_and_their_paths_not_trusted(tmp_path):
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    with zipfile.ZipFile(inbox / "all.zip", "w") as archive:
        archive.writestr("../../eve_1_2_02_x.ipynb", notebook("# exercise: ch02-x"))
        archive.writestr("readme.txt", "no notebook")
    (inbox / "broken.zip").write_bytes(b"PK no archive")
    taken, odd = collect(inbox, only="ch02")
    assert {s.student for s in taken} == {"eve", "broken.zip"}
    assert not list(tmp_path.rglob("eve*"))
    assert odd == [("broken.zip", "not a notebook (no JSON): graded as blank")]


def test_the_chapter_is_that_of_the_exercises_not_of_the_name(tmp_path):
    (tmp_path / "ada_01_wrong_name.ipynb").write_text(notebook("# exercise: ch02-x"))
    (tmp_path / "bob_01_empty.ipynb").write_text(notebook())
    (tmp_path / "cyd.ipynb").write_text("[]")
    taken, odd = collect(tmp_path)
    assert {s.student: s.chapter for s in taken} == {"ada": "ch02", "bob": "ch01"}
    assert ("cyd.ipynb", "of no chapter that can be read: NOT COLLECTED") in odd


@pytest.fixture(scope="module")
def maker():
    solved = read_exercises(source_of("02"), setup_cell())
    return Maker(student_notebook(solved), solved)


@pytest.fixture(scope="module")
def release():
    return student_notebook(read_exercises(source_of("02"), setup_cell()))


def cells_of(notebook):
    return [
        {key: cell[key] for key in ("cell_type", "source", "metadata")}
        for cell in notebook["cells"]
    ]


def answer_of(made, position):
    exercise = [e for e in exercises(made) if not e.in_words][position]
    return made.cells[exercise.answer].source


def test_a_right_notebook_comes_through_unchanged_with_nothing_odd(maker, release):
    made, odd = normalise(release, cells_of(maker.right()))
    assert odd == []
    for exercise in maker.exercises:
        assert made.cells[exercise.answer].source == maker.solutions[exercise.id]


@pytest.mark.parametrize("cells", [[], [{}], [{"cell_type": "code"}] * 3])
def test_nothing_gives_the_release(release, cells):
    from grading.normalise import _plain_cell

    made, odd = normalise(release, [_plain_cell(cell) for cell in cells])
    assert [c.source for c in made.cells] == [c.source for c in release.cells]
    assert sum("no answer cell found" in note for note in odd) == len(
        exercises(release)
    )


def test_an_answer_without_its_tag_is_found_by_metadata_or_function(maker, release):
    right = maker.right()
    for exercise in maker.code:
        cell = right["cells"][exercise.answer]
        cell["source"] = cell["source"].split("\n", 1)[1]
    made, odd = normalise(release, cells_of(right))
    assert answer_of(made, 0) == maker.solutions[maker.code[0].id]
    assert odd == []
    for cell in right["cells"]:
        cell["metadata"] = {}
    made, odd = normalise(release, cells_of(right))
    assert answer_of(made, 0) == maker.solutions[maker.code[0].id]
    assert any("found by its function" in note for note in odd)


def test_needed_definitions_come_along_and_loops_do_not(maker, release):
    first = maker.code[0]
    answer = maker.body(first, "    return outer(3)")
    changed = cells_of(maker.with_answers(_0=answer))
    own = """
import numpy as np
LIMIT = 5
def inner(n):
    return min(n, LIMIT) + np.pi
while True:
    pass
"""
    for source in (own, "def outer(n):\n    return inner(n)", "unrelated = 1"):
        changed.append({"cell_type": "code", "metadata": {}, "source": source})
    made, odd = normalise(release, changed)
    source = answer_of(made, 0)
    order = [
        "import numpy as np",
        "LIMIT = 5",
        "def inner",
        "def outer",
        "return outer",
    ]
    places = [source.index(text) for text in order]
    assert places[3:] == sorted(places[3:])
    assert max(places[:2]) < places[2] < places[3]
    assert "while True" not in source
    assert "unrelated" not in source
    assert any("uses" in note and "outer" in note for note in odd)
    compile(source, "answer", "exec")


def test_one_answer_may_use_another(maker, release):
    first, second = maker.code[:2]
    use = maker.body(second, f"    return {first.function}(q, k)")
    made, odd = normalise(release, cells_of(maker.with_answers(_1=use)))
    assert f"def {first.function}" in answer_of(made, 1)
    assert odd == []


def test_tests_and_setup_never_come_from_the_student(maker, release):
    changed = cells_of(maker.right())
    for cell in changed:
        if cell["source"].startswith(("check(", "try:", "import torch")):
            cell["source"] = "EVIL = 1"
    made, odd = normalise(release, changed)
    assert not [c for c in made.cells if "EVIL" in c.source]
    assert not [c for c in context_cells(made) if "install" in c]
    assert sum("test cell is gone" in note for note in odd) == len(maker.code)


@pytest.mark.parametrize(
    ("source", "note"),
    [
        (
            "from annotated.attention import MultiHeadAttention as M",
            "takes annotated.attention.MultiHeadAttention from the book's module",
        ),
        ("import annotated.masks", "takes annotated.masks from the book's module"),
        (
            "torch.nn.functional.scaled_dot_product_attention(q, k, v)",
            "calls PyTorch's own scaled_dot_product_attention",
        ),
        ("torch.allclose = print", "assigns torch.allclose"),
        ("def check(*a): pass", "defines its own check"),
        ("__import__('os')", "contains __import__"),
    ],
)
def test_what_a_person_should_look_at(source, note):
    assert note in suspicions(source)


def test_ordinary_answers_raise_no_suspicion(maker):
    for exercise in maker.code:
        assert suspicions(maker.solutions[exercise.id]) == []
    assert suspicions("from annotated.checks import check") == []
