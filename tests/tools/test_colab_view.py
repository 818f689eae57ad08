"""tools/colab_view.py: of what a form hides, the title alone."""

import json

import nbformat
import pytest

from tools import cache, colab_view


@pytest.fixture
def executed(tmp_path, monkeypatch):
    """A notebook with a form and a cell in sight, as it lies in the repository."""
    notebook = nbformat.v4.new_notebook()
    form = nbformat.v4.new_code_cell("#@title Figure: a line\nhidden = 1\nprint(1)")
    form.metadata["cellView"] = "form"
    form.outputs = [
        nbformat.v4.new_output("stream", text="step 1\rdrawn", name="stderr")
    ]
    notebook.cells = [
        nbformat.v4.new_markdown_cell("# A page\n\nof $x$"),
        form,
        nbformat.v4.new_code_cell("seen = 2\nseen + 1"),
    ]
    path = tmp_path / "page.ipynb"
    nbformat.write(notebook, path)
    assert isinstance(json.loads(path.read_text())["cells"][1]["source"], list)
    monkeypatch.setattr(cache, "place", lambda path, notebook: path)
    monkeypatch.setattr(colab_view, "ROOT", tmp_path)
    return path


def test_a_form_is_its_title_and_its_output(executed, tmp_path):
    colab_view.main([str(executed)])
    shown = (tmp_path / "_build/colab_view/page.html").read_text("utf-8")
    assert "▸ Figure: a line" in shown and "drawn" in shown and "A page" in shown
    assert "hidden" not in nbformat.writes(colab_view.as_shown(executed))
    assert "seen" in shown and "step 1" not in shown  # the bar moved on
    assert shown.index('inlineMath: [["$", "$"]') < shown.index("tex-mml-chtml.js")
