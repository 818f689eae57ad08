"""Recorded runs, several seeds of each, as the drawings of chapters need them."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

Rows = Sequence[Mapping[str, Any]]  # a run each


def grouped(rows: Iterable[Mapping[str, Any]], *keys: str) -> dict[tuple, list]:
    """Return runs by some of their entries: lists, as a rule a run for each seed.

    Args:
        rows: the runs.
        keys: names of the entries; a run that lacks one has None there.
    """
    groups: dict[tuple, list] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    return groups


def mean_of(rows: Rows, key: str, *by: str) -> dict[tuple, float]:
    """Return the mean of an entry ``key`` over ``rows`` that have ``by`` in common."""
    groups = grouped(rows, *by)
    return {one: mean(run[key] for run in runs) for one, runs in groups.items()}


def span(numbers: Sequence[float], style: str = "") -> str:
    """Return the least and the most of ``numbers`` in a ``style``, or the one."""
    ends = dict.fromkeys(f"{end:{style}}" for end in (min(numbers), max(numbers)))
    return " to ".join(ends)


def dots(numbers: Iterable, style: str = "") -> str:
    """Return the ``numbers`` of several seeds in a row, in a format's ``style``."""
    return " · ".join(f"{number:{style}}" for number in numbers)


def borrowed_rows(films: Mapping[str, Any], borrowed: Mapping[str, Any]) -> list[dict]:
    """Return the runs of both records; a frozen encoder reads what it learns from.

    Args:
        films: the record of models that were trained on the page's data.
        borrowed: the record of those that begin with weights from elsewhere.
    """
    rows = [dict(row) for row in (*films["rows"], *borrowed["rows"])]
    for row in rows:
        if row["kind"] == "frozen":
            reading = borrowed["reading_seconds_per_sentence"]
            row["cpu_seconds"] += reading * row["size"]
    return rows


def percent(*shares: float) -> str:
    """Return ``shares`` as percentages."""
    return ", ".join(f"{100 * share:.0f} %" for share in shares)
