"""The exercises' tests accept right answers and reject wrong ones, with their hints."""

import importlib
import re
import signal
from collections import Counter
from contextlib import contextmanager

import jupytext
import pytest
import torch

from annotated.checks import Function, call, close, copied, public_cases, try_case
from grading.hidden import hidden_cases
from tests.exercises.right import RIGHT
from tools.exercises import exercises, read_exercises, solution, sources

SECONDS = 2  # a case may take; the slowest right answer takes a tenth of that


def read(path):
    notebook = read_exercises(path, setup="")
    asked = exercises(notebook)
    return {e.id: (e, solution(notebook.cells[e.answer])) for e in asked}


ASKED = {name: both for path in sources() for name, both in read(path).items()}
CODING = {name: text for name, (e, text) in ASKED.items() if not e.in_words}
CHAPTERS = sorted({name[:4] for name in ASKED})
WRONG = [
    wrong
    for chapter in CHAPTERS
    for wrong in importlib.import_module(f"tests.exercises.wrong.{chapter}").WRONG
]


def function_of(exercise, source):
    """The answer, defined as in a notebook whose imports have run."""
    namespace = {"torch": torch}
    exec(compile(source, f"<{exercise}>", "exec"), namespace)
    return namespace[ASKED[exercise][0].function]


@contextmanager
def limited():
    def stop(*_):
        raise TimeoutError(f"it takes longer than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def problems(cases, answer):
    found = []
    for case in cases:
        with limited():
            problem = try_case(case, answer)
        if problem:
            found.append(f"{case.line}: {problem}")
    return found


def all_problems(exercise, source):
    answer = function_of(exercise, source)
    return problems(public_cases(exercise) + hidden_cases(exercise), answer)


@pytest.mark.parametrize("exercise", CODING)
def test_the_solution_passes(exercise):
    assert all_problems(exercise, CODING[exercise]) == []


@pytest.mark.parametrize(
    ("exercise", "source"),
    [(name, source) for name, written in RIGHT.items() for source in written],
)
def test_other_right_answers_pass(exercise, source):
    assert all_problems(exercise, source) == []


@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: f"{w.exercise}: {w.name}")
def test_a_wrong_answer_is_rejected_with_its_hint(wrong):
    found = all_problems(wrong.exercise, wrong.source)
    assert any(wrong.hint in problem for problem in found), found


@pytest.mark.parametrize("exercise", CODING)
def test_most_mistakes_are_named_before_grading(exercise):
    wrong = [w for w in WRONG if w.exercise == exercise]
    assert len(wrong) >= 5
    named = [
        w.name
        for w in wrong
        if any(
            w.hint in problem
            for problem in problems(
                public_cases(exercise), function_of(exercise, w.source)
            )
        )
    ]
    assert len(named) >= len(wrong) / 2, named


@pytest.mark.parametrize("exercise", CODING)
def test_knowing_the_public_results_is_not_enough(exercise):
    solved, known = function_of(exercise, CODING[exercise]), []
    for case in public_cases(exercise):
        result = call(solved, copied(case.arguments), through=case.through).result
        known.append((case.arguments, result))

    def parrot(*arguments):
        for asked, result in known:
            if close(asked, arguments, 0.0):
                return copied(result)
        return copied(known[0][1])

    public = [
        case
        for case in public_cases(exercise)
        # these are no results to be known
        if not (case.gradients or case.raises or case.through)
    ]
    assert problems(public, parrot) == []
    rejected = problems(hidden_cases(exercise), parrot)
    assert len(rejected) >= 2, rejected


@pytest.mark.parametrize("exercise", CODING)
def test_hidden_cases_are_not_the_public_ones(exercise):
    public = [case.arguments for case in public_cases(exercise)]
    for case in hidden_cases(exercise):
        assert not any(close(case.arguments, known, 0.0) for known in public), case.line


@pytest.mark.parametrize("exercise", CODING)
def test_an_answer_not_written_yet_is_no_error(exercise):
    function = ASKED[exercise][0].function
    source = f"def {function}(*arguments):\n    raise NotImplementedError()"
    found = problems(public_cases(exercise), function_of(exercise, source))
    assert all("not done yet" in problem for problem in found)
    assert len(found) == len(public_cases(exercise))


@pytest.mark.parametrize("exercise", CODING)
@pytest.mark.parametrize(
    "result", [None, "no", 7, [], torch.zeros(()), torch.zeros(2, 3), {}]
)
def test_any_kind_of_result_is_judged(exercise, result):
    found = problems(
        public_cases(exercise) + hidden_cases(exercise), lambda *_: copied(result)
    )
    assert found
    assert not any("Traceback" in problem or "Error" in problem for problem in found)


@pytest.mark.parametrize("exercise", CODING)
def test_cases_cover_shapes_and_precisions(exercise):
    """Where an answer takes tensors: all precisions, and a batch of one."""
    cases = public_cases(exercise) + hidden_cases(exercise)
    first = [case.arguments[0] for case in cases]
    if isinstance(first[0], int | list | Function):
        assert len({str(argument) for argument in first}) >= 5
        return
    dtypes = {torch.float32, torch.float64, torch.float16, torch.bfloat16}
    if not first[0].is_floating_point():  # lengths, token ids
        dtypes = {torch.int32, torch.int64}
    assert {argument.dtype for argument in first} == dtypes
    assert any(argument.shape[0] == 1 for argument in first)
    assert len({argument.shape for argument in first}) >= 5


def test_each_exercise_has_other_right_answers():
    assert RIGHT.keys() == CODING.keys()
    assert all(len(written) >= 2 for written in RIGHT.values())


def test_each_chapter_asks_enough():
    for chapter in CHAPTERS:
        asked = [e for name, (e, _) in ASKED.items() if name.startswith(chapter)]
        count = Counter(e.in_words for e in asked)
        assert count[False] >= 3, f"{chapter}: coding exercises"
        assert count[True] >= 1, f"{chapter}: questions in words"


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.stem)
def test_the_table_of_points_is_right(path):
    """The first cell lists the exercises, and each statement repeats its points."""
    notebook = jupytext.read(path, fmt="py:percent")
    listed = re.findall(r"^\| \d [^|]+\| (\d+) \|", notebook.cells[0].source, re.M)
    asked = read(path).values()
    assert [int(points) for points in listed] == [e.points for e, _ in asked]
    statements = [
        cell.source for cell in notebook.cells if cell.source.startswith("## ")
    ]
    assert len(statements) == len(asked)
    for statement, (e, _) in zip(statements, asked, strict=True):
        points = "1 point" if e.points == 1 else f"{e.points} points"
        assert f"\n*{points}. Goal: " in statement
