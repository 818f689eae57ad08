"""ipywidgets in a page without a kernel, with the vendored manager and our script.

The chapters may hold no widgets; this page has one of each kind that needed a cure.
"""

import json
import shutil
from pathlib import Path

import ipywidgets
import pydata_sphinx_theme
import pytest
from ipywidgets.embed import embed_data

from tests.site import checkers
from tests.site.browser import ROOT, served, visiting

pytestmark = pytest.mark.covers("book/vendor", "tools/vendor")

FONT_AWESOME = (
    Path(pydata_sphinx_theme.__file__).parent
    / "theme/pydata_sphinx_theme/static/scripts/fontawesome.js"
)
VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"


def widgets():
    slider = ipywidgets.IntSlider(min=0, max=3, description="step")
    play = ipywidgets.Play(min=0, max=3, interval=100)
    frames = [ipywidgets.HTMLMath(rf"<p>frame {n}, \(x^{n}\)</p>") for n in range(4)]
    stack = ipywidgets.Stack(frames, selected_index=0)
    ipywidgets.jslink((play, "value"), (slider, "value"))
    ipywidgets.jsdlink((slider, "value"), (stack, "selected_index"))
    check = ipywidgets.Checkbox(description="check")
    return ipywidgets.VBox([ipywidgets.HBox([play, slider]), stack, check])


@pytest.fixture(scope="module")
def widget_page(browser, tmp_path_factory):
    site = tmp_path_factory.mktemp("widgets")
    static = site / "_static"
    shutil.copytree(ROOT / "book" / "vendor", static)
    for script in [ROOT / "book" / "_static" / "widgets.js", FONT_AWESOME]:
        shutil.copy(script, static)
    data = embed_data(views=[widgets()])
    state, [view] = json.dumps(data["manager_state"]), data["view_specs"]
    # the order of a built page
    (site / "page.html").write_text(
        f"""<!doctype html><html lang="en"><head><title>Widgets</title>
        <script defer src="_static/fontawesome.js"></script>
        <script defer src="_static/mathjax/tex-mml-chtml.js"></script>
        <script type="{STATE}">{state}</script>
        <script src="_static/widgets.js"></script>
        <script src="_static/html-manager/embed.js"></script></head>
        <body><main><h1>Widgets</h1><i class="fa-solid fa-sun"></i>
        <div class="cell_output"><script type="{VIEW}">{json.dumps(view)}</script>
        </div></main></body></html>"""
    )
    (site / "favicon.ico").touch()
    with served(site) as address, visiting(browser, address) as opened:
        opened.open("page.html")
        yield opened


def shown(widget_page) -> str:
    return widget_page.page.locator(".widget-htmlmath p:visible").inner_text()


def test_slider_moves_the_stack_by_keyboard(widget_page):
    assert shown(widget_page).startswith("frame 0")
    widget_page.page.locator(".noUi-handle").press("ArrowRight")
    assert shown(widget_page).startswith("frame 1")


def test_formula_in_a_widget_is_typeset(widget_page):
    widget_page.page.locator(".widget-htmlmath mjx-container:visible").wait_for()
    assert shown(widget_page) != r"frame 1, \(x^1\)"


def test_play_runs_beside_the_icons_of_the_theme(widget_page):
    assert widget_page.page.locator("main > svg.fa-sun").count() == 1
    widget_page.page.get_by_role("button", name="Play or pause").click()
    widget_page.page.locator(
        ".widget-htmlmath p:visible", has_text="frame 3"
    ).wait_for()
    widget_page.page.get_by_role("button", name="Stop").click()
    widget_page.page.locator(
        ".widget-htmlmath p:visible", has_text="frame 0"
    ).wait_for()


def test_axe_finds_nothing(widget_page):
    assert checkers.axe(widget_page.page) == []


def test_nothing_failed_and_nothing_was_asked_of_another_host(widget_page):
    assert any("embed.js" in url for url in widget_page.loaded)
    assert widget_page.errors == widget_page.blocked == widget_page.failed == []
