"""ch17/cost.py: what two records show is drawn and said as it is."""

from copy import deepcopy

import pytest
from bs4 import BeautifulSoup

from annotated.chapters.ch17 import cost as page

DENSE = ("written out", "masked", "fused")
ALL = (*DENSE, *page.BLOCKS)


def entry(ratios, fused=2.0):
    kinds = {"both": 1.0, "forward": 0.5}
    return {
        kind: {
            name: {
                "seconds": [0.9 * r * fused * f, r * fused * f, 1.1 * r * fused * f],
                "to fused": [0.9 * r, r, 1.1 * r],
            }
            for name, r in ratios.items()
        }
        for kind, f in kinds.items()
    }


def of_blocks(*ratios, masked=2.0):
    return dict(zip(ALL, (5.0, masked, 1.0, *ratios), strict=True))


def row_of(pattern, allowed, *ratios, masked=2.0):
    useful = dict(zip(page.BLOCKS, (0.9, 0.8, 0.6), strict=True))
    row = {"pattern": pattern, "allowed": allowed, "useful": useful}
    return row | entry(of_blocks(*ratios, masked=masked))


def long_row(length, *ratios, without=()):
    found = {n: r for n, r in of_blocks(*ratios).items() if n not in without}
    return {"length": length, "MB": {n: 100 * r for n, r in found.items()}} | entry(
        found
    )


COST = {
    "config": {"window": 256, "length": 1000, "stride": 64, "heads": 2, "width": 64},
    "by length": [
        long_row(1024, 0.9, 0.8, 0.7),
        long_row(4096, 0.5, 0.4, 0.3),
        long_row(16384, 0.21, 0.14, 0.11, without=("written out", "masked")),
    ],
    "by sparsity": [
        row_of("window 64", 0.05005, 0.2, 0.125, 0.1),
        row_of("window 256", 0.1001, 0.4, 0.5, 0.6),
        row_of("window 1024", 0.4004, 3.0, 2.0, 1.5, masked=2.5),
        row_of("strided, 1", 0.0125, 0.3, 0.2, 0.1),
        row_of("fixed, 2", 0.0125, 0.3, 0.2, 0.1),
    ],
    "flex": {
        "forward": {"fused": [1, 2, 3], "blocks of 64": [0, 1, 2], "flex": [0, 0.5, 1]},
        "backward raises": "NotImplementedError: no gradient here. Please use another.",
        "MB, forward": {"fused": 3.2, "flex, uncompiled": 445.3},
    },
}
WAYS = ("written out", "fused", "sparse", "LSH", "reversible", "Transformer-XL")


def chart_row(length, seconds, MB):
    both = [dict(zip(WAYS, numbers, strict=True)) for numbers in (seconds, MB)]
    if length > 2048:
        both = [{w: x for w, x in one.items() if w != "written out"} for one in both]
    return {
        "length": length,
        "seconds": {way: [0.5 * s, s, 2 * s] for way, s in both[0].items()},
        "MB": both[1],
    }


BITS = {
    "written out": (4.5, 4.6, 4.4),
    "fused": (3.9, 3.95, 3.92),
    "sparse": (3.7, 3.75, 3.8),
    "LSH": (3.79, 3.85, 3.9),
    "reversible": (4.0, 4.0, 4.0),
    "Transformer-XL": (4.1, 4.15, 4.2),
    "fused, short": (4.1, 4.2, 4.3),
}
CHART = {
    "config": {"layers": 4, "d_model": 64, "length": 1024, "seconds": 10.0}
    | {"read": 2048, "segment": 128, "stride": 32, "chunk": 16},
    "parameters": dict.fromkeys(WAYS, 1000),
    "by length": [
        chart_row(512, [0.1, 0.05, 0.03, 0.04, 0.07, 0.05], [60, 20, 30, 40, 15, 9]),
        chart_row(1024, [0.3, 0.1, 0.04, 0.04, 0.15, 0.05], [160, 40, 60, 80, 30, 9]),
        chart_row(8192, [0, 0.8, 0.08, 0.06, 1.2, 0.05], [0, 200, 400, 600, 100, 10]),
    ],
    "learned": [
        {"way": way, "seed": seed, "steps": 9, "bits": bits}
        for way, each in BITS.items()
        for seed, bits in enumerate(each)
    ],
}


def soup(html):
    return BeautifulSoup(html.text, "html.parser")


def words(html):
    first = soup(html).select("svg")[0]
    return [text.text for text in first.select("text")]


def alt(html):
    return " ".join(str(one.attrs) for one in soup(html).select("[aria-label], [alt]"))


def cells(html):
    return [
        [cell.text for cell in row.select("th, td")] for row in soup(html).select("tr")
    ]


def test_shares_are_of_causal_pairs():
    found = [share for share, _ in page.windows(COST)]
    assert found == pytest.approx([0.1, 0.2, 0.8])


def test_blocks_cross_where_logarithms_meet_one():
    # from (0.2, 1/2) to (0.8, 2): halfway between, by logarithms
    assert page.crossing(COST, "blocks of 64") == pytest.approx(0.4)
    assert page.crossing(COST, "blocks of 32") < 0.4
    always = COST | {"by sparsity": COST["by sparsity"][:2]}
    assert page.crossing(always, "blocks of 64") is None
    other = deepcopy(COST)
    other["by sparsity"][2]["forward"]["blocks of 64"]["to fused"][1] = 8.0
    assert page.crossing(other, "blocks of 64", "forward") == pytest.approx(
        0.8**0.25 * 0.2**0.75
    )


def test_the_cost_is_drawn_with_names_at_lines():
    html = page.cost_figure(COST)
    found = words(html)
    for name in ("written out", "fused", "blocks of 32", "blocks of 128"):
        assert found.count(name) == 1
    assert found.count("masked") == found.count("blocks of 64") == 2
    assert "a window of 256" in found and "a length of 1,000" in found
    assert {"1k", "16k", "seconds", "fused = 1"} <= {*found}
    assert "At 1,000 positions, blocks of 64 win with up to 40% of pairs" in html.text
    assert "one CPU thread, one text, 2 heads 64 wide." in html.text
    assert "to 0.14 of fused at 16,384" in html.text
    always = COST | {"by sparsity": COST["by sparsity"][:2]}
    assert (
        "At 1,000 positions, blocks beat the fused kernel with every window"
        in page.cost_figure(always).text
    )


def test_lines_are_drawn_where_they_were_measured():
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    page.draw_line(ax, "masked", [(1, 2), (3, 4)], last=5)
    page.draw_line(ax, "blocks of 64", [(1, 2), (5, 4)], last=5)
    short, whole = ax.lines
    assert [*short.get_xdata()] == [1, 3] and [*short.get_ydata()] == [2, 4]
    assert (short.get_label(), whole.get_label()) == ("_masked", "blocks of 64")
    assert [text.get_text() for text in ax.texts] == ["masked"]
    assert (short.get_color(), whole.get_color()) == (page.OTHER, page.THIS)
    plt.close()


def test_each_line_of_a_figure_looks_its_own_way():
    for names in ((*DENSE, "blocks of 64"), page.BLOCKS, WAYS):
        looks = [page.LOOKS[name] for name in names]
        assert len({*looks}) == len(looks)
        assert len({look[1:] for look in looks}) >= len(looks) - 1


def test_the_cost_is_said():
    said = page.cost_said(COST)
    for words in (
        "With a window of 256 at 16,384 positions, blocks of 64 take 0.14 of the time",
        "At 1,000 positions, they win with up to 40% of the pairs.",
        "takes 2.0 to 2.5 times as long with a mask as without",
        "At 1,000 positions with stretches of 64, their ends are 2.5% of the pairs",
        "blocks of 64 take 0.2 times as long",
    ):
        assert words in said
    assert len(said.splitlines()) == 5
    assert said.endswith("\n\n" + page.flex_said(COST))
    always = COST | {"by sparsity": COST["by sparsity"][:2]}
    assert "they win with every window." in page.crossing_said(always)


def test_flex_is_told_as_it_ran():
    said = page.flex_said(COST)
    assert "takes 0.25 of the fused kernel's time forward at 1,000 positions" in said
    assert "our blocks of 64 take 0.50" in said
    assert "`NotImplementedError: no gradient here`" in said
    assert "445 MB instead of 3." in said


def test_without_a_compiler_flex_has_no_time():
    flex = {k: v for k, v in COST["flex"].items() if k != "forward"}
    said = page.flex_said(COST | {"flex": flex | {"backward raises": ""}})
    assert "compiled" not in said and "train" not in said and "445 MB" in said


def test_spans_have_one_number_if_they_look_the_same():
    assert (
        page.span([1.001, 0.999]) == "1.00" and page.span([2, 1, 3], ".0f") == "1 to 3"
    )


def test_the_best_way_comes_first():
    found = page.learned_bits(CHART)
    assert [*found] == [
        "sparse",
        "LSH",
        "fused",
        "reversible",
        "Transformer-XL",
        "fused, short",
        "written out",
    ]
    assert found["LSH"] == [3.79, 3.85, 3.9]


def test_the_chart_has_three_panels():
    html = page.chart_figure(CHART)
    found = words(html)
    assert all(found.count(way) == 3 for way in WAYS)
    assert {"512", "8k", "MB", "bits per character after 10 CPU seconds"} <= {*found}
    assert (
        "At 8,192 characters Transformer-XL is fastest and needs least memory"
        in html.text
    )
    assert "a window of 32, and one with a stride of 32. LSH: one" in html.text
    assert "chunks of 16. Transformer-XL: segments of 128." in html.text
    assert "at a time, short pieces of 128 for Transformer-XL and" in html.text
    other = deepcopy(CHART)
    other["by length"][-1]["seconds"]["LSH"] = [0.01, 0.01, 0.01]
    assert (
        "LSH attention is fastest, Transformer-XL needs least memory"
        in page.chart_figure(other).text
    )
    assert "sparse attention 0.08 seconds, 400 MB" in html.text
    assert "written out 4.40 to 4.60" in html.text
    order = [way for way in found if way in BITS][-7:]
    assert order == [*reversed(page.learned_bits(CHART))]


def test_a_dot_stands_in_its_row(monkeypatch):
    monkeypatch.setattr(page, "show", lambda figure, **_: figure)
    loss = page.chart_figure(CHART).axes[2]
    names = [label.get_text() for label in loss.get_yticklabels()]
    drawn = {names[line.get_ydata()[0]]: (*line.get_xdata(),) for line in loss.lines}
    assert {way: sorted(each) for way, each in drawn.items()} == {
        way: sorted(each) for way, each in BITS.items()
    }
    means = {names[text.xy[1]]: text.get_text() for text in loss.texts}
    assert means["sparse"] == "3.75" and means["fused"] == "3.92"
    assert [*means] == names
    ranges = [part.get_segments()[0][:, 0].tolist() for part in loss.collections]
    assert ranges[names.index("sparse")] == [3.7, 3.8]


def test_the_panel_says_that_short_pieces_lead_if_they_do():
    other, ways = deepcopy(CHART), page.EXPLAINED
    assert "learned in equal time" in words(page.chart_figure(other))
    for run in other["learned"]:
        run["bits"] -= run["way"] in ways
    assert "short pieces, fewest bits" in words(page.chart_figure(other))
    bits = {"fused": (3.0, 2.0), ways[0]: (1.0, 1.5), ways[1]: (1.0, 1.9)}
    assert page.short_is_best(bits)
    assert not page.short_is_best(bits | {ways[1]: (1.0, 2.1)})


def test_the_chart_is_said():
    said = page.chart_said(CHART)
    for part in (
        "of 8,192 characters, 1,000 of them take 0.80 seconds with the fused kernel, "
        "0.06 with LSH attention and 0.08 with sparse attention.",
        "At 8,192, a step takes 10 MB with Transformer-XL and 100 with reversible "
        "layers, against 200 with the fused kernel alone, 600 with LSH and 400 with "
        "sparse attention.",
        "Each reads held-out text the way it read in its 10 seconds of training. On "
        "1,024 characters at a time, sparse attention has 3.70 to 3.80 bits per "
        "character and the fused model 3.90 to 3.95; on pieces of 128, Transformer-XL "
        "has 4.10 to 4.20 and the fused model 4.10 to 4.30. So reading short pieces "
        "from many places is enough to explain its lead",
    ):
        assert part in said


@pytest.mark.parametrize(
    ("more", "why"),
    [(0.05, "enough to explain its lead"), (0.2, "a part of its lead, but not all")],
)
def test_what_the_control_does_not_explain_is_left(more, why):
    other = deepcopy(CHART)
    for run in other["learned"]:
        run["bits"] += more * (run["way"] == page.CONTROL)
    assert why in page.chart_said(other)
