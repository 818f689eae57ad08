"""Hidden tests, one file a chapter, for the grader's path only.

The same cases as in ``annotated/checks`` (read there how a case is written)::

    from grading.hidden import hidden

    @hidden("ch02-scaled-energies", query, key)
    def _(energies, query, key):
        "other widths than in the public tests"
        ...

Students see how many of these an answer passes, and neither line nor hint.
"""

import importlib
from collections.abc import Callable
from typing import Any

from annotated.checks import Case, register

_HIDDEN: dict[str, list[Case]] = {}


def hidden(
    exercise: str, *arguments: Any, gradients: bool = False, in_place: bool = False
) -> Callable:
    """Declare a hidden case: the decorated function is its judge."""
    return register(
        _HIDDEN, exercise, *arguments, gradients=gradients, in_place=in_place
    )


def hidden_cases(exercise: str) -> list[Case]:
    """The hidden cases of an exercise; none if it has none."""
    importlib.import_module(f"{__name__}.{exercise[:4]}")
    return list(_HIDDEN.get(exercise, []))
