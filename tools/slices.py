"""The part of a notebook that its findings depend on.

``slice_of`` walks backwards from the calls of `expect`: a statement belongs to the
slice if it binds a name that is needed, or may change what such a name stands for.
Drawings, proofs, tables and words don't, so they can be rewritten, or moved into the
module, without a new run on thirty machines. Nor does it count where in `annotated` a
name is imported from.

Two approximations. A statement that only draws random numbers is left out, although
those after it then differ: that is one more noise, and findings hold over noise. And a
call changes its arguments only if it is a training run by its words (`CHANGES`); so
what trains outside proofs belongs to the slice in any case, since an optimiser may be
all that holds the parameters.
"""

import ast
import hashlib
import re
from collections.abc import Iterator, Sequence

from tools import cache

WORDS = {"alt", "caption", "question"}
BAND = {"above", "below", "at_least", "at_most"}
SHOW = {"print", "say", "show", "show_table", "show_source", "check_close"}
SHOW |= {"check_same", "check_shape", "play"}
CHANGES = re.compile(r"train|fit|step|backward|optim|load|update|append")
# (`model.train()` is no training)
TRAINS = re.compile(r"\.(step|backward)$|(^|[._])fit$|(^|\.)train_\w+$|^train$")
SEEDS = re.compile(r"seed$")
DRAWINGS = re.compile(r"ch\d\d")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Scope = Function | ast.ClassDef


class Text(ast.NodeTransformer):
    """Leave out what no finding depends on: words, bands, assertions, what is shown.

    Docstrings are words.
    """

    def visit_Assert(self, node: ast.Assert) -> None:
        return None

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        states = _called(node) == "expect"
        words = WORDS | BAND if states else WORDS
        node.keywords = [k for k in node.keywords if k.arg not in words]
        if states:
            del node.args[1:2]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        words = isinstance(node.value, ast.Constant)
        gone = words or (_shows(node) and not _trains(node, {}))
        return None if gone else self.generic_visit(node)


def slice_of(code: str, proofs: Sequence[str] = ()) -> str:
    """Return the statements that findings depend on, as a text to be hashed.

    Args:
        code: all of a notebook.
        proofs: the cells in it that prove something, and may train for that alone.
    """
    statements = [one for s in Text().visit(ast.parse(code)).body for one in _parts(s)]
    proving = {
        _spelled(s) for cell in proofs for s in Text().visit(ast.parse(cell)).body
    }
    functions = {s.name: s for s in statements if isinstance(s, Scope)}
    imports = [s for s in statements if isinstance(s, ast.Import | ast.ImportFrom)]
    modules = set().union(*map(_bound, imports))
    needed: set[str] = set()
    chosen, imported, draws = [], set(), False
    for statement in reversed(statements):
        expects = any(_called(node) == "expect" for node in ast.walk(statement))
        given = _bound(statement) | _changed(statement, functions, modules)
        trains = not isinstance(statement, Scope) and _trains(statement, functions)
        trains &= not _shows(statement)  # then only what it changes counts
        spelled = _spelled(statement)
        if _seeds(statement):
            if draws:  # something after it is in the slice
                chosen.append(spelled)
                draws = False
        elif expects or needed & given or (trains and spelled not in proving):
            if statement in imports:
                imported.add(spelled)
            else:
                chosen.append(spelled)
                draws |= not isinstance(statement, Scope)
            needed = _live([statement], needed)
            # what a function reads when it is called may be defined after it
            for name in needed & functions.keys():
                needed |= _free(functions[name])
    return "\n".join([*sorted(imported), *reversed(chosen)])


def hash_of(notebook: dict) -> str:
    """Return twelve hexadecimal digits that a change of the slice changes."""
    proofs = [
        cache.code_of({"cells": [cell]})
        for cell in cache.code_cells(notebook)
        if "proof" in cell["metadata"].get("tags", [])
    ]
    text = slice_of(cache.code_of(notebook), proofs)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _seeds(statement: ast.stmt) -> bool:
    """Whether a statement is there to seed a generator, not just to name a seed."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return bool(SEEDS.search(ast.unparse(statement.value.func)))
    return "setup(seed=" in ast.unparse(statement)


def _shows(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and _called(statement.value) in SHOW


def _trains(node: ast.AST, functions: dict[str, ast.AST]) -> bool:
    """Whether a statement calls what trains, or an own function that does."""
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
    names = {ast.unparse(call.func) for call in calls}
    own = (functions[name] for name in names & functions.keys())
    return any(map(TRAINS.search, names)) or any(_trains(one, {}) for one in own)


def _parts(statement: ast.stmt) -> Iterator[ast.stmt]:
    """Yield a statement; an import of several names as several."""
    if isinstance(statement, ast.ImportFrom):
        home = statement.module or ""
        for alias in statement.names:
            short = "annotated" if home.split(".")[0] == "annotated" else home
            yield ast.ImportFrom(short, [alias], 0)
    else:
        yield statement


def _called(node: ast.AST) -> str:
    return getattr(getattr(node, "func", None), "id", "")


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Starred):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", "")


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a statement, but not into functions and comprehensions."""
    yield node
    if not isinstance(node, Scope | ast.Lambda | Comprehension):
        for child in ast.iter_child_nodes(node):
            yield from _outside(child)


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement gives a value."""
    names = set()
    for node in _outside(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, Scope):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
    return names


def _changed(
    statement: ast.stmt, functions: dict[str, Scope], imported: set[str]
) -> set[str]:
    """Return the names whose values a statement may change without binding them."""
    names = set()
    for node in _outside(statement):
        if isinstance(node, ast.Attribute | ast.Subscript):
            if isinstance(node.ctx, ast.Store | ast.Del):
                names.add(_root(node))
        elif isinstance(node, ast.Expr):  # model.eval(), but not plt.close()
            names |= {_root(node.value)} - imported
        elif isinstance(node, ast.Call):
            function = ast.unparse(node.func)
            own = functions.get(function)
            if CHANGES.search(function) or (own and CHANGES.search(ast.unparse(own))):
                arguments = [*node.args, *(k.value for k in node.keywords)]
                names |= {_root(argument) for argument in arguments}
                if isinstance(node.func, ast.Attribute):  # optimizer.step()
                    made = any(isinstance(one, ast.Call) for one in ast.walk(node.func))
                    names |= {_root(node.func)} - (imported if made else set())
    if not isinstance(statement, Scope):  # functions that it calls, or hands on
        for name in _free(statement) & functions.keys():
            body = functions[name].body
            inner = set().union(*(_changed(one, {}, imported) for one in body))
            names |= inner & _free(functions[name])
    return names - {""} - SHOW


def _live(statements: list[ast.stmt], after: set[str]) -> set[str]:
    """Return the names that are needed before statements, of those needed after."""
    for node in reversed(statements):
        if isinstance(node, ast.For | ast.With):
            loop = isinstance(node, ast.For)
            heads = [node.iter] if loop else [i.context_expr for i in node.items]
            bound = [node.target] if loop else [i.optional_vars for i in node.items]
            stored = set().union(*(_bound(one) for one in bound if one))
            inside = _live(node.body, after)
            after = ((after | inside) if loop else inside) - stored
            after = after.union(*map(_free, heads))
        elif isinstance(node, ast.If | ast.While):
            branches = _live(node.body, after) | _live(node.orelse, after)
            after = (branches | after) if isinstance(node, ast.While) else branches
            after |= _free(node.test)
        elif isinstance(node, ast.Assign | ast.Import | ast.ImportFrom | Scope):
            after = (after - _bound(node)) | _free(node)
        else:
            after = after | _free(node)
    return after


def _free(node: ast.AST) -> set[str]:
    """Return the names that a statement reads and doesn't bind within a function."""
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    names = set().union(*map(_free, ast.iter_child_nodes(node)))
    if isinstance(node, Function | ast.Lambda | Comprehension):
        inside = list(ast.walk(node))
        names -= {one.arg for one in inside if isinstance(one, ast.arg)}
        stored = (one for one in inside if isinstance(one, ast.Name))
        names -= {one.id for one in stored if isinstance(one.ctx, ast.Store)}
    return names


def _spelled(node: object) -> str:
    """Return a syntax tree as a text that is the same in each Python."""
    if isinstance(node, list):
        return f"[{','.join(map(_spelled, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.alias) and DRAWINGS.match(node.asname or ""):
        node = ast.alias(node.asname)  # a chapter's drawings, as the page calls them
    fields = [(k, v) for k, v in ast.iter_fields(node) if v is not None and v != []]
    return f"{type(node).__name__}({','.join(f'{k}={_spelled(v)}' for k, v in fields)})"
