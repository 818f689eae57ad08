"""The front page: a network at work, which leaves its riddle to the reader."""

import pytest

from tests.site.browser import visiting

pytestmark = pytest.mark.covers("01", "book/intro.")

PAGE = "book/intro.html"
SHOWN = """() => [...document.querySelectorAll(".annotated-explorer output")]
  .map((node) => node.textContent).join()"""


@pytest.fixture
def page(browser, base):
    with visiting(browser, base, reduced_motion="no-preference") as visit:
        visit.open(PAGE)
        yield visit.page
        assert visit.errors == []


def test_the_film_stops_before_the_riddle(page):
    step = page.get_by_role("slider")
    page.wait_for_function(
        """() => {
      const step = document.querySelector(".annotated-explorer input[type=range]");
      window.seen ||= new Set();
      const shown = step.parentElement.querySelector("output").textContent;
      window.seen.add(`${JSON.parse(step.dataset.values)[step.value]} ${shown}`);
      return step.value === step.defaultValue && seen.size > 1;
    }""",
        polling=20,
    )
    page.wait_for_timeout(2000)
    assert page.evaluate(SHOWN) == "4" and step.input_value() == "3"
    pairs = [pair.split() for pair in page.evaluate("[...seen]")]
    assert all(stands == shown for stands, shown in pairs)


def test_a_reader_who_takes_over_stops_it(page):
    step = page.get_by_role("slider")
    step.focus()
    stands = step.input_value()
    page.wait_for_timeout(2000)
    assert step.input_value() == stands


def test_no_date_leaves_nothing_beside_the_step(page):
    page.get_by_role("slider").fill("10")
    page.get_by_role("combobox").fill("")
    page.get_by_text("Type a date above.").wait_for()
    assert page.locator(".annotated-view text").count() == 0


def test_a_language_is_a_click_away(page):
    step = page.get_by_role("slider")
    for name in ("French", "Greek", "Chinese", "Polish"):
        page.get_by_role("button", name=name, exact=True).click()
        step.fill("10")
        page.get_by_text("The whole answer: 2024-07-16.").wait_for()
    page.get_by_role("button", name="nonsense").click()
    step.fill("10")
    page.get_by_text("don't trust it").wait_for()
    shown = page.locator(".annotated-says").inner_text()
    assert f"Step {page.evaluate(SHOWN)} of " in shown  # the slider goes further
