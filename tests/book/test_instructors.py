"""The instructors' tables: every chapter, and its exercises as their statements say."""

from pathlib import Path

import pytest

from book._ext.exercises import SOURCES, goals, goals_table
from tools.exercises import exercises, read_exercises
from tools.source import setup_cell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "instructors.md").read_text(encoding="utf-8")
CHAPTERS = sorted(SOURCES.glob("*.py"))


@pytest.mark.parametrize("source", CHAPTERS, ids=lambda path: path.stem)
def test_a_statement_gives_the_points_that_are_graded(source):
    graded = exercises(read_exercises(source, setup_cell(ROOT)))
    rows = list(goals(source))
    assert [(row[0], row[1]) for row in rows] == [(e.id, e.points) for e in graded]
    assert len({goal for _, _, goal, _ in rows}) == len(rows) >= 4


@pytest.mark.parametrize("source", CHAPTERS, ids=lambda path: path.stem)
def test_every_chapter_stands_in_the_plan_of_a_course(source):
    assert f"](exercises/{source.stem})" in PAGE


def test_the_table_has_a_row_a_chapter_and_a_row_an_exercise():
    body = goals_table()[2:]
    rows = sum(len(list(goals(source))) for source in CHAPTERS)
    assert len(body) == len(CHAPTERS) + rows
    assert all(line.count("|") == 4 for line in body)
