"""The coverage of the sources: no section without a row, no row that leads nowhere.

The texts of the sources are not in the repository. Their headings are, in
book/sources.yml; the digests below were taken when those were read off the texts, so
that none can be dropped or changed unnoticed.
"""

import hashlib
import re
from pathlib import Path

import pytest

from book._ext import sources

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sources.load()
ROWS = {source["key"]: source["sections"] for source in SOURCES}
# (source and section, one place that covers it)
PARTS = [
    (f"{key} {row['key']}", part)
    for key, rows in ROWS.items()
    for row in rows
    for part in row["covered"]
]
HAN = re.compile(r"[\u3400-\u9fff]")

# number of sections, and sha256 of the lines "key heading" in their order
HEADINGS = {
    "S0": (54, "a6dfd0cabcd1f4dbed45a67695764282bd8d2e43a44eeb81b16158200071f458"),
    "S1": (25, "7f54dbfcd4eb5f8a9acfa9f7fb6d65e18a46caa7d513a7a623f63c9b54be4352"),
    "S2": (57, "615b71d3505f41cf951cb47811bd87039d3aa204a3553e4a0ceae91e41d5b0c2"),
    "S3": (11, "754c1f440c27554aad725ad0a5cbf3ba14a98dea5543995b8716dd5362b8b260"),
    "S4": (9, "fcaad83379a771b2f403de444123d4b0e382512a60231259e8f60b90984d4fb9"),
}


def headings(name: str) -> list[str]:
    """The headings of a notebook, below its title."""
    text = (ROOT / "notebooks/src" / f"{name}.py").read_text(encoding="utf-8")
    return re.findall(r"^# ## (.+)$", text, re.MULTILINE)


@pytest.mark.parametrize("key", HEADINGS)
def test_every_section_of_a_source_has_one_row(key):
    number, digest = HEADINGS[key]
    keys = [row["key"] for row in ROWS[key]]
    assert len(keys) == len(set(keys)) == number
    lines = "\n".join(f"{row['key']} {row['heading']}" for row in ROWS[key])
    assert hashlib.sha256(lines.encode()).hexdigest() == digest, (
        f"the headings of {key} are not those of its text"
    )


def test_there_are_five_sources_in_order():
    assert list(ROWS) == list(HEADINGS)


@pytest.mark.parametrize("source", ROWS)
def test_rows_are_complete(source):
    for row in ROWS[source]:
        assert set(row) == {"key", "heading", "english", "covered"}
        for name in ("key", "heading", "english"):
            assert isinstance(row[name], str) and row[name].strip(), (row, name)
            assert "|" not in row[name], "a bar would end the cell of the table"
        assert not HAN.search(row["english"]), row
        assert row["covered"], f"{source} {row['key']}: say where the book covers it"
        assert len(set(row["covered"])) == len(row["covered"]), row


@pytest.mark.parametrize(("where", "part"), PARTS)
def test_every_section_of_the_book_that_is_named_exists(where, part):
    if name := sources.notebook_of(part):
        assert part in headings(name), f"{where}: {name} has no section {part!r}"
    else:
        assert (ROOT / f"{part}.md").is_file(), f"{where}: there is no page {part}.md"


def test_the_page_shows_every_source_and_says_what_it_is():
    page = (ROOT / "book" / "sources.md").read_text(encoding="utf-8")
    for key in ROWS:
        section = page.partition(f"\n## {key}: ")[2].partition("\n## ")[0]
        assert f"```{{source-table}} {key}\n```" in section
        for what in ("title", "author", "origin", "date", "language"):
            assert re.search(rf"^\| {what} \| \S.* \|$", section, re.MULTILINE), what


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s["key"])
def test_table_has_a_row_a_section_and_no_empty_cell(source):
    head, rule, *body = sources.table(source)
    assert rule.count("|") == head.count("|") == 4
    assert len(body) == len(source["sections"])
    for line in body:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert len(cells) == 3 and all(cells), line


def test_links():
    link = sources.link("1.2 Attention, one number at a time")
    assert link.endswith(
        "(../notebooks/01_seq2seq_attention.ipynb#12-attention-one-number-at-a-time)"
    )
    assert sources.link("book/intro") == "[](../book/intro.md)"
    with pytest.raises(Exception, match=r"'21.1 Later' is on one of the pages \[\]"):
        sources.link("21.1 Later")
