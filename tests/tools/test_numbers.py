"""tools/numbers.py: a number in prose that comes from nowhere is found."""

import json

import pytest

from tools import numbers


def wrong(book, prose, code="1", outputs=()):
    """What is said of a page with this prose, this cell and what the cell printed."""
    cells = [{"cell_type": "markdown", "source": prose}]
    cells.append({"cell_type": "code", "source": code, "metadata": {}})
    cells[1]["outputs"] = [{"output_type": "stream", "text": t} for t in outputs]
    path = book.root / "notebooks" / "01_tiny.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": cells, "metadata": {}}))
    return numbers.wrong(path, {"1.2"}, book.root)


@pytest.mark.parametrize(
    "prose",
    [
        "As section 1.2 says, and 1.2 too.",
        "Python 3.11 to 3.13, Table 2.4 and `0.5`, $0.5$, [here](https://a.org/0.5)",
        "## 0.5 apples",
        "Of 17 apples 12 are red, and 2024-11-05 is a date.",
        "A loss of 2.40 at the start.\n\n<!-- exact: 2.40 = log(11) -->",
        "It is 33 % of all. <!-- exact: 33 = 1 / 3 -->",
        "Five of them, 10 of 20. <!-- given: 10 of 20 -->",
        "BLEU 28.4 and 25.8 <!-- cited: 28.4, 25.8 -->",
        "It copies 534 of 1000. <!-- exact: 534 of 1000 = 533.9 -->",
        "It ends at 0.83. <!-- recorded run: 0.83 = record['losses'] -->",
    ],
)
def test_what_is_marked_or_no_measurement_passes(book, prose):
    book.write("book/results/run.json", '{"losses": 0.834}')
    assert wrong(book, prose) == []


@pytest.mark.parametrize(
    ("prose", "said"),
    [
        ("The loss is 0.5 now.", "0.5 has no mark"),
        ("It is right in 97 % of cases.", "97 has no mark"),
        ("It copies 534 of 1000.", "534 of 1000 has no mark"),
        ("| a | 0.5 |", "0.5 has no mark"),
        ("It drops to 24 percent.", "24 has no mark"),
        ("It takes 13 or 14 times as long.", "14 has no mark"),
        ("Marked: 0.5 <!-- cited: 0.6, 0.5 -->", "cited: 0.6 is marked and not there"),
        ("At 2.41. <!-- exact: 2.41 = log(11) -->", "2.41 is 2.3979 by log(11)"),
        ("It ends at 0.83. <!-- recorded run: 0.83 -->", "0.83 names no record"),
        ("It copies 534 of 1000. <!-- exact: 534 of 1000 = 530 -->", "534 of 1000 is"),
        ("0.5 here.\n\nAnd 0.5 there.\n\n<!-- given: 0.5 -->", "0.5 has no mark"),
    ],
)
def test_a_number_from_nowhere_or_from_something_else_is_named(book, prose, said):
    (line,) = wrong(book, prose)
    assert said in line


def test_the_words_of_figures_count_but_not_what_the_run_inserts(book):
    cell = 'show(figure, caption=f"{loss:.2f} and " "0.25", alt="a")\n'
    (line,) = wrong(book, "", cell)
    assert line.startswith("0.25 has no mark")
    assert wrong(book, "", cell + "# given: 0.25") == []


def test_the_words_of_a_page_s_drawings_count(book):
    module = 'def drawn():\n    caption = "It is 0.25."\n    show(alt="0.5")\n'
    for folder in ("", "ch01/", "ch02/"):
        book.write(f"annotated/chapters/{folder}__init__.py", "")
    book.write("annotated/chapters/ch01/drawings.py", module)
    assert wrong(book, "", "from annotated.chapters.ch02 import drawings as ch02") == []
    code = "from annotated.chapters.ch01 import drawings as ch01"
    assert [line[:5] for line in wrong(book, "", code)] == ["0.25 ", "0.5 h"]
    book.write("annotated/chapters/ch01/drawings.py", module + "# given: 0.25, 0.5\n")
    assert wrong(book, "", code) == []


def test_what_is_printed_is_looked_for_among_the_outputs(workshop):
    source = workshop.read("notebooks/src/01_tiny.py")
    prose = "\n# %% [markdown]\n# It is 0.25 and 0.5. <!-- printed: 0.25, 0.5 -->\n"
    cell = '\n# %%\nprint("found 0.25, not 0.55")\n'
    workshop.write("notebooks/src/01_tiny.py", source + prose + cell)
    workshop.tool("notebooks")
    assert workshop.tool("execute").returncode == 0
    said = workshop.tool("numbers")
    assert "01_tiny.ipynb: 0.5 is printed by no cell" in said.stdout
    assert "0.25" not in said.stdout
    assert said.returncode == 1
