"""Imports point one way, ideas ← data ← recipes ← page ← chapters, and never across.

``train`` is a command on top of the recipes, ``notebook`` a name for old notebooks.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("ideas", "data", "recipes", "page", "chapters")
COMMANDS = {"annotated.train": "recipes", "annotated.notebook": "page"}
CHAPTER = re.compile(r"\bch\d\d\b")
PATHS = sorted(
    path
    for folder in ("annotated", "benchmarks", "notebooks/src")
    for path in (ROOT / folder).rglob("*.py")
    if "vendor" not in path.parts
)


def imported(path: Path) -> set[str]:
    """Return the modules of `annotated` that a file imports, within functions too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{name.name}" for name in node.names}
    return {name for name in names if name.startswith("annotated.")}


def layer(module: str) -> int:
    """Return how high a module stands; the checks of exercises stand with chapters."""
    if place := COMMANDS.get(module):
        return LAYERS.index(place)
    part = module.split(".")[1]
    part = {"checks": "chapters"}.get(part, part)
    return LAYERS.index(part) if part in LAYERS else 0


@pytest.mark.parametrize(
    "path", [p for p in PATHS if ROOT / "annotated" in p.parents], ids=str
)
def test_nothing_imports_upward(path):
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    upward = {name for name in imported(path) if layer(name) > layer(module)}
    assert not upward


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_no_chapter_imports_another(path):
    own = CHAPTER.findall(path.relative_to(ROOT).as_posix())
    if path.is_relative_to(ROOT / "notebooks"):
        own = [f"ch{path.name[:2]}"]
    if path.is_relative_to(ROOT / "benchmarks") or not own:
        return  # a benchmark may compare with another chapter's run
    others = {name for name in imported(path) if set(CHAPTER.findall(name)) - set(own)}
    assert not others
