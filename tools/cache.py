"""Where the outputs of executed notebooks are kept, and for how long they hold.

`_build/executed` mirrors the folders of the notebooks: of each it keeps the last run in
which every cell passed. The name of the file ends in a key: a hash of the notebook's
code and of all that this code depends on. An edit of anything else executes nothing.
"""

import ast
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools import ROOT

FOLDER = "_build/executed"
DATA = (
    "annotated/page/static/**/*.*",
    "annotated/chapters/*/*.js*",
    "book/results/*.json",
    "book/results/gpu/*.json",
    "book/results/official/*.json",
)


def dependencies(code: str, root: Path = ROOT) -> set[Path]:
    """The files of the repository that a notebook's code reaches.

    They are the modules of `annotated` that it imports, in whatever branch, and those
    that they import; the checks of a chapter `chNN` that it names; and every file of
    DATA whose name stands in quotes (the ending may be missing) in any of these.
    """
    checks = (
        f"import annotated.chapters.{c}.checks"
        for c in re.findall(r"\b(ch\d\d)-", code)
    )
    waiting, found = {*imported("\n".join([code, *checks]))}, set()
    while waiting:
        path = root / waiting.pop().replace(".", "/")
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.is_file() and file not in found:
                found.add(file)
                waiting |= imported(file.read_text("utf-8"))
    data = {file for pattern in DATA for file in root.glob(pattern)}
    texts = [code, *(file.read_text("utf-8") for file in found)]
    while texts:
        names = quoted(texts.pop())
        named = {f for f in data - found if f.name in names or f.stem in names}
        found |= named
        texts += [file.read_text("utf-8") for file in named]
    return found


@cache  # most notebooks reach the same modules
def imported(text: str) -> set[str]:
    """The names of all that a text imports, of the packages around it, too."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    parts = [name.split(".") for name in names]
    return {".".join(part[:n]) for part in parts for n in range(1, len(part) + 1)}


@cache
def quoted(text: str) -> set[str]:
    """The names in a text that end at a quotation mark, and begin at one or a slash."""
    return set(re.findall(r"""["'/]([^"'/\s]+)(?=["'])""", text))


def code_cells(notebook: dict) -> list[dict]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def code_of(notebook: dict) -> str:
    """The code as Python reads it: in place of every magic stands `pass`."""
    code = "\n".join("".join(cell["source"]) for cell in code_cells(notebook))
    return re.sub(r"(?m)^( *)(%%?|!)[a-zA-Z].*", r"\1pass", code)


def described(notebook: dict, root: Path) -> Iterator[bytes]:
    """All that the outputs depend on."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    yield f"Python {version} {os.environ.get('ANNOTATED_DEVICE', '')}".encode()
    for cell in code_cells(notebook):
        may_fail = "raises-exception" in cell["metadata"].get("tags", [])
        yield f"{may_fail} {''.join(cell['source'])}".encode()
    files = dependencies(code_of(notebook), root)
    for file in [root / "requirements.txt", *sorted(files)]:
        yield file.relative_to(root).as_posix().encode()
        yield file.read_bytes()


def read(path: Path) -> dict:
    return json.loads(path.read_text("utf-8"))


def place(path: Path, notebook: dict, root: Path = ROOT) -> Path:
    """The file that holds the outputs of a notebook, if it ran as everything is now."""
    digest = hashlib.sha256()
    for part in described(notebook, root):
        digest.update(hashlib.sha256(part).digest())
    name = f"{path.stem}.{digest.hexdigest()[:16]}.ipynb"
    return root / FOLDER / path.relative_to(root).parent / name


def keep(executed: dict, file: Path) -> None:
    """Keep an executed notebook, in place of those of its earlier runs."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".partial")
    beside.write_text(json.dumps(executed), encoding="utf-8")
    for earlier in file.parent.glob(f"{file.name.split('.')[0]}.*.ipynb"):
        earlier.unlink()
    beside.replace(file)


def take_outputs(notebook: dict, executed: dict) -> None:
    """Give a notebook the outputs of its run."""
    for cell, done in zip(code_cells(notebook), code_cells(executed), strict=True):
        cell["outputs"] = done["outputs"]
