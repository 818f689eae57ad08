"""python -m tests.mutants: do the tests find the faults that are put into the package?

The faults of a module stand in ``faults/<module>.py`` under the function that they are
in: a text of the function, what replaces it, and what is wrong then. Each should be one
that a person could make, and that a reader would suffer from.

Without arguments: the faults of functions that are not as they were when ``--all`` last
found theirs (``found.json``: hashes of their text, their faults and their tests), and a
sample of the others, another for each commit.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections import defaultdict

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

FOUND = ROOT / "tests" / "mutants" / "found.json"
ONE_IN = 8


def digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


def fingerprints(table: list[Fault]) -> dict[str, str]:
    """Return for each function a hash of its text, its faults and its tests."""
    owners = defaultdict(list)
    for fault in table:
        owners[fault.module, fault.owner].append(fault)
    found = {}
    for (module, owner), several in sorted(owners.items()):
        path = ROOT / "annotated" / f"{module}.py"
        text = source(path, owner) if owner in things(path) else ""
        tests = [read(file) for file in files_of_tests(module)]
        found[f"{module}.{owner}"] = digest(text, repr(several), *tests)
    return found


def commit() -> str:
    """Return the commit's name; empty where git knows none."""
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout


def in_sample(fault: Fault, seed: str) -> bool:
    return int(digest(seed, fault.name), 16) % ONE_IN == 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("names", nargs="*", help="only faults whose name begins so")
    parser.add_argument("--all", action="store_true", help="all, and remember them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true", help="say what found each")
    given = parser.parse_args()

    whole = table = [fault for module in modules() for fault in faults(module)]
    known = json.loads(read(FOUND)) if FOUND.exists() else {}
    if given.names:
        table = [fault for fault in whole if fault.name.startswith(tuple(given.names))]
    elif not given.all:
        now, seed = fingerprints(whole), commit()
        changed = {key for key in now if now[key] != known.get(key)}
        table = [
            fault
            for fault in whole
            if f"{fault.module}.{fault.owner}" in changed or in_sample(fault, seed)
        ]

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

    if given.all and not unsound:
        lost = {f"{fault.module}.{fault.owner}" for fault in failed}
        now = {key: v for key, v in fingerprints(whole).items() if key not in lost}
        FOUND.write_text(json.dumps(now, indent=0) + "\n", encoding="utf-8")
    found = len(table) - len(failed)
    print(
        f"{found} of {len(table)} faults found ({len(whole)} in all), "
        f"{seconds / max(len(table), 1):.2f} CPU seconds each"
    )
    return bool(failed or unsound)


if __name__ == "__main__":
    sys.exit(main())
