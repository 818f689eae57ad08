"""Functions as a page defines them, right or with a mistake."""

import ast
import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

PAGES = Path(__file__).parents[1] / "notebooks" / "src"


def defined(page: str, *names: str, mistake: tuple[str, str] = ("", "")) -> Any:
    """Return what a page defines by some names: one thing, or a list of several.

    Args:
        page: such as ``"09b_search"``.
        names: of functions, classes and constants, those that they use included.
        mistake: a text of their definitions, and what replaces it.
    """
    space = {"torch": torch, "nn": nn, "F": F, "math": math}
    found, imports = [], []
    for node in ast.parse((PAGES / f"{page}.py").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            imports.append(node)
        targets = [t for one in getattr(node, "targets", []) for t in ast.walk(one)]
        bound = {getattr(t, "id", "") for t in targets} | {getattr(node, "name", "")}
        if bound & {*names}:
            found.append(ast.unparse(node))
    code = "\n".join(found)
    if mistake[0] not in code:  # no AssertionError: tests wait for those
        raise ValueError(f"nothing to replace in {page}: {mistake[0]}")
    if mistake[0]:
        code = code.replace(*mistake)
    used = {n.id for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Name)}
    for node in imports:
        if used & {alias.asname or alias.name for alias in node.names}:
            exec(ast.unparse(node), space)
    exec(code, space)
    things = [space[name] for name in names]
    return things[0] if len(things) == 1 else things
