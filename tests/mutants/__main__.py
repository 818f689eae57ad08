"""python -m tests.mutants: do the tests find the faults that are put into the package?

The faults of a module stand in ``faults/<module>.py`` under the function that they are
in: a text of the function, what replaces it, and what is wrong then. Each should be one
that a person could make, and that a reader would suffer from.

Without arguments: the faults of functions that are not as they were when ``--all``, or
their name, last found theirs (``found.json``: hashes of their text, their faults and
their tests), and a sample of the others, another for each commit.
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


def key_of(fault: Fault) -> str:
    """The function that a fault is in."""
    return f"{fault.module}.{fault.owner}"


def fingerprints(table: list[Fault]) -> dict[str, str]:
    """Return for each function a hash of its text, its faults and its tests."""
    owners = defaultdict(list)
    for fault in table:
        owners[key_of(fault)].append(fault)
    found = {}
    for key, several in sorted(owners.items()):
        module, owner = several[0].module, several[0].owner
        path = ROOT / "annotated" / f"{module}.py"
        text = source(path, owner) if owner in things(path) else ""
        tests = [read(file) for file in files_of_tests(module)]
        found[key] = digest(text, repr(several), *tests)
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
            if key_of(fault) in changed or in_sample(fault, seed)
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

    if (given.all or given.names) and not unsound:
        lost = {key_of(fault) for fault in failed}
        # a name can stand for some of a function's faults
        untried = {key_of(fault) for fault in whole if fault not in table}
        now = fingerprints(whole)
        kept = {key: known[key] for key in now.keys() & known.keys() & untried - lost}
        kept |= {key: now[key] for key in now.keys() - untried - lost}
        text = json.dumps(kept, indent=0, sort_keys=True)
        FOUND.write_text(text + "\n", encoding="utf-8")
    found = len(table) - len(failed)
    print(
        f"{found} of {len(table)} faults found ({len(whole)} in all), "
        f"{seconds / max(len(table), 1):.2f} CPU seconds each"
    )
    return bool(failed or unsound)


if __name__ == "__main__":
    sys.exit(main())
