"""What runs beside student code, inside the sandbox: `python -m grading.student`.

Requests come on standard input and replies go to standard output, a line of JSON each,
one at a time. This process imports torch once. For each exercise it forks, and the fork
defines the answer and calls it with one case's arguments after the other: the process
holds no right answer, no mistake and no judge, so there is nothing to find in it, and
nothing to gain by forging a reply.
"""

import ast
import asyncio
import ctypes
import gc
import json
import linecache
import math
import os
import platform
import re
import resource
import signal
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from pkgutil import resolve_name
from types import CodeType
from typing import Any

import torch
from IPython.core.inputtransformer2 import TransformerManager
from torch import nn

from annotated.checks.calling import Function, Problem, Raised, call, mapped
from annotated.checks.material import ReadyMade
from grading import plain

SECONDS = 1.5  # of computing, for a statement above the answer; twice of waiting
AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # as a notebook does
MOST_FILE = 16 * 2**20  # bytes of a file that it writes

# What exercises use is loaded before the fork, so that no exercise waits for it.
PRELOAD = ("math", "numpy")


def untimed(source: str) -> str:
    """A cell without the commands that run it, or one line of it, and do no more."""
    source = re.sub(r"\A\s*%%(?:time|capture)\b.*\n", "", source)
    return re.sub(r"^([ \t]*)%time[ \t]+(?=\S)", r"\1", source, flags=re.M)


class NoShell:
    """Stands in for IPython's shell: a magic command does nothing but write a file, or
    run one that was written."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace

    def run_cell_magic(self, name: str, line: str, body: str) -> None:
        if name in ("writefile", "file"):
            *options, path = line.split()
            mode = "a" if {"-a", "--append"} & set(options) else "w"
            with open(path, mode, encoding="utf-8") as stream:
                stream.write(body)

    def run_line_magic(self, name: str, line: str, *_: object) -> None:
        if name == "run":
            path = Path(line.split()[-1])
            exec(compile(path.read_text("utf-8"), path, "exec"), self.namespace)

    def __getattr__(self, name: str):
        return lambda *arguments, **options: None


class TooLong(BaseException):
    """What no `except Exception` of a cell catches."""


def clock() -> float:
    """Seconds, less those that this process has waited for a processor (on Linux)."""
    try:
        waited = int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        waited = 0.0
    return time.monotonic() - waited


def nothing(*arguments: object, **options: object) -> None:
    """What `check` and `display` do here."""


class Cells:
    """Runs cells in one namespace, as a notebook does, but a statement that raises or
    does not end costs only itself: it may need a network, a file or a screen."""

    def __init__(self) -> None:
        self.namespace = {
            "__name__": "__main__",
            "device": torch.device("cpu"),  # what the setup cell defines
            "check": nothing,
            "display": nothing,
        }
        self.namespace["get_ipython"] = lambda: NoShell(self.namespace)
        self._futures: list[ast.stmt] = []  # IPython keeps them from cell to cell
        self._until = math.inf
        signal.signal(signal.SIGALRM, self._too_long)
        signal.signal(signal.SIGPROF, self._too_long)

    def _too_long(self, number: int, _: object) -> None:
        if number == signal.SIGPROF or clock() > self._until:
            raise TooLong

    def _statements(self, source: str) -> Iterator[CodeType]:
        name = f"<cell {len(linecache.cache)}>"
        code = TransformerManager().transform_cell(untimed(source))
        linecache.cache[name] = len(code), None, code.splitlines(True), name
        for node in ast.parse(code).body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                self._futures.append(node)
            yield compile(ast.Module([*self._futures, node], []), name, "exec", AWAIT)

    def run(
        self, source: str, skip: Collection[int] = (), ends: float = math.inf
    ) -> tuple[str | None, list[int]]:
        """Run a cell.

        Args:
            source: its text.
            skip: numbers of statements that are known not to end.
            ends: on the `clock`, when only a moment is left for each statement;
                without it, a statement has no limit.

        Returns:
            The kind of the first exception that was raised, if any, and the numbers of
            the statements that did not end.
        """
        problem, left = None, []
        try:
            for number, code in enumerate(self._statements(source)):
                if number in skip:
                    continue
                begun = clock()
                limit = max(min(SECONDS, ends - begun), 0.1)
                self._until = begun + 1.9 * limit
                limit = 0 if ends == math.inf else limit
                try:
                    # again and again: a bare `except` may catch the first
                    signal.setitimer(signal.ITIMER_PROF, limit, limit)
                    signal.setitimer(signal.ITIMER_REAL, 2 * limit, limit)
                    if waits := eval(code, self.namespace):
                        asyncio.run(waits)
                    _no_limit()
                except TooLong:
                    _no_limit()
                    left.append(number)
                except BaseException as error:  # SystemExit and the like included
                    _no_limit()
                    problem = problem or type(error).__name__
        except Exception as error:  # it is no Python
            problem = type(error).__name__
        return problem, left


def _no_limit() -> None:
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)


def without_attention() -> torch.library.Library:
    """Take PyTorch's own attention out of this process, for all its threads and under
    all its names; it is back when the library that is returned is no more."""

    def ready_made(*arguments: object, **options: object) -> None:
        raise ReadyMade

    library = torch.library.Library("aten", "IMPL")
    for name in torch._C._dispatch_get_all_op_names():
        space, _, name = name.partition("::")
        attends = "attention" in name or "transformer_encoder" in name
        if space == "aten" and attends and "backward" not in name:
            for key in (
                "CompositeImplicitAutograd", "CPU", "AutogradCPU", "FuncTorchBatched",
            ):  # fmt: skip
                library.impl(name, ready_made, key)
    nn.functional.multi_head_attention_forward = ready_made
    for module in ("torch.nn.attention", "torch._higher_order_ops"):
        sys.modules[f"{module}.flex_attention"] = None
    return library


def forget_names() -> None:
    """Forget what calls answers: one that imports it, to change it, gets a copy."""
    for name in list(sys.modules):
        if name.partition(".")[0] in ("annotated", "grading"):
            del sys.modules[name]


def reply_to(request: dict, answer: Any, through: Any) -> str:
    """Call the answer with one case's arguments; the result as JSON."""
    arguments = plain.load_arguments(request["arguments"])
    seed, gradients = request["seed"], request["gradients"]
    called = call(answer, arguments, gradients, through, seed=seed)
    # a function among the arguments comes back as its text
    after = mapped(
        lambda v: v.expression if isinstance(v, Function) else v, called.after
    )
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


def leave_keyrings() -> None:
    """Begin a session of the kernel's keyrings. They are in no namespace: the login's
    holds its keys, and what one submission wrote there, the next could read."""
    keyctl = {"x86_64": 250, "aarch64": 219}.get(platform.machine())
    if keyctl and sys.platform == "linux":
        ctypes.CDLL(None).syscall(keyctl, 1, None)  # KEYCTL_JOIN_SESSION_KEYRING


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
    """One exercise, in the fork: what stands above the answer, the answer, what stands
    between it and its check, and a reply a case."""
    confine(job["spare"] + 2 * job["seconds"], job["memory"])
    kept = without_attention() if job["written_out"] else None  # noqa: F841
    through = job["through"] and resolve_name(job["through"])
    forget_names()
    torch.manual_seed(0)
    cells, name, answer, request = Cells(), job["function"], None, job
    while request:
        if "cells" in request:
            ends = clock() + request["spare"]
            pairs = zip(request["cells"], request["skip"], strict=True)
            reply = plain.dumps([cells.run(*pair, ends)[1] for pair in pairs])
            _no_limit()
            if answer is not None:  # experiments may have taken its name
                cells.namespace[name] = answer
        elif "answer" in request:
            problem, _ = cells.run(request["answer"])
            answer = cells.namespace.get(name)
            reply = plain.dumps([answer is not None, problem])
        else:
            reply = reply_to(request, answer, through)
        lines.write(reply)
        request = lines.read()


def main() -> None:
    lines, alone = Lines(), "--alone" in sys.argv
    leave_keyrings()
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
