"""The glossary: sorted, without gaps, and true of the chapters that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
SOURCES = ["S0", "S1", "S2", "S3", "S4"]
LINK = re.compile(r"\[(\d+)\]\(\.\./notebooks/(\w+)\.ipynb\)")
PLANNED = re.compile(r"(\d+) \(planned\)")


def table(text: str) -> list[list[str]]:
    """The cells of a table in Markdown, its head first, without the rule below it."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    head, _, *rows = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    return [head, *rows]


(HEAD, *ROWS), (CHINESE_HEAD, *CHINESE) = map(table, PAGE.split("## In Chinese"))
TERMS = [row[0] for row in ROWS]


def prose(path: Path) -> str:
    """The words of a chapter, without its code, in lower case."""
    lines = path.read_text(encoding="utf-8").splitlines()
    text = " ".join(line[2:] for line in lines if line.startswith("# "))
    return " ".join(re.sub(r"[*_`]", "", text).lower().split())


CHAPTERS = {
    path.stem: prose(path) for path in (ROOT / "notebooks" / "src").glob("*.py")
}


def test_has_its_columns_and_enough_rows():
    assert HEAD == ["term", "what it means", "chapter"]
    assert CHINESE_HEAD == ["term", "in Chinese", "used in"]
    assert len(ROWS) >= 60


def test_no_cell_is_empty():
    every = [*ROWS, *CHINESE]
    assert [row for row in every if len(row) != len(HEAD) or not all(row)] == []


@pytest.mark.parametrize("rows", [ROWS, CHINESE], ids=["meanings", "chinese"])
def test_terms_are_sorted_and_stand_once(rows):
    terms = [row[0].casefold() for row in rows]
    assert sorted(set(terms)) == terms


def test_each_chinese_term_is_one_of_its_own_and_names_the_sources_that_use_it():
    """Which they do was looked up in the sources, whose texts are not kept here."""
    assert {row[0] for row in CHINESE} <= set(TERMS)
    chinese = [row[1] for row in CHINESE]
    assert len(set(chinese)) == len(chinese)
    assert [word for word in chinese if not re.search(r"[\u3400-\u9fff]", word)] == []
    for term, _, used_in in CHINESE:
        named = used_in.split(", ")
        assert named == sorted(set(named)) and set(named) <= set(SOURCES), term


def test_meanings_are_one_sentence():
    wrong = [
        (term, meaning)
        for term, meaning, _ in ROWS
        if not meaning[0].isupper()
        or not meaning.endswith(".")
        or ". " in meaning
        or not 3 <= len(meaning.split()) <= 30
    ]
    assert wrong == []


@pytest.mark.parametrize("row", ROWS, ids=TERMS)
def test_term_is_in_the_chapter_that_introduces_it(row):
    link, planned = LINK.fullmatch(row[2]), PLANNED.fullmatch(row[2])
    if link:
        assert int(link[1]) == int(link[2][:2])
        assert row[0].lower() in CHAPTERS[link[2]], f"chapter {link[1]} says otherwise"
    else:
        assert planned, f"neither a chapter's link nor planned: {row[2]!r}"
        assert 1 <= int(planned[1]) <= 20
        written = [int(name[:2]) for name in CHAPTERS]
        assert int(planned[1]) not in written, "that chapter is written: link to it"
