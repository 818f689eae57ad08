"""Gradebooks as CSV: one row an exercise, Canvas, Moodle, and marks given by hand.

The first three are nbgrader exporters too:
`nbgrader export --exporter=grading.export.Canvas --to=canvas.csv`.
"""

import csv
import io
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from html import escape
from math import ceil
from pathlib import Path
from typing import Any

from nbgrader.api import Grade, Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.plugins.export import ExportPlugin
from traitlets import Dict, Set

from grading.normalise import MOST_WORDS

ROSTER = ("student", "first_name", "last_name", "email", "lms")
MANUAL = (
    "assignment", "student", "exercise", "maximum", "score", "comment", "recorded",
    "answer",
)  # fmt: skip


# Where a spreadsheet may find the beginning of a cell: in one that splits at semicolons
# or tabs, wherever these stand. The sign after it would make a formula of the cell.
# (Some leave out NUL, a byte order mark or a space without width before they look.)
FORMULA = re.compile(
    r"(^|[;\t\r\n])((?:[^\S\t\r\n]|[\"\0\ufeff\u200b])*)(?='*[=+@＝＋＠－-])"
)
NO_FORMULA = re.compile(rf"{FORMULA.pattern}'")
csv.field_size_limit(sys.maxsize)


def cell_text(value: Any) -> Any:
    """A value that no spreadsheet takes for a formula; `typed` undoes it."""
    return FORMULA.sub(r"\1\2'", value) if isinstance(value, str) else value


def typed(text: str) -> str:
    """What was typed into a cell, or what `cell_text` was made of."""
    return NO_FORMULA.sub(r"\1\2", text)


def brief(words: str) -> str:
    """An answer in words as a cell of a table can hold it: no pictures. (Excel has room
    for 32 767 letters.)"""
    words = re.sub(r"\bdata:[\w/+.-]+;base64,[\w+/=]+", "a picture", words)
    return words[:MOST_WORDS]


def write_rows(
    path: Path,
    header: Iterable[str],
    rows: Iterable[Iterable],
    encoding: str = "utf-8-sig",  # by its mark Excel knows that this is UTF-8
) -> None:
    with open(path, "w", newline="", encoding=encoding) as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows([cell_text(value) for value in row] for row in rows)


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, as spreadsheets save it too; none if there is no file."""
    if not path.exists():
        return []
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:  # Excel on Windows
        text = data.decode("cp1252", errors="replace")
    header = text.partition("\n")[0]
    separator = max(",;\t", key=header.count)
    return [
        {key: typed(value or "").strip() for key, value in row.items() if key}
        for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
    ]


class _Csv(ExportPlugin):
    roster = Dict(help="student id -> row of roster.csv")
    numbers = Dict(help="(assignment, student id) -> number that Moodle gave")
    teams = Dict(help="student id -> the team's, under which its work is graded")
    ungraded = Set(help="(assignment, student id) that could not be graded")
    name = "grades.csv"

    def export(self, gradebook: Gradebook) -> None:
        assignments = [
            assignment
            for assignment in gradebook.assignments
            if not self.assignment or assignment.name in self.assignment
        ]
        path = Path(self.to or self.name)
        header, rows = self.header(assignments), self.rows(gradebook, assignments)
        write_rows(path, header, rows, encoding="utf-8")  # for platforms, without

    def students(self, gradebook: Gradebook) -> list:
        return [s for s in gradebook.students if s.id not in self.teams.values()]

    def submission(self, student: Any, assignment: Any) -> SubmittedAssignment | None:
        """What counts for a student: the team's, if there is one."""
        graded = {s.student.id: s for s in assignment.submissions}
        return graded.get(self.teams.get(student.id)) or graded.get(student.id)

    def score(self, student: Any, assignment: Any) -> float | str:
        """The marks of a student; empty without any: no zero is made up."""
        submission = self.submission(student, assignment)
        if not submission or (assignment.name, submission.student.id) in self.ungraded:
            return ""
        return submission.score

    def person(self, student: Any) -> dict[str, str]:
        row = dict.fromkeys(ROSTER, "") | {"student": student.id}
        return row | self.roster.get(student.id, {})


class PerExercise(_Csv):
    """One row for each exercise of each student."""

    name = "exercises.csv"

    def header(self, assignments):
        who, marks = ("assignment", "student", "exercise"), ("score", "maximum")
        return (*who, *marks, "by_hand", "days_late")

    def marks(self, grade: Grade, assignment: str, student: str) -> tuple:
        if (assignment, student) in self.ungraded:
            return "", grade.max_score, "not graded"
        return ("" if awaited(grade) else grade.score, grade.max_score, by_hand(grade))

    def rows(self, gradebook, assignments):
        for assignment in assignments:
            for student in sorted(self.students(gradebook), key=lambda s: s.id):
                submission = self.submission(student, assignment)
                for notebook in submission.notebooks if submission else ():
                    for grade in sorted(notebook.grades, key=lambda grade: grade.name):
                        yield (
                            assignment.name,
                            student.id,
                            grade.name.removesuffix("-test"),
                            *self.marks(grade, assignment.name, submission.student.id),
                            days_late(submission),
                        )


class Canvas(_Csv):
    """What Canvas imports: Grades, Import.

    ``lib/gradebook_importer.rb`` of instructure/canvas-lms asks for the columns
    Student, ID, perhaps both SIS columns, and Section, in this order, and finds a
    student by ID, else by the SIS columns, else by the name.
    """

    name = "canvas.csv"

    def header(self, assignments):
        people = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
        return (*people, *(assignment.name for assignment in assignments))

    def rows(self, gradebook, assignments):
        empty = ("    Points Possible", "", "", "", "")
        yield (*empty, *(assignment.max_score for assignment in assignments))
        for student in self.students(gradebook):
            person = self.person(student)
            names = (person["last_name"], person["first_name"])
            yield (
                ", ".join(name for name in names if name) or student.id,
                person["lms"],
                "",
                "" if person["lms"] else student.id,
                "",
                *(self.score(student, assignment) for assignment in assignments),
            )


class Moodle(_Csv):
    """Moodle's grading worksheet of one assignment: View all submissions, Upload.

    ``mod/assign/feedback/offline/importgradeslib.php`` of moodle/moodle asks for the
    columns Identifier, Grade and Last modified (grade), separated by commas, and skips
    a grade that was changed in Moodle after that time.
    """

    name = "moodle.csv"

    def header(self, assignments):
        people = ("Identifier", "Full name", "Email address")
        return (*people, "Grade", "Maximum Grade", "Last modified (grade)")

    def rows(self, gradebook, assignments):
        now = datetime.now().strftime("%A, %d %B %Y, %I:%M %p")
        for assignment in assignments:
            for student in self.students(gradebook):
                person = self.person(student)
                name = f"{person['first_name']} {person['last_name']}".strip()
                number = self.numbers.get((assignment.name, student.id))
                yield (
                    f"Participant {number}" if number else "",
                    name or student.id,
                    person["email"],
                    self.score(student, assignment),
                    assignment.max_score,
                    now,
                )


CLASS = """<!doctype html><meta charset="utf-8"><title>What failed</title>
<style>body { font: 16px sans-serif; margin: 2em } td, th { text-align: left;
padding: 0.2em 1em 0.2em 0; vertical-align: top }</style>
<h1>What failed, and how often</h1>
<table><tr><th>exercise<th>case<th>failed<th>what most of them were told"""


def class_page(failed: Iterable[tuple], handed_in: Counter) -> str:
    """HTML of how many failed which case, the most first.

    Args:
        failed: (assignment, student, exercise, case, hint).
        handed_in: assignment -> how many submissions were graded.
    """
    hints: dict[tuple[str, str, str], Counter] = defaultdict(Counter)
    for assignment, _, exercise, case, hint in failed:
        hints[assignment, exercise, case][hint] += 1
    rows = []
    for key in sorted(hints, key=lambda key: (key[:2], -hints[key].total(), key)):
        of = f"{hints[key].total()} of {handed_in[key[0]]}"
        row = *key[1:], of, hints[key].most_common(1)[0][0]
        rows.append("\n<tr>" + "".join(f"<td>{escape(cell)}" for cell in row))
    return CLASS + "".join(rows) + "\n</table>\n"


def awaited(grade: Grade) -> bool:
    """Does a person still have to mark this?"""
    return grade.auto_score is None and grade.manual_score is None


def days_late(submission: SubmittedAssignment) -> int | str:
    """Days that were begun after the date; nothing where a date isn't known."""
    if submission.timestamp is None or submission.duedate is None:
        return ""
    return ceil(submission.total_seconds_late / 86_400)


def by_hand(grade: Grade) -> str:
    if awaited(grade):
        return "to be marked"
    return "yes" if grade.manual_score is not None else ""


def apply_manual(
    gradebook: Gradebook, path: Path
) -> tuple[list[str], dict[tuple[str, str, str], tuple[str, str]]]:
    """Take over the marks and comments that were entered in manual.csv.

    A row whose `score` equals `recorded` was not touched: then the gradebook holds what
    counts, marks that were given in nbgrader's own pages too.

    Returns:
        What could not be taken over, and these rows' score and comment as entered.
    """
    problems, refused = [], {}
    for row in read_rows(path):
        key = tuple(row.get(name, "") for name in MANUAL[:3])
        score, comment = row.get("score", ""), row.get("comment", "")
        marked = bool(score) and score != row.get("recorded")
        problem = f"{key[1]}, {key[2]}: NOT TAKEN OVER: "
        try:
            [notebook] = gradebook.find_submission(*key[:2]).notebooks
            [grade] = [g for g in notebook.grades if g.name == key[2]]
        except (MissingEntry, ValueError):
            if marked or comment:
                problems.append(f"{problem}none of {key[1]!r} is graded")
                refused[key] = score, comment
            continue
        if marked:
            try:
                points = float(score.replace(",", "."))
            except ValueError:
                points = -1.0
            if not 0 <= points <= grade.max_score:
                most = f"{grade.max_score:g}"
                problems.append(f"{problem}score {score!r}, expected 0 to {most}")
                refused[key] = score, comment
                continue
            grade.manual_score, grade.needs_manual_grade = points, False
        for known in notebook.comments:
            if known.name == grade.name and comment:
                known.manual_comment = comment
    gradebook.db.commit()
    return problems, refused


def write_manual(
    gradebook: Gradebook, path: Path, answers: dict, seen: dict, refused: dict
) -> list[str]:
    """Write every answer that a person marks, with the marks it has.

    `answers` maps (assignment, student, grade id) to the answer's text, and `seen` to
    what it was in the last table (a spreadsheet may have changed letters in that); rows
    of those who are not graded this time are kept, and what was refused stays as
    entered.

    Returns:
        What a person should look at again: marked answers that have changed since.
    """
    before = {
        tuple(row.get(name, "") for name in MANUAL[:3]): row.get("answer", "")
        for row in read_rows(path)
    }
    rows, changed = [], []
    for key, answer in sorted((before | answers).items()):
        assignment, student, exercise = key
        try:
            [notebook] = gradebook.find_submission(assignment, student).notebooks
            [grade] = [g for g in notebook.grades if g.name == exercise]
        except (MissingEntry, ValueError):
            changed.append(f"{student}: {exercise} of {assignment} is not graded: kept")
            rows.append((*key, "", *refused.get(key, ("", "")), "", answer))
            continue
        comments = [c.comment for c in notebook.comments if c.name == exercise]
        if grade.manual_score is not None:
            # nbgrader asks for every mark again after each run; only a new answer
            # needs it
            new = seen.get(key, answer) != answer
            grade.needs_manual_grade = new
            if new:
                changed.append(f"{student}: {exercise} has changed since it was marked")
        marks = "" if awaited(grade) else f"{grade.score:g}"
        entered = refused.get(key, (marks, (comments or [""])[0] or ""))
        rows.append((*key, grade.max_score, *entered, marks, answer))
    gradebook.db.commit()
    write_rows(path, MANUAL, rows)
    return changed
