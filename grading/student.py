"""What runs beside student code, inside the sandbox: `python -m grading.student`.

Requests come on standard input and replies go to standard output, a line of JSON each,
one at a time. This process imports torch once. For each exercise it forks, and the fork
defines the answer and calls it with one case's arguments after the other: the process
holds no right answer, no mistake and no judge, so there is nothing to find in it, and
nothing to gain by forging a reply.
"""

import gc
import json
import linecache
import os
import re
import resource
import signal
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import torch
from IPython.core.inputtransformer2 import TransformerManager

from annotated.checks.calling import Function, Problem, Raised, call, mapped
from grading import plain

SECONDS_A_CELL = 1.5  # for a cell that is not the answer
TIMED = re.compile(r"\A\s*%%(time|capture)\b.*\n")  # commands that run their cell
MOST_FILE = 16 * 2**20  # bytes of a file that it writes

# What exercises use is loaded before the fork, so that no exercise waits for it.
PRELOAD = ("math", "numpy", "annotated.checks.material")


class NoShell:
    """Stands in for IPython's shell: a magic command does nothing but write a file."""

    def run_cell_magic(self, name: str, line: str, body: str) -> None:
        if name == "writefile":
            Path(line.split()[-1]).write_text(body, encoding="utf-8")

    def __getattr__(self, name: str):
        return lambda *arguments, **options: None


class TooLong(BaseException):
    """What no `except Exception` of a cell catches."""


def too_long(*_: object) -> None:
    raise TooLong


def define(sources: list[str], function: str) -> tuple[Any, str | None, list[int]]:
    """Run cells, the answer's last.

    A cell that raises after its `def` has still defined it, as in a notebook, and one
    that does not end is left.

    Returns:
        What is then called ``function``, the kind of exception that the last cell
        raised, if any, and the numbers of the cells that were left.
    """
    namespace = {
        "__name__": "__main__",
        "device": torch.device("cpu"),  # what the setup cell defines
        "get_ipython": NoShell,
    }
    signal.signal(signal.SIGALRM, too_long)
    problem, left = None, []
    for number, source in enumerate(sources):
        name, problem = f"<cell {number}>", None
        last = number == len(sources) - 1  # which has the time of the whole exercise
        signal.setitimer(signal.ITIMER_REAL, 0 if last else SECONDS_A_CELL)
        try:
            code = TransformerManager().transform_cell(TIMED.sub("", source))
            linecache.cache[name] = len(code), None, code.splitlines(True), name
            exec(compile(code, name, "exec"), namespace)
        except TooLong:
            left.append(number)
        except BaseException as error:  # SystemExit and the like included
            problem = type(error).__name__
    return namespace.get(function), problem, left


def reply_to(request: dict, answer: Any) -> str:
    """Call the answer with one case's arguments; the result as JSON."""
    arguments = plain.load_arguments(request["arguments"])
    through = request["through"] and resolve_name(request["through"])
    called = call(answer, arguments, request["gradients"], through)
    # a function among the arguments comes back as its text
    after = mapped(lambda v: repr(v) if isinstance(v, Function) else v, called.after)
    result = called.result
    if isinstance(result, Raised):  # not its words, they could be anything: the numbers
        numbers = re.findall(r"-?\d+", result.message)
        result = Raised(result.kind, result.message and f"… {' '.join(numbers)}")
    try:
        return plain.dumps([result, after])
    except Exception:  # tensors without values, results without an end
        return plain.dumps([Problem("not plain"), ()])


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


class Lines:
    """Requests and replies, unbuffered: a fork goes on where this process stopped."""

    def __init__(self) -> None:
        self.requests, self.replies = os.dup(0), os.dup(1)
        self.silence(0, 1)

    @staticmethod
    def silence(*fds: int) -> None:
        """Whatever is printed has no reader."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in fds:
            os.dup2(nowhere, fd)

    def read(self) -> dict | None:
        line = b""
        while not line.endswith(b"\n"):
            more = os.read(self.requests, 2**16)
            if not more:
                return None
            line += more
        return json.loads(line)

    def write(self, text: str) -> None:
        data = text.encode() + b"\n"
        while data:
            data = data[os.write(self.replies, data) :]


def exercise(job: dict, lines: Lines) -> None:
    """One exercise, in the fork: define the answer, then a reply for each case."""
    confine(job["seconds"], job["memory"])
    torch.manual_seed(0)
    answer, problem, left = define(job["cells"], job["function"])
    lines.write(plain.dumps([answer is not None, problem, left]))
    while (request := lines.read()) and "arguments" in request:
        lines.write(reply_to(request, answer))


def main() -> None:
    lines, alone = Lines(), "--alone" in sys.argv
    for name in PRELOAD:
        __import__(name)
    torch.set_num_threads(1)
    gc.freeze()
    lines.silence(2)
    lines.write('"ready"')
    while job := lines.read():
        pid = os.fork()
        if pid == 0:
            try:
                exercise(job, lines)
            finally:
                os._exit(0)  # never back into this loop
        os.waitpid(pid, 0)
        if alone:  # in a process namespace of its own: what the fork left behind
            try:
                os.kill(-1, signal.SIGKILL)
            except ProcessLookupError:
                pid = 0  # nothing was
        lines.write('"ended"')


if __name__ == "__main__":
    main()
