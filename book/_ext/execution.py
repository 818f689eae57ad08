"""Sphinx extension: pages show the outputs that `tools.execute` kept."""

import json
import sys
from pathlib import Path

from sphinx.errors import ExtensionError

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools import cache


def show_outputs(app, docname: str, source: list[str]) -> None:
    path = Path(app.env.doc2path(docname))
    if path.suffix != ".ipynb":
        return
    notebook = json.loads(source[0])
    kept = cache.place(path, notebook)
    if not kept.is_file():
        raise ExtensionError(
            f"{docname}: not executed as it is now, `make book` does that first"
        )
    app.env.note_dependency(str(kept))  # another run, and the page is read again
    cache.take_outputs(notebook, cache.read(kept))
    notebook["metadata"]["language_info"]["pygments_lexer"] = "ipython3"  # knows %pip
    source[0] = json.dumps(notebook)


def setup(app):
    app.connect("source-read", show_outputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
