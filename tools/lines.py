"""What the lines of the module are for: ``python -m tools.lines``.

A reader should see the mathematics, not its guards. Counted are lines of docstrings;
of checks (calls of ``require``, every ``if`` that only raises, and functions named
``_require_…``); and of what computes: all other code but imports and signatures, to
which decorators and the fields of a class belong. Blank lines and comments are part of
the total alone.
"""

import ast
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "notebooks" / "src"
RATIO, LONGEST = 4, 300  # of each file that a chapter shows

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Lines(NamedTuple):
    """Lines of a file by their purpose."""

    total: int
    docstrings: int
    checks: int
    compute: int

    @property
    def ratio(self) -> float:
        """Lines that compute for each that checks."""
        return self.compute / self.checks if self.checks else float("inf")


def count(source: str) -> Lines:
    """Count the lines of a file's text by their purpose."""
    tree, lines = ast.parse(source), source.splitlines()
    docstrings, checks, rest = set(), set(), set()
    for node in ast.walk(tree):
        if isinstance(node, Definition | ast.Module) and ast.get_docstring(node):
            docstrings |= _span(node.body[0])
        if isinstance(node, Definition):
            rest |= _signature(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            rest |= _span(node)
        if is_check(node):
            checks |= _span(node)
    code = {
        number
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.strip().startswith("#")
    }
    compute = code - docstrings - checks - rest
    return Lines(len(lines), len(docstrings), len(checks & code), len(compute))


def is_check(node: ast.AST) -> bool:
    """Whether a statement calls ``require``, only raises, or is a helper for that."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func).startswith("require.")
    if isinstance(node, ast.FunctionDef):
        return node.name.lstrip("_").startswith("require_")
    return isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise)


def shown_files() -> list[Path]:
    """Return the files whose code a chapter shows with ``show_source``."""
    modules = set()
    for chapter in sorted(SOURCES.glob("*.py")):
        tree = ast.parse(chapter.read_text(encoding="utf-8"))
        home = {
            alias.asname or alias.name: node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "show_source":
                names = [ast.unparse(thing).partition(".")[0] for thing in node.args]
                modules |= {home[name] for name in names}
    return [ROOT / f"{module.replace('.', '/')}.py" for module in sorted(modules)]


def _span(node: ast.stmt | ast.expr) -> set[int]:
    return set(range(node.lineno, node.end_lineno + 1))


def _signature(node: Definition) -> set[int]:
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    lines = set(range(first, node.body[0].lineno))
    if isinstance(node, ast.ClassDef):
        fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
        lines |= {number for field in fields for number in _span(field)}
    return lines


def main() -> None:
    shown = set(shown_files())
    print("file                     total  docstrings  checks  compute  ratio  shown")
    for path in sorted((ROOT / "annotated").glob("*.py")):
        lines = count(path.read_text(encoding="utf-8"))
        print(
            f"{path.stem:24} {lines.total:5}  {lines.docstrings:10}  {lines.checks:6}  "
            f"{lines.compute:7}  {lines.ratio:5.1f}  {'yes' if path in shown else ''}"
        )


if __name__ == "__main__":
    main()
