"""ch17/learning.py: what is drawn and said of models under patterns."""

from itertools import product

import pytest
import torch
from bs4 import BeautifulSoup

from annotated.chapters.ch17 import learning as ch17_learning
from annotated.chapters.ch17.patterns import (
    SIDE,
    copy_patterns,
    image_patterns,
)
from annotated.page.notebook import recorded
from annotated.sparse import local_pattern

DISTANCES = (5, 12, 16, 21)


def soup(html):
    return BeautifulSoup(html.text, "html.parser")


def words(html):
    return [text.text for text in soup(html).select_one("svg").select("text")]


def cells(html):
    return [
        [cell.text for cell in row.select("th, td")] for row in soup(html).select("tr")
    ]


@pytest.fixture(scope="module")
def copies():
    rows = []
    for name, layers, distance in product(copy_patterns(), (1, 2), DISTANCES):
        reach = 0.0 if name == "dilated" and distance == 5 else 1.0
        right = 0.06 if reach == 0 else 0.99 if layers == 1 else 0.98
        if name == "fixed, by head":
            reach = 0.2 if layers == 1 else 1.0
            right = 0.23 if layers == 1 else 0.31 if distance > 8 else 0.9
        row = {"pattern": name, "layers": layers, "distance": distance, "reach": reach}
        for seed in range(3 if reach else 1):
            rows.append(row | {"seed": seed, "right": right + 0.02 * (seed == 2)})
    longer = [{"right": right} for right in (0.5, 0.7, 0.6)]
    config = {"symbols": 16, "stride": 8, "longer": 2000, "steps": {"1": 7, "2": 9}}
    return {"config": config, "rows": rows, "longer": longer}


@pytest.fixture(scope="module")
def images():
    bits = dict.fromkeys(image_patterns(), 0.3)
    bits |= {"row and column": 0.24, "everything": 0.28, "column": 0.25}
    bits |= {"column of the pixel read": 0.29}
    rows = [
        {"pattern": name, "seed": seed, "times": times}
        | {"bits": found + 0.01 * seed * (name == "row") - 0.002 * times + 0.002}
        for times in (1, 4)
        for name, found in bits.items()
        for seed in range(3)
    ]
    strides = [
        {"stride": s, "seed": seed, "bits": 0.245 if s == 16 else 0.28 + s / 1000}
        for s in (15, 16, 17)
        for seed in range(3)
    ]
    return {"longer": 4, "rows": rows, "strides": strides}


# ---- copying ---------------------------------------------------------------------


def test_the_limit_is_what_is_heard_and_guesses_of_the_rest():
    assert ch17_learning.limit(0.0, 16) == 1 / 16
    assert ch17_learning.limit(1.0, 16) == 1.0
    assert ch17_learning.limit(0.5, 4) == pytest.approx(0.625)


def test_percent_is_one_number_or_the_lowest_and_the_highest():
    assert ch17_learning.percent([0.501, 0.499]) == "50"
    assert ch17_learning.percent([0.9, 0.314, 0.5]) == "31–90"


def test_what_was_just_trained_stands_beside_its_limit():
    table = ch17_learning.copy_live_table({("window", 2, 12): (0.5, 0.25)}, 4)
    assert cells(table)[1] == ["window", "2", "12", "50%", "62%", "25%"]


def test_a_cell_of_the_grids_says_what_is_right_and_what_can_be(copies):
    html = ch17_learning.copy_figure(copies)
    drawn = words(html)
    assert "One layer trains for 7 steps, two for 9. After 2,000, two" in html.text
    assert "pattern have 50–70 % at the largest distance" in html.text
    assert drawn.count("6") == 2  # dilated at 5, with one layer and two
    assert "max 6" not in drawn  # guesses have no limit
    assert drawn.count("max 25") == len(DISTANCES) == drawn.count("23–25")  # fixed
    assert drawn.count("31–33") == 3 and drawn.count("90–92") == 1
    assert drawn.count("99–101") == 6 * 4 - 1  # the others, one layer
    assert all(name in drawn for name in copy_patterns())


def test_what_cant_be_heard_is_hatched_and_nothing_else(copies, monkeypatch):
    hatched = []
    real = ch17_learning.Rectangle

    def note(place, *sizes, **style):
        if style.get("hatch"):
            hatched.append(place)
        return real(place, *sizes, **style)

    monkeypatch.setattr(ch17_learning, "Rectangle", note)
    ch17_learning.copy_figure(copies)
    row = [*copy_patterns()].index("dilated")
    assert hatched == [(0, row), (0, row)]


def test_facts_of_copying_are_sorted_by_what_can_be_heard(copies):
    facts = ch17_learning.copy_facts(copies)
    assert facts["unheard"] == [0.06, 0.06]
    assert max(facts["short"]) == pytest.approx(0.25 - 0.23)
    assert set(facts["one layer"]) == {0.99, 1.01}
    assert set(facts["two layers"]) == {0.98, 1.0}
    assert len(facts["fixed"]) == 9 and max(facts["fixed"]) == pytest.approx(0.33)
    assert facts["longer"] == [0.5, 0.7, 0.6]
    assert len(facts["gained"]) == 9
    assert min(facts["gained"]) == pytest.approx((0.23 - 1 / 16) / (0.25 - 1 / 16))


def test_copying_is_told_with_its_exception(copies):
    said = ch17_learning.copy_said(copies)
    assert "6 % are right, as by guessing (6 %)" in said
    assert "copies 99–101 %, and two layers 98–100 %, except" in said
    assert "up to 2 points below the most that's possible" in said
    assert "Beyond 8 positions, where" in said
    assert "only 31–33 % are right (and 50–70 % at the" in said
    assert "largest distance after 2,000" in said


# ---- glyphs ----------------------------------------------------------------------


def dots(*places):
    images = torch.zeros(len(places), SIDE, SIDE, dtype=torch.bool)
    for image, place in zip(images, places, strict=True):
        image[place] = True
    return images


def test_a_pixel_sees_its_row_or_its_column():
    target = 9 * SIDE + 9
    named = image_patterns()
    seen = {
        name: ch17_learning.seen_pixels(heads, target) for name, heads in named.items()
    }
    assert seen["everything"] == [*range(target)]
    assert seen["row"] == [*range(target - 8, target)]
    above = [9 + SIDE * row for row in range(9)]
    assert seen["column"] == [*above, target - 1]
    assert seen["row and column"] == sorted({*seen["row"], *above})
    off = {pixel - 1 for pixel in above}
    assert seen["column of the pixel read"] == sorted({*seen["row"], *off})
    apart = (local_pattern(1), local_pattern(2))
    assert ch17_learning.seen_pixels(apart, 5) == [3, 4]


def test_views_count_what_they_show():
    html = ch17_learning.sight_figure(dots((3, 2))[0], row=2, column=9)
    assert "row: 8 pixels; column: 3 pixels; row and column: 10 pixels" in html.text
    assert "everything: 41 pixels" in html.text
    assert set(ch17_learning.SIGHT.values()) <= set(words(html))


def test_what_was_just_trained_has_three_decimals():
    table = ch17_learning.images_live_table({"row": 0.30749})
    assert cells(table)[1] == ["row", "0.307"]


def test_bits_are_of_one_pattern_and_one_length(images):
    assert ch17_learning.image_bits(images, "row") == pytest.approx([0.3, 0.31, 0.32])
    later = ch17_learning.image_bits(images, "row and column", 4)
    assert later == pytest.approx([0.234] * 3)
    assert ch17_learning.stride_bits(images)[16] == [0.245] * 3
    assert [*ch17_learning.stride_bits(images)] == [15, 16, 17]


def test_gains_are_seed_by_seed(images):
    found = ch17_learning.gains(images, "row", "row and column")
    assert found == pytest.approx([0.06, 0.07, 0.08])
    found = ch17_learning.gains(images, "everything", "row and column", 4)
    assert found == pytest.approx([0.04] * 3)


def test_a_dot_stands_for_each_run(images):
    html = ch17_learning.images_figure(images)
    drawn = words(html)
    assert set(ch17_learning.SIGHT.values()) <= set(drawn)
    assert {"15", "16", "17"} <= set(drawn)
    caption = html.text[html.text.rindex("Held-out characters, three seeds") :]
    assert ch17_learning.later_said(images) in caption


def test_a_dot_stands_at_its_bits(images, monkeypatch):
    monkeypatch.setattr(ch17_learning, "show", lambda figure, **_: figure)
    left, right = ch17_learning.images_figure(images).axes
    assert left.lines[0].get_xdata() == pytest.approx([0.3, 0.31, 0.32])
    assert left.lines[2].get_xdata() == pytest.approx([0.24] * 3)
    fits = [line for line in right.lines if line.get_marker() == "o"]
    assert [line.get_xdata()[0] for line in fits] == [SIDE]


def test_what_wasnt_read_is_pale(monkeypatch):
    monkeypatch.setattr(ch17_learning, "show", lambda figure, **_: figure)
    figure = ch17_learning.sight_figure(dots((3, 2), (9, 9))[0], row=3, column=2)
    pixel = figure.axes[0].patches[0]
    assert (pixel.get_xy(), pixel.get_alpha()) == ((2, 3), 0.25)
    figure = ch17_learning.sight_figure(dots((3, 2))[0], row=3, column=3)
    assert figure.axes[0].patches[0].get_alpha() == 1.0


def test_images_are_told_with_their_control(images):
    said = ch17_learning.images_said(images)
    assert "0.060 to 0.080 bits per pixel better than the row alone" in said
    assert "0.040 to 0.040 better than everything; with 4 times as many steps" in said
    assert "they beat “everything” by 0.040 to 0.040 bits." in said
    assert "improves the row by only 0.010 to 0.030." in said
    assert "wrong stride has 0.295 bits, the worst with the right one 0.245" in said


def test_a_lead_that_is_lost_is_told(images):
    rows = [
        row | {"bits": 0.2} if row["times"] == 4 and row["seed"] == 1 else row
        for row in images["rows"]
    ]
    rows = [
        row | {"bits": 0.19}
        if row["pattern"] == "everything" and row["times"] == 4 and row["seed"] == 1
        else row
        for row in rows
    ]
    said = ch17_learning.later_said(images | {"rows": rows})
    assert "-0.010 to 0.040 bits: not a lead with every seed" in said


def test_what_is_said_of_copies_is_checked(capsys):
    record = recorded("copy_distance")
    ch17_learning.check_copies(record)
    assert capsys.readouterr().out.count("✓") == 1
    for key, most in (("rows", 0.7), ("longer", 0.1)):
        changed = [row | {"right": min(row["right"], most)} for row in record[key]]
        with pytest.raises(AssertionError):
            ch17_learning.check_copies(record | {key: changed})
    found = [
        row | {"right": row["reach"] + 0.06}
        if "fixed" in row["pattern"] and row["layers"] == 1
        else row
        for row in record["rows"]
    ]
    with pytest.raises(AssertionError):
        ch17_learning.check_copies(record | {"rows": found})


def test_the_best_stride_is_checked(capsys):
    record = recorded("images")
    ch17_learning.check_strides(record)
    assert capsys.readouterr().out.count("✓") == 1
    close = [row | {"bits": 0.2} for row in record["strides"]]
    with pytest.raises(AssertionError):
        ch17_learning.check_strides(record | {"strides": close})
