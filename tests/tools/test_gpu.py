"""`make gpu`, tried without a GPU: what it keeps, and how it goes on."""

import json
import math
import subprocess
import sys
import time

import pytest
import torch

from tools import gpu

DRY = gpu.Card(dry=True)


@pytest.fixture
def counted(monkeypatch):
    """Three pieces of work that say how often they ran."""
    calls = []

    def work(i):
        calls.append(i)
        if i == 1:
            raise torch.OutOfMemoryError
        return {"unfinished": True} if i == 2 and len(calls) < 4 else {"value": i}

    def pieces(card):
        for i in range(3):
            yield {"i": i}, lambda i=i: work(i)

    monkeypatch.setitem(gpu.MEASUREMENTS, "counted", pieces)
    return calls


def rows(folder):
    return json.loads((folder / "counted.json").read_text())["rows"]


def test_it_goes_on_where_it_stopped(counted, tmp_path):
    assert not gpu.measure("counted", tmp_path, DRY, time.monotonic(), False)
    assert not (tmp_path / "counted.json").exists()  # no time was left
    assert not gpu.measure("counted", tmp_path, DRY, math.inf, False)
    assert counted == [0, 1, 2]
    assert rows(tmp_path)[1] == {"about": ["i"], "i": 1, "failed": "CUDA out of memory"}
    assert gpu.measure("counted", tmp_path, DRY, math.inf, False)
    assert counted == [0, 1, 2, 2] and [row["i"] for row in rows(tmp_path)] == [0, 1, 2]
    assert gpu.measure("counted", tmp_path, DRY, math.inf, True)  # from its beginning
    assert counted[4:] == [0, 1, 2]


def test_another_card_begins_anew(counted, tmp_path, monkeypatch):
    gpu.measure("counted", tmp_path, DRY, math.inf, False)
    made = gpu.provenance(DRY) | {"card": "another"}
    monkeypatch.setattr(gpu, "provenance", lambda card: made)
    gpu.measure("counted", tmp_path, DRY, math.inf, False)
    assert counted == [0, 1, 2, 0, 1, 2]


def test_each_way_computes_causal_attention():
    q, k, v = torch.randn(3, 1, 2, 300, gpu.HEAD, dtype=torch.float64)
    whole = torch.ones(300, 300, dtype=torch.bool).tril()
    window = whole.triu(1 - gpu.WINDOW)
    for mask, ways in (
        (whole, (gpu.written_out, gpu.masked)),
        (window, (gpu.our_blocks(DRY, 300),)),
    ):
        right = gpu.F.scaled_dot_product_attention(q, k, v, mask)
        for way in ways:
            torch.testing.assert_close(way(q, k, v), right)


def test_recipes_that_differ_are_named(monkeypatch):
    (_, work), *_ = gpu.recipes(DRY)
    assert work()["agree"]
    there = gpu.to_device
    changed = iter((0, 1))  # the second batch is another one

    def moved(batch, device):
        batch = there(batch, device)
        return tuple(x.flip(1) if next(changed, 0) else x for x in batch)

    monkeypatch.setattr(gpu, "to_device", moved)
    (_, work), *_ = gpu.recipes(DRY)
    assert not work()["agree"]


@pytest.mark.slow
def test_everything_runs_dry():  # apart: compiling doesn't go with checked shapes
    words = [sys.executable, "-m", "tools.gpu", "--dry", *gpu.MEASUREMENTS]
    done = subprocess.run(words, cwd=gpu.ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith("complete\n"), done.stderr
    for name in gpu.MEASUREMENTS:
        record = json.loads((gpu.DRY / f"{name}.json").read_text())
        assert len(record["rows"]) == record["of"]
        allowed = {"fused, efficient", "fused, cudnn", "flex, window"}  # not on a CPU
        failed = [row for row in record["rows"] if "failed" in row]
        assert {row.get("way") for row in failed} <= allowed


def test_without_a_gpu_it_says_so(capsys):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert gpu.main([]) == 1 and "No CUDA GPU here" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        gpu.main(["speed"])
