"""A fault is put into a copy of the package, and the tests that should find it run.

Every fault has a process of its own, forked from one that imports whatever the tests
needed so far, and nothing of the package. So what takes seconds to import is imported
once, and the package that a fork imports is the copy.
"""

import ast
import contextlib
import faulthandler
import importlib
import json
import os
import re
import resource
import runpy
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 240  # of CPU for a fault's tests: a busy machine cuts nothing off
ASLEEP = 3600  # of the clock, for what neither ends nor computes
OURS = ("annotated", "tests", "conftest", "__main__")
LATE = ("babel.dates", "torch._dynamo")  # take long; tests import them when they run

# before torch is imported: with more threads than this, several processes only wait
os.environ["OMP_NUM_THREADS"] = "1"


@dataclass(frozen=True)
class Fault:
    """One function of `annotated` with one text in it replaced by another."""

    module: str
    owner: str  # "causal_mask", "TransformerConfig" or "Transformer.encode"
    old: str
    new: str
    reason: str  # what is wrong then

    @property
    def name(self) -> str:
        return f"{self.module}.{self.owner}: {self.reason}"


@dataclass(frozen=True)
class Result:
    """What became of a fault: ``trouble`` is empty if a test found it."""

    fault: Fault
    trouble: str
    test: str = ""
    seconds: float = 0.0  # of CPU


def faults(module: str, root: Path = ROOT) -> list[Fault]:
    r"""Return the faults in ``tests/mutants/faults/<module>.py``.

    Each function or class has its rows there, written as the mistakes of exercises::

        causal_mask
            old -> new  # what is wrong then
            old
                new  # what is wrong then
                # what is wrong when old is taken out

    Twelve spaces go on with the row above. A text has no space at its beginning or end;
    ``\n`` in it is a line break, and ``\\n`` what a string of the code itself holds.

    Raises:
        ValueError: for a row that is none of these.
    """
    found, owner, old = [], "", ""
    rows = re.sub(r"\n {12,}", " ", settings(module, root).get("TABLE", ""))
    for row in rows.strip().splitlines():
        text, sign, reason = row.rpartition(" # ")
        deep, arrow = row.startswith(" " * 8), " ->" in row
        if row[0] != " ":
            owner = row
        elif sign and (deep or arrow):
            if not deep:
                old, _, text = text.partition(" ->")
            found.append(Fault(module, owner, _text(old), _text(text), reason))
        elif sign or deep or arrow:
            raise ValueError(f"{module}: this row is not complete: {row.strip()}")
        else:
            old = row
    return found


def _text(written: str) -> str:
    text = re.sub(r"(?<!\\)\\n", "\n", written.strip())
    return text.replace(r"\\n", r"\n")


@cache
def settings(module: str, root: Path) -> dict[str, Any]:
    """Return what a module's file of faults defines; without one, nothing."""
    path = root / "tests" / "mutants" / "faults" / f"{module}.py"
    return runpy.run_path(str(path)) if path.exists() else {}


def modules() -> list[str]:
    """Return the modules that have faults, such as "masks" and "page/frames"."""
    folder = ROOT / "tests" / "mutants" / "faults"
    files = folder.rglob("*.py")
    return sorted(f.relative_to(folder).with_suffix("").as_posix() for f in files)


def files_of_tests(module: str, root: Path = ROOT) -> list[Path]:
    """Return the files whose tests should find the faults of a module.

    Those of the same name, or what its faults name as ``TESTS``, from ``tests`` on.
    """
    paths = map(Path, settings(module, root).get("TESTS", (module,)))
    return [root / "tests" / path.parent / f"test_{path.name}.py" for path in paths]


# ---- the text ----------------------------------------------------------------


@cache
def read(path: Path) -> str:
    """Return a file's text; nothing where there is none."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


@cache
def things(path: Path) -> dict[str, tuple[int, int]]:
    """Return the functions, classes and methods of a file: first and last line."""
    found = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                found[prefix + child.name] = (first - 1, child.end_lineno)
                visit(child, f"{prefix}{child.name}.")

    visit(ast.parse(read(path)), "")
    return found


def source(path: Path, name: str) -> str:
    """Return the lines of a function, class or method, with its decorators."""
    first, last = things(path)[name]
    return "".join(read(path).splitlines(keepends=True)[first:last])


def mutated(fault: Fault) -> str:
    """Return the module's text with the fault in it.

    Raises:
        LookupError: if the text to be replaced does not stand in the function once.
    """
    path = ROOT / "annotated" / f"{fault.module}.py"
    if fault.owner not in things(path):
        raise LookupError(f"annotated/{path.name} has no {fault.owner}")
    before = source(path, fault.owner)
    if (count := before.count(fault.old)) != 1:
        raise LookupError(f"{fault.owner} holds this {count} times:\n{fault.old}")
    first, last = things(path)[fault.owner]
    lines = read(path).splitlines(keepends=True)
    lines[first:last] = [before.replace(fault.old, fault.new)]
    return "".join(lines)


def concerned(fault: Fault) -> set[str]:
    """Return the tests that name what the fault is in; if that is private, its users.

    They are run first.
    """
    path = ROOT / "annotated" / f"{fault.module}.py"
    names = {part for part in fault.owner.split(".") if not part.startswith("__")}
    names -= {"forward"}  # said by most tests
    for private in [name for name in names if name.startswith("_")]:
        users = {name for name in things(path) if private in source(path, name)}
        names |= {name.split(".")[0] for name in users}
    word = re.compile(rf"\b({'|'.join(names)})\b")
    return {
        name
        for file in files_of_tests(fault.module)
        for name in things(file)
        if word.search(source(file, name))
    }


# ---- the processes -----------------------------------------------------------


def run(faults: Iterable[Fault], jobs: int) -> Iterator[Result]:
    """Run the tests on each fault, several at a time, as they end."""
    waiting, running = list(faults)[::-1], {}
    while waiting or running:
        if waiting and len(running) < jobs:
            fault = waiting.pop()
            try:
                text = mutated(fault)
            except (LookupError, SyntaxError) as error:
                yield Result(fault, str(error))
                continue
            folder = Path(tempfile.mkdtemp(prefix="mutant-"))
            job = partial(_test, folder, fault.module, text, concerned(fault))
            running[_fork(folder, job)] = fault, folder
            continue
        pid, _, usage = os.wait4(-1, 0)
        fault, folder = running.pop(pid)
        said = _read(folder)
        trouble, test = _judge(said, folder)
        yield Result(fault, trouble, test, usage.ru_utime + usage.ru_stime)
        shutil.rmtree(folder)
        for module in [*said.get("imported", ()), *LATE] if said else ():
            with contextlib.suppress(ImportError):  # its package made it, in its way
                importlib.import_module(module)  # so that nobody after it has to


def without_a_fault(module: str, tests: Collection[str]) -> str:
    """Return what is wrong with tests that should pass; nothing if they do."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.waitpid(_fork(folder, partial(_test, folder, module, None, (), tests)), 0)
        said = _read(folder) or {}
        if said.get("passed") == len(tests):
            return ""
        return said.get("failed") or _log(folder)


def _test(
    folder: Path,
    module: str,
    text: str | None,
    first: Collection[str],
    only: Collection[str] | None = None,
) -> None:
    """Run a module's tests on a copy of the package until one fails.

    Args:
        folder: is to hold the copy.
        module: its name.
        text: what stands in its file instead, if anything.
        first: names of test functions that run before the others.
        only: ids of the tests that run at all; all if not given.
    """
    package = folder / "annotated"
    shutil.copytree(ROOT / "annotated", package)  # compiled files too: they save time
    file = package / f"{module}.py"
    if text is not None:
        file.write_text(text, encoding="utf-8")
        for stale in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
            stale.unlink()
    tests = _Tests(first, only)
    for name in [name for name in os.environ if name.startswith("PYTEST_")]:
        del os.environ[name]  # of the pytest that started us
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # finding them takes seconds
    status = pytest.main(
        [
            *("-x", "-q", "--tb=line", "-p", "no:cacheprovider"),
            *("-p", "no:unraisableexception"),  # collects garbage, for seconds
            *("-p", "no:faulthandler"),  # it would take ours away
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)),
            *("-o", f"pythonpath={folder} {ROOT}"),
            *map(str, files_of_tests(module)),
        ],
        plugins=[tests],
    )
    ran = sys.modules.get(f"annotated.{module.replace('/', '.')}")
    said = {
        "status": int(status),
        "passed": tests.passed,
        "failed": tests.failed,
        "copy": getattr(ran, "__file__", None) == str(file),
        "imported": tests.imported,
    }
    (folder / "said").write_text(json.dumps(said), encoding="utf-8")


def _judge(said: dict | None, folder: Path) -> tuple[str, str]:
    """Return what is wrong with a fault's run, and the test that found it."""
    if said is None:
        return f"no end after {SECONDS} CPU seconds, or a crash:\n{_log(folder)}", ""
    if said["status"] == pytest.ExitCode.OK:
        return "no test noticed", ""
    if said["status"] != pytest.ExitCode.TESTS_FAILED:
        return f"exit status {said['status']}:\n{_log(folder)}", ""
    if not said["copy"]:
        return "the tests ran on something else than the copy", ""
    return "", said["failed"]


class _Tests:
    """Some tests come first, or alone; and what became of them."""

    def __init__(self, first: Collection[str], only: Collection[str] | None) -> None:
        self.first, self.only = first, only
        self.passed, self.failed = 0, ""
        self.before, self.imported = set(sys.modules), []

    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        if self.only is not None:
            items[:] = [item for item in items if item.nodeid in self.only]
        items.sort(key=lambda item: item.originalname not in self.first)

    def pytest_collection_finish(self) -> None:
        self.imported = [
            name
            for name in sys.modules
            if name not in self.before and name.split(".")[0] not in OURS
        ]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = report.nodeid
        elif report.when == "call":
            self.passed += 1


def _fork(folder: Path, job: Callable[[], None]) -> int:
    """Do a job in a process of its own, which prints into ``folder/log``."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    try:
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(log, stream)
        faulthandler.register(signal.SIGXCPU, chain=True)  # says where, and ends it
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, resource.RLIM_INFINITY))
        faulthandler.dump_traceback_later(ASLEEP, exit=True)
        job()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _read(folder: Path) -> dict | None:
    try:
        return json.loads((folder / "said").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def _log(folder: Path) -> str:
    return "\n".join((folder / "log").read_text(encoding="utf-8").splitlines()[-30:])
