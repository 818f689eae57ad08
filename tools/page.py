"""Execute one page and build it alone: a minute, where the book takes a quarter hour.

    make page NAME=13b

The last line names the page; its links to the rest of the book warn, and lead nowhere.
"""

import subprocess
import sys
from pathlib import Path

from tools import ROOT, execute, notebook_named

FOLDER = ROOT / "_build" / "page"
CONTENTS = "format: jb-book\nroot: book/bibliography\n"  # and the page itself


def main(arguments: list[str] | None = None) -> int:
    (name,) = sys.argv[1:] if arguments is None else arguments
    page = notebook_named(name)
    if failed := execute.main([str(page)]):
        return failed
    FOLDER.mkdir(parents=True, exist_ok=True)
    document = page.relative_to(ROOT).with_suffix("")
    contents = f"chapters:\n  - file: {document.as_posix()}\n"
    (FOLDER / "_toc.yml").write_text(CONTENTS + contents, encoding="utf-8")
    command = [Path(sys.executable).with_name("jupyter-book"), "build", ".", "--quiet"]
    options = ["--toc", FOLDER / "_toc.yml", "--path-output", FOLDER]
    done = subprocess.run([*command, *options], cwd=ROOT, check=False)
    print(f"The page: _build/page/_build/html/{document.as_posix()}.html")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
