"""`python -m grading assignment 02 COURSE` and `python -m grading grade COURSE`."""

import argparse
import sys
import warnings
from pathlib import Path

from sqlalchemy.exc import SAWarning

from grading.course import CourseError, grade, make_assignment, prepare
from grading.runner import SANDBOXES, RunnerError
from tools.notebooks import SourceError


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
    given = parser.parse_args(arguments)
    # nbgrader 0.9 adds objects in an order that newer SQLAlchemy remarks on
    warnings.filterwarnings("ignore", category=SAWarning, module="nbgrader")
    prepare()
    try:
        if given.command == "assignment":
            make_assignment(given.chapter, given.course)
        else:
            grade(given.course, given.pattern, given.sandbox)
    except (CourseError, SourceError, RunnerError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
