"""Who is named because an answer is another's, or the book's, and who is not."""

import copy

import pytest

from grading.alike import BOOK, LONG, MUCH, NEVER_TWICE, alike, answers
from tools.exercises import (
    exercises,
    read_exercises,
    solution,
    source_of,
    student_notebook,
)
from tools.source import setup_cell

LOOP, WORDS = "ch02-is-equivariant", "ch02-in-words"
MINE = f'''# exercise: {LOOP}
def is_equivariant(f):
    """Mine."""
    for k in range(8):
        x, p = torch.randn(6, 3), torch.randperm(6)
        if not torch.allclose(f(x[p]), f(x)[p], atol=1e-5):
            return False
    return True
'''
OTHER = f"""# exercise: {LOOP}
def is_equivariant(g):  # a comment
    for n in range(8):
        (rows, order) = torch.randn(6, 3), torch.randperm(6)

        if not torch.allclose(g(rows[order]),
                              g(rows)[order], atol=1e-5): return False
    return True
"""


@pytest.fixture(scope="module")
def solved():
    made = read_exercises(source_of("02"), setup_cell())
    for exercise in exercises(made):
        made.cells[exercise.answer].source = solution(made.cells[exercise.answer])
    return made


@pytest.fixture(scope="module")
def release():
    return student_notebook(read_exercises(source_of("02"), setup_cell()))


def read(release, name, source, given=None):
    """What is compared of a release with one answer in it."""
    made = copy.deepcopy(release)
    [place] = [e.answer for e in exercises(made) if e.id == name]
    made.cells[place].source = source
    return answers(made, given or release)


def test_names_comments_and_layout_make_no_other_answer(release):
    text, size = read(release, LOOP, MINE)[LOOP]
    assert size >= LONG
    assert read(release, LOOP, OTHER)[LOOP][0] == text
    for old, new in [("range(8)", "list(8)"), ("1e-5", "1e-6"), ("x[p]", "x")]:
        assert read(release, LOOP, MINE.replace(old, new))[LOOP][0] != text, old


def test_what_students_got_and_what_is_short_is_not_compared(release):
    assert answers(release, release) == {}
    for body in ("return True", f"return {'-' * 100_000}1", "return ("):
        source = f"# exercise: {LOOP}\ndef is_equivariant(f):\n    {body}"
        assert read(release, LOOP, source) == {}
    given = copy.deepcopy(release)  # as where a faulty function is to be repaired
    given.cells[0].cell_type, given.cells[0].source = "code", MINE
    assert read(release, LOOP, MINE, given) == {}


def test_the_books_answers_are_named_without_the_rubric_too(solved, release):
    [place] = [e.answer for e in exercises(solved) if e.id == WORDS]
    tag, _, words = solved.cells[place].source.partition("\n")
    half = f"{tag}\n{words.upper()[: len(words) // 2]}"
    named = alike(
        {
            BOOK: answers(solved, release),
            "ada": answers(solved, release),
            "bert": read(release, WORDS, half),
            "cora": read(release, LOOP, MINE),
        }
    )
    assert named.keys() == {"ada", "bert"}
    assert f"{BOOK} (ch02-in-words)" in named["bert"]
    assert f"{BOOK} (ch02-in-words, ch02-is-equivariant" in named["ada"]


@pytest.mark.parametrize(
    ("sizes", "copied", "named"),
    [
        ([MUCH], 2, 2),
        ([MUCH / 2, MUCH / 2], 2, 2),
        ([MUCH - 1], 2, 0),  # too short
        ([MUCH], 10, 0),  # a third of the class writes that
        ([NEVER_TWICE], 10, 10),  # but no essay
        ([LONG] * 3, 10, 10),  # nor all three
    ],
)
def test_a_pair_shares_much_with_few_or_all_of_several(sizes, copied, named):
    given = {
        f"s{n:02}": {
            str(e): ("same" if n < copied else str(n), size)
            for e, size in enumerate(sizes)
        }
        for n in range(copied + 20)
    }
    assert len(alike(given)) == named
    for found in given.values():  # and of more that they share not all
        found["own"] = str(id(found)), LONG
    assert len(alike(given)) == (0 if sizes == [LONG] * 3 else named)


def test_the_book_is_named_however_many_have_copied_it():
    given = {f"s{n:02}": {"e": ("same", MUCH)} for n in range(20)}
    assert alike(given) == {}  # all of them write that
    named = alike(given | {BOOK: {"e": ("same", MUCH)}})
    assert named == dict.fromkeys(given, f"{BOOK} (e)")
