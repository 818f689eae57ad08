"""ch18/drawings.py: how far tricks are off, and what is drawn of them."""

import json
from pathlib import Path

import pytest
import torch
from bs4 import BeautifulSoup
from matplotlib import pyplot
from torch import nn

from annotated.chapters.ch18 import drawings as ch18
from annotated.chapters.ch18.large import large_model
from annotated.gpt import next_token_loss

RESULTS = Path(__file__).resolve().parents[2] / "book" / "results"
RECORDS = {
    name: json.loads((RESULTS / f"{name}.json").read_text())
    for name in ("clipping", "compile", "drawn_again", "halves")
}
PARTS = ch18.line_batches(("abc", "a long line of text", "no"))
(WHOLE,) = ch18.joined(PARTS, 3)


@pytest.fixture
def drawn(monkeypatch):
    """What is given to ``show``: figures, and the words with them."""
    kept = []
    monkeypatch.setattr(
        ch18, "show", lambda figure, **said: kept.append((figure, said))
    )
    yield kept
    pyplot.close("all")


def soup(html):
    return BeautifulSoup(html.text, "html.parser")


def cells(html):
    return [
        [cell.text for cell in row.select("th, td")] for row in soup(html).select("tr")
    ]


# ---- how far a step is off -----------------------------------------------------


def test_lines_are_batches_of_one_row():
    tokens, targets = PARTS[2]
    assert tokens.shape == targets.shape == (1, 1)
    assert (chr(tokens + 31), chr(targets + 31)) == ("n", "o")
    tokens, targets = WHOLE
    assert tokens.shape == targets.shape == (3, 18)
    assert (targets >= 0).sum(dim=1).tolist() == [2, 18, 1]
    assert targets[0, 2] == -100 and tokens[0, :2].equal(PARTS[0][0][0])
    assert [len(t) for t, _ in ch18.joined(PARTS, 2)] == [2, 1]
    assert ch18.tokens_in(WHOLE) == 21
    assert len(ch18.line_batches()) == len(ch18.CHAT)


def test_off_is_relative():
    wanted = torch.tensor([3.0, 4.0])
    assert ch18.off(wanted, wanted) == 0
    assert ch18.off(torch.zeros(2), wanted) == 1
    assert ch18.off(torch.tensor([3.0, 5.0]), wanted) == pytest.approx(0.2)


def test_a_gradient_of_parts_is_a_sum_and_starts_anew():
    model = large_model().double()
    one = ch18.gradient_of(model, (PARTS[0], 1.0))
    two = ch18.gradient_of(model, (PARTS[1], 1.0))
    both = ch18.gradient_of(model, (PARTS[0], 0.5), (PARTS[1], 2.0))
    torch.testing.assert_close(both, 0.5 * one + 2 * two)
    model.zero_grad()
    next_token_loss(model, PARTS[0]).backward()
    assert torch.equal(ch18.gradient(model), one)
    narrow = ch18.gradient_of(model.float(), (PARTS[0], 1.0), precision=torch.bfloat16)
    assert 1e-4 < ch18.off(narrow.double(), one) < 0.1
    noisy = large_model(dropout=0.5)
    again = [ch18.gradient_of(noisy, (WHOLE, 1.0)) for _ in range(2)]
    assert torch.equal(*again)


def test_a_step_in_bfloat16():
    weights = torch.tensor([1.0, 0.5, 2**-8, -1.0])
    found = ch18.bfloat16_step(weights, 2**-9)  # to even, below 1
    assert found.tolist() == [0, -(2**-9), -(2**-9), 0]
    # rounded weights are the start, so what the first rounding takes is no step
    assert ch18.bfloat16_step(torch.tensor([1.001]), 1e-4).item() == 0


def test_gaps_of_right_and_wrong(drawn):
    found = ch18.gaps(PARTS, WHOLE, RECORDS["compile"])
    right = {name: one[0] for name, one in found.items()}
    wrong = {name: one[1] for name, one in found.items()}
    assert right["in pieces"] < 1e-5 < 0.1 < wrong["in pieces"]
    model, third = large_model(), 1 / 3
    means = ch18.gradient_of(model, *((part, third) for part in PARTS))
    wanted = ch18.gradient_of(model, (WHOLE, 1.0))
    assert wrong["in pieces"] == pytest.approx(ch18.off(means, wanted), rel=1e-3)
    assert right["loss scaled"] < 1e-6
    assert wrong["loss scaled"] == pytest.approx(1 - 2**-16, abs=1e-3)
    assert 1e-3 < right["bfloat16"] < 0.05 < wrong["bfloat16"] < 1
    assert right["checkpoints"] < 1e-6 < 0.05 < wrong["checkpoints"]
    assert right["compiled"] == RECORDS["compile"]["gradient"]["compiled to plain"]
    assert wrong["compiled"] is None
    ch18.hero(found)
    ((figure, said),) = drawn
    lines = figure.axes[0].lines
    marks = [(line.get_marker(), line.get_ydata()[0]) for line in lines]
    assert marks == [("o", 0), *((m, y) for y in (1, 2, 3, 4) for m in "ox")]
    places = [line.get_xdata()[0] for line in lines]
    assert 1e-8 <= places[5] < 1e-6 and places[6] == pytest.approx(1 - 2**-16, abs=1e-3)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [*found][
        ::-1
    ]
    assert f"{wrong['in pieces']:.2g} (mean of means)" in said["alt"]


# ---- a batch in pieces ---------------------------------------------------------


def test_what_a_token_counts_is_drawn():
    weights = [1 / 8, 1 / 8, 1 / 2]
    html = soup(ch18.token_weights([3, 5, 8], weights, 2))
    words = [text.text for text in html.select("svg text")]
    assert words[1:] == ["× 2.00", "× 2.00", "× 8.00"]
    frames = html.select("svg rect")
    widths = [float(one["width"]) for one in frames]
    assert widths[1] / widths[0] == pytest.approx(5 / 3)
    shades = [float(one["fill-opacity"]) for one in frames]
    assert shades[0] == shades[1] == 0.5 and shades[2] == 0.9
    assert {one["fill"] for one in frames} == {"var(--at-wrong)"}
    (line,) = html.select("svg polyline")  # after two rows
    assert float(line["points"].split(",")[-1]) == 71.5
    even = soup(ch18.token_weights([1, 3], [1 / 4] * 2, 1))
    assert {one["fill"] for one in even.select("rect")} == {"var(--at-this)"}


def page_weights(lengths, rows, by_tokens):
    found = []
    for i in range(0, len(lengths), rows):
        piece = lengths[i : i + rows]
        share = sum(piece) / sum(lengths) if by_tokens else rows / len(lengths)
        found += [share / sum(piece)] * len(piece)
    return found


def test_pieces_are_proved(capsys):
    ch18.check_pieces(PARTS, WHOLE)
    ch18.check_weights(page_weights)
    said = capsys.readouterr().out
    assert said.count("✓") == 4
    with pytest.raises(AssertionError):
        ch18.check_pieces(PARTS[:2], WHOLE)
    for wrong in (
        lambda lengths, rows, by: page_weights(lengths, rows, not by),
        lambda lengths, rows, by: page_weights(lengths, 1, by),
        lambda lengths, rows, by: page_weights(lengths, rows, False),
    ):
        with pytest.raises(AssertionError):
            ch18.check_weights(wrong)


def test_pitfalls_are_proved(capsys):
    ch18.check_pitfalls(PARTS, WHOLE)
    assert capsys.readouterr().out.count("✓") == 3


# ---- half the bits -------------------------------------------------------------


def test_bits_of_numbers():
    assert ch18.bits_of(1.0, torch.float16) == ("0", "01111", "0" * 10)
    assert ch18.bits_of(-1.5, torch.bfloat16) == ("1", "01111111", "1000000")
    assert ch18.bits_of(0.1, torch.float32) == (
        *("0", "01111011"),
        "10011001100110011001101",
    )
    assert ch18.bits_of(1e9, torch.float16) == ("0", "1" * 5, "0" * 10)


def test_what_formats_keep_is_drawn():
    html = soup(ch18.number_picture(257.0, "257"))
    words = [text.text for text in html.select("svg text")]
    assert words[0:2] == ["float32", "257"] and words[5:7] == ["float16", "257"]
    assert words[10:12] == ["bfloat16", "≈ 256"]
    assert words[12:] == ["0", "10000111", "0000000"]
    fills = [one["fill"] for one in html.select("svg rect")]
    assert fills == [f"var(--at-{c})" for c in ("other", "minus", "this")] * 3
    assert "bfloat16 256" in html.svg["aria-label"]
    lost = soup(ch18.number_picture(1e-8)).text + soup(ch18.number_picture(1e9)).text
    assert "≈ 0" not in lost.replace("≈ 0.", "") and "≈ inf" not in lost


def test_ranges_are_drawn(drawn):
    ch18.ranges_figure({"a weight": 0.1})
    ((figure, said),) = drawn
    lines = [line.get_xdata() for line in figure.axes[0].lines]
    assert list(lines[0]) == pytest.approx([2**-126, 2.0**128], rel=0.01)
    assert list(lines[2]) == pytest.approx([2**-14, 65504])
    assert list(lines[3]) == pytest.approx([2**-24, 2**-14])
    assert lines[6][0] == 0.1
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["bfloat16", "float16", "float32"]
    assert "float16 from 6.0e-08 to 6.6e+04" in said["alt"]


def test_gradients_of_logits_are_those_of_the_loss():
    found = ch18.logit_gradients(50, 8, rows=4)
    draws = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 50, generator=draws).requires_grad_()
    right = torch.zeros(4, dtype=torch.int64)
    loss = nn.functional.cross_entropy(logits, right, reduction="sum") / 8
    loss.backward()
    torch.testing.assert_close(found.view(4, 50), logits.grad.abs())


def test_scaling_is_drawn(drawn):
    ch18.scaling_figure(torch.tensor([1e-9] * 9 + [5e-5]), scale=1e6)
    ((figure, said),) = drawn
    assert "loses 90.0%" in said["title"] and "scaled, 0%" in said["title"]
    low, high = (line.get_xdata()[0] for line in figure.axes[0].lines)
    assert (10**low, 10**high) == pytest.approx((2**-24, 65504))
    peaks = [
        text.xy[0] for text in figure.axes[0].texts[:1] + figure.axes[0].texts[1:2]
    ]
    assert peaks == pytest.approx([-9, -3], abs=0.1)


def test_what_float16_loses_is_told_by_its_norm(drawn):
    ch18.scaling_figure(torch.tensor([2e-8] * 9 + [8e-8]), scale=1e6)
    ((_, said),) = drawn
    assert "60.0% of the gradient's norm" in said["caption"]


def test_a_small_model_needs_no_scale(capsys, monkeypatch):
    ch18.check_float16(PARTS[1])
    assert capsys.readouterr().out.count("✓") == 1
    gaps = iter((0.03, 0.02))
    monkeypatch.setattr(ch18, "off", lambda found, wanted: next(gaps))
    with pytest.raises(AssertionError, match=r"off by 0\.030, scaled by 0\.020"):
        ch18.check_float16(PARTS[1])


def test_two_orders_are_drawn(drawn):
    ch18.orders_figure({"right": [4.0] * 10 + [1.0] * 10, "wrong": [4.0] * 20})
    ((figure, said),) = drawn
    ends = [line.get_ydata()[-1] for line in figure.axes[0].lines]
    assert ends == [1, 4] and figure.axes[0].lines[0].get_xdata()[-1] == 20
    assert "right: ends at 1.00; wrong: ends at 4.00" in said["alt"]


def test_scaling_and_rounding_are_proved(capsys):
    ch18.check_scaling(PARTS[1])
    ch18.check_rounding()
    assert capsys.readouterr().out.count("✓") == 4


# ---- the update that disappears ------------------------------------------------


def test_paths_of_a_weight(drawn):
    found = ch18.paths(1.0, 0.001, steps=200)
    assert [*found] == [
        *("float32", "bfloat16", "bfloat16 + master"),
        "bfloat16, at random",
    ]
    assert found["float32"][-1].item() == pytest.approx(0.8)
    assert (found["bfloat16"] == 1).all()
    near = found["bfloat16 + master"] - found["float32"]
    assert 0.001 < near.abs().max() < 0.002
    random = found["bfloat16, at random"]
    assert torch.equal(random, random.bfloat16().float())
    assert 0.7 < random[-1] < 0.9 and (random.diff() <= 0).all()
    fast = ch18.paths(1.0, 0.01, steps=5)["bfloat16"]
    assert fast[-1].item() == pytest.approx(0.95, abs=0.02)
    ch18.stuck_figure(found)
    ((figure, said),) = drawn
    drawn_ends = [line.get_ydata()[-1].item() for line in figure.axes[0].lines]
    assert drawn_ends == [path[-1].item() for path in found.values()]
    assert "bfloat16: 1.0000" in said["alt"] and "200 steps" in said["alt"]


ROWS = [
    {"way": way, "seed": seed, "bits": bits + seed, "rate": rate}
    for rate, extra in ((3e-3, 0), (3e-4, 1))
    for seed in (0, 1)
    for way, bits in (
        *(("float32", 2.0), ("autocast", 2.01), ("bfloat16", 2.25 + extra)),
        *(("nearest", 2.2 + extra), ("stochastic", 1.98), ("master", 2.0)),
    )
]


def test_halves_stand_in_a_table():
    record = {"rows": ROWS, "recipe": {"steps": 7}}
    html = ch18.halves_table(record)
    rows = cells(html)
    assert rows[0][1:] == ["rate 0.003", "rate 0.0003"]
    assert rows[3] == ["bfloat16 alone", "2.25 · 3.25", "3.25 · 4.25"]
    assert rows[4] == ["…, Adam's averages in float32", "2.20 · 3.20", "3.20 · 4.20"]
    assert rows[5][0] == "…, and rounded at random" and rows[5][1][:4] == "1.98"
    assert "7 steps" in html.text
    gaps = ch18.worse(record, "bfloat16", "float32", rate=3e-4)
    assert gaps == pytest.approx([1.25, 1.25])
    said = ch18.halves_said(record)
    assert (
        "ends 0.25 to 0.25 bits per character behind float32 at a rate of 0.003" in said
    )
    assert "1.25 to 1.25 at 0.0003" in said
    assert "still 1.20 to 1.20 behind at 0.0003" in said
    assert "within 0.02 bits" in said


def test_orders_stand_in_a_table():
    rows = [
        {"rule": rule, "unscaled first": first, "seed": s, "bits": bits + s}
        for rule, pair in (("SGD", (3, 6)), ("AdamW", (2, 2.25)))
        for first, bits in zip((True, False), pair, strict=True)
        for s in (0, 0.5)
    ]
    record = {"rows": rows, "rates": {"SGD": 1, "AdamW": 1}}
    record |= {"untrained": [7, 8], "recipe": {"steps": 5}}
    record["small epsilon"] = [{"bits": 1.9}, {"bits": 2.3}]
    html = ch18.clipping_table(record)
    assert cells(html)[1:] == [
        ["SGD", "3.000 · 3.500", "6.000 · 6.500"],
        ["AdamW", "2.000 · 2.500", "2.250 · 2.750"],
        ["AdamW, ε / 65,536", "", "1.900 · 2.300"],
    ]
    assert "untrained 7.5" in html.text
    said = ch18.clipping_said(record)
    assert "at 6.0 bits per" in said and "costs 0.25 to 0.25 bits" in said
    assert "even end 0.10 to 0.20 bits ahead" in said


def test_the_records_bear_out_what_the_page_blames():
    rows = ch18.grouped(RECORDS["clipping"]["rows"], "rule", "unscaled first")
    for good, bad, small in zip(
        *(rows["AdamW", first] for first in (True, False)),
        RECORDS["clipping"]["small epsilon"],
        strict=True,
    ):
        assert small["bits"] - good["bits"] < (bad["bits"] - good["bits"]) / 2
    alone, weights = (
        ch18.worse(RECORDS["halves"], way, "float32", rate=3e-4)
        for way in ("bfloat16", "nearest")
    )
    assert min(weights) > 0.8 * max(alone)


# ---- compute it twice, compile it ----------------------------------------------


def test_checkpoints_are_proved(capsys):
    ch18.check_checkpoints(PARTS[1])
    assert capsys.readouterr().out.count("✓") == 2
    models = ch18.stored_or_not(0.2)
    assert [m.config.dropout for m in models.values()] == [0.2] * 3
    kept = [m.blocks.layers[0] for m in models.values()]
    assert not hasattr(kept[0], "preserve")
    assert [one.preserve for one in kept[1:]] == [True, False]


def test_masks_are_drawn():
    html = soup(ch18.masks_picture(nn.Dropout(0.5), seed=1))
    words = html.text
    torch.manual_seed(1)
    x = torch.tensor([3.0, 1, 4, 1, 5, 9, 2, 6])
    forward, new = (nn.functional.dropout(x, 0.5) for _ in range(2))
    rows = [
        [float(cell.text) for cell in table.select(".annotated-cell")]
        for table in html.select(".annotated-matrix")
    ]
    assert rows == [forward.tolist(), forward.tolist(), new.tolist()]
    assert len(html.select(".wrong")) == (forward != new).sum()
    assert "without it" in words


def test_masks_and_bits_stand_in_a_table():
    rows = [
        {"way": way, "seed": s, "bits": bits + s}
        for way, bits in (("stored", 3), ("checkpointed", 3), ("drawn again", 3.5))
        for s in (0, 1)
    ]
    record = {"rows": rows, "recipe": {"steps": 9}, "same": [True, False]}
    said = ch18.again_said(record)
    assert "cost 0.50 to 0.50 bits" in said and "(2 seeds, 9 steps)" in said
    assert "1 of 2 runs" in said
    html = ch18.again_table(record)
    assert cells(html)[1:] == [
        ["stored", "3.000 · 4.000"],
        ["checkpointed", "3.000 · 4.000"],
        ["checkpointed, new masks on the way back", "3.500 · 4.500"],
    ]


def test_compiling_stands_in_tables():
    one = {"plain to float64": 1e-7, "compiled to float64": 2e-7}
    one |= {"numbers that differ": 0.75}
    record = {"logits": one, "gradient": one, "first seconds": 121.0}
    record["seconds"] = {"plain": [0.02, 0.02, 0.9], "compiled": [0.01, 0.01, 0.5]}
    assert cells(ch18.compile_table(record))[1:] == [
        ["logits: off from float64", "1.0e-07", "2.0e-07"],
        ["gradient: off from float64", "1.0e-07", "2.0e-07"],
        ["a step, in milliseconds", "20", "10"],
        ["the first step, in minutes", "", "2"],
    ]
    said = ch18.compile_said(record)
    assert "75% of the gradient's" in said and "It takes 50% of the time here" in said
    record["seconds"]["compiled"] = [0.03] * 3
    assert "It takes 1.5 times as long" in ch18.compile_said(record)


def test_records_say_what_the_page_says():
    assert all(RECORDS["drawn_again"]["same"])
    for way, most in (("autocast", 0.1), ("stochastic", 0.1), ("master", 0.1)):
        for rate in (3e-3, 3e-4):
            gaps = ch18.worse(RECORDS["halves"], way, "float32", rate=rate)
            assert max(map(abs, gaps)) < most
    graphs = RECORDS["compile"]["graphs"]
    assert graphs["default"][-1] == 2 and graphs["dynamic=False"][-1] == 6
