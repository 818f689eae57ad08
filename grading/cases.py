"""What a course grades with: the book's cases, drawn with its seed, and its own."""

import importlib.util
import re
import secrets
from functools import cache
from pathlib import Path

from annotated.checks import Case, exercise_named
from annotated.checks.calling import NOT_DONE
from tools.exercises import Exercise

OWN = '''\
"""Cases of this course's own, for {chapter}; they are graded beside the book's.

    import torch

    from annotated.checks import exercise_named


    @exercise_named("{chapter}-…").case("what is tried, in a line")
    def _(draw):
        return draw.normal(2, 3, 4), draw.normal(2, 5, 4)  # the answer's arguments

What is right for them, and what is wrong, the exercise knows by itself.
"""
'''


def prepare(folder: Path, chapter: str) -> None:
    """Give a course its secret seed and a file for cases of its own, if it has none."""
    for path, content in (
        (folder / "seed", f"{secrets.token_hex(16)}\n"),
        (folder / "cases" / f"{chapter}.py", OWN.format(chapter=chapter)),
    ):
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8")


def seed_of(folder: Path) -> str:
    """The secret seed of a course.

    Raises:
        FileNotFoundError: if it has none: a public one must not be used by accident.
    """
    path = folder / "seed"
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing: the course's secret seed, any line of text"
        )
    return path.read_text(encoding="utf-8").strip()


def earned(asked: Exercise, cases: int, failures: dict, folder: Path | None) -> float:
    """The points of an exercise: all or none, or for each case that passed, where a
    line of the course's file `partial` says so: all, ch02 or ch02-tempered.

    Raises:
        ValueError: if a line of that file is something else.
    """
    path = folder and folder / "partial"
    lines = path.read_text("utf-8").split() if path and path.is_file() else []
    for line in lines:
        try:
            re.fullmatch(r"all|ch\d\d", line) or exercise_named(line)
        except KeyError as error:
            told = f"{path}: expected lines all, ch02 or ch02-tempered, got {line!r}"
            raise ValueError(told) from error
    if not failures:
        return asked.points
    if not {"all", asked.id[:4], asked.id} & {*lines} or NOT_DONE in failures.values():
        return 0.0
    return round(asked.points * (cases - len(failures)) / cases, 2)


@cache
def graded_cases(exercise: str, folder: Path) -> list[Case]:
    """The cases of an exercise, as the course in a folder draws them; the same ones for
    every submission, so that what is right for them is found out once.

    Raises:
        FileNotFoundError: if the course has no seed.
        ValueError: if its own cases do not run.
    """
    own = folder / "cases" / f"{exercise[:4]}.py"
    if own.is_file():
        _load(own.resolve())
    try:
        return exercise_named(exercise).cases(seed_of(folder), graded=True)
    except (FileNotFoundError, KeyError):
        raise
    except Exception as error:  # of the course's own: the book's are tested
        raise ValueError(
            f"a case of {exercise} does not run: {type(error).__name__}: {error}; "
            f"see {own}"
        ) from error


@cache
def _load(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(f"cases_{path.stem}", path)
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except Exception as error:
        raise ValueError(
            f"the cases in {path} do not run: {type(error).__name__}: {error}"
        ) from error
