"""One page a kind, opened from the disk (file://), where nothing is served.

The other pages hold the same scripts; that none of them fetches anything, which a
browser refuses there, is seen when they are served (`checkers.needs_a_server`).
"""

import pytest

from tests.site import checkers
from tests.site.browser import visiting

pytestmark = pytest.mark.covers()

CHAPTER = "notebooks/01_seq2seq_attention.html"
KINDS = [
    CHAPTER,  # formulas, explorers
    "book/exercises/02_self_attention.html",
    "book/api.html",
    "book/notation.html",
]


@pytest.fixture
def disk(browser, site):
    with visiting(browser, site.as_uri() + "/") as visit:
        yield visit


@pytest.mark.parametrize("address", KINDS)
def test_page(disk, address):
    disk.open(address)
    assert disk.page.url.startswith("file:")
    assert disk.page.locator("main h1:visible").count() == 1
    assert checkers.mathematics(disk.page) == []
    assert {check: wrong for check, wrong in checkers.uses(disk.page) if wrong} == {}
    assert disk.blocked == disk.errors == []


def test_first_page_leads_into_the_book(disk):
    disk.page.goto(disk.base + "index.html")
    disk.page.wait_for_url("**/book/intro.html")
    assert disk.page.locator("main h1:visible").count() == 1


def test_search_finds_the_first_chapter(disk):
    disk.open("search.html?q=attention")
    disk.page.locator(".search-summary", has_text="found").wait_for()
    hits = disk.page.locator(f'#search-results a[href*="{CHAPTER}"]')
    assert hits.count() >= 1
    assert disk.blocked == disk.errors == []
