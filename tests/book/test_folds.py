"""What is folded on a page, and what the fold says."""

import hashlib
import json
from types import SimpleNamespace

import pytest
import yaml
from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode

from book._ext import folds
from tools import ROOT


def folded(tags, path="notebooks/02_self_attention.ipynb"):
    cell = {"cell_type": "code", "source": "1", "metadata": {"tags": list(tags)}}
    source = [json.dumps({"cells": [cell]})]
    read = {"note_dependency": lambda name: None}
    env = SimpleNamespace(doc2path=lambda docname: path, **read)
    folds.fold_cells(SimpleNamespace(env=env), "page", source)
    return json.loads(source[0])["cells"][0]["metadata"]


@pytest.mark.parametrize(
    ("tags", "kept"),
    [
        (["setup"], ["setup", "hide-input", "proof"]),
        (["hide-input", "proof"], ["hide-input", "proof"]),
        ([], []),
    ],
)
def test_the_set_up_is_folded_like_a_proof(tags, kept):
    assert folded(tags)["tags"] == kept


def test_a_cell_s_title_stands_above_its_code():
    cell = {"metadata": {"tags": ["proof"], "title": "Proof: equal"}}
    folds.fold(cell)
    assert cell["metadata"]["mystnb"] == {"code_prompt_show": "Proof: equal"}
    assert "title" not in cell["metadata"]


@pytest.mark.parametrize(
    ("printed", "line"),
    [
        ("", "code"),
        ("✓ equal, to 3e-7\n", "✓ 1 check · code"),
        ("✓ one\n  ✓ no second\n✓ two\nmeasured: 3", "✓ 2 checks · measured · code"),
        ("measured: 3 of 4", "measured · code"),
    ],
)
def test_the_line_says_how_many_checks_hold(printed, line):
    assert folds.summary(printed) == line


def cell(title, *outputs, proof=False, runs=()):
    """A folded cell as MyST-NB hands it on."""
    code = nodes.literal_block(text=f"code of {title}")
    wrapped = HideCodeCellNode("", code, prompt_show=title, prompt_hide="")
    shown = nodes.container("", *outputs, nb_element="cell_code_output")
    classes = ["cell", *(["tag_proof"] * proof)]
    parts = [wrapped, *([shown] * bool(outputs))]
    known = {"nb_element": "cell_code", "classes": classes}
    return nodes.container("", *parts, cell_metadata={"runs": runs}, **known)


def test_neighbours_share_a_line_and_what_they_show_stays_in_sight():
    picture, said = nodes.raw("", "<svg>"), nodes.paragraph("", "It ends at 0.3.")
    origin = nodes.raw("", '<p class="annotated-recorded">recorded</p>')
    tick = nodes.literal_block(text="✓ equal")
    printed = nodes.literal_block(text="of a drawing")
    end = nodes.paragraph("", "text")
    later = cell("Figure: 2 < 3")
    solution = cell("Show the solution")
    section = nodes.section(
        "",
        cell("Figure", picture, printed, origin),
        nodes.comment("", "a mark"),
        cell("Proof", said, tick, proof=True),
        end,
        later,
        solution,
    )
    document = nodes.section("", section)
    folds.gather_all(document)
    lines = [node for node in section if "annotated-evidence" in node["classes"]]
    assert section.index(lines[0]) == section.index(end) - 1
    text = lines[0].astext()
    assert "✓ 1 check · code" in text
    order = [text.index(words) for words in ("Figure", "of Figure", "Proof", "✓ equal")]
    assert order == sorted(order)
    assert "&lt; 3" in lines[1].astext()
    assert ["annotated-short" in line["classes"] for line in lines] == [False, True]
    assert solution in section.children and "code of" in solution.astext()
    sights = ((picture, True), (said, True), (printed, True), (tick, False))
    for node, seen in (*sights, (origin, False)):
        behind = any(node in line.findall() for line in lines)
        assert behind != seen


def printing(*runs, tags=()):
    """A cell that has read these records."""
    text = [f"recorded 2026-11-2{i}: python -m benchmarks {run} (seeds 0)\n"
            for i, run in enumerate(runs)]  # fmt: skip
    outputs = [{"output_type": "stream", "name": "stdout", "text": text}]
    return {"cell_type": "code", "metadata": {"tags": [*tags]}, "outputs": outputs}


def test_a_run_is_cited_behind_the_next_line_or_the_last():
    hidden = {
        "data": {"text/plain": "recorded 2026-11-22: python -m benchmarks old; no"}
    }
    cells = [
        printing("rates", "heads", tags=["hide-input", "remove-stdout"]),
        printing("text", tags=["remove-input"]),
        printing(tags=["hide-cell"]) | {"outputs": [hidden]},
        printing("slips"),
    ]
    folds.place_runs(cells)
    runs = [cell["metadata"].get("runs") for cell in cells]
    assert runs == [["rates", "heads"], None, ["text", "old", "slips"], None]


def test_a_citation_names_version_run_date_digest_and_address():
    section = nodes.section("", cell("A", runs=["rates"]), cell("B", runs=["rates"]))
    folds.gather_all(section)
    (line,) = (node for node in section if "annotated-evidence" in node["classes"])
    text = line.astext()
    record = (ROOT / "book/results/rates.json").read_bytes()
    assert (
        text.count("To cite a recorded run")
        == text.count("recorded run “rates” of 2026-")
        == 1
    )
    assert f"sha256 {hashlib.sha256(record).hexdigest()[:12]}." in text
    book = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert f"</i>, version {book['version']}, " in text
    where = f"{book['repository-code']}/blob/v{book['version']}/book/results/rates.json"
    assert f'<a href="{where}">' in text


def test_only_notebooks_have_cells():
    source = ["# A page of prose"]
    env = SimpleNamespace(doc2path=lambda docname: "book/setup.md")
    folds.fold_cells(SimpleNamespace(env=env), "book/setup", source)
    assert source == ["# A page of prose"]
