"""An eighth of what every exercise could be tried with, another one at each commit."""

from collections.abc import Iterable

from tests.sample import chosen


def in_turn(names: Iterable[str]) -> list[str]:
    """Return the names that are tried at this commit; all for `make test-all`."""
    return [name for name in names if chosen(name, one_in=8)]
