"""The notation page and the module's signatures agree, both ways."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "notation.md").read_text(encoding="utf-8")
MODULES = sorted((ROOT / "annotated").rglob("*.py"))
CHAPTERS = sorted((ROOT / "notebooks" / "src").glob("*.py"))
TYPES = {"Float", "Int", "Bool", "Shaped", "Num", "Inexact", "Integer", "UInt"}
PLANNED = re.compile(r"from chapter (\d+) on")
LINK = re.compile(r"\[(\d+[a-z]?)\.\d+\]\(\.\./notebooks/0?(\d+[a-z]?)_\w+\.ipynb#.+\)")


def tables(text: str) -> list[list[list[str]]]:
    """The Markdown tables of a page, as rows of cells, the head first."""
    found = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            found[-1].append([c.strip() for c in line.strip().strip("|").split("|")])
        elif found[-1]:
            found.append([])
    return [[row for row in t if set(row[0]) - set("-")] for t in found if t]


AXES, MARKS, SYMBOLS, MASKS = tables(PAGE)
LETTERS = {row[1].strip("`"): row for row in AXES[1:]}
WITHOUT_LETTER = {row[0].strip("`") for row in MARKS[1:]}


def axes_of(tree: ast.AST) -> set[str]:
    """Every axis that a jaxtyping annotation of a module names."""
    found = set()
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)):
            continue
        name = node.value.attr if isinstance(node.value, ast.Attribute) else None
        name = node.value.id if isinstance(node.value, ast.Name) else name
        axes = node.slice.elts[-1]
        if name in TYPES and isinstance(axes, ast.Constant):
            found |= set(axes.value.split())
    return found


def docstring_shapes(tree: ast.AST) -> set[str]:
    """Every letter in a shape such as ``(b, t, k)`` in a docstring."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    texts = [ast.get_docstring(n) or "" for n in ast.walk(tree) if isinstance(n, kinds)]
    shapes = re.findall(r"``\(([^()]*,[^()]*)\)``", "\n".join(texts))
    parts = [part.strip() for shape in shapes for part in shape.split(",")]
    return {part for part in parts if re.fullmatch("[a-z]", part)}


def identifiers(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        for field in ("id", "arg", "attr", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                found.add(name)
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def used() -> set[str]:
    return set().union(*(axes_of(tree(path)) for path in MODULES))


@cache
def names() -> set[str]:
    return set().union(*(identifiers(tree(path)) for path in MODULES + CHAPTERS))


each_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)


def test_the_module_has_axes_to_compare_with():
    assert {"b", "t", "s"} <= used()
    described = (docstring_shapes(tree(path)) for path in MODULES)
    assert {"b", "t", "s"} <= set().union(*described)


@each_module
def test_every_axis_of_a_module_is_on_the_page(path):
    """Those of its signatures and of the shapes in its docstrings."""
    unknown = axes_of(tree(path)) - WITHOUT_LETTER | docstring_shapes(tree(path))
    assert unknown <= set(LETTERS), "give these axes a row in book/notation.md"


@pytest.mark.parametrize("letter", LETTERS)
def test_every_letter_of_the_page_is_in_use_or_marked_for_later(letter):
    later = PLANNED.fullmatch(LETTERS[letter][4])
    if letter in used():
        assert not later, f"{letter} is in use: link to where it is first defined"
    else:
        assert later, f"{letter} is in no signature: mark it `from chapter … on`"


def test_every_mark_of_the_page_is_in_use():
    assert WITHOUT_LETTER <= used()


def test_a_letter_lives_once():
    letters = [row[1].strip("`") for row in AXES[1:]]
    assert len(set(letters)) == len(letters)
    assert all(re.fullmatch("[a-z]", letter) for letter in letters)
    for letter, row in LETTERS.items():
        assert row[0] == f"${letter}$"


@pytest.mark.parametrize("table", [AXES, MARKS, SYMBOLS, MASKS], ids=lambda t: t[0][0])
def test_no_cell_is_empty(table):
    assert len(table) > 1
    for row in table:
        assert len(row) == len(table[0]) and all(row), row


@pytest.mark.parametrize("row", AXES[1:] + SYMBOLS[1:], ids=lambda row: row[1])
def test_shapes_hold_only_known_letters(row):
    for shape in re.findall(r"`\(([^()]*)\)`", row[3]):
        parts = {part.strip() for part in shape.split(",") if part.strip()}
        assert parts <= set(LETTERS) | {"1"}, row
    if row in AXES:
        assert row[1].strip("`") in re.findall("[a-z]", row[3])


@pytest.mark.parametrize("row", SYMBOLS[1:], ids=lambda row: row[0])
def test_every_name_of_the_page_is_in_the_code(row):
    named = re.findall(r"`(\w+)`", row[1])
    assert named and set(named) <= names()


@pytest.mark.parametrize("row", AXES[1:] + SYMBOLS[1:], ids=lambda row: row[1])
def test_says_where_it_is_first_defined(row):
    link = LINK.fullmatch(row[4])
    if link:
        assert link[1] == link[2]
    else:
        number = PLANNED.fullmatch(row[4])
        assert number, f"neither a link to a section nor for later: {row[4]!r}"
        written = [int(path.stem[:2]) for path in CHAPTERS]
        assert int(number[1]) not in written, "that chapter is written: link to it"


def test_says_which_way_round_masks_are():
    assert "`True` means *may attend*" in PAGE
    assert "the batch always comes first" in PAGE
