"""Recording a run with its provenance, and telling whether the record still holds.

A record holds the digests of the definitions that its run used. Where they are others
today, it is stale, and its first steps may confirm it: if the gradients of the first
optimiser steps are as large as they were, it is still the run of this code.
"""

import datetime
import importlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import isclose
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tools.definitions import CODE, changes, reached

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "book" / "results"
SEEDS = (0, 1, 2)  # of what is trained several times, unless a benchmark has its own
STEPS = 20
# Another processor rounds otherwise, which 20 steps make no larger than about 1e-4;
# another seed, rate or model changes them in the second digit.
TOLERANCE = 1e-3


def names() -> list[str]:
    """Return the benchmarks: ``rates`` for ``benchmarks/ch07/rates.py``."""
    return sorted(path.stem for path in _files("[!_]*"))


def module(name: str) -> str:
    """Return the name of a benchmark's module, which begins with its chapter."""
    (path,) = _files(name)
    return f"benchmarks.{path.parent.name}.{path.stem}"


def source(name: str) -> str:
    """Return the text of a benchmark's module."""
    return _files(name)[0].read_text("utf-8")


def _files(name: str) -> list[Path]:
    return list((ROOT / "benchmarks").glob(f"ch[0-9][0-9]/{name}.py"))


def bands(name: str, result: dict[str, Any]) -> None:
    """Check that a result is in the bands that its benchmark's ``bands`` asserts.

    Raises:
        AssertionError: if it is not; the line says which band was missed.
    """
    benchmark = importlib.import_module(module(name))
    if hasattr(benchmark, "bands"):
        benchmark.bands(result)


def read(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def definitions(name: str) -> dict[str, str]:
    """Return the digests of what a benchmark uses now."""
    found = reached(f"from {module(name)} import run\nrun()", ROOT)
    itself = CODE, f"book/results/{name}.json"
    return {one: found[one] for one in found if one not in itself}


def stale(name: str) -> list[str]:
    """Return what a benchmark uses that is not as it was when it was recorded."""
    return changes(read(name)["provenance"].get("definitions", {}), definitions(name))


class Enough(BaseException):
    """All steps were seen that were to be seen."""


@contextmanager
def first_steps(only: bool = False) -> Iterator[list[float]]:
    """Yield a list that gets the largest gradient of each of the first optimiser steps.

    Not their norm, which is 1 at every step of a run that clips it.

    Args:
        only: leave the block after those steps.
    """
    seen = []

    def note(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if len(seen) < STEPS:
            groups = (group["params"] for group in optimizer.param_groups)
            gradients = [p.grad for params in groups for p in params]
            full = (g for g in gradients if g is not None and g.numel())
            largest = max(g.abs().max() for g in full)
            seen.append(float(f"{largest:.5g}"))
        if only and len(seen) == STEPS:
            raise Enough

    hook = register_optimizer_step_pre_hook(note)
    try:
        with suppress(Enough):
            yield seen
    finally:
        hook.remove()


def _output(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return result.stdout.strip()


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def provenance(name: str) -> dict[str, Any]:
    """Return where and with what a run was made."""
    here = ("git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty")
    return {
        "command": f"python -m benchmarks {name}",
        "commit": _output(*here),  # a rebase may lose it
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "definitions": definitions(name),
    }


def as_text(result: dict[str, Any]) -> str:
    """Return JSON with a line for each entry, and one for a whole list of numbers."""
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    numbers = re.compile(r"\[\s+([-+.\deE]+(?:,\s+[-+.\deE]+)*)\s+\]")
    return numbers.sub(lambda found: f"[{' '.join(found[1].split())}]", text)


def write(name: str, result: dict[str, Any]) -> None:
    """Write ``book/results/NAME.json`` at once."""
    path = RESULTS / f"{name}.json"
    part = path.with_suffix(".part")
    part.write_text(as_text(result), "utf-8")
    part.replace(path)
    print(f"recorded in book/results/{path.name}")


def record(name: str) -> None:
    """Run a benchmark on one thread; its file is replaced when the run is complete.

    A missed band raises then: the record says what was found.
    """
    torch.set_num_threads(1)
    run = importlib.import_module(module(name)).run
    made = provenance(name)
    with first_steps() as steps:
        result = run()
    write(name, {"provenance": made | {"first_steps": steps}} | result)
    bands(name, read(name))


def confirm(name: str, reason: str = "") -> str:
    """Renew the definitions of a record that holds; return why it can't be done, or "".

    Args:
        name: the benchmark. Its first steps must be as they were recorded, and call all
            functions that have changed. If no first steps were recorded, and no
            definition has changed, they are recorded now.
        reason: why it holds nevertheless, if its first steps can't tell.
    """
    result, now = read(name), definitions(name)
    made = result["provenance"]
    before = made.get("first_steps", [])
    new = "first_steps" not in made and not stale(name)
    if not reason:
        if not before and not new:
            return "no first steps are recorded: run it again, or say --because why not"
        torch.set_num_threads(1)
        with first_steps(only=True) as steps, _calls() as called:
            importlib.import_module(module(name)).run()
        if not new and not _agree(steps, before):
            return f"its first steps are others now: {steps}, recorded are {before}"
        then = made.get("definitions", {}).values()
        changed = [one for one in now if now[one] not in then and _callable(one)]
        if unmet := sorted(set(changed) - called):
            return f"its first steps are the same, but do not call {', '.join(unmet)}"
        made["first_steps"] = steps if new else before
        reason = made.get("confirmed", "") if new else "its first steps are the same"
    made["definitions"] = now
    if reason:
        made["confirmed"] = reason
    write(name, result)
    return ""


@contextmanager
def _calls() -> Iterator[set[str]]:
    """Yield a set that gets the names of all functions and classes that run."""
    called = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            top = frame.f_code.co_qualname.partition(".")[0]
            called.add(f"{frame.f_globals.get('__name__')}.{top}")

    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)


def _callable(name: str) -> bool:
    module, _, last = name.rpartition(".")
    return "/" not in name and callable(
        getattr(importlib.import_module(module), last, None)
    )


def _agree(steps: list[float], others: list[float]) -> bool:
    pairs = zip(steps, others, strict=False)
    same = all(isclose(*pair, rel_tol=TOLERANCE) for pair in pairs)
    return same and len(steps) == len(others)
