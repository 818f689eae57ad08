"""Find who handed in what, under whatever name a learning platform gave the file."""

import re
import signal
import unicodedata
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from grading.normalise import MOST_BYTES, Unreadable, exercise_ids, read_cells
from tools.exercises import sources

STEM = "|".join(path.stem for path in sources())  # what the book's notebooks are called

# Tried in this order on the path below the inbox, `/` between folders. `student` is the
# id, `name` what people read, `lms` the platform's own number. Of the platforms' names,
# the uppermost counts: what lies below it a student may have called like a classmate's.
PATTERNS = [
    # Moodle, one file: Ada Lovelace_4711_assignsubmission_file_02_self_attention.ipynb
    # and with folders: Ada Lovelace_4711_assignsubmission_file/02_self_attention.ipynb
    # (Moodle 3: …_file_/…)
    r"(?P<name>[^/_]+)_(?P<lms>\d+)_assignsubmission_(?:file|onlinetext)[_/].*",
    # Canvas: lovelaceada_4711_88001_02_self_attention-1.ipynb, late: …ada_LATE_4711_…
    # (a name has a letter, and Canvas's numbers are long: no date, no hw2_11_22_ada)
    r"(?P<student>[^/_]*[^\W\d_][^/_]*)_(?:LATE_)?(?P<lms>[1-9]\d{2,})_"
    r"(?P<upload>[1-9]\d{4,})_(?P<rest>[^/]*?)(?: ?\(\d+\))?(?:/.*)?",
    # GitHub Classroom: ch02-ada/notebooks/exercises/02_self_attention.ipynb
    r"ch\d\d-(?P<student>[^/]+)/.*",
    # one folder a student, as in nbgrader: ada/ch02/02_self_attention.ipynb
    r"(?P<student>[^/]+)/(?:.*/)?[^/]*",
    # 02_self_attention_ada.ipynb
    rf"(?:Copy[_ ]of[_ ])?(?:{STEM})[ _-]+(?P<student>.*[^\W\d_].*?)(?: ?\(\d+\))?",
    # ada.ipynb, ada_02_self_attention.ipynb, "ada - Copy of 02_self_attention.ipynb"
    rf"(?P<student>.+?)(?:[ _-]+(?:Copy[_ ]of[_ ])?(?:{STEM})(?:-\d+)?)?(?: ?\(\d+\))?",
]
GENERIC = re.compile(r"(copy)?_?(of)?_?(\d\d_[a-z0-9_-]+|untitled\d*|copy\d*)?")
AGAIN = re.compile(r"-(\d+)$")  # Canvas numbers attempts; a browser's "(2)" means less
STEP = 120.0  # seconds for a step of the grader's own, about what a student wrote
MOST_NAME = 300  # letters of a path
MOST_MEMBERS = 20_000  # of an archive; of these so many notebooks, with so many bytes
LARGEST_CLASS = 5_000, 500 * 2**20
LARGEST_STUDENT = 100, 5 * MOST_BYTES

# (assignment, number that the platform gives) -> student. Moodle's number is of one
# assignment; others' are a person's, and stand there without an assignment.
Known = dict[tuple[str, str], str]


@dataclass
class Submission:
    """One file of one student for one chapter."""

    student: str
    chapter: str
    cells: list[dict]
    source: str  # the path below the inbox
    called: str  # its student's name as it stands there
    below: bool = False  # was that read in a folder, not at the path's beginning?
    name: str = ""
    lms: str = ""
    upload: tuple[str, str] = "", ""  # Canvas's number of the file, and its name
    order: tuple = ()  # of time and attempt: the last one counts
    time: float = 0.0  # of the file; 0 if it has none

    @property
    def number(self) -> tuple[str, str]:
        """The key of `Known`. (Only Moodle tells a name beside the number.)"""
        return self.chapter if self.name else "", self.lms


@contextmanager
def limited(seconds: float = STEP) -> Iterator[None]:
    """A TimeoutError after so many seconds of computing, in the main thread. (On a
    busy machine a step of one second may have to wait for minutes.)"""

    def stop(*_: object) -> None:
        raise TimeoutError(f"it takes longer than {seconds:.0f} seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def student_id(text: str) -> str:
    """An id that is safe as a folder's name and in a spreadsheet."""
    text = unicodedata.normalize("NFC", text)  # archives of a Mac take letters apart
    return re.sub(r"[^\w.@-]+", "_", text.strip()).strip("-.@_")[:60].lower()


def identify(path: str, pattern: str | None = None) -> dict[str, str] | None:
    """Who handed in a file, by its path below the inbox; None if nobody can be read."""
    stem = re.sub(r"\.ipynb$", "", path, flags=re.I)
    for found in _matches(stem, pattern):
        parts = {key: value or "" for key, value in found.groupdict().items()}
        parts["below"] = "below" if found.string != stem else ""
        parts["called"] = parts.get("student") or parts.get("name", "")
        parts["student"] = student_id(parts["called"])
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
    data: bytes | None  # None: nothing could be read there, and `problem` says why
    who: str  # the path by which its student is known
    time: float = 0.0
    problem: str = ""
    other: bool = False  # is it no notebook, though there may be one beside it?


def readable(name: str) -> str:
    """A file's name for a terminal and a table: no line ends, no half characters; their
    numbers stand for them, so that two names stay two."""
    letters = (x if x.isprintable() else f"%{ord(x):X}" for x in name)
    return "".join(letters)


def files(inbox: Path) -> Iterator[Found]:
    """Every file of the inbox; archives are opened, one deep."""
    for path in sorted(inbox.rglob("*")):
        parts = path.relative_to(inbox).parts
        below = readable("/".join(parts))
        if not path.is_file() or path.is_symlink() or _hidden(parts):
            continue
        if path.suffix.lower() == ".zip":
            yield from _members(path, below)
        elif path.suffix.lower() != ".ipynb":
            yield _no_notebook(below, below)
        else:
            try:
                with path.open("rb") as stream:
                    data = stream.read(MOST_BYTES + 1)
            except OSError as error:
                problem = f"{type(error).__name__}: NOT GRADED"
                yield Found(below, None, below, problem=problem)
            else:
                yield Found(below, data, below, path.stat().st_mtime)


def _hidden(parts: tuple[str, ...]) -> bool:
    """Is it what a system leaves behind, in a folder or an archive?"""
    left = r"\.[^.]|__MACOSX$|Thumbs\.db$|desktop\.ini$"
    return any(re.match(left, part) for part in parts)


def _no_notebook(below: str, who: str) -> Found:
    return Found(below, None, who, problem="no notebook: NOT COLLECTED", other=True)


def _members(path: Path, below: str) -> Iterator[Found]:
    """The files of an archive; none is written to a disk."""
    # a student's own archive, by its number or its folder, holds that student's work,
    # whatever its folders are called; only a platform's holds a class
    own = "/" in below or any(re.fullmatch(p, below) for p in PATTERNS[:2])
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if not m.is_dir()]
            if too_large := _too_large(members, own):
                yield Found(below, None, below, problem=f"{too_large}: NOT COLLECTED")
                return
            if not members:
                yield _no_notebook(below, below)
            for member in members:
                inside = readable(member.filename.lstrip("/"))
                name, who = f"{below}/{inside}"[:MOST_NAME], below if own else inside
                time, suffix = _time(member.date_time), Path(inside).suffix.lower()
                if _hidden(tuple(inside.split("/"))):
                    continue
                if len(inside) > MOST_NAME:
                    yield Found(name, None, "", problem="a long name: NOT COLLECTED")
                elif suffix == ".zip":
                    problem = "an archive in an archive: NOT COLLECTED"
                    yield Found(name, None, who, problem=problem)
                elif suffix != ".ipynb":
                    yield _no_notebook(name, who)
                else:
                    try:
                        with archive.open(member) as stream:
                            data = stream.read(MOST_BYTES + 1)
                    except Exception:  # of any decompressor; others may be whole
                        yield Found(name, None, who, problem="damaged: NOT GRADED")
                    else:
                        yield Found(name, data, who, time)
    except Exception:  # whatever zipfile raises over bytes that are not as they were
        problem = "no archive, or a damaged one: NOT GRADED"
        yield Found(below, None, below, problem=problem)


def _too_large(members: list[zipfile.ZipInfo], own: bool) -> str | None:
    """Why an archive is not opened; by what it says of itself, which limits it."""
    most, most_bytes = LARGEST_STUDENT if own else LARGEST_CLASS
    if len(members) > MOST_MEMBERS:
        return f"more than {MOST_MEMBERS} files"
    sizes = [m.file_size for m in members if m.filename.lower().endswith(".ipynb")]
    if len(sizes) > most:
        return f"more than {most} notebooks"
    if sum(sizes) > most_bytes:
        return f"notebooks of more than {most_bytes // 2**20} MB in all"
    return None


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
    others: dict[tuple[str, str], list[Found]] = {}  # no notebooks
    places: set[tuple[str, str]] = set()
    for file in files(inbox):
        who = identify(file.who, pattern)
        place = file.below.split("/")[0], who["student"] if who else ""
        if file.other:
            others.setdefault(place, []).append(file)
            continue
        try:
            with limited():
                cells = read_cells(file.data) if file.data is not None else None
        except Unreadable as error:
            cells, file.problem = None, f"{error}: NOT GRADED"
        except Exception as error:  # whatever a student can think of
            cells, file.problem = None, f"{type(error).__name__}: NOT GRADED"
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
        again = AGAIN.search(Path(file.who).stem)
        # (archives keep times to two seconds)
        order = (file.time // 2, int(again[1]) if again else 0)
        called, name, lms = (who.get(key, "") for key in ("called", "name", "lms"))
        upload = who.get("upload", ""), who.get("rest", "")
        taken.append(
            Submission(
                who["student"], chapter, cells, file.below, called, bool(who["below"]),
                name, lms, upload, order, file.time,
            )
        )  # fmt: skip
        places.add(place)
    for place, found in others.items():
        if place not in places:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            odd.append((found[0].below, found[0].problem + more))
    odd += _tell_namesakes_apart(taken, {} if known is None else known)
    return _one_each(taken, odd), odd


def _tell_namesakes_apart(
    submissions: list[Submission], known: Known
) -> list[tuple[str, str]]:
    """Students of one name whose numbers differ get the number into their id."""
    owners: dict[tuple[str, str], set[str]] = {}
    for (scope, number), student in known.items():
        name = student.removesuffix(f"_{number}")
        owners.setdefault((scope, name), set()).add(number)
    new = [s for s in submissions if s.lms and s.number not in known]
    for submission in new:
        key = submission.number[0], submission.student
        owners.setdefault(key, set()).add(submission.lms)
    shared = {name for (_, name), numbers in owners.items() if len(numbers) > 1}
    odd = []
    for submission in submissions:
        name = submission.student
        numbered = f"{name}_{submission.lms}"
        if submission.number in known:
            submission.student = known[submission.number]
        elif submission.lms and name in shared:
            submission.student = numbered
        if submission.student == numbered:  # said each time, not in the first run alone
            note = f"several students are called {name}: told apart by their numbers"
            if submission.name:
                note += ", which are others in each assignment"
            odd.append((submission.source, note))
    for submission in new:
        known[submission.number] = submission.student
    return odd


def _one_each(found: list[Submission], odd: list[tuple[str, str]]) -> list[Submission]:
    """The newest of those that are surely one student's."""
    several: dict[tuple[str, str], list[Submission]] = {}
    for submission in found:
        key = submission.student, submission.chapter
        several.setdefault(key, []).append(submission)
    chosen = []
    for (student, _), files in several.items():
        # what came by a platform, with a number, no plain file replaces
        rests: dict[str, set[str]] = {}
        for upload, rest in (s.upload for s in files):
            rests.setdefault(upload, set()).add(rest)
        # (and Canvas gives no number to two files: hw2_11_22_ada, hw2_11_22_bert)
        sure = [s for s in files if s.lms and len(rests[s.upload[0]]) == 1]
        # (a browser numbers what comes again, but people number a class, too)
        again = re.compile(r"\(\d+\)\.ipynb", re.I)
        once = len(files) == 1 or not all(again.search(s.source) for s in files)
        one = once and len({s.called for s in files}) == 1
        if one and not any(s.lms for s in files):
            sure = files
        if own := [s.cells for s in sure if not s.below]:  # a folder may be another's
            sure = [s for s in sure if not s.below or s.cells in own]
        whose = f"whether {student} is one student can't be told (rename the file)"
        if sure:
            name = sure[0].source
            whose = f"can't be told from {name} (if it is theirs, name it like that)"
        for unsure in files:
            if unsure not in sure:
                odd.append((unsure.source, f"{whose}: NOT COLLECTED"))
        sure.sort(key=lambda submission: submission.order)
        for older in sure[:-1]:
            if older.cells != sure[-1].cells:  # a platform gives the same again
                odd.append((older.source, f"{sure[-1].source} is taken instead"))
        for newest in sure[-1:]:  # of what is given again, the first time counts
            times = [s.time for s in sure if s.time and s.cells == newest.cells]
            newest.time = min(times, default=0.0)
            chosen.append(newest)
    return chosen
