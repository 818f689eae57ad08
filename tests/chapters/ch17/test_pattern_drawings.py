"""ch17/pattern_drawings.py: what is drawn is what the masks hold."""

import re

import pytest
import torch
from bs4 import BeautifulSoup
from matplotlib import pyplot

from annotated.chapters.ch17 import pattern_drawings as patterns
from annotated.sparse import layers_to_reach, reach

T, L = 24, 4


def soup(html):
    return BeautifulSoup(html.text, "html.parser")


def squares(path, size=12, start=1):
    """Where a path has its squares, as a mask that is as small as can be."""
    places = re.findall(r"M([\d.]+) ([\d.]+)h", path["d"])
    return {
        (round((float(y) - start) / size), round((float(x) - start) / size))
        for x, y in places
    }


def true(mask):
    return set(map(tuple, mask.nonzero().tolist()))


def by_hand(name, i, j, causal=True):
    """Whether i sees j, in other words."""
    if causal and j > i:
        return False
    apart, half = abs(i - j), T // 2
    return {
        "full": True,
        "window": apart < L,
        "dilated": apart in (0, 2, 4, 6),
        "strided": apart < L or apart % L == 0,
        "fixed": i // L == j // L or j % L == L - 1,
        "window + global": apart < L or {i, j} & {0, half} != set(),
    }[name]


@pytest.mark.parametrize("causal", [True, False])
def test_patterns_are_what_their_names_say(causal):
    found = patterns.named(T, L, causal)
    assert len(found) == 6
    for name, pattern in found.items():
        mask = pattern.mask(T)[0, 0]
        wanted = [[by_hand(name, i, j, causal) for j in range(T)] for i in range(T)]
        assert torch.equal(mask, torch.tensor(wanted)), name


def test_a_share_is_rounded_and_only_all_is_all():
    words = [patterns.share(part, 300) for part in (110, 299, 300)]
    assert words == ["37\u00a0%", "99\u00a0%", "100\u00a0%"]


def test_a_board_tells_seen_from_skipped():
    mask = torch.eye(3, dtype=torch.bool)
    for causal in (True, False):
        drawing = patterns.board(mask, causal=causal)
        skipped, seen = (part[1] for part in drawing.parts)
        assert squares(seen) == {(0, 0), (1, 1), (2, 2)}
        assert "weight" in seen["fill"] and "other" in skipped["fill"]
        rest = ~mask & (torch.ones(3, 3).tril().bool() if causal else True)
        assert squares(skipped) == true(rest)


def test_the_first_picture_shows_six_masks_and_what_they_keep():
    drawn = soup(patterns.hero(T, L))
    panels = drawn.select(".annotated-gallery > div")
    masks = {n: p.mask(T)[0, 0] for n, p in patterns.named(T, L).items()}
    assert len(panels) == 6
    assert "--columns: 3" in drawn.select_one(".annotated-gallery")["style"]
    for panel, (name, mask) in zip(panels, masks.items(), strict=True):
        assert panel.strong.text == name
        assert squares(panel.select("path")[1]) == true(mask)
        pairs = len(true(mask))
        note = f"{pairs} pairs, {round(100 * pairs / 300)}\u00a0%"
        assert panel.span.text == note
        assert f"{name} {note}" in drawn.select_one("[role=img]")["aria-label"]


def test_two_hops_reach_all_up_to_the_query():
    drawn = soup(patterns.one_query())
    lines = [
        [tuple(map(float, one.split(","))) for one in tag["points"].split()]
        for tag in drawn.select("polyline")
    ]
    place = {round(7 + 21 * (i + 0.5), 2): i for i in range(16)}
    tips = [tag["points"].split()[0].split(",")[0] for tag in drawn.select("polygon")]
    assert [place[float(x)] for x in tips] == [1, 5, 9, 13]
    short = [line for line in lines if line[1][1] == 180]
    hops = {(place[a[0]], place[b[0]]) for a, b in short}
    wanted = {1: (0, 1), 5: (2, 3, 4, 5), 9: (6, 7, 8, 9), 13: (10, 11, 12, 13)}
    assert hops == {(j, k) for j, all_k in wanted.items() for k in all_k}
    words = [tag.text for tag in drawn.select("svg text")]
    assert words.count("13") == 3 and words.count("12") == 1
    assert len(drawn.select("rect[stroke-dasharray]")) == 6
    assert len(drawn.select("rect[fill='var(--at-query)']")) == 1
    assert len(drawn.select("rect[fill='var(--at-weight)']")) == 4 + 14
    assert "all 14" in drawn.figcaption.text


def test_curves_are_shares_of_what_can_be_reached(monkeypatch):
    kept = []
    monkeypatch.setattr(patterns, "show", lambda figure, **said: kept.append(figure))
    patterns.reach_figure(64, 8)
    for ax, causal in zip(kept[0].axes, (True, False), strict=True):
        compared = patterns.compared(64, 8, causal)
        whole = 64 * 65 / 2 if causal else 64 * 64
        assert len(ax.lines) == len(compared) == 5
        for line, pattern in zip(ax.lines, compared.values(), strict=True):
            heard = reach([pattern.mask(64)], 9).flatten(1).sum(1) / whole
            assert line.get_xdata().tolist() == list(range(10))
            assert line.get_ydata()[0] == pytest.approx(64 / whole)
            assert line.get_ydata()[1:] == pytest.approx(heard.tolist())
        ends = [line.get_ydata()[-1] for line in ax.lines]
        assert [end == 1 for end in ends] == [True, False, True, True, True]
        assert "first" in ax.texts[1 if causal else 0].get_text()  # where it stands
    pyplot.close("all")


def test_the_figure_says_what_it_draws():
    said = soup(patterns.reach_figure()).select_one("[role=img]")["aria-label"]
    causal, both = said.split("both directions: ")
    assert "strided 34%, 100%, 100%" in causal
    assert "window + first 26%" in causal and ", 100%, 100%" in both.split("first ")[1]
    pyplot.close("all")


@pytest.mark.parametrize(("t", "stride"), [(16, 4), (64, 8), (61, 8)])
def test_all_three_uses_reach_everything_in_two_layers(t, stride):
    found = patterns.uses(t, stride)
    assert [layers_to_reach(masks) for masks in found.values()] == [2, 2, 2]
    near, every = found["one step per layer"]
    assert layers_to_reach([every, near]) == 2  # the far step first
    assert near[-1].sum() == stride
    assert torch.equal(found["both in every head"][0], near | every)
    assert torch.equal(found["one step per head"][0][0, 1], every)


def test_a_gallery_must_say_what_it_shows():
    with pytest.raises(ValueError, match="alt"):
        patterns.gallery([], 2, alt="", caption="x")
