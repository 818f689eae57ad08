"""Show a notebook as Colab would after *Run all*: nothing folded but its forms.

    python -m tools.colab_view NOTEBOOK ...

Writes `_build/colab_view/NAME.html`, with the outputs of the notebook's last run.
"""

import json
import re
import sys
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter
from nbconvert.preprocessors import CoalesceStreamsPreprocessor

from tools import ROOT, cache

INLINE = """<script>window.MathJax = {tex: {inlineMath: [["$", "$"]]}};</script>"""
MATHJAX = ROOT / "book" / "vendor" / "mathjax" / "tex-mml-chtml.js"


def as_shown(path: Path) -> nbformat.NotebookNode:
    """The notebook with its outputs; of a form, the title alone.

    Raises:
        SystemExit: if it has not been executed as it is now.
    """
    notebook = cache.read(path)
    kept = cache.place(path, notebook)
    if not kept.is_file():
        raise SystemExit(f"{path.name}: first `python -m tools.execute {path.name}`")
    cache.take_outputs(notebook, cache.read(kept))
    shown = nbformat.reads(json.dumps(notebook), as_version=4)
    for cell in shown.cells:
        if cell.metadata.get("cellView") == "form":
            title = re.match(r"#@title (.*)", cell.source)[1]
            cell.source = f"# ▸ {title}"
    return shown


def main(arguments: list[str]) -> None:
    folder = ROOT / "_build" / "colab_view"
    folder.mkdir(parents=True, exist_ok=True)
    exporter = HTMLExporter(template_name="lab", mathjax_url=MATHJAX.as_uri())
    exporter.register_preprocessor(CoalesceStreamsPreprocessor, enabled=True)  # bars
    for path in map(Path, arguments):
        html, _ = exporter.from_notebook_node(as_shown(path.absolute()))
        target = folder / f"{path.stem}.html"
        html = html.replace("<head>", f"<head>{INLINE}", 1)
        target.write_text(html, encoding="utf-8")
        print(target.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
