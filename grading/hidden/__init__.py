"""Hidden tests, one file a chapter, for the grader's path only.

The same cases as in ``annotated/checks`` (read there how a case is written)::

    from grading.hidden import hidden

    @hidden("ch02-scaled-energies", query, key)
    def _(energies, query, key):
        "other widths than in the public tests"
        ...

Students see how many of these an answer passes, and neither line nor hint.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from annotated.checks import Case, register

HERE = Path(__file__).parent

_HIDDEN: dict[str, list[Case]] = {}
_LOADED: dict[Path, dict[str, list[Case]]] = {}


def hidden(exercise: str, *arguments: Any, **options: Any) -> Callable:
    """Declare a hidden case: the decorated function is its judge."""
    return register(_HIDDEN, exercise, *arguments, **options)


def hidden_cases(exercise: str, folder: Path = HERE) -> list[Case]:
    """The hidden cases of an exercise, in a folder's chNN.py.

    Raises:
        FileNotFoundError: if the folder has no file for the chapter: grading without
            the hidden tests must not happen by accident.
        ValueError: if the file does not run.
    """
    return list(_loaded(folder / f"{exercise[:4]}.py").get(exercise, []))


def hidden_exercises(chapter: str, folder: Path = HERE) -> set[str]:
    """The exercises that a folder's chNN.py has tests for."""
    return set(_loaded(folder / f"{chapter}.py"))


def _loaded(path: Path) -> dict[str, list[Case]]:
    path = path.resolve()
    if path not in _LOADED:
        if not path.is_file():
            raise FileNotFoundError(f"there are no hidden tests: {path} is missing")
        _HIDDEN.clear()
        spec = importlib.util.spec_from_file_location(f"hidden_{path.stem}", path)
        try:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        except Exception as error:
            raise ValueError(
                f"the hidden tests in {path} do not run: "
                f"{type(error).__name__}: {error}"
            ) from error
        _LOADED[path] = dict(_HIDDEN)
    return _LOADED[path]
