"""The book on plain Sphinx 9, without Jupyter Book, from the same two files.

`make sphinx9`, weekly in CI: Jupyter Book 1 stays with Sphinx 7, and one day that may
not install any more.
"""

import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
book = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
globals().update(book["sphinx"]["config"])

extensions = list(book["sphinx"]["config"]["extensions"])
extensions.remove("jupyter_book")
project, author, copyright = book["title"], book["author"], book["copyright"]
exclude_patterns = book["exclude_patterns"]
external_toc_path, external_toc_exclude_missing = str(ROOT / "_toc.yml"), True
myst_enable_extensions = book["parse"]["myst_enable_extensions"]
bibtex_bibfiles = [str(ROOT / name) for name in book["bibtex_bibfiles"]]
nb_execution_mode = book["execute"]["execute_notebooks"]
html_theme, html_title = "sphinx_book_theme", project
html_favicon = str(ROOT / book["html"]["favicon"])
html_static_path = [
    str(ROOT / name) for name in book["sphinx"]["config"]["html_static_path"]
]
templates_path = [str(ROOT / "book" / "_templates")]
html_theme_options = {
    **book["sphinx"]["config"]["html_theme_options"],
    "repository_url": book["repository"]["url"],
    "repository_branch": book["repository"]["branch"],
    "path_to_docs": book["repository"]["path_to_book"],
    "use_issues_button": book["html"]["use_issues_button"],
    "use_repository_button": book["html"]["use_repository_button"],
    "launch_buttons": book["launch_buttons"],
}
