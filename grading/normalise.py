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
from types import SimpleNamespace
from typing import Any

import nbformat

from tools.exercises import Exercise, exercises, role, tag_of
from tools.source import is_setup

MOST_BYTES = 20 * 2**20
MOST_CELLS = 2000
OWN = "own"  # tag of a cell that the student added
SUSPECT = re.compile(
    r"(\b(?:os\._exit|os\.kill\w*|os\.system|os\.fork|sys\.exit|subprocess|socket|ctypes|"
    r"importlib|__import__|sys\.modules|inspect\.|gc\b|open\(|eval\(|exec\(|threading|"
    r"torch\.ops|torch\._C|resolve_name|runpy|pydoc|pickle)"
    r"|\.(?:expression|__code__|__globals__|f_back|f_locals)\b)"
)
MOST_LOOKED_AT = 200_000  # letters


class Unreadable(ValueError):
    """A file that is no notebook."""


def read_cells(data: bytes) -> list[dict]:
    """The cells of a notebook as plain dicts `cell_type, source, metadata, ran`.

    As lenient as can be: nothing is asked for but what answers need.
    """
    if len(data) > MOST_BYTES:
        raise Unreadable(f"larger than {MOST_BYTES // 2**20} MB")
    try:
        wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        text = data.decode("utf-16" if wide else "utf-8-sig", errors="replace")
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable("not a notebook (no JSON)") from error
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise Unreadable("not a notebook (no cells)")
    if len(cells) > MOST_CELLS:
        raise Unreadable(f"more than {MOST_CELLS} cells")
    return [_plain_cell(cell) for cell in cells if isinstance(cell, dict)]


def _plain_cell(cell: dict) -> dict:
    source, metadata = cell.get("source", ""), cell.get("metadata")
    if isinstance(source, list):
        source = "".join(str(line) for line in source)
    # half a character, which JSON can hold and no file can
    source = str(source).encode("utf-8", "replace").decode("utf-8")
    source = _with_pictures(source, cell.get("attachments"))
    count = cell.get("execution_count")
    return {
        "cell_type": str(cell.get("cell_type")),
        "source": source.replace("\r\n", "\n"),
        "metadata": metadata if isinstance(metadata, dict) else {},
        "ran": count if isinstance(count, int) else 0,  # as which, if it did
    }


def _with_pictures(source: str, attachments: Any) -> str:
    """The text, with the pictures in it that Jupyter keeps beside it; each one once."""
    kept = dict(attachments) if isinstance(attachments, dict) else {}

    def inside(found: re.Match) -> str:
        kinds = kept.pop(found[1], None)
        if not isinstance(kinds, dict) or not kinds:
            return found[0]
        kind, data = next(iter(kinds.items()))
        return f"](data:{kind};base64,{data})".replace("\n", "")

    return re.sub(r"\]\(attachment:([^)\n]{1,200})\)", inside, source)


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
        if exercise.in_words:
            body = inert(body)
        else:
            odd += [f"{exercise.id}: {note}" for note in suspicions(body)]
        tag = release.cells[exercise.answer].source.split("\n", 1)[0]
        made.cells[exercise.answer].source = f"{tag}\n{body}".rstrip("\n")
    odd += _general_oddities(release, found, cells)
    own = _own_cells(release, cells, list(chosen.values()))
    for source in own.values():
        odd += [f"own cell: {note}" for note in suspicions(source)]
    last = _put_in(made, found, chosen, cells, own)
    if own:
        odd.append(f"{len(own)} code cell(s) of the student's own")
    if last:
        odd.append(f"{last} of them behind the last test: not run")
    return made, list(dict.fromkeys(odd))


PICTURE = r"(!\[[^][<\\]{0,200}\]\(data:image/(?:png|jpeg|gif|webp);base64,[\w+/=]+\))"


def inert(words: str) -> str:
    """Words of which nothing runs, and no link leads on, where a person reads them;
    pictures that were pasted in stay."""
    parts = re.split(PICTURE, words)
    for number, part in enumerate(parts[::2]):
        part = re.sub(r"<(?=[a-zA-Z/!?])", "&lt;", part)
        part = re.sub(r"\](?=[(:])", "] ", part)
        parts[2 * number] = part.replace("\\href", "\\text")
    return "".join(parts)


def _own_cells(release: Any, cells: list[dict], answers: list[dict]) -> dict[int, str]:
    """The student's own code, first tries too: nothing of the release, no answer that
    counts, no test.

    Returns:
        For each cell's ``id()``, what of it is the student's: of setup and tests, which
        often get an import, the lines that were added.
    """
    known = {_squeezed(cell.source) for cell in release.cells} | {""}
    lines = {
        _squeezed(line)
        for cell in release.cells
        if is_setup(cell) or role(cell) == "test"
        for line in cell.source.split("\n")
    }
    taken, own = {id(cell) for cell in answers}, {}
    for cell in cells:
        source = cell["source"]
        if cell["cell_type"] != "code" or id(cell) in taken:
            continue
        if _squeezed(source) in known:
            continue
        if SETUP.search(source) or TEST.search(source):
            kept = [x for x in source.split("\n") if _squeezed(x) not in lines]
            source = "\n".join(x for x in kept if not TEST.match(x))
        if source.strip():
            own[id(cell)] = source
    return own


SETUP = re.compile(r"annotated(\.page)?\.notebook import setup")
TEST = re.compile(r"^[ \t]*check\(\s*[\"']([\w-]+)", re.M)


def _defines(source: str, name: str, constants: bool = True) -> bool:
    """Does a cell define a function; is ``name = None`` one, too?"""
    value = "" if constants else r"(?![ \t]*(?:None|True|False|[\d'\"]))"
    assigned = rf"^{name}[ \t]*(?::[^=\n]*)?=(?!=){value}"
    pattern = rf"^(?:(?:async )?def|class) {name}\b|{assigned}"
    return re.search(pattern, source, re.M) is not None


def _put_in(
    made: Any,
    found: list[Exercise],
    chosen: dict,
    cells: list[dict],
    own: dict[int, str],
) -> int:
    """Put the student's own cells before the tests; how many come after the last."""
    waiting: list = []
    before: dict[int, list] = {}  # position in the release -> own cells
    ends = {id(cell): name for name, cell in chosen.items()}
    by_name = {exercise.id: exercise for exercise in found if not exercise.in_words}
    for cell in cells:
        if id(cell) in own:
            own_cell = nbformat.v4.new_code_cell(own[id(cell)])
            own_cell.metadata["tags"] = [OWN]
            waiting.append(own_cell)
        test = TEST.search(cell["source"])
        name = test[1] if test else ends.get(id(cell))
        if name in by_name and waiting:
            place = by_name[name].test if test else by_name[name].answer
            before.setdefault(place, []).extend(waiting)
            waiting = []
    for place in sorted(before, reverse=True):
        made.cells[place:place] = before[place]
    return len(waiting)


def cells_for(notebook: Any, exercise: Exercise) -> list[str]:
    """What is run for an exercise: all code above its test, as in the notebook, and the
    answer once more.

    So helpers may stand in another answer, or between an answer and its test, and an
    experiment there does not replace the answer.
    """
    above = [
        cell.source
        for cell in notebook.cells[: exercise.test]
        if cell.cell_type == "code" and not is_setup(cell) and role(cell) != "test"
    ]
    return [*above, notebook.cells[exercise.answer].source]


def tag_of_text(source: str) -> str | None:
    return tag_of(SimpleNamespace(source=source))


def _choose(
    exercise: Exercise, stub: Any, cells: list[dict]
) -> tuple[dict | None, list[str]]:
    """The cell that answers an exercise; none where there is nothing but the stub.

    Where a function is asked for: the one that the student's check has called last, if
    the notebook says so, else the last one that is written.
    """
    stubs = {_squeezed(stub.source), _squeezed(stub.source.partition("\n")[2])}
    grade_id = stub.metadata["nbgrader"]["grade_id"]
    untagged = {n for n, c in enumerate(cells) if tag_of_text(c["source"]) is None}
    marked = {n for n in untagged if _grade_id(cells[n]) == grade_id}
    candidates = marked | {
        n for n, cell in enumerate(cells) if tag_of_text(cell["source"]) == exercise.id
    }
    notes, checked = [], 0
    if name := exercise.function:
        tests = [n for n, c in enumerate(cells) if _is_test(c, exercise)] or [
            len(cells)
        ]
        checked = cells[tests[-1]]["ran"] if tests[-1] < len(cells) else 0
        # the tag may be lost, with the metadata, or left in an empty answer
        others = {
            n
            for n in untagged - candidates
            if cells[n]["cell_type"] == "code"
            and _defines(cells[n]["source"], name, constants=False)
        }
        defining = {n for n in candidates if _defines(cells[n]["source"], name)}
        above = {n for n in others if n <= tests[-1]}
        candidates = defining | above or others or candidates
    if not candidates:
        return None, ["no answer cell found"]
    found = [cells[n] for n in sorted(candidates)]
    written = [cell for cell in found if _squeezed(cell["source"]) not in stubs]
    if len(found) > 1:
        notes.append(
            f"{len(found)} answer cells: the one checked last counts, or the lowest"
        )
    if not written:
        return None, notes
    ran = [cell for cell in written if 0 < cell["ran"] <= checked]
    chosen = max(ran, key=lambda cell: cell["ran"]) if ran else written[-1]
    known = tag_of_text(chosen["source"]) or _grade_id(chosen) == grade_id
    if exercise.function and not known:
        notes.append(f"found by its name {exercise.function}, without tag")
    if chosen["cell_type"] != stub.cell_type:
        notes.append(f"the answer is in a {chosen['cell_type']} cell")
    return chosen, notes


def _is_test(cell: dict, exercise: Exercise) -> bool:
    return any(name == exercise.id for name in TEST.findall(cell["source"]))


def _grade_id(cell: dict) -> Any:
    grader = cell["metadata"].get("nbgrader")
    return grader.get("grade_id") if isinstance(grader, dict) else None


def _squeezed(source: str) -> str:
    return "".join(source.split())


def _parsed(source: str) -> ast.Module:
    """The tree of a cell, without the lines that only IPython knows."""
    lines = source.split("\n")
    plain = ["" if IPYTHON.search(line) else line for line in lines]
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.parse("\n".join(plain))


# commands, %pwd and !ls, also behind `=`; help, sdpa?
IPYTHON = re.compile(r"^\s*[%!?]|=\s*[%!]\S|\?\s*$")


def suspicions(source: str) -> list[str]:
    """What in an answer a person should look at."""
    if len(source) > MOST_LOOKED_AT:
        return ["is too long to be looked at"]
    try:
        found = _seen_in(_parsed(source))
    except (SyntaxError, ValueError):
        found = ["is no Python that could be looked at"]
    except (RecursionError, MemoryError):
        found = ["is nested too deeply to be looked at"]
    found += [f"contains {hit.strip('(')}" for hit in SUSPECT.findall(source)]
    return list(dict.fromkeys(found))


def _seen_in(tree: ast.Module) -> list[str]:
    found, ours = [], {"annotated"}  # names that stand for the book's modules
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            books = [a for a in node.names if a.name.split(".")[0] == "annotated"]
            ours |= {alias.asname for alias in books if alias.asname}
    for node in ast.walk(tree):
        modules, attention = [], False
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
            attention = any(name.endswith(READY_MADE) for name in modules)
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute):
            modules = [ast.unparse(node)] if _root(node) == "annotated" else []
            attention = node.attr == READY_MADE and _root(node) not in ours
        books = [name for name in modules if name.split(".")[0] == "annotated"]
        found += [
            f"takes {name} from the book's module"
            for name in books
            if name not in CHECKING
        ]
        if attention and not books:
            found.append(f"calls PyTorch's own {READY_MADE}")
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and _root(target) in PATCHED:
                    found.append(f"assigns {ast.unparse(target)}")
        if isinstance(node, ast.FunctionDef) and node.name in ("check", "CheckFailed"):
            found.append(f"defines its own {node.name}")
    return found


READY_MADE = "scaled_dot_product_attention"
CHECKING = {"annotated", "annotated.checks.check"}
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
