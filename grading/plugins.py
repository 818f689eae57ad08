"""nbgrader's execution, replaced: answers run apart, their results are judged here.

`JudgeAnswers` stands where nbgrader's own `Execute` would start a kernel in which
student code and tests share everything. A course's nbgrader_config.py puts it there.
"""

from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Float, Unicode

from annotated.checks import NOT_DONE, Case, public_cases
from grading.hidden import hidden_cases
from grading.normalise import context_cells
from grading.runner import SECONDS, Runner, shown
from tools.exercises import Exercise, exercises


@dataclass
class Result:
    """What one exercise of one student came to, for the instructor's eyes."""

    student: str
    assignment: str
    exercise: str
    failed: list[tuple[str, str, str]]  # public or hidden, line, hint
    odd: list[str]
    seconds: float


RESULTS: list[Result] = []  # of this process, in the order of grading
_RUNNERS: dict[tuple, Runner] = {}


def runner_for(course: Path, sandbox: str | None, seconds: float) -> Runner:
    """The one runner of a course in this process."""
    key = course, sandbox, seconds
    if key not in _RUNNERS:
        _RUNNERS[key] = Runner(hide=[course], sandbox=sandbox, seconds=seconds)
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
        context = context_cells(nb)
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        for exercise in exercises(nb):
            if not exercise.in_words:
                self._grade(nb, context, exercise, resources["nbgrader"])
        return nb, resources

    def _grade(self, nb, context: list[str], exercise: Exercise, who: dict) -> None:
        public = public_cases(exercise.id)
        hidden = hidden_cases(exercise.id, Path(self.course) / "hidden")
        runner = runner_for(Path(self.course), self.sandbox or None, self.seconds)
        cells = [*context, nb.cells[exercise.answer].source]
        outcome = runner.run(cells, exercise.function, public, hidden)
        test = nb.cells[exercise.test]
        test.outputs = outputs(public, hidden, outcome.failures)
        RESULTS.append(
            Result(
                who["student"],
                who["assignment"],
                exercise.id,
                [("", "", NOT_DONE)]
                if NOT_DONE in outcome.failures.values()
                else [
                    ("public" if number < len(public) else "hidden", case.line, hint)
                    for number, case in enumerate([*public, *hidden])
                    if (hint := outcome.failures.get(number))
                ],
                outcome.odd,
                outcome.seconds,
            )
        )


def outputs(public: list[Case], hidden: list[Case], failures: dict[int, str]) -> list:
    """A test cell's outputs; with an error among them nbgrader gives no points."""
    text = "".join(f"{line}\n" for line in shown(public, hidden, failures))
    found = [nbformat.v4.new_output("stream", name="stdout", text=text)]
    if failures:
        message = f"{len(failures)} of {len(public) + len(hidden)} tests failed"
        found.append(
            nbformat.v4.new_output(
                "error", ename="CheckFailed", evalue=message, traceback=[f"✗ {message}"]
            )
        )
    return found
