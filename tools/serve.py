"""Show the built book on localhost; rebuild it, and reload the page, when it changes.

python -m tools.serve [--port 8000] [--command "make book STRICT="]
"""

import argparse
import shlex
import subprocess
import threading
from pathlib import Path

from livereload import Server
from watchfiles import DefaultFilter, watch

ROOT = Path(__file__).resolve().parent.parent
WATCHED = ("annotated", "book", "notebooks/src", "_config.yml", "_toc.yml")
GENERATED = r"\.ipynb$"  # by the build: no reason for the next one
BUILT = ROOT / "_build" / ".built"  # touched after a build; the pages reload by it


def rebuild(command: list[str]) -> None:
    """Run the command after each change; a change meanwhile starts the next run."""
    ignored = (*DefaultFilter.ignore_entity_patterns, GENERATED)
    sources = DefaultFilter(ignore_entity_patterns=ignored)
    for changes in watch(*(ROOT / name for name in WATCHED), watch_filter=sources):
        names = sorted({Path(path).name for _, path in changes})
        print(f"-- changed: {', '.join(names)}", flush=True)
        if subprocess.run(command, cwd=ROOT, check=False).returncode == 0:
            BUILT.touch()
        else:
            print("-- the build failed", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.serve")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument(
        "--command", type=shlex.split, default="make book STRICT=", help="what rebuilds"
    )
    options = parser.parse_args()
    threading.Thread(target=rebuild, args=[options.command], daemon=True).start()
    server = Server()
    server.watch(str(BUILT))
    server.serve(port=options.port, root=str(ROOT / "_build" / "html"))


if __name__ == "__main__":
    main()
