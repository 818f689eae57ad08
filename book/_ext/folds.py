"""What is folded on a page, and the line that stands on the fold.

- a cell tagged ``setup`` is folded whole;
- ``hide-input`` folds a cell's code and shows what it printed or drew;
- with ``proof`` too, the page shows a line such as "✓ equal to 3e-7", and beside it
  what opens the code that found it.
"""

import json

PROOF = {"code_prompt_show": "how we checked", "code_prompt_hide": "hide the check"}
SETUP = {"code_prompt_show": "Set-up, the same in every chapter"}
SETUP["code_prompt_hide"] = "Hide the set-up"


def fold(cell: dict) -> None:
    """Fold a notebook's cell as its tags say."""
    tags = cell["metadata"].setdefault("tags", [])
    if "proof" in tags:
        cell["metadata"]["mystnb"] = PROOF
    if "setup" in tags:
        tags.append("hide-cell")
        cell["metadata"]["mystnb"] = SETUP


def fold_cells(app, docname: str, source: list[str]) -> None:
    if str(app.env.doc2path(docname)).endswith(".ipynb"):
        notebook = json.loads(source[0])
        for cell in notebook["cells"]:
            fold(cell)
        source[0] = json.dumps(notebook)


def setup(app) -> dict:
    app.connect("source-read", fold_cells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
