"""Page 17b's explorer of tile sizes: what it draws is what Python computed."""

import pytest

from annotated.chapters.ch17 import drawings_b as ch17b

WIDTHS = {"page": 700, "phone": 340}


@pytest.fixture(scope="module", params=WIDTHS.values(), ids=WIDTHS)
def page(browser, request):
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    page.set_content(f"<main>{ch17b.trips_explorer(8192, 64).text}</main>")
    page.locator(".annotated-explorer[data-ready]").wait_for()
    yield page
    page.close()


def choose(page, size):
    page.evaluate(
        "size => document.querySelector('.annotated-explorer').explorer.set({size})",
        size,
    )


def words(page):
    return page.locator(".annotated-view text").all_text_contents()


def arrows(page):
    """Of each arrow, whether it points to the right, and how thick it is."""
    return page.locator(".annotated-view line").evaluate_all(
        "all => all.map((one) => [one.x1.baseVal.value < one.x2.baseVal.value,"
        " Number(one.getAttribute('stroke-width'))])"
    )


def test_trips_are_drawn(page):
    choose(page, 256)
    texts = words(page)
    assert texts.count("scores: 134 MB") == texts.count("weights: 134 MB") == 2
    assert "Written out: 541 MB travel" in texts
    assert "In tiles of 256: 69 MB travel" in texts
    assert "k, v, 32 times: 67 MB" in texts and "one tile" in texts
    lanes = ch17b.trips(8192, 64) + ch17b.trips(8192, 64, 256)
    found = arrows(page)
    assert [right for right, _ in found] == [into for *_, into in lanes]
    for (_, thick), (_, count, _) in zip(found, lanes, strict=True):
        assert thick == pytest.approx(1.2 + 3 * count / (2 * 8192**2))
    label = page.locator(".annotated-view svg").get_attribute("aria-label")
    assert "scores: 134 MB back" in label and "together 69 MB" in label


@pytest.mark.parametrize("size", ch17b.TILES)
def test_bars_are_as_long_as_their_numbers(page, size):
    choose(page, size)
    texts = words(page)
    needs = ch17b.tile_bytes(64, size) / 1024
    products, out, tiled = ch17b.pace(8192, 64, size, ch17b.A100)
    ms = [products, tiled, out]
    shown = [f"{needs:.0f} KB", "192 KB", *(f"{one:.3f} ms" for one in ms)]
    assert [one for one in texts if one.endswith((" KB", " ms"))] == shown
    widths = page.locator(".annotated-view rect.bar").evaluate_all(
        "all => all.map((one) => one.width.baseVal.value)"
    )
    numbers = [needs, 192, *ms]
    for start, end in ((0, 2), (2, 5)):  # a scale for KB, and one for ms
        scale = widths[start] / numbers[start]
        for width, number in zip(widths[start:end], numbers[start:end], strict=True):
            assert width == pytest.approx(scale * number, rel=1e-4)
    fits = size < 256
    assert ("It fits into fast memory" in texts) == fits
    red = page.locator(".annotated-view rect[fill='var(--at-wrong)']").count()
    assert red == (not fits)
    says = page.locator(".annotated-says > span").inner_text()
    assert f"A tile of {size} needs {needs:.0f} " in says
    assert ("so it fits" in says) == fits
    assert f"{tiled:.3f} ms, {tiled / products:.1f} times as long" in says


def test_keys_move_the_slider_and_nothing_changes_its_size(page):
    choose(page, 256)
    page.locator("[data-name=size]").focus()
    heights = set()
    for size in reversed(ch17b.TILES):
        assert any(one.startswith(f"In tiles of {size}:") for one in words(page))
        places = (".annotated-explorer", ".annotated-view svg", ".annotated-says")
        heights.add(tuple(page.locator(one).bounding_box()["height"] for one in places))
        page.keyboard.press("ArrowLeft")
    assert len(heights) == 1


def test_nothing_is_drawn_outside(page):
    svg = page.locator(".annotated-view svg")
    for size in ch17b.TILES:
        choose(page, size)
        width, height = (float(svg.get_attribute(name)) for name in ("width", "height"))
        assert width <= page.locator(".annotated-view").bounding_box()["width"]
        places = svg.locator("text, rect, polygon, line").evaluate_all(
            "all => all.map((one) => { const b = one.getBBox();"
            " return [b.x, b.x + b.width, b.y, b.y + b.height]; })"
        )
        for left, end, top, bottom in places:
            assert left >= -1 and end <= width + 1, size
            assert top >= -1 and bottom <= height, size
