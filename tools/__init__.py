"""What builds the book; here, where its notebooks are."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CHAPTERS = "notebooks"
STUDENT = "notebooks/exercises"  # for students: without solutions
PAGES = "book/exercises"  # of the book, made by the build
SOURCES = {CHAPTERS: "notebooks/src", STUDENT: "notebooks/src/exercises"}


def notebook_named(name: str) -> Path:
    """The chapter's notebook that is meant by 8, 08, 13b, or by its path."""
    begins = re.sub(r"^(\d)(?!\d)", r"0\1", Path(name).name)
    found = sorted((ROOT / CHAPTERS).glob(f"{begins.removesuffix('.ipynb')}_*.ipynb"))
    found += [p for p in [ROOT / CHAPTERS / Path(name).name] if p.is_file()]
    if not name or len(found) != 1:
        raise SystemExit(f"expected a notebook's name, as 08 or 13b, got {name!r}")
    return found[0]
