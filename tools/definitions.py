"""What a piece of code depends on: the definitions that it reaches, a digest of each.

``reached`` follows every name, through imports, to what `annotated` and `benchmarks`
define at the top of a file: functions, classes, assigned names. A digest is of what a
definition computes. Where it stands, comments, docstrings, annotations, imports and
checks of arguments don't count, so a move or a better sentence changes nothing. The
files that it names do count: data in `annotated/page/static`, and recorded runs without
their provenance.

A name that may stand for several things is followed to each of them: one definition too
many makes somebody look, one too few hides a change. Names that are put together while
the code runs are not followed.
"""

import ast
import hashlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools import ROOT

PACKAGES = ("annotated", "benchmarks")
FILES = ("annotated/page/static", "annotated/chapters", "book/results")
CODE = "(the code)"  # what the code is called that `reached` begins with
DIGITS = 8  # of a digest

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp
Scope |= ast.GeneratorExp
# fields of a syntax tree that compute nothing, or that not every Python has
UNREAD = {"annotation", "returns", "ctx", "kind", "type_comment", "type_params"}


def reached(code: str, root: Path = ROOT) -> dict[str, str]:
    """Return a digest of each definition that code reaches, by its full name.

    Args:
        code: Python, such as ``from benchmarks.text import run; run()``.
        root: the repository that holds the packages.
    """
    start = Module("", ast.parse(code), root)
    text, waiting = start.read(start.tree.body)
    texts = {CODE: text}
    while waiting:
        name = waiting.pop()
        if name not in texts:
            texts[name], more = _definition(name, root)
            waiting |= more
    return {name: _hash(text)[:DIGITS] for name, text in sorted(texts.items())}


def digest(definitions: dict[str, str]) -> str:
    """Return one digest for all that ``reached`` returned, whatever the names."""
    return _hash(" ".join(sorted(set(definitions.values()))))[: 2 * DIGITS]


def changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return in words what differs between two answers of ``reached``; moves do not."""
    gone = {name for name in before if before[name] not in after.values()}
    new = {name for name in after if after[name] not in before.values()}
    kinds = {"changed": gone & new, "gone": gone - new, "new": new - gone}
    return [f"{kind}: {', '.join(sorted(n))}" for kind, n in kinds.items() if n]


class Module:
    """A file's imports, and its statements by the names that they define or change."""

    def __init__(self, name: str, tree: ast.Module, root: Path):
        self.name, self.tree, self.root = name, tree, root
        self.imports: dict[str, str] = {}
        self.statements: dict[str, list[ast.stmt]] = {}
        for node in ast.walk(tree):  # those within functions, too
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.imports |= _imported(node)
        for statement in tree.body:
            for name in _defined(statement):
                self.statements.setdefault(name, []).append(statement)

    def read(self, statements: list[ast.stmt]) -> tuple[str, set[str]]:
        """Return what statements compute, and the names of all that they refer to."""
        reader = Reader(self)
        return reader.text(statements), reader.references

    def find(self, path: list[str]) -> tuple[set[str], list[str]]:
        """Return what a dotted name stands for, and the name without its modules.

        A module that is named as a whole stands for all that it defines.
        """
        first = path[0]
        own = first in self.statements and self.name
        found = {f"{self.name}.{first}"} if own else set()
        if first in self.imports:
            parts = [*self.imports[first].split("."), *path[1:]]
            modules = (_module(".".join(parts[:n]), self.root) for n in _lengths(parts))
            if module := next(filter(None, modules), None):
                rest = parts[module.name.count(".") + 1 :]
                if not rest:
                    every = {f"{module.name}.{name}" for name in module.statements}
                    return found | every, parts[-1:]
                more, path = module.find(rest)
                found |= more
        return found, path


class Reader:
    """Writes syntax trees as text, each reference under the name of what it means."""

    def __init__(self, module: Module):
        self.module = module
        self.references: set[str] = set()
        self.local: list[set[str]] = []  # names, of each function around

    def text(self, node: object) -> str:
        if isinstance(node, list):
            return f"[{' '.join(filter(None, map(self.text, node)))}]"
        if not isinstance(node, ast.AST):
            return repr(node)
        if isinstance(node, ast.Import | ast.ImportFrom) or _only_checks(node):
            return ""
        self._note_files(node)
        path = _dotted(node)
        if path and not any(path[0] in names for names in self.local):
            found, path = self.module.find(path)
            self.references |= found
        return ".".join(path) or self._fields(node)

    def _fields(self, node: ast.AST) -> str:
        fields = {k: v for k, v in ast.iter_fields(node) if k not in UNREAD}
        if isinstance(node, Function | ast.ClassDef):
            checks = [
                d for d in node.decorator_list if ast.unparse(d)[:8] == "require."
            ]
            fields["decorator_list"] = [
                d for d in node.decorator_list if d not in checks
            ]
            fields["body"] = node.body[ast.get_docstring(node) is not None :]
        texts = [type(node).__name__]
        for name, field in fields.items():
            if field is not None and field != []:
                # defaults and decorators are outside of a function
                inside = isinstance(node, Scope) and name not in (
                    "args",
                    "decorator_list",
                )
                self.local += [_local(node)] * inside
                texts.append(f"{name}={self.text(field)}")
                self.local = self.local[: len(self.local) - inside]
        return f"({' '.join(texts)})"

    def _note_files(self, node: ast.AST) -> None:
        names = [node.value] if isinstance(node, ast.Constant) else []
        if isinstance(node, ast.Call) and _dotted(node.func)[-1:] == ["recorded"]:
            names = [f"{getattr(one, 'value', '')}.json" for one in node.args]
        for name in names:
            if isinstance(name, str) and name.isprintable() and "." in name:
                paths = [f"{folder}/{name}" for folder in FILES]
                self.references |= {
                    p for p in paths if (self.module.root / p).is_file()
                }


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _definition(name: str, root: Path) -> tuple[str, set[str]]:
    if "/" in name:
        text = (root / name).read_text("utf-8")
        if "/results/" in name:
            values = json.loads(text)
            text = json.dumps({k: values[k] for k in values if k != "provenance"})
        return text, set()
    home, _, last = name.rpartition(".")
    module = _module(home, root)
    return module.read(module.statements[last])


@cache
def _module(name: str, root: Path) -> Module | None:
    path = root.joinpath(*name.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if name.startswith(PACKAGES) and file.is_file():
            return Module(name, ast.parse(file.read_text("utf-8")), root)
    return None


def _lengths(parts: list[str]) -> range:
    return range(len(parts), 0, -1)


def _imported(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Return what the names mean that an import gives."""
    if isinstance(node, ast.ImportFrom):
        return {
            one.asname or one.name: f"{node.module}.{one.name}" for one in node.names
        }
    tops = {one.name.partition(".")[0] for one in node.names if not one.asname}
    return {top: top for top in tops} | {
        o.asname: o.name for o in node.names if o.asname
    }


def _defined(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement at the top of a file defines or changes."""
    if isinstance(statement, Function | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        yield from _dotted(statement.value.func)[:1]  # such as NAMES.append("text")
    else:
        for node in ast.walk(statement):
            if isinstance(getattr(node, "ctx", None), ast.Store):
                while isinstance(node, ast.Attribute | ast.Subscript):
                    node = node.value  # TABLE["text"] = …
                yield from _dotted(node)


def _local(scope: Scope) -> set[str]:
    """Return the names that belong to a function or comprehension."""
    names, waiting = set(), [scope]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, Function | ast.ClassDef) and node is not scope:
            names.add(node.name)
        if node is scope or not isinstance(node, Scope | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return names


def _dotted(node: ast.AST) -> list[str]:
    """Return the parts of a dotted name, none of anything else."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute) and (path := _dotted(node.value)):
        return [*path, node.attr]
    return []


def _only_checks(node: ast.AST) -> bool:
    """Tell whether a statement only refuses arguments: a recorded run passed it."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        path = _dotted(node.value.func)
        return "require" in path[:1] or any(
            p.lstrip("_")[:8] == "require_" for p in path
        )
    raises = isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise)
    return raises and not node.orelse
