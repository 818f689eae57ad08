"""Runs an answer in a process apart and judges its results here.

Student code shares no process with the judges, and none with another exercise. How far
the process is kept from the rest of the machine is a matter of the sandbox, which
`Runner` chooses and names.
"""

import json
import os
import select
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotated.checks import NOT_DONE, Call, Case, Function, verdict
from grading import plain
from grading.worker import MOST_RESULT, write_frame

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 8.0  # for one exercise: its cells and all its tests
MEMORY = 2 * 2**30  # bytes above what torch itself takes
MUCH_OUTPUT = 100_000  # bytes printed: worth a line in the report
NOBODY = 65534

SANDBOXES = {
    "bubblewrap": "no network, a read-only disk without the course, no other processes",
    "nobody": "another user, who cannot read the course; network and disk as usual",
    "none": "NO SANDBOX: student code can read the course and write where you can. "
    "Grade in a container, or install bubblewrap",
}

ENDED = {
    "time": "your code takes longer than {seconds:.0f} seconds (an endless loop?)",
    "size": "your result is too large",
    "died": "your code ended its process before it gave a result",
    "lost": "your code ended the process that runs it",
}


@dataclass
class Outcome:
    """What one exercise of one submission came to.

    `failures` maps the number of each failed case to its hint; `odd` is for the report;
    `ended` says why no more could be tried, where the process did not come to its end.
    """

    failures: dict[int, str] = field(default_factory=dict)
    odd: list[str] = field(default_factory=list)
    seconds: float = 0.0
    printed: int = 0
    ended: str | None = None


class RunnerError(RuntimeError):
    """The worker cannot be started: the installation is at fault, no student."""


class Runner:
    """Runs answers in forks of a worker, which is started anew when one ends it.

    Args:
        hide: folders that no student code should see (the course).
        sandbox: a name of `SANDBOXES`, or None for the first that works here.
        seconds: limit for one exercise.
        memory: limit in bytes, above what torch takes.
    """

    def __init__(
        self,
        hide: Sequence[Path] = (),
        sandbox: str | None = None,
        seconds: float = SECONDS,
        memory: int = MEMORY,
    ) -> None:
        self.hide = [Path(folder).resolve() for folder in hide]
        self.seconds, self.memory = seconds, memory
        self._worker: subprocess.Popen | None = None
        self.not_used: list[str] = []  # sandboxes that do not work here, and why
        self.sandbox = self._choose(sandbox)

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self._worker:
            self._worker.kill()
            self._worker.wait()
            self._worker.stdin.close()
            self._worker.stdout.close()
            self._worker = None

    def run(
        self, cells: list[str], function: str, public: Sequence[Case], hidden: Sequence
    ) -> Outcome:
        """Try the function that `cells` define on public, then on hidden cases.

        Each in a process of its own: what the public tests show to a student cannot
        hold an argument of the hidden ones. Failures are numbered through.
        """
        outcome = self.run_cases(cells, function, public, self.seconds)
        if outcome.ended:
            rest = Outcome(dict.fromkeys(range(len(hidden)), outcome.ended))
        else:
            left = max(self.seconds - outcome.seconds, 1.0)
            rest = self.run_cases(cells, function, hidden, left)
            if rest.ended:
                outcome.odd += rest.odd
        for number, hint in rest.failures.items():
            outcome.failures[len(public) + number] = hint
        outcome.seconds += rest.seconds
        outcome.printed += rest.printed
        if outcome.printed > MUCH_OUTPUT:
            outcome.odd.append(f"prints {outcome.printed} bytes, not kept")
        return outcome

    def run_cases(
        self, cells: list[str], function: str, cases: Sequence[Case], seconds: float
    ) -> Outcome:
        """Try the function that `cells` define on `cases`, in one process."""
        if not cases:
            return Outcome()
        calls = [
            {
                "arguments": plain.dumps(case.arguments),
                "gradients": case.gradients,
                "through": case.through
                and f"{case.through.__module__}:{case.through.__qualname__}",
            }
            for case in cases
        ]
        reply = self._ask(
            {
                "cells": cells,
                "function": function,
                "calls": calls,
                "seconds": seconds,
                "memory": self.memory,
            }
        )
        outcome = Outcome(seconds=reply["seconds"], printed=reply["printed"])
        missing = ENDED.get(reply["ended"], ENDED["died"]).format(seconds=self.seconds)
        if reply["ended"] != "done" or len(reply["calls"]) < len(cases):
            outcome.ended = missing
            outcome.odd.append(missing.replace("your ", "the "))
        for number, case in enumerate(cases):
            sent = reply["calls"][number : number + 1]
            hint = judged(case, sent[0]) if sent else missing
            if hint:
                outcome.failures[number] = hint
        return outcome

    def _ask(self, job: dict) -> dict:
        self._start()
        try:
            write_frame(self._worker.stdin, job)
            # the worker holds to the limit; this is for one that was stopped
            reply = self._reply(self.seconds + 10)
        except (OSError, ValueError):  # a frame that is none included
            reply = None
        if not _is_reply(reply):
            self.stop()
            reply = {"ended": "lost", "calls": [], "printed": 0, "seconds": 0.0}
        return reply

    def _reply(self, seconds: float) -> object:
        """The next frame; None if it does not come, all of it, in this time."""
        deadline, data, fd = time.monotonic() + seconds, b"", self._worker.stdout
        while not (frame := whole_frame(data)):
            left = max(deadline - time.monotonic(), 0)
            ready, _, _ = select.select([fd], [], [], left)
            more = os.read(fd.fileno(), 2**20) if ready else b""
            if not more:
                return None
            data += more
        return json.loads(frame)

    def _start(self) -> None:
        if self._worker and self._worker.poll() is None:
            return
        self.stop()
        problem = self._try(self.sandbox)
        if problem:
            raise RunnerError(
                f"no process for student code ({self.sandbox}): {problem}"
            )

    def _try(self, sandbox: str) -> str | None:
        """Start the worker in a sandbox; why that does not work, or None."""
        prefix, options = self._confined(sandbox)
        if prefix is None:
            return "not available"
        environment = {
            name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ
        }
        environment |= {
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "MPLBACKEND": "Agg",
            "MPLCONFIGDIR": "/tmp",
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        try:
            self._worker = subprocess.Popen(
                [*prefix, sys.executable, "-m", "grading.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                env=environment,
                **options,
            )
        except OSError as error:  # a Python that another user may not run, say
            return str(error)
        try:
            ready = self._reply(120) == "ready"
        except ValueError:
            ready = False
        if ready:
            # later words of the worker have no reader, and must not fill the pipe
            self._worker.stderr.close()
            return None
        self._worker.kill()
        error = self._worker.stderr.read().decode("utf-8", "replace").strip()
        self._worker.stderr.close()
        self.stop()
        return error.splitlines()[-1] if error else "it does not start"

    def _confined(self, sandbox: str) -> tuple[list[str] | None, dict]:
        if sandbox == "none":
            return [], {}
        if sandbox == "nobody":
            if os.getuid() != 0:
                return None, {}
            return [], {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            return None, {}
        # the whole disk read-only, and nothing where people keep their own
        prefix = [bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        prefix += ["--tmpfs", "/tmp", "--unshare-all", "--new-session"]
        prefix += ["--die-with-parent", "--cap-drop", "ALL"]
        in_tmp = [f for f in (ROOT, Path(sys.prefix)) if f.is_relative_to("/tmp")]
        for folder in in_tmp:
            if folder == ROOT or ROOT not in folder.parents:
                prefix += ["--ro-bind", str(folder), str(folder)]
        for folder in self.hide:
            prefix += ["--tmpfs", str(folder)]
        return prefix, {}

    def _choose(self, sandbox: str | None) -> str:
        if sandbox is not None and sandbox not in SANDBOXES:
            raise ValueError(
                f"sandbox: expected one of {', '.join(SANDBOXES)}, got {sandbox!r}"
            )
        for name in [sandbox] if sandbox else SANDBOXES:
            reason = self._try(name)
            if reason is None:
                return name
            self.not_used.append(f"{name}: {reason}")
        raise RunnerError("no process for student code; " + "; ".join(self.not_used))


def shown(
    public: Sequence[Case], hidden: Sequence[Case], failures: dict[int, str]
) -> list[str]:
    """What a student may see: the public tests, and how many hidden ones pass."""
    if NOT_DONE in failures.values():
        return ["not done"]
    lines = [
        f"✗ {case.line}: {failures[number]}" if number in failures else f"✓ {case.line}"
        for number, case in enumerate(public)
    ]
    if hidden:
        numbers = range(len(public), len(public) + len(hidden))
        passed = sum(number not in failures for number in numbers)
        lines.append(f"{passed} of {len(hidden)} hidden tests passed")
    return lines


def whole_frame(data: bytes) -> bytes | None:
    """The content of a frame that has come in full."""
    if len(data) < 8:
        return None
    [size] = struct.unpack("!Q", data[:8])
    if size > 2 * MOST_RESULT:
        raise ValueError(f"a frame of {size} bytes")
    return data[8 : 8 + size] if len(data) >= 8 + size else None


def judged(case: Case, sent: str) -> str | None:
    """The verdict on what a child sent for one case."""
    try:
        content = plain.loads(sent)
        result, after, problem = content
    except (plain.NotPlain, TypeError, ValueError):
        return "your code sent something else than a result"
    if problem is not None:
        # an empty line would mean that there is no problem
        line = str(problem)[:400] or "your code sent something else than a result"
        return verdict(case, Call(result, (), line))
    if not isinstance(after, tuple) or len(after) != len(case.arguments):
        return "your code sent something else than a result"
    return verdict(case, Call(result, with_functions(case.arguments, after), None))


def with_functions(before: Any, after: Any) -> Any:
    """What was sent back, with the functions that only their texts stand for."""
    if isinstance(before, Function) and after == repr(before):
        return before
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        rest = after[len(before) :]
        pairs = zip(before, after, strict=False)
        return type(after)([*(with_functions(*pair) for pair in pairs), *rest])
    if isinstance(before, dict) and isinstance(after, dict):
        return {key: with_functions(before.get(key), after[key]) for key in after}
    return after


def _is_reply(reply: object) -> bool:
    return (
        isinstance(reply, dict)
        and isinstance(reply.get("ended"), str)
        and isinstance(reply.get("printed"), int)
        and isinstance(reply.get("seconds"), int | float)
        and isinstance(reply.get("calls"), list)
        and all(isinstance(line, str) for line in reply["calls"])
    )
