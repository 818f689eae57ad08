"""nbgrader's execution, replaced: answers run apart, their results are judged here.

`JudgeAnswers` stands where nbgrader's own `Execute` would start a kernel in which
student code and tests share everything. A course's nbgrader_config.py puts it there.
"""

from pathlib import Path

import nbformat
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Float, Unicode

from annotated.checks import Case
from grading.cases import earned, graded_cases
from grading.runner import Outcome, Runner, judge_twice, shown
from grading.sandbox import SECONDS
from tools.exercises import exercises

# What came of each exercise of a student's assignment, if that was found out before:
# `grading.course` tries several submissions at once, which nbgrader can not.
JUDGED: dict[tuple[str, str], dict[str, Outcome]] = {}


class JudgeAnswers(NbGraderPreprocessor):
    """Runs each answer apart and writes the verdict as its test cell's output."""

    course = Unicode("", help="the course's folder").tag(config=True)
    sandbox = Unicode("", help="bubblewrap, nobody, none; empty: what works").tag(
        config=True
    )
    seconds = Float(SECONDS, help="limit for one exercise").tag(config=True)

    def preprocess(self, nb, resources):
        who = resources["nbgrader"]
        cases = {
            exercise.id: graded_cases(exercise.id, Path(self.course))
            for exercise in exercises(nb)
            if not exercise.in_words
        }
        outcomes = JUDGED.get((who["assignment"], who["student"]))
        if outcomes is None:  # by nbgrader's own command
            with Runner(self.sandbox or None, self.seconds) as runner:
                outcomes = judge_twice(runner, nb, cases)
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        for exercise in exercises(nb):
            if not exercise.in_words:
                failures, drawn = outcomes[exercise.id].failures, cases[exercise.id]
                points = earned(exercise, len(drawn), failures, Path(self.course))
                nb.cells[exercise.test].outputs = outputs(drawn, failures, points)
        return nb, resources


def outputs(cases: list[Case], failures: dict[int, str], points: float) -> list:
    """A test cell's outputs; with an error among them nbgrader gives no points, with a
    number so many."""
    text = "".join(f"{line}\n" for line in shown(cases, failures))
    found = [nbformat.v4.new_output("stream", name="stdout", text=text)]
    message = f"{len(failures)} of {len(cases)} checks failed"
    if failures and points:
        found[0].text += f"{message}: {points:g} points\n"
        data = {"text/plain": str(points)}
        found.append(nbformat.v4.new_output("execute_result", data))
    elif failures:
        found.append(
            nbformat.v4.new_output(
                "error", ename="CheckFailed", evalue=message, traceback=[f"✗ {message}"]
            )
        )
    return found
