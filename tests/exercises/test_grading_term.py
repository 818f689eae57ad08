"""What an instructor says of a term: dates, teams, partial credit."""

import csv
import os
import time
import zipfile
from datetime import datetime
from types import SimpleNamespace

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.utils import determine_grade

from annotated.checks import exercise_named
from annotated.checks.calling import NOT_DONE
from grading.cases import earned
from grading.collect import Submission, collect
from grading.course import _give_back, _roster, prepare
from grading.export import Canvas, Moodle, PerExercise
from grading.plugins import outputs
from grading.term import due_dates, late, one_a_team, take_over, teams
from tests.exercises.test_grading_collect import put
from tools.exercises import Exercise

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


@pytest.fixture(scope="module")  # it takes seconds to make
def empty(tmp_path_factory):
    """A course of one assignment with one exercise."""
    prepare()
    path = tmp_path_factory.mktemp("term") / "gradebook.db"
    with Gradebook(f"sqlite:///{path}") as made:
        made.add_assignment("ch02")
        made.add_notebook("x", "ch02")
        made.add_grade_cell("ch02-x-test", "x", "ch02", max_score=3, cell_type="code")
        yield made


@pytest.fixture
def gradebook(empty):
    yield empty
    time.tzset()  # where a test has changed it
    for student in list(empty.students):
        empty.remove_student(student.id)


def handed(gradebook, student, when=""):
    """A graded submission, and what was collected of it."""
    gradebook.update_or_create_student(student)
    gradebook.add_submission("ch02", student)
    seconds = datetime.fromisoformat(when).timestamp() if when else 0.0
    return Submission(student, "ch02", [], f"{student}.ipynb", student, time=seconds)


def table(gradebook, exporter, path, **options):
    exporter(to=str(path), **options).export(gradebook)
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize(
    ("due", "when", "days"),
    [
        ("2026-11-22 18:00", "2026-11-22 18:00", 0),
        ("2026-11-22 18:00", "2026-11-22 18:01", 1),
        ("2026-11-22 18:00", "2026-11-24 17:59", 2),
        ("2026-11-22 18:00+00:00", "2026-11-22 13:01", 1),
        ("2026-11-22", "2026-11-22 23:59", 0),
        ("2026-11-22", "2026-11-23 00:01", 1),
    ],
)
def test_days_late_are_counted_where_the_instructor_is(
    gradebook, tmp_path, monkeypatch, due, when, days
):
    monkeypatch.setenv("TZ", "America/Toronto")
    time.tzset()
    (tmp_path / "due.csv").write_text(f"assignment;due;late_days\nch02;{due};3\n")
    dates = due_dates(tmp_path, ["ch02"])
    take_over(gradebook, dates, [handed(gradebook, "ada", when)])
    said = [("ada", "ch02", f"{days} day(s) late, 3 allowed")] if days else []
    assert late(gradebook, dates) == said
    take_over(gradebook, dates, [])  # another run, without the file
    [row] = table(gradebook, PerExercise, tmp_path / "exercises.csv")
    assert row["days_late"] == str(days)


def test_a_file_without_a_time_is_asked_about_and_nothing_without_a_date(
    gradebook, tmp_path
):
    ada, bert = handed(gradebook, "ada", "2026-11-25"), handed(gradebook, "bert")
    gone = Submission("eve", "ch02", [], "eve.ipynb", "eve", time=1.0)  # not graded
    take_over(gradebook, due_dates(tmp_path, ["ch02"]), [ada, bert, gone])
    assert late(gradebook, {}) == []
    (tmp_path / "due.csv").write_text("assignment,due\nch02,2026-11-22\n")
    take_over(gradebook, dates := due_dates(tmp_path, ["ch02"]), [])
    notes = [note for *_, note in late(gradebook, dates)]
    asked = "its file has no time: is it late?"
    assert notes == ["2 day(s) late, 0 allowed", asked]
    rows = table(gradebook, PerExercise, tmp_path / "exercises.csv")
    assert [row["days_late"] for row in rows] == ["2", ""]


def test_what_is_handed_in_again_unchanged_keeps_its_first_time(tmp_path):
    name = "ada_100_90007_02_x.ipynb"
    put(tmp_path, name, when=300)
    put(tmp_path, f"again/{name}", when=400)
    (tmp_path / "again" / name).write_bytes((tmp_path / name).read_bytes())
    os.utime(tmp_path / "again" / name, (400, 400))
    put(tmp_path, "ada_100_90006_02_x.ipynb", when=100)
    [ada], _ = collect(tmp_path, ["ch02"])
    assert ada.time == 300


@pytest.mark.parametrize(
    ("lines", "failed", "points"),
    [
        (None, ["wrong"], 0),
        ("ch03\nch02-tempered", ["wrong"], 0),
        ("all", [], 3),
        ("all", ["wrong"], 2.25),
        ("ch02", ["wrong", "wrong"], 1.5),
        ("ch03 ch02-self-attention", ["wrong"], 2.25),
        ("all", ["wrong"] * 4, 0),
        ("all", [NOT_DONE], 0),
    ],
)
def test_part_of_the_points_is_given_where_the_course_says_so(
    tmp_path, lines, failed, points
):
    if lines is not None:
        (tmp_path / "partial").write_text(lines)
    cases = exercise_named("ch02-self-attention").cases()
    assert len(cases) == 4
    asked, failures = (
        Exercise("ch02-self-attention", 3, "f", 0, 1),
        dict(enumerate(failed)),
    )
    given = earned(asked, len(cases), failures, tmp_path)
    cell = nbformat.v4.new_code_cell("check()", outputs=outputs(cases, failures, given))
    cell.metadata["nbgrader"] = {"grade": True, "solution": False, "points": 3}
    assert (given, determine_grade(cell)) == (points, (points, 3))


TEAMS = "team,student\nt1,Ada Lovelace\nt1,bert\n"


def test_a_teams_newest_notebook_is_graded_and_marks_all_members(gradebook, tmp_path):
    (tmp_path / "teams.csv").write_text(TEAMS)
    members = teams(tmp_path)
    assert members == {"ada_lovelace": "t1", "bert": "t1"}
    made = [
        Submission(who, "ch02", [work], f"{who}.ipynb", who, order=(n,), time=n)
        for n, (who, work) in enumerate(
            [("bert", "a"), ("eve", "a"), ("ada_lovelace", "b"), ("t1", "b")], start=1
        )
    ]
    known = _roster(tmp_path, made)
    assert known.keys() == {"ada_lovelace", "bert", "eve"}
    taken, odd = one_a_team(made, members)
    assert {(s.student, s.source, s.time) for s in taken} == {
        ("eve", "eve.ipynb", 2),
        ("t1", "t1.ipynb", 3),  # which was handed in first by ada
    }
    said = "ada_lovelace.ipynb of its team is taken instead"
    assert odd == [("bert.ipynb", said)]

    for student in ("t1", *known):
        gradebook.update_or_create_student(student)
    [grade] = gradebook.add_submission("ch02", "t1").notebooks[0].grades
    grade.auto_score = 3
    gradebook.add_submission("ch02", "bert")  # before there was a team
    gradebook.db.commit()
    options = {"teams": members, "numbers": {("ch02", "bert"): "17"}}
    path = tmp_path / "marks.csv"
    rows = table(gradebook, PerExercise, path, **options)
    marks = [(row["student"], row["score"]) for row in rows]
    assert marks == [("ada_lovelace", "3.0"), ("bert", "3.0")]
    _, *rows = table(gradebook, Canvas, path, **options)
    marks = {row["Student"]: row["ch02"] for row in rows}
    assert marks == {"ada_lovelace": "3.0", "bert": "3.0", "eve": ""}
    rows = table(gradebook, Moodle, path, **options)
    assert {r["Identifier"]: r["Grade"] for r in rows}["Participant 17"] == "3.0"
    options["ungraded"] = {("ch02", "t1")}
    _, *rows = table(gradebook, Canvas, path, **options)
    assert {row["ch02"] for row in rows} == {""}


DUE, SOME = "assignment,due,late_days\nch02,", "expected lines all, ch02 or"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("due.csv", "assignment,due\nch03,2026-11-22", "expected ch02, got 'ch03'"),
        ("due.csv", f"{DUE}22.11.2026,", "such as 2026-11-22 18:00.*'22.11.2026'"),
        ("due.csv", f"{DUE}2026-11-22,some", "a number or nothing.*'some'"),
        ("teams.csv", f"{TEAMS}t2,bert", "bert is in t1 and in t2"),
        ("teams.csv", f"{TEAMS}bert,eve", "bert is both a team and a student"),
        ("teams.csv", f"{TEAMS}t2,", "expected a team and a student"),
        ("partial", "al", f"{SOME}.* got 'al'"),
        ("partial", "all ch02-temperd", f"{SOME}.* got 'ch02-temperd'"),
    ],
)
def test_a_slip_is_said(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=said):
        due_dates(tmp_path, ["ch02"])
        teams(tmp_path)
        earned(Exercise("ch02-tempered", 3, "f", 0, 1), 4, {}, tmp_path)


@pytest.mark.filterwarnings("error:Duplicate name")  # in an archive that isn't new
def test_feedback_is_packed_as_canvas_and_moodle_take_it(tmp_path):
    (tmp_path / "teams.csv").write_text(TEAMS)
    (tmp_path / "export").mkdir()
    for student in ("t1", "cora", "dan"):
        page = tmp_path / "feedback" / student / "ch02" / "02_x.html"
        page.parent.mkdir(parents=True)
        page.write_text(student)
    course = SimpleNamespace(folder=tmp_path, assignments=["ch02", "ch12"])
    stores = {("ch02", "cora"): {"canvas": "4711_88001"}, ("ch02", "t1"): {}}
    people = {"17": "bert", "18": "ada_lovelace", "19": "dan", "20": "eve"}
    numbers = {("ch02", number): who for number, who in people.items()}
    numbers |= {("ch12", "21"): "bert", ("", "4711"): "cora"}
    for _ in range(2):
        _give_back(course, stores, numbers, {("ch02", "dan")})
        packed = {}
        for path in (tmp_path / "export").iterdir():
            with zipfile.ZipFile(path) as archive:
                packed[path.name] = {n: archive.read(n) for n in archive.namelist()}
        assert packed == {
            "feedback-canvas-ch02.zip": {"x_4711_88001_feedback.html": b"cora"},
            "feedback-moodle-ch02.zip": {
                "x_17_assignsubmission_file_feedback.html": b"t1",
                "x_18_assignsubmission_file_feedback.html": b"t1",
            },
        }
