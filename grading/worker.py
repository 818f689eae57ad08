"""Calls answers, each exercise in a process of its own: `python -m grading.worker`.

This process imports torch once and never runs student code: it forks, and the child
runs it. Jobs come on standard input, replies go to standard output, as frames of a
length and JSON. A reply holds results and no verdicts: judging is done elsewhere, so
there is nothing to gain by forging one.
"""

import io
import json
import linecache
import os
import resource
import selectors
import shutil
import signal
import struct
import sys
import tempfile
import time
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, BinaryIO

import torch
from IPython.core.inputtransformer2 import TransformerManager

from annotated.checks import Call, Function, call
from grading import plain

MOST_RESULT = 64 * 2**20  # bytes that a child may send back
MOST_KEPT = 2000  # bytes of what it prints that are kept
MOST_FILE = 16 * 2**20  # bytes of a file that it writes

# What exercises use is loaded before the fork, so that no child waits for it.
PRELOAD = ("math", "numpy", "matplotlib.pyplot", "annotated.checks", "annotated.masks")


def write_frame(stream: BinaryIO, value: Any) -> None:
    data = json.dumps(value).encode()
    stream.write(struct.pack("!Q", len(data)) + data)
    stream.flush()


def read_frame(stream: BinaryIO) -> Any:
    """The next frame, or None at the end."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    [size] = struct.unpack("!Q", head)
    return json.loads(stream.read(size))


class NoShell:
    """Stands in for IPython's shell: a magic command in an answer does nothing."""

    def __getattr__(self, name: str):
        return lambda *arguments, **options: None


def define(sources: list[str], namespace: dict) -> str | None:
    """Run cells; the first line of what went wrong in the last of them, or None.

    A cell that raises after its `def` has still defined it, as in a notebook.
    """
    problem = None
    for number, source in enumerate(sources):
        name, problem = f"<cell {number}>", None
        try:
            code = TransformerManager().transform_cell(source)
            linecache.cache[name] = len(code), None, code.splitlines(True), name
            exec(compile(code, name, "exec"), namespace)
        except SystemExit:
            problem = "your cell ends the program: no exit() here, please"
        except SyntaxError as error:
            problem = f"your cell is not Python, in line {error.lineno}: {error.msg}"
        except Exception as error:
            problem = f"your cell raised {type(error).__name__}: {error}"[:300]
    return problem


def without_functions(value: Any) -> Any:
    """Arguments as they are sent back: of a function, in a dict or not, a text."""
    if isinstance(value, Function):
        return repr(value)
    if isinstance(value, list | tuple):
        return type(value)(without_functions(item) for item in value)
    if isinstance(value, dict):
        return {key: without_functions(item) for key, item in value.items()}
    return value


def sent(called: Call) -> str:
    """A call as JSON; one that is not plain becomes a problem."""
    try:
        after = without_functions(called.after)
        return plain.dumps([called.result, after, called.problem])
    except (plain.NotPlain, RecursionError) as error:
        return plain.dumps([None, (), f"the result: {error}"])


def child(job: dict, out: int) -> None:
    """Define the answer, call it, and send what came of it; runs in the fork."""
    namespace = {
        "__name__": "__main__",
        "device": torch.device("cpu"),  # what the setup cell defines
        "get_ipython": NoShell,
    }
    torch.manual_seed(0)
    # before student code runs, so that it cannot put another in its place
    through = [c["through"] and resolve_name(c["through"]) for c in job["calls"]]
    problem = define(job["cells"], namespace)
    answer = namespace.get(job["function"])
    with io.FileIO(out, "w", closefd=False) as pipe:
        for case, way in zip(job["calls"], through, strict=True):
            if answer is None:
                missing = f"there is no function {job['function']}"
                called = Call(None, (), problem or missing)
            else:
                arguments = plain.load_arguments(case["arguments"])
                called = call(answer, arguments, case["gradients"], way)
            data = sent(called).encode() + b"\n"
            while data:
                data = data[pipe.write(data) :]


def confine(seconds: float, memory: int) -> None:
    """Limits of this process and what it starts."""
    limits = {
        resource.RLIMIT_CPU: int(seconds) + 2,
        resource.RLIMIT_FSIZE: MOST_FILE,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 256,
    }
    pages = Path("/proc/self/statm")
    if pages.exists():  # Linux; elsewhere the system does not hold to this limit
        in_use = int(pages.read_text().split()[0]) * resource.getpagesize()
        limits[resource.RLIMIT_AS] = in_use + memory
    for kind, limit in limits.items():
        _, hard = resource.getrlimit(kind)
        least = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (least, least))


def start_child(job: dict, folder: str, out: int, printed: int) -> None:
    """Everything between the fork and the end of the child; does not return."""
    status = 1
    try:
        os.setsid()  # one group, killed as one
        silence = os.open(os.devnull, os.O_RDWR)
        os.dup2(silence, 0)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        os.dup2(out, 3)
        os.closerange(4, 1024)
        os.chdir(folder)
        sys.stdin = open(0, closefd=False)
        sys.stdout = open(1, "w", closefd=False, errors="replace")
        sys.stderr = open(2, "w", closefd=False, errors="replace")
        confine(job["seconds"], job["memory"])
        child(job, 3)
        sys.stdout.flush()
        status = 0
    finally:
        os._exit(status)  # never back into the loop of the parent


def drain(fd: int) -> bytes | None:
    """What is there to read now; b"" where nothing is, None at the end."""
    try:
        return os.read(fd, 2**16) or None
    except BlockingIOError:
        return b""


def supervise(job: dict) -> dict:
    """Fork for one job, hold it to its limits, and return what it sent."""
    folder = tempfile.mkdtemp(prefix="answer-")
    (result, out), (output, printed) = os.pipe(), os.pipe()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        start_child(job, folder, out, printed)
    os.close(out)
    os.close(printed)
    received, kept, count, ended = bytearray(), bytearray(), 0, None
    open_ends = {result, output}
    with selectors.DefaultSelector() as selector:
        for fd in open_ends:
            os.set_blocking(fd, False)
            selector.register(fd, selectors.EVENT_READ)
        while open_ends and ended is None:
            for key, _ in selector.select(0.02):
                data = drain(key.fd)
                if data is None:
                    selector.unregister(key.fd)
                    open_ends.discard(key.fd)
                elif key.fd == result:
                    received += data
                else:
                    count += len(data)
                    kept += data[: MOST_KEPT - len(kept)]
            if time.monotonic() - started > job["seconds"]:
                ended = "time"
            elif len(received) > MOST_RESULT:
                ended = "size"
            elif os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                break  # what it started may hold the pipes open
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:  # it had not become a group of its own yet
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    while len(received) <= MOST_RESULT and (data := drain(result)):
        received += data
    os.close(result)
    os.close(output)
    shutil.rmtree(folder, ignore_errors=True)
    if ended is None:
        ended = "done" if status == 0 else "died"
    lines = bytes(received).decode("utf-8", "replace").split("\n")
    return {
        "ended": ended,
        "calls": lines[:-1][: len(job["calls"])],
        "printed": count,
        "output": bytes(kept).decode("utf-8", "replace"),
        "seconds": round(time.monotonic() - started, 2),
    }


def main() -> None:
    jobs = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    silence = os.open(os.devnull, os.O_RDWR)
    os.dup2(silence, 0)
    os.dup2(silence, 1)  # nothing that an import prints may come between the frames
    for name in PRELOAD:
        __import__(name)
    torch.set_num_threads(1)
    write_frame(replies, "ready")
    while (job := read_frame(jobs)) is not None:
        write_frame(replies, supervise(job))


if __name__ == "__main__":
    main()
