"""Recording a run with its provenance."""

import datetime
import json
import os
import platform
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(__file__).parents[1] / "book" / "results"


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
    dirty = _output("git", "status", "--porcelain", "annotated", "benchmarks")
    return {
        "command": f"python -m benchmarks {name}",
        "commit": _output("git", "rev-parse", "HEAD"),
        "commit_is_exact": not dirty,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def as_text(result: dict[str, Any]) -> str:
    """Return JSON with a line for each entry, and one for a whole list of numbers."""
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    numbers = re.compile(r"\[\s+([-+.\deE]+(?:,\s+[-+.\deE]+)*)\s+\]")
    return numbers.sub(lambda found: f"[{' '.join(found[1].split())}]", text)


def record(name: str, run: Callable[[], dict[str, Any]]) -> Path:
    """Run a benchmark on one thread and write ``book/results/NAME.json`` at once.

    The file is replaced only when the run is complete.
    """
    torch.set_num_threads(1)
    made = provenance(name)
    result = {"provenance": made, **run()}
    path = RESULTS / f"{name}.json"
    part = path.with_suffix(".part")
    part.write_text(as_text(result))
    part.replace(path)
    print(f"recorded in book/results/{path.name}")
    return path
