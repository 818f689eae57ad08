"""annotated/page/ch18b.py: a ring, who holds what, and what is said of the record."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from bs4 import BeautifulSoup
from matplotlib import pyplot

from annotated.checkpoints import save_checkpoint
from annotated.page import ch18b

ROOT = Path(__file__).resolve().parents[2]
TIMES = [
    {"batch": size, "one, wall": one, "two, wall": two}
    for size, one, two in (
        (8, [0.01, 0.008, 0.012], [0.012, 0.014, 0.01]),
        (512, [0.2, 0.2, 0.6], [0.12, 0.4, 0.1]),
    )
]
RECORD = {"times": TIMES}


def soup(html):
    return BeautifulSoup(html.text, "html.parser")


def cells(html):
    return [
        [cell.text for cell in row.select("th, td")] for row in soup(html).select("tr")
    ]


# ---- pictures ------------------------------------------------------------------


def test_two_halves_of_one_batch_and_one_exchange():
    drawn = soup(ch18b.hero())
    words = [text.text for text in drawn.select("svg text")]
    for name in ("the whole model", "its own gradient", "the same step"):
        assert words.count(name) == 2
    assert words.count("all-reduce: both get the mean gradient") == 1
    shades = [one.get("fill-opacity") for one in drawn.select("svg rect")]
    assert shades.count("0.12") == shades.count("0.35") == 2, "rows and their process"


def test_gains_are_drawn_by_batch(monkeypatch):
    figures, said = [], []

    def keep(figure, **words):
        figures.append(figure)
        said.append(words["alt"])

    monkeypatch.setattr(ch18b, "show", keep)
    ch18b.speed_figure(RECORD)
    line = figures[0].axes[0].lines[0]
    assert line.get_xdata().tolist() == [8, 512]
    assert line.get_ydata().tolist() == pytest.approx([0.8, 2])
    assert "0.8 with 8, 2.0 with 512" in said[0]
    pyplot.close("all")


# ---- tables --------------------------------------------------------------------


def test_losses_differ_relative_to_the_first():
    assert ch18b.gaps([2.0, -4.0], [2.0, -3.0]) == 0.25
    assert ch18b.gaps([2.0, 2.0], [2.0, 3.0]) == 0.5


def test_bytes_of_a_ring():
    assert ch18b.bytes_exchanged(10, 1) == 0
    assert ch18b.bytes_exchanged(10, 2) == 40
    assert ch18b.bytes_exchanged(10, 4) == 60


def test_what_each_process_holds():
    found = {mode: sum(parts.values()) for mode, parts in ch18b.held(4).items()}
    assert found == {"DDP": 16, "ZeRO-1": 10, "ZeRO-2": 7, "ZeRO-3, FSDP": 4}
    rows = cells(ch18b.held_table(2_000_000_000, (1, 4)))
    assert rows[0] == ["", "divided", "n = 1", "n = 4"]
    assert rows[1] == ["DDP", "nothing", "32.0", "32.0"]
    assert rows[2] == ["ZeRO-1", "Adam's averages", "32.0", "20.0"]
    assert [row[3] for row in rows[3:]] == ["14.0", "8.0"]


def test_rows_by_epoch():
    html = ch18b.order_table({"0": [[1, 2], [3, 4]], "1": [[5, 6], [7, 8]]})
    assert cells(html) == [
        ["process and loop", "epoch 0", "epoch 1"],
        ["0", "1, 2", "3, 4"],
        ["1", "5, 6", "7, 8"],
    ]


# ---- damage --------------------------------------------------------------------


def test_flipped_bits_are_noticed_by_the_checksum(tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Linear(50, 50)
    save_checkpoint(tmp_path / "c.pt", model, torch.optim.SGD(model.parameters()))
    before = (tmp_path / "c.pt").read_bytes()
    by_torch, by_us, unnoticed = ch18b.flips(tmp_path / "c.pt", model, 40)
    assert 0 <= by_torch < by_us <= 40 and unnoticed == 0
    assert (tmp_path / "c.pt").read_bytes() == before
    assert [*tmp_path.iterdir()] == [tmp_path / "c.pt"]


def test_what_nobody_noticed_is_counted(tmp_path, monkeypatch):
    model = torch.nn.Linear(50, 50)
    save_checkpoint(tmp_path / "c.pt", model, torch.optim.SGD(model.parameters()))

    def careless(path, model):
        with torch.no_grad():
            model.weight.add_(1)

    monkeypatch.setattr(ch18b, "load_checkpoint", careless)
    _, by_us, unnoticed = ch18b.flips(tmp_path / "c.pt", model, 5)
    assert by_us == 0 and unnoticed == 5


# ---- the ring ------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_ring_adds_up_everything(n):
    numbers = [[7**p * (i + 1) for i in range(n)] for p in range(n)]
    total = [sum(column) for column in zip(*numbers, strict=True)]
    seen = ch18b.ring(numbers)
    assert len(seen) == 2 * (n - 1) + 1
    assert seen[0] == numbers and seen[-1] == [total] * n
    half = [
        number == wanted
        for row in seen[n - 1]
        for number, wanted in zip(row, total, strict=True)
    ]
    assert sum(half) == n, "each process has one whole sum after adding up"
    for before, after in pairwise(seen):
        changed = [a != b for a, b in zip(before, after, strict=True)]
        assert all(changed), "everyone gets something in every step"
        for one, other in zip(before, after, strict=True):
            assert sum(a != b for a, b in zip(one, other, strict=True)) == 1


def test_the_explorer_is_checked_where_it_matters():
    html = ch18b.ring_explorer()
    drawn = soup(html).select_one(".annotated-explorer")
    (checks,) = re.findall(r'(\[\{"state":.*?\}\}\])', html.text)
    made = {
        (one["state"]["processes"], one["state"]["step"]): one["values"]
        for one in json.loads(checks)
    }
    assert {n for n, _ in made} == {"2", "3", "4", "5"}
    assert made["4", 0]["complete"] == 0 and made["4", 0]["sent"] == 0
    assert made["4", 3]["complete"] == 4
    assert made["4", 6]["complete"] == 16 and made["4", 6]["sent"] == 1.5
    assert drawn is not None


# ---- what is said --------------------------------------------------------------


def test_how_many_times_as_fast():
    assert ch18b.gains(RECORD) == pytest.approx({8: 0.8, 512: 2})


def test_words_on_the_times():
    said = ch18b.speed_said(RECORD)
    assert "512 sequences" in said and "200.0 ms" in said and "100.0 ms" in said
    assert "two finish 2.0 times as fast" in said
    assert "With 8, it's 8.0 ms and 10.0 ms: two take 1.2 times as long" in said
    even = TIMES[1] | {"two, wall": [0.196]}
    assert "two take about as long" in ch18b.speed_said({"times": [TIMES[0], even]})
