"""Pictures hold the numbers of their tensors, and say what is lit, hidden or added."""

import pytest
import torch
from bs4 import BeautifulSoup

from annotated.page.pictures import Block, Matrix, blocks, chain, number

ALT = "two rows of three numbers, the second lit"
X = torch.tensor([[1.0, -0.5, 0.0], [2.0, 0.25, 4.0]])


def drawn(*parts, **options):
    return BeautifulSoup(chain(*parts, alt=ALT, **options).text, "html.parser")


def cells(soup, *kinds):
    wanted = ".".join(["", "annotated-cell", *kinds])
    return [cell.text for cell in soup.select(wanted)]


def test_every_number_stands_in_its_cell_in_order():
    soup = drawn(Matrix(X, "X"))
    assert cells(soup) == ["1.00", "−0.50", "0", "2.00", "0.25", "4.00"]
    assert cells(soup, "negative") == ["−0.50"] and not cells(soup, "faded")
    assert "repeat(3, 1fr)" in soup.select_one(".annotated-cells")["style"]
    assert soup.select_one("[role=img]")["aria-label"] == ALT


@pytest.mark.parametrize(
    ("matrix", "shades"),
    [
        (Matrix(X), [0.125, 0.062, 0.0, 0.25, 0.031, 0.5]),
        (Matrix([[-2.0, 1.0]]), [0.5, 0.25]),
        (Matrix([[0.2, 0.8]], weights=True), [0.1, 0.4]),
    ],
)
def test_shades_grow_with_the_numbers_and_stay_readable(matrix, shades):
    styles = [cell["style"] for cell in drawn(matrix).select(".annotated-cell")]
    assert [float(style.partition(":")[2]) for style in styles] == shades


def test_a_lit_row_fades_the_others_and_a_column_adds_to_it():
    soup = drawn(Matrix(X, rows=["a", "b"], row=1))
    assert cells(soup, "lit") == ["2.00", "0.25", "4.00"]
    assert cells(soup, "faded") == ["1.00", "−0.50", "0"]
    assert soup.select_one(".annotated-label.lit").text == "b"
    assert cells(drawn(Matrix(X, row=0, column=2)), "lit") == ["1.00", "−0.50", "0", "4.00"]


def test_what_is_masked_shows_no_number():
    soup = drawn(Matrix(X, mask=X > 0.3))
    assert cells(soup) == ["1", "", "", "2", "", "4"]
    assert len(cells(soup, "hidden")) == 3


def test_heads_are_told_apart_by_gaps():
    soup = drawn(Matrix(torch.arange(6), heads=3))
    assert cells(soup, "head") == ["2", "4"]


def test_a_line_of_cells_is_skipped_and_cut_across_its_rows():
    soup = drawn(Matrix(torch.arange(6).view(2, 3), skip=1, cut=2, narrow=True))
    assert cells(soup, "skipped") == ["0"] and cells(soup, "cut") == ["1", "3", "5"]
    assert soup.select_one(".annotated-cells.narrow")
    soup = drawn(Matrix(X))
    assert not soup.select(".skipped, .cut, .narrow")


def test_a_wrong_number_is_marked():
    soup = drawn(Matrix([[1.0, 2.0]], wrong=torch.tensor([[False, True]])))
    assert cells(soup, "wrong") == ["2"]


def test_a_sign_stays_with_what_it_leads_to():
    a, b = Matrix([[1.0]]), Matrix([[2.0]])
    soup = drawn(a, "→", b, "=", "?")
    groups = soup.select_one(".annotated-chain").find_all(recursive=False)
    assert [group.get_text(" ", strip=True) for group in groups] == [
        "1",
        "→ 2",
        "=",
        "?",
    ]


def test_without_words_of_its_own_a_picture_says_its_numbers():
    a = Matrix(X, "A", rows=["x", "y"], columns=list("abc"), mask=X > 0.3)
    html = chain(a, "→", Matrix([[1.5]])).text
    said = BeautifulSoup(html, "html.parser").select_one("[role=img]")["aria-label"]
    assert said == (
        "A, columns a b c: x 1 hidden hidden; y 2 hidden 4. → Numbers: 1.5."
    )


def test_signs_captions_and_labels_are_escaped():
    soup = drawn(Matrix([[1.0]], "<b>", columns=["<i>"]), "→ <x>", caption="a < b")
    assert not soup.select("b, i, x")
    assert soup.select_one(".annotated-sign").text == "→ <x>"
    assert soup.figcaption.text == "a < b"
    # a style is no text: its quotes stay what they are
    assert 'content: ""' in "".join(style.text for style in soup.select("style"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (-1.0, "−1"),
        (0.001, "0"),
        (-0.001, "0"),
        (10.0, "10"),
        (1.25, "1.25"),
    ],
)
def test_numbers_are_short(value, text):
    assert number(value) == text
    assert number(10.0, digits=0) == "10"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Matrix(X, rows=["a"]), "rows must hold 2 labels, got 1"),
        (lambda: Matrix(X, columns=["a"]), "columns must hold 3 labels, got 1"),
        (lambda: Matrix(X, mask=torch.ones(3, 2).bool()), "mask must have the shape"),
        (lambda: Matrix(X, heads=2), "heads must divide columns"),
        (lambda: chain(Matrix(X), alt="picture"), "alt must say what the figure shows"),
        (
            lambda: blocks(Block("a", skip=2), Block(), alt=ALT),
            "skip must be at most steps_after, got skip=2 and steps_after=1",
        ),
    ],
)
def test_honest_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_part_that_is_neither_matrix_nor_text_is_refused():
    with pytest.raises(TypeError, match="matrices and texts, got Tensor"):
        chain(X, alt=ALT)


def test_a_residual_leaves_before_its_first_block_and_is_added_after_its_last():
    picture = blocks(
        Block("norm", "(b, t, d)", skip=2),
        Block("attention", "(b, t, d)", lit=True, note="looks around"),
        Block("", "(b, t, d)"),
        alt="a norm, then attention, with a residual around both",
    )
    steps = BeautifulSoup(picture.text, "html.parser").select(".annotated-step")
    kinds = [set(step["class"]) - {"annotated-step"} for step in steps]
    assert kinds == [{"begins", "spanned"}, {"spanned"}, {"joins"}]
    assert [len(step.select(".annotated-block")) for step in steps] == [1, 1, 0]
    assert steps[1].select_one(".annotated-block.lit small").text == "looks around"
    assert all(
        step.select_one(".annotated-arrow").text == "(b, t, d)" for step in steps
    )
