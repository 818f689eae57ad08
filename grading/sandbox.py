"""One sandbox for one submission: started fresh, asked over pipes, killed as a whole.

The confinement is bubblewrap's: processes, disk, network and users of its own, and a
small disk of memory. What the grader has to hold to itself, time, memory, the number of
processes and the size of a reply, is held to here, outside.
"""

import atexit
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 8.0  # for one exercise: its cells and all its cases
MEMORY = 2 * 2**30  # bytes above what torch itself takes
MOST_REPLY = 4 * 2**20  # bytes of one reply
MOST_PROCESSES = 64  # and threads
DISK = 32 * 2**20  # bytes of /tmp
LOOK = 0.05  # seconds between two looks at what it does
PATIENCE = 120.0  # seconds that a submission may wait for a processor
WAITS = (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)  # ready to run, or for a page
NOBODY = 65534
READY, EXERCISE_ENDED = '"ready"', '"ended"'  # lines of grading/student.py

SANDBOXES = {
    "bubblewrap": "no network, no files but Python's, processes that end with it",
    "nobody": "FOR A CLASS YOU TRUST: another user, who cannot read the course, but "
    "the model answers in this repository; network and disk as usual",
    "none": "FOR A CLASS YOU TRUST, NO SANDBOX: student code can read the model "
    "answers and the course, and write where you can. Grade in a container, or "
    "install bubblewrap",
}

# Of the repository only what calls an answer: no solution, no mistake, no test, and
# nothing of the book that an answer could ask in place of being one.
NEEDED = (
    "annotated/__init__.py",
    "annotated/checks/__init__.py",
    "annotated/checks/calling.py",
    "annotated/checks/material.py",
    "grading/__init__.py",
    "grading/plain.py",
    "grading/student.py",
)
SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache")


class Ended(Exception):
    """A sandbox that had to be stopped, or stopped by itself; ``str`` says why."""


class Sandbox:
    """A process for the code of one submission.

    Args:
        kind: a name of `SANDBOXES`.
        memory: limit in bytes for all its processes together, above what torch takes.
    """

    def __init__(self, kind: str, memory: int = MEMORY) -> None:
        prefix, options = confinement(kind)
        self.memory = memory
        environment = {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": "/tmp",
            "OMP_NUM_THREADS": "1",
            "MPLBACKEND": "Agg",
            "MPLCONFIGDIR": "/tmp",
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONPATH": str(library()),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        alone = ["--alone"] if kind == "bubblewrap" else []
        python = os.path.abspath(sys.executable)  # as typed, it may begin with ../
        self._process = subprocess.Popen(
            [*prefix, python, "-m", "grading.student", *alone],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env=environment,
            bufsize=0,
            start_new_session=True,
            **options,
        )
        os.set_blocking(self._process.stdin.fileno(), False)
        self._shared, self._own, self._threads = _shared(), 0, 0
        self._clock = self._used = 0.0
        self._looked = time.monotonic()
        self.patience = PATIENCE  # what is left of it
        self._unread = b""
        self._ready = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()

    def wait(self, seconds: float = 120.0) -> None:
        """Wait until it can be asked.

        Raises:
            Ended: if it does not start; with what it said.
        """
        if self._ready:
            return
        try:
            ready = self._line(self.clock() + seconds) == READY
        except Ended:
            ready = False
        if not ready:
            self.kill()
            words = self._process.stderr.read().decode("utf-8", "replace").strip()
            raise Ended(words.splitlines()[-1] if words else "it does not start")
        self._ready, self.patience = True, PATIENCE  # starting it was not its own doing

    def ask(self, request: dict, deadline: float) -> str:
        """Send a request; the line that came back, unread.

        Args:
            request: plain data.
            deadline: on its `clock`.

        Raises:
            Ended: if no reply comes; the sandbox is dead then. One of the keys of
                ``runner.ENDED``.
        """
        try:
            if self._unread:  # it spoke without being asked
                raise Ended("died")
            return self._line(deadline, json.dumps(request).encode() + b"\n")
        except OSError as error:
            self.kill()
            raise Ended("died") from error
        except Ended:
            self.kill()
            raise

    def _line(self, deadline: float, unsent: bytes = b"") -> str:
        """The next line, after ``unsent`` has been taken: it may never read."""
        fd, to = self._process.stdout.fileno(), self._process.stdin.fileno()
        while unsent or b"\n" not in self._unread:
            if time.monotonic() > self._looked + LOOK:  # whether it writes or not
                self._look()
                if self._ready and self._threads > MOST_PROCESSES:
                    raise Ended("processes")
                if self._ready and self._own > 2 * self.memory:
                    raise Ended("memory")
                if self._clock > deadline:
                    raise Ended("time")
            if len(self._unread) > MOST_REPLY:
                raise Ended("size")
            ready, open_, _ = select.select([fd], [to] if unsent else [], [], LOOK)
            if open_:
                unsent = unsent[os.write(to, unsent) :]
            if not ready:
                continue
            if not (more := os.read(fd, 2**16)):
                raise Ended("died")
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode("utf-8", "replace")

    def clock(self) -> float:
        """Seconds for deadlines, in which it computes or sleeps. What it waits for a
        processor does not count while it has patience, nor what this process does
        meanwhile, or waits itself."""
        self._look()
        return self._clock

    def _look(self) -> None:
        """Count what all its processes hold, as no limit of the system does, and the
        time that they have used and waited."""
        # shared memory and files in memory are nobody's own: the machine's tell
        own, threads, used, ready = _shared() - self._shared, 0, 0.0, False
        for process in self._family():
            try:
                info = process.memory_info()
                # (forks share most of their memory: what is each one's own counts)
                own += max(info.rss - getattr(info, "shared", 0), 0)
                threads += process.num_threads()
                used += sum(process.cpu_times()[:4])  # of those that ended, too
                ready |= process.status() in WAITS
            except psutil.Error:  # it ended meanwhile
                continue
        now, more = time.monotonic(), max(used - self._used, 0.0)
        passed = now - self._looked
        rest = min(max(passed - more, 0.0), 2 * LOOK)
        waited = min(rest, self.patience) if ready else 0.0
        self.patience -= waited
        self._clock += min(more, passed) + rest - waited
        self._looked, self._used = now, self._used + more
        self._own, self._threads = own, threads

    def _family(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self._process.pid).children(recursive=True)
        except psutil.Error:
            return []

    def kill(self) -> None:
        """End it, with all that it started."""
        if self._process.poll() is None:
            # bubblewrap's first process inside takes all others with it, but not
            # surely ends with bubblewrap: student code can write into its memory
            for process in self._family():
                with contextlib.suppress(psutil.Error):
                    process.kill()
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


def _shared() -> int:
    """Bytes of shared memory on this machine; 0 where the system does not say."""
    return getattr(psutil.virtual_memory(), "shared", 0)


def confinement(kind: str) -> tuple[list[str], dict]:
    """What stands before the command, and options of the process.

    Raises:
        Ended: if there is no such sandbox here.
    """
    if kind == "none":
        return [], {}
    if kind == "nobody":
        if os.getuid() != 0:
            raise Ended("only root can become another user")
        return [], {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise Ended("bwrap is not installed")
    if folder := readable_by_students(ROOT):
        raise Ended(
            f"student code could read {ROOT}, below {folder}: move it elsewhere"
        )
    prefix = [bwrap, "--unshare-all", "--unshare-user", "--disable-userns"]
    prefix += ["--uid", str(NOBODY), "--gid", str(NOBODY), "--cap-drop", "ALL"]
    prefix += ["--die-with-parent", "--new-session", "--dev", "/dev", "--proc", "/proc"]
    prefix += ["--size", str(DISK), "--tmpfs", "/tmp"]
    for path in SYSTEM:
        prefix += ["--ro-bind-try", path, path]
    for path in (*python_folders(), library()):
        prefix += ["--ro-bind", str(path), str(path)]
    for path in installed_books():
        prefix += ["--tmpfs", str(path)]
    # (what bubblewrap makes for itself has no limit of size: nothing is written there)
    prefix += ["--remount-ro", "/dev", "--remount-ro", "/"]
    return [*prefix, "--chdir", "/tmp"], {}


@cache
def library() -> Path:
    """A folder that holds `NEEDED` and nothing else, readable for every user."""
    folder = Path(tempfile.mkdtemp(prefix="grading-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in NEEDED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    return folder


def python_folders() -> list[Path]:
    """Where Python and its packages lie."""
    found = {Path(sys.prefix), Path(sys.base_prefix)}
    return sorted(found | {path.resolve() for path in found})


def installed_books() -> list[Path]:
    """Packages `annotated` that somebody has installed where student code can read."""
    folders = {Path(entry).resolve() for entry in sys.path if entry}
    for start in ("/usr/lib", "/usr/local/lib"):
        folders |= set(Path(start).glob("python3*/*-packages"))
    found = {folder / "annotated" for folder in folders - {ROOT}}
    return sorted(path for path in found if (path / "checks").is_dir())


def readable_by_students(path: Path) -> Path | None:
    """The folder that bubblewrap shows to student code and a path lies in, if any."""
    shown = [Path(folder).resolve() for folder in (*SYSTEM, *python_folders())]
    return next((f for f in shown if path.resolve().is_relative_to(f)), None)
