"""Answers run apart: what they return is judged, what they do reaches nobody else."""

import ctypes
import importlib
import json
import math
import os
import platform
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch

from annotated.checks import Exercise, Function, exercise_named
from annotated.checks.calling import NOT_DONE, Differentiated, Problem, Raised
from grading import plain, student
from grading.__main__ import main
from grading.runner import (
    NO_RESULT,
    Outcome,
    Runner,
    RunnerError,
    judge_twice,
    judged,
    shown,
)
from grading.sandbox import MOST_PROCESSES, NOBODY, PATIENCE, SANDBOXES, Sandbox
from tests.exercises.answers import answers
from tests.sample import in_turn
from tools.exercises import sources

IMPORTS = """import math, numpy as np, torch
from torch import nn
from torch.nn import functional as F"""
SECRET = 31337.0

halved = Exercise(
    "ch99-halved",
    right=lambda q, k: q @ k.mT / 2,
    hint="another one",
    mistakes={"not scaled": lambda q, k: q @ k.mT},
)


@halved.case("q·k / 2")
def _(draw):
    return draw.normal(2, 3, 4), draw.normal(2, 5, 4)


@halved.case("gradients", gradients=True)
def _(draw):
    return draw.normal(2, 3, 4), draw.normal(2, 5, 4)


CASES = halved.cases("a course's")

for path in sources():
    importlib.import_module(f"tests.chapters.ch{path.name[:2]}.answers")
ANSWERS = [answer for answer in answers() if answer.function and not answer.hint]
IN_TURN = in_turn({answer.exercise for answer in ANSWERS})


@pytest.fixture(scope="module")
def runner():
    with Runner(seconds=2.0) as running:
        if running.kind != "bubblewrap":
            warnings.warn("no bubblewrap here: less is tried", stacklevel=1)
        yield running


@pytest.fixture(scope="module")  # a sandbox takes two seconds to start
def running(runner):
    with runner.submission() as running:
        yield running


@pytest.fixture
def submission(running):
    running.sandbox.patience = PATIENCE  # on a busy machine all tests would use it up
    return running


@pytest.fixture
def confined(runner, submission):
    if runner.kind != "bubblewrap":
        pytest.skip("needs bubblewrap")
    return submission


def tried(submission, source, cases=CASES):
    return submission.run([IMPORTS, source], "f", cases)


def f(body):
    return f"def f(q, k):\n    {body}"


RIGHT = "return q @ k.mT / 2"


@pytest.mark.parametrize(
    "source",
    [
        f(RIGHT),
        "f = lambda q, k: q @ k.mT / 2",
        "import operator, functools\nclass F:\n    def __call__(self, q, k):\n        "
        "return q @ k.mT / 2\nf = functools.partial(F())",
        f("print('!' * 3_000_000); import sys; sys.stderr.write('!'); " + RIGHT),
        f"{f(RIGHT)}\nraise RuntimeError('after the definition')",
        f"{f(RIGHT)}\nimport sys; sys.exit(1)",
        f"%matplotlib inline\n!ls\n{f(RIGHT)}\n%timeit f(1, 2)",
        f"import warnings; warnings.warn('!')\n{f(RIGHT)}",
    ],
)
def test_a_right_answer_passes_whatever_stands_around_it(submission, source):
    outcome = tried(submission, source)
    assert (outcome.failures, outcome.ended) == ({}, None)


@pytest.mark.parametrize(
    "answer",
    [answer for answer in ANSWERS if answer.exercise in IN_TURN],
    ids=lambda answer: answer.exercise,
)
def test_other_styles_pass_as_in_the_notebook(submission, answer, monkeypatch):
    monkeypatch.setattr(submission.runner, "seconds", 60.0)  # on a busy machine
    cases = exercise_named(answer.exercise).cases("a course's", graded=True)
    cells = [IMPORTS, answer.source]
    outcome = submission.run(cells, answer.function.__name__, cases)
    assert (outcome.failures, outcome.ended) == ({}, None)


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        (f("return q @ k.mT"), "not scaled"),
        (f("raise NotImplementedError()"), NOT_DONE),
        (f("return q"), "the shape is another one, expected (2, 3, 5)"),
        (f("return q.new_empty(0, 31337)"), "the shape is another one"),
        (f("return 31337"), "expected a tensor, got something else"),
        (f("return 10**400"), "expected a tensor, got something else"),
        (f("return q.half()"), "the shape is another one"),
        (f("return (q @ k.mT / 2).half()"), "the dtype is another one, expected"),
        (f("return q.to('meta')"), "expected a tensor, a number or the like"),
        (f("return 1 / 0"), "your code raised an exception"),
        (f("q *= 0.5; return q @ k.mT"), "changes its argument `q` in place"),
        (f("return (yield)"), "expected a tensor, a number or the like"),
        (f("for _ in range(10**5): q = [q]\n    return q"), "raised an exception"),
        ("def f(q, k) return", "your cell raised SyntaxError"),
        ("f = None", "there is no function f"),
        ("", "there is no function f"),
        ("1 / 0", "your cell raised ZeroDivisionError"),
        (f("import sys; sys.exit(0)"), "ends the program"),
        (f("import os; os._exit(0)"), "ended its process"),
        (f("raise KeyboardInterrupt"), "ended its process"),
        (f("import os; os.kill(os.getpid(), 9)"), "ended its process"),
        (f("import os; os.kill(os.getppid(), 9); os._exit(0)"), "ended its process"),
        (f("return torch.ones(20_000_000_000)"), "your code raised an exception"),
        (f("return torch.ones(20_000_000)"), "expected a tensor, a number or the like"),
        (f("while True: pass"), "takes longer than 2 seconds"),
        (f"{f(RIGHT)}\nwhile True: print('!' * 1000)", "takes longer than 2 seconds"),
        (
            "torch.allclose = torch.equal = lambda *a, **k: True\n"
            "import annotated.checks as c\n"
            "c.verdict = c.close = c.check = lambda *a, **k: None\n"
            "def f(q, k): return q @ k.mT",
            "not scaled",
        ),
    ],
)
def test_a_wrong_answer_fails_with_a_reason_and_the_next_is_graded(
    submission, source, hint
):
    assert hint in (said := tried(submission, source).failures[0])
    assert "31337" not in said
    assert tried(submission, f(RIGHT)).failures == {}


@pytest.mark.parametrize(
    "reply",
    [
        '[null, {"tuple": []}]',
        '""',
        "[" * 100_000,
        "[[]," * 100_000,
        "nonsense",
        # what the judge itself would stumble over
        '[{"named": ["Problem", [[1]]]}, 1]',
        f'[1{"0" * 400}, {{"tuple": [1, 2]}}]',
        '[{"named": ["Differentiated", [1, 2]]}, {"tuple": [1, 2]}]',
    ],
)
def test_a_forged_reply_earns_nothing(submission, reply):
    forging = f"""
import os
for fd in range(3, 30):
    try:
        os.write(fd, {reply!r}.encode() + b"\\n")
    except OSError:
        continue
def f(q, k): return q
"""
    assert len(tried(submission, forging).failures) == len(CASES)


def test_a_reply_without_an_end_costs_little(submission):
    """Sixty megabytes of `[],` once took a minute and three gigabytes to read."""
    flood = """
import os
def f(q, k):
    for fd in range(3, 30):
        try:
            for _ in range(600):
                os.write(fd, b"[]," * 33_000)
        except OSError:
            continue
"""
    begun = time.process_time()
    assert "too large" in tried(submission, flood).failures[0]
    assert time.process_time() - begun < 3


def test_one_that_does_not_read_ends_at_its_deadline(runner):
    """It answers one request and sleeps; the next, longer than a pipe, once hung."""
    reply = plain.dumps([True, None])
    sleeping = f"""
import os, time
for fd in range(3, 12):
    try:
        os.write(fd, {reply!r}.encode() + b"\\n")
    except OSError:
        continue
time.sleep(600)
"""
    large = [replace(CASES[0], arguments=(torch.ones(99_999), torch.ones(1)))]
    with runner.submission() as running:
        begun = time.monotonic()
        outcome = tried(running, sleeping, large)
        assert "takes longer than 2 seconds" in outcome.failures[0]
        assert time.monotonic() - begun < 60
        assert tried(running, f(RIGHT)).failures == {}


# ---- what an answer finds around itself ------------------------------------------


def test_it_finds_no_right_answer_no_mistake_and_no_later_case(submission):
    """Whatever it reaches in its process, forked or inherited."""
    look = f"""
import gc, sys
def f(q, k):
    seen, frame = [], sys._getframe()
    while frame:
        seen.append(repr(frame.f_locals))
        frame = frame.f_back
    seen += [repr(o) for o in gc.get_objects() if type(o) in (str, list, dict)]
    found = "|".join(seen)
    raise (KeyError if "{int(SECRET)}" in found.replace("in found", "") or
           [m for m in sys.modules if m.startswith("annotated.chapters")]
           else IndexError)
""".replace(f'"{int(SECRET)}"', f"str({int(SECRET) - 1} + 1)")
    secret = replace(CASES[0], arguments=(torch.full((2, 3, 4), SECRET), torch.ones(1)))
    with Runner(seconds=40.0) as patient, patient.submission() as running:
        outcome = tried(running, look, [CASES[0], secret])
    # the search is able to find it where it is
    assert outcome.raised == {0: "IndexError", 1: "KeyError"}


def found(submission, expression):
    """What an answer sees when it evaluates an expression to True."""
    source = f"def f(q, k):\n    raise KeyError if {expression} else IndexError"
    return tried(submission, source, CASES[:1]).raised == {0: "KeyError"}


def test_it_finds_no_file_of_the_course_the_book_or_its_owner(confined, tmp_path):
    (tmp_path / "gradebook.db").write_text("marks")
    here = Path(__file__).resolve()
    solutions = here.parents[2] / "notebooks" / "src" / "exercises"
    right = here.parents[2] / "annotated/chapters/ch02/checks.py"
    module = here.parents[2] / "annotated" / "attention.py"
    for path in (
        tmp_path, here, solutions, right, module, Path.home() / ".ssh", "/etc/passwd",
    ):  # fmt: skip
        assert not found(confined, f"__import__('os').path.exists({str(path)!r})"), path
    assert found(confined, f"__import__('os').path.exists({sys.prefix!r})")
    assert not found(confined, "__import__('os').access('/usr', 2)")


def test_no_file_beside_the_code_that_calls_it_holds_a_right_answer(confined):
    rights = {exercise_named(answer.exercise).right.__name__ for answer in ANSWERS}
    read = (
        "''.join(p.read_text() for p in __import__('pathlib').Path("
        "__import__('annotated').__file__).parents[1].rglob('*.py'))"
    )

    def stands(names):
        pattern = rf"(?m)^def ({'|'.join(names)})\b"
        return found(confined, f"__import__('re').search({pattern!r}, {read})")

    assert not stands(rights)
    assert stands(["call"])  # the search finds what is there


ASKING = {
    "plainly": "from annotated.attention import masked_softmax as found",
    "by name": "from pkgutil import resolve_name\n"
    "found = resolve_name('annotated.attention:masked_softmax')",
    "by its documentation": "import pydoc\n"
    "found = pydoc.locate('annotated.attention.masked_softmax') or 1 / 0",
    "by a pickle": "import pickle\n"
    "found = pickle.loads(b'cannotated.attention\\nmasked_softmax\\n.')",
    "by a run": "import runpy\nfound = runpy.run_module('annotated.attention')",
    "a right answer": "import annotated.checks as c\n"
    "found = c.exercise_named('ch02-tempered').right",
}


@pytest.mark.parametrize("way", ASKING)
def test_nothing_of_the_book_can_be_asked(submission, way):
    asking = f"{ASKING[way]}\ndef f(q, k): return q @ k.mT / 2"
    assert "there is no function f" not in tried(submission, asking).failures.values()
    hidden = ASKING[way].replace("\n", "\n    ")
    hidden = f"def f(q, k):\n    {hidden}\n    return q @ k.mT / 2"
    assert "your code raised" in tried(submission, hidden).failures[0]


ATTEND = "F.scaled_dot_product_attention(x @ W_q, x @ W_k, x @ W_v)"
READY_MADE = {
    "plainly": f"def f(x, W_q, W_k, W_v): return {ATTEND}",
    "in a thread": f"""import threading
def f(x, W_q, W_k, W_v):
    found = []
    thread = threading.Thread(target=lambda: found.append({ATTEND}))
    thread.start(); thread.join()
    return found[0]""",
    "unwatched": f"""def f(x, W_q, W_k, W_v):
    with torch._C.DisableTorchFunction(): return {ATTEND}""",
    "by its operator": f"""def f(x, W_q, W_k, W_v):
    return {ATTEND.replace("F.", "torch.ops.aten.")}""",
    "by its parts": """def f(x, W_q, W_k, W_v):
    q, k, v = (x @ w for w in (W_q, W_k, W_v))
    return torch.ops.aten._scaled_dot_product_attention_math(q, k, v)[0]""",
    "scripted": f"@torch.jit.script\ndef f(x, W_q, W_k, W_v): return {ATTEND}".replace(
        "F.", "torch.nn.functional."
    ),
    "mapped": f"def f(x, *W): return torch.vmap(lambda x: {ATTEND})(x)".replace(
        "W_q", "W[0]").replace("W_k", "W[1]").replace("W_v", "W[2]"),
    "patched": f"""from annotated.checks import material
material.ATTENTION = ()
material.written_out = lambda answer, *a: answer(*a)
def f(x, W_q, W_k, W_v): return {ATTEND}""",
    "flexible": """from torch.nn.attention.flex_attention import flex_attention
def f(x, W_q, W_k, W_v):
    return flex_attention(*((x @ w)[None] for w in (W_q, W_k, W_v)))[0]""",
}  # fmt: skip


@pytest.mark.parametrize("way", READY_MADE)
def test_what_is_to_be_written_out_cannot_be_called(submission, way):
    cases = exercise_named("ch02-self-attention").cases("a course's", graded=True)
    assert len(tried(submission, READY_MADE[way], cases).failures) == len(cases)


def test_a_repository_that_students_could_read_grades_nobody(monkeypatch):
    monkeypatch.setattr("grading.sandbox.ROOT", Path(sys.prefix) / "src")
    with pytest.raises(RunnerError, match="student code could read"):
        Runner("bubblewrap")


def test_it_reaches_no_network(confined):
    dial = """
import socket
def reaches():
    try:
        socket.create_connection(("127.0.0.1", PORT), timeout=1)
    except OSError:
        return False
    return True
def f(q, k):
    raise KeyError if reaches() else IndexError
"""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        outcome = tried(confined, dial.replace("PORT", str(port)))
    assert outcome.raised[0] == "IndexError"


def test_words_of_an_exception_reach_nobody(submission):
    source = f("raise ValueError(open('/proc/self/environ').read() + 'SECRETWORDS')")
    outcome = tried(submission, source)
    lines = "".join(shown(CASES, outcome.failures))
    assert outcome.raised[0] == "ValueError"
    assert "your code raised an exception" in lines
    assert "ValueError" not in lines  # one of fifty kinds would tell five bits
    named = 'class SECRETWORDS(BaseException): ""\nraise SECRETWORDS'
    assert "SECRETWORDS" not in "".join(tried(submission, named).failures.values())


# Two results that are wrong in one way, and differ in what they could have read.
READ = {
    "ch01-mask-padding": lambda right, *_: [
        right.masked_fill(right == 0, 10.0**-n) for n in (7, 30)
    ],
    "ch05-rotary": lambda right, *_: [right.half(), right.to(torch.int8)],
    "ch07-token-batches": lambda right, lengths, _: [
        [list(order) * 31] for order in (range(len(lengths)), range(len(lengths))[::-1])
    ],
}


@pytest.mark.parametrize("name", READ)
def test_a_hint_repeats_nothing_of_a_result(name):
    refused = 0
    for case in exercise_named(name).cases("a course's"):
        right = case.exercise.result_of(case.exercise.right, case)
        if isinstance(right, Differentiated):
            continue
        results = READ[name](right, *case.arguments)
        said = [judged(case, plain.dumps([r, case.arguments])) for r in results]
        refused += said[0][0] is not None
        assert said[0] == said[1]
    assert refused


def test_no_key_is_left_for_the_next_submission(runner):
    """The kernel's keyrings are in no namespace: a login's is the same for all."""
    numbers = {"x86_64": (248, 250), "aarch64": (217, 219)}
    if platform.machine() not in numbers:
        pytest.skip("the numbers of the calls are not known")
    add, keyctl = numbers[platform.machine()]
    ctypes.CDLL(None).syscall(keyctl, 1, None)  # as a login does
    kernel = "__import__('ctypes').CDLL(None).syscall"
    rings = (-3, -4, -5)  # the session's, the user's, the user's session's
    with Runner(runner.kind) as fresh:  # the one at hand has begun before
        with fresh.submission() as first:
            for ring in rings:
                written = f"{kernel}({add}, b'user', b'note', b'31337', 5, {ring}) > 0"
                assert found(first, written) or ring != rings[0]
        with fresh.submission() as second:
            for ring in rings:
                read = f"{kernel}({keyctl}, 10, {ring}, b'user', b'note', 0) > 0"
                assert not found(second, read)


# ---- what an answer leaves behind ------------------------------------------------

DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("/tmp/here", "w").write("31337")
        while True:
            for pid in os.listdir("/proc"):
                if pid.isdigit() and int(pid) not in (1, os.getpid()):
                    try:
                        os.kill(int(pid), 9)
                    except OSError:
                        continue
            time.sleep(0.01)
    os._exit(0)
time.sleep(0.3)
"""


def test_nothing_outlives_a_submission(runner):
    """A daemon that kills all it sees, and a file, meet no later student."""
    if runner.kind != "bubblewrap":
        pytest.skip("needs bubblewrap")
    with runner.submission() as running:
        tried(running, DAEMON + f(RIGHT))
        family = psutil.Process(running.sandbox.pid).children(recursive=True)
    assert family
    _, alive = psutil.wait_procs(family, timeout=300)  # at once, if the machine is idle
    assert not alive
    with runner.submission() as running:
        assert tried(running, f(RIGHT)).failures == {}
        assert not found(running, "__import__('os').path.exists('/tmp/here')")


def test_it_ends_though_its_first_process_was_told_to_live_on(runner, monkeypatch):
    """Student code can trace that process, and take back what binds it to bubblewrap:
    so it is killed by its number."""
    if runner.kind != "bubblewrap":
        pytest.skip("needs bubblewrap")
    killed = []
    monkeypatch.setattr(psutil.Process, "kill", lambda process: killed.append(process))
    with runner.submission() as running:
        [first] = psutil.Process(running.sandbox.pid).children()
    assert first in killed


def test_what_one_exercise_starts_does_not_reach_the_next(confined):
    tried(confined, DAEMON + f(RIGHT))
    assert tried(confined, f(RIGHT)).failures == {}


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (
            "import os, time\n    for _ in range(1000):\n        "
            "if os.fork() == 0: time.sleep(100)\n    time.sleep(100)",
            "too many processes",
        ),
        (
            "import os, time\n    for _ in range(8):\n        if os.fork() == 0:\n"
            "            x = torch.ones(200_000_000); time.sleep(100)\n"
            "    time.sleep(100)",
            "too much memory",
        ),
        (
            "open('/tmp/large', 'wb').write(b'0' * 10**8)\n    return q",
            "your code raised an exception",
        ),
        *(
            (
                f"for n in range(9): open(f'{folder}/{{n}}', 'wb').write(b'0' * 10**7)"
                "\n    return q",
                "your code raised an exception",
            )
            for folder in ("/dev/shm", "/dev", "/")
        ),
        (
            "import mmap, os, time\n    for _ in range(8):\n        "
            "if os.fork() == 0:\n            m = mmap.mmap(-1, 10**9)\n            "
            "m.write(b'0' * 10**9); time.sleep(100)\n    time.sleep(100)",
            "too much memory",
        ),
        (
            "import threading, time\n    threading.stack_size(2**16)\n"
            "    for _ in range(200):\n"
            "        threading.Thread(target=time.sleep, args=(100,)).start()\n"
            "    time.sleep(100)",
            "too many processes",
        ),
    ],
)
def test_processes_memory_and_disk_are_limited_together(confined, body, hint):
    # room for a busy machine: what is found first must be the memory
    confined.runner.seconds, before = 60.0, confined.runner.seconds
    try:
        found = tried(confined, f(body)).failures[0]
    finally:
        confined.runner.seconds = before
    assert hint in found or (hint == "too many processes" and "memory" in found)
    assert tried(confined, f(RIGHT)).failures == {}
    family = psutil.Process().children(recursive=True)
    assert len(family) < MOST_PROCESSES


def test_it_is_watched_while_it_writes(confined):
    """Bytes that drip, no line ended, once kept the grader from counting."""
    drip = """
import os, time
def f(q, k):
    for _ in range(150):
        if os.fork() == 0: break
    while True:
        for fd in range(3, 12):
            try:
                os.write(fd, b" ")
            except OSError:
                continue
        time.sleep(0.05)
"""
    hint = tried(confined, drip).failures[0]
    assert "too many processes" in hint or "too much memory" in hint


# ---- time ----------------------------------------------------------------------------


def test_what_others_take_does_not_count(monkeypatch):
    """On a busy machine, answers once ran out of time that they never had."""
    now, used, state = 0.0, 0.0, psutil.STATUS_RUNNING
    process = SimpleNamespace(
        memory_info=lambda: SimpleNamespace(rss=1),
        num_threads=lambda: 1,
        cpu_times=lambda: (used, 0.0, 0.0, 0.0),
        status=lambda: state,
    )

    def after(seconds):
        """What its clock says that so many seconds were, with a look now and then."""
        nonlocal now
        before = sandbox.clock()
        for _ in range(round(seconds / 0.05)):
            now += 0.05
            sandbox.clock()
        return sandbox.clock() - before

    monkeypatch.setattr(Sandbox, "_family", lambda sandbox: [process])
    monkeypatch.setattr("grading.sandbox.time.monotonic", lambda: now)
    sandbox = Sandbox.__new__(Sandbox)
    sandbox._shared, sandbox.patience = 0, 20.0
    sandbox._clock = sandbox._used = sandbox._looked = 0.0
    assert after(10.0) == 0  # it waits for a processor
    before, now, used = sandbox.clock(), now + 3, 3.0  # it computes
    assert sandbox.clock() == pytest.approx(before + 3)
    state = psutil.STATUS_SLEEPING
    assert after(3.0) == pytest.approx(3.0)
    before, now = sandbox.clock(), now + 99  # nobody looks: it is we who wait
    assert sandbox.clock() < before + 1
    state = psutil.STATUS_RUNNING  # or seems to be, for ever
    assert after(30.0) == pytest.approx(20.0, abs=0.2)


@pytest.mark.parametrize(("waits", "left"), [(True, []), (False, [1])])
def test_a_statement_is_not_left_for_what_others_take(monkeypatch, waits, left):
    before = signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGPROF)
    if waits:
        monkeypatch.setattr(student, "clock", lambda: 0.0)
    try:
        found = student.Cells().run("import time\ntime.sleep(0.5)", ends=0.0)
    finally:
        signal.signal(signal.SIGALRM, before[0])
        signal.signal(signal.SIGPROF, before[1])
    assert found == (None, left)


HALF = "half = __import__('time').sleep(9) or 0.5"


@pytest.mark.parametrize(
    ("cell", "answer", "left", "again"),
    [
        ("", f("import time; time.sleep(60)"), 0, True),
        ("", f("while True: pass"), 0, True),
        ("import time; time.sleep(9)", f(RIGHT), 1, False),
        (HALF, f("return q @ k.mT * half"), 1, True),
        ("", f("return q"), 0, False),
    ],
    ids=["waits", "computes", "right", "misses what was left", "wrong"],
)
def test_what_a_limit_took_is_tried_again_and_said(
    submission, cell, answer, left, again
):
    outcome = submission.run([IMPORTS, cell, answer], "f", CASES)
    assert outcome.again is again
    assert outcome.left == left
    assert bool(outcome.failures) is (answer != f(RIGHT))
    assert len(outcome.limits) == (left > 0) + (outcome.ended is not None)
    # another exercise doesn't wait for it, nor name it, once more
    assert submission.run([IMPORTS, cell, f(RIGHT)], "f", CASES).left == 0


def test_one_submission_waits_for_a_processor_no_longer_than_its_patience(submission):
    """Forks that nobody waits for take their seconds with them, so that a cell which
    computes in them would seem to wait for ever, in a new sandbox, too."""
    submission.sandbox.patience = 1.0
    ignored = "import os, signal, time; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    forks = """
    while True:
        if os.fork() == 0:
            end = time.process_time() + 0.2
            while time.process_time() < end: pass
            os._exit(0)
        try: os.wait()
        except ChildProcessError: pass
"""
    begun = time.monotonic()
    for _ in range(2):
        ended = submission.run([IMPORTS, ignored, f(forks)], "f", CASES).ended
        assert "longer than" in ended
    assert submission.sandbox.patience == 0
    assert time.monotonic() - begun < 60


def test_notebooks_are_judged_twice_where_a_limit_was_reached(monkeypatch):
    tried = []

    def judge(runner, notebook, cases):
        tried.append(sorted(cases))
        late = len(tried) == 1
        return {
            name: Outcome({0: "late"} if late else {}, {}, 0.0, None, 0, late)
            for name in cases
            if name == "late" or not late
        } | ({"wrong": Outcome({0: "no"}, {}, 0.0, None, 0, False)} if late else {})

    monkeypatch.setattr("grading.runner.judge", judge)
    outcomes = judge_twice(None, None, {"late": [], "wrong": []})
    assert tried == [["late", "wrong"], ["late"]]
    assert {name: bool(o.failures) for name, o in outcomes.items()} == {
        "late": False,
        "wrong": True,
    }


# ---- cells ---------------------------------------------------------------------------


def test_magic_commands_lose_no_helper(confined):
    cells = [
        IMPORTS,
        "%%time\ndef half(x): return x / 2",
        "%%writefile helper.py\ndef same(x): return x",
    ]
    answer = "from helper import same\ndef f(q, k): return same(half(q @ k.mT))"
    assert confined.run([*cells, answer], "f", CASES).failures == {}


@pytest.mark.parametrize(
    "body", ["pass", "\n try: 1/0\n except Exception: pass", "\n try: 1/0\n except: 0"]
)
def test_statements_that_do_not_end_are_left_and_remembered(submission, body):
    endless = f"before = 2\nwhile True: {body}\nbehind = 1"
    submission.left.clear()
    cells = [IMPORTS, endless, "def half(x): return behind * x / before"]
    answer = "def f(q, k): return half(q @ k.mT)"
    for _ in range(2):
        assert submission.run([*cells, answer], "f", CASES).failures == {}
    assert {cell: left for cell, left in submission.left.items() if left} == {
        endless: {1}
    }


def test_slow_cells_cost_themselves_once(submission):
    """Six experiments of two seconds once took the time of every answer below them."""
    slow = [f"import time; time.sleep(9)  # {n}" for n in range(2)]
    slow += [f"for n in range(10**9): {n}" for n in range(2)]
    for _ in range(2):
        outcome = submission.run([IMPORTS, *slow, f(RIGHT)], "f", CASES)
        assert outcome.failures == {}


@pytest.mark.parametrize(
    "source",
    [
        "from a_library_of_colab import drive\ndef half(x): return x / 2",
        "display(3)\ndef half(x): return x / 2",
        "check('ch02-tempered', f)\ndef half(x): return x / 2",
        "print(no_such_name); 1 / 0\nhalf = lambda x: x / 2",
        "import sys\nsys.exit()\nhalf = lambda x: x / 2",
        "from __future__ import annotations\ndef half(x: Number): return x / 2",
    ],
)
def test_a_statement_that_raises_costs_only_itself(submission, source):
    answer = "def f(q, k): return half(q @ k.mT)"
    assert submission.run([IMPORTS, source, answer], "f", CASES).failures == {}


PARTS = {"first": [Function("x + 1")], "then": Function("3 * x")}
combined = Exercise("ch99-parts", lambda parts, k: 3 * (k + 1), "other numbers")
combined.case("calls them")(lambda draw: (PARTS, draw.normal(2)))


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("return parts['then'](parts['first'][0](k))", None),
        ("return parts['first'][0](parts['then'](k))", "other numbers"),
        ("return parts.pop('then')(parts['first'].pop()(k))", "argument `parts` in"),
        (
            "one, parts['first'][0] = parts['first'][0], parts['then']\n"
            "    return parts['then'](one(k))",
            "argument `parts` in",
        ),
    ],
)
def test_functions_may_stand_in_a_dictionary(submission, source, hint):
    code = f"def f(parts, k):\n    {source}"
    told = tried(submission, code, combined.cases()).failures.get(0)
    assert told is None if hint is None else hint in told


def test_a_reply_of_another_kind_costs_nobody_a_grade():
    """An argument that came back as what no list is once stopped the judge."""
    case = combined.cases()[0]
    after = {"first": Differentiated(1, [2]), "then": "3 * x"}
    assert judged(case, plain.dumps([1, (after, 2)])) == (NO_RESULT, None)


def test_an_answer_may_be_called_through_a_function(submission):
    called = Exercise("ch99-called", lambda: 7, "no seven", through=os.fspath)
    called.through = __import__("operator").call
    called.case("is called")(lambda draw: ())
    for source, hint in (("return 7", None), ("return 8", "no seven")):
        told = tried(submission, f"def f(): {source}", called.cases()).failures
        assert told.get(0) == hint
    patched = "import operator; operator.call = lambda f: 7\ndef f(): return 8"
    assert tried(submission, patched, called.cases()).failures[0] == "no seven"


def test_what_an_answer_is_called_through_is_not_for_it_to_change(submission):
    cases = exercise_named("ch18-ring").cases("a course's", graded=True)
    patched = """import annotated.checks.material as m
m.around_the_ring = lambda answer, g, noise=0.0: [sum(g) + noise for _ in g]
m._played = m.Refused = None
def f(*a): yield"""
    assert tried(submission, patched, cases).failures


# ---- sandboxes -----------------------------------------------------------------------


@pytest.mark.parametrize("name", SANDBOXES)
def test_each_sandbox_grades_where_it_works(name):
    try:
        running = Runner(name, seconds=5)
    except RunnerError as error:
        assert f"no process for student code; {name}: " in str(error)
        return
    with running, running.submission() as submission:
        assert tried(submission, f(RIGHT)).failures == {}
        assert tried(submission, f("return q @ k.mT")).failures[0] == "not scaled"


def test_python_may_be_called_by_a_relative_path(runner, monkeypatch):
    path = os.path.relpath(sys.executable)
    monkeypatch.setattr(sys, "executable", os.path.join(os.getcwd(), "x", "..", path))
    with Runner(runner.kind) as started:
        assert started.kind == runner.kind


def test_no_weaker_sandbox_is_taken_unless_it_is_asked_for(runner, monkeypatch):
    if runner.kind != "bubblewrap":
        pytest.skip("needs bubblewrap")
    monkeypatch.setattr("grading.sandbox.SYSTEM", ())  # nothing runs there
    with pytest.raises(RunnerError, match=r"bubblewrap: .*asked for by its name"):
        Runner()
    with Runner("none"):
        pass


def test_nobody_is_refused_to_others_than_root(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: NOBODY)
    with pytest.raises(RunnerError, match="nobody: only root"):
        Runner("nobody")


def test_an_unknown_sandbox_is_refused():
    with pytest.raises(ValueError, match="expected one of bubblewrap, nobody, none"):
        Runner("jail")


# ---- plain data ------------------------------------------------------------------

VALUES = [
    None, True, 3, 2.5, math.inf, "text", [1, [2]], (1, "a"), {"a": (1,), 2: None},
    X := torch.arange(6).view(2, 3), X.float(), X.bool(), X.to(torch.bfloat16),
    X.to(torch.complex64), torch.tensor(1.5), torch.empty(0, 3), X.T, X.float()[:, ::2],
    Raised("ValueError", "3", ""), Problem("exit"),
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
        "[" * 40_000,
        "[" + "[]," * 60_000 + "1]",
        '{"tensor": ["float32", [9], ""]}',
        '{"tensor": ["float32", [-1], ""]}',
        '{"tensor": ["float32", [1000000000000], ""]}',
        '{"tensor": ["object", [1], "AAAA"]}',
        '{"tensor": 5}',
        '{"tensor": ["float32", 7, ""]}',
        '{"function": ["exit()", "x"]}',
        '{"dict": [[[], 1]]}',
        '{"a": 1, "b": 2}',
        '{"named": ["Differentiated", [1]]}',
        '{"named": ["Exercise", [1]]}',
        # whole numbers of one hash: a few thousand once took ten seconds
        plain.dumps({n * (2**61 - 1): 0 for n in range(1001)}),
    ],
)
def test_what_is_no_plain_data_is_refused(text):
    with pytest.raises(plain.NotPlain):
        plain.loads(text)
    assert judged(CASES[0], text) == (NO_RESULT, None)


def test_one_notebook_without_nbgrader(tmp_path):
    """As Gradescope grades it; nbgrader is not even imported."""
    notebook = tmp_path / "handed in.ipynb"
    sources = ["import time; time.sleep(60)", "check('ch02-tempered', tempered)"]
    cells = [{"cell_type": "code", "source": source} for source in sources]
    notebook.write_text(json.dumps({"cells": cells}))
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
    assert "\nch02-tempered: 1 statement(s) around it took too long" in done.stdout
    assert done.stdout.endswith("False\n")
    assert '"max_score": 3' in results.read_text()


def test_one_that_cannot_be_read_is_not_graded(tmp_path, capsys):
    notebook, results = tmp_path / "half.ipynb", tmp_path / "results.json"
    notebook.write_text("{half a fi")
    assert main(["one", "02", str(notebook), "--results", str(results)]) == 2
    assert "NOT GRADED" in capsys.readouterr().err
    assert not results.exists()
