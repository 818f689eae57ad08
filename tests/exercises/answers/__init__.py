"""Answers as students write them, one file a chapter, right ones and wrong ones.

They were written apart from ``annotated/checks``, so that the checks are tried by code
that their author did not derive from them. A right answer is a function with the name
that the exercise asks for, ``@right("ch02-tempered")``, or a row of the table
``RIGHT``, a change of the check's right answer. Wrong ones are rows of the check's own
table of mistakes; here stand those that go about the exercise in another way, decorated
with ``@wrong("ch02-tempered", "a piece of the hint")``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from annotated.checks import Change, changes, source_of


@dataclass(frozen=True)
class Answer:
    """A function, or a change of the right answer; and the hint, if it is wrong."""

    exercise: str
    hint: str | None
    function: Callable | None = None
    change: Change = ()

    @property
    def source(self) -> str:
        """The function as a cell of a notebook holds it."""
        return source_of(self.function)


RIGHT: dict[str, str] = {}
_FUNCTIONS: list[Answer] = []


def right(exercise: str) -> Callable:
    """A right answer, in another style than the model answer's."""
    return wrong(exercise, None)


def wrong(exercise: str, hint: str | None) -> Callable:
    """A wrong answer, and a piece of what a public check has to say about it."""

    def declare(function: Callable) -> Callable:
        _FUNCTIONS.append(Answer(exercise, hint, function))
        return function

    return declare


def answers() -> Iterator[Answer]:
    """All answers of the chapters that were imported."""
    yield from _FUNCTIONS
    for exercise, table in RIGHT.items():
        for change in changes(table).values():
            yield Answer(exercise, None, change=change)
