"""ch18/pair.py: what two processes find out, run once, for real."""

import pytest
import torch
from torch import nn

from annotated.chapters.ch18 import pair
from annotated.page import notebook


@pytest.fixture(scope="module")
def found():
    return pair.two_processes()


@pytest.mark.slow
def test_means_and_tokens(found):
    assert found["mean of means"] == pytest.approx(-8, rel=1e-5)
    assert found["by tokens"] == pytest.approx(-11.2, rel=1e-5)
    assert found["parameters after"] == pytest.approx(0.112, rel=1e-5)


@pytest.mark.slow
def test_bytes_of_two_batches(found):
    assert found["parameters"] == 64 * 256 + 256 + 256 * 64 + 64
    assert found["the last alone"] == 4 * found["parameters"]
    assert found["every batch"] == 8 * found["parameters"]
    assert 0 <= found["gap"] < 1e-5


@pytest.mark.slow
def test_the_longer_one_joins_or_waits(found):
    assert found["joined"]["divided by all"] == [-4, -4, -2]
    assert found["joined"]["by those left"] == [-4, -4, -4]
    assert "Timed out waiting 2000ms" in found["waits"]


@pytest.mark.slow
def test_copies_drift_apart_behind_a_reentrant_checkpoint(found):
    one, other = found["checkpointed"]["reentrant"]
    assert one != pytest.approx(other, rel=0.1)
    one, other = found["checkpointed"]["not reentrant"]
    assert one == other


@pytest.mark.slow
def test_weights_that_a_step_does_not_use(found):
    assert all(name.startswith("module.") for name in found["unused"]["names"])
    assert found["unused"]["by default"] == 2  # the step after
    assert found["unused"]["find_unused_parameters"] is None


def test_without_processes_the_record_speaks(monkeypatch, capsys):
    def refused(*_):
        raise RuntimeError("no network")

    monkeypatch.setattr(pair, "launch", refused)
    monkeypatch.setattr(notebook, "recorded", lambda name: {"pair": {"of": name}})
    assert pair.two_processes() == {"of": "processes"}
    assert "can't be started here" in capsys.readouterr().out


@pytest.mark.slow
def test_the_script_ends_alike_in_one_process_and_in_two(capfd):
    one, two = pair.script(1), pair.script(2)
    (alone,), (first, second) = one["weights"], two["weights"]
    assert first == second == pytest.approx(alone, abs=1e-5)
    assert len(alone) == 4 * 8 + 8 + 8 + 1
    for said in (one["prints"], two["prints"]):
        assert [line[:7] for line in said.splitlines()] == [
            f"epoch {epoch}" for epoch in range(3)
        ], "rank 0 alone prints"
    assert one["prints"] != two["prints"], "rank 0 has other rows"
    assert "epoch" not in capfd.readouterr().out, "the page prints it, in its place"


def test_without_processes_the_record_speaks_of_the_script(monkeypatch, capsys):
    def refused(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr(pair, "launch", refused)
    monkeypatch.setattr(
        notebook, "recorded", lambda _: {"script": {"1": "one", "2": "two"}}
    )
    assert (pair.script(1), pair.script(2)) == ("one", "two")
    assert "can't be started here" in capsys.readouterr().out


def test_a_weight_and_its_slope():
    model = pair.small_model()
    pair.losses(model, torch.tensor([3.0])).sum().backward()
    assert isinstance(model, nn.Linear) and model.weight.grad.item() == -12
    assert len(pair.share_of(0)) == 4 and len(pair.share_of(1)) == 36
    assert set(pair.share_of(1).tolist()) == {3.0}
