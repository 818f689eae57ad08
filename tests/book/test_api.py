"""Every module has a page of the API, and its docstrings leave nothing out.

    python -m tests.book.test_api

writes ``public.txt``: the names that a release promises, with their parameters.
"""

import ast
import importlib
import inspect
import pkgutil
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from sphinx.pycode import ModuleAnalyzer
from torch import nn

from book._ext import api

FILES = api.modules()
READERS_CALL = api.CHECKS
# what a caller may pass in any shape
ANY_SHAPE = re.compile(r"\bany shape\b|\bof the shape of\b|\ba tensor\b", re.IGNORECASE)
SHAPE = re.compile(r"\([^()`]*,[^()`]*\)")
SECTION = re.compile(r"^(Args|Returns|Yields|Raises):\n((?:[ \t]+.*\n?|\n)*)", re.M)
TYPED = {"Float", "Int", "Bool"}
# stands for rows that would say the same again
AS = re.compile(r"\bArguments as :(?:func|meth|class):`~?([\w.]+)`")
# such a function only raises, and its callers raise with it
REQUIRE = re.compile(r"_*require_")


@dataclass
class Item:
    """A public class, function or method, as its module's text has it."""

    name: str
    node: ast.ClassDef | ast.FunctionDef
    doc: str
    parameters: dict[str, ast.expr | None]
    returns: ast.expr | None
    raises: set[str]

    @property
    def sections(self) -> dict[str, str]:
        return dict(SECTION.findall(self.doc + "\n"))


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


def raised_here(node: ast.AST) -> set[str]:
    errors = [n.exc for n in ast.walk(node) if isinstance(n, ast.Raise) and n.exc]
    return {ast.unparse(getattr(error, "func", error)) for error in errors}


def raised(node: ast.AST) -> set[str]:
    """The exceptions that a piece of code raises itself or lets a helper raise."""
    found = raised_here(node) - {"NotImplementedError"}
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            found |= helpers().get(ast.unparse(call.func), set())
    return found


@cache
def helpers() -> dict[str, set[str]]:
    """What each function whose only business is to raise may raise.

    Of the checks in `require` the page speaks once for all.
    """
    every = [node for module in FILES for node in ast.walk(tree(module))]
    return {
        node.name: raised_here(node)
        for node in every
        if isinstance(node, ast.FunctionDef) and REQUIRE.match(node.name)
    }


def arguments(function: ast.FunctionDef) -> dict[str, ast.expr | None]:
    a = function.args
    every = [*a.posonlyargs, *a.args, *a.kwonlyargs]
    every += [one for one in (a.vararg, a.kwarg) if one]
    return {one.arg: one.annotation for one in every if one.arg not in ("self", "cls")}


def fields(node: ast.ClassDef) -> dict[str, ast.expr]:
    """The fields of a NamedTuple or a dataclass, which are its parameters."""
    made = [ast.unparse(x) for x in node.bases + node.decorator_list]
    if not any("NamedTuple" in name or "dataclass" in name for name in made):
        return {}
    return {
        n.target.id: n.annotation
        for n in node.body
        if isinstance(n, ast.AnnAssign) and not n.target.id.startswith("_")
    }


def described(module: str, node: ast.ClassDef) -> str:
    """What `#:` says of the fields of a class, as autodoc reads it."""
    found = comments(module).items()
    return "".join(
        f"    {name}: {' '.join(lines).strip()}\n"
        for (owner, name), lines in found
        if owner == node.name
    )


@cache
def comments(module: str) -> dict[tuple[str, str], list[str]]:
    text = FILES[module].read_text(encoding="utf-8")
    analyzer = ModuleAnalyzer.for_string(text, module)
    analyzer.analyze()
    return analyzer.attr_docs


def items(module: str) -> list[Item]:
    found = []
    for node in tree(module).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found.append(of_function(module, node, node.name))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            methods = [n for n in node.body if isinstance(n, ast.FunctionDef)]
            makers = ("__init__", "__post_init__")
            start = [n for n in methods if n.name in makers]
            taken = {k: v for n in start for k, v in arguments(n).items()}
            errors = {error for n in start for error in raised(n)}
            doc = inspect.cleandoc(ast.get_docstring(node) or "")
            if told_behind := described(module, node):
                doc += "\n\nArgs:\n" + told_behind
            found.append(Item(node.name, node, doc, taken | fields(node), None, errors))
            found += [
                of_function(module, n, f"{node.name}.{n.name}")
                for n in methods
                if not n.name.startswith("_")
            ]
    wanted = READERS_CALL.get(module)
    return [item for item in found if wanted is None or item.name in wanted]


def of_function(module: str, node: ast.FunctionDef, name: str) -> Item:
    doc = inspect.cleandoc(ast.get_docstring(node) or "")
    if not doc:  # a method that overrides one has what that one says
        thing = importlib.import_module(module)
        for part in name.split("."):
            thing = getattr(thing, part)
        doc = inspect.getdoc(thing) or ""
    return Item(name, node, doc, arguments(node), node.returns, raised(node))


def names(annotation: ast.expr | None) -> set[str]:
    if annotation is None:
        return set()
    return {n.id for n in ast.walk(annotation) if isinstance(n, ast.Name)}


def is_layer(module: str, item: Item) -> bool:
    thing = getattr(importlib.import_module(module), item.name, None)
    return isinstance(thing, type) and issubclass(thing, nn.Module)


# ---- what a docstring may lack: each returns what is missing, or nothing ------------


def wrong_opening(module: str, item: Item) -> str | None:
    first, _, rest = item.doc.partition("\n")
    if not first.endswith((".", ":")) or rest.partition("\n")[0].strip():
        return "a docstring opens with one line that says it all"
    return None


def unnamed_arguments(module: str, item: Item) -> str | None:
    """Those that stand in no section, not as ``name`` in the text, and nowhere else."""
    # what pages train says in a row what its name and its type do not
    if not ast.get_docstring(item.node) or module.startswith("annotated.recipes"):
        return None  # (a docstring may be inherited)
    missing = {
        name
        for name in item.parameters
        if not re.search(rf"^ +{name}: \S", item.sections.get("Args", ""), re.M)
        and f"``{name}``" not in item.doc
    }
    for named in AS.findall(item.doc):
        other = parameters_of(module, item, named)
        if not missing & other:
            return f"`Arguments as` {named}, which doesn't exist or has none of these"
        missing -= other
    return f"`Args:` says nothing of {sorted(missing)}" if missing else None


def parameters_of(module: str, item: Item, named: str) -> set[str]:
    """The parameters of the function that a docstring names; none if there is none."""
    owner = item.name.rpartition(".")[0]
    for full in (f"{module}.{owner}.{named}", f"{module}.{named}", named):
        try:
            return set(inspect.signature(pkgutil.resolve_name(full)).parameters)
        except (ImportError, AttributeError, ValueError):
            continue
    return set()


def unsaid_result(module: str, item: Item) -> str | None:
    """In a section, or in its first line: `Return the …`."""
    nothing = item.returns is None or ast.unparse(item.returns) == "None"
    said = {"Returns", "Yields"} & set(item.sections) or re.match("Return ", item.doc)
    return None if nothing or said else "there is no `Returns:`"


def unsaid_errors(module: str, item: Item) -> str | None:
    named = set(re.findall(r"^ +(\w+): ", item.sections.get("Raises", ""), re.M))
    missing = sorted(item.raises - named)
    return f"`Raises:` lacks {missing}" if missing else None


def unknown_shapes(module: str, item: Item) -> str | None:
    """In the types of its signature, which the page shows, or in words."""
    types = [*item.parameters.values(), item.returns]
    bare = any("Tensor" in names(t) and not names(t) & TYPED for t in types)
    told = SHAPE.search(item.doc) or ANY_SHAPE.search(item.doc)
    return "tensors of unknown shape" if bare and not told else None


def unnamed_source(module: str, item: Item) -> str | None:
    known = re.search(r"\(\d{4}\)|\d{4}\)|chapter \d\d", item.doc)
    return "names no paper or chapter" if is_layer(module, item) and not known else None


CHECKS_OF_AN_ITEM = (
    wrong_opening,
    unnamed_arguments,
    unsaid_result,
    unsaid_errors,
    unknown_shapes,
    unnamed_source,
)


def faults(module: str, item: Item) -> list[str]:
    every = (check(module, item) for check in CHECKS_OF_AN_ITEM)
    return [f"{item.name}: {fault}" for fault in every if fault]


@pytest.mark.parametrize("module", FILES)
def test_docstrings_leave_nothing_out(module):
    assert [fault for item in items(module) for fault in faults(module, item)] == []


AS_ANOTHER = "Go.\n\nArguments as :func:`{}`.\n"


@pytest.mark.parametrize(
    ("signature", "doc", "fault"),
    [
        ("(a) -> None", "Take ``a``.", None),
        ("(a) -> None", "Take ``a``", "opens with one line"),
        ("(a) -> None", "Take it.", "says nothing of ['a']"),
        ("(a) -> int", "Take ``a``.", "no `Returns:`"),
        ("(a: Tensor) -> None", "Take ``a``.", "unknown shape"),
        ("(pad) -> None", AS_ANOTHER.format("padding_mask"), None),
        ("(a) -> None", AS_ANOTHER.format("padding_mask"), "has none of these"),
        ("(pad) -> None", AS_ANOTHER.format("gone"), "doesn't exist"),
        ("(pad, c) -> None", AS_ANOTHER.format("padding_mask"), "nothing of ['c']"),
    ],
)
def test_what_a_docstring_lacks_is_found(signature, doc, fault):
    (node,) = ast.parse(f"def f{signature}:\n    {doc!r}").body
    found = faults("annotated.masks", of_function("annotated.masks", node, "f"))
    assert [fault in one for one in found] == ([True] if fault else [])


# ---- what a release promises --------------------------------------------------------

PUBLIC = Path(__file__).with_name("public.txt")
# they serve the pages, and change with them
OF_THE_BOOK = ("annotated.page", "annotated.recipes")


def public() -> str:
    """The promised names of ideas and data, with the names of their parameters."""
    return "".join(
        f"{module}.{item.name}({', '.join(item.parameters)})\n"
        for module in sorted(FILES)
        if not module.startswith(OF_THE_BOOK)
        for item in items(module)
    )


def test_public_names_and_parameters_are_as_promised():
    promised, now = PUBLIC.read_text("utf-8").splitlines(), public().splitlines()
    gone = [line for line in promised if line not in now]
    new = [line for line in now if line not in promised]
    assert promised == now, (
        f"\nno longer there: {gone}\nnew: {new}\n"
        "What is new: `python -m tests.book.test_api` writes it down. What is gone or "
        "renamed breaks code of readers: keep the old name for a release, as "
        "CONTRIBUTING.md says under Release."
    )


# ---- the pages -----------------------------------------------------------------------


def test_pages_are_written_once_and_of_modules_that_are_there(tmp_path):
    (tmp_path / "annotated.gone.md").write_text("# gone")
    api.write_pages(tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == set(FILES)
    attention = tmp_path / "annotated.attention.md"
    assert ".. automodule:: annotated.attention\n   :members:" in attention.read_text()
    checks = (tmp_path / "annotated.checks.md").read_text()
    assert ".. autofunction:: annotated.checks.check\n" in checks
    assert "automodule" not in checks
    before = attention.stat().st_mtime_ns
    api.write_pages(tmp_path)
    assert attention.stat().st_mtime_ns == before


def test_there_is_something_to_check():
    assert "masked_softmax" in {item.name for item in items("annotated.attention")}
    assert {"Batch", "Batch.to"} <= {item.name for item in items("annotated.batches")}
    notebook = {item.name: item for item in items("annotated.page.notebook")}
    assert notebook["show_source"].raises == {"TypeError"}
    assert set(notebook["show"].parameters) == {"figure", "alt", "caption", "title"}


if __name__ == "__main__":
    PUBLIC.write_text(public(), encoding="utf-8")
