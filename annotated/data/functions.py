"""Functions of Python's standard library, and what each of them does: many labels.

The source text comes with the Python that runs (PSF licence); nothing is downloaded.
Labels are read from the syntax tree, so that they're right by construction. Each Python
has its own text, a few per cent different from the next.
"""

import ast
import hashlib
import io
import keyword
import random
import sysconfig
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from annotated import require

#: what a function may do; it may do several of them, or none
LABELS = (
    "loops",  # `for` or `while`; a comprehension is none
    "raises",
    "catches",  # `try` with `except`
    "returns a value",
    "reads or writes",  # files and streams, by the names in `STREAMS`
    "calls its own name",  # itself, or another object's method of the same name
    "rebinds a parameter",
    "ignores a parameter",  # `self` and `cls` aside
)
STREAMS = {"open", "print", "input", "read", "readline", "readlines", "write", "flush"}

# Not for whoever writes a program, or generated, or not installed everywhere.
_LEFT_OUT = {
    "test", "tests", "idlelib", "lib2to3", "tkinter", "turtledemo", "turtle",
    "ensurepip", "site-packages", "dist-packages", "encodings", "distutils",
    "pydoc_data", "dbm", "ctypes", "msilib",
}  # fmt: skip
LENGTHS = range(12, 129)  # tokens of a function; shorter ones do nothing
_MARKS = {tokenize.INDENT: "⇥", tokenize.DEDENT: "⇤", tokenize.NEWLINE: "⏎"}


class Function(NamedTuple):
    """A function of the standard library."""

    module: str  #: such as ``"json.decoder"``
    name: str  #: of the function
    tokens: tuple[str, ...]  #: its text, without docstring, decorators and annotations
    labels: frozenset[str]  #: of ``LABELS``, those that hold


def module_split(module: str) -> str:
    """Return the split of a ``module``; a package's modules are all in one.

    Modules of one package resemble each other. A hash decides: 6 in 10 packages are for
    training, 2 each for validation and test.
    """
    digest = hashlib.sha256(module.split(".")[0].encode()).digest()
    return ("train", "validation", "test")[
        (digest[0] % 10 >= 6) + (digest[0] % 10 >= 8)
    ]


def library_functions(split: str) -> tuple[Function, ...]:
    """Return functions of the standard library's modules of one split.

    Functions of ``LENGTHS`` tokens. One whose tokens were met before, in any split, is
    left out, be it with other names: no text for testing was trained on.

    Args:
        split: ``"train"``, ``"validation"`` or ``"test"``: other packages.
    """
    require.choice(("train", "validation", "test"), split=split)
    return tuple(f for f in _all_functions() if module_split(f.module) == split)


@cache
def _all_functions() -> tuple[Function, ...]:
    distinct = {}
    for function in every_function():
        if len(function.tokens) in LENGTHS:
            distinct.setdefault(disguised(function.tokens, 0), function)
    return tuple(distinct.values())


@cache
def every_function() -> tuple[Function, ...]:
    """Return all functions of the standard library's modules, of any length."""
    return tuple(f for name, text in _modules() for f in functions_of(text, name))


def _modules() -> Iterator[tuple[str, str]]:
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if not _LEFT_OUT & {*parts}:
            yield ".".join(parts), path.read_text("utf-8")


def functions_of(source: str, module: str = "") -> Iterator[Function]:
    """Read the functions of a text, methods too, and those inside of others.

    Args:
        source: of a module; it's parsed, never run.
        module: its name.

    Yields:
        Functions, in the order in which they're met.

    Raises:
        SyntaxError: if ``source`` is no Python of the version that runs.
    """
    tree = ast.parse(source)
    labels = [frozenset(labels_of(function)) for function in _functions(tree)]
    bare = _functions(_Bare().visit(tree))
    for function, held in zip(bare, labels, strict=True):
        yield Function(module, function.name, tokens_of(ast.unparse(function)), held)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def tokens_of(source: str) -> tuple[str, ...]:
    """Return the tokens of a ``source``; strings are all the same, numbers too."""
    tokens = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _MARKS:
            tokens.append(_MARKS[token.type])
        elif token.type == tokenize.NUMBER:
            tokens.append("0")
        elif token.type == tokenize.STRING:
            tokens.append('"…"')
        elif token.string.strip():
            tokens.append(token.string)
    return tuple(tokens)


class _Bare(ast.NodeTransformer):
    """Take away what may say in words what a function does."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.decorator_list, node.returns = [], None
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("…")  # Pythons cut formatted strings in different ways


def labels_of(function: ast.FunctionDef) -> Iterator[str]:
    """Return which of ``LABELS`` hold for a ``function``, by its syntax tree."""
    inside = [node for line in function.body for node in ast.walk(line)]
    names = [node for node in inside if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    called = {
        getattr(node.func, "id", None) or getattr(node.func, "attr", None)
        for node in inside
        if isinstance(node, ast.Call)
    }
    given = function.args
    parameters = {a.arg for a in given.posonlyargs + given.args + given.kwonlyargs}
    returned = [node.value for node in inside if isinstance(node, ast.Return)]
    holds = {
        "loops": any(isinstance(node, ast.For | ast.While) for node in inside),
        "raises": any(isinstance(node, ast.Raise) for node in inside),
        "catches": any(isinstance(node, ast.ExceptHandler) for node in inside),
        "returns a value": any(value is not None for value in returned),
        "reads or writes": bool(called & STREAMS),
        "calls its own name": function.name in called,
        "rebinds a parameter": bool(parameters & bound),
        "ignores a parameter": bool(parameters - {"self", "cls"} - read - bound),
    }
    return (label for label in LABELS if holds[label])


def disguised(tokens: tuple[str, ...], seed: int, names: int = 100) -> tuple[str, ...]:
    """Return ``tokens`` without keywords, and with other names.

    Each name becomes one of ``names`` others, drawn by ``seed``, the same wherever it
    stands; more names than that have to share. Names say nothing any more, and can only
    be compared with each other.
    """
    draw = random.Random(seed)
    pool = [f"n{i}" for i in draw.sample(range(names), names)]
    kept = [token for token in tokens if not keyword.iskeyword(token)]
    known: dict[str, str] = {}
    for token in kept:
        if token.isidentifier() and token not in known:
            known[token] = pool[len(known) % names]
    return tuple(known.get(token, token) for token in kept)
