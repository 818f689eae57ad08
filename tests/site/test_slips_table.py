"""The table of slips: found, sorted and opened, by keyboard, too, and on a phone."""

import pytest

from annotated.chapters.ch20.drawings import slips_table
from benchmarks.record import read

pytestmark = pytest.mark.covers("20")


@pytest.fixture(params=[900, 390])
def page(browser, request):
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    page.set_content(f"<main>{slips_table(read('slips')).text}</main>")
    yield page
    page.close()


def titles(page):
    return page.locator("tbody:visible th").all_inner_texts()


def test_a_word_leaves_those_that_have_it(page):
    count = len(titles(page))
    page.get_by_label("Find").fill("bare except")
    assert titles(page) == ["A bare except that tries something else"]
    assert page.locator("output").inner_text().strip() == f"1 of {count} slips"
    page.get_by_label("Find").fill("")
    assert len(titles(page)) == count


def test_a_header_sorts_up_and_down_by_keyboard(page):
    header = page.get_by_role("button", name="Repaired in")
    places = page.locator("tbody td:nth-child(5)")
    header.focus()
    page.keyboard.press("Enter")
    assert places.first.inner_text() == "1" and places.last.inner_text() == "18"
    page.keyboard.press("Enter")
    assert places.first.inner_text() == "18"
    assert page.locator("thead [aria-sort]").get_attribute("aria-sort") == "descending"


def test_a_row_opens_and_nothing_is_wider_than_the_window(page):
    page.locator("summary").first.press("Enter")
    assert page.locator("pre").first.is_visible()
    page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
