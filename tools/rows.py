"""Records that grow a row at a time: what `make gpu` and `make official` share."""

import datetime
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from tools import ROOT

Work = Callable[[], dict[str, Any]]
Piece = tuple[dict[str, Any], Work]  # what a row is about, and what measures it


def commit() -> str:
    words = ["git", "describe", "--always", "--abbrev=40", "--dirty"]
    try:
        found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return "unknown"
    return found.stdout.strip() or "unknown"


def versions() -> dict[str, str]:
    return {
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit(),
    }


def go_on(
    path: Path,
    pieces: Iterable[Piece],
    made: dict[str, Any],
    same: str,
    until: float = math.inf,
    again: bool = False,
) -> bool:
    """Add what is missing of the record at `path`; return whether it is complete.

    A row that says why it is "unfinished" is measured anew.

    Args:
        made: the provenance of what is added.
        same: the entry of the provenance by which earlier rows may stay.
        until: the time, as `time.monotonic` has it, after which nothing begins.
        again: whether earlier rows go.
    """
    old = json.loads(path.read_text("utf-8")) if path.exists() and not again else {}
    earlier = old.get("rows", [])
    if old.get("provenance", {}).get(same) != made[same]:
        earlier = []
    rows = [row for row in earlier if "unfinished" not in row]
    done = [{k: row[k] for k in row["about"]} for row in rows]
    pieces = list(pieces)
    for key, work in pieces:
        if key in done:
            continue
        if time.monotonic() > until:
            break
        row = {"about": [*key], **key, **work()}
        rows.append(row)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        record = {"provenance": made, "of": len(pieces), "rows": rows}
        part.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
        part.replace(path)
        first = list(row.items())[len(key) + 1 :][:1]
        print(path.stem, *key.values(), *first, flush=True)
    return sum("unfinished" not in row for row in rows) == len(pieces)
