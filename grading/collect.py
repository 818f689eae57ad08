"""Find who handed in what, under whatever name a learning platform gave the file."""

import re
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from grading.normalise import MOST_BYTES, Unreadable, exercise_ids, read_cells

# Tried in this order on the path below the inbox, `/` between folders. `student` is the
# id, `name` what people read, `lms` the platform's own number. Of the platforms' names,
# the uppermost counts: what lies below it a student may have called like a classmate's.
PATTERNS = [
    # Moodle, one file: Ada Lovelace_4711_assignsubmission_file_02_self_attention.ipynb
    # and with folders: Ada Lovelace_4711_assignsubmission_file_/02_self_attention.ipynb
    r"(?P<name>[^/_]+)_(?P<lms>\d+)_assignsubmission_file_.*",
    # Canvas: lovelaceada_4711_88001_02_self_attention-1.ipynb, late: …ada_LATE_4711_…
    r"(?P<student>[^/_]+)_(?:LATE_)?(?P<lms>\d+)_\d+_.*",
    # GitHub Classroom: ch02-ada/notebooks/exercises/02_self_attention.ipynb
    r"ch\d\d-(?P<student>[^/]+)/.*",
    # one folder a student, as in nbgrader: ada/ch02/02_self_attention.ipynb
    r"(?P<student>[^/]+)/(?:.*/)?[^/]*",
    # ada.ipynb, ada_02_self_attention.ipynb, "ada - Copy of 02_self_attention.ipynb"
    r"(?P<student>.+?)(?:[ _-]+(?:Copy[_ ]of[_ ])?\d\d_[a-z_0-9]+)?(?: ?\(\d+\)|-\d+)?",
]  # fmt: skip
GENERIC = re.compile(r"(copy)?_?(of)?_?(\d\d_[a-z0-9_]+|untitled\d*)?")
AGAIN = re.compile(r"-(\d+)$")  # Canvas numbers attempts; a browser's "(2)" means less

DAMAGED = (  # what zipfile raises over bytes that are not as they were
    zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError,
    ValueError,
)  # fmt: skip

# (assignment, number that the platform gives) -> student; Moodle's are one assignment's
Known = dict[tuple[str, str], str]


@dataclass
class Submission:
    """One file of one student for one chapter."""

    student: str
    chapter: str
    cells: list[dict]
    source: str  # the path below the inbox
    name: str = ""
    lms: str = ""
    order: tuple = ()  # of time and attempt: the last one counts


def student_id(text: str) -> str:
    """An id that is safe as a folder's name and in a spreadsheet."""
    text = unicodedata.normalize("NFC", text)  # archives of a Mac take letters apart
    return re.sub(r"[^\w.@-]+", "_", text.strip()).strip("-.@_")[:60].lower()


def identify(path: str, pattern: str | None = None) -> dict[str, str] | None:
    """Who handed in a file, by its path below the inbox; None if nobody can be read."""
    stem = path.removesuffix(".ipynb")
    for found in _matches(stem, pattern):
        parts = {key: value or "" for key, value in found.groupdict().items()}
        parts["student"] = student_id(parts.get("student") or parts.get("name", ""))
        generic = GENERIC.fullmatch(parts["student"])
        if parts["student"] and not generic:
            return parts
    return None


def _matches(stem: str, pattern: str | None) -> Iterator[re.Match]:
    folders = [m.end() for m in re.finditer("/", stem)]
    below = [stem[start:] for start in (0, *folders)]
    tries = [(p, text) for text in below for p in PATTERNS[:3]]  # platforms' names
    tries += [(p, stem) for p in PATTERNS[3:]]
    for regexp, text in [(pattern, stem)] if pattern else tries:
        if found := re.fullmatch(regexp, text):
            yield found


def chapter_of(path: str, cells: list[dict]) -> str | None:
    """`ch02`, by the exercises in the notebook, or else by the file's name."""
    counts: dict[str, int] = {}
    for exercise in exercise_ids(cells):
        counts[exercise[:4]] = counts.get(exercise[:4], 0) + 1
    if counts:
        return max(sorted(counts), key=counts.get)
    found = re.search(r"(\d\d)_[a-z]\w*", path.rsplit("/", 1)[-1])
    return f"ch{found[1]}" if found else None


@dataclass
class Found:
    """A file of the inbox, or of an archive in it."""

    below: str  # its path, for people
    path: Path | None  # None: nothing could be read there, and `problem` says why
    who: str  # the path by which its student is known
    time: float
    problem: str = ""


def readable(name: str) -> str:
    """A file's name for a terminal and a table: no line ends, no half characters."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in name)


def files(inbox: Path, folder: Path) -> Iterator[Found]:
    """Every notebook of the inbox; archives are opened, one deep."""
    for path in sorted(inbox.rglob("*")):
        below = readable(path.relative_to(inbox).as_posix())
        if not path.is_file() or path.is_symlink():
            continue
        if ".ipynb_checkpoints" in path.parts:
            continue
        if path.suffix.lower() == ".ipynb":
            yield Found(below, path, below, path.stat().st_mtime)
        elif path.suffix.lower() == ".zip":
            yield from _members(path, below, folder)


def _members(path: Path, below: str, folder: Path) -> Iterator[Found]:
    # a student's own archive, by its number or its folder, holds that student's work,
    # whatever its folders are called; only a platform's holds a class
    own = "/" in below or any(re.fullmatch(p, below) for p in PATTERNS[:2])
    try:
        with zipfile.ZipFile(path) as archive:
            for number, member in enumerate(archive.infolist()):
                name = readable(f"{below}/{member.filename.lstrip('/')}")
                who = below if own else readable(member.filename.lstrip("/"))
                time = _time(member.date_time)
                if member.filename.lower().endswith(".zip"):
                    problem = "an archive in an archive: NOT COLLECTED"
                    yield Found(name, None, who, time, problem)
                if not member.filename.lower().endswith(".ipynb"):
                    continue
                # a name in an archive is not trusted with a place on the disk
                target = folder / f"{len(list(folder.iterdir()))}-{number}.ipynb"
                try:
                    with archive.open(member) as stream:
                        target.write_bytes(stream.read(MOST_BYTES + 1))
                except DAMAGED:  # the others in it may be whole
                    yield Found(name, None, who, time, "damaged: NOT GRADED")
                    continue
                yield Found(name, target, who, time)
    except (*DAMAGED, OSError):
        yield Found(below, None, below, 0.0, "no archive, or a damaged one: NOT GRADED")


def _time(parts: tuple[int, ...]) -> float:
    try:
        return datetime(*parts).timestamp()
    except ValueError:  # archives without times say month 0
        return 0.0


def collect(
    inbox: Path,
    chapters: list[str],
    pattern: str | None = None,
    known: Known | None = None,
) -> tuple[list[Submission], list[tuple[str, str]]]:
    """The newest file of each student and chapter, and (file, what was odd).

    Args:
        inbox: where files were put, as they came.
        chapters: the assignments of the course.
        pattern: a regular expression of one's own, with a group ``student``.
        known: who had which number in an earlier run; the new ones are added.
    """
    taken: list[Submission] = []
    odd: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for file in files(inbox, Path(folder)):
            who = identify(file.who, pattern)
            try:
                cells = read_cells(file.path) if file.path else None
            except (Unreadable, OSError) as error:
                cells, file.problem = None, f"{error}: NOT GRADED"
            if cells is None:  # it is no blank, and takes the place of nothing
                odd.append((file.below, file.problem))
                continue
            if who is None:
                note = "nobody can be read from the name: NOT COLLECTED"
                odd.append((file.below, note))
                continue
            chapter = chapter_of(file.below, cells)
            if chapter is None and len(chapters) == 1:
                chapter = chapters[0]
            if chapter not in chapters:
                note = f"of {chapter or 'no chapter that can be read'}, which is no "
                odd.append((file.below, f"{note}assignment here: NOT COLLECTED"))
                continue
            again = AGAIN.search(file.who.removesuffix(".ipynb"))
            # (archives keep times to two seconds)
            order = (file.time // 2, int(again[1]) if again else 0)
            name, lms = who.get("name", ""), who.get("lms", "")
            taken.append(
                Submission(who["student"], chapter, cells, file.below, name, lms, order)
            )
    odd += _tell_namesakes_apart(taken, {} if known is None else known)
    return _newest(taken, odd), odd


def _tell_namesakes_apart(
    submissions: list[Submission], known: Known
) -> list[tuple[str, str]]:
    """Students of one name whose numbers differ get the number into their id."""
    owners: dict[tuple[str, str], set[str]] = {}
    for (chapter, number), student in known.items():
        owners.setdefault((chapter, student), set()).add(number)
    new = [s for s in submissions if s.lms and (s.chapter, s.lms) not in known]
    for submission in new:
        key = submission.chapter, submission.student
        owners.setdefault(key, set()).add(submission.lms)
    odd = []
    for submission in submissions:
        number = submission.chapter, submission.lms
        if number in known:
            submission.student = known[number]
        elif submission.lms and len(owners[number[0], submission.student]) > 1:
            note = f"several students are called {submission.student}"
            odd.append((submission.source, f"{note}: told apart by their numbers"))
            submission.student += f"_{submission.lms}"
    for submission in new:
        known[submission.chapter, submission.lms] = submission.student
    return odd


def _newest(found: list[Submission], odd: list[tuple[str, str]]) -> list[Submission]:
    several: dict[tuple[str, str], list[Submission]] = {}
    for submission in found:
        key = submission.student, submission.chapter
        several.setdefault(key, []).append(submission)
    for all_of_one in several.values():
        all_of_one.sort(key=lambda submission: submission.order)
        for older in all_of_one[:-1]:
            odd.append((older.source, f"{all_of_one[-1].source} is taken instead"))
    return [all_of_one[-1] for all_of_one in several.values()]
