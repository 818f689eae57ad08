"""Page 18b's explorer: a button walks around the ring, as Python does."""

import pytest

from annotated.chapters.ch18 import drawings_b as ch18b

WIDTHS = {"page": 700, "phone": 340}


@pytest.fixture(scope="module", params=WIDTHS.values(), ids=WIDTHS)
def page(browser, request):
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    page.set_content(f"<main>{ch18b.ring_explorer().text}</main>")
    page.locator(".annotated-explorer[data-ready]").wait_for()
    yield page
    page.close()


def choose(page, processes, step=0):
    page.evaluate(
        "changes => document.querySelector('.annotated-explorer')"
        ".explorer.set(changes)",
        {"processes": processes, "step": step},
    )


def values(page):
    return page.evaluate(
        "document.querySelector('.annotated-explorer').explorer.values()"
    )


def words(page):
    return page.locator(".annotated-view text").all_text_contents()


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_button_walks_to_the_end_and_begins_anew(page, n):
    seen = ch18b.ring([row[:n] for row in ch18b.NUMBERS[:n]])
    choose(page, f"{n}")
    button, last = page.locator(".annotated-load"), 2 * (n - 1)
    high = page.locator(".annotated-explorer").bounding_box()["height"]
    for step, table in enumerate(seen):
        found = values(page)
        assert found["table"] == table and found["sent"] == step / n
        bold = page.locator(".annotated-view rect[stroke-width='2.5']")
        assert bold.count() == found["complete"]
        arrows = page.locator(".annotated-view polygon").count()
        assert arrows == (n if step else 0)
        pluses = sum(one.startswith("+ ") for one in words(page))
        assert pluses == (n if 0 < step < n else 0)
        assert ("to process 0" in words(page)) == (step > 0)
        says = page.locator(".annotated-says").inner_text()
        assert f"After step {step} of {last}" in says
        assert page.locator(".annotated-explorer").bounding_box()["height"] == high
        assert button.inner_text() == (
            "back to the start" if step == last else "next step"
        )
        button.click()
    assert values(page)["table"] == seen[0]


def test_keys_move_the_slider_to_the_last_step(page):
    choose(page, "3")
    slider = page.locator("[data-name=step]")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert values(page)["sent"] == pytest.approx(1 / 3)
    page.keyboard.press("End")
    assert values(page)["complete"] == 9
    assert slider.locator("xpath=..").locator("output").inner_text() == "4"


def test_nothing_is_drawn_outside(page):
    svg = page.locator(".annotated-view svg")
    for n in (2, 5):
        for step in range(2 * (n - 1) + 1):
            choose(page, f"{n}", step)
            width, height = (
                float(svg.get_attribute(name)) for name in ("width", "height")
            )
            room = page.locator(".annotated-view").bounding_box()["width"]
            assert width <= room
            places = svg.locator("text, rect, polygon").evaluate_all(
                "all => all.map((one) => { const b = one.getBBox();"
                " return [b.x, b.x + b.width, b.y, b.y + b.height]; })"
            )
            for left, end, top, bottom in places:
                assert left >= -1 and end <= width + 1, (n, step)
                assert top >= 0 and bottom <= height, (n, step)
