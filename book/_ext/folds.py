"""What is folded on a page: one quiet line for all that a section's evidence needs.

Cells that draw (tag ``hide-input``), prove or measure (``proof``, too) and the set-up
(``setup``) stand behind one line, such as "✓ 3 checks · code", each under its title.
What they draw, and what they say to a reader, stays in sight; what they print doesn't,
nor where a recorded run comes from.
"""

import json
from html import escape

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.transforms.post_transforms import SphinxPostTransform


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
        source[0] = json.dumps(notebook)


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
