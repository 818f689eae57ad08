"""A missing alt text, a broken link or a foreign file must fail the build."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from book._ext import pages
from tools import ROOT

PNG = "data:image/png;base64,AAAA"


@pytest.mark.parametrize(
    ("html", "number"),
    [
        (f'<img alt="A rising line" src="{PNG}">', 0),
        (f"<img src='{PNG}'><img alt='' src='{PNG}'>", 2),
        ('<figure><img alt="loss.png" src="loss.png"/></figure>', 1),
        ("<svg><path/></svg>", 1),
        ('<svg role="img" aria-label="A rising line"><path/></svg>', 0),
        ("<svg><title>A rising line</title><path/></svg>", 0),
        ('<svg aria-hidden="true"><path/></svg>', 0),
        ("<script>const picture = '<img src=x>';</script>", 0),
        ("<p>no pictures</p>", 0),
    ],
)
def test_pictures_in_html(html, number):
    assert len(pages.ImageScan(html).problems) == number


def write_site(folder, **bodies):
    for name, body in bodies.items():
        (folder / f"{name}.html").write_text(f"<body>{body}</body>")
    return folder, [f"{name}.html" for name in bodies]


def test_links_that_lead_somewhere(tmp_path):
    (tmp_path / "style.css").touch()
    site = write_site(
        tmp_path,
        a='<link rel="stylesheet" href="style.css?v=1"><a href="b.html#there">B</a>'
        '<a href="#">top</a><a href="https://example.org/x">elsewhere</a>'
        f'<a href="mailto:a@example.org">write</a><img src="{PNG}">',
        b='<h1 id="there">B</h1><a href="a.html">A</a>',
    )
    assert pages.link_problems(*site) == []


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ('<a href="c.html">C</a>', "does not exist"),
        ('<a href="b.html#nowhere">B</a>', "no such anchor"),
        ('<a href="#nowhere">here</a>', "no such anchor"),
        ('<img src="missing.png">', "does not exist"),
        ('<a href="/b.html">B</a>', "does not exist"),
        ('<script src="https://example.org/x.js"></script>', "outside the site"),
        ('<img src="//example.org/x.png">', "outside the site"),
        ('<link rel="icon" href="/favicon.ico">', "outside the site"),
    ],
)
def test_links_that_lead_nowhere(tmp_path, body, complaint):
    found = pages.link_problems(*write_site(tmp_path, a=body, b="<h1>B</h1>"))
    assert {page for page, _ in found} == {"a.html"}
    assert complaint in found[0][1]


def test_misleading_names_are_mended_and_shared_code_is_kept_once():
    body = (
        '<div role="list" class="citation-list">'
        '<div class="citation" id="id1" role="doc-biblioentry">A</div></div>'
        '<ul role="list"><li>kept</li></ul>'
        '<summary aria-label="Toggle hidden content">The proof</summary>'
        '<style class="annotated-shared">a</style><p>1</p>'
        '<style class="annotated-shared">a</style><p>2</p>'
        '<style class="annotated-shared">b</style>'
    )
    context = {"body": body}
    pages.repair_html(SimpleNamespace(), "page", "page.html", context, None)
    assert context["body"] == (
        '<div class="citation-list"><div class="citation" id="id1">A</div></div>'
        '<ul role="list"><li>kept</li></ul><summary>The proof</summary>'
        '<style class="annotated-shared">a</style><p>1</p><p>2</p>'
        '<style class="annotated-shared">b</style>'
    )


CONF = f"""
import sys
sys.path.insert(0, {str(ROOT / "book" / "_ext")!r})
extensions = ["myst_nb", "pages"]
nb_execution_mode = "off"
myst_heading_anchors = 2
exclude_patterns = ["_build"]
"""

GOOD = f"""# Page

![A black square](square.png)

[down](#below) <img alt="A black dot" src="{PNG}">

## Below
"""
BAD = {
    "![](square.png)": "has no alt text",
    "![square.png](square.png)": "has a file name",
    f'<div><img src="{PNG}"></div>': "has no alt text",
    '<a href="nowhere.html">nowhere</a>': "links to nowhere.html",
    "![A logo](https://example.org/logo.png)": "from outside the site",
}


def output(html: str) -> str:
    cell = {
        "cell_type": "code",
        "id": "a",
        "execution_count": 1,
        "metadata": {},
        "source": "draw()",
        "outputs": [
            {"output_type": "display_data", "metadata": {}, "data": {"text/html": html}}
        ],
    }
    head = {"cell_type": "markdown", "id": "b", "metadata": {}, "source": "# Notebook"}
    language = {"name": "python", "pygments_lexer": "ipython3"}
    notebook = {
        "cells": [head, cell],
        "metadata": {"language_info": language},
        "nbformat": 4,
    }
    return json.dumps({**notebook, "nbformat_minor": 5})


def build(folder, page: str, html: str) -> subprocess.CompletedProcess:
    (folder / "conf.py").write_text(CONF)
    (folder / "square.png").write_bytes(b"not looked at")
    (folder / "index.md").write_text(page + "\n```{toctree}\nnotebook\n```\n")
    (folder / "notebook.ipynb").write_text(output(html))
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-a"]
    return subprocess.run(
        [*command, str(folder), str(folder / "_build")],
        capture_output=True,
        text=True,
        check=False,
    )


def test_sound_book_builds_and_its_tables_are_repaired(tmp_path):
    corners = '<th></th><th scope="col"></th><th scope="row"></th><th>loss</th>'
    done = build(tmp_path, GOOD, f"<table><tr>{corners}</tr></table>")
    assert (done.returncode, done.stderr) == (0, "")
    html = (tmp_path / "_build" / "notebook.html").read_text()
    assert "<td></td><td></td><td></td><th>loss</th>" in html


def test_each_fault_fails_the_build(tmp_path):
    faults = "\n\n".join(BAD)
    done = build(tmp_path, f"{GOOD}\n\n{faults}\n", f'<img alt="x.png" src="{PNG}">')
    assert done.returncode != 0
    for complaint in BAD.values():
        assert complaint in done.stderr
    assert "notebook: <img> (data:image/png;base64,AAAA) has a file name" in done.stderr
