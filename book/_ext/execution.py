"""Sphinx extension: pages show the outputs that `tools.execute` kept.

The directive ``{explorer} notebooks/02_topic`` shows on a page of prose the explorer of
a notebook that has the ``:label:`` given, its slider at the ``:step:``. Its lines,
`Polish: 16 lipca 2024`, become buttons that fill in its text.
"""

import json
import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from markupsafe import escape
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools import cache, findings


def executed(docname: str, notebook: dict, env) -> dict:
    """The last run of a notebook; after another one the page is read again."""
    kept = cache.place(Path(env.doc2path(docname)), notebook)
    if not kept.is_file():
        raise ExtensionError(
            f"{docname}: not executed as it is now, `make book` does that first"
        )
    env.note_dependency(str(kept))
    return cache.read(kept)


def show_outputs(app, docname: str, source: list[str]) -> None:
    if Path(app.env.doc2path(docname)).suffix != ".ipynb":
        return
    notebook = json.loads(source[0])
    cache.take_outputs(notebook, executed(docname, notebook, app.env))
    for cell in cache.code_cells(notebook):
        # what holds, the prose says already; and the page has folds of its own
        cell["outputs"] = [o for o in cell["outputs"] if not findings.held(o)]
        for output in cell["outputs"]:  # of a missed one, the page shows the line
            output.get("data", {}).pop(findings.MIME, None)
        cell["source"] = "".join(cell["source"])
        if title := re.match(r"#@title (.*)\n", cell["source"]):
            cell["metadata"]["title"] = title[1]
            cell["source"] = cell["source"][title.end() :]
    notebook["metadata"]["language_info"]["pygments_lexer"] = "ipython3"  # knows %pip
    source[0] = json.dumps(notebook)


def explorers(notebook: dict) -> list[str]:
    """The explorers among the outputs of a notebook, as HTML."""
    outputs = (o for cell in cache.code_cells(notebook) for o in cell["outputs"])
    texts = ("".join(o.get("data", {}).get("text/html", "")) for o in outputs)
    return [text for text in texts if '<section class="annotated-explorer"' in text]


class Explorer(SphinxDirective):
    required_arguments = 1
    option_spec = {
        "label": directives.unchanged_required,
        "step": directives.positive_int,
    }
    has_content = True

    def run(self) -> list[nodes.Node]:
        docname = self.arguments[0]
        path = Path(self.env.doc2path(docname))
        self.env.note_dependency(str(path))
        label = f'aria-label="{self.options["label"]}"'
        run = executed(docname, json.loads(path.read_text("utf-8")), self.env)
        named = [html for html in explorers(run) if label in html]
        if len(named) != 1:
            raise self.error(f"{docname} has {len(named)} explorers with {label}")
        buttons = ""
        for line in self.content:
            name, _, text = line.partition(": ")
            data = f'data-text="{escape(text)}"'
            buttons += f'<button type="button" {data}>{escape(name)}</button>\n'
        view = '<div class="annotated-view"'
        tries = f'<p class="annotated-tries">Try: {buttons}</p>\n' if buttons else ""
        html = named[0].replace(view, tries + view)
        if step := self.options.get("step"):
            old = r'value="\d+"( step="1" aria-valuetext=)"\d+"( data-name="step")'
            html = re.sub(old, rf'value="{step - 1}"\1"{step}"\2', html)
        return [nodes.raw("", html, format="html")]


def setup(app):
    app.add_directive("explorer", Explorer)
    app.connect("source-read", show_outputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
