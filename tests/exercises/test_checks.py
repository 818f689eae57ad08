"""`check` in a notebook: one friendly line a test, hints, and never a traceback."""

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import torch

import annotated.checks
from annotated.checks import (
    NOT_DONE,
    Case,
    CheckFailed,
    Function,
    Raised,
    check,
    close,
    expect,
    public_cases,
    register,
    try_case,
    upstream,
)
from tools import ROOT
from tools.exercises import (
    exercises,
    page_notebook,
    read_exercises,
    source_of,
    student_notebook,
)
from tools.notebooks import text
from tools.source import setup_cell

X = torch.arange(6.0).view(2, 3)


def case(judge, *arguments, **options):
    return Case("ch99-double", "doubles", arguments or (X.clone(),), judge, **options)


def double(result, x):
    "doubles"
    expect(
        result,
        2 * x,
        hint="expected twice x",
        mistakes={"you squared": x * x, "you took rows": (2 * x).sum(dim=1)},
    )


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (lambda x: 2 * x, None),
        (lambda x: x + x, None),
        (lambda x: x * x, "you squared"),
        (lambda x: (2 * x).sum(dim=1), "you took rows"),  # although its shape differs
        (lambda x: 3 * x, "expected twice x"),
        (lambda x: (2 * x).T, "the shape is (3, 2), expected (2, 3)"),
        (lambda x: (2 * x).double(), "the dtype is torch.float64, expected torch.fl"),
        (lambda x: 2 * x + torch.nan, "NaN"),
        (lambda x: None, "is a `return` missing?"),
        (lambda x: (2 * x).tolist(), "expected a tensor, got a list"),
        (lambda x: x.mul_(2), "changes its argument `x` in place"),
        (lambda x: x @ x, "your code raised RuntimeError"),
        (lambda x: undefined, "undefined"),
        (lambda x: sys.exit(), "ends the program"),
        (42, "expected a function, got int"),
    ],
)
def test_a_hint_names_what_is_wrong(answer, hint):
    found = try_case(case(double), answer)
    assert found is None if hint is None else hint in found


def test_the_line_that_raised_is_shown_and_no_line_of_ours():
    def answer(x):
        return x.no_such_method()

    found = try_case(case(double), answer)
    assert "in the line `return x.no_such_method()`" in found
    assert "checks" not in found


def test_an_unfinished_answer_is_not_done_yet():
    def answer(x):
        raise NotImplementedError()

    assert try_case(case(double), answer) == NOT_DONE


def test_what_torch_has_not_implemented_is_not_taken_for_unfinished():
    def answer(x):
        raise NotImplementedError('"softmax" not implemented for Half')

    assert "softmax" in try_case(case(double), answer)


def test_gradients_are_those_of_the_result_times_upstream():
    def judge(result, x):
        "gradients"
        expect(result.value, x**2, hint="value")
        [gradient] = result.gradients
        expect(gradient, 2 * x * upstream(x), hint="gradient")

    assert try_case(case(judge, gradients=True), lambda x: x * x) is None
    assert "gradient" in try_case(case(judge, gradients=True), lambda x: x.data**2)
    wrong = try_case(case(judge, gradients=True), lambda x: x * x.detach())
    assert wrong == "gradient"


def test_answers_that_draw_random_numbers_draw_the_same_each_time():
    before = torch.get_rng_state()
    drawn = []
    for _ in range(2):
        try_case(case(double), lambda x: drawn.append(torch.randn(3)))
    assert torch.equal(*drawn)
    assert torch.equal(torch.get_rng_state(), before)


def test_functions_are_arguments_as_text():
    def judge(result, f):
        "finds the sum"
        expect(result, f(X).sum().item(), hint="no")

    total = case(judge, Function("x * 2"))
    assert try_case(total, lambda f: f(X).sum().item()) is None


def doubled_in_place(answer, size):
    """What becomes of a list, which an answer changes and does not return."""
    numbers = [1.0] * size
    answer(numbers)
    return sum(numbers)


def test_what_is_no_plain_data_is_judged_through_a_function():
    def judge(result, size):
        "doubles"
        expect(result, 2.0 * size, hint="not doubled")

    def double(numbers):
        numbers[:] = [2 * number for number in numbers]

    def stop(numbers):
        raise NotImplementedError()

    through = Case("ch99-tried", "doubles", (3,), judge, through=doubled_in_place)
    assert try_case(through, double) is None
    assert try_case(through, list.clear) == "not doubled"
    assert try_case(through, stop) == NOT_DONE
    assert "numbers.upper()" in try_case(through, lambda numbers: numbers.upper())


class TooLong(ValueError):
    """An exception of a student's own."""


@pytest.mark.parametrize(
    ("raised", "hint"),
    [
        (ValueError("6 is too many"), None),
        (TooLong("6 is too many"), None),
        (IndexError("6 is too many"), "IndexError instead"),
        (ValueError("too many"), "name the number"),
        (ValueError(), "name the number"),
        (NotImplementedError(), NOT_DONE),
        (SystemExit(), "ends the program"),
    ],
)
def test_a_refusal_is_judged_where_one_is_asked_for(raised, hint):
    def judge(result, x):
        "refuses"
        assert isinstance(result, Raised), "nothing was raised"
        assert result.kind == "ValueError", f"{result.kind} instead"
        assert "6" in result.message, "name the number"

    def answer(x):
        raise raised

    found = try_case(case(judge, raises=True), answer)
    assert found is None if hint is None else hint in found
    assert "nothing was" in try_case(case(judge, raises=True), lambda x: x)
    assert "in place" in try_case(case(judge, raises=True), lambda x: x.mul_(2))
    assert try_case(case(judge), answer)  # no refusal where none is asked for


def test_a_judge_that_cannot_read_a_result_does_not_raise():
    def judge(result, x):
        "adds up"
        assert result.sum() > 0

    assert "got a str" in try_case(case(judge), lambda x: "a string").replace(
        "expected something else than", "got"
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1.0, 1.0 + 1e-9, True),
        (True, 1, False),
        (float("nan"), float("nan"), True),
        ([1, "a"], [1, "a"], True),
        ([1, "a"], [1], False),
        ({"a": X}, {"a": X.clone()}, True),
        ({"a": X}, {"a": X + 1}, False),
        (X, X.double(), False),
        (torch.tensor(1.0), 1.0, False),
    ],
)
def test_close(one, other, same):
    assert close(one, other) is same


def test_a_case_is_refused_where_it_is_declared():
    table = {}
    with pytest.raises(ValueError, match=r"exercise 'Ch1': expected chNN-"):
        register(table, "Ch1")
    with pytest.raises(ValueError, match="needs a docstring"):
        register(table, "ch99-a")(lambda result: None)
    with pytest.raises(ValueError, match=r"the result and 2 argument\(s\)"):
        register(table, "ch99-a", 1, 2)(double)
    assert not table


def test_an_unknown_exercise_is_answered_with_those_there_are():
    with pytest.raises(KeyError, match="ch02-tempered"):
        public_cases("ch02-temperd")
    with pytest.raises(KeyError, match="exercise must be an id"):
        check("../secrets", double)


def test_check_prints_a_line_a_test_and_fails_in_one_line(capsys):
    with pytest.raises(CheckFailed) as failed:
        check("ch02-uniform-factor", lambda width: width**-0.5)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(public_cases("ch02-uniform-factor"))
    assert all(line.startswith("✗ ") for line in lines)
    [shown] = failed.value._render_traceback_()
    assert "checks of ch02-uniform-factor failed" in shown
    assert "Traceback" not in shown

    check("ch02-uniform-factor", lambda width: 3 * width**-0.5)
    *lines, last = capsys.readouterr().out.splitlines()
    assert all(line.startswith("✓ ") for line in lines)
    assert last.startswith("all ")


def test_the_chapters_checks_need_nothing_but_the_package():
    chapters = Path(annotated.checks.__file__).parent.glob("ch*.py")
    names = [f"annotated.checks.{path.stem}" for path in chapters]
    code = f"import {', '.join(names)}, sys\n"
    code += "print([m for m in sys.modules if m.split('.')[0] in"
    code += " ('tools', 'grading', 'nbgrader', 'matplotlib')])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_nbval_passes_solutions_and_blanks_and_fails_a_wrong_answer(tmp_path):
    solved = read_exercises(source_of("02"), setup_cell())
    page = page_notebook(solved)
    wrong = nbformat.from_dict(json.loads(json.dumps(page)))
    name = exercises(solved)[0].function
    for cell in wrong.cells:
        if cell.source.startswith("check(") and name in cell.source:
            cell.source = cell.source.replace(f", {name}", ", lambda *a: a[0]")
    for file, notebook in [
        ("right.ipynb", page),
        ("wrong.ipynb", wrong),
        ("blank.ipynb", student_notebook(solved)),
    ]:
        target = tmp_path / file
        target.write_text(text(notebook, target), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "-p", "no:cacheprovider"]
        + [str(tmp_path / f"{file}.ipynb") for file in ("right", "wrong", "blank")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert len(failed) == 1, done.stdout
    assert "wrong.ipynb" in failed[0]
