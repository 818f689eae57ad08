"""python -m tests.mutants: do the tests find the faults that are put into the package?

The faults of a module stand in ``faults/<module>.py`` under the function that they are
in: ``text of the function -> what replaces it  # what is wrong then``. Each should be
one that a person could make, and that a reader would suffer from.

Without arguments: the faults of what this branch changes, uncommitted edits included.
Those are the faults of a function whose text differs from where the branch left main,
or whose table of faults or tests do. Sixty at most; ``--all`` tries every fault.
"""

import argparse
import io
import os
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from tests.mutants.run import (
    ROOT,
    Fault,
    faults,
    files_of_tests,
    modules,
    read,
    run,
    source,
    things,
    without_a_fault,
)
from tests.sample import base, git

AT_MOST = 60


def state(module: str, root: Path) -> dict[str, tuple]:
    """Return, for each function, what decides whether its faults are found."""
    path = root / "annotated" / f"{module}.py"
    tests = tuple(map(read, files_of_tests(module, root)))
    owners = defaultdict(list)
    for fault in faults(module, root):
        owners[fault.owner].append(fault)
    return {
        owner: (source(path, owner) if owner in things(path) else "", several, tests)
        for owner, several in owners.items()
    }


def changed(commit: str) -> list[Fault]:
    """Return the faults of all that differs from a commit, a function's first first."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        files = git("archive", commit, "annotated", "tests")
        tarfile.open(fileobj=io.BytesIO(files)).extractall(folder, filter="data")
        for module in modules():
            before, now = state(module, Path(folder)), state(module, ROOT)
            for owner in now:
                if now[owner] != before.get(owner):
                    found += enumerate(now[owner][1])
    return [fault for _, fault in sorted(found, key=lambda place: place[0])]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("names", nargs="*", help="only faults whose name begins so")
    parser.add_argument("--all", action="store_true", help="all that there are")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true", help="say what found each")
    given = parser.parse_args()

    table = [fault for module in modules() for fault in faults(module)]
    if given.names:
        for name in given.names:
            if not any(fault.name.startswith(name) for fault in table):
                parser.error(f"no fault has a name that begins with {name!r}")
        table = [fault for fault in table if fault.name.startswith(tuple(given.names))]
    elif not given.all:
        table = changed(base()) if base() else []
        print(f"Compared with {base()[:8] or 'nothing: git knows no commit before'}")
        left = Counter(f"{fault.module}.{fault.owner}" for fault in table[AT_MOST:])
        table = table[:AT_MOST]
        if left:
            print(f"Left to test-all: {left.total()} faults of {', '.join(left)}")

    failed, telling, seconds = [], defaultdict(set), 0.0
    for result in run(table, given.jobs):
        seconds += result.seconds
        if result.trouble:
            failed.append(result.fault)
            print(f"{result.fault.name}\n    {result.trouble}", flush=True)
        else:
            telling[result.fault.module].add(result.test)
            if given.verbose:
                took = f"{result.seconds:.2f} s"
                print(f"{result.fault.name}: {took}, {result.test}", flush=True)
    unsound = 0
    for module, tests in telling.items():
        if trouble := without_a_fault(module, tests):
            unsound += 1
            print(f"{module}: without any fault its tests fail too\n    {trouble}")

    found = len(table) - len(failed)
    print(
        f"{found} of {len(table)} faults found, "
        f"{seconds / max(len(table), 1):.2f} CPU seconds each"
    )
    return bool(failed or unsound)


if __name__ == "__main__":
    sys.exit(main())
