"""Page 16b's calculator: a model sets the sliders, and a slider makes it one's own."""

import pytest

from annotated.chapters.ch16 import drawings_b as ch16b

WIDTHS = {"page": 700, "phone": 340}


@pytest.fixture(scope="module", params=WIDTHS.values(), ids=WIDTHS)
def page(browser, request):
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    page.set_content(f"<main>{ch16b.cache_explorer().text}</main>")
    page.locator(".annotated-explorer[data-ready]").wait_for()
    yield page
    page.close()


def asked(page, what):
    return page.evaluate(
        f"document.querySelector('.annotated-explorer').explorer.{what}"
    )


def state(page):
    return asked(page, "state")


def choose(page, name):
    page.locator("select").select_option(name)


@pytest.mark.parametrize("name", ch16b.MODELS)
def test_a_model_sets_the_sliders(page, name):
    choose(page, name)
    shown = state(page)
    for key, value in ch16b.MODELS[name].items():
        assert shown[key] == value
        slider = page.locator(f"[data-name={key}]")
        assert ch16b.CHOICES[key][int(slider.input_value())] == value
        assert slider.get_attribute("aria-valuetext") == str(value)
        output = slider.locator("xpath=following-sibling::output")
        assert output.inner_text() == str(value)
    assert asked(page, "values()") == ch16b.cache_bytes(shown)


def test_a_slider_makes_it_ones_own(page):
    choose(page, "DeepSeek-V2")
    before = asked(page, "values()")
    slider = page.locator("[data-name=latent]")
    slider.focus()
    page.keyboard.press("Home")
    assert page.locator("select").input_value() == ch16b.OWN
    assert state(page)["latent"] == "none" and state(page)["heads"] == 128
    after = asked(page, "values()")
    assert after["total"] * 576 == before["total"] * 2 * 128 * 128
    assert after == ch16b.cache_bytes(state(page))
    choose(page, "DeepSeek-V2")  # and back
    assert asked(page, "values()") == before and slider.input_value() == "3"


def test_what_is_read_leaves_the_model_as_it_is(page):
    choose(page, "Mistral 0.1")
    slider = page.locator("[data-name=length]")
    slider.focus()
    page.keyboard.press("End")
    assert page.locator("select").input_value() == "Mistral 0.1"
    assert state(page)["length"] == 2**20
    choose(page, "GPT-3")
    assert state(page)["length"] == 2**20
    assert page.locator("text", has_text="TB").count() > 1
    assert (
        "In 80 GB: not one such text." in page.locator(".annotated-says").inner_text()
    )
    slider.focus()
    page.keyboard.press("Home")


def test_ones_own_sizes_are_kept_when_it_is_chosen(page):
    choose(page, "Falcon 7B")
    choose(page, ch16b.OWN)
    assert state(page)["heads"] == 1 and state(page)["width"] == 64


def test_nothing_is_drawn_outside_and_nothing_moves(page):
    svg, sizes = page.locator(".annotated-view svg"), set()
    for name in [*ch16b.MODELS, ch16b.OWN]:
        for texts in ("Home", "End"):
            choose(page, name)
            page.locator("[data-name=texts]").focus()
            page.keyboard.press(texts)
            width, height = (float(svg.get_attribute(n)) for n in ("width", "height"))
            boxes = svg.locator("text").evaluate_all(
                "all => all.map((one) => { const b = one.getBBox();"
                " return [b.x, b.x + b.width, b.y, b.y + b.height]; })"
            )
            for left, end, top, bottom in boxes:
                assert left >= -1 and end <= width + 1, name
                assert top >= -1 and bottom <= height, name
            whole = page.locator(".annotated-explorer").bounding_box()
            sizes.add((whole["width"], whole["height"]))
    assert len(sizes) == 1


def test_lines_stand_at_a_laptop_and_a_card(page):
    choose(page, "Llama 2 7B")
    page.locator("[data-name=texts]").focus()
    page.keyboard.press("Home")
    page.evaluate(
        "document.querySelector('.annotated-explorer').explorer.set({length: 32768})"
    )
    lines = page.locator(".annotated-view line[stroke-dasharray='5 3']")
    laptop, card = (float(x.get_attribute("x1")) for x in lines.all())
    dots = page.locator(".annotated-view circle")
    chosen = float(dots.first.get_attribute("cx"))
    assert laptop < chosen < card, "17 GB"
    assert "such texts" in page.locator(".annotated-says").inner_text()
    assert "In 80 GB: 4" in page.locator(".annotated-says").inner_text()
