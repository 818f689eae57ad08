"""Runs answers in sandboxes and judges their results here, where no student code is."""

import builtins
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from annotated.checks import Case, verdict
from annotated.checks.calling import NOT_DONE, Call, Function, Problem, Raised
from annotated.checks.material import written_out
from grading import plain
from grading.normalise import cells_for
from grading.sandbox import EXERCISE_ENDED, MEMORY, SANDBOXES, SECONDS, Ended, Sandbox
from tools.exercises import Exercise, exercises

ENDED = {
    "time": "your code takes longer than {seconds:.0f} seconds (an endless loop?)",
    "size": "your result is too large",
    "memory": "your code takes too much memory",
    "processes": "your code starts too many processes",
    "died": "your code ended its process before it gave a result",
}
ABOVE = 20.0  # seconds that the cells above the answers may waste, in all exercises
JUDGING = threading.Lock()  # right answers use torch's one generator of random numbers
NO_RESULT = "your code sent something else than a result"


@dataclass
class Outcome:
    """What one exercise of one submission came to.

    `failures` maps the number of each failed case to its hint, and `raised` to the kind
    of exception, which no student reads: it could say what the process has seen.
    `ended` says why no more could be tried, where the process did not come to its end,
    `left` how many statements around the answer took too long and were left out, and
    `again` whether the failures may come of a limit that others' work had a part in.
    """

    failures: dict[int, str]
    raised: dict[int, str]
    seconds: float
    ended: str | None
    left: int
    again: bool

    @property
    def limits(self) -> list[str]:
        """Which limits it reached, for a person to read."""
        said = [self.ended.replace("your ", "the ")] if self.ended else []
        if self.left:
            said.append(
                f"{self.left} statement(s) around it took too long and were left out"
            )
        return said


class RunnerError(RuntimeError):
    """No sandbox can be started: the installation is at fault, no student."""


class Runner:
    """A sandbox for each submission; the next one starts while this one works.

    Args:
        kind: a name of `SANDBOXES`, or None for the first that works here; where
            bubblewrap is installed, none but it.
        seconds: limit for one exercise.
        memory: limit in bytes, above what torch takes.
    """

    def __init__(
        self, kind: str | None = None, seconds: float = SECONDS, memory: int = MEMORY
    ) -> None:
        if kind is not None and kind not in SANDBOXES:
            raise ValueError(
                f"sandbox: expected one of {', '.join(SANDBOXES)}, got {kind!r}"
            )
        self.seconds, self.memory = seconds, memory
        self.not_used: list[str] = []  # sandboxes that do not work here, and why
        for name in [kind] if kind else SANDBOXES:
            try:
                self._next = Sandbox(name, memory)
                self._next.wait()
            except (Ended, OSError) as error:
                self.not_used.append(f"{name}: {error}")
                if name == "bubblewrap" and not kind and shutil.which("bwrap"):
                    break  # weaker ones are for those who ask for them
            else:
                self.kind = name
                return
        why = "; ".join(self.not_used)
        ask = "" if kind else " (another sandbox can be asked for by its name)"
        raise RunnerError(f"no process for student code; {why}{ask}")

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._next.kill()

    @contextmanager
    def submission(self) -> Iterator["Submission"]:
        """What runs the answers of one submission, and nothing of another."""
        running = Submission(self)
        try:
            yield running
        finally:
            running.sandbox.kill()

    def fresh(self) -> Sandbox:
        """A sandbox that has seen no student."""
        sandbox, self._next = self._next, Sandbox(self.kind, self.memory)
        try:
            sandbox.wait()
        except Ended as error:
            raise RunnerError(f"no process for student code: {error}") from error
        return sandbox


class Submission:
    """The exercises of one submission, in one sandbox; a new one if it is ended."""

    def __init__(self, runner: Runner) -> None:
        self.runner, self.sandbox = runner, runner.fresh()
        self.spare = ABOVE
        # cell -> numbers of its statements that do not end: they are tried once
        self.left: dict[str, set[int]] = {}

    def run(
        self,
        cells: list[str],
        function: str,
        cases: Sequence[Case],
        below: Sequence[str] = (),
    ) -> Outcome:
        """Try a function on one case after the other.

        Args:
            cells: what stands above the answer, and the answer, which defines it.
            function: its name.
            cases: what it is called with.
            below: what stands between the answer and its check.
        """
        begun, seconds, ended = time.monotonic(), self.runner.seconds, None
        *above, answer = cells
        hints: list[str | None] = []
        raised: dict[int, str] = {}
        left = self._count_left()
        try:
            through = cases[0].exercise.through if cases else None
            job = {"seconds": seconds, "memory": self.runner.memory}
            job |= {"function": function, "written_out": through is written_out}
            job["through"] = through and f"{through.__module__}:{through.__qualname__}"
            self._run_cells(above, job)
            deadline = self.sandbox.clock() + seconds
            missing = self._define(answer, function, deadline)
            if below:
                deadline += self._run_cells(below)
                if missing:  # it was run after what stands below it
                    missing = self._define(answer, function, deadline)
            for number, case in enumerate(cases):
                hint, kind = missing, None
                if not missing:
                    hint, kind = judged(case, self._call(case, deadline))
                hints.append(hint)
                if hint and kind:
                    raised[number] = kind
            if self.sandbox.ask({}, deadline + 1) != EXERCISE_ENDED:
                raise Ended("died")  # forged lines stood before it: start afresh
        except Ended as error:
            ended = ENDED.get(str(error), ENDED["died"]).format(seconds=seconds)
            hints += [ended] * (len(cases) - len(hints))
            patience = self.sandbox.patience
            self.sandbox.kill()
            self.sandbox = self.runner.fresh()
            self.sandbox.patience = patience
        failures = {number: hint for number, hint in enumerate(hints) if hint}
        missed = failures and any(map(self.left.get, (*above, *below)))
        seconds = round(time.monotonic() - begun, 2)
        left = self._count_left() - left
        return Outcome(failures, raised, seconds, ended, left, bool(ended or missed))

    def _count_left(self) -> int:
        return sum(map(len, self.left.values()))

    def grade(
        self, notebook: Any, exercise: Exercise, cases: Sequence[Case]
    ) -> Outcome:
        """Try an exercise of a notebook."""
        above, answer, below = cells_for(notebook, exercise)
        return self.run([*above, answer], exercise.function, cases, below)

    def _ask(self, request: dict, deadline: float) -> str:
        reply = self.sandbox.ask(request, deadline)
        if reply == EXERCISE_ENDED:
            raise Ended("died")
        return reply

    def _run_cells(self, cells: Sequence[str], job: dict | None = None) -> float:
        """Run what stands around the answer; what does not end costs its time once.

        Returns:
            The seconds that it took.
        """
        begun, seconds = self.sandbox.clock(), self.runner.seconds
        request = (job or {}) | {"cells": list(cells), "spare": self.spare}
        request["skip"] = [sorted(self.left.get(cell, ())) for cell in cells]
        deadline = begun + self.spare + seconds
        try:
            for cell, left in zip(
                cells, plain.loads(self._ask(request, deadline)), strict=True
            ):
                self.left.setdefault(cell, set()).update(map(int, left))
        except Ended:
            raise
        except Exception as error:  # forged
            raise Ended("died") from error
        finally:
            took = self.sandbox.clock() - begun
            self.spare = max(self.spare - max(took - seconds, 0.0), 0.0)
        return took

    def _define(self, answer: str, function: str, deadline: float) -> str | None:
        """Run the answer; why there is nothing to call, or None if there is."""
        try:
            reply = self._ask({"answer": answer}, deadline)
            defined, problem = plain.loads(reply)
        except (plain.NotPlain, TypeError, ValueError):
            return NO_RESULT
        if defined is True:
            return None
        if problem is None:
            return f"there is no function {function}"
        return f"your cell raised {_kind(problem)}"

    def _call(self, case: Case, deadline: float) -> str:
        request = {
            "arguments": plain.dumps(case.arguments),
            "gradients": case.gradients,
            "seed": case.seed,
        }
        return self._ask(request, deadline)


def judge(
    runner: Runner, notebook: Any, cases: dict[str, Sequence[Case]]
) -> dict[str, Outcome]:
    """Try the exercises of one submission whose cases are given."""
    with runner.submission() as running:
        return {
            exercise.id: running.grade(notebook, exercise, cases[exercise.id])
            for exercise in exercises(notebook)
            if exercise.id in cases
        }


def judge_twice(
    runner: Runner, notebook: Any, cases: dict[str, Sequence[Case]]
) -> dict[str, Outcome]:
    """The same, and once more where an outcome says so."""
    outcomes = judge(runner, notebook, cases)
    again = {name: cases[name] for name, found in outcomes.items() if found.again}
    return outcomes | (judge(runner, notebook, again) if again else {})


def judged(case: Case, reply: str) -> tuple[str | None, str | None]:
    """The verdict on what came back for one case, and the kind of exception in it;
    nothing else of it is repeated."""
    kind = None
    try:
        result, after = plain.loads(reply)
        if isinstance(result, Raised):
            kind = _kind(result.kind)
            result = Raised(kind, str(result.message))
        elif not isinstance(result, Problem):
            if not isinstance(after, tuple) or len(after) != len(case.arguments):
                return NO_RESULT, None
            after = with_functions(case.arguments, after)
        with JUDGING:
            return verdict(case, Call(result, after), quote=False), kind
    except Exception:  # forged: no answer can return what the judge stumbles over
        return NO_RESULT, None


def _kind(name: Any) -> str:
    """An exception's name, if it is one of Python's."""
    known = getattr(builtins, name, None) if isinstance(name, str) else None
    is_exception = isinstance(known, type) and issubclass(known, BaseException)
    return name if is_exception else "an exception"


def with_functions(before: Any, after: Any) -> Any:
    """What was sent back, with the functions that only their texts stand for."""
    if isinstance(before, Function) and after == before.expression:
        return before
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        rest = after[len(before) :]
        pairs = zip(before, after, strict=False)
        return type(after)([*(with_functions(*pair) for pair in pairs), *rest])
    if isinstance(before, dict) and isinstance(after, dict):
        return {key: with_functions(before.get(key), after[key]) for key in after}
    return after


def shown(cases: Sequence[Case], failures: dict[int, str]) -> list[str]:
    """What a student may see: a line of our own for each case."""
    if NOT_DONE in failures.values():
        return ["not done"]
    as_declared = sorted(enumerate(cases), key=lambda pair: pair[1].number)
    return [
        f"✗ {case.line}: {failures[number]}" if number in failures else f"✓ {case.line}"
        for number, case in as_declared
    ]
