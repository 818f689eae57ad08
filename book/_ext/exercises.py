"""The buttons of an exercise page give the student notebook, which has no solutions.

The theme makes its buttons from a page's own name, and the page's own notebook holds
the solutions. So the Colab, download and source buttons are pointed elsewhere, the
student notebooks are copied into the site, and the page's notebook is taken out of it.
"""

import re
import shutil
from pathlib import Path

PAGES = "book/exercises/"
STUDENT = "notebooks/exercises/"
DOWNLOAD = "download-source-button"


def student_notebook(pagename: str) -> str:
    """Where the student notebook of an exercise page is, in repository and site."""
    return f"{STUDENT}{pagename.removeprefix(PAGES)}.ipynb"


def redirect(buttons: list[dict], pagename: str, download: str) -> None:
    """Point all buttons that would give the page's own notebook at the student's."""
    for button in buttons:
        redirect(button.get("buttons", []), pagename, download)
        if button.get("label") == DOWNLOAD:
            button["url"] = download
        elif "url" in button:
            own = re.escape(pagename) + r"\.ipynb"
            button["url"] = re.sub(own, student_notebook(pagename), button["url"])


def point_elsewhere(app, pagename, templatename, context, doctree) -> None:
    if pagename.startswith(PAGES):
        download = context["pathto"](student_notebook(pagename), 1)
        redirect(context["header_buttons"], pagename, download)
        # Sphinx and the theme show the source of a page by these
        context["show_source"] = context["has_source"] = False
        # the column of remarks in the tables of arguments has no name
        nameless = '<th class="head"><p></p></th>'
        context["body"] = context["body"].replace(nameless, "<td></td>")


def exchange_notebooks(app, exception: Exception | None) -> None:
    """Put the student notebooks into the site and take the pages' own out of it."""
    if exception or app.builder.name != "html":
        return
    site = Path(app.outdir)
    for docname in app.env.found_docs:
        if docname.startswith(PAGES):
            (site / "_sources" / f"{docname}.ipynb").unlink(missing_ok=True)
            target = site / student_notebook(docname)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(app.srcdir) / student_notebook(docname), target)


def setup(app) -> dict:
    # after the theme's own handlers, which make the buttons
    app.connect("html-page-context", point_elsewhere, priority=900)
    # before the links of the pages are checked
    app.connect("build-finished", exchange_notebooks, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
