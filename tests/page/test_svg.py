"""annotated/page/svg.py: a figure in the page's type and colours, wide and narrow."""

import re
from collections import Counter
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy
import pytest
from bs4 import BeautifulSoup

from annotated.page import svg
from annotated.page.frames import static
from annotated.page.plots import THIS, name_lines, use_style
from annotated.page.svg import COLOURS, MOST_MARKS, PHONE, SMALLEST, TEXT, drawings


@pytest.fixture(autouse=True)
def figures():
    with plt.rc_context():
        use_style()
        yield
    plt.close("all")


def curve(ax, **changes) -> None:
    ax.plot([0, 1, 2], [3, 1, 2], **changes)


def drawn(alt="a curve that falls", size=(8.6, 3), columns=1):
    figure, axes = plt.subplots(1, columns, figsize=size, squeeze=False)
    for i, ax in enumerate(axes[0]):
        curve(ax)
        ax.set(xlabel=f"step {i}", ylabel=f"loss {i}")
        ax.set_title(f"panel {i}")
    return drawings(figure, alt)


def soup(drawing) -> BeautifulSoup:
    return BeautifulSoup(drawing["inner"], "html.parser")


def place(drawing, words: str) -> tuple[float, float]:
    (text,) = (t for t in soup(drawing).find_all("text") if t.text == words)
    numbers = re.findall(r"translate\(([-\d.]+) ([-\d.]+)\)", text["transform"])
    return tuple(map(float, numbers[0] if numbers else (text["x"], text["y"])))


def test_what_is_drawn_in_a_term_s_colour_follows_the_theme():
    inner = drawn()[0]["inner"]
    assert f"stroke: var(--at-this, {COLOURS['this']})" in inner
    assert f"fill: var(--at-ink, {COLOURS['ink']})" in inner
    assert "#ffffff" not in inner, "there is no white slab"
    assert COLOURS["this"] == THIS
    for name in COLOURS:
        assert static("tokens.css").count(f"--at-{name}:") == 2, "light and dark"


def test_text_is_text_in_the_page_s_type():
    page = soup(drawn()[0])
    texts = page.find_all("text")
    assert {"step 0", "loss 0", "panel 0"} <= {text.text for text in texts}
    for text in texts:
        assert "var(--at-sans, sans-serif)" in text["style"]
        assert "DejaVu" not in text["style"]


def test_places_are_rounded_and_what_is_written_is_not():
    figure, ax = plt.subplots(figsize=(4, 3))
    ax.set(yticks=[0.0031, 0.25], ylim=(0, 3))
    curve(ax, alpha=0.12345)
    inner = drawings(figure, "small numbers")[0]["inner"]
    texts = [text.text for text in BeautifulSoup(inner, "html.parser").find_all("text")]
    assert {"0.003", "0.250"} <= set(texts)
    assert "opacity:0.12" in inner
    places = re.sub(r">[^<]+<", "><", inner).replace("opacity:0.12", "")
    assert not re.search(r"\d\.\d{3}", places)


def test_no_letter_is_too_small():
    figure, ax = plt.subplots(figsize=(4, 3))
    ax.text(0, 0, "small", fontsize=5)
    ax.set_xlabel("large", fontsize=20)
    inner = drawings(figure, "letters")[0]["inner"]
    sizes = [float(size) for size in re.findall(r"([\d.]+)px", inner)]
    assert min(sizes) == SMALLEST
    assert max(sizes) == 20


def test_a_figure_is_drawn_for_the_page_and_for_a_phone():
    page, phone = drawn()
    assert (page["width"], phone["width"]) == (TEXT, PHONE)
    assert page["height"] == phone["height"] == 240
    assert drawn(size=(12, 3))[0]["width"] == TEXT, "no wider than the column"
    (small,) = drawn(size=(3, 2))
    assert (small["width"], small["height"]) == (240, 160)


def test_panels_side_by_side_are_stacked_on_a_phone():
    page, phone = drawn(columns=2)
    (left, top), (right, same) = (place(page, f"panel {i}") for i in range(2))
    assert top == same
    assert right > left + 200
    (left, top), (right, below) = (place(phone, f"panel {i}") for i in range(2))
    assert abs(right - left) < 20
    assert below > top + 150
    assert phone["height"] > 1.5 * page["height"]


def test_the_upright_axis_is_named_above_it():
    (x, y), (_, title) = (place(drawn()[0], f"{what} 0") for what in ("loss", "panel"))
    assert x < 60
    assert title < y - 10, "below the title"
    (text,) = (t for t in soup(drawn()[0]).find_all("text") if t.text == "loss 0")
    assert "rotate(-90" not in text.get("transform", "")
    assert y < 60


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0.002, 2, {"0.01", "0.1", "1"}),
        (5, 80_000, {"10", "1,000"}),
        (0.3, 0.9, {"0.3", "0.6"}),  # between the powers
        (1e-9, 10, {"10⁻⁹", "10⁻⁷"}),
    ],
)
def test_no_exponent_is_too_small(low, high, wanted):
    figure, ax = plt.subplots()
    ax.plot([0, 1], [low, high])
    ax.set_yscale("log")
    page, _ = drawings(figure, "a line that rises")
    texts = soup(page).find_all("text")
    numbers = {text.text for text in texts}
    assert wanted <= numbers
    assert not {"0.02", "20", "2 × 10⁻⁷"} & numbers, "a number at every mark"
    assert not [text for text in texts if text.find("tspan")], "of several sizes"


def test_names_of_lines_stand_apart_at_their_ends():
    figure, ax = plt.subplots()
    for i in range(3):
        ax.plot([0, 1], [0, 1 + i / 1000], label=f"line {i}")
    name_lines(ax)
    for drawing in drawings(figure, "three lines"):
        heights = [place(drawing, f"line {i}")[1] for i in range(3)]
        gaps = [lower - upper for upper, lower in pairwise(sorted(heights))]
        assert min(gaps) > SMALLEST


def test_drawings_of_a_page_share_no_names_even_if_they_are_equal(monkeypatch):
    monkeypatch.setattr(svg, "_given", Counter())
    several = [*drawn("one"), *drawn("other"), *drawn("one")]
    names = []
    for drawing in several:
        page = soup(drawing)
        own = [tag["id"] for tag in page.find_all(id=True)]
        used = re.findall(r"url\(#([\w-]+)\)", drawing["inner"])
        assert used, "a curve is clipped"
        assert set(used) <= {*own}
        assert "<style" not in drawing["inner"], "it would hold for the whole page"
        names += own
    assert len(names) == len(set(names))
    monkeypatch.setattr(svg, "_given", Counter())
    again = [*drawn("one"), *drawn("other"), *drawn("one")]
    assert again == several, "the same at every run"


def test_many_marks_become_a_picture():
    for count, pictures in ((MOST_MARKS, 0), (MOST_MARKS + 1, 1)):
        figure, ax = plt.subplots(figsize=(4, 3))
        ax.scatter(numpy.arange(count), numpy.arange(count) % 7)
        page = soup(drawings(figure, "many marks")[0])
        assert len(page.find_all("image")) == pictures
