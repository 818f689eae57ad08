"""Right answers pass, in any style; wrong ones are rejected with the hint they need."""

import importlib
from collections import Counter
from functools import cache, partial
from unittest.mock import patch

import numpy
import pytest
import torch
from torch import Tensor

from annotated.checks import close, exercise_named, replaced, try_case
from annotated.checks.calling import NOT_DONE, call, copied, mapped
from grading.collect import limited
from tests.exercises.answers import answers
from tests.sample import in_turn
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
IN_TURN = in_turn(CODING)


def function_of(exercise, source):
    """The answer, defined as in a notebook whose imports have run."""
    namespace = {"torch": torch}
    exec(compile(source, f"<{exercise}>", "exec"), namespace)
    return namespace[ASKED[exercise][0].function]


def model_answer(exercise):
    return function_of(exercise, CODING[exercise])


def written(answer):
    """The function of an answer, or what its change makes of the model answer."""
    if answer.function:
        return answer.function
    changed = replaced(CODING[answer.exercise], answer.change)
    return function_of(answer.exercise, changed)


def problem(case, answer):
    with limited(SECONDS):
        hint = try_case(case, answer)
    return hint and f"{case.line}: {hint}"


def problems(cases, answer):
    return [found for case in cases if (found := problem(case, answer))]


def refused(cases, answer):
    """Is an answer wrong in some case? Why isn't asked: that takes the longest."""
    with patch("annotated.checks._reasons", lambda *_: iter(["it is wrong"])):
        return any(problem(case, answer) for case in cases)


@cache
def public(exercise):
    return exercise_named(exercise).cases()


@cache
def graded(exercise, *seeds):
    """The cases of some courses, or of all."""
    tried, seeds = exercise_named(exercise), seeds or COURSES
    if len(seeds) == 1:
        return tried.cases(*seeds, graded=True)
    return [case for seed in seeds for case in graded(exercise, seed)]


# ---- right answers -----------------------------------------------------------


@pytest.mark.parametrize("exercise", CODING)
def test_the_model_answer_passes(exercise):
    assert problems(public(exercise), model_answer(exercise)) == []
    assert problems(graded(exercise), model_answer(exercise)) == []


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
@pytest.mark.parametrize("exercise", IN_TURN)
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
    mistake, cases = exercise_named(exercise).mistakes[hint], public(exercise)
    said = (try_case(case, mistake) for case in cases)
    assert hint in said, [try_case(case, mistake) for case in cases]
    for seed in COURSES:
        assert refused(graded(exercise, seed), mistake), seed


WRONG = [(a.exercise, a.hint, a.function) for a in ANSWERS if a.hint is not None]
WRONG += [
    (exercise, hint, mistake)
    for exercise in CODING
    for hint, mistake in exercise_named(exercise).tried
]


@pytest.mark.parametrize(("exercise", "hint", "answer"), WRONG)
def test_a_wrong_answer_gets_its_hint_in_the_notebook(exercise, hint, answer):
    cases = public(exercise)
    found = filter(None, (problem(case, answer) for case in cases))
    assert any(hint in said for said in found), problems(cases, answer)


OTHERS = {  # a piece of the hint for a mistake, and of one that would mislead
    "interleaved pairs come back half-split": "is half_split used?",
    "a fault is left": "faults are left",
    "(and ∞ · 0 is NaN)": "the softmax gives all weight",
    "it does not: are later logits compared": "to be sure takes",
}
OTHER = [
    (exercise, hint, other)
    for exercise, hint in MISTAKES
    for piece, other in OTHERS.items()
    if piece in hint
]


@pytest.mark.parametrize(("exercise", "hint", "other"), OTHER)
def test_a_mistake_gets_no_hint_that_would_mislead(exercise, hint, other):
    found = problems(public(exercise), exercise_named(exercise).mistakes[hint])
    assert not any(other in said for said in found), found


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


@pytest.mark.parametrize("exercise", IN_TURN)
def test_general_mistakes_are_rejected(exercise):
    right, cases = model_answer(exercise), graded(exercise)
    tried = 0
    for name, mistake in GENERAL.items():
        answer = mistake(right, exercise)
        if refused(cases, answer):
            tried += 1
        else:  # rounding changes no whole number, say
            assert same(answer, right, cases), name
    assert tried >= 5


@pytest.mark.parametrize("exercise", IN_TURN)
def test_a_detached_result_is_rejected_where_gradients_are_asked_for(exercise):
    answer = on_tensors(torch.detach)(model_answer(exercise), exercise)
    for case in public(exercise):
        assert not case.gradients or refused([case], answer), case.line


@pytest.mark.parametrize("exercise", IN_TURN)
def test_results_known_by_heart_pass_in_the_notebook_alone(exercise):
    if exercise_named(exercise).through:
        return  # what is judged there is no result that could be known
    answer = by_heart(model_answer(exercise), exercise)
    assert problems([c for c in public(exercise) if not c.gradients], answer) == []
    for seed in COURSES:
        cases = [c for c in graded(exercise, seed) if not c.gradients]
        assert refused(cases, answer), seed


@pytest.mark.parametrize("exercise", IN_TURN)
def test_an_answer_not_written_yet_is_no_error(exercise):
    function = ASKED[exercise][0].function
    source = f"def {function}(*arguments):\n    raise NotImplementedError()"
    cases = public(exercise)
    found = problems(cases, function_of(exercise, source))
    assert found == [f"{case.line}: {NOT_DONE}" for case in cases]


# ---- the exercises themselves ------------------------------------------------


@pytest.mark.parametrize("exercise", CODING)
def test_an_exercise_has_answers_right_and_wrong(exercise):
    assert exercise in {a.exercise for a in RIGHT}, "a right answer in another style"
    wrong = [name for name, *_ in MISTAKES + WRONG if name == exercise]
    assert len(wrong) >= 4, "wrong answers"


@pytest.mark.parametrize("exercise", CODING)
def test_a_course_draws_other_arguments(exercise):
    drawn = exercise_named(exercise).cases
    one, other = (drawn(seed, graded=True) for seed in COURSES[:2])
    again = drawn(COURSES[0], graded=True)
    assert all(map(drawn_alike, one, again))
    assert not all(map(drawn_alike, one, other)), "nothing is drawn"


def drawn_alike(one, other):
    mine, others = (
        [getattr(argument, "expression", argument) for argument in case.arguments]
        for case in (one, other)
    )
    return close(mine, others, 0.0)


NAMED = {  # wrong answers that each chapter has refused by name: no fewer
    "ch01": 75, "ch02": 71, "ch03": 87, "ch04": 131, "ch05": 111, "ch06": 155,
    "ch07": 202, "ch08": 76, "ch09": 76, "ch10": 66, "ch11": 85, "ch12": 56,
    "ch13": 71, "ch14": 46, "ch15": 84, "ch16": 113, "ch17": 149, "ch18": 104,
    "ch19": 70, "ch20": 88,
}  # fmt: skip


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_wrong_answer_is_forgotten(chapter):
    tried = [exercise for exercise, *_ in MISTAKES + WRONG]
    assert sum(name.startswith(chapter) for name in tried) >= NAMED[chapter]


def test_each_chapter_asks_enough():
    for chapter in CHAPTERS:
        asked = [e for name, (e, _) in ASKED.items() if name.startswith(chapter)]
        count = Counter(e.in_words for e in asked)
        assert count[False] >= 3, f"{chapter}: coding exercises"
        assert count[True] >= 1, f"{chapter}: questions in words"


@pytest.mark.parametrize("name", IN_TURN)
def test_a_list_of_results_earns_nothing(name):
    """Known from the notebook, or from another course, in the order of the calls."""
    exercise = exercise_named(name)

    def results(cases):
        return [exercise.result_of(exercise.right, case) for case in cases]

    asked = results(graded(name, COURSES[1]))
    for known in (results(public(name)), results(graded(name, COURSES[0]))):
        assert not close(known + asked[len(known) :], asked, 1e-6)
