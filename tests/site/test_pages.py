"""Every built page in a browser, below a sub-path, with no other host in reach."""

import pytest

from tests.site.browser import SUBPATH, built_pages, site_folder, visiting
from tests.site.checkers import findings

PAGES = built_pages(site_folder()) or ["nothing is built"]


@pytest.mark.parametrize("address", PAGES)
def test_page(address, browser, base):
    assert SUBPATH in base
    with visiting(browser, base) as visit:
        found = {check: wrong for check, wrong in findings(visit, address) if wrong}
    lines = [f"{check}: {fault}" for check, wrong in found.items() for fault in wrong]
    if lines:
        pytest.fail("\n".join([address, *lines]), pytrace=False)
