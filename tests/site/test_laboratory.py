"""The laboratory's page: a run from http and from a disk, and what may go wrong."""

import re

import pytest

from tests.site.browser import visiting
from tests.site.checkers import axe

PAGE = "book/laboratory.html"
RUN_MS = 120_000  # a run takes seconds on an idle core


@pytest.fixture
def visit(browser, base):
    with visiting(browser, base) as opened:
        opened.open(PAGE)
        yield opened
        assert opened.errors == opened.blocked == opened.failed == []


@pytest.fixture
def page(visit):
    return visit.page


def status(page) -> str:
    return page.locator(".lab-status").inner_text()


def button(page, name: str):
    return page.get_by_role("button", name=name, exact=True)


def finished(page) -> str:
    button(page, "Train").wait_for(timeout=RUN_MS)
    return status(page)


def switches(page) -> None:
    page.get_by_text("All switches", exact=True).click()


def short(page) -> None:
    """Switches with which a run of all steps is quick."""
    switches(page)
    page.get_by_label("Width").select_option("16")
    page.get_by_label("Heads").select_option("1")


def learns(visit) -> None:
    page = visit.page
    assert page.workers == []  # nothing starts by itself
    assert status(page) == "Nothing is trained yet."
    button(page, "Train").click()
    found = re.match(r"Learnt: (\d+) steps, .* writes (\d+) of 1000", finished(page))
    steps, right = map(int, found.groups())
    assert 100 <= steps <= 300 and right >= 990
    page.locator(".lab-verdict", has_text="✓ right").wait_for()
    assert "headache → ehcadaeh" in page.locator(".lab-written").inner_text()
    assert page.locator(".lab-maps canvas").count() == 4
    (row,) = page.locator(".lab-scroll[aria-label='Your runs'] tbody tr").all()
    assert row.inner_text().split("\t")[:4] == ["1", "everything on", "1", str(steps)]


def test_it_learns_over_http(visit):
    learns(visit)
    assert axe(visit.page) == []


def test_it_learns_from_a_disk(browser, site):
    with visiting(browser, site.as_uri() + "/") as visit:
        visit.open(PAGE)
        learns(visit)
        assert visit.errors == visit.blocked == []


def test_train_and_stop_by_keyboard_and_again(page):
    button(page, "Train").focus()
    page.keyboard.press("Enter")
    page.locator(".lab-status", has_text="Step").wait_for()
    page.keyboard.press("Enter")
    assert finished(page).startswith("Stopped")
    assert button(page, "Train").evaluate("(node) => node === document.activeElement")
    button(page, "Again with another seed").focus()
    page.keyboard.press("Enter")
    page.locator(".lab-status", has_text="Step").wait_for()
    page.keyboard.press("Space")  # the button that stops has the focus
    assert finished(page).startswith("Stopped")
    rows = page.locator(".lab-scroll[aria-label='Your runs'] tbody tr")
    seeds = [row.split("\t")[2] for row in rows.all_inner_texts()]
    assert seeds == ["2", "1"]
    assert page.locator("polyline.lab-old").count() >= 1


def test_a_screen_reader_hears_little(page):
    listen = """() => {
      const live = document.querySelector(".annotated-laboratory > [role=status]");
      window.heard = [];
      new MutationObserver(() => window.heard.push(live.textContent))
        .observe(live, { childList: true });
    }"""
    page.evaluate(listen)
    short(page)
    button(page, "Train").click()
    said = finished(page)
    heard = page.evaluate("window.heard")
    seconds = page.evaluate("performance.now()") / 1000
    assert heard[0] == "Training." and heard[-1] == said
    assert len(heard) <= 2 + seconds / 8


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("Learning rate", "fast", "“fast” won't do. It must be a number above 0"),
        ("Learning rate", "-1", "“-1” won't do."),
        ("Learning rate", "", "“” won't do."),
        ("Seed", "1.5", "It must be a whole number"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused(page, field, typed, said):
    switches(page)
    page.get_by_label(field).fill(typed)
    button(page, "Train").click()
    assert said in page.get_by_role("alert").inner_text()
    assert page.get_by_label(field).get_attribute("aria-invalid") == "true"
    assert page.workers == []
    page.get_by_label(field).fill("1")
    page.keyboard.press("Tab")
    assert page.locator("[role=alert]").inner_text() == ""


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("headac", "It reads words of 8 letters: 2 more, please."),
        ("headachesss", "“s” isn't a letter from a to j"),
        ("aaaaaaaaaa", "2 fewer, please"),
        ("HEAD 123", "“ ” isn't a letter"),
    ],
)
def test_a_word_that_it_cannot_read(page, typed, said):
    button(page, "Train").click()
    word = page.get_by_label("A word of 8 letters")
    word.fill(typed)
    trouble = page.locator(f"#{word.get_attribute('aria-describedby')}")
    assert said in trouble.inner_text()
    word.fill("bigcabde")
    assert trouble.inner_text() == ""
    page.locator(".lab-written", has_text="bigcabde → ").wait_for()


def test_a_run_that_diverges_says_so(page):
    short(page)
    page.get_by_label("Normalisation").select_option("none")
    page.get_by_label("Learning rate").fill("10")
    button(page, "Train").click()
    said = finished(page)
    assert "iverged" in said and ("number" in said or "Guessing blindly" in said)


HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_a_hidden_tab_pauses(page):
    button(page, "Train").click()
    page.locator(".lab-status", has_text="Step").wait_for()
    page.evaluate(HIDE, True)
    page.wait_for_timeout(500)
    paused = status(page)
    page.wait_for_timeout(700)
    assert status(page) == paused
    page.evaluate(HIDE, False)
    assert finished(page).startswith("Learnt")


def test_leaving_the_page_stops_it(page):
    button(page, "Train").click()
    page.locator(".lab-status", has_text="Step").wait_for()
    page.evaluate("dispatchEvent(new Event('pagehide'))")
    assert status(page).startswith("Stopped, because the page was left.")
    page.wait_for_timeout(300)
    assert page.workers == []
    button(page, "Train").click()  # it can begin anew
    page.locator(".lab-status", has_text="Step").wait_for()


def test_own_switches_have_no_question_to_answer(page):
    switches(page)
    page.get_by_label("Residuals", exact=True).uncheck()
    assert page.get_by_label("Experiment").input_value() == "own"
    page.get_by_label("Experiment").select_option("warmup")
    assert page.get_by_label("Residuals", exact=True).is_checked()
    assert not page.get_by_label("Warm-up", exact=True).is_checked()
    assert page.get_by_label("Normalisation").input_value() == "post"


def test_a_phone_starts_smaller_and_says_so(browser, base):
    with visiting(browser, base, viewport={"width": 390, "height": 844}) as visit:
        visit.open(PAGE)
        note = "words have 6 letters in place of 8"
        assert note in visit.page.locator(".lab-note").first.inner_text()
        button(visit.page, "Train").click()
        assert finished(visit.page).startswith("Learnt")
        width = "document.documentElement.scrollWidth <= innerWidth"
        assert visit.page.evaluate(width)
        assert axe(visit.page) == []
