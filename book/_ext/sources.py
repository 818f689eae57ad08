"""The coverage of the sources: tables made from ``book/sources.yml``.

``{source-table} S2`` sets one row for each section of a source. What covers a section
is written in one of three ways:

- ``1.4 The idea: …``, the heading of a chapter's section, as it stands there, or
  ``1b.4 …``, one of a deeper page;
- ``chapter 6``, for a chapter that is still to be written;
- ``book/bibliography``, a page around the chapters.
"""

import re
from pathlib import Path

import yaml
from docutils import nodes
from docutils.statemachine import StringList
from myst_parser.mdit_to_docutils.base import default_slugify
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

DATA = Path(__file__).resolve().parents[1] / "sources.yml"
SECTION = re.compile(r"(\d+)([a-z]?)\.\d+ \S")
NOTEBOOKS = DATA.parents[1] / "notebooks" / "src"
PLANNED = re.compile(r"chapter (\d+)")


def load(path: Path = DATA) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def chapter_of(part: str) -> int | None:
    """The number of the chapter that a part names, or None for a page."""
    match = SECTION.match(part) or PLANNED.fullmatch(part)
    return int(match[1]) if match else None


def notebook_of(part: str, chapters: dict[int, dict]) -> str:
    """The name of the notebook that holds a section: of its chapter, or deeper."""
    number, letter = SECTION.match(part).groups()
    if not letter:
        return chapters[int(number)]["name"]
    names = [path.stem for path in NOTEBOOKS.glob(f"{int(number):02}{letter}_*.py")]
    if len(names) != 1:
        raise ExtensionError(f"sources.yml: {part!r} names one of the pages {names}")
    return names[0]


def is_planned(part: str) -> bool:
    return PLANNED.fullmatch(part) is not None


def status(parts: list[str]) -> str:
    planned = [is_planned(part) for part in parts]
    if all(planned):
        return "planned"
    return "in part" if any(planned) else "done"


def link(part: str, chapters: dict[int, dict]) -> str:
    """A part of the coverage as Markdown, for a page in ``book/``."""
    number = chapter_of(part)
    if number is None:
        return f"[](../{part}.md)"
    if number not in chapters:
        raise ExtensionError(
            f"sources.yml: {part!r} names chapter {number}, which is not in its list "
            f"of chapters, {min(chapters)} to {max(chapters)}"
        )
    if is_planned(part):
        return f"chapter {number}: {chapters[number]['title']}"
    # Sphinx warns if the page has no such heading, and the build fails
    name = notebook_of(part, chapters)
    return f"[{part}](../notebooks/{name}.ipynb#{default_slugify(part)})"


def table(source: dict, chapters: dict[int, dict]) -> list[str]:
    """The lines of a source's table, in Markdown."""
    lines = ["| section | heading | where the book covers it | status |", "|-|-|-|-|"]
    for row in source["sections"]:
        heading = row["english"]
        if row["heading"] != heading:  # some are English in the source
            heading += f" · {row['heading']}"
        covered = "; ".join(link(part, chapters) for part in row["covered"])
        lines.append(
            f"| {row['key']} | {heading} | {covered} | {status(row['covered'])} |"
        )
    return lines


class SourceTable(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(DATA))
        data = load()
        found = [s for s in data["sources"] if s["key"] == self.arguments[0]]
        if not found:
            known = [source["key"] for source in data["sources"]]
            raise self.error(
                f"source-table needs one of {known}, got {self.arguments[0]!r}"
            )
        box = nodes.container()
        lines = StringList(table(found[0], data["chapters"]), str(DATA))
        self.state.nested_parse(lines, self.content_offset, box)
        return box.children


def setup(app) -> dict:
    app.add_directive("source-table", SourceTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
