"""Chapter 17's explorer: every setting computes what annotated.sparse does."""

import json
from itertools import product

import pytest
from bs4 import BeautifulSoup

from annotated.chapters.ch17 import pattern_explorer as explorer

WIDTHS = {"page": 700, "phone": 340}
LONG = 200  # not a multiple of all strides, and a mask can be counted
RECORD = {
    "rows": [
        {"window": w, "stride": s, "global": g, "bits": bits + seed / 100, "seed": seed}
        for (w, s, g), bits in zip(
            product((2, 4, 8, 16, 32), (None, 4, 8, 16), (False, True)),
            (2 + n / 50 for n in range(40)),
            strict=True,
        )
        for seed in range(1 + (w < 16))
    ]
    + [
        {"window": w, "stride": s, "global": "every 8th", "bits": 3 + w / 50, "seed": 0}
        for w, s in product((1, 4), (None, 8))
    ]
}
PATTERNS = [
    dict(zip(("window", "stride", "global", "causal"), each, strict=True))
    for each in product(
        explorer.WINDOWS, explorer.STRIDES, explorer.GLOBALS, (True, False)
    )
]


@pytest.fixture(scope="module", params=WIDTHS.values(), ids=WIDTHS)
def page(browser, request):
    html = explorer.pattern_explorer(RECORD, LONG).text
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    page.set_content(f"<main>{html}</main>")
    page.locator(".annotated-explorer[data-ready]").wait_for()
    yield page
    page.close()


def put(page, **changes):
    return page.evaluate(
        "changes => { const { explorer } = document.querySelector("
        "'.annotated-explorer'); explorer.set(changes); return explorer.values(); }",
        changes,
    )


def words(page):
    return page.locator(".annotated-view text").all_text_contents()


def says(page):
    return page.locator(".annotated-says").inner_text()


def boxes(page):
    """What must not change when a control is touched."""
    return [
        page.locator(place).bounding_box()
        for place in (".annotated-explorer", ".annotated-view svg", ".annotated-load")
    ]


@pytest.mark.parametrize("causal", [True, False])
def test_every_setting_computes_what_the_module_does(page, causal):
    before = boxes(page)
    for n, pattern in enumerate(one for one in PATTERNS if one["causal"] == causal):
        state = pattern | {"layers": n % 5 + 1}
        wanted = explorer.values_of(state, LONG)
        pairs = int(explorer.pattern_of(state, LONG).mask(LONG).sum())
        assert wanted["long"] == pairs
        assert put(page, **state) == wanted, state
        assert boxes(page) == before, state
        layers = wanted["layers"]
        plural = f"{layers} layer{'s' * (layers != 1)}"
        assert (plural if layers else "never") in words(page)


def test_what_was_trained_is_shown_and_what_was_not_is_said(page):
    bits = explorer.trained(RECORD)
    for pattern in PATTERNS:
        put(page, **pattern)
        shown = words(page)
        stride = explorer.STRIDES[pattern["stride"]]
        name = f"{pattern['window']} {stride} {explorer.GLOBALS[pattern['global']]}"
        if pattern["causal"] and name in bits:
            low, high = bits[name][0], bits[name][-1]
            seeds = f"{low:.3f} to {high:.3f}, 2 seeds" if high > low else "one seed"
            line = f"{(low + high) / 2:.3f} ({seeds})"
            assert line in shown and "none trained" not in shown
            assert page.locator("circle[r='7']").count() == 1
            assert "trained" not in says(page)
        else:
            assert "none trained" in shown
            assert page.locator("circle[r='7']").count() == 0
            if not pattern["causal"]:
                assert "nothing left to predict" in says(page)
            else:
                assert "No model was trained under this pattern" in says(page)


@pytest.mark.parametrize(
    ("stride", "some", "causal", "why"),
    [
        ("none", "none", True, "only itself"),
        ("none", "none", False, "only itself"),
        ("every 4th", "none", True, "a causal path only goes back"),
        ("none", "the first", True, "a causal path only goes back"),
        ("every 8th", "none", False, "a multiple of 8"),
    ],
)
def test_a_window_of_one_says_why_it_never_reaches(page, stride, some, causal, why):
    choice = {"stride": stride, "global": some, "causal": causal}
    put(page, window=1, **choice)
    assert "Not all are ever reached" in says(page) and why in says(page)


def test_the_button_adds_layers_and_begins_anew(page):
    put(page, window=8, stride="none", **{"global": "none"}, causal=True, layers=1)
    button, before = page.locator(".annotated-load"), boxes(page)
    for layers in range(1, 6):
        assert f"after {layers} layers" in page.locator(
            ".annotated-view svg"
        ).get_attribute("aria-label")
        expected = "Everyone has heard" if layers == 5 else "all are after 5 layers"
        assert expected in says(page)
        button.click()
        assert boxes(page) == before
    put(page, layers=31)
    assert button.inner_text() == "back to one"
    button.focus()
    page.keyboard.press("Enter")
    assert page.locator("[data-name=layers]").input_value() == "0"


def test_keys_change_pattern_and_layers(page):
    put(page, window=4, stride="none", **{"global": "none"}, causal=True, layers=1)
    for name, key, wanted in (
        ("window", "ArrowRight", 8),
        ("stride", "ArrowDown", "every 4th"),
        ("global", "ArrowDown", "the first"),
        ("causal", "Space", False),
        ("layers", "ArrowRight", 2),
    ):
        page.locator(f"[data-name={name}]").focus()
        page.keyboard.press(key)
        state = page.evaluate(
            "document.querySelector('.annotated-explorer').explorer.state"
        )
        assert state[name] == wanted


def test_nothing_is_drawn_outside_or_too_long(page):
    svg = page.locator(".annotated-view svg")
    for pattern in PATTERNS[::5]:
        put(page, **pattern, layers=31)
        width, height = (float(svg.get_attribute(name)) for name in ("width", "height"))
        room = page.locator(".annotated-view").bounding_box()["width"]
        assert width <= room
        places = svg.locator("text, path, circle").evaluate_all(
            "all => all.map((one) => { const b = one.getBBox();"
            " return [b.x, b.x + b.width, b.y, b.y + b.height]; })"
        )
        for left, end, top, bottom in places:
            assert left >= -1 and end <= width + 1, pattern
            assert top >= -1 and bottom <= height + 1, pattern


def test_the_answer_is_the_fewest_and_comes_after(page):
    html = explorer.pattern_explorer(RECORD, LONG).text
    soup = BeautifulSoup(html, "html.parser")
    answer = soup.select_one(".annotated-explorer ~ details")
    for causal in (True, False):
        fewest = min(
            values["pairs"]
            for pattern in PATTERNS
            if pattern["causal"] == causal
            for values in [explorer.values_of(pattern | {"layers": 2}, 8)]
            if 0 < values["layers"] <= 2
        )
        assert f"{fewest} " in answer.text
    checks = json.loads(soup.select_one(".annotated-explorer-checks").text)
    for check in checks:
        assert put(page, **check["state"]) == check["values"]
