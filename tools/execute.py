"""Execute with nbval the notebooks that the cache lacks; what passes goes into it.

    python -m tools.execute [--jobs N] [--timeout SECONDS] [NOTEBOOK ...]

Without notebooks: all chapters, the students' notebooks and the pages of exercises. The
book shows what ran here (book/_ext/execution.py).
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tools import CHAPTERS, PAGES, ROOT, STUDENT, cache

FOLDERS = (CHAPTERS, STUDENT, PAGES)
# notebooks run side by side, and threads that wait must not spin
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux: a container may own only some
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.execute",
        description="Execute the notebooks that the cache lacks.",
    )
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--jobs", type=int, default=available_cores())
    parser.add_argument(
        "--timeout", type=int, default=1800, help="seconds that one cell may take"
    )
    options = parser.parse_args(arguments)
    paths = [path.absolute() for path in options.notebooks]
    for folder in () if paths else FOLDERS:
        paths += sorted((ROOT / folder).glob("*.ipynb"))
    lacking = [p for p in paths if not cache.place(p, cache.read(p)).is_file()]
    known = len(paths) - len(lacking)
    print(f"{known} of {len(paths)} notebooks are in the cache", flush=True)
    if not lacking:
        return 0
    nbval = ["--nbval-lax", f"--nbval-cell-timeout={options.timeout}"]
    jobs = min(options.jobs, len(lacking))
    workers = ["-n", str(jobs), "--dist", "loadfile"] if jobs > 1 else []
    plugin = ["-p", "tools.nbval_cache"]
    command = [sys.executable, "-m", "pytest", "-q", *nbval, *workers, *plugin]
    done = subprocess.run(
        [*command, *lacking], cwd=ROOT, env=os.environ | ONE_THREAD, check=False
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
