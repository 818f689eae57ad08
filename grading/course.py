"""An nbgrader course of the book's exercises: make it, and grade what came in.

python -m grading assignment 02 COURSE
python -m grading grade COURSE
"""

import hashlib
import json
import logging
import os
import re
import shutil
import sys
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from itertools import chain
from pathlib import Path
from queue import SimpleQueue

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

from annotated.checks import Case, exercise_named
from annotated.checks.calling import Raised
from grading import cases, export, plugins, term
from grading.alike import BOOK, Answers, alike, answers
from grading.collect import Known, Submission, collect, limited
from grading.normalise import normalise
from grading.runner import NOT_DONE, Outcome, Runner, judge, judge_twice
from grading.sandbox import SANDBOXES, readable_by_students
from tools import ROOT, STUDENT
from tools.exercises import exercises, read_exercises, solution, source_of
from tools.notebooks import text
from tools.source import setup_cell

TEMPLATES = Path(__file__).parent / "templates"
FOLDERS = ("inbox", "export")
STORE = "graded.json"


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
            with limited():
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


def grade(
    folder: Path,
    pattern: str | None = None,
    sandbox: str | None = None,
    jobs: int | None = None,
    student: str | None = None,
    chapter: str | None = None,
) -> int:
    """Collect, normalise, autograde, give feedback, export; one line a submission.

    Those that have not changed since they were graded are not graded again, so that a
    run that was interrupted goes on where it stopped.

    Args:
        folder: the course.
        pattern: of files' names, with a group `student`.
        sandbox: one of `SANDBOXES`.
        jobs: how many submissions are tried at once; as many as there are processors,
            if not given.
        student, chapter: whose submissions are graded anew, though nothing changed.

    Returns:
        How many files could not be graded.
    """
    course, started = Course(folder), time.perf_counter()
    if not course.assignments:
        raise CourseError(f"COURSE={folder}: there is no assignment in it yet")
    with course.gradebook() as gradebook:
        known = {assignment.name for assignment in gradebook.assignments}
    if lost := set(course.assignments) - known:
        name = min(lost)
        raise CourseError(
            f"COURSE={folder}: its gradebook.db holds no assignment {name}, which is "
            "in release/. Bring the file back, or make it anew: make assignment "
            f"CHAPTER={name.removeprefix('ch')} COURSE={folder}"
        )
    if jobs is None:
        jobs = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    folder = course.folder
    folder.chmod(0o700)
    term.due_dates(folder, course.assignments)  # a slip is said before, not after
    teams = term.teams(folder)
    settings = course.config.JudgeAnswers
    runner = Runner(sandbox or settings.sandbox or None, settings.seconds)
    where = f"Student code runs in: {runner.kind} ({SANDBOXES[runner.kind]})"
    say(where)
    for reason in runner.not_used:
        say(f"  not in {reason}")
    if runner.kind == "bubblewrap" and (shown := readable_by_students(folder)):
        raise CourseError(
            f"COURSE={folder}: student code could read it, below {shown}: move it"
        )
    runners = SimpleQueue()
    runners.put(runner)
    with runner:
        given = {name: prove(course, name, runner) for name in course.assignments}
        numbers = _numbers(folder)
        submissions, odd = collect(
            folder / "inbox", course.assignments, pattern, numbers
        )
        _write_numbers(folder, numbers)
        _roster(folder, submissions)
        submissions, replaced = term.one_a_team(submissions, teams)
        anew = chosen(submissions, teams.get(student, student), chapter)
        report = [(file, "", "", note) for file, note in odd + replaced]
        if runner.kind != "bubblewrap":
            report.append(("", "", "", where))
        graded = [
            row
            for submission in _each(course, submissions, given, runners, jobs, anew)
            for row in submission
        ]
    graded.sort(key=lambda row: (row[2], row[1]))  # not by who was ready first
    ungraded = {
        (chapter, student)
        for _, student, chapter, note in graded
        if note.startswith("NOT GRADED")
    }
    count = _finish(course, submissions, ungraded, report + graded)
    took = time.perf_counter() - started
    each = took / max(len(submissions), 1)
    say(f"Marks in export/, feedback in feedback/. {took:.0f} s, {each:.1f} s each")
    if runner.kind != "bubblewrap":
        say(where)
    return count


def chosen(
    submissions: list[Submission], student: str | None, chapter: str | None
) -> set[tuple[str, str]]:
    """Those of a student, a chapter, or both: (assignment, student). None, if neither
    is given."""
    if not (student or chapter):
        return set()
    assignment = chapter and f"ch{chapter.removeprefix('ch'):0>2}"
    found = {
        (s.chapter, s.student)
        for s in submissions
        if student in (None, s.student) and assignment in (None, s.chapter)
    }
    if not found:
        there = ", ".join(sorted({f"{s.student} ({s.chapter})" for s in submissions}))
        asked = f"STUDENT={student or ''} CHAPTER={chapter or ''}"
        raise CourseError(f"{asked}: expected one of the inbox: {there}")
    return found


def export_marks(folder: Path) -> int:
    """Take over marks and comments, renew feedback, export; nothing is graded.

    Returns:
        How many rows could not be taken over, or files not graded before.
    """
    course = Course(folder)
    before = export.read_rows(course.folder / "export" / "report.csv")
    report = [tuple(row.values()) for row in before if row["file"] != "manual.csv"]
    ungraded = {
        (assignment, student)
        for _, student, assignment, note in report
        if note.startswith("NOT GRADED")
    }
    # what is said of no file is found out again
    report = [row for row in report if row[0] or not row[1]]
    return _finish(course, [], ungraded, report)


Row = tuple[str, str, str, str]  # of the report: file, student, assignment, what is odd


def _each(
    course: Course,
    submissions: list[Submission],
    given: dict[str, dict[str, list[Case]]],
    runners: SimpleQueue,
    jobs: int,
    anew: Collection[tuple[str, str]] = (),
) -> Iterator[list[Row]]:
    """Grade each submission, several at once; its rows of the report."""
    prints = {name: _fingerprint(course, name) for name in course.assignments}
    new, known = [], 0
    for submission in sorted(submissions, key=lambda s: (s.chapter, s.student)):
        work = _Work(course, submission, prints[submission.chapter])
        who = submission.chapter, submission.student
        if work.known() and who not in anew:
            known += 1
            yield work.rows()
        else:
            new.append(work)
    say(f"{len(submissions)} submission(s) in the inbox")
    if known:
        say(f"  {known} unchanged since they were graded")
    kind, seconds = (first := runners.get()).kind, first.seconds
    runners.put(first)
    for _ in range(min(jobs, len(new)) - 1):
        runners.put(Runner(kind, seconds))

    def attempt(work: _Work, only: set[str] | None = None) -> dict[str, Outcome]:
        runner, cases = runners.get(), given[work.submission.chapter]
        try:
            notebook = nbformat.read(work.path, as_version=4)
            wanted = {name: cases[name] for name in only or cases}
            return judge(runner, notebook, wanted)
        finally:
            runners.put(runner)

    pool, done = ThreadPoolExecutor(jobs), 0
    try:
        futures = {}
        for work in new:
            if work.prepare():
                futures[pool.submit(attempt, work)] = work
            else:
                yield work.rows()
        again = []
        for future in as_completed(futures):
            work = futures[future]
            work.judged(future)
            if work.problem or work.again():
                again.append(work)  # others may have taken its time or memory
                continue
            done += 1
            yield work.finished(f"{done:3}/{len(new)}")
        for work in again:
            alone = pool.submit(attempt, work, work.again())
            wait([alone])
            work.judged(alone)
            done += 1
            yield work.finished(f"{done:3}/{len(new)}")
    finally:
        pool.shutdown(cancel_futures=True)
        while not runners.empty():
            runners.get().stop()


class _Work:
    """A submission on its way through normalising, judging and nbgrader. Its failure is
    its own."""

    def __init__(self, course: Course, submission: Submission, print_: str) -> None:
        self.course, self.submission = course, submission
        student, assignment = submission.student, submission.chapter
        self.name = course.release(assignment).name
        self.path = course.folder / "submitted" / student / assignment / self.name
        self.store = _store(course, assignment, student)
        cells = json.dumps(submission.cells)
        self.key = hashlib.sha256((print_ + cells).encode()).hexdigest()
        self.notes: list[str] = []
        self.words: dict[str, str] = {}
        self.seen: dict[str, str] = {}  # the words as the last manual.csv had them
        self.outcomes: dict[str, Outcome] = {}
        self.problem: BaseException | None = None
        self.seconds = 0.0

    def known(self) -> bool:
        """Was it graded before, just as it is?"""
        stored = _stored(self.store)
        self.notes, self.seen = stored.get("notes", []), stored.get("seen", {})
        return stored.get("key") == self.key

    def prepare(self) -> bool:
        """Write what nbgrader reads; is there anything to judge?"""
        self.notes = []
        release = nbformat.read(
            self.course.release(self.submission.chapter), as_version=4
        )
        try:
            with limited():
                notebook, self.notes = normalise(release, self.submission.cells)
                self.path.parent.mkdir(parents=True, exist_ok=True)
                nbformat.write(notebook, self.path)
        except Exception as error:  # whatever a student can think of
            kind = type(error).__name__
            self.notes.append(f"NOT GRADED: it cannot be read: {kind}")
            return False
        for exercise in exercises(notebook):
            cell = notebook.cells[exercise.answer]
            if exercise.in_words:
                words = export.brief(cell.source.partition("\n")[2]).strip()
                self.words[cell.metadata["nbgrader"]["grade_id"]] = words
        return True

    def finish(self) -> None:
        """Give nbgrader what came of the exercises."""
        begun = time.perf_counter()
        who = self.submission.chapter, self.submission.student
        failed = []
        for name, outcome in self.outcomes.items():
            drawn = cases.graded_cases(name, self.course.folder)
            failed += [(name, *row) for row in _failed(drawn, outcome)]
            self.notes += [f"{name}: {said}" for said in outcome.limits]
        plugins.JUDGED[who] = self.outcomes
        problem = self.course.run(Autograde, *who)
        del plugins.JUDGED[who]
        if problem:
            self.notes.append(f"NOT GRADED: {problem}")
        else:
            kept = {"key": self.key, "notes": self.notes}
            kept |= {"words": self.words, "seen": self.seen, "failed": failed}
            _write_store(self.store, kept)
        self.seconds = time.perf_counter() - begun
        self.seconds += sum(outcome.seconds for outcome in self.outcomes.values())

    def judged(self, future: Future) -> None:
        """Take what was found out about some of the exercises, or all."""
        self.problem = future.exception()
        if not self.problem:
            self.outcomes |= future.result()

    def again(self) -> set[str]:
        """The exercises that may come out otherwise, alone."""
        return {name for name, outcome in self.outcomes.items() if outcome.again}

    def finished(self, count: str) -> list[Row]:
        """Finish, and say so."""
        marks = ""
        if problem := self.problem:
            self.notes.append(f"NOT GRADED: {type(problem).__name__}: {problem}")
        try:
            if self.outcomes and not problem:
                self.finish()
                marks = _marks(self.course, self.submission)
        except Exception as error:  # whatever it is, the others are graded
            self.notes.append(f"NOT GRADED: {type(error).__name__}: {error}")
        if any(note.startswith("NOT GRADED") for note in self.notes):
            marks = "not graded"
        who = f"{self.submission.chapter}  {self.submission.student:28}"
        say(f"  {count}  {who} {marks:>14} {self.seconds:6.1f} s")
        return self.rows()

    def rows(self) -> list[Row]:
        who = self.submission.source, self.submission.student, self.submission.chapter
        return [(*who, note) for note in self.notes]


def _failed(drawn: list[Case], outcome: Outcome) -> list[tuple[str, str]]:
    """The failed cases of an exercise, for the instructor: line and hint."""
    if NOT_DONE in outcome.failures.values():
        return [("", NOT_DONE)]
    rows = []
    for n, hint in sorted(outcome.failures.items()):
        kind = f" ({outcome.raised[n]})" if n in outcome.raised else ""
        rows.append((drawn[n].line, hint + kind))
    return rows


def _fingerprint(course: Course, assignment: str) -> str:
    """Of all that an assignment is graded by: a change of it grades everybody anew."""
    here, found = course.folder, hashlib.sha256()
    paths = [here / "seed", here / "partial", here / "cases" / f"{assignment}.py"]
    paths += [here / "nbgrader_config.py", course.release(assignment)]
    paths += sorted((here / "source" / assignment).glob("*.ipynb"))
    paths += sorted((ROOT / "grading").glob("*.py"))
    paths += sorted((ROOT / "annotated").glob("checks/*.py"))
    paths += sorted((ROOT / "annotated").glob("chapters/*/checks.py"))
    for path in paths:
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


def _store(course: Course, assignment: str, student: str) -> Path:
    """Where it stands how a submission was graded; nbgrader clears the folder."""
    return course.folder / "autograded" / student / assignment / STORE


def _stored(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none, or half of one
        return {}


def _write_store(path: Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def _stores(course: Course) -> dict[tuple[str, str], dict]:
    """How every submission was graded: (assignment, student) -> its store."""
    found = {}
    for path in sorted((course.folder / "autograded").glob(f"*/*/{STORE}")):
        student, assignment = path.parts[-3:-1]
        found[assignment, student] = _stored(path)
    return found


def _feedback(course: Course) -> list[Row]:
    """Write the feedback of those whose marks or comments it does not hold yet."""
    with course.gradebook() as gradebook:
        now = {
            (assignment.name, submission.student.id): [
                [(g.name, g.auto_score, g.manual_score) for g in notebook.grades]
                + [(c.name, c.comment) for c in notebook.comments]
                for notebook in submission.notebooks
            ]
            for assignment in gradebook.assignments
            for submission in assignment.submissions
        }
    stale = {
        who: (stored, marks)
        for who, stored in _stores(course).items()
        if stored and stored.get("feedback") != (marks := json.dumps(now.get(who)))
    }
    if stale:
        say(f"Feedback for {len(stale)} submission(s)")
    report = []
    for who, (stored, marks) in stale.items():
        if problem := course.run(GenerateFeedback, *who):
            note = f"graded, but NO FEEDBACK: {problem}"
            report.append(("", who[1], who[0], note))
        else:
            folder = course.folder / "feedback" / who[1] / who[0]
            (folder / STORE).unlink(missing_ok=True)  # nbgrader copies what lies there
            _write_store(_store(course, *who), stored | {"feedback": marks})
    return report


def _finish(
    course: Course,
    submissions: list[Submission],
    ungraded: set[tuple[str, str]],
    report: list[Row],
) -> int:
    """Feedback, roster, manual.csv, exports and report; how much was left out."""
    exports, known = course.folder / "export", _roster(course.folder, [])
    teams = term.teams(course.folder)
    exports.mkdir(exist_ok=True)
    numbers = _numbers(course.folder)
    with course.gradebook() as gradebook:
        notes, refused = export.apply_manual(gradebook, exports / "manual.csv")
    report += [("manual.csv", "", "", note) for note in notes]
    report += _feedback(course)
    stores = _stores(course)
    report += _alike(course, stores)
    for handed in submissions:
        who = handed.chapter, handed.student
        if stores.get(who) and handed.upload[0]:
            stores[who]["canvas"] = f"{handed.lms}_{handed.upload[0]}"
    _give_back(course, stores, numbers, ungraded)
    words, seen = (
        {
            (*who, name): text
            for who, stored in stores.items()
            for name, text in stored.get(key, {}).items()
        }
        for key in ("words", "seen")
    )
    due = term.due_dates(course.folder, course.assignments)
    with course.gradebook() as gradebook:
        term.take_over(gradebook, due, submissions)
        report += [("", *row) for row in term.late(gradebook, due)]
        for student in known:
            gradebook.update_or_create_student(
                student,
                first_name=known[student]["first_name"] or None,
                last_name=known[student]["last_name"] or None,
                email=known[student]["email"] or None,
            )
        path = exports / "manual.csv"
        notes = export.write_manual(gradebook, path, words, seen, refused)
        report += [("manual.csv", "", "", note) for note in notes]
        graded = [row for row in export.read_rows(path) if row["maximum"]]
        to_mark = sum(not row["recorded"] for row in graded)
        options = {"roster": known, "ungraded": ungraded, "teams": teams}
        options["numbers"] = {(a, student): n for (a, n), student in numbers.items()}
        _export(gradebook, course, exports, options)
        handed = {s.id for s in gradebook.students if s.submissions}
        silent = [who for who in known if not {who, teams.get(who)} & handed]
        report += [("", student, "", "handed in nothing") for student in silent]
    for who, stored in stores.items():
        if stored:
            listed = {"seen": stored.get("words", {})}
            _write_store(_store(course, *who), stored | listed)
    _write_report(course, report)
    say(f"{len(report)} odd thing(s) in export/report.csv")
    left_out = [row for row in report if NOT_GRADED.search(row[-1])]
    for file, _, _, note in left_out:
        say(f"  {file}: {note}")
    if to_mark:
        say(
            f"{to_mark} answer(s) in words to be marked: fill in `score` in "
            "export/manual.csv, then: make export"
        )
    return len(left_out)


def _alike(course: Course, stores: dict[tuple[str, str], dict]) -> list[Row]:
    """Whose answers are alike, and whose are the book's."""
    report: list[Row] = []
    for assignment in course.assignments:
        path = course.release(assignment)
        release = nbformat.read(path, as_version=4)
        book = nbformat.read(
            course.folder / "source" / assignment / path.name, as_version=4
        )
        for exercise in exercises(book):
            cell = book.cells[exercise.answer]
            cell.source = solution(cell)
        given: dict[str, Answers] = {BOOK: answers(book, release)}
        for (name, student), stored in stores.items():
            handed = course.folder / "submitted" / student / assignment / path.name
            if name == assignment and stored and handed.is_file():
                given[student] = answers(nbformat.read(handed, 4), release)
        found = sorted(alike(given).items())
        report += [("", who, assignment, f"alike to {whom}") for who, whom in found]
    return report


def _give_back(
    course: Course,
    stores: dict[tuple[str, str], dict],
    numbers: Known,
    ungraded: set[tuple[str, str]],
) -> None:
    """Feedback as platforms take it: an archive for each assignment and platform, of
    pages under the names by which it finds its students.

    Moodle: ``mod/assign/feedback/file/importziplib.php`` of moodle/moodle, and Canvas:
    ``generate_comments_from_files`` of instructure/canvas-lms, which asks for the
    numbers of the student and of the file that was handed in.
    """
    teams = term.teams(course.folder)
    for assignment in course.assignments:
        canvas = {
            f"x_{stored['canvas']}_feedback.html": student
            for (name, student), stored in stores.items()
            if name == assignment and stored.get("canvas")
        }
        moodle = {
            f"x_{number}_assignsubmission_file_feedback.html": teams.get(who, who)
            for (name, number), who in numbers.items()
            if name == assignment
        }
        for platform, names in (("canvas", canvas), ("moodle", moodle)):
            path = course.folder / "export" / f"feedback-{platform}-{assignment}.zip"
            path.unlink(missing_ok=True)
            for name, student in sorted(names.items()):
                folder = course.folder / "feedback" / student / assignment
                for page in folder.glob("*.html"):
                    if (assignment, student) not in ungraded:
                        with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as made:
                            made.write(page, name)


def prove(course: Course, assignment: str, runner: Runner) -> dict[str, list[Case]]:
    """The cases of each exercise; refuse to grade a class by cases that reject the
    model answers.

    Cases of the course's own are the instructor's to write, and a slip in them would
    cost every student the points.
    """
    [path] = (course.folder / "source" / assignment).glob("*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    given = {
        exercise.id: cases.graded_cases(exercise.id, course.folder)
        for exercise in exercises(notebook)
        if not exercise.in_words
    }
    for exercise in exercises(notebook):
        cases.earned(exercise, 1, {}, course.folder)  # a slip in `partial` is said now
    for case in chain.from_iterable(given.values()):
        expected = case.exercise.result_of(case.exercise.right, case)
        # what should be refused raises a ValueError, and nothing else
        if isinstance(expected, Raised) and expected.kind != "ValueError":
            raise CourseError(
                f"the case {case.line!r} of {case.exercise.name} has arguments that "
                f"the exercise cannot take: {expected.kind}: {expected.message}. "
                "Nothing was graded"
            )
    for name, outcome in judge_twice(runner, notebook, given).items():
        for number, hint in sorted(outcome.failures.items())[:1]:
            raise CourseError(
                f"the model answer to {name} fails the case "
                f"{given[name][number].line!r}: {hint}. Nothing was graded"
            )
    return given


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
    """roster.csv, with the students added that have handed something in, by themselves
    or in a team."""
    teams = term.teams(folder)
    known = {
        row["student"]: dict.fromkeys(export.ROSTER, "") | row
        for row in export.read_rows(folder / "roster.csv")
        if row.get("student")
    }
    for student in teams:
        known.setdefault(
            student, dict.fromkeys(export.ROSTER, "") | {"student": student}
        )
    for submission in submissions:
        if submission.student in teams.values():
            continue
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


def _write_report(course: Course, odd: list[Row]) -> None:
    folder = course.folder / "export"
    export.write_rows(
        folder / "report.csv", ("file", "student", "assignment", "odd"), odd
    )
    graded = {who: stored for who, stored in _stores(course).items() if stored}
    failed = [(*w, *row) for w in graded for row in graded[w].get("failed", [])]
    header = ("assignment", "student", "exercise", "case", "hint")
    export.write_rows(folder / "failed.csv", header, failed)
    page = export.class_page(failed, Counter(assignment for assignment, _ in graded))
    (folder / "class.html").write_text(page, encoding="utf-8")


def prepare() -> None:
    """What nbgrader needs of the process: its helpers on the path."""
    os.environ["PATH"] = os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    )
