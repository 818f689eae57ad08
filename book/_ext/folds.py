"""What is folded on a page: one quiet line for all that a section's evidence needs.

Cells that draw (tag ``hide-input``), prove or measure (``proof``, too) and the set-up
(``setup``) stand behind one line, such as "✓ 3 checks · code", each under its title.
What they draw, and what they say to a reader, stays in sight; what they print doesn't,
nor where a recorded run comes from. Behind the line stands how to cite such a run.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

import yaml
from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.transforms.post_transforms import SphinxPostTransform

ROOT = Path(__file__).resolve().parents[2]
RUN = re.compile(r"^recorded \S+: python -m benchmarks (\w+)", re.MULTILINE)


def fold(cell: dict) -> None:
    """Fold a notebook's cell as its tags say."""
    tags = cell["metadata"].setdefault("tags", [])
    if "setup" in tags:
        tags += ["hide-input", "proof"]
    if title := cell["metadata"].pop("title", ""):
        cell["metadata"]["mystnb"] = {"code_prompt_show": title}


def fold_cells(app, docname: str, source: list[str]) -> None:
    if str(app.env.doc2path(docname)).endswith(".ipynb"):
        notebook = json.loads(source[0])
        for cell in notebook["cells"]:
            fold(cell)
        place_runs([c for c in notebook["cells"] if c["cell_type"] == "code"])
        app.env.note_dependency(str(ROOT / "CITATION.cff"))
        source[0] = json.dumps(notebook)


def place_runs(cells: list[dict]) -> None:
    """Note each recorded run that cells read in the next cell that is folded.

    After the last folded cell, in that one: of cells that show no code nothing is left.
    """
    runs: list[str] = []
    home: dict = {}
    for cell in cells:
        runs += runs_of(cell)
        if {"hide-input", "hide-cell"} & set(cell["metadata"]["tags"]):
            home = cell["metadata"]
            home["runs"], runs = runs, []
    if runs:
        home["runs"] += runs


def runs_of(cell: dict) -> Iterator[str]:
    """The names of recorded runs in what a cell prints when it reads them."""
    for output in cell.get("outputs", []):
        text = output.get("text", output.get("data", {}).get("text/plain", ""))
        yield from RUN.findall("".join(text))


def citation(run: str) -> str:
    """How to cite a recorded run, in one line of HTML."""
    book = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    path = f"book/results/{run}.json"
    record = (ROOT / path).read_bytes()
    url = f"{book['repository-code']}/blob/v{book['version']}/{path}"
    return (
        f"{book['authors'][0]['name']}, <i>{book['title']}</i>, version "
        f"{book['version']}, recorded run “{run}” of "
        f"{json.loads(record)['provenance']['date']}, sha256 "
        f'{hashlib.sha256(record).hexdigest()[:12]}. <a href="{url}">{url}</a>'
    )


def summary(printed: str) -> str:
    """Return what stands on the line: how many checks hold, and what else is behind it.

    Args:
        printed: all that the proofs behind it print; a check begins with a tick.
    """
    ticks = sum(line.startswith("✓") for line in printed.splitlines())
    words = [f"✓ {ticks} check{'s' * (ticks > 1)}"] if ticks else []
    words += ["measured"] if "measured" in printed else []
    return " · ".join([*words, "code"])


class Evidence(SphinxPostTransform):
    """Gathers neighbouring folded cells behind one line."""

    default_priority = 200  # after MyST-NB has wrapped each one's code
    formats = ("html",)

    def run(self, **kwargs) -> None:
        gather_all(self.document)


def gather_all(document: nodes.Element) -> None:
    """Put a line below each run of neighbours in each section."""
    for section in list(document.findall(nodes.section)):
        run: list[nodes.container] = []
        for child in list(section.children):
            if folded(child):
                run.append(child)
            elif not isinstance(child, nodes.comment):
                gather(run)
                run = []
        gather(run)


def folded(node: nodes.Node) -> bool:
    """Whether a cell shares a line; a solution is to be asked for by itself."""
    cell = isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"
    return cell and any(
        isinstance(child, HideCodeCellNode)
        and not child["prompt_show"].startswith("Show ")
        for child in node
    )


def gather(cells: list[nodes.container]) -> None:
    """Put one line below neighbouring cells, in place of one for each."""
    if not cells:
        return
    behind: list[nodes.Node] = []
    printed = ""
    section = cells[0].parent
    end = section.index(cells[-1]) + 1
    for cell in cells:
        (wrapped,) = (child for child in cell if isinstance(child, HideCodeCellNode))
        cell.remove(wrapped)
        title = escape(wrapped["prompt_show"])
        behind += [html(f'<p class="annotated-behind">{title}</p>'), *wrapped.children]
        for said in list(cell.findall(nodes.raw)):
            if 'class="annotated-recorded"' in said.astext():
                said.parent.remove(said)
                behind.append(said)
        if "tag_proof" in cell["classes"]:
            for text in list(cell.findall(nodes.literal_block)):
                printed += f"{text.astext()}\n"
                text.parent.remove(text)
                behind.append(text)
    runs = [run for cell in cells for run in cell["cell_metadata"].get("runs", [])]
    if runs:
        rows = "".join(f"<p>{citation(run)}</p>" for run in dict.fromkeys(runs))
        behind.append(
            html(f'<p class="annotated-behind">To cite a recorded run</p>{rows}')
        )
    words = summary(printed)
    line = nodes.container(classes=["annotated-evidence"])
    if words == "code":
        line["classes"].append("annotated-short")  # there is room beside a caption
    line += html(f"<details><summary>{words}</summary>")
    line += behind
    line += html("</details>")
    section.insert(end, line)


def html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def setup(app) -> dict:
    app.connect("source-read", fold_cells)
    app.add_post_transform(Evidence)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
