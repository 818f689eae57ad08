"""Page 17b's explorer: a walk over the tiles, by button, slider and keys."""

import pytest

from annotated.chapters.ch17 import drawings_b as ch17b

WIDTHS = {"page": 700, "phone": 340}


@pytest.fixture(scope="module", params=WIDTHS.values(), ids=WIDTHS)
def page(browser, request):
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    page.set_content(f"<main>{ch17b.walk_explorer().text}</main>")
    page.locator(".annotated-explorer[data-ready]").wait_for()
    yield page
    page.close()


def values(page):
    return page.evaluate(
        "document.querySelector('.annotated-explorer').explorer.values()"
    )


def choose(page, size, causal, tile=1):
    page.evaluate(
        "changes => document.querySelector('.annotated-explorer')"
        ".explorer.set(changes)",
        {"size": size, "causal": causal, "tile": tile},
    )


def boxes(page):
    """Heights that must not change."""
    return [
        page.locator(place).bounding_box()["height"]
        for place in (".annotated-explorer", ".annotated-view svg", ".annotated-load")
    ]


def shown_scores(page):
    """Texts inside the matrix: what is in memory."""
    return page.evaluate(
        """() => {
          const tile = document.querySelector('.annotated-view .tile').getBBox();
          const texts = [...document.querySelectorAll('.annotated-view text')];
          return texts.filter((one) => {
            const b = one.getBBox(), x = b.x + b.width / 2, y = b.y + b.height / 2;
            return x > tile.x && x < tile.x + tile.width
              && y > tile.y && y < tile.y + tile.height;
          }).map((one) => one.textContent);
        }"""
    )


@pytest.mark.parametrize(("size", "causal"), [(2, True), (4, False), (8, True)])
def test_every_tile_is_what_python_computes(page, size, causal):
    scores, each = ch17b.walk_numbers()
    choose(page, size, causal)
    before, order = boxes(page), ch17b.walk_order(size, causal)
    for tile, (a, b) in enumerate(order, start=1):
        wanted = ch17b.values_of(scores, each, size, causal, tile)
        found = values(page)
        assert found.keys() == wanted.keys()
        for name in wanted:
            assert found[name] == pytest.approx(wanted[name], abs=1e-9), name
        seen = [
            f"{scores[i, j].item():.1f}".replace("-", "−")
            for i in range(a * size, (a + 1) * size)
            for j in range(b * size, (b + 1) * size)
            if j <= i or not causal
        ]
        assert shown_scores(page) == seen
        svg = page.locator(".annotated-view svg")
        done = [
            (i, j)
            for r, c in order[: tile - 1]
            for i in range(r * size, (r + 1) * size)
            for j in range(c * size, (c + 1) * size)
            if j <= i or not causal
        ]
        assert svg.locator(".forgotten").count() == len(done)
        says = page.locator(".annotated-says").inner_text()
        assert f"Tile {tile} of {len(order)}: {size * size} of 64 scores" in says
        assert boxes(page) == before
        page.locator(".annotated-load").click()
    assert f"Tile 1 of {len(order)}" in page.locator(".annotated-says").inner_text()


def test_what_is_kept_and_what_is_finished(page):
    choose(page, 2, True, 2)
    texts = page.locator(".annotated-view text").all_text_contents()
    scores, each = ch17b.walk_numbers()
    outputs = [
        ch17b.values_of(scores, each, 2, True, tile)["output"] for tile in (1, 2)
    ]
    for output in outputs[0]:  # the first two rows are through
        assert f"{output:.2f}" in texts
    finished = page.locator(".annotated-view text[style*='--at-right']")
    assert finished.count() == 2
    page.locator(".annotated-load").click()
    assert finished.count() == 4


def test_only_a_factor_between_0_and_1_is_bold(page):
    scores, each = ch17b.walk_numbers()
    choose(page, 2, True, 3)
    wanted = ch17b.values_of(scores, each, 2, True, 3)["factor"]
    bold = page.locator(".annotated-view text.strong:not([style])")
    assert 0 < wanted[1] < 1 and wanted[0] == 1
    assert f"{wanted[1]:.2f}" in bold.all_text_contents()
    assert "1.00" not in bold.all_text_contents()


def test_skipped_tiles_are_counted(page):
    for size, words in ((1, "28 tiles above"), (4, "1 tile above"), (8, "No tile is")):
        choose(page, size, True)
        assert words in page.locator(".annotated-says").inner_text()
    choose(page, 2, False)
    assert "No tile is skipped" in page.locator(".annotated-says").inner_text()


def test_keys_move_the_slider_to_the_end_of_the_walk(page):
    choose(page, 2, True)
    slider = page.locator("[data-name=tile]")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert "Tile 2 of 10" in page.locator(".annotated-says").inner_text()
    page.keyboard.press("End")
    assert "Tile 10 of 10" in page.locator(".annotated-says").inner_text()
    button = page.locator(".annotated-load")
    assert button.inner_text() == "back to the first"
    button.focus()
    page.keyboard.press("Enter")
    assert "Tile 1 of 10" in page.locator(".annotated-says").inner_text()
    page.locator("[data-name=causal]").focus()
    page.keyboard.press("Space")
    assert "of 16" in page.locator(".annotated-says").inner_text()


def test_nothing_is_drawn_outside(page):
    svg = page.locator(".annotated-view svg")
    for size in ch17b.SIZES:
        choose(page, size, True, len(ch17b.walk_order(size, True)))
        width, height = (float(svg.get_attribute(side)) for side in ("width", "height"))
        assert width <= page.locator(".annotated-view").bounding_box()["width"]
        places = svg.locator("text, rect").evaluate_all(
            "all => all.map((one) => { const b = one.getBBox();"
            " return [b.x, b.x + b.width, b.y, b.y + b.height]; })"
        )
        for left, end, top, bottom in places:
            assert left >= -1 and end <= width + 1
            assert top >= 0 and bottom <= height
