"""The built book in a browser. Run `make book` first; `make test` does both.

The browser is $CHROMIUM, or a Chromium or Chrome on the path, or Playwright's own
(`playwright install chromium`). Without one these tests are skipped, loudly; with
CI=true they fail.

Every page is visited once, with all states of its drawings. A test in more detail says
what it covers, `@pytest.mark.covers("17", "page/pair")`: a chapter by its number, other
files by a piece of their path. It runs when one of them differs from the main branch,
when its own file does, or what all pages share; and of the others runs a tenth, chosen
by the commit. All run if ANNOTATED_ALL is set, or where a file of tests is named.
"""

import os
import re
from functools import cache

import pytest
from playwright.sync_api import sync_playwright

from tests import sample
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

# what all pages share; of the laboratory and of chapters, their own tests say it
SHARED = re.compile(
    r"^(annotated/page/(?!.*(ch\d|laboratory))|book/(_ext|_static|vendor)/|_config\.yml"
    r"|requirements\.txt|tests/site/(browser|checkers|conftest|drawings))"
)


@cache
def changed() -> list[str]:
    """The files that differ from the main branch, committed or not; of tests, ours."""
    if not sample.base():
        return []
    new = sample.git("ls-files", "--others", "--exclude-standard")
    every = sample.git("diff", "--name-only", sample.base()) + b"\n" + new
    files = every.decode().split()
    return [one for one in files if not re.match("tests/(?!site/)", one)]


def reached(covered: tuple[str, ...], own: str) -> bool:
    """Whether a test in the file `own` covers anything that has changed."""
    chapters = [rf"(ch|/){one}(?!\d)" for one in covered if one.isdigit()]
    others = [re.escape(one) for one in (*covered, own) if not one.isdigit()]
    wanted = re.compile("|".join([SHARED.pattern, *chapters, *others]))
    return any(map(wanted.search, changed()))


def pytest_configure(config):
    config.addinivalue_line("markers", "covers(*files): run when one of them changed")


def pytest_collection_modifyitems(config, items):
    if os.environ.get("ANNOTATED_ALL") or any(".py" in one for one in config.args):
        return
    spared = [
        item
        for item in items
        for mark in [item.get_closest_marker("covers")]
        if mark and not reached(mark.args, item.location[0])
        if not sample.chosen(item.nodeid, one_in=10)
    ]
    items[:] = [item for item in items if item not in spared]
    config.hook.pytest_deselected(items=spared)


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
