"""annotated/page/frames.py: what stands in the page is what was computed.

That it works there, tests/site tries in a browser.
"""

import base64
import json
import math
import struct
from collections import Counter

import matplotlib.pyplot as plt
import pytest
import torch
from bs4 import BeautifulSoup

from annotated.page import svg
from annotated.page.frames import (
    Choice,
    Grid,
    Slider,
    Switch,
    Text,
    alt_problem,
    explorer,
    pack,
    plot_html,
    rounded,
    static,
    unpack,
)

NASTY = "<b>\"x\" & 'y'</b></script>"


@pytest.fixture(autouse=True)
def figures():
    yield
    plt.close("all")


def bar(height: float = 1.0):
    figure, axes = plt.subplots(figsize=(2, 1))
    axes.bar([0], [height])
    return figure


def soup(html) -> BeautifulSoup:
    text = html if isinstance(html, str) else html._repr_html_()
    return BeautifulSoup(text, "html.parser")


def ids(page: BeautifulSoup) -> list[str]:
    return [tag["id"] for tag in page.find_all(id=True)]


# ---- alternative texts, images ------------------------------------------------


@pytest.mark.parametrize(
    ("alt", "source", "problem"),
    [
        ("Loss falls from 4.1 to 0.2.", "loss.png", ""),
        ("Loss falls slowly", "", ""),
        (None, "", "has no alt text"),
        (" \n", "", "has no alt text"),
        ("plots/loss_curve.SVG", "", "has a file name"),
        ("The figure loss.png ", "", "has a file name"),
        ("The loss", "The loss", "has a file name"),
        ("loss by step", "figures/loss by step.png", "has a file name"),
        ("Figure 3.", "", "says too little"),
    ],
)
def test_alternative_texts(alt, source, problem):
    said = alt_problem(alt, source)
    assert problem in said if problem else said == ""


def test_a_plot_carries_its_drawings_and_its_alternative_text():
    figure = bar()
    figure.set_size_inches(6, 3)
    page = soup(plot_html(figure, f" What {NASTY} looks like "))
    (plot,) = page.select("div.annotated-plot")
    assert plot["aria-label"] == f"What {NASTY} looks like"
    assert [svg["style"] for svg in plot.find_all("svg")] == [
        "max-width: 480px",
        "max-width: 350px",
    ]
    assert plot.find_all("path"), "the bar is drawn"
    assert not plt.fignum_exists(figure.number)


@pytest.mark.parametrize("alt", [None, " ", "loss.png"])
def test_an_image_needs_an_alternative_text(alt):
    with pytest.raises(ValueError, match="alt must say what the figure shows"):
        plot_html(bar(), alt)


def test_scripts_and_styles_come_with_the_package():
    assert "function explorer" in static("explorer.js")
    with pytest.raises(FileNotFoundError):
        static("nothing.js")


# ---- explorer ----------------------------------------------------------------


CONTROLS = [Slider("n", "number", [1, 2, 3]), Choice("way", "way", ["up", NASTY])]


def make_explorer(**changes):
    arguments = {
        "script": "return {values: {y: state.n * data.k}, says: 'drawn'};",
        "data": {"k": 2.5},
        "controls": CONTROLS,
        "label": "Multiplier",
        "checks": [({"n": 2, "way": "up"}, {"y": 5.0})],
    }
    return explorer(**(arguments | changes))


def control(one) -> BeautifulSoup:
    page = soup(make_explorer(controls=[one])).select_one(".annotated-control")
    named = page.select_one("[data-name]")
    assert named["data-name"] == one.name
    assert named["id"].startswith("explorer-") and named["id"].endswith(f"-{one.name}")
    return page


@pytest.mark.parametrize(("start", "index"), [(None, "0"), (0, "1"), (5, "2")])
def test_a_slider_starts_where_it_is_told(start, index):
    page = control(Slider("rate", f"rate {NASTY}", [3, 0, 5], start))
    slider = page.input
    kept = [slider[name] for name in ("type", "min", "max", "value")]
    assert kept == ["range", "0", "2", index]
    assert json.loads(slider["data-values"]) == [3, 0, 5]
    assert page.output.text == str(3 if start is None else start)
    assert page.label["for"] == slider["id"] == page.output["for"][0]
    assert page.label.text == f"rate {NASTY}"


def test_a_choice_offers_its_options():
    page = control(Choice("way", "way", ["dot", NASTY]))
    assert [option.text for option in page.find_all("option")] == ["dot", NASTY]
    assert page.label["for"] == page.select_one("select")["id"]


@pytest.mark.parametrize("start", [False, True])
def test_a_switch_is_a_checkbox(start):
    page = control(Switch("on", f"it {NASTY}", start))
    assert page.input["type"] == "checkbox" and page.input.has_attr("checked") == start
    assert page.label["for"] == page.input["id"] and page.label.text == f"it {NASTY}"


def test_a_text_can_be_typed_and_is_suggested():
    page = control(Text("date", "a date", NASTY, ["7. März", NASTY], most=23))
    field = page.input
    assert (field["type"], field["value"], field["maxlength"]) == ("text", NASTY, "23")
    assert field["list"] == page.datalist["id"]
    offers = [option["value"] for option in page.find_all("option")]
    assert offers == ["7. März", NASTY]
    assert page.label["for"] == field["id"]
    assert page.label.text == "a date"


def test_what_is_suggested_for_several_lines_stands_below_them():
    page = control(Text("text", "a text", NASTY, ["7. März", NASTY], most=101))
    assert page.textarea.text == NASTY and page.textarea["maxlength"] == "101"
    assert [button.text for button in page.find_all("button")] == ["7. März", NASTY]
    assert control(Text("text", "a text", "", most=101)).button is None
    assert page.textarea["rows"] == "3" and not page.textarea.has_attr("class")


def test_code_is_typed_in_letters_of_one_width_and_all_of_its_lines_are_seen():
    lines = "if x:\n    y\nelse:\n    z"
    page = control(Text("text", "code", "x", ["x", lines], most=101, code=True))
    assert page.textarea["class"] == ["annotated-code"]
    assert page.textarea["rows"] == "4" and page.textarea["autocapitalize"] == "off"
    buttons = page.find_all("button")
    assert buttons[1].text == lines
    assert all("annotated-code" in button["class"] for button in buttons)


def test_a_grid_has_names_and_cells_in_the_order_of_the_page():
    page = control(Grid("cells", f"click {NASTY}", rows=2, columns=3))
    grid = page.select_one(".annotated-grid")
    kinds = [
        "above" if tag.get("class") else "beside" if tag.name == "span" else "cell"
        for tag in grid.find_all(["span", "button"])
    ]
    row = ["beside", "cell", "cell", "cell"]
    assert kinds == ["beside", "above", "above", "above", *row, *row]
    assert "--columns: 3" in grid["style"]
    places = [(b["data-row"], b["data-column"]) for b in grid.find_all("button")]
    assert places == [(i, j) for i in "01" for j in "012"]
    stops = [button["tabindex"] for button in grid.find_all("button")]
    assert stops == ["0", "-1", "-1", "-1", "-1", "-1"]
    assert page.find(id=grid["aria-labelledby"]).text == f"click {NASTY}"
    assert page.select_one("button.annotated-reset").parent == grid.parent


def json_of(page: BeautifulSoup, name: str):
    return json.loads(page.select_one(f"script.annotated-explorer-{name}").string)


def test_an_explorer_holds_its_data_its_checks_and_its_script():
    data = {"k": 2.5, "text": f"März 三月 {NASTY}"}
    made = make_explorer(data=data, checks=[({"n": 1, "way": "up"}, {"y": NASTY})])
    page = soup(made)
    assert json_of(page, "data") == data
    assert json_of(page, "checks") == [
        {"state": {"n": 1, "way": "up"}, "values": {"y": NASTY}}
    ]
    assert "März 三月" in made.text
    script = page.find_all("script")[-1].string
    assert f'getElementById("{page.section["id"]}")' in script
    assert "return {values: {y: state.n * data.k}, says: 'drawn'};" in script
    shared = page.select_one("script.annotated-shared").string
    assert static("numbers.js") in shared and static("explorer.js") in shared


def test_words_around_an_explorer_are_escaped():
    page = soup(make_explorer(label=NASTY, question=NASTY, caption=NASTY))
    assert page.b is None
    assert page.section["aria-label"] == NASTY
    assert page.select_one(".annotated-view")["aria-label"] == f"{NASTY}: drawing"
    assert page.select_one(".annotated-question").text == NASTY
    assert page.select_one(".annotated-caption").text == NASTY


def test_two_explorers_share_no_id_even_if_they_are_equal():
    one, same = ids(soup(make_explorer())), ids(soup(make_explorer()))
    assert len(one) == len(set(one)) == 3 and not set(one) & set(same)


def test_after_a_restart_other_explorers_have_other_ids(monkeypatch):
    """Outputs of the kernel before may still be on the page."""
    found = []
    for change in (
        {},
        {"label": "Other"},
        {"data": {"k": 3}},
        {"script": "return {};"},
        {"controls": [Slider("n", "number", [1, 2]), CONTROLS[1]]},
    ):
        monkeypatch.setattr(svg, "_given", Counter())
        found += ids(soup(make_explorer(**change)))
    assert len(found) == len(set(found))


@pytest.mark.parametrize("number", [math.nan, -math.inf])
def test_what_is_no_json_is_refused(number):
    for change in ({"data": {"k": [number]}}, {"checks": [({}, {"y": number})]}):
        with pytest.raises(ValueError, match="not JSON compliant"):
            make_explorer(**change)


# ---- pack, unpack ------------------------------------------------------------


@pytest.mark.parametrize("size", [(3, 5), (7,), (2, 3, 5), ()])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_packing_errs_by_half_a_step_at_most(size, scale):
    tensor = scale * torch.randn(size, generator=torch.Generator().manual_seed(0))
    packed = pack(tensor)
    assert packed["scale"] == pytest.approx(tensor.abs().max().item() / 32767)
    back = unpack(packed)
    assert back.shape == tensor.shape and back.dtype == torch.float32
    allowed = packed["scale"] * (0.5 + 1e-3)  # the rest is float32's own rounding
    assert (back - tensor).abs().max() <= allowed


def test_packed_numbers_are_read_as_the_browser_reads_them():
    # little-endian 16-bit integers, row by row: getInt16(i, true) in numbers.js
    tensor = torch.tensor([[1.0, -0.5, 0.25], [0.0, -1.0, 0.125]])
    packed = json.loads(json.dumps(pack(tensor)))
    assert packed["shape"] == [2, 3]
    whole = struct.unpack("<6h", base64.b64decode(packed["base64"]))
    assert whole == (32767, -16384, 8192, 0, -32767, 4096)
    numbers = [i * packed["scale"] for i in whole]
    assert unpack(packed).flatten().tolist() == pytest.approx(numbers)


def test_a_rounded_model_has_the_numbers_that_the_browser_sees():
    model = torch.nn.Linear(3, 2)
    packed = rounded(model)
    assert set(packed) == {"weight", "bias"}
    for name, weight in model.named_parameters():
        assert torch.equal(weight, unpack(packed[name]))


@pytest.mark.filterwarnings("error")  # of a division by zero
@pytest.mark.parametrize("tensor", [torch.zeros(3, 2), torch.zeros(0), torch.zeros(())])
def test_zeros_and_nothing_can_be_packed(tensor):
    back = unpack(pack(tensor))
    assert back.shape == tensor.shape
    assert back.eq(0).all()


def test_parameters_in_half_precision_can_be_packed():
    tensor = torch.nn.Parameter(torch.tensor([[0.5, -1.0]], dtype=torch.bfloat16))
    assert unpack(pack(tensor)).tolist() == [pytest.approx([0.5, -1.0], abs=2e-5)]


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_only_finite_numbers_can_be_packed(number):
    with pytest.raises(ValueError, match="tensor must hold finite numbers"):
        pack(torch.tensor([1.0, number, 2.0]))
