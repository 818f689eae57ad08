"""On a phone, menu and contents hide behind buttons: they open, lead on, and close."""

import pytest
import yaml

from tests.site.browser import ROOT, visiting
from tests.site.checkers import axe

pytestmark = pytest.mark.covers("_toc.yml")

PAGE = "notebooks/04_masks.html"


@pytest.fixture
def phone(browser, base):
    with visiting(browser, base, viewport={"width": 390, "height": 844}) as visit:
        visit.open(PAGE)
        yield visit.page


def links(page):
    return page.locator("dialog[open] a:visible")


def opened(page, button: str):
    """Open what hides behind a button, by keyboard; return the button."""
    assert links(page).count() == 0
    toggle = page.get_by_role("button", name=button)
    toggle.focus()
    page.keyboard.press("Enter")
    links(page).first.wait_for()
    return toggle


@pytest.mark.parametrize(
    ("button", "beside"),
    [("Toggle primary sidebar", 380), ("Toggle secondary sidebar", 10)],
)
def test_menu_opens_and_closes(phone, button, beside):
    toggle = opened(phone, button)
    box = phone.locator("dialog[open]").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert axe(phone) == []
    phone.keyboard.press("Escape")
    assert links(phone).count() == 0
    assert toggle.evaluate("(node) => node === document.activeElement")
    opened(phone, button)
    phone.mouse.click(beside, 700)
    assert links(phone).count() == 0


def test_menu_leads_to_every_page(phone):
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text())
    pages = [page["file"] for part in contents["parts"] for page in part["chapters"]]
    opened(phone, "Toggle primary sidebar")
    found = links(phone).evaluate_all("(all) => all.map((link) => link.href)")
    assert not [page for page in pages if not any(f"{page}.html" in f for f in found)]


def test_contents_lead_to_a_section(phone):
    opened(phone, "Toggle secondary sidebar")
    target = links(phone).nth(1).get_attribute("href")
    links(phone).nth(1).focus()
    phone.keyboard.press("Enter")
    phone.wait_for_function("(hash) => location.hash === hash", arg=target)
    assert phone.locator(f"{target}:visible").count() == 1
    assert links(phone).count() == 0  # or they cover what they lead to
