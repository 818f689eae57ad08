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

LOAD = "<!-- Load mathjax -->"
DOLLARS = '<script>MathJax = {tex: {inlineMath: [["$", "$"]]}}</script>'
# nbconvert alone shows a fence in an output in the font of texts
FENCES = """<style>
.jp-RenderedMarkdown .highlight { font-family: monospace; white-space: pre }
</style>"""
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
    for cell in cache.code_cells(notebook):
        if cell["metadata"].get("cellView") == "form":
            title = re.match(r"#@title (.*)", "".join(cell["source"]))[1]
            cell["source"] = f"# ▸ {title}"
    return nbformat.reads(json.dumps(notebook), 4)  # with its lines joined


def main(arguments: list[str]) -> None:
    folder = ROOT / "_build" / "colab_view"
    folder.mkdir(parents=True, exist_ok=True)
    exporter = HTMLExporter(template_name="lab", mathjax_url=MATHJAX.as_uri())
    exporter.register_preprocessor(CoalesceStreamsPreprocessor, enabled=True)
    for path in map(Path, arguments):
        html, _ = exporter.from_notebook_node(as_shown(path.absolute()))
        target = folder / f"{path.stem}.html"
        target.write_text(html.replace(LOAD, DOLLARS + FENCES), encoding="utf-8")
        print(target.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
