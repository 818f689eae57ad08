"""What pages take to run: noted by the run, and shown in a table."""

import os

import psutil

from book._ext.costs import row
from tools.nbval_cache import cost

RUN = {
    "metadata": {"cost": {"cpu_seconds": 41.6, "peak_memory": 1_240_000_000}},
    "cells": [
        {"cell_type": "markdown", "source": ["# 2. A title\n", "\n", "Text."]},
        {"cell_type": "code", "source": ["model = make().to(device)"]},
    ],
}


def test_a_row_says_what_the_run_took():
    link = "[2. A title](../notebooks/02_x.ipynb)"
    wanted = f"| {link} | 42 s | 1.2 GB | used if there is one |"
    assert row("notebooks/02_x", RUN) == wanted


def test_what_was_not_noted_is_left_open():
    code = {"cell_type": "code", "source": ["print(device)"]}
    run = {"metadata": {}, "cells": [RUN["cells"][0], code]}
    assert row("notebooks/02_x", run).endswith("| – | – | not used |")
    run["metadata"]["cost"] = {"cpu_seconds": 3.2, "peak_memory": None}
    assert row("notebooks/02_x", run).endswith("| 3 s | – | not used |")


def test_a_process_is_asked_for_its_time_and_its_peak():
    own = psutil.Process()
    first = cost(own)
    held = bytearray(b"1") * 50_000_000
    sum(range(3_000_000))
    second = cost(own)
    assert len(held) and second["cpu_seconds"] > first["cpu_seconds"]
    if os.path.exists("/proc/self/status"):
        assert second["peak_memory"] >= own.memory_info().rss > 50_000_000
