"""A copy of the package with one fault in it, and the tests that should find it.

Imported by a process that holds nothing of `annotated` yet: see `start`.
"""

import inspect
import multiprocessing
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WRONG_PACKAGE = 99  # no exit status of pytest
SECONDS = 300
SECONDS_A_TEST = 20  # a fault may make a loop endless: then the test has failed

# Imported once, by the server that every process is forked from: torch alone takes
# longer than most of the tests.
PRELOADED = """
    IPython.display PIL.Image babel.dates beartype bs4 jaxtyping matplotlib.pyplot
    numpy pooch pytest requests seaborn torch torch._dynamo torch.testing
""".split()


def copy_package(folder: Path) -> Path:
    """Copy the package into a folder; returns the copy."""
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(ROOT / "annotated", folder / "annotated", ignore=ignored)


def mutate(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    found = text.count(old)
    assert found == 1, f"{file.name} holds this {found} times, not once:\n{old}"
    file.write_text(text.replace(old, new), encoding="utf-8")


class _Quick:
    """Tests that name one of the things given come first, and each has to end."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = re.compile(rf"\b({'|'.join(names)})\b") if names else None

    def pytest_collection_modifyitems(self, items: list) -> None:
        if self.names:
            items.sort(key=lambda item: not self._named_in(item.function))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        signal.signal(signal.SIGALRM, self._give_up)
        signal.alarm(SECONDS_A_TEST)
        try:
            return (yield)
        finally:
            signal.alarm(0)

    @staticmethod
    def _give_up(*_: object) -> None:
        raise TimeoutError(f"the test has not ended after {SECONDS_A_TEST} seconds")

    def _named_in(self, test: Callable) -> bool:
        return bool(self.names.search(inspect.getsource(test)))


def start(
    folder: Path, module: str, bad_input: bool, first: Sequence[str] = ()
) -> tuple[int, str]:
    """Run a module's tests on the copy in a folder, in a process of their own.

    Args:
        folder: holds the copy.
        module: its name.
        bad_input: whether to run the tests of wrong arguments, and not the others.
        first: tests whose source has one of these words are run before the others.

    Returns:
        The exit status of pytest (1: a test failed), and what it printed.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    process = context.Process(target=_run, args=(folder, module, bad_input, first))
    process.start()
    process.join(SECONDS)
    if process.exitcode is None:
        process.kill()
        process.join()
    return process.exitcode, (folder / "log").read_text(encoding="utf-8")


def _run(folder: Path, module: str, bad_input: bool, first: Sequence[str]) -> None:
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.environ.pop("ANNOTATED_NO_HOOK", None)
    if bad_input:
        os.environ["ANNOTATED_NO_HOOK"] = "1"
    for name in [name for name in os.environ if name.startswith("PYTEST_")]:
        del os.environ[name]  # of the pytest that started us
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # finding them takes seconds
    os.chdir(folder)
    assert "annotated" not in sys.modules
    # (unraisableexception: it collects garbage five times, for seconds in all)
    status = pytest.main(
        [
            *("-x", "-q", "-p", "no:cacheprovider", "-p", "no:unraisableexception"),
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)),
            *("-o", f"pythonpath={folder}"),
            str(ROOT / "tests" / f"test_{module}.py"),
        ],
        plugins=[_Quick(first)],
    )
    imported = Path(sys.modules["annotated"].__file__)
    if imported != folder / "annotated" / "__init__.py":
        print("imported", imported)
        status = WRONG_PACKAGE
    sys.stdout.flush()
    os._exit(int(status))
