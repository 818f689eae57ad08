"""The coverage of the sources: tables made from ``book/sources.yml``.

``{source-table} S2`` sets one row for each section of a source. What covers a section
is the heading of a chapter's section, as it stands there, ``1.4 The idea: …``, or of a
deeper page, ``1b.4 …``; or a page around the chapters, ``book/bibliography``.
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


def load() -> list[dict]:
    return yaml.safe_load(DATA.read_text(encoding="utf-8"))


def notebook_of(part: str) -> str | None:
    """The name of the notebook that holds a section; None for a page of prose."""
    if not (match := SECTION.match(part)):
        return None
    number, letter = match.groups()
    names = [path.stem for path in NOTEBOOKS.glob(f"{int(number):02}{letter}_*.py")]
    if len(names) != 1:
        raise ExtensionError(f"sources.yml: {part!r} is on one of the pages {names}")
    return names[0]


def link(part: str) -> str:
    """A part of the coverage as Markdown, for a page in ``book/``."""
    name = notebook_of(part)
    # Sphinx warns if the page has no such heading, and the build fails
    anchor = f"../notebooks/{name}.ipynb#{default_slugify(part)}"
    return f"[{part}]({anchor})" if name else f"[](../{part}.md)"


def table(source: dict) -> list[str]:
    """The lines of a source's table, in Markdown."""
    lines = ["| section | heading | where the book covers it |", "|-|-|-|"]
    for row in source["sections"]:
        heading = row["english"]
        if row["heading"] != heading:  # some are English in the source
            heading += f" · {row['heading']}"
        covered = "; ".join(map(link, row["covered"]))
        lines.append(f"| {row['key']} | {heading} | {covered} |")
    return lines


class SourceTable(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(DATA))
        known = {source["key"]: source for source in load()}
        if self.arguments[0] not in known:
            raise self.error(f"no source {self.arguments[0]!r} among {[*known]}")
        box = nodes.container()
        lines = StringList(table(known[self.arguments[0]]), str(DATA))
        self.state.nested_parse(lines, self.content_offset, box)
        return box.children


def setup(app) -> dict:
    app.add_directive("source-table", SourceTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
