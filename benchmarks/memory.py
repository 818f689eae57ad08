"""The memory that a piece of work takes at its peak, in a process of its own.

The process prepares the work (imports, model, inputs, and a small run first), notes how
much memory it holds, and runs the work. The answer is how far its resident memory rose
above that at most, as the operating system counts it. Linux alone can tell.

Freed blocks above 64 KiB go back to the system at once (``MALLOC_MMAP_THRESHOLD_``), so
the peak is that of what is alive together. Memory that was asked for and never written
doesn't count. MB are 10⁶ bytes.
"""

import ctypes
import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}


def peak(make: Callable[..., Callable[[], Any]], **arguments: Any) -> float:
    """Return the peak of ``make(**arguments)()`` in MB, above what making it took.

    Args:
        make: a function of a module, which prepares the work and returns it.
        arguments: its arguments, such as JSON can hold.
    """
    command = [sys.executable, "-m", "benchmarks.memory", make.__module__]
    command += [make.__qualname__, json.dumps(arguments)]
    process = subprocess.run(
        command, env=os.environ | ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[2:])} ended with {process.returncode}")
    return float(process.stdout.split()[-1])


def known(megabytes: float, freed: float = 0) -> Callable[[], Any]:
    """Return work whose peak is known: the larger of what it frees and what it keeps.

    Args:
        megabytes: written to and kept.
        freed: written to and freed before that.
    """

    def work() -> bytearray:
        first = bytearray(b"1") * round(freed * 1e6)
        del first
        return bytearray(b"1") * round(megabytes * 1e6)

    return work


def _resident(line: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{line}:")[1].split()[0]) * 1024


def main() -> None:
    import torch

    torch.set_num_threads(1)
    module, function, arguments = sys.argv[1:]
    work = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins again from here
    before = _resident("VmRSS")
    work()
    print((_resident("VmHWM") - before) / 1e6)


if __name__ == "__main__":
    main()
