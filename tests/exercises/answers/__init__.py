"""Answers as students write them, one file a chapter, right ones and wrong ones.

They were written apart from ``annotated/checks``, so that the checks are tried by code
that their author did not derive from them. An answer is a function with the name that
the exercise asks for, decorated by its id, and for a wrong one a piece of the hint that
has to appear. Beside these, the tests try every mistake of an exercise by itself.
"""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """An answer: the exercise, the source below its tag, and the hint if it is wrong.

    ``function`` is the answer itself, compiled with the notebook's imports.
    """

    exercise: str
    function: Callable
    hint: str | None = None

    @property
    def source(self) -> str:
        text = textwrap.dedent(inspect.getsource(self.function))
        return text[text.index("\ndef ") + 1 :] if text.startswith("@") else text

    @property
    def cell(self) -> str:
        """The answer cell of a notebook."""
        return f"# exercise: {self.exercise}\n{self.source}"


ANSWERS: list[Answer] = []


def right(exercise: str) -> Callable:
    """A right answer, in another style than the model answer's."""
    return wrong(exercise, None)


def wrong(exercise: str, hint: str | None) -> Callable:
    """A wrong answer, and a piece of what a public check has to say about it."""

    def declare(function: Callable) -> Callable:
        ANSWERS.append(Answer(exercise, function, hint))
        return function

    return declare
