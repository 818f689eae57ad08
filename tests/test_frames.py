"""annotated/frames.py: what stands in the page is what was computed."""

import base64
import io
import json
import math
import re
import struct
import warnings

import matplotlib.pyplot as plt
import pytest
import torch
from bs4 import BeautifulSoup
from matplotlib.figure import Figure
from PIL import Image

from annotated.frames import (
    Choice,
    Grid,
    Html,
    Slider,
    Text,
    explorer,
    frame_slider,
    image_html,
    pack,
    require_alt,
    static,
    unpack,
)

NASTY = "<b>\"x\" & 'y'</b></script>"


@pytest.fixture(autouse=True)
def figures():
    yield
    plt.close("all")


def make_figure(height: float = 1.0) -> Figure:
    figure, ax = plt.subplots(figsize=(2, 1))
    ax.bar([0], [height])
    return figure


def soup(html: Html | str) -> BeautifulSoup:
    text = html if isinstance(html, str) else html._repr_html_()
    return BeautifulSoup(text, "html.parser")


def picture(tag) -> Image.Image:
    kind, data = tag["src"].split(",")
    assert kind == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


def ids(page: BeautifulSoup) -> list[str]:
    return [tag["id"] for tag in page.find_all(id=True)]


def nothing_is_requested(html: Html) -> bool:
    """No address of another host, but for the names of XML's kinds of element."""
    text = html.text.replace("http://www.w3.org/2000/svg", "")
    return not re.search(r"https?://|src=\"(?!data:)|@import|url\(", text)


# ---- require_alt -------------------------------------------------------------


def test_a_sentence_is_an_alternative_text():
    assert require_alt("  The loss falls to 0.1.\n") == "The loss falls to 0.1."
    assert require_alt("Weights of three") == "Weights of three"


# ---- image_html --------------------------------------------------------------


def test_an_image_carries_its_picture_and_its_alternative_text():
    page = soup(image_html(make_figure(), "A bar of height one"))
    (image,) = page.find_all(True)
    assert image.name == "img"
    assert image["alt"] == "A bar of height one"
    with picture(image) as png:
        assert png.format == "PNG"
        # shown at 96 dots to the inch, drawn at 144: sharp on dense screens
        assert int(image["width"]) == round(png.width * 96 / 144)
        assert int(image["height"]) == round(png.height * 96 / 144)


def test_an_image_is_as_dense_and_colourful_as_asked_for():
    page = soup(image_html(make_figure(), "A bar of height one", dpi=72, colours=4))
    with picture(page.img) as png:
        assert int(page.img["width"]) == round(png.width * 96 / 72)
        assert len(png.getcolors()) <= 4


def test_the_alternative_text_is_escaped():
    page = soup(image_html(make_figure(), f"What {NASTY} looks like"))
    assert page.img["alt"] == f"What {NASTY} looks like"
    assert page.b is None


def test_an_image_closes_its_figure():
    figure = make_figure()
    image_html(figure, "A bar of height one")
    assert not plt.fignum_exists(figure.number)


def test_the_same_figure_gives_the_same_image():
    one, other = (image_html(make_figure(), "A bar of height one") for _ in range(2))
    assert one == other
    assert one != image_html(make_figure(2.0), "A bar of height one")


# ---- static, Html ------------------------------------------------------------


def test_scripts_and_styles_come_with_the_package():
    assert "function annotatedExplorer" in static("explorer.js")
    assert ".annotated-frames" in static("explorer.css")
    with pytest.raises(FileNotFoundError):
        static("nothing.js")


def test_html_shows_itself():
    assert Html("<p>x</p>")._repr_html_() == "<p>x</p>"


# ---- frame_slider ------------------------------------------------------------


def make_slider(values=(1, 2, 5), **changes) -> Html:
    arguments = {
        "label": "height (cm)",
        "alt": lambda value: f"A bar of height {value}",
        "question": "What grows?",
        "caption": "A bar.",
    }
    return frame_slider(make_figure, values, **(arguments | changes))


def test_each_value_has_its_frame_and_only_the_first_is_seen():
    page = soup(make_slider())
    frames = page.select("div.annotated-frames figure.annotated-frame")
    alts = [frame.img["alt"] for frame in frames]
    assert alts == [f"A bar of height {value}" for value in (1, 2, 5)]
    assert [frame.has_attr("hidden") for frame in frames] == [False, True, True]
    for frame, height in zip(frames, (1, 2, 5), strict=True):
        wanted = image_html(make_figure(height), f"A bar of height {height}", 120)
        assert frame.img["src"] == soup(wanted).img["src"]


def test_the_slider_goes_over_all_frames_and_is_named():
    page = soup(make_slider())
    (slider,) = page.find_all("input")
    assert slider["type"] == "range"
    assert (slider["min"], slider["max"], slider["step"]) == ("0", "2", "1")
    assert slider["value"] == "0"
    assert page.label["for"] == slider["id"]
    assert page.output["for"] == [slider["id"]]
    assert page.label.text == "height (cm)"


def test_the_slider_says_values_and_not_their_numbers():
    page = soup(make_slider([0.5, "two"]))
    assert json.loads(page.input["data-names"]) == ["0.5", "two"]
    assert page.input["aria-valuetext"] == page.output.text == "0.5"


def test_values_are_drawn_once_and_in_order():
    drawn = []

    def draw(value):
        drawn.append(value)
        return make_figure()

    frame_slider(draw, iter("cab"), label="letter", alt=lambda v: f"The letter {v}")
    assert drawn == ["c", "a", "b"]
    assert plt.get_fignums() == []


def test_words_around_the_slider_are_escaped():
    page = soup(make_slider([NASTY], label=NASTY, question=NASTY, caption=NASTY))
    assert page.b is None
    assert page.label.text == page.output.text == NASTY
    assert page.select_one(".annotated-question").text == NASTY
    assert page.select_one(".annotated-caption").text == NASTY
    assert page.input["aria-valuetext"] == NASTY
    assert json.loads(page.input["data-names"]) == [NASTY]


def test_question_and_caption_may_be_left_out():
    page = soup(make_slider(question=None, caption=None))
    assert page.select("p") == []


def test_two_sliders_share_no_id_and_the_same_one_keeps_its_own():
    one, other = soup(make_slider()), soup(make_slider(label="depth (cm)"))
    assert len(ids(one)) == len(set(ids(one))) == 2
    assert not set(ids(one)) & set(ids(other))
    assert ids(one) == ids(soup(make_slider()))


def test_the_script_of_a_slider_is_about_this_slider():
    html = make_slider()
    page = soup(html)
    assert f'getElementById("{page.div["id"]}")' in page.script.text
    assert "ROOT" not in html.text


def test_a_slider_requests_nothing():
    assert nothing_is_requested(make_slider())
    assert not nothing_is_requested(Html("https://elsewhere.example"))


# ---- controls ----------------------------------------------------------------


def test_a_slider_starts_where_it_is_told():
    slider = Slider("rate", "learning rate", [0.1, 0.2, 0.5], start=0.5)
    page = soup(slider.html("x-rate"))
    assert (page.input["min"], page.input["max"], page.input["value"]) == (
        "0",
        "2",
        "2",
    )
    assert json.loads(page.input["data-values"]) == [0.1, 0.2, 0.5]
    assert page.input["data-name"] == "rate"
    assert page.output.text == "0.5"
    assert page.label["for"] == page.input["id"] == "x-rate"
    assert page.output["for"] == ["x-rate"]
    assert page.label.text == "learning rate"


def test_a_slider_starts_at_its_first_value_unless_told_otherwise():
    page = soup(Slider("n", "number", [3, 0, 5]).html("n"))
    assert (page.input["value"], page.output.text) == ("0", "3")
    page = soup(Slider("n", "number", [3, 0, 5], start=0).html("n"))
    assert (page.input["value"], page.output.text) == ("1", "0")


def test_a_choice_offers_its_options():
    page = soup(Choice("way", f"way {NASTY}", ["dot", NASTY]).html("x-way"))
    assert [option.text for option in page.find_all("option")] == ["dot", NASTY]
    assert page.select_one("select")["data-name"] == "way"
    assert page.label["for"] == page.select_one("select")["id"] == "x-way"
    assert page.label.text == f"way {NASTY}"


def test_a_text_can_be_typed_and_is_suggested():
    text = Text("date", "a date", NASTY, ["7. März", NASTY], most=23)
    page = soup(text.html("x-date"))
    field = page.input
    assert (field["type"], field["value"], field["maxlength"]) == ("text", NASTY, "23")
    assert field["data-name"] == "date"
    assert field["list"] == page.datalist["id"]
    offers = [option["value"] for option in page.find_all("option")]
    assert offers == ["7. März", NASTY]
    assert page.label["for"] == field["id"] == "x-date"


def test_a_grid_has_a_button_for_each_cell_and_one_stop_for_the_keyboard():
    page = soup(Grid("cells", f"click {NASTY}", rows=2, columns=3).html("x-cells"))
    grid = page.select_one(".annotated-grid")
    assert (grid["id"], grid["data-name"]) == ("x-cells", "cells")
    places = [(b["data-row"], b["data-column"]) for b in grid.find_all("button")]
    assert places == [(i, j) for i in "01" for j in "012"]
    stops = [button["tabindex"] for button in grid.find_all("button")]
    assert stops == ["0", "-1", "-1", "-1", "-1", "-1"]
    assert all(b["aria-pressed"] == "false" for b in grid.find_all("button"))
    named = page.find(id=grid["aria-labelledby"])
    assert named.text == f"click {NASTY}"
    assert page.select_one("button.annotated-reset").parent == grid.parent


def test_a_grid_has_a_name_for_each_row_and_column_in_the_order_of_the_page():
    page = soup(Grid("cells", "click", rows=2, columns=3).html("x"))
    kinds = [
        "above" if tag.get("class") else "beside" if tag.name == "span" else "cell"
        for tag in page.select_one(".annotated-grid").find_all(["span", "button"])
    ]
    row = ["beside", "cell", "cell", "cell"]
    assert kinds == ["beside", "above", "above", "above", *row, *row]
    assert "--columns: 3" in page.select_one(".annotated-grid")["style"]


# ---- explorer ----------------------------------------------------------------


CONTROLS = [Slider("n", "number", [1, 2, 3]), Choice("way", "way", ["up", "down"])]


def make_explorer(**changes) -> Html:
    arguments = {
        "script": "return {values: {y: state.n * data.k}, says: 'drawn'};",
        "data": {"k": 2.5},
        "controls": CONTROLS,
        "label": "Multiplier",
        "checks": [({"n": 2, "way": "up"}, {"y": 5.0}), ({"n": 3}, {"y": 7.5})],
        "question": "How large?",
        "caption": "A product.",
    }
    return explorer(**(arguments | changes))


def json_of(page: BeautifulSoup, name: str):
    script = page.select_one(
        f'script.annotated-explorer-{name}[type="application/json"]'
    )
    return json.loads(script.string)


def test_an_explorer_holds_its_data_and_its_checks():
    page = soup(make_explorer())
    assert json_of(page, "data") == {"k": 2.5}
    assert json_of(page, "checks") == [
        {"state": {"n": 2, "way": "up"}, "values": {"y": 5.0}},
        {"state": {"n": 3}, "values": {"y": 7.5}},
    ]


def test_an_explorer_is_a_named_section_with_its_controls():
    page = soup(make_explorer())
    (section,) = page.find_all("section")
    assert section["class"] == ["annotated-explorer"]
    assert section["aria-label"] == "Multiplier"
    assert [tag["data-name"] for tag in section.select("[data-name]")] == ["n", "way"]
    assert section.select_one(".annotated-question").text == "How large?"
    assert section.select_one(".annotated-caption").text == "A product."


def test_the_drawing_can_be_reached_and_is_read_out():
    page = soup(make_explorer())
    view = page.select_one(".annotated-view")
    assert view["tabindex"] == "0", "wide drawings scroll: by keyboard too"
    assert view["aria-label"].startswith("Multiplier")
    assert page.select_one(".annotated-says")["aria-live"] == "polite"


def test_an_explorer_brings_its_script():
    page = soup(make_explorer())
    script = page.find_all("script")[-1].string
    assert static("explorer.js") in script
    assert f'document.getElementById("{page.section["id"]}")' in script
    assert "return {values: {y: state.n * data.k}, says: 'drawn'};" in script


def test_texts_in_the_data_cannot_end_their_script():
    html = make_explorer(data={"text": NASTY}, checks=[({"n": 1}, {"y": NASTY})])
    page = soup(html)
    assert json_of(page, "data") == {"text": NASTY}
    assert json_of(page, "checks")[0]["values"] == {"y": NASTY}
    assert html.text.count("</script>") == 3, "data, checks and the script itself"
    assert page.b is None


def test_letters_of_all_languages_stay_as_they_are():
    html = make_explorer(data={"text": "März 三月 Μαρ"})
    assert "März 三月 Μαρ" in html.text


def test_words_around_an_explorer_are_escaped():
    page = soup(make_explorer(label=NASTY, question=NASTY, caption=NASTY))
    assert page.b is None
    assert page.section["aria-label"] == NASTY
    assert page.select_one(".annotated-question").text == NASTY
    assert page.select_one(".annotated-caption").text == NASTY


def test_two_explorers_share_no_id_and_the_same_one_keeps_its_own():
    one = soup(make_explorer())
    assert len(ids(one)) == len(set(ids(one))) == 3
    for change in ({"label": "Other"}, {"data": {"k": 3}}, {"script": "return {};"}):
        assert not set(ids(one)) & set(ids(soup(make_explorer(**change))))
    assert ids(one) == ids(soup(make_explorer()))


def test_an_explorer_requests_nothing():
    assert nothing_is_requested(make_explorer())


# ---- pack, unpack ------------------------------------------------------------


@pytest.mark.parametrize("size", [(3, 5), (7,), (2, 3, 5), ()])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_packing_errs_by_half_a_step_at_most(size, scale):
    tensor = scale * torch.randn(size, generator=torch.Generator().manual_seed(0))
    packed = pack(tensor)
    assert packed["scale"] == pytest.approx(tensor.abs().max().item() / 32767)
    back = unpack(packed)
    assert back.shape == tensor.shape
    assert back.dtype == torch.float32
    allowed = packed["scale"] * (0.5 + 1e-3)  # the rest is float32's own rounding
    assert (back - tensor).abs().max() <= allowed


def test_packed_numbers_are_read_as_the_browser_reads_them():
    # little-endian 16-bit integers, row by row: getInt16(i, true) in date_reader.js
    tensor = torch.tensor([[1.0, -0.5, 0.25], [0.0, -1.0, 0.125]])
    packed = json.loads(json.dumps(pack(tensor)))
    assert packed["shape"] == [2, 3]
    whole = struct.unpack("<6h", base64.b64decode(packed["base64"]))
    assert whole == (32767, -16384, 8192, 0, -32767, 4096)
    numbers = [i * packed["scale"] for i in whole]
    assert unpack(packed).flatten().tolist() == pytest.approx(numbers)


@pytest.mark.parametrize("tensor", [torch.zeros(3, 2), torch.zeros(0), torch.zeros(())])
def test_zeros_and_nothing_can_be_packed(tensor):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a division by zero
        back = unpack(pack(tensor))
    assert back.shape == tensor.shape
    assert back.eq(0).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_parameters_of_every_dtype_can_be_packed(dtype):
    tensor = torch.nn.Parameter(torch.tensor([[0.5, -1.0]], dtype=dtype))
    assert unpack(pack(tensor)).tolist() == [pytest.approx([0.5, -1.0], abs=2e-5)]
    assert tensor.requires_grad


def test_packing_again_changes_nothing():
    tensor = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    once = unpack(pack(tensor))
    assert pack(once)["base64"] == pack(tensor)["base64"]


# ---- wrong arguments ---------------------------------------------------------


BAD_ALTS = [
    None,
    "",
    "  \n",
    7,
    "loss.png",
    "The Loss.SVG",
    "A fine loss curve.PNG ",
    "Figure 1",
]


@pytest.mark.parametrize("alt", BAD_ALTS)
def test_an_alternative_text_must_say_something(alt):
    wanted = "^alt must be a sentence that says what the figure shows, got "
    figure = make_figure()
    for refuse in (require_alt, lambda alt: image_html(figure, alt)):
        with pytest.raises(ValueError, match=wanted) as caught:
            refuse(alt)
        assert repr(alt) in str(caught.value)


def test_a_files_name_is_called_one():
    with pytest.raises(ValueError, match=r"got a file's name: 'The loss of x\.Png'$"):
        require_alt("The loss of x.Png")


@pytest.mark.parametrize("thing", ["figure", None, 3])
def test_only_figures_are_images(thing):
    message = f"^figure must be a matplotlib Figure, got {type(thing).__name__}$"
    with pytest.raises(TypeError, match=message):
        image_html(thing, "A bar of height one")
    with pytest.raises(TypeError, match=message):
        frame_slider(lambda _: thing, [1], label="n", alt=lambda _: "A bar of one")


@pytest.mark.parametrize("values", [[], iter(())])
def test_a_frame_slider_needs_a_value(values):
    message = "^values must hold at least one value for the slider, got none$"
    with pytest.raises(ValueError, match=message):
        make_slider(values)


@pytest.mark.parametrize("label", ["", "  "])
def test_a_frame_slider_needs_a_label(label):
    message = f"^label must say what the slider sets, got {label!r}$"
    with pytest.raises(ValueError, match=message):
        make_slider(label=label)


def test_every_frame_needs_an_alternative_text():
    with pytest.raises(ValueError, match=r"^alt must be a sentence .* got ''$"):
        make_slider(alt=lambda value: "A bar of one" if value == 1 else "")


def test_controls_need_values():
    with pytest.raises(
        ValueError, match=r"^values of the slider 'n' must not be empty"
    ):
        Slider("n", "number", [])
    with pytest.raises(
        ValueError, match=r"^options of the choice 'w' must not be empt"
    ):
        Choice("w", "way", [])
    for rows, columns in ((0, 3), (3, 0), (-1, 2)):
        with pytest.raises(ValueError, match=f"got {rows} and {columns}"):
            Grid("cells", "click", rows, columns)


@pytest.mark.parametrize("start", [4, 0, "1"])
def test_a_slider_starts_at_one_of_its_values(start):
    message = rf"^start of the slider 'n' .* its values \[1, 2, 3\], got {start!r}$"
    with pytest.raises(ValueError, match=message):
        Slider("n", "number", [1, 2, 3], start=start)


def test_an_explorer_needs_a_control_and_a_check():
    with pytest.raises(
        ValueError, match=r"^controls must hold at least one control, g"
    ):
        make_explorer(controls=[])
    with pytest.raises(ValueError, match=r"^checks must hold at least one pair "):
        make_explorer(checks=[])


def test_controls_must_have_different_names():
    message = r"^controls must have different names, got \['n', 'way', 'n'\]$"
    with pytest.raises(ValueError, match=message):
        make_explorer(controls=[*CONTROLS, Text("n", "another", "x")])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_json_is_refused(number):
    message = "^data and checks must hold finite numbers and texts: "
    with pytest.raises(ValueError, match=message):
        make_explorer(data={"k": [1.0, number]})
    with pytest.raises(ValueError, match=message):
        make_explorer(checks=[({"n": 1}, {"y": number})])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_only_finite_numbers_can_be_packed(number):
    message = "^tensor must hold finite numbers to be packed$"
    with pytest.raises(ValueError, match=message):
        pack(torch.tensor([1.0, number, 2.0]))


def test_explorers_that_differ_in_their_controls_have_different_ids():
    roots = set()
    for values in ([1, 2], [1, 3]):
        control = Slider("x", "x", values)
        made = explorer("", {}, [control], label="the same", checks=[({}, {})])
        roots.add(re.search(r'id="(explorer-\w+)"', made.text)[1])
    assert len(roots) == 2
