"""What `make test` takes of large families of tests: what changed, and a sample.

With ``ANNOTATED_ALL=1``, which `make test-all` sets, nothing is left out.
"""

import hashlib
import os
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def git(*arguments: str) -> bytes:
    """Return what a command of git prints; nothing where it fails."""
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True).stdout.strip()


@cache
def commit() -> str:
    """Return the commit's name; empty where git knows none."""
    return git("rev-parse", "HEAD").decode()


def chosen(name: str, one_in: int) -> bool:
    """Say whether a test is in this commit's sample.

    Args:
        name: the test's id, or anything that stays the same from run to run.
        one_in: about how many names there are to one that is chosen.
    """
    digest = hashlib.sha256(f"{commit()}{name}".encode()).hexdigest()
    return os.environ.get("ANNOTATED_ALL") == "1" or int(digest, 16) % one_in == 0


def in_turn(names: Iterable[str]) -> list[str]:
    """Return an eighth of what every exercise is tried with, another at each commit."""
    return [name for name in names if chosen(name, one_in=8)]


@cache
def base() -> str:
    """Return the commit that changes are counted from; empty where git knows none.

    It is where the branch left main; on main itself, where all has landed, the commit
    before the last: of a merge all that it brought is new.
    """
    for branch in ("origin/main", "main"):
        fork = git("merge-base", "HEAD", branch).decode()
        if fork not in ("", commit()):
            return fork
    return git("rev-parse", "--verify", "--quiet", "HEAD^").decode()
