"""Execute the notebooks that the cache lacks, in parallel, and keep their outputs.

    python -m tools.execute [--jobs N] [--timeout SECONDS] [NOTEBOOK ...]

Without notebooks: all that are pages of the book. The Sphinx build then finds every
output in the same cache (book/_ext/execution.py). A cell that fails is shown with its
notebook and traceback; the other notebooks still run, and the exit code is 1.
"""

import argparse
import os
import re
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution

from tools.cache import CacheError, cache_path, prune

ROOT = Path(__file__).resolve().parent.parent

# One thread a notebook: they run side by side, and threads that wait must not spin.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
}
PAGES = ("notebooks", "book/exercises")  # folders of notebooks that the book shows
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Run:
    """One executed notebook; `error` is the text to show where a cell failed."""

    notebook: nbformat.NotebookNode
    wall: float
    cpu: float
    error: str | None


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def say(line: str) -> None:
    print(line, flush=True)


def execute(path: Path, timeout: int) -> Run:
    """Run one notebook in a kernel of its own (called in a worker process)."""
    say(f"  starts  {name_of(path)}")
    started, cpu_before = time.perf_counter(), children_cpu()
    notebook = nbformat.read(path, as_version=4)
    try:
        result = single_nb_execution(
            notebook,
            cwd=str(path.parent),
            timeout=timeout,
            allow_errors=False,
            extra_arguments=["--log-level=ERROR"],  # of the kernel: it warns of TCP
        )
        error = result.err and str(result.err)
    except Exception as problem:  # such as a kernel that died: report it as a failure
        error = f"{type(problem).__name__}: {problem}"
    wall = time.perf_counter() - started
    return Run(notebook, wall, children_cpu() - cpu_before, error)


def children_cpu() -> float:
    """CPU seconds of the kernels that this process has started and seen end."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def missing(cache, paths: list[Path]) -> list[Path]:
    """The notebooks whose code the cache does not know."""
    found = []
    for path in paths:
        try:
            cache.match_cache_notebook(nbformat.read(path, as_version=4))
        except KeyError:
            found.append(path)
    return found


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux: a container may own only some
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def execute_missing(paths: list[Path], jobs: int, timeout: int) -> dict[Path, str]:
    """Fill the cache; what failed, with the text of its error."""
    folder = cache_path()
    cache = get_cache(folder)
    todo = missing(cache, paths)
    say(f"{len(paths) - len(todo)} of {len(paths)} notebooks are in the cache")
    if not todo:
        return {}
    os.environ.update(ONE_THREAD)  # the workers' kernels inherit it
    failed: dict[Path, str] = {}
    started, cpu = time.perf_counter(), 0.0
    # fresh workers: a forked one would share the open data base of the cache
    with ProcessPoolExecutor(min(jobs, len(todo)), get_context("spawn")) as pool:
        futures = {pool.submit(execute, path, timeout): path for path in todo}
        for future in as_completed(futures):
            path, run = futures[future], future.result()
            cpu += run.cpu
            verdict = "FAILED" if run.error else "done"
            times = f"{run.wall:.1f} s, {run.cpu:.1f} CPU-s"
            say(f"  {verdict:<7} {name_of(path)}  {times}")
            if run.error:
                failed[path] = run.error
                continue
            cache.cache_notebook_bundle(
                CacheBundleIn(
                    run.notebook, str(path), data={"execution_seconds": run.wall}
                ),
                check_validity=False,
                overwrite=True,
            )
    wall = time.perf_counter() - started
    say(f"executed {len(todo)} notebooks in {wall:.1f} s, {cpu:.1f} CPU-s")
    prune(folder.parent)
    return failed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.execute",
        description="Execute the notebooks that the cache lacks.",
    )
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--jobs", type=int, default=available_cores())
    parser.add_argument(
        "--timeout", type=int, default=600, help="seconds that one cell may take"
    )
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error(f"--jobs is {options.jobs}, expected at least 1")
    paths = [path.absolute() for path in options.notebooks]
    absent = [str(path) for path in options.notebooks if not path.is_file()]
    if absent:
        parser.error(f"no such notebook: {', '.join(absent)}")
    for folder in () if paths else PAGES:
        paths += sorted((ROOT / folder).glob("*.ipynb"))
    try:
        failed = execute_missing(paths, options.jobs, options.timeout)
    except CacheError as error:
        print(error, file=sys.stderr)
        return 1
    for path, error in failed.items():
        text = error if sys.stderr.isatty() else COLOURS.sub("", error)
        print(f"\n{name_of(path)} failed.\n{text}", file=sys.stderr)
    if failed:
        names = ", ".join(name_of(path) for path in failed)
        print(f"\n{len(failed)} notebook(s) failed: {names}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
