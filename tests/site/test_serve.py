"""`tools/serve.py`: pages from localhost, reloaded after a rebuild."""

import socket
import sys
import threading
import time
import urllib.request

import pytest

from tests.site.browser import visiting
from tools import serve


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book of one page with sources; pages are looked at ten times a second."""
    monkeypatch.setattr(serve, "POLL", 0.1)
    monkeypatch.setattr(serve, "RELOAD", serve.RELOAD.replace(b"},1000)", b"},100)"))
    site = tmp_path / "_build" / "html"
    site.mkdir(parents=True)
    (site / "index.html").write_text("<title>First</title><body>First</body>")
    (site / "data.txt").write_text("data")
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "intro.md").write_text("# First")
    return tmp_path


@pytest.fixture
def running(book):
    """A server and its watcher, whose build copies the source into the page."""
    server = serve.listen(book / "_build" / "html", 8765)
    stop, known = threading.Event(), serve.snapshot(book)
    code = (
        "import pathlib; text = pathlib.Path('book/intro.md').read_text();"
        "assert 'broken' not in text;"
        "pathlib.Path('_build/html/index.html').write_text(text)"
    )
    command = [sys.executable, "-c", code]
    threads = [
        threading.Thread(target=server.serve_forever),
        threading.Thread(target=serve.watch, args=(server, book, known, command, stop)),
    ]
    for thread in threads:
        thread.start()
    yield server
    stop.set()
    server.shutdown()
    for thread in threads:
        thread.join()
    server.server_close()


def get(server, path: str) -> bytes:
    address = f"http://127.0.0.1:{server.server_port}{path}"
    with urllib.request.urlopen(address) as answer:
        return answer.read()


def wait_for(condition) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "nothing happened in 30 s"
        time.sleep(0.05)


def test_pages_reload_and_other_files_are_as_on_the_disk(running, book):
    assert get(running, "/") == get(running, "/index.html")
    assert get(running, "/").startswith(b"<title>First</title>")
    assert get(running, "/").endswith(serve.RELOAD)
    assert get(running, "/data.txt") == b"data"
    assert b"<script>" not in (book / "_build" / "html" / "index.html").read_bytes()


def test_change_rebuilds_and_reloads_the_page(running, book, browser):
    with visiting(browser, f"http://127.0.0.1:{running.server_port}/") as visit:
        visit.open("index.html")
        visit.page.wait_for_timeout(300)  # it has seen the first stamp
        (book / "book" / "intro.md").write_text("<title>Second</title>")
        visit.page.wait_for_function("document.title === 'Second'")
    assert running.builds == 2


def test_failed_build_leaves_the_old_page(running, book, capfd):
    (book / "book" / "intro.md").write_text("broken")
    wait_for(lambda: "the build failed (exit 1)" in capfd.readouterr().out)
    assert running.builds == 1
    assert get(running, "/").startswith(b"<title>First</title>")


def test_new_and_removed_files_count_and_caches_do_not(book):
    before = serve.snapshot(book)
    (book / "book" / "setup.md").write_text("# Setup")
    (book / "book" / "intro.md").unlink()
    cache = book / "book" / "__pycache__" / "pages.pyc"
    cache.parent.mkdir()
    cache.touch()
    found = serve.changed(before, serve.snapshot(book))
    assert [path.name for path in found] == ["intro.md", "setup.md"]


def test_next_port_when_one_is_taken(book):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = serve.listen(book / "_build" / "html", port)
        assert port < server.server_port < port + 50
        server.server_close()


def test_no_port_left_is_said(book):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port}: neither"):
            serve.listen(book / "_build" / "html", port, tries=1)


def test_nothing_built_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(serve, "ROOT", tmp_path)
    assert serve.main([]) == 1
    assert "run `make book` first" in capsys.readouterr().err
