"""Show the built book on localhost; rebuild it, and reload the page, when it changes.

python -m tools.serve [--port 8000] [--command "make book"]
"""

import argparse
import shlex
import subprocess
import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WATCHED = ("annotated", "book", "notebooks/src", "_config.yml", "_toc.yml")
POLL = 1.0  # seconds
STAMP = "/.stamp"

# Only in the bytes that are sent: the files on the disk stay as they were built.
RELOAD = (
    b"<script>(function(){var seen;setInterval(function(){"
    b'fetch("%s").then(function(r){return r.text()}).then(function(now){'
    b"if(seen&&now!==seen)location.reload();seen=now}).catch(function(){})"
    b"},%d)})()</script>" % (STAMP.encode(), 1000 * POLL)
)


class Handler(SimpleHTTPRequestHandler):
    """Files of the site, with the script that reloads in every page."""

    def do_GET(self) -> None:
        if self.path == STAMP:
            self.reply(str(self.server.builds).encode(), "text/plain")
            return
        path = Path(self.translate_path(self.path))
        page = path / "index.html" if self.path.endswith("/") else path
        if page.suffix == ".html" and page.is_file():
            self.reply(page.read_bytes() + RELOAD, "text/html; charset=utf-8")
        else:
            super().do_GET()

    def reply(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format: str, *args) -> None:
        """Quiet: the terminal is for what the builds say."""


def listen(site: Path, port: int, tries: int = 50) -> ThreadingHTTPServer:
    """A server of `site` on `port`, or on the next port that is free."""
    handler = partial(Handler, directory=str(site))
    for candidate in range(port, port + tries):
        try:
            server = ThreadingHTTPServer(("127.0.0.1", candidate), handler)
        except OSError:
            continue
        server.builds = 1
        return server
    raise OSError(f"port {port}: neither it nor the {tries - 1} after it are free")


def snapshot(root: Path) -> dict[Path, tuple[int, int]]:
    """When each watched file was last written, and its size."""
    files = []
    for name in WATCHED:
        path = root / name
        files += [path] if path.is_file() else path.rglob("*")
    state = {}
    for path in files:
        if "__pycache__" in path.parts or not path.is_file():
            continue
        stat = path.stat()
        state[path] = (stat.st_mtime_ns, stat.st_size)
    return state


def changed(before: dict, after: dict) -> list[Path]:
    keys = before.keys() | after.keys()
    return sorted(path for path in keys if before.get(path) != after.get(path))


def watch(
    server, root: Path, known: dict, command: list[str], stop: threading.Event
) -> None:
    """Run `command` when files are not as `known`; tell the pages if it succeeds."""
    while not stop.wait(POLL):
        now = snapshot(root)
        files = changed(known, now)
        if not files:
            continue
        # editors write in steps: wait until a whole interval passes without a change
        while not stop.wait(POLL / 2) and (later := snapshot(root)) != now:
            now = later
        known = now  # of before the build: a change during it starts the next
        names = ", ".join(str(path.relative_to(root)) for path in files[:3])
        print(f"-- changed: {names}{' ...' if len(files) > 3 else ''}", flush=True)
        started = time.monotonic()
        code = subprocess.run(command, cwd=root, check=False).returncode
        took = time.monotonic() - started
        if code == 0:
            server.builds += 1
            print(f"-- built in {took:.0f} s", flush=True)
        else:
            print(f"-- the build failed (exit {code}); the old pages stay", flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=8000, help="first one to try")
    parser.add_argument("--command", default="make book", help="what rebuilds")
    options = parser.parse_args(arguments)
    site = ROOT / "_build" / "html"
    if not (site / "index.html").is_file():
        print(f"serve: no book in {site}: run `make book` first", file=sys.stderr)
        return 1
    try:
        server = listen(site, options.port)
    except (OSError, OverflowError) as error:
        print(f"serve: {error}", file=sys.stderr)
        return 1
    print(f"The book: http://localhost:{server.server_port}/ (Ctrl-C ends)", flush=True)
    print(f"Rebuilt by `{options.command}` when a source changes.", flush=True)
    stop, known = threading.Event(), snapshot(ROOT)
    command = shlex.split(options.command)
    watcher = threading.Thread(target=watch, args=(server, ROOT, known, command, stop))
    watcher.start()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
    finally:
        stop.set()
        watcher.join()
        server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
