"""Chapter 18's calculator: what it draws and says is what annotated.memory gives."""

import random

import pytest

from annotated.chapters.ch18 import memory_calculator as calculator
from annotated.memory import memory_timeline

WIDTHS = {"page": 700, "phone": 340}
MEDIUM = calculator.START | calculator.MODELS["GPT-2 medium"]


@pytest.fixture(scope="module")
def html():
    return calculator.memory_calculator().text


@pytest.fixture(scope="module", params=WIDTHS.values(), ids=WIDTHS)
def page(browser, html, request):
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    page.set_content(f"<main>{html}</main>")
    page.locator(".annotated-explorer[data-ready]").wait_for()
    yield page
    page.close()


def asked(page, what):
    return page.evaluate(
        f"document.querySelector('.annotated-explorer').explorer.{what}"
    )


def choose(page, changes):
    page.evaluate(
        "changes => document.querySelector('.annotated-explorer')"
        ".explorer.set(changes)",
        changes,
    )


def drawn(seed):
    """Settings at random, of a model of one's own."""
    rng = random.Random(seed)
    return {
        "model": calculator.OWN,
        **{name: rng.choice(values) for name, values in calculator.CHOICES.items()},
        "precision": rng.choice([*calculator.PRECISIONS]),
        "shared": rng.choice(calculator.STAGES),
        "checkpointed": rng.random() < 0.5,
        "accumulating": rng.random() < 0.3,
    }


@pytest.mark.parametrize("seed", range(40))
def test_any_setting_is_as_in_python(page, seed):
    state = drawn(seed)
    choose(page, state)
    assert asked(page, "values()") == calculator.memory_bytes(state)


def test_a_model_sets_the_sliders_and_a_slider_makes_it_ones_own(page):
    choose(page, MEDIUM)
    for name, sizes in calculator.MODELS.items():
        page.locator("select").first.select_option(name)
        state = asked(page, "state")
        assert {key: state[key] for key in sizes} == sizes
        assert asked(page, "values()") == calculator.memory_bytes(state)
    slider = page.locator("[data-name=layers]")
    slider.focus()
    page.keyboard.press("Home")
    assert page.locator("select").first.input_value() == calculator.OWN
    assert asked(page, "state")["width"] == 4096


def test_the_words_name_the_fullest_moment_and_the_card(page):
    says = page.locator(".annotated-says")
    choose(page, MEDIUM)
    text = says.inner_text()
    assert "as the backward pass begins: 40 GB, 73\u00a0% of it activations" in text
    assert "That fits on 80 GB." in text
    choose(page, {"checkpointed": True})
    text = says.inner_text()  # one of 16 GB would have nothing left for itself
    assert "16 GB, 32\u00a0% of it activations. That fits on 24 GB." in text
    choose(page, {"checkpointed": False, "batch": 1, "length": 64})
    assert "in the update: 7.1 GB, none of it activations" in says.inner_text()
    choose(page, {"layers": 1, "vocabulary": 96, "batch": 64})
    assert "in block 1's backward pass" in says.inner_text()
    choose(page, {"batch": 128, "length": 32768, "layers": 96})
    assert "That fits on none of these cards." in says.inner_text()
    fits = page.locator(".annotated-view text", has_text="not even one")
    assert fits.count() == 4


def test_what_stood_there_before_stays_as_an_outline(page):
    says, before = page.locator(".annotated-says"), "Before your last change, it was"
    outline = page.locator(".annotated-view polyline")
    choose(page, {"model": "GPT-2 small"} | calculator.MODELS["GPT-2 small"])
    choose(page, MEDIUM | {"checkpointed": True})
    choose(page, {"checkpointed": False})
    assert f"{before} 16 GB." in says.inner_text() and outline.count() == 2
    layers = page.locator("[data-name=layers]")
    layers.focus()
    for _ in range(3):  # a slider that goes on is compared with where it began
        page.keyboard.press("ArrowLeft")
        assert f"{before} 40 GB." in says.inner_text()
    assert page.locator(".annotated-view text", has_text="before: 40 GB").count() == 1
    choose(page, MEDIUM | {"processes": 8})
    assert "The cards share nothing yet." in says.inner_text()
    choose(page, MEDIUM | {"shared": calculator.STAGES[3]})
    assert "A single card has nobody to share with." in says.inner_text()
    choose(page, MEDIUM)
    assert "That's as before." in says.inner_text() and outline.count() == 0
    strong = page.locator(".annotated-view text.strong", has_text="on ")
    assert strong.all_text_contents() == ["on 80 GB"]


def test_the_outline_is_the_timeline(page):
    choose(page, MEDIUM)
    config, options = calculator.asked(MEDIUM)
    moments = [*memory_timeline(config, 16, 1024, **options).values()]
    shapes = page.locator(".annotated-view polygon").all()
    assert len(shapes) == 5
    points = [
        [
            [float(n) for n in pair.split(",")]
            for pair in s.get_attribute("points").split()
        ]
        for s in shapes
    ]
    count = len(points[0]) // 2  # lower edge, and the upper one backwards
    assert count == len(moments) + 3  # before the step, and after it twice
    upper = points[-1][count:][::-1][1:-2]
    foot = points[0][0][1]
    heights = [foot - y for _, y in upper]
    scale = max(heights) / max(use.total for use in moments)
    for height, use in zip(heights, moments, strict=True):
        assert height == pytest.approx(scale * use.total, abs=0.2)
    for part, shape in enumerate(points):
        ys = [y for _, y in shape[count:][::-1]][1:-2]
        order = ("parameters", "optimizer", "gradients", "activations", "temporary")
        wanted = [
            sum(getattr(use, name) for name in order[: part + 1]) for use in moments
        ]
        assert [foot - y for y in ys] == pytest.approx(
            [scale * size for size in wanted], abs=0.2
        )


def test_nothing_is_drawn_outside_and_nothing_moves(page):
    svg, sizes = page.locator(".annotated-view svg"), set()
    states = [MEDIUM | calculator.MODELS[name] | {"model": name}
              for name in calculator.MODELS]  # fmt: skip
    states += [drawn(seed) for seed in range(12)]
    for state in states:
        choose(page, state)
        width, height = (float(svg.get_attribute(n)) for n in ("width", "height"))
        assert width < page.locator(".annotated-view").bounding_box()["width"] + 1
        boxes = svg.locator("text, polygon, polyline, circle").evaluate_all(
            "all => all.map((one) => { const b = one.getBBox();"
            " return [b.x, b.x + b.width, b.y, b.y + b.height]; })"
        )
        for left, end, top, bottom in boxes:
            assert left >= -1 and end <= width + 1, state
            assert top >= -1 and bottom <= height, state
        letters = svg.locator("text").evaluate_all(
            "all => all.map((one) => parseFloat(getComputedStyle(one).fontSize))"
        )
        assert min(letters) >= 12
        whole = page.locator(".annotated-explorer").bounding_box()
        sizes.add((whole["width"], whole["height"]))
    assert len(sizes) == 1
