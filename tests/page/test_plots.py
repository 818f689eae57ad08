"""annotated/page/plots.py: what a figure says is what it was given."""

import warnings

import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.colors import to_hex

from annotated.page.plots import (
    LINES,
    MARKERS,
    PALETTE,
    WEIGHTS,
    attention_heatmap,
    name_lines,
    use_style,
    visible,
)
from annotated.page.svg import LINE_END

QUERIES, KEYS = list("2024-"), ["7", ".", " ", "M", "ä", "r", "z"]


@pytest.fixture(autouse=True)
def figures():
    """Each test its own settings and no figure of another."""
    with plt.rc_context():
        yield
    plt.close("all")


def make_weights() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(len(QUERIES), len(KEYS), generator=generator)
    return scores.softmax(-1)


def labels(ticks) -> list[str]:
    return [tick.get_text() for tick in ticks]


# ---- style -------------------------------------------------------------------


def test_the_style_is_set_for_the_session():
    use_style()
    assert not plt.rcParams["axes.spines.top"]
    assert plt.rcParams["figure.figsize"] == [8.6, 3.4]
    cycle = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    assert [to_hex(c) for c in cycle] == [to_hex(c) for c in PALETTE]


def test_lines_differ_in_more_than_colour():
    assert len(set(LINES)) == len(LINES) >= 4
    assert len(set(MARKERS)) == len(MARKERS) >= 4


def test_a_space_is_shown():
    assert visible(" ") == "␣"
    assert visible("a") == "a"


def test_lines_are_named_at_their_ends_in_their_colours():
    _, ax = plt.subplots()
    ax.plot([0, 1], [3, 4], label="rises")
    ax.plot([0, 2], [3, 1], label="falls")
    ax.plot([0, 2], [1, 1])  # which has no label
    name_lines(ax)
    for text, line in zip(ax.texts, ax.lines[:2], strict=True):
        assert text.get_text() == line.get_label()
        assert text.xy == (line.get_xdata()[-1], line.get_ydata()[-1])
        assert text.get_color() == line.get_color()
        assert text.get_gid() == LINE_END, "and it moves if another stands there"


# ---- attention_heatmap -------------------------------------------------------


def test_a_row_is_a_query_and_the_first_one_is_on_top():
    weights = make_weights()
    ax = attention_heatmap(weights, QUERIES, KEYS)
    (mesh,) = ax.collections
    shown = torch.tensor(mesh.get_array().reshape(len(QUERIES), len(KEYS)))
    torch.testing.assert_close(shown.float(), weights)
    assert labels(ax.get_yticklabels()) == QUERIES
    assert labels(ax.get_xticklabels()) == ["7", ".", "␣", "M", "ä", "r", "z"]
    assert ax.yaxis_inverted()
    assert not ax.xaxis_inverted()


@pytest.mark.parametrize("scale", [0.25, 1.0])
def test_the_scale_of_weights_is_always_from_0_to_1(scale):
    ax = attention_heatmap(make_weights() * scale, QUERIES, KEYS)
    (mesh,) = ax.collections
    assert mesh.get_clim() == (0.0, 1.0), "panels must be comparable"
    assert mesh.get_cmap() == WEIGHTS


def test_the_colour_bar_says_what_it_shows():
    ax = attention_heatmap(make_weights(), QUERIES, KEYS)
    _, bar = ax.figure.axes
    assert bar.get_ylabel() == "weight"


def test_a_panel_can_go_without_its_colour_bar():
    ax = attention_heatmap(make_weights(), QUERIES, KEYS, bar=False)
    assert ax.figure.axes == [ax]


def test_a_heatmap_goes_where_it_is_told():
    _, (left, right) = plt.subplots(1, 2)
    numbers = plt.get_fignums()
    # not the last one, which matplotlib would take by itself
    given = attention_heatmap(make_weights(), QUERIES, KEYS, ax=left, title="Left")
    assert given is left
    assert left.get_title() == "Left"
    assert not right.collections
    assert plt.get_fignums() == numbers


def test_more_names_make_a_larger_figure():
    small = attention_heatmap(torch.ones(1, 1), "a", "b").figure.get_size_inches()
    large = attention_heatmap(make_weights(), QUERIES, KEYS).figure.get_size_inches()
    assert (large > small).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_weights_may_come_straight_from_a_model(dtype):
    weights = make_weights().to(dtype).requires_grad_()
    ax = attention_heatmap(weights, QUERIES, KEYS)
    assert ax.collections[0].get_array().size == weights.numel()
    assert weights.requires_grad


def test_names_may_be_a_text():
    ax = attention_heatmap(make_weights(), "2024-", "7. März")
    assert labels(ax.get_yticklabels()) == QUERIES


def test_a_heatmap_is_drawn_without_a_warning():
    use_style()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        attention_heatmap(make_weights(), QUERIES, KEYS).figure.canvas.draw()
    assert seen == []  # of missing glyphs or too little room


# ---- wrong arguments ---------------------------------------------------------


@pytest.mark.parametrize(
    ("queries", "keys"), [(QUERIES[:-1], KEYS), (QUERIES, KEYS[:-1]), (KEYS, QUERIES)]
)
def test_each_row_and_column_needs_a_name(queries, keys):
    message = (
        rf"^weights of shape \(5, 7\) need as many names: got {len(queries)} queries "
        f"and {len(keys)} keys$"
    )
    with pytest.raises(ValueError, match=message):
        attention_heatmap(make_weights(), queries, keys)


def test_a_heatmap_shows_one_sentence():
    with pytest.raises(ValueError, match=r"^weights must have the shape \(t, s\)"):
        attention_heatmap(make_weights()[None], QUERIES, KEYS)
