"""Find who handed in what, under whatever name a learning platform gave the file."""

import re
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grading.normalise import MOST_BYTES, Unreadable, exercise_ids, read_cells

# Tried in this order on the path below the inbox, `/` between folders. `student` is the
# id, `name` what people read, `lms` the platform's own number.
PATTERNS = [
    # Moodle, one file: Ada Lovelace_4711_assignsubmission_file_02_self_attention.ipynb
    # and with folders: Ada Lovelace_4711_assignsubmission_file_/02_self_attention.ipynb
    r"(?:.*/)?(?P<name>[^/_]+)_(?P<lms>\d+)_assignsubmission_file_/?[^/]*",
    # Canvas: lovelaceada_4711_88001_02_self_attention-1.ipynb, late: …ada_LATE_4711_…
    r"(?:.*/)?(?P<student>[^/_]+)_(?:LATE_)?(?P<lms>\d+)_\d+_[^/]*",
    # GitHub Classroom: ch02-ada/notebooks/exercises/02_self_attention.ipynb
    r"(?:.*/)?ch\d\d-(?P<student>[^/]+)/(?:.*/)?[^/]*",
    # one folder a student, as in nbgrader: ada/ch02/02_self_attention.ipynb
    r"(?P<student>[^/]+)/(?:.*/)?[^/]*",
    # ada.ipynb, ada_02_self_attention.ipynb, "ada - Copy of 02_self_attention.ipynb"
    r"(?P<student>.+?)(?:[ _-]+(?:Copy[_ ]of[_ ])?\d\d_[a-z_0-9]+)?(?: ?\(\d+\)|-\d+)?",
]  # fmt: skip
GENERIC = re.compile(r"(copy)?_?(of)?_?(\d\d_[a-z0-9_]+|untitled\d*)?")
AGAIN = re.compile(r"(?: ?\(|-)(\d+)\)?$")


@dataclass
class Submission:
    """One file of one student for one chapter."""

    student: str
    chapter: str
    cells: list[dict]
    source: str  # the path below the inbox
    name: str = ""
    lms: str = ""
    order: tuple = ()


def student_id(text: str) -> str:
    """An id that is safe as a folder's name and in a spreadsheet."""
    return re.sub(r"[^\w.@-]+", "_", text.strip()).strip("-.@_")[:80].lower()


def identify(path: str, pattern: str | None = None) -> dict[str, str] | None:
    """Who handed in a file, by its path below the inbox; None if nobody can be read."""
    stem = path.removesuffix(".ipynb")
    for regexp in [pattern] if pattern else PATTERNS:
        found = re.fullmatch(regexp, stem)
        if found is None:
            continue
        parts = {key: value or "" for key, value in found.groupdict().items()}
        parts["student"] = student_id(parts.get("student") or parts.get("name", ""))
        generic = GENERIC.fullmatch(parts["student"])
        if parts["student"] and not generic:
            return parts
    return None


def chapter_of(path: str, cells: list[dict]) -> str | None:
    """`ch02`, by the exercises in the notebook, or else by the file's name."""
    counts: dict[str, int] = {}
    for exercise in exercise_ids(cells):
        counts[exercise[:4]] = counts.get(exercise[:4], 0) + 1
    if counts:
        return max(sorted(counts), key=counts.get)
    found = re.search(r"(\d\d)_[a-z]\w*", path.rsplit("/", 1)[-1])
    return f"ch{found[1]}" if found else None


def unzipped(inbox: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Every notebook of the inbox: path below it, and the file. Archives are opened."""
    for path in sorted(inbox.rglob("*")):
        below = path.relative_to(inbox).as_posix()
        if path.is_symlink() or ".ipynb_checkpoints" in path.parts:
            continue
        if path.suffix.lower() == ".ipynb":
            yield below, path
        elif path.suffix.lower() == ".zip":
            yield from _members(path, below, folder)


def _members(path: Path, below: str, folder: Path) -> Iterator[tuple[str, Path]]:
    try:
        with zipfile.ZipFile(path) as archive:
            for number, member in enumerate(archive.infolist()):
                if not member.filename.endswith(".ipynb"):
                    continue
                # a name in an archive is not trusted with a place on the disk
                target = folder / f"{path.stem}-{number}.ipynb"
                with archive.open(member) as stream:
                    target.write_bytes(stream.read(MOST_BYTES + 1))
                yield member.filename.lstrip("/"), target
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError):
        yield below, path  # the name may say whose it is; it holds no notebook


def collect(
    inbox: Path, pattern: str | None = None, only: str | None = None
) -> tuple[list[Submission], list[tuple[str, str]]]:
    """The newest file of each student and chapter, and (file, what was odd).

    `pattern` is a regular expression of one's own, with a group `student`; `only` the
    chapter, where the course has but one.
    """
    found: dict[tuple[str, str], list[Submission]] = {}
    odd: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for below, path in unzipped(inbox, Path(folder)):
            who = identify(below, pattern)
            if who is None:
                odd.append((below, "nobody can be read from the name: NOT COLLECTED"))
                continue
            try:
                cells = read_cells(path)
            except (Unreadable, OSError) as error:
                odd.append((below, f"{error}: graded as blank"))
                cells = []
            chapter = chapter_of(below, cells) or only
            if chapter is None:
                odd.append((below, "of no chapter that can be read: NOT COLLECTED"))
                continue
            again = AGAIN.search(below.removesuffix(".ipynb"))
            attempt = int(again[1]) if again else 0
            submission = Submission(
                who["student"], chapter, cells, below, who.get("name", ""),
                who.get("lms", ""), (attempt, path.stat().st_mtime),
            )  # fmt: skip
            found.setdefault((submission.student, chapter), []).append(submission)
    taken = []
    for several in found.values():
        several.sort(key=lambda submission: submission.order)
        taken.append(several[-1])
        for older in several[:-1]:
            odd.append((older.source, f"{several[-1].source} is taken instead"))
    return taken, odd
