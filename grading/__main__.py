"""Make and grade assignments.

python -m grading assignment 02 COURSE    write an assignment into a course folder
python -m grading grade COURSE            grade what is in its inbox
python -m grading export COURSE           take over marks given by hand, and export
python -m grading one 02 NOTEBOOK         grade one notebook, without nbgrader
"""

import argparse
import sys
import warnings
from pathlib import Path

from grading.one import grade_one, report
from grading.runner import RunnerError
from grading.sandbox import SANDBOXES


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m grading", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    new = commands.add_parser("assignment", help="write an assignment into a course")
    new.add_argument("chapter", help="number of the chapter, such as 02")
    new.add_argument("course", type=Path, help="folder, made if need be")
    old = commands.add_parser("grade", help="grade all that is in the course's inbox")
    old.add_argument("course", type=Path)
    old.add_argument("--pattern", help="regular expression with a group `student`")
    old.add_argument("--sandbox", choices=SANDBOXES, help="how student code is kept")
    old.add_argument("--student", help="grade anew, though nothing has changed")
    old.add_argument("--chapter", help="the same, of everybody or of that student")
    old.add_argument("--jobs", type=int, help="how many at once; else all processors")
    marks = commands.add_parser("export", help="take over marks given by hand, export")
    marks.add_argument("course", type=Path)
    single = commands.add_parser("one", help="grade one notebook, without nbgrader")
    single.add_argument("chapter")
    single.add_argument("notebook", type=Path, nargs="+", help="the newest counts")
    single.add_argument("--course", type=Path, help="whose seed and cases to use")
    single.add_argument("--results", type=Path, help="JSON for Gradescope")
    single.add_argument("--sandbox", choices=SANDBOXES)
    given = parser.parse_args(arguments)
    for path in given.notebook if given.command == "one" else ():
        if not path.is_file():  # a slip must not be marked as a blank answer
            parser.error(f"NOTEBOOK: no such file: {path}")
    try:
        if given.command == "one":
            results = grade_one(
                given.chapter, given.notebook, given.course, given.sandbox
            )
            return 0 if report(results, given.results) else 1
        return with_nbgrader(given)
    except (ValueError, RunnerError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted. The same command goes on from here.", file=sys.stderr)
        return 130


def with_nbgrader(given: argparse.Namespace) -> int:
    """The commands that need nbgrader, which is a large installation."""
    from sqlalchemy.exc import SAWarning

    from grading.course import export_marks, grade, make_assignment, prepare

    # nbgrader 0.9 adds objects in an order that newer SQLAlchemy remarks on
    warnings.filterwarnings("ignore", category=SAWarning, module="nbgrader")
    prepare()
    if given.command == "assignment":
        make_assignment(given.chapter, given.course)
        return 0
    if given.command == "export":
        return 1 if export_marks(given.course) else 0
    options = {"pattern": given.pattern, "sandbox": given.sandbox, "jobs": given.jobs}
    options |= {"student": given.student, "chapter": given.chapter}
    return 1 if grade(given.course, **options) else 0


if __name__ == "__main__":
    sys.exit(main())
