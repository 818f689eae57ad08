"""The checks of this folder must be able to fail: each on a page that is broken so."""

import json

import pytest

from tests.site import checkers
from tests.site.browser import built_pages, served, visiting

PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "2mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

SLIDER = """<div class="annotated-frames">
<label for="step">step</label>
<input id="step" type="range" min="0" max="2" value="0">
<div class="annotated-frame"><img alt="Weights at step 0" src="PNG"></div>
<div class="annotated-frame" hidden><img alt="Weights at step 1" src="PNG"></div>
<div class="annotated-frame" hidden><img alt="Weights at step 2" src="PNG"></div>
</div>
<script>
const frames = document.querySelectorAll(".annotated-frame");
document.querySelector("#step").addEventListener("input", (event) => {
    frames.forEach((frame, n) => { frame.hidden = n !== Number(event.target.value); });
});
</script>""".replace("PNG", PNG)

EXPLORER = """<section class="annotated-explorer" aria-label="Squares">
<label for="x">x</label> <input id="x" type="number" value="2">
<script type="application/json" class="annotated-explorer-checks">
[{"state": {"x": 3}, "values": {"square": 9.00001, "parity": "odd", "row": [3, 9]}}]
</script></section>
<script>
const section = document.querySelector("section");
section.explorer = {
    state: {x: 2},
    set(part) { Object.assign(this.state, part); },
    values() {
        const x = this.state.x;
        return {square: x * x, parity: x % 2 ? "odd" : "even", row: [x, x * x]};
    },
};
document.querySelector("#x").addEventListener("input", (event) => {
    section.explorer.set({x: Number(event.target.value)});
});
section.dataset.ready = "true";
</script>"""


@pytest.fixture(scope="module")
def sketch(browser):
    """Put a body into an empty page and return the page."""
    with visiting(browser, "about:") as visit:

        def draw(body: str, head: str = ""):
            visit.page.set_viewport_size({"width": 1280, "height": 900})
            visit.page.goto("about:blank")  # or scripts meet those of the last sketch
            visit.page.set_content(
                '<!doctype html><html lang="en"><head><title>Sketch</title>'
                f"{head}</head><body><main><article><h1>Sketch</h1>{body}"
                "</article></main></body></html>"
            )
            return visit.page

        yield draw


def test_axe_sees_a_control_without_a_name(sketch):
    assert checkers.axe(sketch("<p>Text</p>")) == []
    [found] = checkers.axe(sketch('<input type="range">'))
    assert found.startswith("label:")


def test_axe_sees_faint_text_in_dark_only(sketch):
    style = "<style>[data-theme=dark] p { background: #222; color: #444 }</style>"
    page = sketch("<p>Text</p>", style)
    checkers.set_theme(page, "light")
    assert checkers.axe(page) == []
    checkers.set_theme(page, "dark")
    [found] = checkers.axe(page)
    assert found.startswith("color-contrast:")


@pytest.mark.parametrize(
    "attribute", ["", 'alt=""', 'alt="figure_3.png"', 'alt="plots/a.svg"']
)
def test_image_without_a_real_text(sketch, attribute):
    assert checkers.images(sketch(f'<img alt="A rising line" src="{PNG}">')) == []
    assert len(checkers.images(sketch(f'<img {attribute} src="{PNG}">'))) == 1


def test_formula_left_as_tex_or_in_error(sketch):
    good = '<span class="math"><mjx-container>x</mjx-container></span>'
    assert checkers.mathematics(sketch(good)) == []
    assert len(checkers.mathematics(sketch(r'<span class="math">\(x\)</span>'))) == 1
    bad = '<mjx-container><mjx-merror data-mjx-error="Missing }">x</mjx-merror>'
    [found] = checkers.mathematics(sketch(f'<span class="math">{bad}</span>'))
    assert "Missing }" in found


def test_slider_that_works(sketch):
    assert checkers.slider(sketch(SLIDER), 0) == []


@pytest.mark.parametrize(
    ("good", "bad", "complaint"),
    [
        ("frame.hidden = n !==", "n !==", "shows frames"),
        ("n !== Number", "n < Number", "shows frames"),
        ('type="range"', 'type="range" disabled', "shows frames"),
        ('type="range"', 'type="range" style="pointer-events:none"', "a click"),
        ('for="step"', "", "no label"),
        (PNG, "data:image/png;base64,AAAA", "does not load"),
        ('type="range"', 'type="number"', "0 range inputs"),
    ],
)
def test_slider_that_is_broken(sketch, good, bad, complaint):
    assert good in SLIDER
    found = checkers.slider(sketch(SLIDER.replace(good, bad)), 0)
    assert complaint in " ".join(found)


def test_explorer_that_works(sketch):
    page = sketch(EXPLORER)
    assert checkers.explorer_checks(page, 0) == []
    assert checkers.explorer_keyboard(page, 0) == []


@pytest.mark.parametrize(
    ("good", "bad", "complaint"),
    [
        ("9.00001", "9.01", "square is 9, Python says 9.01"),
        ('"odd",', '"Odd",', "parity is"),
        ("[3, 9]", "[3, 9, 27]", "row is"),
        ('"square": 9', '"cube": 9', "cube is undefined"),
        ('section.dataset.ready = "true"', "", "is not ready"),
        ("-explorer-checks", "-nothing", "holds no checks"),
        ('"values": {', '"values": {}, "not": {', "without values"),
    ],
)
def test_explorer_that_disagrees(sketch, good, bad, complaint):
    assert good in EXPLORER
    found = checkers.explorer_checks(sketch(EXPLORER.replace(good, bad)), 0)
    assert complaint in " ".join(found)


@pytest.mark.parametrize(
    ("good", "bad", "complaint"),
    [
        ('"input", (event)', '"wheel", (event)', "changes nothing by keyboard"),
        ('type="number"', 'type="hidden"', "nothing in it"),
        ('type="number"', 'type="number" onfocus="this.blur()"', "takes no focus"),
    ],
)
def test_explorer_that_ignores_the_keyboard(sketch, good, bad, complaint):
    assert good in EXPLORER
    found = checkers.explorer_keyboard(sketch(EXPLORER.replace(good, bad)), 0)
    assert complaint in " ".join(found)


def test_wide_content_on_a_phone(sketch):
    viewport = '<meta name="viewport" content="width=device-width">'
    wide = '<div style="width: 900px">wide</div>'
    for body, good in [
        (f'<div style="overflow-x: auto">{wide}</div>', True),
        (wide, False),
        # cut off: the page does not scroll, and nobody can read the rest
        (f'<div style="overflow: hidden">{wide}</div>', False),
    ]:
        page = sketch(body, viewport)
        checkers.narrow(page, 360, 740)
        assert (checkers.sideways(page) == []) == good, body


def test_focus_that_shows_nothing(sketch):
    page = sketch('<a href="#a">A</a> <a href="#b" style="outline: none">B</a>')
    page.locator("body").press("Tab")
    page.locator("body").click()
    found = checkers.focus_stops(page, 2)
    assert [text[:13] for text in found] == ['<a href="#b" ']


def write_page(folder, body: str):
    (folder / "page.html").write_text(f"<title>Page</title><body>{body}</body>")
    return folder


FOREIGN = "http://192.0.2.1/script.js"  # an address kept for examples


@pytest.mark.parametrize("disk", [False, True])
@pytest.mark.parametrize(
    ("body", "where"),
    [
        (f'<script src="{FOREIGN}"></script>', "blocked"),
        (f'<script>fetch("{FOREIGN}").catch(() => 0)</script>', "blocked"),
        ('<script src="/outside-the-sub-path.js"></script>', "blocked"),
        ('<script>throw new Error("broken")</script>', "errors"),
        ('<script>console.error("broken")</script>', "errors"),
        ('<script src="missing.js"></script>', "errors"),
    ],
)
def test_visit_notices(browser, tmp_path, body, where, disk):
    site = write_page(tmp_path, body)
    with served(site) as address:
        base = site.as_uri() + "/" if disk else address
        with visiting(browser, base) as visit:
            visit.open("page.html")
            visit.page.wait_for_timeout(50)
            assert len(getattr(visit, where)) == 1


def test_visit_of_a_sound_page_notices_nothing(browser, tmp_path):
    site = write_page(tmp_path, f'<p>Text</p><img alt="A dot" src="{PNG}">')
    (site / "favicon.ico").touch()
    with served(site) as address, visiting(browser, address) as visit:
        visit.open("page.html")
        assert visit.errors == visit.blocked == visit.failed == []
        assert visit.loaded == [address + "page.html"]


def test_visit_notices_an_explorer_that_is_never_ready(browser, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.site.browser.WAIT_MS", 200)
    site = write_page(tmp_path, '<section class="annotated-explorer" id="e"></section>')
    with served(site) as address, visiting(browser, address) as visit:
        visit.open("page.html")
        assert visit.errors == ["explorer e not ready after 200 ms"]


def test_built_pages_leaves_out_templates_and_the_redirect(tmp_path):
    for name in ["index.html", "search.html", "book/a.html", "_static/macros.html"]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert built_pages(tmp_path) == ["book/a.html", "search.html"]


def test_explorer_sketch_is_json(sketch):
    """A typo in the sketch above must not pass for a broken explorer."""
    text = EXPLORER.split('checks">')[1].split("</script>")[0]
    assert json.loads(text)[0]["values"]["parity"] == "odd"
