"""The table of public faults and what is drawn beside it, on a page and on a phone."""

import pytest

from annotated.chapters.ch20 import drawings_b as ch20b
from annotated.chapters.ch20 import scorers
from annotated.chapters.ch20.public import public_faults
from annotated.probes import Outcome

pytestmark = pytest.mark.covers("20")

SAID = {f.fault: Outcome(f.family, "failed", "seen " * 40) for f in public_faults()}


@pytest.fixture(params=[900, 390])
def page(browser, request):
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    bars = ch20b.next_letter(scorers.small_model(), 0.5, False, 1.5)
    parts = ch20b.public_table(SAID), ch20b.told("OwnLoss"), bars
    page.set_content(f"<main>{''.join(str(part.text) for part in parts)}</main>")
    yield page
    page.close()


def test_a_project_is_found_and_counted(page):
    page.get_by_label("Find").fill("nanochat")
    assert page.locator("tbody:visible th").all_inner_texts() == [
        "karpathy/nanochat#844",
        "karpathy/nanochat#452",
    ]
    assert page.locator("output").inner_text().strip() == "2 of 30 faults"


def test_the_oldest_comes_first_by_keyboard(page):
    page.get_by_role("button", name="Year").focus()
    page.keyboard.press("Enter")
    assert page.locator("tbody th").first.inner_text() == "codertimo/BERT-pytorch#32"


def test_nothing_is_wider_than_the_window(page):
    page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
