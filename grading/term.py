"""What an instructor says of this term, in the course's folder: due.csv, teams.csv."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry

from grading.collect import Submission, student_id
from grading.export import days_late, read_rows


@dataclass(frozen=True)
class Due:
    """A date, and how many days after it are allowed: for the report, nobody pays."""

    when: datetime  # UTC without saying so, as nbgrader's gradebook keeps times
    allowed: int


def _utc(when: datetime) -> datetime:
    return when.astimezone(UTC).replace(tzinfo=None)


def due_dates(folder: Path, assignments: list[str]) -> dict[str, Due]:
    """The rows of due.csv: assignment, due, late_days. A day ends at midnight here.

    Raises:
        ValueError: for an assignment that isn't there, or what is no date.
    """
    found = {}
    for row in read_rows(folder / "due.csv"):
        name, due = row.get("assignment", ""), row.get("due", "")
        allowed = row.get("late_days", "") or "0"
        if name not in assignments:
            known = ", ".join(assignments)
            raise ValueError(f"due.csv: assignment: expected {known}, got {name!r}")
        try:
            when = datetime.fromisoformat(due)
            if len(due) == len("2026-11-22"):
                when += timedelta(days=1)
            found[name] = Due(_utc(when), int(allowed))
        except ValueError as error:
            raise ValueError(
                f"due.csv: {name}: expected due, such as 2026-11-22 18:00, and "
                f"late_days, a number or nothing; got {due!r} and {allowed!r}"
            ) from error
    return found


def take_over(
    gradebook: Gradebook, due: dict[str, Due], submissions: list[Submission]
) -> None:
    """Tell the gradebook what is due when, and what was handed in when."""
    for assignment in gradebook.assignments:
        date = due.get(assignment.name)
        assignment.duedate = date and date.when
    for handed in submissions:
        try:
            known = gradebook.find_submission(handed.chapter, handed.student)
        except MissingEntry:  # it could not be graded
            continue
        time = datetime.fromtimestamp(handed.time) if handed.time else None
        known.timestamp = time and _utc(time)
    gradebook.db.commit()


def late(gradebook: Gradebook, due: dict[str, Due]) -> list[tuple[str, str, str]]:
    """Who is late, or may be: student, assignment, and how much."""
    found = []
    for assignment in gradebook.assignments:
        for submission in assignment.submissions if assignment.name in due else ():
            days = days_late(submission)
            note = f"{days} day(s) late, {due[assignment.name].allowed} allowed"
            if days == "":
                note = "its file has no time: is it late?"
            if days != 0:
                found.append((submission.student.id, assignment.name, note))
    return found


def teams(folder: Path) -> dict[str, str]:
    """The rows of teams.csv, team and student: student -> team.

    Raises:
        ValueError: for half a row, a student of two teams, or a team called as one.
    """
    found: dict[str, str] = {}
    for row in read_rows(folder / "teams.csv"):
        team, student = (student_id(row.get(key, "")) for key in ("team", "student"))
        if not team or not student:
            raise ValueError(f"teams.csv: expected a team and a student, got {row}")
        if found.setdefault(student, team) != team:
            raise ValueError(
                f"teams.csv: {student} is in {found[student]} and in {team}"
            )
    if both := found.keys() & set(found.values()):
        raise ValueError(f"teams.csv: {min(both)} is both a team and a student")
    return found


def one_a_team(
    submissions: list[Submission], teams: dict[str, str]
) -> tuple[list[Submission], list[tuple[str, str]]]:
    """The newest submission of each team, under its name, and (file, what was odd)."""
    newest: dict[tuple[str, str], Submission] = {}
    odd = []
    for submission in sorted(submissions, key=lambda s: s.order):
        submission.student = teams.get(submission.student, submission.student)
        older = newest.get(key := (submission.student, submission.chapter))
        if older and older.cells != submission.cells:
            odd.append(
                (older.source, f"{submission.source} of its team is taken instead")
            )
        elif older:
            submission.time = older.time or submission.time
        newest[key] = submission
    return list(newest.values()), odd
