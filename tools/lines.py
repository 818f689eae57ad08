"""What the lines of the module are for: ``python -m tools.lines``.

A reader should see the mathematics, not its guards. Counted are lines of docstrings; of
checks (calls of ``require``, as decorators too, the lists of names that they are given,
every ``if`` that only raises, functions named ``_require_…``); and of what computes:
all other code but imports and signatures, to which other decorators and the fields of a
class belong. Blank lines and comments are part of the total alone. A file may be as
long as it likes in its docstrings.
"""

import ast
from pathlib import Path
from typing import NamedTuple

from tools import CHAPTERS, ROOT, SOURCES

RATIO, LONGEST = 2, 300  # of each file that a chapter shows, without docstrings

Definition = ast.FunctionDef | ast.ClassDef


class Lines(NamedTuple):
    """Lines of a file by their purpose."""

    total: int
    docstrings: int
    checks: int
    compute: int

    @property
    def ratio(self) -> float:
        """Lines that compute for each line that checks."""
        return self.compute / self.checks if self.checks else float("inf")

    @property
    def fit_to_show(self) -> bool:
        return self.ratio >= RATIO and self.total - self.docstrings <= LONGEST


def count(text: str) -> Lines:
    """Count the lines of a file by their purpose."""
    docstrings, checks, around = set(), set(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Definition | ast.Module) and ast.get_docstring(node):
            docstrings |= _lines_of(node.body[0])
        if isinstance(node, Definition):
            around |= _signature(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            around |= _lines_of(node)
        if _only_checks(node):
            checks |= _lines_of(node)
        for decorator in getattr(node, "decorator_list", ()):
            if ast.unparse(decorator).startswith("require."):
                checks |= _lines_of(decorator)
    lines = [line.strip() for line in text.splitlines()]
    code = {i for i, line in enumerate(lines, 1) if line and not line.startswith("#")}
    compute = code - docstrings - checks - around
    return Lines(len(lines), len(docstrings), len(checks & code), len(compute))


def shown_files() -> list[Path]:
    """Return the files whose code a chapter shows with ``show_source``."""
    modules = set()
    for chapter in sorted((ROOT / SOURCES[CHAPTERS]).glob("*.py")):
        nodes = list(ast.walk(ast.parse(chapter.read_text(encoding="utf-8"))))
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
        home = {name.name: node.module for node in imports for name in node.names}
        for name, package in home.items():  # from annotated.recipes import pronouns
            if (ROOT / package.replace(".", "/") / f"{name}.py").is_file():
                home[name] = f"{package}.{name}"
        for node in nodes:
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "show_source":
                things = [ast.unparse(thing).partition(".")[0] for thing in node.args]
                modules |= {home[thing] for thing in things}
    return [ROOT / f"{module.replace('.', '/')}.py" for module in sorted(modules)]


def _only_checks(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):  # names of what is checked
        return ast.unparse(node.targets[0]) == "sizes"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func).startswith("require.")
    if isinstance(node, ast.FunctionDef):
        return node.name.lstrip("_").startswith("require_")
    return isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise)


def _signature(node: Definition) -> set[int]:
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    lines = set(range(first, node.body[0].lineno))
    if isinstance(node, ast.ClassDef):
        fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
        lines |= {line for field in fields for line in _lines_of(field)}
    return lines


def _lines_of(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, node.end_lineno + 1))


def main() -> None:
    shown = shown_files()
    print("file                               total  docstrings  checks  compute ratio")
    for path in sorted((ROOT / "annotated").rglob("*.py")):
        lines = count(path.read_text(encoding="utf-8"))
        name = path.relative_to(ROOT / "annotated").with_suffix("").as_posix()
        print(
            f"{name:32} {lines.total:7} {lines.docstrings:11} {lines.checks:7} "
            f"{lines.compute:8} {lines.ratio:5.1f}{' shown' * (path in shown)}"
        )


if __name__ == "__main__":
    main()
