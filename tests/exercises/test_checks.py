"""`check` in a notebook: one friendly line a case, hints, and never a traceback."""

import re
import subprocess
import sys

import pytest
import torch

import annotated.checks
from annotated.checks import (
    CheckFailed,
    Exercise,
    Function,
    changes,
    check,
    close,
    exercise_named,
    try_case,
)
from annotated.checks.calling import NOT_DONE, copied
from tools import ROOT


def case(right, draw, hint="expected another one", name="ch99-tried", **options):
    """The one case of an exercise that is made for a test."""
    chosen = {key: options.pop(key) for key in ("gradients", "dtype") & options.keys()}
    exercise = Exercise(name, right, hint, **options)
    exercise.case("doubles", **chosen)(draw)
    [drawn] = exercise.cases()
    return drawn


DOUBLE = case(
    lambda x: 2 * x,
    lambda draw: (draw.normal(2, 3),),
    mistakes={
        "you squared": lambda x: x * x,
        "you took rows": lambda x: (2 * x).sum(dim=1),
        "you raised": lambda x: x @ x,
    },
)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (lambda x: 2 * x, None),
        (lambda x: x + x, None),
        (lambda x: x * x, "you squared"),
        (lambda x: (2 * x).sum(dim=1), "you took rows"),  # although its shape differs
        (lambda x: 3 * x, "expected another one"),
        (lambda x: (2 * x).T, "the shape is (3, 2), expected (2, 3)"),
        (lambda x: (2 * x).double(), "the dtype is torch.float64, expected torch.fl"),
        (lambda x: 2 * x + torch.nan, "NaN"),
        (lambda x: None, "is a `return` missing?"),
        (lambda x: (2 * x).tolist(), "expected a tensor, got a list"),
        (lambda x: x.mul_(2), "changes its argument `x` in place"),
        (lambda x: x @ x, "your code raised RuntimeError"),
        (lambda x: undefined, "undefined"),  # noqa: F821
        (lambda x: sys.exit(), "ends the program"),
        (42, "expected a function"),
    ],
)
def test_a_hint_names_what_is_wrong(answer, hint):
    found = try_case(DOUBLE, answer)
    assert found is None if hint is None else hint in found


def test_the_line_that_raised_is_shown_and_no_line_of_ours():
    def answer(x):
        return x.no_such_method()

    found = try_case(DOUBLE, answer)
    assert "in the line `return x.no_such_method()`" in found
    assert "checks" not in found


@pytest.mark.parametrize(
    ("message", "hint"), [("", NOT_DONE), ('"softmax" not implemented', "softmax")]
)
def test_an_unfinished_answer_is_told_from_what_torch_lacks(message, hint):
    def answer(x):
        raise NotImplementedError(message)

    assert hint in try_case(DOUBLE, answer)


def doubled(x):
    y = x
    return 2 * y


def changed(**options):
    """The exercise `doubled`, whose mistakes are changes of its text."""
    exercise = Exercise("ch99-changed", doubled, "expected twice x", **options)
    exercise.instead("""
2 * y
    y * y  # you squared
    y  # you left it
""")
    exercise.case("doubles", lambda draw: (draw.normal(2, 3),))
    return exercise


def test_a_change_of_the_right_answers_text_is_a_mistake():
    exercise = changed(mistakes={"both": [("y = x", "y = x + 1"), ("2 * y", "y")]})
    [case] = exercise.cases()
    assert list(exercise.mistakes) == ["you squared", "you left it", "both"]
    assert try_case(case, lambda x: x * x) == "you squared"
    assert try_case(case, lambda x: x) == "you left it"
    assert try_case(case, lambda x: x + 1) == "both"
    assert try_case(case, lambda x: x + x) is None
    assert doubled(1) == 2, "the right answer stays what it is"


TABLE = r"""
2 * y
    y * y  # you squared
    # nothing is left of it, and that in so many words that the line
        goes on
y = x\n    return -> return  # y is missing
y = x ->
2 * y -> x  # two places: # 1 and # 2
"""


def test_a_table_of_changes_is_read():
    assert changes(TABLE) == {
        "you squared": [("2 * y", "y * y")],
        "nothing is left of it, and that in so many words that the line goes on": [
            ("2 * y", "")
        ],
        "y is missing": [("y = x\n    return", "return")],
        "two places: # 1 and # 2": [("y = x", ""), ("2 * y", "x")],
    }


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("2 * y  # you squared", "expected a change, old -> new, got '2"),
        (
            "2 * y\ny = x\n    y = 1  # one",
            "expected a change, old -> new, got 'y = x'",
        ),
        ("2 * y -> y\ny = x", "expected a change, old -> new, got 'y = x'"),
        ("2 * y -> y", "expected a change with a hint after '2"),
        ("2 * y", "expected a change with a hint after '2"),
        ("y = x -> y = 1  # one\n2 * y -> 1  # one", "two changes have the hint 'one'"),
    ],
)
def test_a_table_that_cannot_be_read_is_an_error(table, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        changes(table)


def test_a_hint_may_name_a_text_of_its_module_and_is_said_once(monkeypatch):
    monkeypatch.setitem(globals(), "LEFT", "you left it")
    exercise = changed(mistakes={"by hand": lambda x: -x})
    exercise.instead("y = x -> y = x + 1  # {LEFT}, or one more")
    assert "you left it, or one more" in exercise.mistakes
    for hint in ("{LEFT}", "by hand"):
        with pytest.raises(ValueError, match="ch99-changed has two mistakes"):
            exercise.instead(f"2 * y -> 3 * y  # {hint}")


def test_a_mistake_with_a_piece_of_a_hint_is_for_tests_alone():
    exercise = changed()
    exercise.instead("2 * y -> 2 * y + 1  # … expected twice")
    [(piece, mistake)] = exercise.tried
    assert (piece, mistake(3)) == ("expected twice", 7)
    [case] = exercise.cases()
    assert try_case(case, mistake) == "expected twice x"
    assert list(exercise.mistakes) == ["you squared", "you left it"]


def test_cases_of_a_table_take_its_values_and_its_hints(monkeypatch):
    monkeypatch.setitem(globals(), "LEFT", "you left it")
    exercise = Exercise("ch99-each", doubled, "twice x", broken={"rule": "no rules"})
    table = r"""
    plain -> 3, "a word -> and more"
    told -> 4,
            "b"  # {LEFT}, or {rule}
    once more -> 5, "c"  # {told}
    """
    drawn = []
    make = exercise.each(table, gradients=True)(
        lambda draw, *given: drawn.append(given)
    )
    cases = exercise.cases()
    assert drawn == [(3, "a word -> and more"), (4, "b"), (5, "c")]
    assert [case.line for case in cases] == ["plain", "told", "once more"]
    told = "you left it, or no rules"
    assert [case.hint for case in cases] == [None, told, told]
    assert all(case.gradients for case in cases)
    assert make(None, 7) is None, "the function stays what it is"


def test_a_case_of_a_table_without_values_is_an_error():
    with pytest.raises(ValueError, match="expected a case, line -> values, got 'two"):
        changed().each("two rows: 2, 3")(lambda draw: ())


def test_a_mistake_may_have_the_hint_of_a_case_that_there_is():
    exercise = changed()
    exercise.each("twice -> 2  # it is not twice")(lambda draw, n: (draw.normal(n),))
    exercise.instead("y = x -> y = x + 1  # {twice}")
    assert "it is not twice" in exercise.mistakes
    with pytest.raises(ValueError, match="ch99-changed: no hint is called 'thrice'"):
        exercise.instead("y = x -> y = x + 2  # {thrice}")


def test_a_rule_that_was_broken_has_its_hint_before_all_else():
    options = {"broken": {"rule": "no rules"}, "symptoms": lambda *_: "a symptom"}
    exercise = Exercise("ch99-broken", doubled, "twice x", **options)
    exercise.case("doubles", lambda draw: (draw.normal(2, 3),))
    [case] = exercise.cases()
    assert try_case(case, lambda x: "rule") == "no rules"
    assert try_case(case, lambda x: "other") == "a symptom"


@pytest.mark.parametrize("old", ["3 * y", "y"])
def test_a_change_that_finds_no_place_or_several_is_an_error(old):
    exercise = changed()
    exercise.instead(f"{old} -> z  # no mistake")
    with pytest.raises(ValueError, match=f"expected '{re.escape(old)}' once, found it"):
        _ = exercise.mistakes


def test_without_its_source_what_is_wrong_is_refused_by_the_general_hint(monkeypatch):
    def no_source(function):
        raise OSError("could not get source code")

    monkeypatch.setattr(annotated.checks.inspect, "getsource", no_source)
    exercise = changed(mistakes={"you negated": lambda x: -x})
    [case] = exercise.cases()
    assert try_case(case, lambda x: x * x) == "expected twice x"
    assert try_case(case, lambda x: -x) == "you negated"
    assert try_case(case, lambda x: 2 * x) is None


def test_a_result_by_another_convention_is_accepted():
    exercise = Exercise("ch99-also", doubled, "twice x", also=("2 * y", "-2 * y"))
    exercise.case("doubles", lambda draw: (draw.normal(2, 3),))
    [case] = exercise.cases()
    assert try_case(case, lambda x: 2 * x) is None
    assert try_case(case, lambda x: -2 * x) is None
    assert try_case(case, lambda x: 3 * x) == "twice x"


def test_an_answer_that_calls_the_book_is_refused():
    from annotated.masks import causal_mask

    def answer(x):
        causal_mask(2)
        return 2 * x

    assert "calls `annotated`" in try_case(DOUBLE, answer)


def test_gradients_are_compared_and_named():
    gradients = case(
        lambda x, y: x**2 * y,
        lambda draw: (draw.normal(3), draw.normal(3)),
        mistakes={"you forgot that x counts twice": lambda x, y: x * x.detach() * y},
        gradients=True,
    )
    assert try_case(gradients, lambda x, y: x * x * y) is None
    assert "counts twice" in try_case(gradients, lambda x, y: x.detach() * x * y)
    found = try_case(gradients, lambda x, y: x * x * y.detach())
    assert "no gradient reaches y" in found
    assert "no gradient flows" in try_case(gradients, lambda x, y: x.data**2 * y.data)
    # what has none because it is no tensor is told so
    assert "got a tuple" in try_case(gradients, lambda x, y: (x * x * y, x))
    assert "returns nothing" in try_case(gradients, lambda x, y: None)
    forged = gradients.exercise.result_of(gradients.exercise.right, gradients)
    assert "got a tuple" in try_case(gradients, lambda x, y: tuple(forged))


def test_a_drawn_function_blames_no_mistake_that_its_true_or_false_cannot_tell():
    cases = exercise_named("ch02-is-equivariant").cases("seed", graded=True)
    drawn = [case for case in cases if "with other numbers" in case.line]
    said = {try_case(case, lambda f, x=x: x) for case in drawn for x in (True, False)}
    assert said == {None, "what is said of it above holds here, too"}


def test_a_result_is_compared_in_the_precision_of_the_arguments():
    for dtype, error in ((torch.float64, 1e-7), (torch.float16, 1e-1)):
        drawn = case(lambda x: 2 * x, lambda draw: (draw.normal(50) + 3,), dtype=dtype)
        assert drawn.arguments[0].dtype == dtype
        assert try_case(drawn, lambda x: 2 * x) is None
        assert try_case(drawn, lambda x, error=error: 2 * x + error)


def test_a_refusal_is_asked_for_where_the_right_answer_refuses():
    def right(n):
        if n < 0:
            raise ValueError
        return n

    def unnamed(result, n):
        if getattr(result, "kind", "") == "ValueError" and str(n) not in result.message:
            return "the message does not name the number"

    def refuses(kind, message):
        def answer(n):
            raise kind(message)

        return answer

    class TooSmall(ValueError):
        """An exception of a student's own."""

    refusal = case(right, lambda draw: (-6,), symptoms=unnamed)
    assert try_case(refusal, refuses(ValueError, "-6 is too small")) is None
    assert try_case(refusal, refuses(TooSmall, "-6 is too small")) is None
    assert "got IndexError" in try_case(refusal, refuses(IndexError, "-6"))
    assert "name the number" in try_case(refusal, refuses(ValueError, "too small"))
    assert "should be refused" in try_case(refusal, lambda n: n)
    accepted = case(right, lambda draw: (6,))
    assert "raised ValueError" in try_case(accepted, refuses(ValueError, "6"))


def doubled_in_place(answer, size):
    """What becomes of a list, which an answer changes and does not return."""
    numbers = [1.0] * size
    answer(numbers)
    return sum(numbers)


def test_what_is_no_plain_data_is_judged_through_a_function():
    def double(numbers):
        numbers[:] = [2 * number for number in numbers]

    through = case(double, lambda draw: (3,), through=doubled_in_place)
    assert try_case(through, double) is None
    assert try_case(through, list.clear) == "expected another one"


def test_functions_are_arguments_as_text():
    total = case(lambda f: float(f(1)), lambda draw: (Function("x * 2"),))
    assert try_case(total, lambda f: f(1)) is None
    assert try_case(total, lambda f: f(2)) == "expected another one"


def test_answers_that_draw_random_numbers_draw_the_same_each_time():
    before, drawn = torch.get_rng_state(), []
    for _ in range(2):
        try_case(DOUBLE, lambda x: drawn.append(torch.randn(3)))
    assert torch.equal(*drawn)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1.0, 1.0 + 1e-9, True),
        (1.0, 1.0 + 1e-3, False),
        (True, 1, False),
        (float("nan"), float("nan"), True),
        ([1, "a"], [1, "a"], True),
        ([1, "a"], [1], False),
        ({"a": torch.ones(2)}, {"a": torch.ones(2)}, True),
        ({"a": torch.ones(2)}, {"a": torch.zeros(2)}, False),
        (torch.ones(2), torch.ones(2).double(), False),
        (torch.tensor([1e4, 1.0]), torch.tensor([1e4, 1.01]), True),  # of a sum
        (torch.tensor([1e-4, 1e-4]), torch.tensor([2e-4, 1e-4]), False),
        (torch.tensor(1.0), 1.0, False),
    ],
)
def test_close(one, other, same):
    assert close(one, other, 1e-5) is same


def test_what_is_drawn_has_the_properties_that_are_told():
    draw = annotated.checks.Draw("any")
    for _ in range(50):
        assert len(set(draw.sizes(4))) == 4
        mask = draw.mask(2, 3, 5)
        assert mask.any(-1).all()
        assert not mask.all(-1).any()
        assert 2 <= draw.integer(2, 3) <= 3
        assert 0.5 <= draw.number(0.5, 0.7) < 0.7


def test_an_unknown_exercise_is_answered_with_those_there_are():
    with pytest.raises(KeyError, match="ch02-tempered"):
        exercise_named("ch02-temperd")
    with pytest.raises(KeyError, match="exercise must be an id"):
        check("../secrets", lambda x: x)
    with pytest.raises(ValueError, match=r"exercise 'Ch1': expected chNN-"):
        Exercise("Ch1", lambda x: x, "")


def test_check_prints_a_line_a_case_and_fails_in_one_line(capsys):
    with pytest.raises(CheckFailed) as failed:
        check("ch02-uniform-factor", lambda width: width**-0.5)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(exercise_named("ch02-uniform-factor").cases())
    assert all(line.startswith("✗ ") for line in lines)
    [shown] = failed.value._render_traceback_()
    assert "checks of ch02-uniform-factor failed" in shown
    assert "Traceback" not in shown

    check("ch02-uniform-factor", lambda width: 3 * width**-0.5)
    *lines, last = capsys.readouterr().out.splitlines()
    assert all(line.startswith("✓ ") for line in lines)
    assert last.startswith("all ")


CHECKS = (ROOT / "annotated/chapters").glob("*/checks.py")
EVERY = [f"annotated.chapters.{path.parent.name}.checks" for path in CHECKS]
FOR_STUDENTS = ["annotated.checks.calling", "annotated.checks.material"]


@pytest.mark.parametrize(
    ("names", "others"),
    [
        (EVERY, ("tools", "grading", "nbgrader", "matplotlib")),
        (FOR_STUDENTS, ("annotated.chapters",)),
    ],
    ids=["the checks need the package alone", "students get no right answer"],
)
def test_what_is_imported_brings_nothing_else(names, others):
    code = f"import {', '.join(names)}, sys\n"
    code += f"print([m for m in sys.modules if m.startswith({others})])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_a_question_does_not_say_what_it_asks():
    asked, known = Function("x.flip(0)"), Function("x.flip(0)")
    assert "flip" not in f"{asked} {asked!r}"
    assert asked != known  # nor whether it is one of a list
    cases = exercise_named("ch02-is-equivariant").cases("a", graded=True)
    assert len({f"{case.arguments[0]!r} {case.arguments[0]}" for case in cases}) == 1


def test_graded_cases_come_in_an_order_that_the_seed_draws():
    asked = exercise_named("ch05-relative")
    declared = [case.line for case in asked.cases()]
    drawn = [[c.line for c in asked.cases(seed, graded=True)] for seed in "abc"]
    assert all(sorted(lines) == sorted(declared) for lines in drawn)
    assert len({tuple(lines) for lines in (declared, *drawn)}) == 4
    numbers = [case.number for case in asked.cases("a", graded=True)]
    assert [declared[number] for number in numbers] == drawn[0]


def test_random_numbers_do_not_say_which_case_it_is():
    """The seed of an answer that draws was once the case's number, and told the answer
    which row of a table to look up."""
    asked = exercise_named("ch02-is-equivariant")
    drawn = [
        {case.seed: case.line for case in asked.cases(seed, graded=True)}
        for seed in "ab"
    ]
    assert drawn[0].keys() == drawn[1].keys()
    assert len(drawn[0]) > 20  # one for each case, so that no luck is good for all
    assert drawn[0] != drawn[1]


def test_owners_of_parts_take_the_step_of_one_process_with_everything():
    asked = exercise_named("ch18-owners")
    for case in asked.cases():
        weights, gradients, averages, step, rate, clip = copied(case.arguments)
        whole = torch.nn.Parameter(weights)
        whole.grad = torch.stack(list(gradients)).mean(dim=0)
        torch.nn.utils.clip_grad_norm_(whole, clip)
        adam = torch.optim.AdamW([whole], lr=rate, weight_decay=0.0)
        m, u = (torch.cat(parts)[: len(whole)] for parts in zip(*averages, strict=True))
        kept = {"exp_avg": m, "exp_avg_sq": u}
        adam.state[whole] = {"step": torch.tensor(step - 1.0), **kept}
        adam.step()
        moved, *parts = zip(*asked.result_of(asked.right, case), strict=True)
        found = [*moved, *(torch.cat(part)[: len(m)] for part in parts)]
        assert close(found, [whole.detach()] * len(moved) + [m, u], 1e-4)
