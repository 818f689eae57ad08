"""What concerns the site as a whole: search, buttons, theme, weight, vendored code."""

import gzip
import json
import re
from urllib.parse import urljoin, urlsplit

import pytest
import yaml

from book._ext.pages import PageScan
from tests.site.browser import ROOT, built_pages, site_folder, visiting
from tools import vendor

CHAPTER = "notebooks/01_seq2seq_attention.html"
PAGES = built_pages(site_folder())
CHAPTERS = [page for page in PAGES if page.startswith("notebooks/")]
MEGABYTE = 2**20


@pytest.fixture(scope="module")
def repository():
    return yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]


def links(site, page: str) -> list[str]:
    return PageScan((site / page).read_text(encoding="utf-8")).links


def test_chapters_are_there(site):
    assert CHAPTER in CHAPTERS


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_buttons_lead_to_the_notebook_without_outputs(site, repository, chapter):
    notebook, found = chapter.removesuffix(".html") + ".ipynb", links(site, chapter)
    blob = f"{repository['url']}/blob/{repository['branch']}/{notebook}"
    colab = blob.replace("github.com", "colab.research.google.com/github")
    assert {colab, f"{blob}?plain=1", repository["url"]} <= {*found}
    assert any(link.startswith(f"{repository['url']}/issues/new") for link in found)
    wanted = f"_sources/{notebook}"
    assert wanted in [urljoin(chapter, link) for link in found]
    cells = json.loads((site / wanted).read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert not any(cell["outputs"] for cell in code)


@pytest.mark.parametrize("page", PAGES)
def test_page_is_light(site, page):
    packed = gzip.compress((site / page).read_bytes())
    assert 1000 < len(packed) < 3 * MEGABYTE


def test_search_finds_the_first_chapter(browser, base):
    with visiting(browser, base) as visit:
        visit.open("book/intro.html")
        visit.page.get_by_role("button", name="Search").click()
        visit.page.keyboard.type("attention")
        visit.page.keyboard.press("Enter")
        visit.page.wait_for_url("**/search.html?q=attention")
        visit.page.locator(".search-summary", has_text="found").wait_for()
        hit = visit.page.locator(f'#search-results a[href*="{CHAPTER}"]').first
        hit.click()
        visit.page.wait_for_url(f"**/{CHAPTER}*")
        assert "attention" in visit.page.locator("main h1:visible").inner_text().lower()
        assert visit.blocked == []
        assert visit.errors == []


def test_theme_button_turns_the_page_dark_and_the_next_page_remembers(browser, base):
    with visiting(browser, base, color_scheme="light") as visit:
        visit.open("book/intro.html")
        theme = "document.documentElement.dataset.theme"
        assert visit.page.evaluate(theme) == "light"
        for _ in range(3):  # the button goes round: system, light, dark
            visit.page.locator(".theme-switch-button:visible").click()
            if visit.page.evaluate(theme) == "dark":
                break
        assert visit.page.evaluate(theme) == "dark"
        visit.open("search.html")
        assert visit.page.evaluate(theme) == "dark"


def test_vendored_code_has_its_licences():
    manifest = json.loads((vendor.VENDOR / "MANIFEST.json").read_text())
    for package in manifest["packages"]:
        licences = [name for name in package["files"] if "LICENSE" in name]
        assert licences, f"{package['name']} has no licence file"


def test_site_serves_the_vendored_bytes(site):
    manifest = json.loads((vendor.VENDOR / "MANIFEST.json").read_text())
    for package in manifest["packages"]:
        for name, expected in package["files"].items():
            assert vendor.sha256(site / "_static" / name) == expected, name


def test_a_shared_link_a_catalogue_and_a_lost_reader_find_what_they_need(site):
    page = (site / "notebooks" / "13_lsh_attention.html").read_text("utf-8")
    config = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]
    address = config["html_baseurl"]
    here = f"{address}notebooks/13_lsh_attention.html"
    assert page.count('name="viewport"') == 1
    assert f'<link rel="canonical" href="{here}"' in page
    latest = here.replace("/stable/", "/latest/")
    assert latest != here and f'<a href="{latest}">latest</a>' in page
    for name in ("description", "citation_title", "citation_publication_date"):
        assert re.search(f'<meta name="{name}" content="[^"]{{8,}}', page), name
    card = re.search(r'og:image" content="([^"]+)', page)[1]
    assert (site / card.removeprefix(address)).stat().st_size > 5000
    assert f"<loc>{here}</loc>" in (site / "sitemap.xml").read_text("utf-8")
    lost = (site / "404.html").read_text("utf-8")
    assert re.search(r'href="(/[^"]+)_static/', lost)[1] == urlsplit(address).path
