"""nbgrader's execution, replaced: answers run apart, their results are judged here.

`JudgeAnswers` stands where nbgrader's own `Execute` would start a kernel in which
student code and tests share everything. A course's nbgrader_config.py puts it there.
"""

from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Float, Unicode

from annotated.checks import Case
from annotated.checks.calling import NOT_DONE
from grading.cases import graded_cases
from grading.runner import Runner, Submission, shown
from grading.sandbox import SECONDS
from tools.exercises import Exercise, exercises


@dataclass
class Result:
    """What one exercise of one student came to, for the instructor's eyes."""

    student: str
    assignment: str
    exercise: str
    failed: list[tuple[str, str]]  # line, hint
    ended: str | None


RESULTS: list[Result] = []  # of this process, in the order of grading
_RUNNERS: dict[tuple, Runner] = {}


def runner_for(sandbox: str | None, seconds: float) -> Runner:
    """The one runner of its kind in this process."""
    key = sandbox, seconds
    if key not in _RUNNERS:
        _RUNNERS[key] = Runner(sandbox, seconds)
    return _RUNNERS[key]


def stop_runners() -> None:
    while _RUNNERS:
        _RUNNERS.popitem()[1].stop()


class JudgeAnswers(NbGraderPreprocessor):
    """Runs each answer apart and writes the verdict as its test cell's output."""

    course = Unicode("", help="the course's folder").tag(config=True)
    sandbox = Unicode("", help="bubblewrap, nobody, none; empty: what works").tag(
        config=True
    )
    seconds = Float(SECONDS, help="limit for one exercise").tag(config=True)

    def preprocess(self, nb, resources):
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        with runner_for(self.sandbox or None, self.seconds).submission() as running:
            for exercise in exercises(nb):
                if not exercise.in_words:
                    self._grade(nb, exercise, running, resources["nbgrader"])
        return nb, resources

    def _grade(
        self,
        nb,
        exercise: Exercise,
        running: Submission,
        who: dict,
    ) -> None:
        cases = graded_cases(exercise.id, Path(self.course))
        outcome = running.grade(nb, exercise, cases)
        nb.cells[exercise.test].outputs = outputs(cases, outcome.failures)
        failed = [
            (cases[n].line, hint + f" ({outcome.raised[n]})" * (n in outcome.raised))
            for n, hint in sorted(outcome.failures.items())
        ]
        if NOT_DONE in outcome.failures.values():
            failed = [("", NOT_DONE)]
        who = who["student"], who["assignment"], exercise.id
        RESULTS.append(Result(*who, failed, outcome.ended))


def outputs(cases: list[Case], failures: dict[int, str]) -> list:
    """A test cell's outputs; with an error among them nbgrader gives no points."""
    text = "".join(f"{line}\n" for line in shown(cases, failures))
    found = [nbformat.v4.new_output("stream", name="stdout", text=text)]
    if failures:
        message = f"{len(failures)} of {len(cases)} checks failed"
        found.append(
            nbformat.v4.new_output(
                "error", ename="CheckFailed", evalue=message, traceback=[f"✗ {message}"]
            )
        )
    return found
