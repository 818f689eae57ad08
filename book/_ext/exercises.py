"""The buttons of an exercise page give the student notebook, which has no solutions.

The theme makes its buttons from a page's own name, and the page's own notebook holds
the solutions. So the Colab, download and source buttons are pointed elsewhere, the
student notebooks are copied into the site, and the page's notebook is taken out of it.

A chapter links to the student notebook, as it lies beside it in the repository and on
Colab; on the built page that link leads to the page of exercises.

The directive ``{learning-goals}`` sets a table of all exercises, with their points and
goals as their own statements say them.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools import ROOT
from tools.exercises import STATEMENT, exercises, read_exercises
from tools.source import setup_cell

SOURCES = ROOT / "notebooks" / "src" / "exercises"

PAGES = "book/exercises/"
STUDENT = "notebooks/exercises/"
DOWNLOAD = "download-source-button"


def student_notebook(pagename: str) -> str:
    """Where the student notebook of an exercise page is, in repository and site."""
    return f"{STUDENT}{pagename.removeprefix(PAGES)}.ipynb"


def redirect(buttons: list[dict], pagename: str, download: str) -> None:
    """Point all buttons that would give the page's own notebook at the student's."""
    for button in buttons:
        redirect(button.get("buttons", []), pagename, download)
        if button.get("label") == DOWNLOAD:
            button["url"] = download
        elif "url" in button:
            own = re.escape(pagename) + r"\.ipynb"
            button["url"] = re.sub(own, student_notebook(pagename), button["url"])


def point_elsewhere(app, pagename, templatename, context, doctree) -> None:
    if pagename.startswith(PAGES):
        download = context["pathto"](student_notebook(pagename), 1)
        redirect(context["header_buttons"], pagename, download)
        # Sphinx and the theme show the source of a page by these
        context["show_source"] = context["has_source"] = False


def link_pages(app, docname: str, source: list[str]) -> None:
    """Where a chapter links to the student's notebook, link to the page instead."""
    if docname.startswith("notebooks/"):
        source[0] = source[0].replace("](exercises/", "](../book/exercises/")


def exchange_notebooks(app, exception: Exception | None) -> None:
    """Put the student notebooks into the site and take the pages' own out of it."""
    if exception or app.builder.name != "html":
        return
    site = Path(app.outdir)
    for docname in app.env.found_docs:
        if docname.startswith(PAGES):
            (site / "_sources" / f"{docname}.ipynb").unlink(missing_ok=True)
            target = site / student_notebook(docname)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(app.srcdir) / student_notebook(docname), target)


def goals(source: Path) -> Iterator[tuple[str, int, str, bool]]:
    """Of each exercise of a source: name, points, goal, and whether it is in words."""
    notebook = read_exercises(source, setup_cell(ROOT))
    for exercise in exercises(notebook):
        earlier = (c.source for c in reversed(notebook.cells[: exercise.answer]))
        points, goal = next(filter(None, map(STATEMENT.search, earlier))).groups()
        words = " ".join(goal.split())
        yield exercise.id, int(points), words, exercise.in_words


def goals_table() -> list[str]:
    """The lines of the table, in Markdown: each chapter with its exercises."""
    lines = ["| exercise | points | after it, a student can |", "|-|-|-|"]
    for source in sorted(SOURCES.glob("*.py")):
        rows = list(goals(source))
        in_words = sum(points for _, points, _, words in rows if words)
        total = sum(points for _, points, _, _ in rows)
        page = f"[chapter {int(source.stem[:2])}](exercises/{source.stem}.ipynb)"
        lines.append(f"| **{page}** | **{total}** | {in_words} of them in words |")
        lines += [f"| `{name}` | {points} | {goal} |" for name, points, goal, _ in rows]
    return lines


class LearningGoals(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        for source in SOURCES.glob("*.py"):
            self.env.note_dependency(str(source))
        box = nodes.container()
        self.state.nested_parse(
            StringList(goals_table(), str(SOURCES)), self.content_offset, box
        )
        return box.children


def setup(app) -> dict:
    app.add_directive("learning-goals", LearningGoals)
    app.connect("source-read", link_pages)
    # after the theme's own handlers, which make the buttons
    app.connect("html-page-context", point_elsewhere, priority=900)
    # before the links of the pages are checked
    app.connect("build-finished", exchange_notebooks, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
