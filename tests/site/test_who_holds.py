"""Page 18b's second explorer: each process holds its part, as Python computes it."""

from itertools import pairwise

import pytest

from annotated.chapters.ch18 import drawings_b as ch18b

WIDTHS = {"page": 700, "phone": 340}
COUNTS = ch18b.COUNTS


@pytest.fixture(scope="module", params=WIDTHS.values(), ids=WIDTHS)
def page(browser, request):
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    page.set_content(f"<main>{ch18b.holds_explorer().text}</main>")
    page.locator(".annotated-explorer[data-ready]").wait_for()
    yield page
    page.close()


def choose(page, stage, processes):
    page.evaluate(
        "changes => document.querySelector('.annotated-explorer')"
        ".explorer.set(changes)",
        {"stage": stage, "processes": processes},
    )


def values(page):
    return page.evaluate(
        "document.querySelector('.annotated-explorer').explorer.values()"
    )


def boxes(page, selector):
    return page.locator(f".annotated-view {selector}").evaluate_all(
        "all => all.map((one) => { const b = one.getBBox();"
        " return [b.x, b.x + b.width, b.y, b.y + b.height]; })"
    )


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("stage", ch18b.MODES)
def test_gigabytes_are_those_of_python(page, stage, n):
    choose(page, stage, n)
    found, wanted = values(page), ch18b.held(n)[stage]
    for what, size in wanted.items():
        assert found[what] == pytest.approx(7 * size)
    total = 7 * sum(wanted.values())
    assert found["total"] == pytest.approx(total)
    words = page.locator(".annotated-view text").all_text_contents()
    for mode, parts in ch18b.held(n).items():
        assert mode.split(",")[0] in words
        size = 7 * sum(parts.values())
        assert any(
            one.endswith(" GB") and abs(float(one.split()[0]) - size) <= 0.0501
            for one in words
        ), (mode, size)
    bold = page.locator(".annotated-view text.strong").all_text_contents()
    assert stage.split(",")[0] in bold and len(bold) == 3


def test_a_line_for_each_gpu(page):
    """The bars of DDP are 112 GB wide, so the lines are where 24 and 80 of it are."""
    choose(page, "DDP", 3)
    lines = [one[0] for one in boxes(page, "line")]
    left, right, *_ = boxes(page, "rect[fill=none]")[0]  # around DDP's bars
    places = [left + (right - left) * size / 112 for size in (24, 80)]
    assert lines == pytest.approx(places, abs=0.1)
    words = page.locator(".annotated-view text").all_text_contents()
    assert words[-3:] == ["GPUs of", "24 GB", "80 GB"]
    *_, (_, first, *_), (second, *_) = boxes(page, "text")
    assert first < second


@pytest.mark.parametrize("n", COUNTS)
def test_a_divided_part_has_one_owner_and_a_copied_one_is_everywhere(page, n):
    choose(page, "ZeRO-1", n)
    held = boxes(page, ".held")
    assert len(held) == 3 * n
    weights, averages = held[:n], held[2 * n :]
    for one in weights:
        assert one[:2] == pytest.approx(weights[0][:2])
    starts = [one[0] for one in averages]
    assert starts == sorted({*starts}), "each owns another part, from the left"
    if n <= 16:  # more are drawn a little wider than they are
        for before, after in pairwise(averages):
            assert after[0] == pytest.approx(before[1], abs=0.01)
            assert after[2] >= before[3], "in a row of its own"
    # Adam's two averages are twice as wide as the weights
    whole = averages[-1][1] - averages[0][0]
    assert whole == pytest.approx(2 * (weights[0][1] - weights[0][0]), abs=0.05)


def test_nothing_is_outside_and_nothing_moves(page):
    svg, high = page.locator(".annotated-view svg"), set()
    for stage in ch18b.MODES:
        for n in COUNTS:
            choose(page, stage, n)
            high.add(page.locator(".annotated-explorer").bounding_box()["height"])
            width, height = (
                float(svg.get_attribute(name)) for name in ("width", "height")
            )
            assert width <= page.locator(".annotated-view").bounding_box()["width"]
            for left, end, top, bottom in boxes(page, ":is(text, rect)"):
                assert left >= -1 and end <= width + 1, (stage, n)
                assert top >= -1 and bottom <= height, (stage, n)
    assert len(high) == 1


def test_keys_change_stage_and_processes(page):
    choose(page, "DDP", 1)
    page.locator("[data-name=stage]").focus()
    page.keyboard.press("ArrowDown")
    page.locator("[data-name=processes]").focus()
    page.keyboard.press("ArrowRight")
    assert values(page)["total"] == 84
    says = page.locator(".annotated-says")
    assert "With ZeRO-1 and 2 processes, each holds 84.0 GB" in says.inner_text()
    assert "never below 56 GB" in says.inner_text()
    page.keyboard.press("End")
    assert values(page)["Adam's averages"] == pytest.approx(56 / 64)
    choose(page, "DDP", 1)
    assert "1 process, each" in says.inner_text()
    assert "don't change that" in says.inner_text()
    choose(page, "ZeRO-3, FSDP", 8)
    assert "With twice as many, it's half" in says.inner_text()
