"""Answers as students write them, one file a chapter, right ones and wrong ones.

They were written apart from ``annotated/checks``, so that the checks are tried by code
that their author did not derive from them. A right answer is a function with the name
that the exercise asks for, ``@right("ch02-tempered")``. A wrong one is mostly a change
of the model answer's text, with a piece of the hint that has to appear::

    wrong("ch02-tempered", "the temperature is not used", (" / tau[:, None, None]", ""))

Only where it goes about the exercise in another way is it a function, decorated with
``@wrong("ch02-tempered", "a piece of the hint")``. Beside these, the tests try every
mistake of an exercise by itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

from annotated.checks import source_of


@dataclass(frozen=True)
class Answer:
    """A function, or changes of the model answer; and the hint, if it is wrong."""

    exercise: str
    hint: str | None
    function: Callable | None
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def source(self) -> str:
        """The function as a cell of a notebook holds it."""
        return source_of(self.function)


ANSWERS: list[Answer] = []


def right(exercise: str) -> Callable:
    """A right answer, in another style than the model answer's."""
    return wrong(exercise, None)


def wrong(exercise: str, hint: str | None, *changes: tuple[str, str]) -> Callable:
    """A wrong answer, and a piece of what a public check has to say about it.

    Args:
        exercise: its id.
        hint: the piece, letter for letter.
        changes: of the model answer's text, ``(old, new)``, where ``old`` occurs once;
            without any, a decorator of the answer.
    """
    if changes:
        ANSWERS.append(Answer(exercise, hint, None, changes))

    def declare(function: Callable) -> Callable:
        ANSWERS.append(Answer(exercise, hint, function))
        return function

    return declare
