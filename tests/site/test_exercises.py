"""A page of exercises: its solutions folded, its buttons to the student notebook."""

import json
import re
from urllib.parse import urljoin

import pytest
import yaml
from bs4 import BeautifulSoup

from book._ext.pages import PageScan
from tests.site.browser import ROOT, built_pages, site_folder

EXERCISES = "book/exercises/"
PAGES = [page for page in built_pages(site_folder()) if page.startswith(EXERCISES)]


def student(page):
    stem = page.removeprefix(EXERCISES).removesuffix(".html")
    return f"notebooks/exercises/{stem}.ipynb"


def links(site, page):
    return PageScan((site / page).read_text(encoding="utf-8")).links


def test_every_source_has_its_page(site):
    sources = sorted((ROOT / "notebooks/src/exercises").glob("*.py"))
    assert sources
    assert PAGES == [f"{EXERCISES}{source.stem}.html" for source in sources]


@pytest.mark.parametrize("page", PAGES)
def test_every_button_gives_the_student_notebook(site, page):
    repository = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]
    blob = f"{repository['url']}/blob/{repository['branch']}/"
    colab = blob.replace("github.com", "colab.research.google.com/github")
    found = links(site, page)
    assert colab + student(page) in found
    assert f"{blob}{student(page)}?plain=1" in found
    assert student(page) in [urljoin(page, link) for link in found]
    own = page.replace(".html", ".ipynb")
    assert not [link for link in found if own in link]


@pytest.mark.parametrize("page", PAGES)
def test_the_site_holds_no_notebook_with_solutions(site, page):
    given = json.loads((site / student(page)).read_text(encoding="utf-8"))
    committed = json.loads((ROOT / student(page)).read_text(encoding="utf-8"))
    assert given == committed
    name = page.rsplit("/", 1)[1].replace(".html", ".ipynb")
    found = {path.relative_to(site).as_posix() for path in site.rglob(name)}
    # the chapter of the same name is behind its own download button
    assert found - {f"_sources/notebooks/{name}"} == {student(page)}


@pytest.mark.parametrize("page", PAGES)
def test_every_solution_is_folded_was_run_and_passed(site, page):
    text = (site / page).read_text(encoding="utf-8")
    folded = BeautifulSoup(text, "html.parser").select("main details")
    assert len(folded) >= 4
    for fold in folded:
        assert not fold.has_attr("open")
        assert re.search("solution|Model answer|code", fold.summary.get_text())
    solutions = text.count("Show the solution<")
    assert solutions >= 3
    assert len(re.findall(r"all \d+ checks of ch[\w-]+ passed", text)) == solutions
    assert "✗" not in text
