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
OTHER = f'''# exercise: {LOOP}
def is_equivariant(g):
    """My own words."""  # a comment
    for k in range(8):
        rows = torch.randn(6, 3); order = torch.randperm(6)
        if not torch.allclose(g(rows[order]),
                              g(rows)[order], atol=1e-5):
            return False
    return True
'''
MINE = OTHER.replace("(g)", "(f)").replace(" g(", " f(").replace("(g(", "(f(")
MINE = (
    MINE.replace("rows", "x")
    .replace("order", "p")
    .replace("  # a comment", "")
    .replace("own", "")
)


@pytest.fixture(scope="module")
def solved():
    made = read_exercises(source_of("02"), setup_cell())
    for exercise in exercises(made):
        made.cells[exercise.answer].source = solution(made.cells[exercise.answer])
    return made


@pytest.fixture(scope="module")
def release():
    return student_notebook(read_exercises(source_of("02"), setup_cell()))


def read(release, **changed):
    """The answers of a release with some of its cells filled in."""
    made = copy.deepcopy(release)
    for exercise in exercises(made):
        if (key := exercise.id.replace("-", "_")) in changed:
            made.cells[exercise.answer].source = changed[key]
    return answers(made, release)


def test_names_comments_and_layout_make_no_other_answer(release):
    [(mine, size)] = read(release, ch02_is_equivariant=MINE).values()
    assert size >= LONG
    [(other, _)] = read(release, ch02_is_equivariant=OTHER).values()
    assert other == mine
    for old, new in [("range(8)", "list(8)"), ("1e-5", "1e-6"), ("x[p]", "x")]:
        changed = MINE.replace(old, new)
        [(other, _)] = read(release, ch02_is_equivariant=changed).values()
        assert other != mine, old


def test_what_students_got_and_what_is_short_is_not_compared(release):
    assert answers(release, release) == {}
    short = f"# exercise: {LOOP}\ndef is_equivariant(f):\n    return True"
    nested = f"# exercise: {LOOP}\nx = {'-' * 100_000}1"
    for source in (short, nested):
        assert read(release, ch02_is_equivariant=source) == {}
    given = copy.deepcopy(release)  # as where a faulty function is to be repaired
    given.cells[0].cell_type, given.cells[0].source = "code", MINE
    made = copy.deepcopy(release)
    place = next(e.answer for e in exercises(made) if e.id == LOOP)
    made.cells[place].source = MINE
    assert answers(made, release).keys() == {LOOP}
    assert answers(made, given) == {}


def test_the_books_answers_are_named_without_the_rubric_too(solved, release):
    place = next(e.answer for e in exercises(solved) if e.id == WORDS)
    tag, _, words = solved.cells[place].source.partition("\n")
    words = f"{tag}\n{words.upper()[: len(words) // 2]}"
    given = {
        BOOK: answers(solved, release),
        "ada": answers(solved, release),
        "bert": read(release, ch02_in_words=words),
        "cora": read(release, ch02_is_equivariant=MINE),
    }
    named = alike(given)
    assert named.keys() == {"ada", "bert"}
    assert f"{BOOK} (ch02-in-words)" in named["bert"]
    assert f"{BOOK} (ch02-in-words, ch02-is-equivariant" in named["ada"]


def a_class(sizes, copied, others=20):
    """`copied` students with the same answers, the others with their own."""
    names = [f"s{n:02}" for n in range(copied + others)]
    return {
        who: {e: ("same" if n < copied else who, s) for e, s in sizes.items()}
        for n, who in enumerate(names)
    }


@pytest.mark.parametrize(
    ("sizes", "copied", "named"),
    [
        ({"a": MUCH}, 2, 2),
        ({"a": MUCH / 2, "b": MUCH / 2}, 2, 2),
        ({"a": MUCH - 1}, 2, 0),  # too short
        ({"a": MUCH}, 10, 0),  # a third of the class writes that
        ({"a": NEVER_TWICE}, 10, 10),  # but no essay
        ({"a": LONG, "b": LONG, "c": LONG}, 10, 10),  # nor all three
    ],
)
def test_a_pair_shares_much_with_few_or_all_of_several(sizes, copied, named):
    found = alike(a_class(sizes, copied))
    assert len(found) == named
    assert all(note.count("s") >= copied - 1 for note in found.values())


def test_all_of_several_means_all():
    given = a_class(dict.fromkeys("abcd", LONG), 10)
    given["s00"]["d"] = "mine", LONG
    assert "s00" not in alike(given)
