"""An nbgrader course of the book's exercises: make it, and grade what came in.

python -m grading assignment 02 COURSE
python -m grading grade COURSE
"""

import logging
import os
import re
import shutil
import sys
import time
import traceback
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import (
    Autograde,
    BaseConverter,
    GenerateAssignment,
    GenerateFeedback,
)
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config, PyFileConfigLoader

from annotated.checks import exercise_named
from annotated.checks.calling import Raised
from grading import cases, export, plugins
from grading.collect import Known, Submission, collect
from grading.normalise import normalise
from grading.runner import Runner
from grading.sandbox import SANDBOXES
from tools import ROOT, STUDENT
from tools.exercises import (
    exercises,
    read_exercises,
    source_of,
)
from tools.notebooks import text
from tools.source import setup_cell

TEMPLATES = Path(__file__).parent / "templates"
FOLDERS = ("inbox", "export")


NOT_GRADED = re.compile("NOT GRADED|NOT COLLECTED|NOT TAKEN OVER|NO FEEDBACK")


class CourseError(ValueError):
    """A course that cannot be made or graded; the message says what to do."""


def say(line: str = "") -> None:
    print(line, flush=True)


# ---- nbgrader ----------------------------------------------------------------


class Course:
    """A course folder, its settings and its gradebook."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        path = self.folder / "nbgrader_config.py"
        if not path.is_file():
            raise CourseError(
                f"COURSE={folder}: expected a course folder, there is no {path.name} "
                "in it. Make one: make assignment CHAPTER=02 COURSE=…"
            )
        self.config: Config = PyFileConfigLoader(
            path.name, str(path.parent)
        ).load_config()

    def directory(self, assignment: str = "", student: str = "*") -> CourseDirectory:
        return CourseDirectory(
            config=self.config, assignment_id=assignment, student_id=student
        )

    def gradebook(self) -> Gradebook:
        directory = self.directory()
        return Gradebook(directory.db_url, directory.course_id)

    def run(
        self, step: type[BaseConverter], assignment: str, student: str
    ) -> str | None:
        """One step of nbgrader; what it complained about if it failed."""
        log = logging.getLogger("traitlets")
        words = _Words()
        log.handlers, log.propagate = [words], False
        log.setLevel(logging.INFO)
        try:
            converter = step(
                coursedir=self.directory(assignment, student), config=self.config
            )
            converter.log, converter.force = log, True
            converter.start()
        except (Exception, SystemExit) as error:
            last = traceback.format_exception_only(error)[-1].strip()
            return " / ".join([*words.errors[-2:], last])
        return None

    @property
    def assignments(self) -> list[str]:
        found = (self.folder / "release").glob("*/*.ipynb")
        return sorted(path.parent.name for path in found)

    def release(self, assignment: str) -> Path:
        [path] = (self.folder / "release" / assignment).glob("*.ipynb")
        return path


class _Words(logging.Handler):
    """Keeps what nbgrader logs as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.errors.append(record.getMessage().strip().splitlines()[-1])


# ---- an assignment -------------------------------------------------------------


def make_assignment(chapter: str, folder: Path, root: Path = ROOT) -> None:
    """Write a chapter's exercises into a course folder, which is made if need be."""
    source = source_of(chapter, root)
    assignment = f"ch{source.name[:2]}"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # other users of the machine, student code among them
    for name in FOLDERS:
        (folder / name).mkdir(exist_ok=True)
    if not (folder / "nbgrader_config.py").exists():
        shutil.copy(TEMPLATES / "nbgrader_config.py", folder)
    if not (folder / "roster.csv").exists():
        export.write_rows(folder / "roster.csv", export.ROSTER, [])
    cases.prepare(folder, assignment)
    course = Course(folder)
    notebook = read_exercises(source, setup_cell(root))
    target = folder / "source" / assignment / f"{source.stem}.ipynb"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text(notebook, target), encoding="utf-8")
    problem = course.run(GenerateAssignment, assignment, ".")
    if problem:
        raise CourseError(f"nbgrader generate_assignment: {problem}")
    release = course.release(assignment)
    shutil.copy(root / STUDENT / "AGENTS.md", release.parent)
    say(f"Assignment {assignment} in {folder}:")
    for exercise in exercises(notebook):
        kind = "in words, marked by hand"
        if not exercise.in_words:
            kind = f"{len(exercise_named(exercise.id).cases())} cases"
        say(f"  {exercise.id:34} {exercise.points:g} points, {kind}")
    say(f"Give students {release.relative_to(folder.resolve())}")
    say(f"Put what they hand in into inbox/, then: make grade COURSE={folder}")


# ---- grading --------------------------------------------------------------------


def grade(folder: Path, pattern: str | None = None, sandbox: str | None = None) -> int:
    """Collect, normalise, autograde, give feedback, export; one line a submission.

    Returns:
        How many files could not be graded.
    """
    course, started = Course(folder), time.perf_counter()
    if not course.assignments:
        raise CourseError(f"COURSE={folder}: there is no assignment in it yet")
    if sandbox is not None:
        course.config.JudgeAnswers.sandbox = sandbox
    folder = course.folder
    folder.chmod(0o700)
    exports = folder / "export"
    exports.mkdir(exist_ok=True)
    settings = course.config.JudgeAnswers
    runner = plugins.runner_for(settings.sandbox or None, settings.seconds)
    say(f"Student code runs in: {runner.kind} ({SANDBOXES[runner.kind]})")
    for reason in runner.not_used:
        say(f"  not in {reason}")
    for assignment in course.assignments:
        prove(course, assignment, runner)
    numbers = _numbers(folder)
    submissions, odd = collect(folder / "inbox", course.assignments, pattern, numbers)
    _write_numbers(folder, numbers)
    ungraded: set[tuple[str, str]] = set()
    report = [(file, "", "", note) for file, note in odd]
    with course.gradebook() as gradebook:
        notes, refused = export.apply_manual(gradebook, exports / "manual.csv")
    report += [("manual.csv", "", "", note) for note in notes]
    known = _roster(folder, submissions)
    answers: dict[tuple[str, str, str], str] = {}
    plugins.RESULTS.clear()
    say(f"{len(submissions)} submission(s) in the inbox")
    for submission in sorted(submissions, key=lambda s: (s.chapter, s.student)):
        begun = time.perf_counter()
        try:
            notes = grade_one(course, submission, answers)
        except Exception as error:  # whatever it is, the others are graded
            notes = [f"NOT GRADED: {type(error).__name__}: {error}"]
        if any(note.startswith("NOT GRADED") for note in notes):
            ungraded.add((submission.chapter, submission.student))
        report += [
            (submission.source, submission.student, submission.chapter, note)
            for note in notes
        ]
        key = submission.chapter, submission.student
        marks = "not graded" if key in ungraded else _marks(course, submission)
        seconds = time.perf_counter() - begun
        who = f"{submission.chapter}  {submission.student:28}"
        say(f"  {who} {marks:>14} {seconds:6.1f} s")
    plugins.stop_runners()
    with course.gradebook() as gradebook:
        for student in known:
            gradebook.update_or_create_student(
                student,
                first_name=known[student]["first_name"] or None,
                last_name=known[student]["last_name"] or None,
                email=known[student]["email"] or None,
            )
        notes = export.write_manual(gradebook, exports / "manual.csv", answers, refused)
        report += [("manual.csv", "", "", note) for note in notes]
        rows = export.read_rows(exports / "manual.csv")
        to_mark = sum(not row["score"] for row in rows)
        options = {"roster": known, "ungraded": ungraded}
        options["numbers"] = {(a, student): n for (a, n), student in numbers.items()}
        _export(gradebook, course, exports, options)
        silent = [s.id for s in gradebook.students if not s.submissions]
        report += [("", student, "", "handed in nothing") for student in silent]
    _write_report(exports, report)
    took = time.perf_counter() - started
    each = took / max(len(submissions), 1)
    say(f"{len(report)} odd thing(s) in export/report.csv")
    left_out = [row for row in report if NOT_GRADED.search(row[-1])]
    for file, _, _, note in left_out:
        say(f"  {file}: {note}")
    if to_mark:
        say(
            f"{to_mark} answer(s) in words to be marked: fill in `score` in "
            "export/manual.csv, and run this again"
        )
    say(f"Marks in export/, feedback in feedback/. {took:.0f} s, {each:.1f} s each")
    return len(left_out)


def prove(course: Course, assignment: str, runner: Runner) -> None:
    """Refuse to grade a class by cases that reject the model answers.

    Cases of the course's own are the instructor's to write, and a slip in them would
    cost every student the points.
    """
    [path] = (course.folder / "source" / assignment).glob("*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    with runner.submission() as running:
        for exercise in exercises(notebook):
            if exercise.in_words:
                continue
            tried = cases.graded_cases(exercise.id, course.folder)
            for case in tried:
                expected = case.exercise.result_of(case.exercise.right, case)
                # what should be refused raises a ValueError, and nothing else
                if isinstance(expected, Raised) and expected.kind != "ValueError":
                    raise CourseError(
                        f"the case {case.line!r} of {exercise.id} has arguments that "
                        f"the exercise cannot take: {expected.kind}: "
                        f"{expected.message}. Nothing was graded"
                    )
            outcome = running.grade(notebook, exercise, tried)
            for number, hint in sorted(outcome.failures.items())[:1]:
                raise CourseError(
                    f"the model answer to {exercise.id} fails the case "
                    f"{tried[number].line!r}: {hint}. Nothing was graded"
                )


def grade_one(course: Course, submission: Submission, answers: dict) -> list[str]:
    """One submission through nbgrader; what was odd. Its failure is its own."""
    assignment, student = submission.chapter, submission.student
    path = course.release(assignment)
    release = nbformat.read(path, as_version=4)
    try:
        notebook, odd = normalise(release, submission.cells)
    except Exception as error:  # whatever a student can think of
        return [f"NOT GRADED: it cannot be read: {type(error).__name__}"]
    folder = course.folder / "submitted" / student / assignment
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / path.name)
    before = len(plugins.RESULTS)
    if problem := course.run(Autograde, assignment, student):
        return [*odd, f"NOT GRADED: {problem}"]
    if problem := course.run(GenerateFeedback, assignment, student):
        odd.append(f"graded, but NO FEEDBACK: {problem}")
    for exercise in exercises(notebook):
        if exercise.in_words:
            cell = notebook.cells[exercise.answer]
            words = export.brief(cell.source.partition("\n")[2]).strip()
            answers[assignment, student, cell.metadata["nbgrader"]["grade_id"]] = words
    for result in plugins.RESULTS[before:]:
        if result.ended:
            note = result.ended.replace("your ", "the ")
            odd.append(f"{result.exercise}: {note}")
    return odd


def _marks(course: Course, submission: Submission) -> str:
    with course.gradebook() as gradebook:
        try:
            found = gradebook.find_submission(submission.chapter, submission.student)
        except MissingEntry:
            return "not graded"
        grades = [grade for notebook in found.notebooks for grade in notebook.grades]
        to_mark = " + words" if any(map(export.awaited, grades)) else ""
        return f"{found.score:g}/{found.max_score:g}{to_mark}"


def _roster(folder: Path, submissions: list[Submission]) -> dict[str, dict[str, str]]:
    """roster.csv, with the students added that have handed something in."""
    known = {
        row["student"]: dict.fromkeys(export.ROSTER, "") | row
        for row in export.read_rows(folder / "roster.csv")
        if row.get("student")
    }
    for submission in submissions:
        row = known.setdefault(submission.student, dict.fromkeys(export.ROSTER, ""))
        row["student"], names = submission.student, submission.name.rsplit(" ", 1)
        found = {
            "first_name": names[0] if len(names) == 2 else "",
            "last_name": names[-1],
            "lms": submission.lms,
        }
        row |= {key: value for key, value in found.items() if not row[key]}
    rows = [[known[key][name] for name in export.ROSTER] for key in sorted(known)]
    export.write_rows(folder / "roster.csv", export.ROSTER, rows)
    return known


def _export(gradebook: Gradebook, course: Course, folder: Path, options: dict) -> None:
    for plugin in (export.PerExercise, export.Canvas):
        plugin(to=str(folder / plugin.name), **options).export(gradebook)
    for assignment in course.assignments:  # Moodle takes one at a time
        to = str(folder / f"moodle-{assignment}.csv")
        export.Moodle(to=to, assignment=[assignment], **options).export(gradebook)


def _numbers(folder: Path) -> Known:
    rows = export.read_rows(folder / "participants.csv")
    return {(row["assignment"], row["number"]): row["student"] for row in rows}


def _write_numbers(folder: Path, numbers: Known) -> None:
    rows = ((*key, student) for key, student in sorted(numbers.items()))
    header = ("assignment", "number", "student")
    export.write_rows(folder / "participants.csv", header, rows)


def _write_report(folder: Path, odd: list[tuple[str, str, str, str]]) -> None:
    export.write_rows(
        folder / "report.csv", ("file", "student", "assignment", "odd"), odd
    )
    failed = [
        (result.assignment, result.student, result.exercise, line, hint)
        for result in plugins.RESULTS
        for line, hint in result.failed
    ]
    header = ("assignment", "student", "exercise", "case", "hint")
    export.write_rows(folder / "failed.csv", header, failed)


def prepare() -> None:
    """What nbgrader needs of the process: its helpers on the path."""
    os.environ["PATH"] = os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    )
