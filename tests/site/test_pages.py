"""Every built page in a browser, below a sub-path, with no other host in reach.

The tests of a page share one visit and run in this order: what it looks like when
nothing was touched, then unfolded, then used, then narrowed.
"""

import pytest

from tests.site import checkers
from tests.site.browser import SUBPATH

PHONE = (360, 740)


def count(visit, selector: str) -> int:
    return visit.page.locator(selector).count()


def test_page_loads_without_an_error(visit):
    assert visit.page.url.startswith(visit.base)
    assert SUBPATH in visit.base
    assert visit.page.locator("main h1:visible").count() >= 1
    assert visit.errors == []
    assert visit.failed == []


def test_images_have_a_text(visit):
    assert checkers.images(visit.page) == []


def test_formulas_are_typeset(visit):
    assert checkers.mathematics(visit.page) == []


def test_widget_manager_loads_only_where_there_are_widgets(visit):
    holds = count(visit, 'script[type="application/vnd.jupyter.widget-view+json"]')
    loaded = [url for url in visit.loaded if "/html-manager/embed.js" in url]
    assert len(loaded) == (1 if holds else 0)
    assert not [url for url in visit.loaded if "require" in url.rpartition("/")[2]]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(visit, theme):
    checkers.set_theme(visit.page, theme)
    assert checkers.axe(visit.page) == []


def test_skip_link_comes_first_and_leads_to_the_text(visit):
    visit.page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    visit.page.locator("body").press("Tab")
    focused = visit.page.locator(":focus")
    assert focused.inner_text() == "Skip to main content"
    box = focused.bounding_box()
    assert box["y"] >= 0 and box["height"] > 10 and box["width"] > 50
    visit.page.keyboard.press("Enter")
    # the address follows a moment later on a busy machine
    visit.page.wait_for_function("location.hash !== ''", timeout=10_000)
    assert visit.page.evaluate("location.hash") == "#main-content"


def test_focus_is_visible(visit):
    visit.page.locator("body").press("Tab")
    assert checkers.focus_stops(visit.page, 30) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_with_everything_unfolded(visit, theme):
    checkers.open_everything(visit.page)
    checkers.set_theme(visit.page, theme)
    assert checkers.axe(visit.page) == []


def test_frame_sliders_move_their_pictures(visit):
    number = count(visit, ".annotated-frames")
    wrong = {n: checkers.slider(visit.page, n) for n in range(number)}
    assert not any(wrong.values()), wrong


def test_explorers_agree_with_python(visit):
    number = count(visit, ".annotated-explorer")
    wrong = {n: checkers.explorer_checks(visit.page, n) for n in range(number)}
    assert not any(wrong.values()), wrong


def test_explorers_work_by_keyboard(visit):
    number = count(visit, ".annotated-explorer")
    wrong = {n: checkers.explorer_keyboard(visit.page, n) for n in range(number)}
    assert not any(wrong.values()), wrong


def test_axe_finds_nothing_after_use(visit):
    assert checkers.axe(visit.page) == []


def test_phone_does_not_scroll_sideways(visit):
    checkers.narrow(visit.page, *PHONE)
    assert checkers.sideways(visit.page) == []


def test_axe_finds_nothing_on_a_phone(visit):
    checkers.narrow(visit.page, *PHONE)
    assert checkers.axe(visit.page) == []


def test_nothing_was_asked_of_another_host(visit):
    """Last: it speaks for the whole visit."""
    assert visit.blocked == []
    assert visit.loaded, "no request was seen: the check sees nothing"


def test_nothing_failed_in_use(visit):
    assert visit.errors == []
    assert visit.failed == []
