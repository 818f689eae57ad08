"""ch18/drawings_b.py: a ring, who holds what, and what is said of the record."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from annotated.chapters.ch18 import drawings_b as ch18b
from annotated.checkpoints import save_checkpoint
from tests.shown import soup

ROOT = Path(__file__).resolve().parents[3]
TIMES = [
    {"batch": size, "one, wall": one, "two, wall": two}
    for size, one, two in (
        (8, [0.01, 0.008, 0.012], [0.012, 0.014, 0.01]),
        (512, [0.2, 0.2, 0.6], [0.12, 0.4, 0.1]),
    )
]
RECORD = {"times": TIMES}


# ---- pictures ------------------------------------------------------------------


def test_a_bucket_goes_when_its_layer_is_through_and_the_wire_is_free():
    assert ch18b.sends(3, 10, 4, wait=False) == [10, 20, 30]
    assert ch18b.sends(3, 10, 15, wait=False) == [10, 25, 40]
    assert ch18b.sends(3, 10, 4, wait=True) == [30, 34, 38]


def test_only_the_last_bucket_is_waited_for():
    """Lanes from above: compute and wire of one that waits, and of the other."""
    drawn = soup(ch18b.buckets())
    lanes = {}
    for one in drawn.select("svg rect"):
        places = [float(one.get(name)) for name in ("x", "y", "width")]
        lanes.setdefault(places[1], []).append((places[0], places[0] + places[2]))
    waiting, late, eager, early = (lanes[y] for y in sorted(lanes))
    assert [*map(len, (waiting, late, eager, early))] == [5, 4, 5, 4]
    for compute, wire in ((waiting, late), (eager, early)):
        for before, after in (*pairwise(compute[:4]), *pairwise(wire)):
            assert before[1] <= after[0], "one thing at a time in a lane"
        assert compute[4][0] == wire[-1][1], "the update waits for the last bucket"
    assert late[0][0] == waiting[3][1], "all are sent after the backward pass"
    for layer, bucket in zip(eager, early, strict=False):
        assert bucket[0] == layer[1], "each is sent when its layer is through"
    saved = waiting[4][1] - eager[4][1]
    size = early[0][1] - early[0][0]
    assert saved == 3 * size


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


def gigabytes(n):
    return {mode: 7 * sum(parts.values()) for mode, parts in ch18b.held(n).items()}


def test_who_holds_what_is_checked_in_every_stage():
    html = ch18b.holds_explorer()
    checks = json.loads(soup(html).select_one(".annotated-explorer-checks").text)
    made = {
        (one["state"]["stage"], one["state"]["processes"]): one["values"]
        for one in checks
    }
    assert {*made} == {(mode, n) for mode in ch18b.MODES for n in (1, 4, 5, 64)}
    parts = ["weights", "gradients", "Adam's averages"]
    found = {mode: [made[mode, 4][part] for part in parts] for mode in ch18b.MODES}
    assert found["DDP"] == [28, 28, 56] and found["ZeRO-1"] == [28, 28, 14]
    assert found["ZeRO-2"] == [28, 7, 14] and found["ZeRO-3, FSDP"] == [7, 7, 14]
    assert [made[mode, 4]["total"] for mode in found] == [112, 70, 49, 28]
    assert [made[mode, 64]["least"] for mode in found] == [112, 56, 28, 0]


def test_its_question_has_an_answer():
    """With four all three stages stay below 80, with two not; 24 takes the third."""
    drawn = soup(ch18b.holds_explorer())
    question = drawn.select_one(".annotated-question").text
    assert "below 80\u00a0GB" in question and "24\u00a0GB" in question
    _, *stages = gigabytes(4).values()
    assert max(stages) < 80
    _, *stages = gigabytes(2).values()
    assert [size < 80 for size in stages] == [False, True, True]
    enough = {
        n: [m for m, size in gigabytes(n).items() if size < 24] for n in (4, 5, 64)
    }
    assert enough == {4: [], 5: ["ZeRO-3, FSDP"], 64: ["ZeRO-3, FSDP"]}
    answer = drawn.select_one("details").text.replace("\u00a0", " ")
    assert (
        "With two, stage 1 needs 84 GB, so only stages 2 and 3 stay below 80" in answer
    )
    assert "for 24 GB, you need stage 3" in answer and "alone take 28 GB" in answer
    assert "With 5 processes, each holds 22.4 GB; with 4, it would be 28." in answer


# ---- what is said --------------------------------------------------------------


def test_how_many_times_as_fast():
    assert ch18b.gains(RECORD) == pytest.approx({8: 0.8, 512: 2})
