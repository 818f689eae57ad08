"""What each page takes to run: the directive ``{costs}`` sets a table of it.

The numbers are those of the run that the page shows (``tools/nbval_cache.py`` notes
them); a run from before they were noted has none.
"""

import json
import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from book._ext.execution import executed
from tools import cache

ON_DEVICE = re.compile(r"\bto\(device\)|\bdevice=device\b")


def row(docname: str, run: dict) -> str:
    """The line of a page, in Markdown.

    Args:
        docname: of the page.
        run: its executed notebook.
    """
    title = re.search(r"^# (.+)", "".join(run["cells"][0]["source"]))[1]
    cost = run["metadata"].get("cost", {})
    seconds = f"{cost['cpu_seconds']:.0f} s" if cost else "–"
    memory = f"{cost['peak_memory'] / 1e9:.1f} GB" if cost.get("peak_memory") else "–"
    gpu = "used if there is one" if ON_DEVICE.search(cache.code_of(run)) else "not used"
    return f"| [{title}](../{docname}.ipynb) | {seconds} | {memory} | {gpu} |"


class Costs(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        lines = ["| page | CPU time | memory, at most | GPU |", "|-|-:|-:|-|"]
        for docname in sorted(self.env.found_docs):
            if re.match(r"notebooks/\d\d", docname):
                notebook = json.loads(Path(self.env.doc2path(docname)).read_text())
                lines.append(row(docname, executed(docname, notebook, self.env)))
        box = nodes.container()
        self.state.nested_parse(StringList(lines, "costs"), self.content_offset, box)
        return box.children


def setup(app) -> dict:
    app.add_directive("costs", Costs)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
