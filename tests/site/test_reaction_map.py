"""Page 15b's explorer: a tap on an atom of the product shows what it looks at."""

import pytest

from annotated.chapters.ch15 import drawings_b as ch15b
from annotated.data.reactions import HEAD, LAYER, attention_maps, links, reaction_model

WIDTHS = {"page": 700, "phone": 340}


@pytest.fixture(scope="module")
def model():
    return reaction_model()


@pytest.fixture(scope="module", params=WIDTHS.values(), ids=WIDTHS)
def page(browser, model, request):
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    page.set_content(f"<main>{ch15b.map_explorer(model).text}</main>")
    page.locator(".annotated-explorer[data-ready]").wait_for()
    yield page
    page.close()


def values(page):
    return page.evaluate(
        "document.querySelector('.annotated-explorer').explorer.values()"
    )


def choose(page, kind):
    page.locator("select").select_option(kind)
    return next(
        one
        for one in ch15b.reactions()
        if one.kind == kind and one.text in ch15b.drawn_reactions()
    )


@pytest.mark.parametrize("kind", ["esterification", "Cope rearrangement", "indole"])
def test_a_tap_shows_what_an_atom_looks_at(page, model, kind):
    one = choose(page, kind)
    found = links(attention_maps(model, one.text), one.text)[LAYER, HEAD].tolist()
    right = [i in may for i, may in zip(found, one.right(), strict=True)]
    for atom in (0, 4, len(found) - 1):
        page.locator("circle[fill=transparent]").nth(atom).click()
        assert values(page) == {
            "count": sum(right),
            "linked": found[atom],
            "right": right[atom],
        }
        strokes = page.locator("line[stroke^='var']")  # bonds have the text's colour
        wanted = f"var(--at-{'right' if right[atom] else 'wrong'})"
        assert strokes.evaluate_all("all => all.map((x) => x.getAttribute('stroke'))")
        assert strokes.count() == 1 and strokes.get_attribute("stroke") == wanted


def test_the_slider_ends_at_the_last_atom_of_the_product(page):
    choose(page, "Mitsunobu ester")
    slider = page.locator("[data-name=atom]")
    slider.focus()
    page.keyboard.press("End")
    assert slider.input_value() == slider.get_attribute("max") == "10"
    page.keyboard.press("Home")
    assert page.locator("line[stroke^='var']").count() == 10  # all links
    assert "10 links are right" in page.locator(".annotated-says").inner_text()


def test_nothing_is_drawn_outside(page):
    svg = page.locator(".annotated-view svg")
    for kind in page.locator("option").all_inner_texts():
        choose(page, kind)
        width, height = (float(svg.get_attribute(name)) for name in ("width", "height"))
        boxes = svg.locator("text").evaluate_all(
            "all => all.map((one) => { const b = one.getBBox();"
            " return [b.x, b.x + b.width, b.y, b.y + b.height]; })"
        )
        assert width <= page.locator(".annotated-view").bounding_box()["width"]
        for left, end, top, bottom in boxes:
            assert left >= -1 and end <= width + 1, kind
            assert top >= 0 and bottom <= height, kind
