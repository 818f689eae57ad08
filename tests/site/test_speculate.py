"""Page 16c's explorer: a button reads on, and each guess gets its verdict."""

import json
import math

import pytest
from bs4 import BeautifulSoup

from annotated.chapters.ch16 import drafting
from annotated.chapters.ch16 import drawings_c as ch16c
from annotated.data.glassllm import glass_model

WIDTHS = {"page": 700, "phone": 340}


@pytest.fixture(scope="module")
def made():
    """The explorer, and the runs that it shows."""
    model = glass_model()
    drafts = drafting.drafts(model, drafting.texts(model, 16))
    shares = {name: 0.1 * i for i, name in enumerate(drafts)}
    html = ch16c.steps_explorer(model, drafts, shares).text
    data = BeautifulSoup(html, "html.parser").select_one(".annotated-explorer-data")
    return html, json.loads(data.text)["runs"]


@pytest.fixture(scope="module", params=WIDTHS.values(), ids=WIDTHS)
def page(browser, made, request):
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    page.set_content(f"<main>{made[0]}</main>")
    page.locator(".annotated-explorer[data-ready]").wait_for()
    yield page
    page.close()


def values(page):
    return page.evaluate(
        "document.querySelector('.annotated-explorer').explorer.values()"
    )


def choose(page, draft, guesses):
    changes = {"draft": draft, "guesses": guesses, "reading": 1}
    page.evaluate(
        "changes => document.querySelector('.annotated-explorer')"
        ".explorer.set(changes)",
        changes,
    )


def words(page):
    return page.locator(".annotated-view text").all_text_contents()


def percent(q, p):
    """Chances of the guesses that were looked at, as the explorer rounds them."""
    if p >= q:
        return "100 %"
    if p == 0:
        return f"< {math.ceil(0.005 / q)} %"
    words = f"{math.floor(100 * p / q + 0.5)} %"
    return f"≈ {words}" if q < 0.01 else words


def boxes(page):
    """Heights that must not change."""
    return [
        page.locator(place).bounding_box()["height"]
        for place in (".annotated-explorer", ".annotated-view svg", ".annotated-load")
    ]


@pytest.mark.parametrize("draft", ["any token", "pairs, averaged", "the first layer"])
def test_the_button_reads_on_and_begins_anew(page, made, draft):
    run = made[1][draft]["3"]
    choose(page, draft, 3)
    button, tokens, before = page.locator(".annotated-load"), 0, boxes(page)
    for number, one in enumerate(run, start=1):
        tokens += one["kept"] + 1
        assert values(page)["tokens"] == tokens
        assert values(page)["kept"] == one["kept"]
        seen = words(page)
        assert seen.count("✓ kept") == one["kept"]
        refused = one["kept"] < len(one["guesses"])
        more = ch16c.spaced(one["more"])
        assert seen.count(f"✗ → {more}") == refused
        dropped = max(0, len(one["guesses"]) - one["kept"] - 1)
        assert seen.count("dropped") == dropped
        looked = one["guesses"][: one["kept"] + 1]
        chances = page.locator(".annotated-view text[style*='13px']")
        wanted = [percent(q, p) for _, q, p in looked]
        assert chances.all_text_contents() == wanted
        says = page.locator(".annotated-says").inner_text()
        assert f"{tokens / number:.2f} per reading" in says
        assert boxes(page) == before
        button.click()
    assert values(page)["tokens"] == run[0]["kept"] + 1  # at the first again


def test_keys_move_the_slider_to_the_end_of_the_run(page, made):
    choose(page, "the model itself", 4)
    slider = page.locator("[data-name=reading]")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert values(page)["tokens"] == 10
    page.keyboard.press("End")
    assert values(page)["tokens"] == ch16c.LONG
    output = slider.locator("xpath=..").locator("output")
    assert output.inner_text() == str(len(made[1]["the model itself"]["4"]))
    button = page.locator(".annotated-load")
    assert button.inner_text() == "back to the first"
    button.focus()
    page.keyboard.press("Enter")
    assert values(page)["tokens"] == 5


def test_a_choice_by_keyboard_changes_the_draft(page):
    choose(page, "any token", 2)
    page.locator("[data-name=draft]").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("[data-name=draft]").input_value() == "pairs, averaged"
    assert "pairs, averaged" in page.locator(".annotated-view svg").get_attribute(
        "aria-label"
    )


def test_nothing_is_drawn_outside(page, made):
    svg = page.locator(".annotated-view svg")
    for draft, runs in made[1].items():
        for guesses in ("1", "4"):
            run = runs[guesses]
            choose(page, draft, int(guesses))
            for number in (1, len(run)):
                slider = page.locator("[data-name=reading]")
                slider.fill(str(number - 1))
                width, height = (
                    float(svg.get_attribute(name)) for name in ("width", "height")
                )
                room = page.locator(".annotated-view").bounding_box()["width"]
                assert width <= room
                places = svg.locator("text, rect").evaluate_all(
                    "all => all.map((one) => { const b = one.getBBox();"
                    " return [b.x, b.x + b.width, b.y, b.y + b.height]; })"
                )
                for left, end, top, bottom in places:
                    assert left >= -1 and end <= width + 1, (draft, guesses, number)
                    assert top >= 0 and bottom <= height, (draft, guesses, number)
