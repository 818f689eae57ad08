"""annotated/page/plots.py: what a figure says is what it was given."""

import warnings

import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.colors import to_hex

from annotated.page.plots import (
    LINES,
    MARKERS,
    OTHER,
    PALETTE,
    THIS,
    WEIGHTS,
    attention_heatmap,
    described,
    name_lines,
    plot_bars,
    plot_lines,
    use_style,
    visible,
)
from annotated.page.svg import LINE_END

QUERIES, KEYS = list("2024-"), ["7", ".", " ", "M", "ä", "r", "z"]


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
    _, bar = ax.figure.axes
    assert bar.get_ylabel() == "weight"
    alone = attention_heatmap(make_weights(), QUERIES, KEYS, bar=False)
    assert alone.figure.axes == [alone]


def test_a_heatmap_goes_where_it_is_told():
    _, (left, right) = plt.subplots(1, 2)
    numbers = plt.get_fignums()
    # not the last one, which matplotlib would take by itself
    given = attention_heatmap(make_weights(), QUERIES, KEYS, ax=left, title="Left")
    assert given is left
    assert left.get_title() == "Left"
    assert not right.collections
    assert plt.get_fignums() == numbers


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_weights_may_come_straight_from_a_model(dtype):
    weights = make_weights().to(dtype).requires_grad_()
    ax = attention_heatmap(weights, QUERIES, KEYS)
    assert ax.collections[0].get_array().size == weights.numel()
    assert weights.requires_grad


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


# ---- lines, bars, and what is said of them --------------------------------------


def test_lines_are_drawn_where_they_are_and_named():
    few, many = {1: torch.tensor(3.0), 2: 4, 8: 5}, dict(enumerate(range(1, 11), 1))
    ax = plot_lines(
        {"few": few, "many": many}, colors={"many": OTHER}, ylabel="seconds"
    )
    one, other = ax.lines
    assert (*one.get_xdata(),) == (1, 2, 8) and (*one.get_ydata(),) == (3, 4, 5)
    assert (*other.get_ydata(),) == (*range(1, 11),)
    assert (one.get_color(), other.get_color()) == (THIS, OTHER)
    assert (one.get_marker(), other.get_marker()) == ("o", "None")
    assert labels(ax.texts) == ["few", "many"] and ax.get_ylabel() == "seconds"
    assert all(text.get_gid() == LINE_END for text in ax.texts)
    again = plot_lines({"few": few}, ax)
    assert again is ax and len(ax.lines) == 3


def test_a_logarithmic_axis_has_its_ticks_at_the_dots_or_as_given():
    few = {64: 1, 2048: 2}
    ax = plot_lines({"few": few, "other": {512: 1}}, xscale="log")
    assert [*ax.get_xticks()] == [64, 512, 2048] and not len(ax.get_xticks(minor=True))
    assert labels(ax.get_xticklabels()) == ["64", "512", "2,048"]
    assert [*plot_lines({"few": few}, xscale="log", xticks=[64]).get_xticks()] == [64]
    many = dict.fromkeys(range(1, 20), 1)
    assert len(plot_lines({"many": many}, xscale="log").get_xticks()) < 10


@pytest.mark.parametrize("upright", [True, False])
def test_parts_of_bars_stand_on_each_other(upright):
    parts = {"low": {"a": 1, "b": 2}, "high": {"a": 3.0, "b": torch.tensor(4)}}
    ax = plot_bars(parts, colors={"high": OTHER}, upright=upright, title="t")
    low, high = ax.containers
    assert [*low.datavalues] == [1, 2] and [*high.datavalues] == [3, 4]
    starts = [bar.get_y() if upright else bar.get_x() for bar in high]
    assert starts == [1, 2] and ax.get_title("left") + ax.get_title() == "t"
    colors = [to_hex(bars[0].get_facecolor()) for bars in (low, high)]
    assert colors == [THIS, OTHER]
    assert ax.yaxis_inverted() != upright, "the first bar is on top"


def test_a_figure_is_described():
    use_style()
    figure, (left, right) = plt.subplots(1, 2)
    plot_lines({"ours": {1: 0.5, 2: 9, 4096: 2048}}, left, xlabel="t", ylabel="loss")
    left.axhline(1)
    left.plot(3, 4, label="dot")
    left.text(2, 2, "the\nbest")
    plot_bars({"low": {"a": 1, "b": 2}, "high": {"a": 3, "b": 4}}, right, title="two")
    right.text(0, 0, "low")
    assert described(figure) == (
        "Loss against t. ours: 0.5 at 1 to 2,048 at 4,096. dot: 4 at 3. Written in it: "
        "the best. Two. low: 1 at a, 2 at b. high: 3 at a, 4 at b."
    )
    flat = plot_bars({"one": {"a": 1, "b": 2}}, upright=False, xlabel="MB").figure
    assert described(flat) == "MB. one: 1 at a, 2 at b."
    _, ax = plt.subplots()
    ax.bar([0.5, 2.5], [7, 1234.4], label="counted")
    ax.errorbar([1], [2], yerr=[1], label="off")
    assert "counted: 7 at 0.5, 1,234 at 2.5." in described(ax.figure)
