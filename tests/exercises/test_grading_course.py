"""A course of chapter 02, as an instructor makes and grades it: one command each."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from annotated.checks import public_cases
from grading.hidden import hidden_cases
from tests.exercises.submissions import Maker
from tools import ROOT
from tools.exercises import read_exercises, source_of, student_notebook
from tools.source import read_notebook, setup_cell

CHAPTER, ASSIGNMENT = "02", "ch02"


def grading(*arguments, expect=0):
    done = subprocess.run(
        [sys.executable, "-m", "grading", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout if expect == 0 else done.stderr


def rows(course, name):
    with open(course / "export" / name, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def fill(course, student, **values):
    """Write into the row of a student in manual.csv, as a spreadsheet would."""
    path = course / "export" / "manual.csv"
    table = rows(course, "manual.csv")
    for row in table:
        if row["student"] == student:
            row.update(values)
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, table[0].keys())
        writer.writeheader()
        writer.writerows(table)


@pytest.fixture(scope="module")
def solved():
    return read_exercises(source_of(CHAPTER), setup_cell())


@pytest.fixture(scope="module")
def maker(solved):
    return Maker(student_notebook(solved), solved)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    folder = tmp_path_factory.mktemp("courses") / "autumn"
    said = grading("assignment", CHAPTER, folder)
    assert "release/ch02/" in said
    return folder


@pytest.fixture(scope="module")
def graded(course, maker):
    """The course, what was handed in by whom, and what the command said."""
    handed = {submission.student: submission for submission in maker.all()}
    for submission in handed.values():
        path = course / "inbox" / submission.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(submission.content, encoding="utf-8")
    return handed, grading("grade", course)


def test_the_release_holds_no_solution_and_is_the_student_notebook(course, solved):
    release = read_notebook(next((course / "release" / ASSIGNMENT).glob("*.ipynb")))
    student = student_notebook(solved)
    assert [c.source.strip() for c in release.cells] == [
        c.source.strip() for c in student.cells
    ]


def test_every_submission_gets_the_marks_that_it_deserves(graded, course, maker):
    handed, _ = graded
    points = {exercise.id: exercise.points for exercise in maker.code}
    found = {student: {} for student in handed}
    for row in rows(course, "exercises.csv"):
        name = row["exercise"].removesuffix("-test")
        if name in points:
            found[row["student"]][name] = float(row["score"])
    for student, submission in handed.items():
        expected = {
            name: 0.0 if name in submission.lost else float(most)
            for name, most in points.items()
        }
        assert found[student] == expected, student


def test_words_wait_for_a_person_and_blank_ones_score_nothing(graded, course, maker):
    handed, said = graded
    table = {row["student"]: row for row in rows(course, "manual.csv")}
    for student, submission in handed.items():
        assert table[student]["score"] == ("" if submission.words else "0"), student
    waiting = sum(submission.words for submission in handed.values())
    assert f"{waiting} answer(s) in words to be marked" in said


def test_the_report_says_what_was_odd(graded, course):
    handed, _ = graded
    report = rows(course, "report.csv")
    for student, submission in handed.items():
        about = [r["odd"] for r in report if r["file"] == submission.path]
        for words in submission.odd:
            assert any(words in line for line in about), (student, words, about)
    quiet = [s for s in ("rightr", "mona") if not handed[s].odd]
    assert not [r for r in report if r["student"] in quiet]


def test_no_submission_takes_long(graded):
    _, said = graded
    times = [float(line.split()[-2]) for line in said.splitlines() if " ch02 " in line]
    assert len(times) == len(graded[0])
    assert sum(times) / len(times) < 15


def test_feedback_shows_no_hidden_test(graded, course, maker):
    handed, _ = graded
    secret = set()
    for exercise in maker.code:
        public = {case.line for case in public_cases(exercise.id)}
        secret |= {case.line for case in hidden_cases(exercise.id)} - public
    assert len(secret) > 5
    for student in handed:
        [page] = (course / "feedback" / student / ASSIGNMENT).glob("*.html")
        text = page.read_text(encoding="utf-8")
        assert not [line for line in secret if line in text], student
        # what a student writes runs no script where it is read
        assert "<script>alert(31337)" not in text, student
        assert "<img" not in text.split("alert(31337)")[0][-60:], student
        # what the peeking answer found and threw: the loaded module, its frames
        assert "judge_" not in text.replace("judge_answers", ""), student


def test_exports_for_canvas_and_moodle(graded, course, maker):
    total = sum(exercise.points for exercise in maker.exercises)
    first, *students = rows(course, "canvas.csv")
    assert first["Student"].strip() == "Points Possible"
    assert float(first[ASSIGNMENT]) == total
    right = next(row for row in students if row["SIS User ID"] == "rightr")
    assert right["ID"] == "102"
    assert float(right[ASSIGNMENT]) == total - maker.words.points
    moodle = {row["Identifier"]: row for row in rows(course, "moodle-ch02.csv")}
    assert moodle["Participant 103"]["Full name"] == "Will Wrong"
    assert float(moodle["Participant 103"]["Maximum Grade"]) == total


def test_marks_given_by_hand_outlive_another_grading(graded, course, maker):
    keep = ("rightr", "half")
    for path in list((course / "inbox").iterdir()):
        if not path.name.startswith(keep):
            path.rename(course / path.name)
    fill(course, "rightr", score="2.5", comment="Why only eight?")
    said = grading("grade", course)
    assert "rightr" in said
    for _ in range(2):
        table = {row["student"]: row for row in rows(course, "exercises.csv")}
        words = next(
            row
            for row in rows(course, "exercises.csv")
            if row["student"] == "rightr" and row["exercise"] == maker.words.id
        )
        assert (words["score"], words["by_hand"]) == ("2.5", "yes")
        assert "trun" in table  # who is no longer in the inbox keeps the marks
        grading("grade", course)
    manual = {row["student"]: row for row in rows(course, "manual.csv")}
    assert manual["rightr"]["comment"] == "Why only eight?"
    assert manual["half"]["score"] == ""
    page = next((course / "feedback" / "rightr" / ASSIGNMENT).glob("*.html"))
    assert "Why only eight?" in page.read_text(encoding="utf-8")


def test_marks_from_nbgraders_own_pages_stay_and_a_new_answer_is_said(
    graded, course, maker
):
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", course.name) as gradebook:
        [notebook] = gradebook.find_submission(ASSIGNMENT, "half").notebooks
        [grade] = [g for g in notebook.grades if g.name == maker.words.id]
        grade.manual_score = 1.5
        gradebook.db.commit()
    grading("grade", course)
    manual = {row["student"]: row for row in rows(course, "manual.csv")}
    assert manual["half"]["score"] == manual["half"]["recorded"] == "1.5"
    [path] = (course / "inbox").glob("half*")
    changed = json.loads(path.read_text())
    changed["cells"][maker.words.answer]["source"] += "\n\nOn second thoughts, no."
    path.write_text(json.dumps(changed))
    grading("grade", course)
    report = [row["odd"] for row in rows(course, "report.csv")]
    assert f"half: {maker.words.id} has changed since it was marked" in report
    [words] = [
        row
        for row in rows(course, "exercises.csv")
        if row["student"] == "half" and row["exercise"] == maker.words.id
    ]
    assert words["score"] == "1.5"


def test_marks_out_of_range_are_refused_by_line(graded, course):
    fill(course, "half", score="99")
    grading("grade", course)
    report = [row["odd"] for row in rows(course, "report.csv")]
    assert any("score '99', expected 0 to" in line for line in report)


def test_tests_that_reject_the_model_answer_grade_nobody(graded, course, maker):
    hidden = course / "hidden" / f"{ASSIGNMENT}.py"
    before = hidden.read_text()
    marks = (course / "export" / "exercises.csv").read_bytes()
    wrong = f"""
@hidden("{maker.code[0].id}", 1)
def _(result, n):
    "a slip"
    raise AssertionError("never right")
"""
    import_it = "from grading.hidden import hidden\n"
    for text, said in [
        (before + "\nimport no_such_module\n", "do not run: ModuleNotFoundError"),
        (
            import_it + "@hidden('ch02-typo', 1)\ndef _(result, n):\n    'typo'\n",
            "tests ['ch02-typo'], which is no exercise of this assignment",
        ),
        (
            before + import_it + wrong,
            "fails the test 'a slip'",
        ),
    ]:
        hidden.write_text(text)
        assert said in grading("grade", course, expect=2)
    hidden.write_text(before)
    assert (course / "export" / "exercises.csv").read_bytes() == marks


def test_files_that_nobody_can_be_found_for_are_said_loudly(course):
    stray = course / "inbox" / "02_self_attention.ipynb"
    stray.write_text("{}")
    said = subprocess.run(
        [sys.executable, "-m", "grading", "grade", course],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    stray.unlink()
    assert said.returncode == 1, said.stdout + said.stderr
    assert "02_self_attention.ipynb: nobody can be read from the name" in said.stdout


def test_a_folder_that_is_no_course_is_refused_with_the_way_to_one(tmp_path):
    said = grading("grade", tmp_path, expect=2)
    assert "make assignment CHAPTER=02" in said


def test_a_chapter_without_exercises_is_refused(tmp_path):
    assert "CHAPTER=77: expected one of" in grading(
        "assignment", "77", tmp_path / "course", expect=2
    )


def test_a_second_assignment_keeps_the_instructors_files(course):
    config = course / "nbgrader_config.py"
    config.write_text(config.read_text() + "\n# mine\n")
    hidden = Path(course / "hidden" / f"{ASSIGNMENT}.py")
    hidden.write_text(hidden.read_text() + "\n# mine\n")
    said = grading("assignment", CHAPTER, course)
    assert "is kept" in said
    assert config.read_text().endswith("# mine\n")
    assert hidden.read_text().endswith("# mine\n")
