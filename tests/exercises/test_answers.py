"""Right answers pass, in any style; wrong ones are rejected with the hint they need."""

import importlib
import signal
from collections import Counter
from contextlib import contextmanager
from functools import cache, partial

import numpy
import pytest
import torch
from torch import Tensor

from annotated.checks import close, exercise_named, replaced, try_case
from annotated.checks.calling import NOT_DONE, call, copied, mapped
from grading.runner import Runner
from tests.exercises.answers import answers
from tools.exercises import exercises, read_exercises, solution, sources

SECONDS = 20  # of CPU that a case may take: a hundred times the slowest
COURSES = ("autumn", "spring")


def read(path):
    notebook = read_exercises(path, setup="")
    asked = exercises(notebook)
    return {e.id: (e, solution(notebook.cells[e.answer])) for e in asked}


ASKED = {name: both for path in sources() for name, both in read(path).items()}
CODING = {name: text for name, (e, text) in ASKED.items() if not e.in_words}
CHAPTERS = sorted({name[:4] for name in ASKED})
for chapter in CHAPTERS:
    importlib.import_module(f"tests.chapters.{chapter}.answers")
ANSWERS = list(answers())


def function_of(exercise, source):
    """The answer, defined as in a notebook whose imports have run."""
    namespace = {"torch": torch}
    exec(compile(source, f"<{exercise}>", "exec"), namespace)
    return namespace[ASKED[exercise][0].function]


def model_answer(exercise):
    return function_of(exercise, CODING[exercise])


def written(answer):
    """The function of an answer, or what its changes make of the model answer."""
    if answer.function:
        return answer.function
    changed = replaced(CODING[answer.exercise], answer.change)
    return function_of(answer.exercise, changed)


@contextmanager
def limited():
    def stop(*_):
        raise TimeoutError(f"it takes longer than {SECONDS} CPU seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def problems(cases, answer):
    found = []
    for case in cases:
        with limited():
            problem = try_case(case, answer)
        if problem:
            found.append(f"{case.line}: {problem}")
    return found


@cache
def public(exercise):
    return exercise_named(exercise).cases()


@cache
def graded(exercise):
    """The cases of a few courses."""
    chosen = exercise_named(exercise)
    return [case for seed in COURSES for case in chosen.cases(seed, graded=True)]


# ---- right answers -----------------------------------------------------------


@pytest.mark.parametrize("exercise", CODING)
def test_the_model_answer_passes(exercise):
    assert problems(public(exercise), model_answer(exercise)) == []
    assert problems(graded(exercise), model_answer(exercise)) == []


def test_the_model_answers_pass_in_a_sandbox():
    with Runner(seconds=60.0) as runner, runner.submission() as submission:
        for exercise, source in CODING.items():
            function = ASKED[exercise][0].function
            cells = ["import torch", source]
            outcome = submission.run(cells, function, graded(exercise))
            assert (outcome.failures, outcome.ended) == ({}, None), exercise


RIGHT = [answer for answer in ANSWERS if answer.hint is None]


@pytest.mark.parametrize("answer", RIGHT, ids=lambda answer: answer.exercise)
def test_a_right_answer_in_another_style_passes(answer):
    cases = public(answer.exercise) + graded(answer.exercise)
    assert problems(cases, written(answer)) == []


class Calls:
    """A callable object."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *arguments):
        return self.function(*arguments)


class Real(float):
    """A float of somebody's own."""


def with_numbers(kind):
    """The numbers of an answer's result are of another kind, tensors stay."""

    def changed(v):
        plain = isinstance(v, int | float) and not isinstance(v, bool)
        if kind is numpy.generic:
            return numpy.asarray(v)[()] if plain or isinstance(v, bool) else v
        return kind(v) if isinstance(v, float) else v

    return lambda right: lambda *arguments: mapped(changed, right(*arguments))


STYLES = {
    "a lambda": lambda right: lambda *arguments: right(*arguments),
    "a partial": lambda right: partial(right),
    "a callable object": Calls,
    "numpy's numbers": with_numbers(numpy.generic),
    "a subclass of float": with_numbers(Real),
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("exercise", CODING)
def test_any_style_passes(exercise, style):
    answer = STYLES[style](model_answer(exercise))
    assert problems(public(exercise), answer) == []


# ---- wrong answers -----------------------------------------------------------

MISTAKES = [
    (exercise, hint)
    for exercise in CODING
    for hint in exercise_named(exercise).mistakes
]


@pytest.mark.parametrize(("exercise", "hint"), MISTAKES)
def test_a_mistake_is_rejected_and_named(exercise, hint):
    """In the notebook with its own hint, and by every course."""
    chosen = exercise_named(exercise)
    mistake = chosen.mistakes[hint]
    named = [try_case(case, mistake) for case in public(exercise)]
    assert hint in named, named
    cases = graded(exercise)
    courses = cases[: len(cases) // 2], cases[len(cases) // 2 :]
    for course in courses:
        assert any(problems([case], mistake) for case in course)


WRONG = [answer for answer in ANSWERS if answer.hint is not None]


@pytest.mark.parametrize(
    "answer", WRONG, ids=lambda answer: f"{answer.exercise}: {answer.hint}"
)
def test_a_wrong_answer_gets_its_hint_in_the_notebook(answer):
    found = problems(public(answer.exercise), written(answer))
    assert any(answer.hint in problem for problem in found), found


OTHERS = {  # a piece of the hint for a wrong answer, and of one that would mislead
    "interleaved pairs come back half-split": "is half_split used?",
    "a fault is left": "faults are left",
    "(and ∞ · 0 is NaN)": "the softmax gives all weight",
}


@pytest.mark.parametrize(
    "answer",
    [a for a in WRONG if any(piece in a.hint for piece in OTHERS)],
    ids=lambda answer: f"{answer.exercise}: {answer.hint}",
)
def test_a_wrong_answer_gets_no_hint_that_would_mislead(answer):
    [misleading] = [other for piece, other in OTHERS.items() if piece in answer.hint]
    found = problems(public(answer.exercise), written(answer))
    assert not any(misleading in problem for problem in found), found


# ---- mistakes that fit every exercise ----------------------------------------


def on_tensors(change):
    """A mistake: what the right answer gives, with its tensors changed."""

    def changed(v):
        return change(v) if isinstance(v, Tensor) else v

    return lambda right, _: lambda *given: mapped(changed, right(*given))


def on_floats(change):
    return on_tensors(lambda v: change(v) if v.is_floating_point() else v)


def gives(value):
    return lambda right, _: lambda *given: copied(value)


def writes_into_arguments(right, _):
    def answer(*given):
        result = right(*copied(given))
        mapped(lambda v: v.zero_() if isinstance(v, Tensor) else v, given)
        return result

    return answer


def by_heart(right, exercise):
    """What the notebook's cases give, and the first of these for any other."""
    through = exercise_named(exercise).through
    known = [
        (case.arguments, call(right, copied(case.arguments), through=through).result)
        for case in public(exercise)
    ]

    def answer(*given):
        for asked, result in known:
            if close(asked, given, 0.0):
                return copied(result)
        return copied(known[0][1])

    return answer


GENERAL = {
    "nothing": gives(None),
    "a word": gives("no"),
    "a number": gives(7),
    "an empty list": gives([]),
    "a tensor of another shape": gives(torch.zeros(2, 3, 5, 7)),
    "arguments changed in place": writes_into_arguments,
    "single precision": on_floats(Tensor.float),
    "rounded": on_floats(Tensor.round),
    "not a number": on_floats(lambda v: v * torch.nan),
    "the first of the batch for all": on_tensors(
        lambda v: v[:1].expand_as(v).clone() if v.dim() else v
    ),
    "reversed": on_tensors(lambda v: v.flip(tuple(range(v.dim())))),
    "an axis too many": on_tensors(lambda v: v[None]),
    "lists for tensors": on_tensors(Tensor.tolist),
    "results known by heart": by_heart,
}


def same(one, other, cases):
    """Do two answers give the same, to the bit, and leave their arguments alike?"""
    for case in cases:
        through = case.exercise.through
        calls = [call(a, copied(case.arguments), through=through) for a in (one, other)]
        if not close(*calls, 0.0):
            return False
    return True


@pytest.mark.parametrize("exercise", CODING)
def test_general_mistakes_are_rejected(exercise):
    right, cases = model_answer(exercise), graded(exercise)
    tried = 0
    for name, mistake in GENERAL.items():
        answer = mistake(right, exercise)
        if not same(answer, right, cases):  # rounding changes no whole number, say
            tried += 1
            assert any(problems([case], answer) for case in cases), name
    assert tried >= 5


@pytest.mark.parametrize("exercise", CODING)
def test_a_detached_result_is_rejected_where_gradients_are_asked_for(exercise):
    cases = [case for case in public(exercise) if case.gradients]
    answer = on_tensors(torch.detach)(model_answer(exercise), exercise)
    assert len(problems(cases, answer)) == len(cases)


@pytest.mark.parametrize("exercise", CODING)
def test_results_known_by_heart_pass_in_the_notebook_alone(exercise):
    if exercise_named(exercise).through:
        return  # what is judged there is no result that could be known
    answer = by_heart(model_answer(exercise), exercise)
    assert problems([c for c in public(exercise) if not c.gradients], answer) == []
    for seed in COURSES:
        cases = exercise_named(exercise).cases(seed, graded=True)
        assert problems([c for c in cases if not c.gradients], answer), seed


@pytest.mark.parametrize("exercise", CODING)
def test_an_answer_not_written_yet_is_no_error(exercise):
    function = ASKED[exercise][0].function
    source = f"def {function}(*arguments):\n    raise NotImplementedError()"
    cases = public(exercise)
    found = problems(cases, function_of(exercise, source))
    assert found == [f"{case.line}: {NOT_DONE}" for case in cases]


# ---- the exercises themselves ------------------------------------------------


@pytest.mark.parametrize("exercise", CODING)
def test_an_exercise_has_answers_written_by_hand(exercise):
    count = Counter(a.hint is None for a in ANSWERS if a.exercise == exercise)
    assert count[True] >= 1, "right answers in another style"
    assert count[False] >= 3, "wrong answers"


@pytest.mark.parametrize("exercise", CODING)
def test_a_course_draws_other_arguments(exercise):
    chosen = exercise_named(exercise)
    one, other = (chosen.cases(seed, graded=True) for seed in COURSES[:2])
    again = chosen.cases(COURSES[0], graded=True)
    assert all(map(drawn_alike, one, again))
    assert not all(map(drawn_alike, one, other)), "nothing is drawn"


def drawn_alike(one, other):
    mine, others = (
        [getattr(argument, "expression", argument) for argument in case.arguments]
        for case in (one, other)
    )
    return close(mine, others, 0.0)


NAMED = {  # wrong answers that each chapter has refused by name: no fewer
    "ch01": 88,
    "ch02": 79,
    "ch03": 101,
    "ch04": 147,
    "ch05": 125,
    "ch06": 149,
    "ch07": 197,
    "ch08": 93,
    "ch11": 93,
    "ch12": 69,
    "ch13": 84,
    "ch14": 59,
}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_wrong_answer_is_forgotten(chapter):
    tried = [exercise for exercise, _ in MISTAKES] + [a.exercise for a in WRONG]
    assert sum(name.startswith(chapter) for name in tried) >= NAMED.get(chapter, 0)


def test_each_chapter_asks_enough():
    for chapter in CHAPTERS:
        asked = [e for name, (e, _) in ASKED.items() if name.startswith(chapter)]
        count = Counter(e.in_words for e in asked)
        assert count[False] >= 3, f"{chapter}: coding exercises"
        assert count[True] >= 1, f"{chapter}: questions in words"


@pytest.mark.parametrize("name", sorted(CODING))
def test_a_list_of_results_earns_nothing(name):
    """Known from the notebook, or from another course, in the order of the calls."""
    exercise = exercise_named(name)

    def results(*drawn):
        cases = exercise.cases(*drawn)
        return [exercise.result_of(exercise.right, case) for case in cases]

    for known in (results(), results("autumn", True)):
        asked = results("spring", True)
        assert not close(known + asked[len(known) :], asked, 1e-6)
