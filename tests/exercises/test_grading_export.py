"""Tables that go to a person's spreadsheet and come back."""

import csv
import re
from collections import Counter

import pytest

from grading.export import brief, class_page, read_rows, write_rows

TYPED = [
    "-1 for the missing cost",
    "=HYPERLINK(1)",
    "good;=HYPERLINK(1)\n=1+1\n@SUM(1)",
    'a "word";  "=1+1"',
    "it's, -1",
    "'-1",
    "x\t+1",
    "＝1+1",
    "good;\ufeff=1+1",
    "\0=1+1",
]


@pytest.mark.parametrize("text", TYPED)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_no_cell_is_a_formula_however_a_spreadsheet_splits_it(
    tmp_path, text, delimiter
):
    write_rows(path := tmp_path / "a.csv", ["words"], [[text]])
    with open(path, newline="") as stream:
        cells = [c for row in csv.reader(stream, delimiter=delimiter) for c in row]
    lines = [line for cell in cells for line in cell.split("\n")]
    ignored = ' "\0\ufeff'
    assert not [line for line in lines if line.strip(ignored)[:1] in tuple("=+-@＝")]


@pytest.mark.parametrize("text", TYPED)
def test_what_was_typed_survives_any_number_of_runs(tmp_path, text):
    path = tmp_path / "a.csv"
    for _ in range(3):
        write_rows(path, ["words"], [[text]])
        assert read_rows(path) == [{"words": text}]


def test_excel_knows_the_encoding_of_what_comes_back(tmp_path):
    """Without a mark it shows another student's name, and saves it."""
    write_rows(path := tmp_path / "a.csv", ["student"], [["björn_√"]])
    assert path.read_bytes().decode("utf-8").startswith("\ufeff")
    assert read_rows(path) == [{"student": "björn_√"}]


def test_a_comment_that_was_just_typed_is_taken_as_it_is(tmp_path):
    (tmp_path / "a.csv").write_text("comment\n-1 for the missing cost\n")
    assert read_rows(tmp_path / "a.csv") == [{"comment": "-1 for the missing cost"}]


def test_an_answer_of_any_length_fits_a_cell(tmp_path):
    """A pasted picture once stopped the grading of a class."""
    picture = f"See ![a.png](data:image/png;base64,{'iVBORw0KGgo=' * 20_000})."
    assert brief(picture) == "See ![a.png](a picture)."
    assert len(brief("word " * 100_000)) < 32_767
    write_rows(path := tmp_path / "a.csv", ["words"], [[picture]])
    assert read_rows(path) == [{"words": picture}]


def test_the_page_of_a_class_counts_who_failed_which_case():
    one = [("ch02", who, "ch02-x", "a row", "the scale") for who in ("ada", "bert")]
    one += [("ch02", "cora", "ch02-x", "a row", "the <mask>")]
    other = [("ch02", who, "ch02-x", "half", "the <mask>") for who in "abcd"]
    later = [("ch12", "ada", "ch12-y", "", "not done")]
    page = class_page([*later, *one, *other], Counter({"ch02": 9, "ch12": 2}))
    assert re.findall(r"<tr><td>(.*)", page) == [
        "ch02-x<td>half<td>4 of 9<td>the &lt;mask&gt;",
        "ch02-x<td>a row<td>3 of 9<td>the scale",
        "ch12-y<td><td>1 of 2<td>not done",
    ]
