"""Any notebook that a student handed in -> a clean release with the answers put in.

nbgrader reads cells by metadata. What comes back from Colab and from learning platforms
has lost it, has cells deleted, copied or moved. Only the answers are taken; everything
else, the tests above all, comes from the release.
"""

import ast
import builtins
import copy
import json
import re
from pathlib import Path
from typing import Any

import nbformat

from tools.exercises import Exercise, exercises, role, tag_of
from tools.source import is_setup

MOST_BYTES = 20 * 2**20
BORROWED = "# from other cells of this notebook:"
SUSPECT = re.compile(
    r"\b(os\._exit|os\.kill\w*|os\.system|os\.fork|sys\.exit|subprocess|socket|ctypes|"
    r"importlib|__import__|sys\.modules|inspect\.|gc\.|open\(|eval\(|exec\()"
)


class Unreadable(ValueError):
    """A file that is no notebook."""


def read_cells(path: Path) -> list[dict]:
    """The cells of a notebook as plain dicts `cell_type, source, metadata`.

    As lenient as can be: nothing is asked for but what answers need.
    """
    if path.stat().st_size > MOST_BYTES:
        raise Unreadable(f"larger than {MOST_BYTES // 2**20} MB")
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig", errors="replace"))
    except (ValueError, RecursionError) as error:
        raise Unreadable("not a notebook (no JSON)") from error
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise Unreadable("not a notebook (no cells)")
    return [_plain_cell(cell) for cell in cells if isinstance(cell, dict)]


def _plain_cell(cell: dict) -> dict:
    source, metadata = cell.get("source", ""), cell.get("metadata")
    if isinstance(source, list):
        source = "".join(str(line) for line in source)
    # half a character, which JSON can hold and no file can
    source = str(source).encode("utf-8", "replace").decode("utf-8")
    return {
        "cell_type": str(cell.get("cell_type")),
        "source": source.replace("\r\n", "\n"),
        "metadata": metadata if isinstance(metadata, dict) else {},
    }


def exercise_ids(cells: list[dict]) -> set[str]:
    """Every exercise that a cell says it answers or checks."""
    text = "\n".join(cell["source"] for cell in cells)
    return set(re.findall(r"\bch\d\d(?:-[a-z0-9]+)+", text))


def normalise(
    release: nbformat.NotebookNode, cells: list[dict]
) -> tuple[nbformat.NotebookNode, list[str]]:
    """The release with the answers that `cells` hold, and what was odd about them."""
    made, odd = copy.deepcopy(release), []
    found = exercises(release)
    chosen: dict[str, dict] = {}
    for exercise in found:
        cell, notes = _choose(exercise, release.cells[exercise.answer], cells)
        odd += [f"{exercise.id}: {note}" for note in notes]
        if cell is not None:
            chosen[exercise.id] = cell
    answers = {id(cell) for cell in chosen.values()}
    others = [
        cell
        for cell in cells
        if cell["cell_type"] == "code"
        and id(cell) not in answers
        and not cell["source"].lstrip().startswith("check(")
    ]
    pool = _definitions([*others, *chosen.values()])
    own = _definitions(
        [c for c in release.cells if c.cell_type == "code" and role(c) is None]
    )
    for exercise in found:
        if exercise.id not in chosen:
            continue
        source = chosen[exercise.id]["source"].strip("\n")
        tag = release.cells[exercise.answer].source.split("\n", 1)[0]
        body = source.split("\n", 1)[-1] if tag_of_text(source) else source
        if tag_of_text(source) and "\n" not in source:
            body = ""
        if not exercise.in_words:
            borrowed, strange = _borrowed(body, pool, own, _defined_in(others))
            if borrowed:
                body = "\n".join([BORROWED, *borrowed, "", body])
            if strange:
                odd.append(f"{exercise.id}: uses {', '.join(strange)} of other cells")
            odd += [f"{exercise.id}: {note}" for note in suspicions(body)]
        made.cells[exercise.answer].source = f"{tag}\n{body}".rstrip("\n")
    return made, odd + _general_oddities(release, found, cells)


def tag_of_text(source: str) -> str | None:
    return tag_of(nbformat.v4.new_raw_cell(source))


def _choose(
    exercise: Exercise, stub: Any, cells: list[dict]
) -> tuple[dict | None, list[str]]:
    """The cell that answers an exercise; none where there is nothing but the stub."""
    grade_id = stub.metadata["nbgrader"]["grade_id"]
    tagged = [cell for cell in cells if tag_of_text(cell["source"]) == exercise.id]
    marked = [
        cell
        for cell in cells
        if _grade_id(cell) == grade_id and tag_of_text(cell["source"]) is None
    ]
    candidates, notes = tagged + marked, []
    if exercise.function:
        writes = re.compile(rf"^(?:async )?def {exercise.function}\b", re.M)
        defining = [
            cell
            for cell in cells
            if (cell["cell_type"] == "code" or cell in candidates)
            and writes.search(cell["source"])
            and tag_of_text(cell["source"]) in (None, exercise.id)
        ]
        if defining:
            if any(cell not in candidates for cell in defining):
                notes.append(f"found by its function {exercise.function}, without tag")
            candidates = defining
    if not candidates:
        return None, ["no answer cell found"]
    changed = [
        c for c in candidates if _squeezed(c["source"]) != _squeezed(stub.source)
    ]
    if len(candidates) > 1:
        notes.append(
            f"{len(candidates)} answer cells, took the last one that is written"
        )
    if not changed:
        return None, notes
    if changed[-1]["cell_type"] != stub.cell_type:
        notes.append(f"the answer is in a {changed[-1]['cell_type']} cell")
    return changed[-1], notes


def _grade_id(cell: dict) -> Any:
    grader = cell["metadata"].get("nbgrader")
    return grader.get("grade_id") if isinstance(grader, dict) else None


def _squeezed(source: str) -> str:
    return "".join(source.split())


def _parsed(source: str) -> ast.Module:
    """The tree of a cell; an empty one where it is not plain Python."""
    lines = source.split("\n")
    plain = ["" if line.lstrip().startswith(("%", "!")) else line for line in lines]
    try:
        return ast.parse("\n".join(plain))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def _names(statement: ast.stmt) -> list[str]:
    """What a top-level statement defines, where running it elsewhere is harmless."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name.split(".")[0] for alias in names]
        case ast.Assign(targets=[ast.Name(id=name)]):
            return [name]
    return []


def _definitions(cells: list[Any]) -> dict[str, tuple[str, ast.stmt]]:
    """Name -> its last definition in the cells, as text and tree."""
    found = {}
    for cell in cells:
        tree = _parsed(cell["source"])
        for statement in tree.body:
            for name in _names(statement):
                found[name] = ast.unparse(statement), statement
    return found


def _defined_in(cells: list[dict]) -> set[str]:
    return set(_definitions(cells))


def _used(tree: ast.AST) -> list[str]:
    return [
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    ]


def _borrowed(
    answer: str, pool: dict, own: dict, extra: set[str]
) -> tuple[list[str], list[str]]:
    """Definitions that an answer needs from other cells, and those of cells of its own.

    Only definitions are taken: a loop in a student's own cell stays where it is.
    """
    tree = _parsed(answer)
    known = {name for statement in tree.body for name in _names(statement)}
    known |= own.keys() | vars(builtins).keys() | {"device"}
    todo, texts, strange = _used(tree), [], []
    while todo:
        name = todo.pop(0)
        if name in known or name not in pool:
            continue
        known.add(name)
        text, statement = pool[name]
        if text not in texts:
            texts.insert(0, text)  # before what uses it
        if name in extra and not isinstance(statement, ast.Import):
            strange.append(name)
        todo += _used(statement)
    return texts, strange


def suspicions(source: str) -> list[str]:
    """What in an answer a person should look at."""
    tree, found = _parsed(source), []
    for node in ast.walk(tree):
        modules = []
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute):
            modules = [ast.unparse(node)] if _root(node) == "annotated" else []
            if node.attr == "scaled_dot_product_attention":
                found.append("calls PyTorch's own scaled_dot_product_attention")
        found += [
            f"takes {name} from the book's module"
            for name in modules
            if name.split(".")[0] == "annotated" and name not in CHECKING
        ]
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and _root(target) in PATCHED:
                    found.append(f"assigns {ast.unparse(target)}")
        if isinstance(node, ast.FunctionDef) and node.name in ("check", "CheckFailed"):
            found.append(f"defines its own {node.name}")
    found += [f"contains {hit.strip('(')}" for hit in SUSPECT.findall(source)]
    return list(dict.fromkeys(found))


CHECKING = {"annotated", "annotated.checks", "annotated.checks.check"}
PATCHED = {"torch", "annotated", "math", "builtins", "checks", "inspect"}


def _root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _general_oddities(
    release: nbformat.NotebookNode, found: list[Exercise], cells: list[dict]
) -> list[str]:
    odd = []
    if not any(_grade_id(cell) for cell in cells):
        odd.append("nbgrader's metadata is lost")
    for exercise in found:
        if exercise.in_words:
            continue
        expected = _squeezed(release.cells[exercise.test].source)
        tests = [c for c in cells if f'check("{exercise.id}"' in c["source"]]
        if not tests:
            odd.append(f"{exercise.id}: its test cell is gone")
        elif all(_squeezed(cell["source"]) != expected for cell in tests):
            odd.append(f"{exercise.id}: its test cell was changed (never used)")
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    known = {_squeezed(cell.source) for cell in release.cells}
    extra = [
        cell
        for cell in code
        if _squeezed(cell["source"]) not in known | {""}
        and tag_of_text(cell["source"]) is None
        and not cell["source"].lstrip().startswith("check(")
        and _grade_id(cell) is None
        and "annotated.notebook import setup" not in cell["source"]
    ]
    if extra:
        odd.append(f"{len(extra)} code cell(s) of the student's own")
        for cell in extra:
            odd += [f"own cell: {note}" for note in suspicions(cell["source"])]
    return list(dict.fromkeys(odd))


def context_cells(notebook: nbformat.NotebookNode) -> list[str]:
    """Code that comes before the answers: imports and helpers of the release itself."""
    return [
        cell.source
        for cell in notebook.cells
        if cell.cell_type == "code" and role(cell) is None and not is_setup(cell)
    ]
