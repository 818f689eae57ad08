"""A course of chapter 02, as an instructor makes and grades it: one command each."""

import csv
import json
import multiprocessing
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from nbgrader.api import Gradebook

from grading import course as grading_course
from grading.__main__ import main
from grading.cases import graded_cases
from grading.collect import Submission
from grading.course import Course, CourseError, _each, _Work, chosen
from grading.normalise import read_cells
from grading.one import grade_one
from grading.runner import Outcome, RunnerError
from tests.exercises.submissions import Maker
from tools import ROOT
from tools.exercises import read_exercises, source_of, student_notebook
from tools.source import read_notebook, setup_cell

CHAPTER, ASSIGNMENT = "02", "ch02"


def started(arguments, folder):
    """The command in a process of its own, which writes into files."""
    for stream in ("stdout", "stderr"):
        setattr(sys, stream, open(folder / stream, "w", encoding="utf-8"))
    code = main([str(argument) for argument in arguments])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def grading(*arguments, expect=0):
    """What a command says; in a fork, for whose imports nobody has to wait."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        fork = multiprocessing.get_context("fork")
        process = fork.Process(target=started, args=(arguments, folder))
        process.start()
        process.join(1200)
        out, err = ((folder / s).read_text("utf-8") for s in ("stdout", "stderr"))
    assert process.exitcode == expect, out + err
    return err if expect == 2 else out


def rows(course, name):
    with open(course / "export" / name, newline="", encoding="utf-8-sig") as stream:
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


def test_an_interrupted_run_says_how_it_goes_on(tmp_path, monkeypatch, capsys):
    def interrupted(*_, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(grading_course, "grade", interrupted)
    assert main(["grade", str(tmp_path)]) == 130
    assert "The same command goes on" in capsys.readouterr().err


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
        path.write_text(submission.content, encoding=submission.encoding)
    # something could not be graded, and is said
    return handed, grading("grade", course, expect=1)


def test_an_assistant_finds_its_rules_beside_the_release(course):
    rules = (course / "release" / ASSIGNMENT / "AGENTS.md").read_text("utf-8")
    assert "Don't write, complete or correct" in rules and "# exercise:" in rules


def test_the_release_holds_no_solution_and_is_the_student_notebook(course, solved):
    release = read_notebook(next((course / "release" / ASSIGNMENT).glob("*.ipynb")))
    student = student_notebook(solved)
    assert [c.source.strip() for c in release.cells] == [
        c.source.strip() for c in student.cells
    ]


def test_every_submission_gets_the_marks_that_it_deserves(graded, course, maker):
    handed, _ = graded
    points = {exercise.id: exercise.points for exercise in maker.code}
    found = {s: {} for s, submission in handed.items() if submission.graded}
    for row in rows(course, "exercises.csv"):
        name = row["exercise"].removesuffix("-test")
        if name in points:
            found[row["student"]][name] = float(row["score"])
    for student, submission in handed.items():
        if not submission.graded:
            continue
        expected = {
            name: 0.0 if name in submission.lost else float(most)
            for name, most in points.items()
        }
        assert found[student] == expected, student


def test_words_wait_for_a_person_and_blank_ones_score_nothing(graded, course, maker):
    handed, said = graded
    table = {row["student"]: row for row in rows(course, "manual.csv")}
    for student, submission in handed.items():
        if submission.graded:
            expected = "" if submission.words else "0"
            assert table[student]["score"] == expected, student
    assert table.keys() == {s for s, submission in handed.items() if submission.graded}
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
    said = [r["odd"] for r in report if r["student"] in quiet]
    assert len(said) == 2  # all is the book's, which nothing but that line says
    assert all("the book (ch02-in-words, ch02-" in line for line in said)


def test_each_submission_has_a_line_of_progress(graded):
    handed, said = graded
    lines = [line.split()[0] for line in said.splitlines() if "  ch02  " in line]
    count = sum(submission.graded for submission in handed.values())
    assert lines == [f"{number}/{count}" for number in range(1, count + 1)]


def test_feedback_repeats_nothing_that_student_code_says(graded, course):
    handed, _ = graded
    for student, submission in handed.items():
        if not submission.graded:
            continue
        # and nothing else lies there, such as what the grader noted
        [page] = (course / "feedback" / student / ASSIGNMENT).iterdir()
        text = page.read_text(encoding="utf-8")
        # the source of an answer is shown to who wrote it, and what it raised is not
        outputs = text.split("output_stream")[1:] + text.split("traceback")[1:]
        assert outputs, student
        assert not [o for o in outputs if "LEAKED" in o.split("</div>")[0]], student
        assert "<script>alert(31337)" not in text, student
        assert "<img src=x" not in text, student


def test_words_are_escaped_before_anybody_opens_them(graded, course):
    """The Formgrader shows what lies in `autograded`, by no preprocessor of ours."""
    [path] = (course / "autograded" / "ext" / ASSIGNMENT).glob("*.ipynb")
    words = [
        "".join(cell["source"])
        for cell in json.loads(path.read_text())["cells"]
        if "31337" in "".join(cell["source"])
    ]
    assert words
    assert "&lt;script>" in words[0]
    assert "<script" not in words[0]


def test_what_could_not_be_graded_is_no_zero(graded, course):
    *_, rows_of_canvas = [rows(course, "canvas.csv")]
    assert not [row for row in rows_of_canvas if row["Student"] == "trun"]
    assert not [r for r in rows(course, "exercises.csv") if r["student"] == "trun"]
    assert (
        "trun_02_self_attention.ipynb: not a notebook (no JSON): NOT GRADED"
        in graded[1]
    )


def test_exports_for_canvas_and_moodle(graded, course, maker):
    total = sum(exercise.points for exercise in maker.exercises)
    first, *students = rows(course, "canvas.csv")
    assert first["Student"].strip() == "Points Possible"
    assert float(first[ASSIGNMENT]) == total
    right = next(row for row in students if row["ID"] == "102")
    assert right["Student"] == "rightr"
    assert float(right[ASSIGNMENT]) == total - maker.words.points
    moodle = {row["Identifier"]: row for row in rows(course, "moodle-ch02.csv")}
    assert moodle["Participant 103"]["Full name"] == "Will Wrong"
    assert float(moodle["Participant 103"]["Maximum Grade"]) == total
    assert moodle["Participant 103"]["Last modified (grade)"]
    # two of one name, told apart by their numbers
    assert {"Participant 901", "Participant 902"} <= moodle.keys()
    for platform, pages in [("canvas", ("102_90002",)), ("moodle", ("103", "902"))]:
        path = course / "export" / f"feedback-{platform}-{ASSIGNMENT}.zip"
        packed = " ".join(zipfile.ZipFile(path).namelist())
        assert all(f"x_{page}_" in packed for page in pages), packed
    assert ">ch02-tempered<" in (course / "export" / "class.html").read_text("utf-8")


def test_marks_given_by_hand_outlive_another_grading(graded, course, maker):
    keep = ("rightr", "half")
    for path in list((course / "inbox").iterdir()):
        if not path.name.startswith(keep):
            path.rename(course / path.name)
    fill(course, "rightr", score="2.5", comment="Why only eight?")
    assert "2 unchanged since they were graded" in grading("grade", course)
    for _ in range(2):
        table = {row["student"]: row for row in rows(course, "exercises.csv")}
        words = next(
            row
            for row in rows(course, "exercises.csv")
            if row["student"] == "rightr" and row["exercise"] == maker.words.id
        )
        assert (words["score"], words["by_hand"]) == ("2.5", "yes")
        assert "tam" in table  # who is no longer in the inbox keeps the marks
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


def test_marks_are_taken_over_without_grading_again(graded, course):
    fill(course, "half", score="2", comment="-1 for the reason")
    for _ in range(3):
        said = grading("export", course)
        assert "Student code" not in said
        manual = {row["student"]: row for row in rows(course, "manual.csv")}
        assert (manual["half"]["score"], manual["half"]["recorded"]) == ("2", "2")
    page = next((course / "feedback" / "half" / ASSIGNMENT).glob("*.html"))
    assert ">-1 for the reason" in page.read_text(encoding="utf-8").replace(" -1", "-1")
    report = [row["odd"] for row in rows(course, "report.csv")]
    assert not [odd for odd in report if "handed in nothing" in odd and "half" in odd]
    assert "unchanged since they were graded" in grading("grade", course)


def test_a_mark_out_of_range_is_refused_by_name_and_stays_as_entered(graded, course):
    fill(course, "half", score="99", comment="Nearly.")
    said = grading("grade", course, expect=1)
    assert "NOT TAKEN OVER: score '99', expected 0 to 3" in said
    assert "half, ch02-in-words: NOT TAKEN OVER" in said
    manual = {row["student"]: row for row in rows(course, "manual.csv")}
    assert (manual["half"]["score"], manual["half"]["comment"]) == ("99", "Nearly.")


def test_a_comment_is_taken_over_without_a_new_mark(graded, course):
    fill(course, "half", score="1.5", comment="Nearly.")
    said = grading("grade", course)
    assert not [
        line for line in said.splitlines() if "half" in line and "words" in line
    ]
    page = next((course / "feedback" / "half" / ASSIGNMENT).glob("*.html"))
    assert "Nearly." in page.read_text(encoding="utf-8")


def test_marks_come_back_from_any_spreadsheet(graded, course):
    """With semicolons and in Windows' encoding, a row altered: nothing is lost."""
    path = course / "export" / "manual.csv"
    table = rows(course, "manual.csv")
    for row in table:
        row["answer"] += " = √4"  # which this encoding has not, and no answer says
        if row["student"] == "mona":
            row |= {"score": "1,5", "comment": "schön"}
        if row["student"] == "half":
            row["student"] = "halv"
    with open(path, "w", newline="", encoding="cp1252", errors="replace") as stream:
        writer = csv.DictWriter(stream, table[0].keys(), delimiter=";")
        writer.writeheader()
        writer.writerows(table)
    said = grading("grade", course, expect=1)
    assert "'halv' is graded" in said
    assert "has changed since" not in "".join(
        r["odd"] for r in rows(course, "report.csv")
    )
    manual = {row["student"]: row for row in rows(course, "manual.csv")}
    assert (manual["mona"]["score"], manual["mona"]["comment"]) == ("1.5", "schön")
    assert manual["halv"]["answer"]


def test_cases_that_reject_the_model_answer_grade_nobody(graded, course, maker):
    own = course / "cases" / f"{ASSIGNMENT}.py"
    before = own.read_text()
    marks = (course / "export" / "exercises.csv").read_bytes()
    slip = f"""
from annotated.checks import exercise_named

@exercise_named("{maker.code[0].id}").case("a slip", graded_only=True)
def _(draw):
    return 1e30 * draw.normal(1, 2, 3), draw.uniform(1, 2, 1)  # too large
"""
    for text, said in [
        ("import no_such_module\n", "do not run: ModuleNotFoundError"),
        (slip.replace(maker.code[0].id, "ch02-typo"), "there is no exercise"),
        (slip, "fails the case 'a slip'"),
        (
            slip.replace(" draw.uniform(1, 2, 1)", ""),
            "arguments that the exercise cannot",
        ),
        (
            slip.replace("normal(1, 2, 3)", "nor(2)"),
            "a case of ch02-tempered does not run",
        ),
    ]:
        own.write_text(before + text)
        assert said in grading("grade", course, expect=2)
    own.write_text(before)
    (course / "seed").rename(course / "seed.gone")
    assert "secret seed" in grading("grade", course, expect=2)
    (course / "seed.gone").rename(course / "seed")
    (course / "gradebook.db").rename(course / "gradebook.gone")
    assert "gradebook.db holds no assignment ch02" in grading("grade", course, expect=2)
    (course / "gradebook.gone").rename(course / "gradebook.db")
    assert (course / "export" / "exercises.csv").read_bytes() == marks


def test_files_that_nobody_can_be_found_for_are_said_loudly(course):
    stray = course / "inbox" / "02_self_attention.ipynb"
    stray.write_text('{"cells": []}')
    said = subprocess.run(
        [sys.executable, "-m", "grading", "grade", course],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    stray.unlink()
    assert said.returncode == 1, said.stdout + said.stderr
    assert "02_self_attention.ipynb: nobody can be read from the name" in said.stdout


def test_what_others_may_have_taken_is_tried_once_more_alone(
    course, maker, monkeypatch
):
    """Also where one submission is tried at a time: other programs have work, too."""
    late, tried = maker.code[1].id, []

    def judge(runner, notebook, cases):
        tried.append(set(cases))
        if len(tried) == 1:
            raise OSError("no memory for another process")
        again = {late} if len(tried) == 2 else set()
        return {name: Outcome({}, {}, 0.0, None, 0, name in again) for name in cases}

    monkeypatch.setattr(grading_course, "judge", judge)
    cells = read_cells(json.dumps(maker.right()).encode())
    handed = [
        Submission(name, ASSIGNMENT, cells, f"{name}.ipynb", name)
        for name in ("fork", "late")
    ]
    drawn = {e.id: graded_cases(e.id, course.resolve()) for e in maker.code}
    runners = SimpleQueue()
    runners.put(SimpleNamespace(kind="none", seconds=8.0, stop=lambda: None))
    report = list(_each(Course(course), handed, {ASSIGNMENT: drawn}, runners, jobs=1))
    assert {late} in tried[2:]
    assert [len(names) for names in tried].count(len(drawn)) == 3
    assert report == [[], []]


def test_only_who_is_named_is_graded_anew(course, monkeypatch):
    asked, prepared = {}, []
    monkeypatch.setattr(grading_course, "grade", lambda _, **said: asked.update(said))
    main(["grade", str(course), "--student", "ada", "--chapter", "2"])
    handed = [Submission(n, ASSIGNMENT, [], f"{n}.ipynb", n) for n in ("ada", "bert")]
    monkeypatch.setattr(_Work, "known", lambda _: True)
    monkeypatch.setattr(_Work, "prepare", lambda w: prepared.append(w.submission))
    runners = SimpleQueue()
    runners.put(SimpleNamespace(kind="none", seconds=8.0, stop=lambda: None))
    anew = chosen(handed, asked["student"], asked["chapter"])
    assert list(_each(Course(course), handed, {}, runners, 1, anew)) == [[], []]
    assert prepared == handed[:1]
    other = Submission("ada", "ch12", [], "ada_12.ipynb", "ada")
    for student, chapter, names in [
        (None, None, set()),
        ("ada", None, {("ch02", "ada"), ("ch12", "ada")}),
        (None, "02", {("ch02", "ada"), ("ch02", "bert")}),
    ]:
        assert chosen([*handed, other], student, chapter) == names
    with pytest.raises(CourseError, match=r"expected one of .*: ada \(ch02\), bert"):
        chosen(handed, "eda", "02")


def test_a_folder_that_is_no_course_is_refused_with_the_way_to_one(tmp_path):
    said = grading("grade", tmp_path, expect=2)
    assert "make assignment CHAPTER=02" in said


def test_a_chapter_without_exercises_is_refused(tmp_path):
    assert "CHAPTER=77: expected one of" in grading(
        "assignment", "77", tmp_path / "course", expect=2
    )


def test_a_second_assignment_keeps_the_instructors_files(course):
    kept = [course / "nbgrader_config.py", course / "cases" / f"{ASSIGNMENT}.py"]
    for path in kept:
        path.write_text(path.read_text() + "\n# mine\n")
    seed = (course / "seed").read_text()
    grading("assignment", CHAPTER, course)
    assert all(path.read_text().endswith("# mine\n") for path in kept)
    assert (course / "seed").read_text() == seed


def test_a_course_that_student_code_could_read_grades_nobody(course, monkeypatch):
    here = course.parent
    for module in ("course", "one"):
        monkeypatch.setattr(f"grading.{module}.readable_by_students", lambda _: here)
    handed = course / "release" / ASSIGNMENT / "02_self_attention.ipynb"
    with pytest.raises(ValueError, match=f"student code could read .*{here}"):
        grade_one(CHAPTER, [handed], course)
    try:
        with pytest.raises(CourseError, match=f"student code could read .*{here}"):
            grading_course.grade(course, sandbox="bubblewrap")
    except RunnerError:
        pytest.skip("needs bubblewrap")


def test_every_grading_says_what_its_sandbox_is_for(course, monkeypatch, capsys):
    monkeypatch.setattr(grading_course, "collect", lambda *_: ([], []))
    monkeypatch.setattr(grading_course, "prove", lambda *_: {})
    grading_course.grade(course, sandbox="none")
    lines = capsys.readouterr().out.splitlines()
    assert [n for n, line in enumerate(lines) if "FOR A CLASS YOU TRUST" in line] == [
        0,
        len(lines) - 1,
    ]
    assert [
        r for r in rows(course, "report.csv") if "FOR A CLASS YOU TRUST" in r["odd"]
    ]
