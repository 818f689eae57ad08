"""Every built page in a browser, below a sub-path, with no other host in reach."""

import re

import pytest

from tests.site import checkers
from tests.site.browser import SUBPATH, built_pages, site_folder, visiting

PAGES = built_pages(site_folder()) or ["nothing is built"]


def covers(address: str):
    """The page's chapter, or its own source."""
    chapter = re.match(r"(?:notebooks|book/exercises)/(\d\d)", address)
    source = chapter[1] if chapter else address.replace(".html", ".")
    return pytest.param(address, marks=pytest.mark.covers(source))


def faults(browser, base, address, findings) -> list[str]:
    assert SUBPATH in base
    with visiting(browser, base) as visit:
        return [f"{c}: {one}" for c, wrong in findings(visit, address) for one in wrong]


@pytest.mark.parametrize("address", PAGES)
def test_page_and_all_its_drawings(address, browser, base):
    found = faults(browser, base, address, checkers.first_sight)
    assert not found, "\n".join([address, *found])


@pytest.mark.parametrize("address", [covers(page) for page in PAGES])
def test_page_in_use_in_the_dark_and_on_a_phone(address, browser, base):
    found = faults(browser, base, address, checkers.in_use)
    assert not found, "\n".join([address, *found])
