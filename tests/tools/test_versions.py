"""tools/versions.py: the last release and main under one address."""

import re
import shutil

import pytest
import yaml

from book._ext.pages import RELEASED
from tools import ROOT, versions

LOST = '<link href="/book/stable/_static/site.css">'
MAP = "<loc>https://example.org/book/stable/a.html</loc>"


@pytest.fixture
def site(tmp_path):
    """A function that assembles a site, with or without a release."""

    def assemble(released):
        for name in ("released", "built"):
            folder = tmp_path / name
            folder.mkdir()
            for file in ("index.html", "a.html"):
                (folder / file).write_text(name)
            (folder / "404.html").write_text(f"{name} {LOST}")
            (folder / "sitemap.xml").write_text(f"{name} {MAP}")
        if released:
            shutil.make_archive(tmp_path / "stable", "zip", tmp_path / "released")
        old = tmp_path / "site" / "stable" / "gone.html"
        old.parent.mkdir(parents=True)
        old.touch()
        paths = tmp_path / "built", tmp_path / "stable.zip", tmp_path / "site"
        return versions.assemble(*paths), tmp_path / "site"

    return assemble


@pytest.mark.parametrize(
    ("released", "first", "text"),
    [(True, "stable", "released"), (False, "latest", "built")],
)
def test_the_root_leads_to_the_release_or_to_main(released, first, text, site):
    said, root = site(released)
    assert said == first
    assert (root / "latest" / "a.html").read_text() == "built"
    assert (root / "stable").exists() == released
    assert not (root / "stable" / "gone.html").exists()
    entry = (root / "index.html").read_text()
    assert set(re.findall(r"(\w+)/index\.html", entry)) == {first}
    assert (root / first / "a.html").read_text() == text
    assert (root / "404.html").read_text() == f"{text} {LOST}".replace("stable", first)
    wanted = f"{text} {MAP}".replace("stable", first)
    assert (root / "sitemap.xml").read_text() == wanted


def test_a_release_attaches_what_the_site_downloads_and_starts_it():
    workflow = {
        name: (ROOT / f".github/workflows/{name}.yml").read_text("utf-8")
        for name in ("pages", "release")
    }
    assert versions.STABLE.name in [name for name, *_ in RELEASED]
    assert f"--pattern {versions.STABLE.name} --dir _build" in workflow["pages"]
    assert "_build/annotated-transformers-*.zip" in workflow["release"]
    assert "gh workflow run pages.yml --ref main" in workflow["release"]
    assert yaml.safe_load(workflow["pages"])[True].keys() == {
        "push",
        "workflow_dispatch",
    }  # YAML 1.1 takes `on` for true
