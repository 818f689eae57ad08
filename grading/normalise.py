"""Any notebook that a student handed in -> a clean release with the answers put in.

nbgrader reads cells by metadata. What comes back from Colab and from learning platforms
has lost it, has cells deleted, copied or moved. Only the answers are taken; everything
else, the tests above all, comes from the release.
"""

import ast
import codecs
import copy
import json
import re
from pathlib import Path
from typing import Any

import nbformat

from tools.exercises import Exercise, exercises, role, tag_of
from tools.source import is_setup

MOST_BYTES = 20 * 2**20
OWN = "own"  # tag of a cell that the student added
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
        data = path.read_bytes()
        wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        text = data.decode("utf-16" if wide else "utf-8-sig", errors="replace")
        content = json.loads(text)
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
    """The release with the answers that `cells` hold, and what was odd about them.

    Code cells of the student's own keep their order: each stands before the answer (or
    the test) that it stood before, so that an answer finds what it rests on.
    """
    made, odd = copy.deepcopy(release), []
    found = exercises(release)
    chosen: dict[str, dict] = {}
    for exercise in found:
        cell, notes = _choose(exercise, release.cells[exercise.answer], cells)
        odd += [f"{exercise.id}: {note}" for note in notes]
        if cell is None:
            continue
        chosen[exercise.id] = cell
        body = cell["source"].strip("\n")
        if tag_of_text(body):
            body = body.partition("\n")[2]
        if exercise.in_words:  # no script of theirs runs where it is read
            body = re.sub(r"<(?=[a-zA-Z/!?])", "&lt;", body)
        else:
            odd += [f"{exercise.id}: {note}" for note in suspicions(body)]
        tag = release.cells[exercise.answer].source.split("\n", 1)[0]
        made.cells[exercise.answer].source = f"{tag}\n{body}".rstrip("\n")
    odd += _general_oddities(release, found, cells)
    own = _own_cells(release, cells, list(chosen.values()))
    for cell in own:
        odd += [f"own cell: {note}" for note in suspicions(cell["source"])]
    last = _put_in(made, found, chosen, cells, own)
    if own:
        odd.append(f"{len(own)} code cell(s) of the student's own")
    if last:
        odd.append(f"{last} of them behind the last test: not run")
    return made, list(dict.fromkeys(odd))


def _own_cells(release: Any, cells: list[dict], answers: list[dict]) -> list[dict]:
    """The student's own code: nothing of the release, no answer, no test."""
    known = {_squeezed(cell.source) for cell in release.cells} | {""}
    taken = {id(cell) for cell in answers}
    return [
        cell
        for cell in cells
        if cell["cell_type"] == "code"
        and id(cell) not in taken
        and _squeezed(cell["source"]) not in known
        and tag_of_text(cell["source"]) is None
        and not _is_test(cell)
        and _grade_id(cell) is None
        and "annotated.notebook import setup" not in cell["source"]
    ]


def _is_test(cell: dict) -> bool:
    return cell["source"].lstrip().startswith("check(")


def _put_in(
    made: Any, found: list[Exercise], chosen: dict, cells: list[dict], own: list[dict]
) -> int:
    """Put the student's own cells before the tests; how many come after the last."""
    mine, waiting = {id(cell) for cell in own}, []
    before: dict[int, list] = {}  # position in the release -> own cells
    ends = {id(cell): name for name, cell in chosen.items()}
    by_name = {exercise.id: exercise for exercise in found if not exercise.in_words}
    for cell in cells:
        if id(cell) in mine:
            own_cell = nbformat.v4.new_code_cell(cell["source"])
            own_cell.metadata["tags"] = [OWN]
            waiting.append(own_cell)
            continue
        test = re.match(r"\s*check\(\s*[\"']([\w-]+)", cell["source"])
        name = test[1] if test else ends.get(id(cell))
        if name in by_name and waiting:
            place = by_name[name].test if test else by_name[name].answer
            before.setdefault(place, []).extend(waiting)
            waiting = []
    for place in sorted(before, reverse=True):
        made.cells[place:place] = before[place]
    return len(waiting)


def cells_for(notebook: Any, exercise: Exercise) -> list[str]:
    """What is run for an exercise: the release's code and the student's own before the
    test, other answers that are used by name, and the answer last.

    So helpers may stand between an answer and its test, an experiment there does not
    replace the answer, and what one answer does to `torch` is not another one's loss.
    """
    own = [c for c in notebook.cells if OWN in c.metadata.get("tags", [])]
    text = "\n".join(c.source for c in (*own, notebook.cells[exercise.answer]))
    used = {
        other.answer
        for other in exercises(notebook)
        if other.function and re.search(rf"\b{other.function}\b", text)
    }
    before = [
        cell.source
        for position, cell in enumerate(notebook.cells[: exercise.test])
        if cell.cell_type == "code"
        and not is_setup(cell)
        and (role(cell) is None or position in used - {exercise.answer})
    ]
    return [*before, notebook.cells[exercise.answer].source]


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
    if name := exercise.function:
        writes = re.compile(rf"^(?:(?:async )?def|class) {name}\b|^{name}\s*=", re.M)
        defining = [cell for cell in candidates if writes.search(cell["source"])]
        if not defining:  # the tag may be lost, with the metadata
            defining = [
                cell
                for cell in cells
                if cell["cell_type"] == "code"
                and writes.search(cell["source"])
                and tag_of_text(cell["source"]) is None
            ]
            if defining:
                notes.append(f"found by its name {name}, without tag")
        candidates = defining or candidates
    if not candidates:
        return None, ["no answer cell found"]
    stubs = {_squeezed(stub.source), _squeezed(stub.source.partition("\n")[2])}
    written = [c for c in candidates if _squeezed(c["source"]) not in stubs]
    if len(candidates) > 1:
        notes.append(
            f"{len(candidates)} answer cells, took the last one that is written"
        )
    if not written:
        return None, notes
    if written[-1]["cell_type"] != stub.cell_type:
        notes.append(f"the answer is in a {written[-1]['cell_type']} cell")
    return written[-1], notes


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
    return odd
