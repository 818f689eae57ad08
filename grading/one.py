"""Grade one notebook without nbgrader, as Gradescope and GitHub Classroom do.

    python -m grading one 02 NOTEBOOK --course FOLDER --results results.json

Of the course only `seed`, `cases/` and `partial` are read. The results are in
Gradescope's format. Questions in words are not in them: they are marked where the
platform lets people mark.
"""

import json
from pathlib import Path

from annotated.checks import exercise_named
from grading.cases import earned, graded_cases
from grading.normalise import Unreadable, normalise, read_cells
from grading.runner import Runner, judge_twice, shown
from grading.sandbox import SANDBOXES, readable_by_students
from tools.exercises import exercises, read_exercises, source_of, student_notebook
from tools.source import setup_cell


def grade_one(
    chapter: str,
    paths: list[Path],
    course: Path | None = None,
    sandbox: str | None = None,
) -> dict:
    """Marks and lines for each coding exercise, as a student may see them.

    Of several files the newest counts. Without a course the public cases are tried,
    those of the notebook's own checks.

    Raises:
        ValueError: if the file can't be read, which is no blank answer.
    """
    release = student_notebook(read_exercises(source_of(chapter), setup_cell()))
    path = max(paths, key=lambda path: path.stat().st_mtime)
    try:
        notebook, odd = normalise(release, read_cells(path.read_bytes()))
    except (Unreadable, OSError) as error:
        raise ValueError(f"{path.name}: {error}: NOT GRADED") from error
    if len(paths) > 1:
        odd.append(f"of {len(paths)} files, {path.name} was graded, the newest")
    if course and (shown_to := readable_by_students(course)):
        raise ValueError(f"student code could read {course}, below {shown_to}")
    asked = [exercise for exercise in exercises(notebook) if not exercise.in_words]
    cases = {
        exercise.id: graded_cases(exercise.id, course)
        if course
        else exercise_named(exercise.id).cases()
        for exercise in asked
    }
    with Runner(sandbox) as runner:
        outcomes = judge_twice(runner, notebook, cases)
    tests = []
    for exercise in asked:
        outcome, count = outcomes[exercise.id], len(cases[exercise.id])
        odd += [f"{exercise.id}: {said}" for said in outcome.limits]
        tests.append(
            {
                "name": exercise.id,
                "score": earned(exercise, count, outcome.failures, course),
                "max_score": exercise.points,
                "output": "\n".join(shown(cases[exercise.id], outcome.failures)),
            }
        )
    odd.append(f"Student code ran in: {runner.kind} ({SANDBOXES[runner.kind]})")
    return {"tests": tests, "output": "\n".join(odd)}


def report(results: dict, to: Path | None) -> bool:
    """Print and write the results; were all points earned?"""
    for test in results["tests"]:
        print(f"{test['name']}: {test['score']:g} of {test['max_score']:g} points")
        print("".join(f"  {line}\n" for line in test["output"].split("\n")), end="")
    if results["output"]:
        print(results["output"])
    if to:
        to.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return all(test["score"] == test["max_score"] for test in results["tests"])
