"""`tools/serve.py`: a change rebuilds, and the page that is open reloads."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.site.browser import visiting

pytestmark = pytest.mark.covers("tools/serve")

ROOT = Path(__file__).resolve().parents[2]
PAGE = "<head><title>{0}</title></head><body>{0}</body>"
# stands in for `make book`, and fails as that does
BUILD = "sh -c '! grep broken book/intro.md && cp book/intro.md _build/html/index.html'"


@pytest.fixture
def serving(tmp_path):
    """A book of one page, its address, and a file with what the server says."""
    for name in ("book/intro.md", "_build/html/index.html"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(PAGE.format("First"))
    for folder in ("annotated", "notebooks/src"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("_config.yml", "_toc.yml"):
        (tmp_path / name).touch()
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with (tmp_path / "said.txt").open("w") as said:
        server = subprocess.Popen(
            [sys.executable, "-m", "tools.serve", "--port", port, "--command", BUILD],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    yield tmp_path, f"http://127.0.0.1:{port}/", tmp_path / "said.txt"
    server.kill()
    server.wait()


def until(reached: Callable[[], bool], edit: Callable[[], object]) -> None:
    """Edit until it shows; the first time, nobody may be watching yet."""
    end = time.monotonic() + 600  # for what never comes
    while not reached():
        assert time.monotonic() < end, "nothing happened in 600 s"
        edit()
        time.sleep(2)


def test_a_change_reloads_the_page_and_a_failed_build_leaves_it(serving, browser):
    book, address, said = serving
    source = book / "book/intro.md"
    until(
        lambda: "the build failed" in said.read_text(),
        lambda: source.write_text(PAGE.format("broken")),
    )
    with visiting(browser, address) as visit:
        visit.open("index.html")
        assert visit.page.title() == "First"
        until(
            lambda: visit.page.title() == "Second",
            lambda: source.write_text(PAGE.format("Second")),
        )
    assert "-- changed: intro.md" in said.read_text()
