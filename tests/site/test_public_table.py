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


def test_nothing_is_wider_than_the_window(page):
    page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
