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
DATA = sources.load()
CHAPTERS = DATA["chapters"]
ROWS = {s["key"]: s["sections"] for s in DATA["sources"]}
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


def chapter_source(number: int) -> Path:
    return ROOT / "notebooks" / "src" / f"{CHAPTERS[number]['name']}.py"


def headings(part: str) -> list[str]:
    """The headings of the page that should hold a section, below its title."""
    name = sources.notebook_of(part, CHAPTERS)
    text = (ROOT / "notebooks/src" / f"{name}.py").read_text(encoding="utf-8")
    return re.findall(r"^# ## (.+)$", text, re.MULTILINE)


def written() -> list[int]:
    return [number for number in CHAPTERS if chapter_source(number).exists()]


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


def test_every_chapter_named_is_in_the_plan():
    assert list(CHAPTERS) == list(range(1, 21))
    for number, chapter in CHAPTERS.items():
        assert chapter["name"].startswith(f"{number:02}_")
    named = {where: sources.chapter_of(part) for where, part in PARTS}
    assert {n for n in named.values() if n is not None} <= set(CHAPTERS), named


def test_every_written_chapter_has_its_name_from_the_plan():
    plan = {chapter["name"] for chapter in CHAPTERS.values()}
    found = {path.stem for path in (ROOT / "notebooks" / "src").glob("*.py")}
    deeper = {name for name in found if re.match(r"\d\d[a-z]_", name)}
    assert plan >= found - deeper != set()
    assert {int(name[:2]) for name in deeper} <= set(written())


def test_every_section_of_the_book_that_is_named_exists():
    wrong = []
    for where, part in PARTS:
        number = sources.chapter_of(part)
        if sources.is_planned(part):
            continue
        if number is None:
            if not (ROOT / f"{part}.md").is_file():
                wrong.append(f"{where}: there is no page {part}.md")
        elif number not in written():
            wrong.append(f"{where}: chapter {number} is not written: {part!r}")
        elif part not in headings(part):
            wrong.append(f"{where}: chapter {number} has no section {part!r}")
    assert wrong == []


def test_a_written_chapter_is_no_longer_planned():
    late = [
        f"{where}: name the section of chapter {sources.chapter_of(part)} that covers "
        "it, in book/sources.yml"
        for where, part in PARTS
        if sources.is_planned(part) and sources.chapter_of(part) in written()
    ]
    assert late == []


def test_the_page_shows_every_source_and_says_what_it_is():
    page = (ROOT / "book" / "sources.md").read_text(encoding="utf-8")
    for key in ROWS:
        section = page.partition(f"\n## {key}: ")[2].partition("\n## ")[0]
        assert f"```{{source-table}} {key}\n```" in section
        for what in ("title", "author", "origin", "date", "language"):
            assert re.search(rf"^\| {what} \| \S.* \|$", section, re.MULTILINE), what


@pytest.mark.parametrize("source", DATA["sources"], ids=lambda s: s["key"])
def test_table_has_a_row_a_section_and_no_empty_cell(source):
    head, rule, *body = sources.table(source, CHAPTERS)
    assert rule.count("|") == head.count("|") == 5
    assert len(body) == len(source["sections"])
    for line in body:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert len(cells) == 4 and all(cells), line
        assert cells[3] in ("done", "in part", "planned")


def test_status_and_links():
    assert sources.status(["2.6 Why √k"]) == "done"
    assert sources.status(["chapter 3", "chapter 6"]) == "planned"
    assert sources.status(["book/intro", "chapter 6"]) == "in part"
    link = sources.link("1.2 Attention, one number at a time", CHAPTERS)
    assert link.endswith(
        "(../notebooks/01_seq2seq_attention.ipynb#12-attention-one-number-at-a-time)"
    )
    assert sources.link("chapter 20", CHAPTERS) == "chapter 20: Errata, executed"
    assert sources.link("book/intro", CHAPTERS) == "[](../book/intro.md)"
    with pytest.raises(Exception, match="chapter 21, which is not in its list"):
        sources.link("chapter 21", CHAPTERS)
