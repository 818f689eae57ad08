"""Answers run apart: what they return is judged, what they do changes nothing."""

import math
import operator
import os
import subprocess
import sys
import warnings
from dataclasses import replace

import pytest
import torch

from annotated.checks import (
    NOT_DONE,
    Case,
    Differentiated,
    Function,
    Raised,
    expect,
    upstream,
)
from grading import plain
from grading.runner import NOBODY, SANDBOXES, Runner, RunnerError, judged, shown

Q = torch.arange(24.0).view(2, 3, 4).cos()
K = torch.arange(40.0).view(2, 5, 4).sin()
IMPORTS = "import math, torch"


def judge(result, q, k):
    "q·k / 2"
    raw = q @ k.mT
    expect(result, raw / 2, hint="other", mistakes={"not scaled": raw})


def judge_gradients(result, q, k):
    "gradients"
    expected = upstream(q @ k.mT) @ k / 2
    expect(result.gradients[0], expected, hint="other gradients")


CASES = [Case("ch99-e", "q·k / 2", (Q, K), judge)]
WITH_GRADIENTS = Case("ch99-e", "gradients", (Q, K), judge_gradients, gradients=True)


@pytest.fixture(scope="module")
def runner():
    with Runner(seconds=2.0) as running:
        if running.sandbox == "none":
            warnings.warn("no sandbox here: those tests are left out", stacklevel=1)
        yield running


def tried(runner, source, public=CASES, hidden=()):
    return runner.run([IMPORTS, source], "f", public, hidden)


def f(body):
    return f"def f(q, k):\n    {body}"


RIGHT = "return q @ k.mT / 2"


@pytest.mark.parametrize(
    "source",
    [
        f(RIGHT),
        f("print('!' * 10); import sys; sys.stderr.write('!'); " + RIGHT),
        f"{f(RIGHT)}\nraise RuntimeError('after the definition')",
        f"{f(RIGHT)}\nimport sys; sys.exit(1)",
        f"%matplotlib inline\n!ls\n{f(RIGHT)}\n%timeit f(1, 2)",
        f"import warnings; warnings.warn('!')\n{f(RIGHT)}",
    ],
)
def test_a_right_answer_passes_whatever_stands_around_it(runner, source):
    outcome = tried(runner, source, [*CASES, WITH_GRADIENTS])
    assert outcome.failures == {}
    assert outcome.odd == []


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        (f("return q @ k.mT"), "not scaled"),
        (f("raise NotImplementedError()"), NOT_DONE),
        (f("return q"), "the shape is"),
        (f("return 1 / 0"), "in the line `return 1 / 0`"),
        (f("q *= 0.5; return q @ k.mT"), "changes its argument `q` in place"),
        (f("return (yield)"), "got a generator"),
        (f("return object()"), "got a object"),
        (f("for _ in range(10**5): q = [q]\n    return q"), "recursion"),
        ("def f(q, k) return", "your cell is not Python, in line 1"),
        ("f = None", "there is no function f"),
        ("", "there is no function f"),
        ("1 / 0", "your cell raised ZeroDivisionError"),
        (f("import sys; sys.exit(0)"), "ends the program"),
        (f("import os; os._exit(0)"), "ended its process"),
        (f("raise KeyboardInterrupt"), "ended its process"),
        (f("import os; os.kill(os.getpid(), 9)"), "ended its process"),
        (f("import os; os.kill(os.getppid(), 9)"), "ended the process that runs it"),
        (f("return torch.ones(20_000_000_000)"), "can't allocate memory"),
        (f("return torch.ones(20_000_000)"), "is too large"),
        (f("while True: pass"), "takes longer than 2 seconds"),
        (f"{f(RIGHT)}\nwhile True: print('!' * 1000)", "takes longer than 2 seconds"),
        (
            "import os\nos.write(3, b'[null,{\"tuple\":[]},null]\\n' * 9)\n"
            "def f(q, k): return q",
            "something else than a result",
        ),
        (  # an empty problem is none
            'import os\nos.write(3, b\'[null,{"tuple":[]},""]\\n\' * 9)\n'
            "def f(q, k): return q",
            "something else than a result",
        ),
        (
            "torch.allclose = torch.equal = lambda *a, **k: True\n"
            "import annotated.checks as c\n"
            "c.expect = c.verdict = c.close = lambda *a, **k: True\n"
            "def f(q, k): return q @ k.mT",
            "not scaled",
        ),
    ],
)
def test_a_wrong_answer_fails_with_a_reason_and_the_next_one_is_graded(
    runner, source, hint
):
    assert hint in tried(runner, source).failures[0]
    assert tried(runner, f(RIGHT)).failures == {}


def judge_parts(result, parts, k):
    "calls them"
    expect(result, 3 * (K + 1), hint="other numbers")


PARTS = {"first": [Function("x + 1")], "then": Function("3 * x")}


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("return parts['then'](parts['first'][0](k))", None),
        ("return parts['first'][0](parts['then'](k))", "other numbers"),
        ("return parts.pop('then')(parts['first'].pop()(k))", "argument `parts` in"),
        (
            "one, parts['first'][0] = parts['first'][0], None\n"
            "    return parts['then'](one(k))",
            "argument `parts` in",
        ),
        (
            "one, parts['first'][0] = parts['first'][0], parts['then']\n"
            "    return parts['then'](one(k))",
            "argument `parts` in",
        ),
    ],
)
def test_functions_may_stand_in_a_dictionary(runner, source, hint):
    case = Case("ch99-e", "calls them", (PARTS, K), judge_parts)
    code = f"def f(parts, k):\n    {source}"
    found = tried(runner, code, [case]).failures.get(0)
    assert found is None if hint is None else hint in found


def judge_called(result):
    "is called"
    expect(result, 7, hint=f"{result} is no 7")


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("def f(): return 7", None),
        ("def f(): return 8", "8 is no 7"),
        ("def f(): raise NotImplementedError()", NOT_DONE),
        ("import operator; operator.call = lambda f: 7\ndef f(): return 8", "8 is no"),
    ],
)
def test_a_case_may_go_through_a_function(runner, source, hint):
    case = Case("ch99-e", "is called", (), judge_called)
    found = tried(runner, source, [replace(case, through=operator.call)]).failures
    assert found.get(0) is None if hint is None else hint in found[0]


def judge_refusal(result, q, k):
    "refuses"
    assert isinstance(result, Raised), "nothing was raised"
    assert result == ("ValueError", "5 keys"), f"{result.kind}: {result.message}"


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ("raise ValueError(f'{k.shape[1]} keys')", None),
        ("raise IndexError('5 keys')", "IndexError: 5 keys"),
        ("raise NotImplementedError()", NOT_DONE),
        ("return 'ValueError', '5 keys'", "nothing was raised"),
        ("return q", "nothing was raised"),
    ],
)
def test_what_was_raised_reaches_the_judge(runner, body, hint):
    refusal = Case("ch99-e", "refuses", (Q, K), judge_refusal, raises=True)
    found = tried(runner, f(body), [refusal]).failures.get(0)
    assert found is None if hint is None else hint in found


def test_output_is_counted_and_dropped(runner):
    outcome = tried(runner, f("print('x' * 3_000_000); " + RIGHT))
    assert outcome.failures == {}
    assert outcome.odd == ["prints 3000001 bytes, not kept"]


def test_public_tests_run_where_no_hidden_argument_is():
    """Whatever an answer finds around itself and throws, it is not hidden."""
    look = """
def f(q, k):
    import gc, sys
    seen, frame = [], sys._getframe()
    while frame:
        seen.append(repr(frame.f_locals))
        frame = frame.f_back
    seen += [repr(o) for o in gc.get_objects() if type(o) in (str, list, dict)]
    raise ValueError("FOUND" if "31337" in "".join(seen) else "nothing")
"""
    secret = Case("ch99-e", "hidden", (Q, Function("x + 31337")), judge)
    with Runner(seconds=30.0) as patient:  # the search looks at every object
        outcome = tried(patient, look, CASES, [secret])
    assert "nothing" in outcome.failures[0]
    # the search is able to find it where it is
    assert "FOUND" in outcome.failures[1]
    assert shown(CASES, [secret], outcome.failures)[1:] == [
        "0 of 1 hidden tests passed"
    ]


def test_hidden_tests_fail_with_the_public_ones_when_time_is_up(runner):
    outcome = tried(runner, f("while True: pass"), CASES, CASES * 2)
    assert sorted(outcome.failures) == [0, 1, 2]
    assert outcome.seconds < 4


@pytest.mark.parametrize("name", SANDBOXES)
def test_what_a_sandbox_hides(name, tmp_path):
    """Tried where it works; the runner says which one it uses in any case."""
    secret = tmp_path / "course" / "hidden.py"
    secret.parent.mkdir(mode=0o700)
    secret.write_text("31337")
    look = f"""
def f(q, k):
    found = []
    try:
        found.append(open({str(secret)!r}).read())
    except OSError:
        found.append("not there")
    try:
        open({str(secret.parent / "new")!r}, "w")
        found.append("written")
    except OSError:
        found.append("not written")
    raise ValueError(*found)
"""
    try:
        running = Runner(hide=[secret.parent], sandbox=name, seconds=5)
    except RunnerError as error:
        assert f"no process for student code; {name}: " in str(error)
        pytest.skip(str(error))
    with running:
        hint = tried(running, look).failures[0]
    if name == "none":
        assert "31337" in hint  # as the instructors' page says
    else:
        assert "not there" in hint
        # in a folder of memory that is laid over the real one, bubblewrap lets it
        assert not (secret.parent / "new").exists()


def test_nobody_is_refused_to_others_than_root(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: NOBODY)
    with pytest.raises(RunnerError, match="nobody: not available"):
        Runner(sandbox="nobody")


def test_an_unknown_sandbox_is_refused():
    with pytest.raises(ValueError, match="expected one of bubblewrap, nobody, none"):
        Runner(sandbox="jail")


VALUES = [
    None, True, 3, 2.5, math.inf, "text", [1, [2]], (1, "a"), {"a": (1,), 2: None},
    X := torch.arange(6).view(2, 3), X.float(), X.bool(), X.to(torch.bfloat16),
    X.to(torch.complex64), torch.tensor(1.5), torch.empty(0, 3), X.T, X.float()[:, ::2],
    Differentiated(torch.ones(2), [None, torch.ones(1)]),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_plain_data_comes_back_as_it_was(value):
    back = plain.loads(plain.dumps(value))
    assert type(back) is type(value)
    if isinstance(value, torch.Tensor):
        assert back.dtype == value.dtype
        assert torch.equal(back, value)
    elif not isinstance(value, Differentiated):
        assert back == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1",
        "[" * 100_000,
        '{"tensor": ["float32", [9], ""]}',
        '{"tensor": ["float32", [-1], ""]}',
        '{"tensor": ["float32", [1000000000000], ""]}',
        '{"tensor": ["object", [1], "AAAA"]}',
        '{"tensor": 5}',
        '{"tensor": ["float32", 7, ""]}',
        '{"function": ["exit()", "x"]}',
        '{"dict": [[[], 1]]}',
        '{"a": 1, "b": 2}',
        '{"differentiated": [1]}',
    ],
)
def test_what_is_no_plain_data_is_refused(text):
    with pytest.raises(plain.NotPlain):
        plain.loads(text)
    assert judged(CASES[0], text) == "your code sent something else than a result"


def test_one_notebook_without_nbgrader(tmp_path):
    """As Gradescope grades it; nbgrader is not even imported."""
    notebook = tmp_path / "handed in.ipynb"
    notebook.write_text('{"cells": []}')
    code = (
        "import sys; from grading.__main__ import main;"
        "code = main(sys.argv[1:]); print('nbgrader' in sys.modules); sys.exit(code)"
    )
    results = tmp_path / "results.json"
    done = subprocess.run(
        [sys.executable, "-c", code, "one", "02", notebook, "--results", results],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    assert "ch02-tempered: 0 of 3 points\n  not done" in done.stdout
    assert done.stdout.endswith("False\n")
    assert '"max_score": 3' in results.read_text()
