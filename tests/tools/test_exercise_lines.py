"""tools/exercise_lines.py counts every line once; exercises don't grow."""

from statistics import median

import pytest

from tools.exercise_lines import LONGEST, MEDIAN, cost, files, main, share
from tools.exercises import sources

CHAPTERS = [path.name[:2] for path in sources()]
TEXT = '''"""Of all."""

# ---- one ----

check("ch98-one")
# ---- two and three ----
"ch98-two", "ch98-three"

# ---- helpers ----
'''


def test_a_section_belongs_to_the_exercises_that_it_names():
    lines = share(TEXT, ["ch98-one", "ch98-two", "ch98-three"])
    assert lines == {"ch98-one": 4.0, "ch98-two": 2.5, "ch98-three": 2.5}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_line_is_counted_once(chapter):
    whole = sum(path.read_text("utf-8").count("\n") for path in files(chapter))
    assert sum(map(sum, cost(chapter).values())) == pytest.approx(whole)


def test_exercises_do_not_grow():
    lines = {name: sum(parts) for c in CHAPTERS for name, parts in cost(c).items()}
    assert median(lines.values()) <= MEDIAN
    assert {name for name in lines if lines[name] > LONGEST} == set()


def test_the_table_has_a_row_for_each_exercise(capsys):
    main()
    rows = capsys.readouterr().out.splitlines()[1:-1]
    names = [row.split()[0] for row in rows if not row.startswith("chapter")]
    assert names == [name for chapter in CHAPTERS for name in cost(chapter)]
