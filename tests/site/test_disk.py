"""The same pages opened from the disk (file://), where nothing is served."""

from tests.site import checkers
from tests.site.browser import visiting
from tests.site.test_pages import count

CHAPTER = "notebooks/01_seq2seq_attention.html"


def test_page_loads_without_an_error(visit_disk):
    assert visit_disk.page.url.startswith("file:")
    assert visit_disk.page.locator("main h1:visible").count() >= 1
    assert visit_disk.errors == []


def test_formulas_are_typeset(visit_disk):
    assert checkers.mathematics(visit_disk.page) == []


def test_frame_sliders_move_their_pictures(visit_disk):
    number = count(visit_disk, ".annotated-frames")
    wrong = {n: checkers.slider(visit_disk.page, n) for n in range(number)}
    assert not any(wrong.values()), wrong


def test_explorers_agree_with_python(visit_disk):
    number = count(visit_disk, ".annotated-explorer")
    wrong = {n: checkers.explorer_checks(visit_disk.page, n) for n in range(number)}
    assert not any(wrong.values()), wrong


def test_nothing_was_asked_of_another_host(visit_disk):
    assert visit_disk.blocked == []
    assert visit_disk.errors == []


def test_first_page_leads_into_the_book(browser, site):
    with visiting(browser, site.as_uri() + "/") as visit:
        visit.page.goto(visit.base + "index.html")
        visit.page.wait_for_url("**/book/intro.html")
        assert visit.page.locator("main h1:visible").count() >= 1


def test_search_finds_the_first_chapter(browser, site):
    with visiting(browser, site.as_uri() + "/") as visit:
        visit.open("search.html?q=attention")
        visit.page.locator(".search-summary", has_text="found").wait_for()
        hits = visit.page.locator(f'#search-results a[href*="{CHAPTER}"]')
        assert hits.count() >= 1
        assert visit.errors == []
