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
from typing import Any

import nbformat

from annotated.checks import exercise_named
from grading.student import untimed
from tools.exercises import Exercise, exercises, role
from tools.source import is_setup

MOST_BYTES = 20 * 2**20
MOST_CELLS = 2000
MOST_CODE = 10**6  # letters of it in a notebook: what is dense takes seconds a megabyte
MOST_WORDS = 30_000  # letters of an answer in words, beside its pictures
MOST_NOTES = 40  # of one submission
MOST_NAME = 200  # letters of a name with dots
OWN = "own"  # tag of a cell that the student added
# What a notebook of exercises may import without a word: it looks into no process, runs
# no text and starts no thread.
PLAIN = {
    "__future__", "abc", "annotated", "bisect", "cmath", "collections", "contextlib",
    "copy", "csv", "dataclasses", "datetime", "decimal", "enum", "fractions",
    "functools", "heapq", "itertools", "json", "math", "matplotlib", "numbers", "numpy",
    "operator", "pprint", "random", "re", "statistics", "textwrap", "time", "torch",
    "typing", "warnings",
}  # fmt: skip
LOOKS = {
    "__builtins__", "__import__", "breakpoint", "compile", "delattr", "eval", "exec",
    "getattr", "globals", "locals", "open", "setattr", "vars",
}  # fmt: skip
# The same by names behind a dot: what begins with an underscore (but for the methods
# that everybody writes), and what leads to a module, to frames, to a question's text or
# to its operations by their names.
INSIDE = re.compile(
    r"_(?!_(?:call|class|doc|getitem|init|iter|len|name|version)__)\w+|expression|"
    r"f_(?:back|builtins|code|globals|locals)|(?:gi|tb)_\w+|cell_contents|grad_fn|"
    r"as(?:dict|tuple)|attrgetter|methodcaller|get_type_hints|initial_seed|"
    r"runstring|measure|load|ao|builtins|concurrent|ctypes|export|fx|gc|"
    r"importlib|inspect|io|jit|library|multiprocessing|ops|os|overrides|package|"
    r"pickle|profiler|signal|socket|subprocess|sys|threading|"
    r"bltns|register|Timer|savetxt|tofile|run_(?:cell|line)_magic"
)
# Rules that no result can show: they are watched as far as PyTorch is called.
COUNTED = {"autograd", "dense", "loops", "table", "twice"}
MOST_LOOKED_AT = 200_000  # letters


class Unreadable(ValueError):
    """A file that is no notebook."""


def read_cells(data: bytes) -> list[dict]:
    """The cells of a notebook as plain dicts `cell_type, source, grade_id, ran`.

    As lenient as can be: nothing is asked for, and nothing kept, but what answers need.
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
    plain = [_plain_cell(cell) for cell in cells if isinstance(cell, dict)]
    if sum(len(c["source"]) for c in plain if c["cell_type"] == "code") > MOST_CODE:
        raise Unreadable(f"more than {MOST_CODE // 10**6} MB of code")
    return plain


def _plain_cell(cell: dict) -> dict:
    source, kind = cell.get("source", ""), cell.get("cell_type")
    if isinstance(source, list):
        source = "".join(str(line) for line in source)
    # half a character, which JSON can hold and no file can
    source = str(source).encode("utf-8", "replace").decode("utf-8")
    source = _with_pictures(source, cell.get("attachments"))
    grader = cell.get("metadata")
    for key in ("nbgrader", "grade_id"):
        grader = grader.get(key) if isinstance(grader, dict) else None
    count = cell.get("execution_count")
    return {
        "cell_type": kind if kind in ("code", "markdown") else "raw",
        "source": source.replace("\r\n", "\n"),
        "grade_id": grader if isinstance(grader, str) else None,
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

    Code cells of the student's own stand before the answer (or the test) that they
    stood before. The metadata `place` says where a cell was handed in: they are run in
    that order.
    """
    made, odd = copy.deepcopy(release), []
    found = exercises(release)
    chosen: dict[str, int] = {}
    for exercise in found:
        answer = made.cells[exercise.answer]
        tag, _, stub = answer.source.partition("\n")
        name, given = _checked(exercise, cells)
        place, notes = _choose(exercise, release.cells[exercise.answer], cells, name)
        if exercise.in_words:
            body, more = _words(exercise, release, cells, place)
            notes = more or notes
        else:
            body = stub if place is None else _untagged(cells[place]["source"], 1)
            if given:
                notes.append(f"the check is given {given[:MOST_NAME]}")
                body += f"\n{exercise.function} = {given}"
            notes += suspicions(body) if place is not None else []
        odd += [f"{exercise.id}: {note}" for note in notes]
        if place is not None:
            chosen[exercise.id] = place
        answer.source = f"{tag}\n{body or stub}".rstrip("\n")
        if not exercise.in_words:
            _say_places(made, exercise, cells, place)
    odd += _general_oddities(release, found, cells)
    own = _own_cells(release, cells, set(chosen.values()))
    for place in own:
        odd += [f"own cell: {note}" for note in suspicions(cells[place]["source"])]
    helpers = [source for n in own if "def " in (source := cells[n]["source"])]
    for exercise in found:
        if exercise.id not in chosen or exercise.in_words:
            continue
        if COUNTED & exercise_named(exercise.id).broken.keys():
            sources = [cells[chosen[exercise.id]]["source"], *helpers]
            if used := ", ".join(unwatched("\n".join(sources))):
                odd.append(f"{exercise.id}: what it computed with: not judged ({used})")
    last = _put_in(made, found, chosen, cells, own)
    if own:
        odd.append(f"{len(own)} code cell(s) of the student's own")
    if last:
        odd.append(f"{last} of them behind the last test: not run")
    odd = list(dict.fromkeys(odd))
    if len(odd) > MOST_NOTES:
        odd[MOST_NOTES:] = [f"and {len(odd) - MOST_NOTES} more of this kind"]
    return made, odd


def _say_places(made: Any, exercise: Exercise, cells: list[dict], place: Any) -> None:
    """Note where an answer and its test stood; an answer that is none comes first."""
    tests = [n for n, cell in enumerate(cells) if _is_test(cell, exercise)]
    place = -1 if place is None else place
    made.cells[exercise.answer].metadata["place"] = place
    made.cells[exercise.test].metadata["place"] = max([place, *tests])


def _words(
    exercise: Exercise, release: Any, cells: list[dict], place: int | None
) -> tuple[str, list[str]]:
    """An answer in words, and what is odd about it: what the cell for it says, and
    cells of the student's own below the question, which some write into."""
    known = {_squeezed(cell.source) for cell in release.cells}
    question = _squeezed(release.cells[exercise.answer - 1].source)
    squeezed = [_squeezed(cell["source"]) for cell in cells]
    tags = [tag_of_text(cell["source"]) for cell in cells]
    its = [n == place or tags[n] == exercise.id for n in range(len(cells))]
    starts = [n for n in range(len(cells)) if its[n] or squeezed[n] == question]
    found, own = [], 0
    for n in range(starts[0], len(cells)) if starts else ():
        of_release = tags[n] or squeezed[n] in known - {""}
        if n > starts[-1] and of_release:
            break
        words = cells[n]["cell_type"] != "code" or place is None
        if n == place or (words and not of_release):
            found.append(cells[n]["source"])
            own += n != place and bool(squeezed[n])
    words = "\n\n".join(_untagged(source) for source in found)
    notes = [f"{own} cell(s) of the student's own are part of it"] if own else []
    if (short := _shortened(words)) != words:
        notes.append(f"is cut after {MOST_WORDS} letters")
    return inert(short), notes


def _shortened(words: str) -> str:
    """Words that a page can be made of in seconds; pictures don't count."""
    parts, left = re.split(PICTURE, words)[:201], MOST_WORDS
    for number in range(0, len(parts), 2):
        parts[number] = parts[number][: max(left, 0)]
        left -= len(parts[number])
    return "".join(parts)


PICTURE = r"(!\[[^][<\\]{0,200}\]\(data:image/(?:png|jpeg|gif|webp);base64,[\w+/=]+\))"


def inert(words: str) -> str:
    """Words of which nothing runs, and no link leads on, where a person reads them;
    pictures that were pasted in stay."""
    parts = re.split(PICTURE, words)
    for number, part in enumerate(parts[::2]):
        part = re.sub(r"<(?=[a-zA-Z/!?])", "&lt;", part)
        part = re.sub(r"\](?=[(:])", "] ", part)
        leads = r"\\(href|mmlToken|style|class|cssId)\b"
        parts[2 * number] = re.sub(leads, r"\\text", part)
    return "".join(parts)


def _own_cells(release: Any, cells: list[dict], answers: set[int]) -> list[int]:
    """Where the student's own code stands, first tries too: cells that are none of the
    release, and no answer that counts. (A `check` in them does nothing.)"""
    known = {_squeezed(cell.source) for cell in release.cells} | {""}
    return [
        n
        for n, cell in enumerate(cells)
        if cell["cell_type"] == "code"
        and n not in answers
        and _squeezed(cell["source"]) not in known
    ]


TEST = re.compile(r"[\"'](ch\d\d(?:-[a-z0-9]+)+)[\"']")


def _defines(source: str, name: str, constants: bool = True) -> bool:
    """Does a cell define a function; is ``name = None`` one, too?"""
    value = "" if constants else r"(?![ \t]*(?:None|True|False|[\d'\"]))"
    assigned = rf"^{name}[ \t]*(?::[^=\n]*)?=(?!=){value}"
    pattern = rf"^(?:(?:async )?def|class) {name}\b|{assigned}"
    return re.search(pattern, source, re.M) is not None


def _put_in(
    made: Any,
    found: list[Exercise],
    chosen: dict[str, int],
    cells: list[dict],
    own: list[int],
) -> int:
    """Put the student's own cells before the tests; how many come after the last."""
    waiting: list = []
    before: dict[int, list] = {}  # position in the release -> own cells
    ends = {place: name for name, place in chosen.items()}
    by_name = {exercise.id: exercise for exercise in found if not exercise.in_words}
    for n, cell in enumerate(cells):
        if n in own:
            own_cell = nbformat.v4.new_code_cell(cell["source"])
            own_cell.metadata |= {"tags": [OWN], "place": n}
            waiting.append(own_cell)
        test = TEST.search(cell["source"])
        name = test[1] if test else ends.get(n)
        if name in by_name and waiting:
            place = by_name[name].test if test else by_name[name].answer
            before.setdefault(place, []).extend(waiting)
            waiting = []
    for place in sorted(before, reverse=True):
        made.cells[place:place] = before[place]
    return len(waiting)


def cells_for(notebook: Any, exercise: Exercise) -> tuple[list[str], str, list[str]]:
    """What is run for an exercise: the code above its answer, the answer, and the code
    between the answer and its test, in the order of what was handed in.

    So helpers may stand in another answer, or between an answer and its test, and an
    experiment there does not replace the answer.
    """

    def place(n: int) -> int:
        return notebook.cells[n].metadata.get("place", n)

    answer = exercise.answer
    code = [
        n
        for n, cell in enumerate(notebook.cells)
        if cell.cell_type == "code" and not is_setup(cell) and role(cell) != "test"
    ]
    code = sorted((n for n in code if n != answer), key=place)
    above = [n for n in code if place(n) < place(answer)]
    below = [n for n in code if place(answer) < place(n) < place(exercise.test)]
    sources = [[notebook.cells[n].source for n in some] for some in (above, below)]
    return sources[0], notebook.cells[answer].source, sources[1]


MARK = re.compile(r"\s*(?:#|<!--)\s*exercise:\s*(ch\d\d(?:-[a-z0-9]+)+)[ \t]*(?:-->)?")


def tag_of_text(source: str) -> str | None:
    """The exercise that a student's cell answers, by its first line."""
    found = MARK.match(source)
    return found and found[1]


def _untagged(source: str, lines: int = 0) -> str:
    """A cell without its tag, or without the whole line of it."""
    if found := MARK.match(source):
        source = source[found.end() :]
        source = source.partition("\n")[2] if lines else source
    return source.strip(" \n") if not lines else source.strip("\n")


def _checked(exercise: Exercise, cells: list[dict]) -> tuple[str | None, str | None]:
    """What the function is called that the student's last check tries, and what the
    check is given if that isn't the function's own name: a second version, say."""
    name, given = exercise.function, None
    for cell in cells if name else ():
        if not _is_test(cell, exercise) or len(cell["source"]) > MOST_LOOKED_AT:
            continue
        try:
            tree = parsed(cell["source"])
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            pair = getattr(node, "args" if isinstance(node, ast.Call) else "elts", ())
            match pair:
                case [ast.Constant(exercise.id), ast.Name(other)]:
                    name, given = other, other
                case [ast.Constant(exercise.id), ast.Lambda() | ast.Call() as made]:
                    name, given = exercise.function, ast.unparse(made)
    return name, None if given == exercise.function else given


def _choose(
    exercise: Exercise, stub: Any, cells: list[dict], name: str | None
) -> tuple[int | None, list[str]]:
    """Where an exercise is answered; None where there is nothing but the stub.

    Where a function is asked for, by its name: the one that the student's check has
    called last, if the notebook says so, else the last one that is written.
    """
    stubs = {_squeezed(stub.source), _squeezed(stub.source.partition("\n")[2])}
    grade_id = stub.metadata["nbgrader"]["grade_id"]
    tags = [tag_of_text(cell["source"]) for cell in cells]
    candidates = {
        n
        for n, cell in enumerate(cells)
        if tags[n] == exercise.id or (tags[n] is None and cell["grade_id"] == grade_id)
    }
    notes, checked = [], 0
    if name:
        tests = [n for n, c in enumerate(cells) if _is_test(c, exercise)] or [
            len(cells)
        ]
        checked = cells[tests[-1]]["ran"] if tests[-1] < len(cells) else 0
        # the tag may be lost, with the metadata, or left in an empty answer; or the
        # answer stands in another one's cell
        others = {
            n
            for n, cell in enumerate(cells)
            if n not in candidates
            and cell["cell_type"] == "code"
            and _defines(cell["source"], name, constants=False)
        }
        defining = {n for n in candidates if _defines(cells[n]["source"], name)}
        untagged = {n for n in others if tags[n] is None}
        above = {n for n in untagged if n <= tests[-1]}
        candidates = defining | above or untagged or others or candidates
    if not candidates:
        return None, ["no answer cell found"]
    found = sorted(candidates)
    written = [n for n in found if _squeezed(cells[n]["source"]) not in stubs]
    if len(found) > 1:
        notes.append(
            f"{len(found)} answer cells: the one checked last counts, or the lowest"
        )
    if not written:
        return None, notes
    ran = [n for n in written if 0 < cells[n]["ran"] <= checked]
    chosen = max(ran, key=lambda n: cells[n]["ran"]) if ran else written[-1]
    known = tags[chosen] == exercise.id or cells[chosen]["grade_id"] == grade_id
    if exercise.function and not known:
        notes.append(f"found by its name {name}, without tag")
    if cells[chosen]["cell_type"] != stub.cell_type:
        notes.append(f"the answer is in a {cells[chosen]['cell_type']} cell")
    return chosen, notes


def _is_test(cell: dict, exercise: Exercise) -> bool:
    """Does it name the exercise, to a `check` under whatever name, or for a loop?"""
    return exercise.id in TEST.findall(cell["source"])


def _squeezed(source: str) -> str:
    return "".join(source.split())


def parsed(source: str) -> ast.Module:
    """The tree of a cell, without what only IPython knows."""
    try:
        return ast.parse(source)
    except SyntaxError:
        lines = untimed(source).split("\n")
        plain = ["" if IPYTHON.match(line) else line for line in lines]
        return ast.parse("\n".join(ASSIGNED.sub("= 0", line) for line in plain))


# Lines of commands, %pwd and !ls, and of help, sdpa?; what an assignment gets from one.
IPYTHON = re.compile(r"\s*(?:[%!?]|[%\w.*]+\?{1,2}\s*$)")
ASSIGNED = re.compile(r"=\s*[%!]\S.*")


def suspicions(source: str) -> list[str]:
    """What in an answer a person should look at."""
    if len(source) > MOST_LOOKED_AT:
        return ["is too long to be looked at"]
    try:
        found = _seen_in(parsed(source))
    except (SyntaxError, ValueError):
        found = ["is no Python that could be looked at"]
    except (RecursionError, MemoryError):
        found = ["is nested too deeply to be looked at"]
    if re.search(r"^\s*%run\b", source, re.M):
        found.append("contains %run")
    return list(dict.fromkeys(found))


def unwatched(source: str) -> list[str]:
    """Why it may be that not all was seen that an answer computed."""
    lists = re.search(r"\b(?:np|numpy|tolist)\b", source)
    return [*(["uses NumPy or lists"] if lists else []), *suspicions(source)]


def _seen_in(tree: ast.Module) -> list[str]:
    found: list[str] = []
    known = {"nn": "torch.nn", "F": "torch.nn.functional"}  # what names stand for
    inner: set[int] = set()  # parts of a dotted name that is looked at as a whole
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            known |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Attribute):
            inner.add(id(node.value))
        elif isinstance(node, ast.Assign) and (name := _dotted(node.value)):
            known |= {t.id: name for t in node.targets if isinstance(t, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                found += _seen_in_import(f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found += _seen_in_import(alias.name)
        elif isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner:
            found += _seen_in_name(node, known)
        elif isinstance(node, ast.MatchClass):
            found += [f"contains {a}" for a in node.kwd_attrs if INSIDE.fullmatch(a)]
        elif isinstance(node, ast.FunctionDef) and node.name in OWN_CHECKS:
            found.append(f"defines its own {node.name}")
    return found


def _seen_in_import(name: str) -> list[str]:
    top, *parts = name.split(".")
    if top == "annotated":
        of_book = name not in CHECKING
        return [f"takes {name} from the book's module"] if of_book else []
    if top not in PLAIN:
        return [f"imports {top}"]
    if any(map(INSIDE.fullmatch, parts)):
        return [f"imports {name}"]
    if top == "torch" and ATTENDS.search(name):
        return [f"calls PyTorch's own {parts[-1]}"]
    return []


def _seen_in_name(node: ast.Attribute | ast.Name, known: dict[str, str]) -> list[str]:
    """What a name, and all behind its dots, may be used for."""
    root, *parts = _dotted(node).split(".")
    full = known.get(root, root)
    if full == "annotated" and parts:
        return _seen_in_import(".".join(["annotated", *parts]))
    found = [f"contains {full}"] if full in LOOKS else []
    inside = parts[1:] if root in ("self", "cls") else parts
    found += [f"contains .{part}" for part in inside if INSIDE.fullmatch(part)]
    top = full.split(".")[0]
    if top == "torch":
        own = filter(ATTENDS.search, parts)
        found += [f"calls PyTorch's own {part}" for part in own]
    if parts and isinstance(node.ctx, ast.Store) and top in PATCHED:
        found.append(f"assigns {root}.{'.'.join(parts)}")
    if parts and parts[-1] in ("format", "format_map"):  # "{0.expression}".format(f)
        text = node.value.value if isinstance(node.value, ast.Constant) else "{.}"
        if re.search(r"{[^}:]*[.[]", str(text)):
            found.append(f"contains .{parts[-1]}")
    return found


def _dotted(node: ast.AST) -> str:
    """`torch.nn.functional`, or `.T` of what has no name; nothing for anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    root = [node.id] if isinstance(node, ast.Name) else [""] if parts else []
    return ".".join(root + parts[::-1])[:MOST_NAME]


ATTENDS = re.compile("attention|transformer", re.I)
CHECKING = {
    "annotated",
    "annotated.chapters.ch20.patients.patient",
    "annotated.checks.check",
    "annotated.checks.material.in_a_ring",
    "annotated.notebook.setup",
    "annotated.page.notebook.setup",
}
PATCHED = {"torch", "annotated", "math", "builtins", "checks", "inspect"}
OWN_CHECKS = ("check", "CheckFailed", "__torch_function__", "__torch_dispatch__")


def _general_oddities(
    release: nbformat.NotebookNode, found: list[Exercise], cells: list[dict]
) -> list[str]:
    odd = []
    if not any(cell["grade_id"] for cell in cells):
        odd.append("nbgrader's metadata is lost")
    for exercise in found:
        if exercise.in_words:
            continue
        expected = _squeezed(release.cells[exercise.test].source)
        tests = [c for c in cells if _is_test(c, exercise)]
        if not tests:
            odd.append(f"{exercise.id}: its test cell is gone")
        elif all(_squeezed(cell["source"]) != expected for cell in tests):
            odd.append(f"{exercise.id}: its test cell was changed (never used)")
    return odd
