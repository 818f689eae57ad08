"""An explorer of a chapter on a page of prose."""

import json
from types import SimpleNamespace

import pytest
from docutils.parsers.rst import DirectiveError

from book._ext import execution

SECTION = '<section class="annotated-explorer" aria-label="{}"></section>'


def notebook(*labels):
    cells = [
        {"data": {"text/html": [SECTION.format(label)]}, "output_type": "display_data"}
        for label in labels
    ]
    cells.append({"output_type": "stream", "text": SECTION.format("printed")})
    return {"cells": [{"cell_type": "code", "outputs": cells}]}


def show(tmp_path, monkeypatch, label, content=()):
    path = tmp_path / "01_tiny.ipynb"
    path.write_text(json.dumps(notebook()), encoding="utf-8")
    monkeypatch.setattr(execution, "executed", lambda *_: notebook("one", "two", "two"))
    directive = object.__new__(execution.Explorer)
    directive.arguments, directive.options = ["notebooks/01_tiny"], {"label": label}
    directive.content = content
    env = SimpleNamespace(doc2path=lambda name: path, note_dependency=lambda name: None)
    settings = SimpleNamespace(env=env)
    directive.state = SimpleNamespace(document=SimpleNamespace(settings=settings))
    return directive.run()


def test_only_outputs_that_hold_an_explorer_count():
    assert execution.explorers(notebook("one")) == [SECTION.format("one")]


def test_shows_the_one_that_has_the_label(tmp_path, monkeypatch):
    (shown,) = show(tmp_path, monkeypatch, "one")
    assert shown.astext() == SECTION.format("one")


def test_texts_to_try_become_buttons_above_the_drawing(tmp_path, monkeypatch):
    drawn = SECTION + '<div class="annotated-view"></div>'
    monkeypatch.setitem(globals(), "SECTION", drawn)
    (shown,) = show(tmp_path, monkeypatch, "one", ["A & B: 1: 2"])
    button = '<button type="button" data-text="1: 2">A &amp; B</button>'
    assert shown.astext().index(button) < shown.astext().index("annotated-view")


@pytest.mark.parametrize("label", ["two", "three"])
def test_a_label_that_names_none_or_several_is_refused(tmp_path, monkeypatch, label):
    with pytest.raises(DirectiveError) as caught:
        show(tmp_path, monkeypatch, label)
    assert f'explorers with aria-label="{label}"' in caught.value.msg


def test_of_findings_the_page_shows_the_missed_as_a_line_alone(tmp_path, monkeypatch):
    """Sphinx warns of data that it can't show, and a warning ends the build."""
    cell = {"cell_type": "code", "source": "", "metadata": {}, "outputs": []}
    path = tmp_path / "01_tiny.ipynb"
    outputs = [
        {"data": {"text/html": line, execution.findings.MIME: {"held": not line}}}
        for line in ("", "Here 0.2")
    ]
    done = {"cells": [{**cell, "outputs": outputs}]}
    monkeypatch.setattr(execution, "executed", lambda *_: done)
    source = [json.dumps({"cells": [cell], "metadata": {"language_info": {}}})]
    env = SimpleNamespace(doc2path=lambda name: path)
    execution.show_outputs(SimpleNamespace(env=env), "01_tiny", source)
    [shown] = json.loads(source[0])["cells"][0]["outputs"]
    assert shown["data"] == {"text/html": "Here 0.2"}
