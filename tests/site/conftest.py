"""The built book in a browser. Run `make book` first; `make test` does both.

The browser is $CHROMIUM, or a Chromium or Chrome on the path, or Playwright's own
(`playwright install chromium`). Without one these tests are skipped, loudly; with
CI=true they fail.
"""

import os

import pytest
from playwright.sync_api import sync_playwright

from tests.site.browser import (
    built_pages,
    find_browser,
    launched,
    served,
    site_folder,
)

NO_BROWSER = (
    "NO BROWSER: the built pages were not tried. Install Chromium (or run "
    "`playwright install chromium`), or set CHROMIUM to the path of one."
)


def pytest_terminal_summary(terminalreporter):
    skipped = terminalreporter.stats.get("skipped", [])
    silent = [report for report in skipped if NO_BROWSER in str(report.longrepr)]
    if silent:
        terminalreporter.section("NO BROWSER", sep="!", red=True, bold=True)
        terminalreporter.line(f"{len(silent)} tests skipped. {NO_BROWSER}", red=True)


@pytest.fixture(scope="session")
def site():
    folder = site_folder()
    if not built_pages(folder):
        pytest.fail(f"no built book in {folder}: run `make book` first", pytrace=False)
    return folder


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        executable = find_browser(playwright)
        if executable is None:
            if os.environ.get("CI") == "true":
                pytest.fail(NO_BROWSER, pytrace=False)
            pytest.skip(NO_BROWSER)
        with launched(playwright, executable) as running:
            yield running


@pytest.fixture(scope="session")
def base(site):
    with served(site) as address:
        yield address
