"""ch16/drawings_c.py: drafts, readings step by step, and what is said of them."""

import json
from pathlib import Path

import pytest
import torch
from bs4 import BeautifulSoup
from matplotlib import pyplot
from torch import nn

from annotated.chapters.ch16 import drawings_c as ch16c
from annotated.data.glassllm import encode
from annotated.speculative import (
    expected_speedup,
    expected_tokens,
    speculative_sample,
)

ROOT = Path(__file__).resolve().parents[3]
RECORD = json.loads((ROOT / "book" / "results" / "drafts.json").read_text())
P = torch.tensor([0.1, 0.2, 0.3, 0.4])
Q = torch.tensor([0.4, 0.3, 0.2, 0.1])
V = 4


def table(chances):
    return nn.Embedding.from_pretrained(chances.log())


def soup(html):
    return BeautifulSoup(html.text, "html.parser")


def cells(html):
    return [
        [cell.text for cell in row.select("th, td")] for row in soup(html).select("tr")
    ]


def test_without_the_file_the_page_says_so():
    for html in (ch16c.missing(), ch16c.steps_explorer(None, {}, {})):
        assert "was recorded, in book/results/drafts.json" in html.text


# ---- pictures and tables -------------------------------------------------------


def test_the_first_picture_is_of_recorded_readings():
    drawn = soup(ch16c.hero(RECORD))
    words = [text.text for text in drawn.select("svg text")]
    first, second = RECORD["example"][2:4]
    assert first["kept"] == 4 and second["kept"] == 1
    for one in (first, second):
        for token, *_ in one["guesses"]:
            assert ch16c.spaced(token) in words
        assert ch16c.spaced(one["more"]) in words
    assert (words.count("✓"), words.count("✗")) == (5, 1)
    assert (words.count("free"), words.count("instead")) == (1, 1)
    frames = drawn.select("svg rect")
    assert sum(one.get("stroke-dasharray") == "4 4" for one in frames) == 2
    fills = [one["fill"] for one in frames]
    counts = [fills.count(f"var(--at-{name})") for name in ("right", "wrong", "this")]
    assert counts == [10, 1, 2]
    assert "all 4 guesses are kept" in drawn.svg["aria-label"]
    assert "1 of 4 is kept" in drawn.svg["aria-label"]


def test_five_rows_of_four_guesses():
    drawn = soup(ch16c.rows_picture())
    words = [text.text for text in drawn.select("svg text")][2:]
    read, given = words[::2], words[1::2]
    assert read == ["last written token", *(f"guess {i}" for i in (1, 2, 3, 4))]
    assert given == [*read[1:], "the free token"]
    fills = [one["fill"] for one in drawn.select("svg rect")]
    assert fills.count("var(--at-right)") == 4 and fills.count("var(--at-this)") == 1
    assert "t + 1 = 5 rows" in drawn.text


def test_spaces_are_seen():
    assert ch16c.spaced(" a\n") == "␣a⏎"


def test_bars_of_draft_and_model(monkeypatch):
    figures = []
    monkeypatch.setattr(ch16c, "show", lambda figure, **said: figures.append(figure))
    ch16c.bars(Q, P, ["a", "b", "c", "d"])
    left, right = (
        [bar.get_height() for bar in ax.patches] for ax in figures[0].axes[:2]
    )
    assert left == pytest.approx([0.1, 0.2, 0.2, 0.1, 0.3, 0.1, 0, 0])
    assert right == pytest.approx([0.1, 0.2, 0.2, 0.1, 0, 0, 0.1, 0.3])
    bottoms = [bar.get_y() for bar in figures[0].axes[0].patches[4:]]
    assert bottoms == pytest.approx([0.1, 0.2, 0.2, 0.1])
    pyplot.close("all")


def test_chi2_of_counts():
    counts = torch.tensor([10.0, 20, 30, 40])
    assert ch16c.chi2(counts, P) == pytest.approx(0, abs=1e-5)
    assert ch16c.chi2(counts.flip(0), P) == pytest.approx(90 + 5 + 100 / 30 + 22.5)


def test_shares_stand_beside_what_they_should_be():
    ways = {"right": torch.tensor([0, 1, 1, 2, 2, 2, 3, 3, 3, 3]).repeat(10)}
    ways["wrong"] = torch.zeros(100, dtype=torch.int64)
    html = ch16c.shares_table(ways, P, list("abcd"))
    assert cells(html)[1:] == [
        ["the model, p", "10.0%", "20.0%", "30.0%", "40.0%", ""],
        ["right", "10.0%", "20.0%", "30.0%", "40.0%", "0.0"],
        ["wrong", "100.0%", "0.0%", "0.0%", "0.0%", "900.0"],
    ]
    assert "Shares of 100 tokens" in html.text and "16.27" in html.text


def test_drafts_stand_in_a_table():
    shares = {name: one["acceptance"] for name, one in RECORD["drafts"].items()}
    rows = cells(ch16c.drafts_table(shares, RECORD))[1:]
    assert [row[0] for row in rows] == [*ch16c.NAMES.values()]
    for row, one in zip(rows, RECORD["drafts"].values(), strict=True):
        wanted = [f"{one[key]:.1%}" for key in ("acceptance", "greedy", "cost")]
        if row[0] == ch16c.NAMES["any token"]:  # which has no likeliest token
            wanted[1] = ""
        assert row[1:] == wanted
    other = cells(ch16c.drafts_table({"1 layer": 0.25}, RECORD))
    assert other[1][:2] == ["the first layer", "25.0%"]


def test_tokens_are_drawn_beside_the_equation(monkeypatch):
    figures, said = [], []

    def keep(figure, **words):
        figures.append(figure)
        said.append(words["alt"])

    monkeypatch.setattr(ch16c, "show", keep)
    ch16c.tokens_figure(RECORD)
    lines = {line.get_label(): line for line in figures[0].axes[0].lines}
    for name in ch16c.SHOWN:
        rows = RECORD["drafts"][name]["written"]
        assert lines[name].get_xdata().tolist() == [0, *ch16c.GUESSES]
        wanted = [1, *(row["tokens"] for row in rows)]
        assert lines[name].get_ydata().tolist() == pytest.approx(wanted)
        formula = expected_tokens(RECORD["drafts"][name]["acceptance"], 8)
        assert f"{name} {rows[-1]['tokens']:.2f} ({formula:.2f})" in said[0]
    dashed = [line for line in figures[0].axes[0].lines if line.get_linestyle() == "--"]
    assert len(dashed) == len(ch16c.SHOWN)
    one = RECORD["drafts"][ch16c.SHOWN[0]]["acceptance"]
    assert dashed[0].get_ydata()[1] == pytest.approx(1 + one)
    pyplot.close("all")


def test_the_best_number_of_guesses_is_found():
    one = {"acceptance": 0.6, "cost": 0.2, "written": []}
    assert ch16c.best_theory(one) == (expected_speedup(0.6, 2, 0.2), 2)
    assert ch16c.best_theory(one | {"cost": 0.0})[1] == 8
    rows = [{"guesses": t, "seconds": s} for t, s in ((1, 4.0), (2, 2.0), (3, 8.0))]
    assert ch16c.measured({"written": rows}, 3.0) == (0.375, 1.5)


def test_speed_is_that_of_the_model_alone_over_the_drafts():
    assert ch16c.seconds_alone({"seconds alone": [3.0, 1.0, 2.0]}) == 2
    rows = cells(ch16c.speed_table(RECORD))[1:]
    alone = ch16c.seconds_alone(RECORD)
    for row, one in zip(rows, RECORD["drafts"].values(), strict=True):
        theory, t = ch16c.best_theory(one)
        low, high = ch16c.measured(one, alone)
        assert row[1:] == [
            f"{one['acceptance']:.2f}",
            f"{one['cost']:.3f}",
            f"{theory:.2f} (t\u00a0=\u00a0{t})",
            f"{low:.1f} to {high:.1f}",
        ]
    assert [row[3][:4] for row in rows[3:6]] == ["2.05", "1.06", "1.00"]
    assert rows[3][4] == "0.8 to 1.2"


def test_surprise_stands_in_a_table():
    assert cells(ch16c.nats_table(RECORD))[1:] == [
        ["by the model alone", "3.35 ± 0.02"],
        ["with a draft", "3.34 ± 0.02"],
        ["with a draft, and every guess is kept", "5.31 ± 0.02"],
        ["with a draft, and after a refusal drawn from p", "3.61 ± 0.02"],
    ]


def test_what_is_said_is_what_was_recorded():
    said = ch16c.drafts_said(RECORD)
    assert "28% of its guesses are kept with 32 texts, 39% with 256" in said
    assert "46% with 1,024. Averaging gets 42%, 52% and 54%" in said
    assert "1,024 × 1,024 = 1,048,576 entries" in said and "(852,608)" in said
    assert "2.5 billion" in said
    assert "kept 15% of the time" in said and "name it 37% of the time" in said
    off = ch16c.off(RECORD)
    assert off["the model itself"] == 0 and round(off["3 layers"], 3) == -0.033
    assert "never more than 3.4% away" in ch16c.tokens_said(RECORD)
    assert max(map(abs, off.values())) <= 0.034
    said = ch16c.speed_said(RECORD)
    assert "promise 0.99" in said and "promise 2.05" in said
    assert "nine take 1.4 times" in said and "from 4.2 to 5.3 s in 9 timings" in said
    assert "pairs and 1 to 4 guesses, it took 3.8 to 4.1 s" in said
    assert "1.1 to 1.2 times as fast" in said
    assert "it took 5.8 s or more, always longer" in said
    alone, drafts = RECORD["seconds alone"], RECORD["drafts"]
    for name in ("1 layer", "2 layers", "3 layers"):
        assert min(row["seconds"] for row in drafts[name]["written"]) > max(alone)


# ---- the explorer --------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(model, drafts):
    shares = {name: 0.1 * i for i, name in enumerate(drafts)}
    return soup(ch16c.steps_explorer(model, drafts, shares))


@pytest.mark.slow
def test_the_explorer_is_checked_against_the_module(shown, model, drafts):
    checks = json.loads(shown.select_one(".annotated-explorer-checks").text)
    data = json.loads(shown.select_one(".annotated-explorer-data").text)
    assert len(shown.select_one(".annotated-explorer-data").text) < 250_000
    assert [*data["runs"]] == [option.text for option in shown.select("option")]
    prompt = torch.tensor([encode(data["prompt"])])
    for check in checks:
        label, t = check["state"]["draft"], check["state"]["guesses"]
        (name,) = (n for n, label_ in ch16c.OFFERED.items() if label_ == label)
        found = speculative_sample(
            model,
            drafts[name],
            prompt,
            max_new_tokens=ch16c.LONG,
            guesses=t,
            generator=torch.Generator().manual_seed(0),
        )
        number = check["state"]["reading"]
        tokens = sum(found.kept[:number]) + number
        a = 0.1 * [*drafts].index(name)
        assert data["kept"][label] == pytest.approx(a)
        assert check["values"] == {
            "tokens": tokens,
            "kept": found.kept[number - 1],
            "mean": pytest.approx(tokens / number),
            "formula": pytest.approx(expected_tokens(a, t)),
        }
    assert len(checks) >= 25


@pytest.mark.slow
def test_every_run_writes_as_many_tokens(shown):
    data = json.loads(shown.select_one(".annotated-explorer-data").text)
    most = 0
    for runs in data["runs"].values():
        assert [*runs] == [str(t) for t in ch16c.AT_ONCE]
        for t, run in runs.items():
            assert sum(one["kept"] + 1 for one in run) == ch16c.LONG
            assert max(len(one["guesses"]) for one in run) == int(t)
            most = max(most, len(run))
    slider = shown.select_one("[data-name=reading]")
    first = data["runs"]["pairs, averaged"]["4"][int(slider["value"])]
    assert 0 < first["kept"] < len(first["guesses"])  # it begins with a refusal
    answer = shown.select_one("details p").text
    low, high = (expected_tokens(0.1 * i, 4) for i in (0, 6))
    assert f"gives {low:.1f} with" in answer and f"{high:.1f} with the first" in answer
    assert json.loads(slider["data-values"]) == [*range(1, most + 1)]
