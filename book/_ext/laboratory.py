"""The directive ``{laboratory}`` puts the laboratory on a page of prose."""

from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from annotated.page.laboratory import laboratory

STATIC = Path(__file__).parents[2] / "annotated" / "page" / "static"


class Laboratory(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        for pattern in ("laboratory*.*", "laboratory/*"):
            for file in STATIC.glob(pattern):  # the page is read again after an edit
                self.env.note_dependency(str(file))
        return [nodes.raw("", laboratory().text, format="html")]


def setup(app):
    app.add_directive("laboratory", Laboratory)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
