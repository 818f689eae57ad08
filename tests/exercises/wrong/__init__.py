"""Wrong answers, one file a chapter: the mistakes that people really make."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Wrong:
    """One wrong answer.

    Args:
        exercise: its id.
        name: the mistake, in words.
        source: the answer, as a student would write it below the exercise's tag.
        hint: a piece of what the public or hidden tests must say about it.
    """

    exercise: str
    name: str
    source: str
    hint: str

    @property
    def cell(self) -> str:
        """The answer cell of a notebook."""
        return f"# exercise: {self.exercise}\n{self.source}"
