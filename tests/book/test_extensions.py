"""The extensions behind the API page, the tables of the sources and Chinese words."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes
from sphinx import addnodes

from book._ext import api, laboratory, language

ROOT = Path(__file__).resolve().parents[2]

# ---- language ----------------------------------------------------------------------


def pieces(text: str) -> list[str]:
    """The Chinese pieces of a text."""
    marked = language.marked(text)
    assert "".join(node.astext() for node in marked) == text
    return [node.astext() for node in marked if isinstance(node, nodes.inline)]


@pytest.mark.parametrize(
    ("text", "chinese"),
    [
        ("attention", []),
        ("注意力", ["注意力"]),
        ("attention is 注意力 there", ["注意力"]),
        ("The encoder · 创建Encoder类", ["创建Encoder类"]),
        ("自注意力 模型, and 集合", ["自注意力 模型,", "集合"]),
        ("naïve café – 7 März", []),
    ],
)
def test_chinese_is_told_from_english(text, chinese):
    assert pieces(text) == chinese


# ---- api ---------------------------------------------------------------------------


def test_types_of_a_signature_stay_unlinked_and_other_references_do_not():
    text, reference = nodes.Text("Tensor"), addnodes.pending_xref()
    addnodes.desc_signature("", "", addnodes.desc_parameter("", "", reference))
    assert api.leave_types_unlinked(None, None, reference, text) is text
    lost = addnodes.pending_xref()
    nodes.paragraph("", "", lost)
    assert api.leave_types_unlinked(None, None, lost, text) is None


def test_parameters_on_their_own_lines_are_no_list_without_terms():
    kept = "<dl>\n<dt>term</dt>\n<dd>text</dd>\n</dl>"
    listed = "<dl>\n<dd><em>a</em>,</dd>\n<dd><em>b</em>,</dd>\n</dl>"
    context = {"body": f"<dt>f({listed})</dt>{kept}"}
    api.repair_signatures(None, "page", "page.html", context, None)
    assert context["body"].count('<span class="sig-line"') == 2
    assert context["body"].count("<dl>") == context["body"].count("<dd>") == 1
    assert context["body"].endswith(kept)


# ---- laboratory --------------------------------------------------------------------


def test_an_edit_of_any_of_its_files_builds_the_laboratory_s_page_again():
    noted = []
    env = SimpleNamespace(note_dependency=noted.append)
    laboratory.Laboratory.run(SimpleNamespace(env=env))
    static = ROOT / "annotated/page/static"
    files = [path for path in static.rglob("*") if path.is_file()]
    names = {path.relative_to(static).as_posix() for path in files}
    assert {Path(path).relative_to(static).as_posix() for path in noted} == {
        name for name in names if name.startswith("laboratory")
    }


# ---- all of them in a small book ---------------------------------------------------

CONF = f"""
import sys
sys.path[:0] = [{str(ROOT / "book" / "_ext")!r}, "."]
extensions = ["myst_parser", "api", "language", "sources"]
nitpicky = True
"""
PAGE = """# Page

What is 注意力? Not `注意力` in code. See [Setup](setup).

```{toctree}
setup
```

```{eval-rst}
.. automodule:: tiny
   :members:
```
"""
TINY = '''"""A module."""
from torch import Tensor


def setup(first: Tensor, second: Tensor, third: "a.b.C", fourth: int = 1) -> Tensor:
    """Set up, see REFERENCE.

    Args:
        first: ``(b, t)``.

    Returns:
        Ids ``(b, t)``: whole numbers.
    """
'''


def build(folder: Path, page: str, module: str) -> tuple[int, str]:
    (folder / "conf.py").write_text(CONF)
    (folder / "index.md").write_text(page)
    (folder / "setup.md").write_text("# Setup\n\nNothing.\n")
    (folder / "tiny.py").write_text(module)
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", ".", "_build"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def test_a_sound_book_builds(tmp_path):
    module = TINY.replace("REFERENCE", ":func:`setup`")
    assert build(tmp_path, PAGE, module) == (0, "")
    html = (tmp_path / "_build" / "index.html").read_text(encoding="utf-8")
    assert html.count('<span lang="zh">注意力?</span>') == 1
    assert html.count("注意力") == 2
    assert 'href="setup.html"' in html, "a plain link means the page"
    assert 'href="#tiny.setup"' in html, "a reference in a docstring is a link"
    assert 'class="sig-line"' in html
    assert "<dl>\n<dd>" not in html
    assert not (tmp_path / "_build" / "genindex.html").exists()
    assert (tmp_path / "_build" / "_modules" / "tiny.html").exists()


def test_what_leads_nowhere_fails_the_build(tmp_path):
    page = PAGE + "\n```{source-table} S9\n```\n"
    code, errors = build(tmp_path, page, TINY.replace("REFERENCE", ":func:`gone`"))
    assert code != 0
    assert "reference target not found: gone" in errors
    assert "no source 'S9' among ['S0', 'S1', 'S2', 'S3', 'S4']" in errors
    assert "Tensor" not in errors
