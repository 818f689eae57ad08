"""Grade one notebook without nbgrader, as Gradescope and GitHub Classroom do.

    python -m grading one 02 NOTEBOOK --hidden FOLDER --results results.json

The results are in Gradescope's format. Questions in words are not in them: they are
marked where the platform lets people mark.
"""

import json
from pathlib import Path

from annotated.checks import public_cases
from grading.hidden import HERE as HIDDEN
from grading.hidden import hidden_cases
from grading.normalise import Unreadable, context_cells, normalise, read_cells
from grading.runner import Runner, shown
from tools.exercises import (
    exercises,
    read_exercises,
    source_of,
    student_notebook,
)
from tools.source import setup_cell


def grade_one(
    chapter: str, path: Path, hidden_folder: Path = HIDDEN, sandbox: str | None = None
) -> dict:
    """Marks and lines for each coding exercise, as a student may see them."""
    release = student_notebook(read_exercises(source_of(chapter), setup_cell()))
    try:
        notebook, odd = normalise(release, read_cells(path))
    except (Unreadable, OSError) as error:
        notebook, odd = release, [f"{path.name}: {error}"]
    tests = []
    with Runner(hide=[hidden_folder], sandbox=sandbox) as runner:
        for exercise in exercises(notebook):
            if exercise.in_words:
                continue
            public = public_cases(exercise.id)
            hidden = hidden_cases(exercise.id, hidden_folder)
            cells = [*context_cells(notebook), notebook.cells[exercise.answer].source]
            outcome = runner.run(cells, exercise.function, public, hidden)
            tests.append(
                {
                    "name": exercise.id,
                    "score": 0 if outcome.failures else exercise.points,
                    "max_score": exercise.points,
                    "output": "\n".join(shown(public, hidden, outcome.failures)),
                }
            )
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
