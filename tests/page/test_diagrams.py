"""Drawings: every line ends where it should, and the words stay words."""

import pytest
from bs4 import BeautifulSoup

from annotated.page.diagrams import Drawing

ALT = "a stream with one box beside it"


@pytest.fixture
def drawing():
    return Drawing(200, 100)


def soup(drawing, **options):
    return BeautifulSoup(drawing.figure(alt=ALT, **options).text, "html.parser")


def points(tag):
    return [tuple(map(float, one.split(","))) for one in tag["points"].split()]


def ends(drawing):
    """Where lines begin, and where tips point to."""
    drawn = soup(drawing)
    begin = [points(tag)[0] for tag in drawn.select("polyline")]
    return begin, [points(tag)[0] for tag in drawn.select("polygon")]


def test_a_drawing_shrinks_with_its_page_and_says_what_it_shows(drawing):
    svg = soup(drawing).svg
    assert svg["viewbox"] == "0 0 200 100" and svg["role"] == "img"
    assert svg["aria-label"] == ALT
    assert "width: 100%" in svg["style"] and "max-width: 240px" in svg["style"]


def test_words_are_escaped_and_attributes_of_no_value_left_out(drawing):
    drawing.text(3, 4, "<b>&", anchor="end", bold=True)
    drawing.text(5, 6, "ids", code=True, size=15)
    drawn = soup(drawing, caption="a < b")
    first, second = drawn.select("svg text")
    assert first.text == "<b>&" and drawn.figcaption.text == "a < b"
    assert (first["x"], first["y"], first["text-anchor"]) == ("3", "4", "end")
    assert first["font-weight"] == "700" and not first.has_attr("font-family")
    assert second["font-family"] == "var(--at-mono)" and second["font-size"] == "15"
    assert not second.has_attr("font-weight") and not soup(drawing).figcaption


def test_colours_are_those_of_the_page(drawing):
    drawing.plus(20, 20)
    drawing.arrow((0, 0), (9, 0))
    drawing.box(50, 10, 40, "norm")
    parts = soup(drawing).svg.find_all()
    colours = {part.get(name) for part in parts for name in ("fill", "stroke")}
    assert colours == {"none", "currentColor", None}


@pytest.mark.parametrize(
    ("end", "sides"),
    [
        ((30.0, 0.0), {(23.0, 4.5), (23.0, -4.5)}),
        ((0.0, -30.0), {(4.5, -23.0), (-4.5, -23.0)}),
        ((30.0, 40.0), {(29.4, 31.7), (22.2, 37.1)}),
    ],
)
def test_an_arrow_points_to_its_end_from_any_side(drawing, end, sides):
    drawing.arrow((9, 9), (0, 0), end, width=3)
    drawn = soup(drawing)
    line, tip = points(drawn.polyline), points(drawn.polygon)
    assert tip[0] == end and set(tip[1:]) == sides
    middle = tuple(sum(side[i] for side in sides) / 2 for i in (0, 1))
    assert line[:2] == [(9, 9), (0, 0)] and line[2] == pytest.approx(middle)
    assert drawn.polyline["stroke-width"] == "3"


def test_a_box_is_as_high_as_its_lines_and_says_where_it_ends(drawing):
    assert drawing.box(50, 10, 40, "norm") == 35
    assert drawing.box(50, 40, 40, "attention", "mask: padding") == 81
    frames = soup(drawing).select("rect")
    places = [tuple(f[k] for k in ("x", "y", "width", "height")) for f in frames]
    assert places == [("30.0", "10", "40", "25"), ("30.0", "40", "40", "41")]
    texts = soup(drawing).select("text")
    assert [text["y"] for text in texts] == ["27", "57", "72"]
    assert [text.get("font-weight") for text in texts] == [None, "700", None]
    assert float(texts[2]["font-size"]) < float(texts[0]["font-size"])


@pytest.mark.parametrize(("stream", "joins"), [(10, 18.0), (190, 182.0)])
def test_a_branch_leaves_its_stream_and_is_added_to_it(drawing, stream, joins):
    plus = drawing.branch(stream, 100, 5, 40, ["norm"], ["network", "at each"])
    begin, tips = ends(drawing)
    tops = [float(frame["y"]) for frame in soup(drawing).select("rect")]
    bottoms = [tops[0] + 25, tops[1] + 41]
    # into each box, and from the last one to the plus
    assert tips == [(100, tops[0]), (100, tops[1]), (joins, plus)]
    assert begin[:3] == [(stream, 5), (100, bottoms[0]), (100, bottoms[1])]
    circle = soup(drawing).circle
    assert (float(circle["cx"]), float(circle["cy"])) == (stream, plus)
    assert plus > bottoms[1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Drawing(0, 3), "width must be"),
        (lambda: Drawing(3, 3).text(0, 0, "x", anchor="left"), "anchor must be one of"),
        (lambda: Drawing(3, 3).figure(alt="diagram"), "alt must say what the figure"),
    ],
)
def test_honest_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_cells_are_squares_where_a_mask_is_true(drawing):
    drawing.cells(3, 5, [[True, False], [True, True]], size=12)
    drawing.cells(0, 0, [[True]], size=6, color="other", shade=0.5)
    first, second = soup(drawing).select("path")
    square = "h11.00v11.00h-11.00z"
    assert first["d"] == f"M3 5{square}M3 17{square}M15 17{square}"
    assert (first["fill"], first["fill-opacity"]) == ("var(--at-weight)", "1.0")
    assert second["d"] == "M0 0h5.50v5.50h-5.50z"
    assert (second["fill"], second["fill-opacity"]) == ("var(--at-other)", "0.5")
