"""Generate the notebooks from notebooks/src, one way.

    python -m tools.notebooks            write what is out of step
    python -m tools.notebooks --check    write nothing, name what is out of step, exit 1

A chapter's source makes one notebook, a source of exercises two: the student's, without
solutions, and the page of the book, which is not committed (see tools/exercises.py).
"""

import argparse
import sys
from pathlib import Path

import nbformat

from tools import CHAPTERS, PAGES, ROOT, SOURCES, STUDENT
from tools.exercises import page_notebook, read_exercises, student_notebook
from tools.source import SourceError, read_notebook, read_source, set_ids, setup_cell


def made_from(source: Path, setup: str, root: Path) -> dict[Path, str]:
    """The notebooks that a source makes, and the text that each should hold."""
    if source.parent == root / SOURCES[STUDENT]:
        notebook = read_exercises(source, setup)
        made = {STUDENT: student_notebook(notebook), PAGES: page_notebook(notebook)}
    else:
        made = {CHAPTERS: read_source(source, setup)}
    targets = {folder: root / folder / f"{source.stem}.ipynb" for folder in made}
    return {targets[folder]: text(made[folder], targets[folder]) for folder in made}


def text(notebook: nbformat.NotebookNode, target: Path) -> str:
    """A notebook as its file holds it; cells that the file knows keep their ids."""
    set_ids(target.name, notebook, read_notebook(target) or nbformat.v4.new_notebook())
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def what_is_wrong(target: Path, expected: str) -> str | None:
    """Why `target` is not what its source makes of it, in a few words."""
    if not target.exists():
        return "missing"
    if target.read_text(encoding="utf-8") == expected:
        return None
    notebook = read_notebook(target)
    if notebook is None:
        return "not a notebook"
    if leftovers(notebook):
        return "has " + " and ".join(leftovers(notebook))
    return "out of step with its source"


def leftovers(notebook) -> list[str]:
    """What running a notebook leaves in it."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    found = []
    if any(cell.get("outputs") for cell in code):
        found.append("outputs")
    if any(cell.get("execution_count") is not None for cell in code):
        found.append("execution counts")
    if "widgets" in notebook.get("metadata", {}):
        found.append("metadata.widgets")
    return found


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.notebooks",
        description="Generate the notebooks from notebooks/src.",
    )
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args(arguments).check
    setup, known, problems, notes = setup_cell(root), set(), [], []
    for source in sorted((root / SOURCES[CHAPTERS]).rglob("*.py")):
        known.add(source)
        try:
            made = made_from(source, setup, root)
        except (SourceError, nbformat.ValidationError) as error:
            problems.append(str(error).replace(f"{root}/", ""))
            continue
        for target, expected in made.items():
            name = target.relative_to(root)
            wrong = what_is_wrong(target, expected)
            if wrong and not check:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(expected, encoding="utf-8")
                notes.append(f"{name}: written (was: {wrong})")
            elif wrong and target.parent != root / PAGES:  # made by the build
                problems.append(f"{name}: {wrong}")
    for folder, sources in SOURCES.items():
        for target in sorted((root / folder).glob("*.ipynb")):
            if root / sources / f"{target.stem}.py" not in known:
                # it may be someone's scratch work: never removed, wrong in a commit
                (problems if check else notes).append(
                    f"{target.relative_to(root)}: orphaned, there is no "
                    f"{sources}/{target.stem}.py"
                )
    if not check:
        for page in (root / PAGES).glob("*.ipynb"):
            if root / SOURCES[STUDENT] / f"{page.stem}.py" not in known:
                page.unlink()
    for line in notes:
        print(line)
    for line in problems:
        print(line, file=sys.stderr)
    if problems:
        if check:
            print("`make notebooks` generates them anew.", file=sys.stderr)
        return 1
    print(f"the notebooks of {len(known)} source(s) are in step")
    return 0


if __name__ == "__main__":
    sys.exit(main())
