"""A plugin of pytest: what nbval executed is kept, if every cell of a notebook passed.

nbval runs the cells and judges them. What the kernel said meanwhile is handed to
nbclient, which makes of it what a page shows: printed lines between the figures, where
nbval would move them to the front. The state of widgets isn't kept, as a page shows
their other form.
"""

from contextlib import suppress
from pathlib import Path
from unittest import mock

import psutil
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionComplete
from nbval.plugin import IPyNbCell

from tools import cache


class Run:
    """One notebook, while nbval executes it."""

    def __init__(self, file):
        self.file, self.passed = file, 0
        self.place = cache.place(file.path, file.nb)
        self.client = NotebookClient(file.nb, record_timing=False)

    def cell_passed(self, cell, messages: list[dict]) -> None:
        """Take what the kernel said about a cell; keep the notebook with its last."""
        (position,) = (i for i, c in enumerate(self.file.nb.cells) if c is cell)
        about = messages[-1]["parent_header"]["msg_id"]
        self.client.clear_before_next_output = False
        for message in messages:
            if message["parent_header"].get("msg_id") == about:
                with suppress(CellExecutionComplete):  # how nbclient says "idle"
                    self.client.process_message(message, cell, position)
        self.passed += 1
        # not if something was edited meanwhile: who knows which text was imported
        if self.passed == len(cache.code_cells(self.file.nb)) and self.place == (
            cache.place(self.file.path, self.file.nb)
        ):
            kernel = psutil.Process(self.file.kernel.km.provisioner.pid)
            self.file.nb.metadata["cost"] = cost(kernel)
            cache.keep(self.file.nb, self.place)


def cost(kernel: psutil.Process) -> dict[str, float | None]:
    """What a kernel has taken so far, and the processes that it started and ended.

    ``peak_memory`` is in bytes, of the kernel alone; only Linux tells it.
    """
    status = Path(f"/proc/{kernel.pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    peaks = [1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return {
        "cpu_seconds": sum(kernel.cpu_times()[:4]),  # children's, too
        "peak_memory": peaks[0] if peaks else None,
    }


RUN = pytest.StashKey[Run]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    if not isinstance(item, IPyNbCell):
        return (yield)
    file, messages = item.parent, []
    if RUN not in file.stash:
        file.stash[RUN] = Run(file)
    get_message = file.kernel.get_message

    def listen(stream, timeout=None):
        message = get_message(stream, timeout=timeout)
        if stream == "iopub":
            messages.append(message)
        return message

    with mock.patch.object(file.kernel, "get_message", listen):
        result = yield  # raises if the cell failed
    file.stash[RUN].cell_passed(item.cell, messages)
    kernel = psutil.Process(file.kernel.km.provisioner.pid)
    item.user_properties.append(("cpu", cost(kernel)["cpu_seconds"]))
    return result


def pytest_terminal_summary(terminalreporter):
    """How long each notebook took."""
    seconds, cpu = {}, {}
    for report in terminalreporter.stats.get("passed", []):
        name = report.nodeid.split("::")[0]
        seconds[name] = seconds.get(name, 0) + report.duration
        cpu[name] = max(cpu.get(name, 0), dict(report.user_properties).get("cpu", 0))
    for name in seconds:
        times = f"{seconds[name]:6.1f} s {cpu[name]:6.1f} CPU-s"
        terminalreporter.write_line(f"{times}  {name}")
