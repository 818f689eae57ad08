"""Put together what GitHub Pages serves: the last release's book and that of main.

    python -m tools.versions

``/stable/`` is the site that the last release has attached (``STABLE``, which the
workflow downloads), ``/latest/`` the one that `make book` has just built. The root
leads to the first of them, as do its 404 page and its map for search engines. Without a
release, ``/latest/`` stands in. A page names its stable address as the canonical one.
"""

import shutil
import zipfile
from pathlib import Path

from tools import ROOT

LATEST = ROOT / "_build" / "html"
STABLE = ROOT / "_build" / "annotated-transformers-html.zip"
SITE = ROOT / "_build" / "site"
ENTRY = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>The Annotated Transformers</title>
<meta http-equiv="refresh" content="0; url={first}/index.html">
<a href="{first}/index.html">The Annotated Transformers</a>
"""


def assemble(latest: Path = LATEST, stable: Path = STABLE, site: Path = SITE) -> str:
    """Write the site anew; the version that its root leads to."""
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(latest, site / "latest")
    first = "latest"
    if stable.is_file():
        zipfile.ZipFile(stable).extractall(site / "stable")
        first = "stable"
    (site / "index.html").write_text(ENTRY.format(first=first), encoding="utf-8")
    for name in ("404.html", "sitemap.xml"):
        text = (site / first / name).read_text("utf-8")
        (site / name).write_text(text.replace("/stable/", f"/{first}/"), "utf-8")
    return first


if __name__ == "__main__":
    print(f"{SITE}: its root leads to /{assemble()}/")
