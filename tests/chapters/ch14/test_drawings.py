"""Chapter 14's checks name what a reader broke; what it computes is what is there."""

import pytest
import torch
from torch import nn

from annotated.chapters.ch14 import drawings as ch14
from annotated.page.notebook import recorded

START = torch.tensor([[1, -6, 1, 3], [4, 2, 0, 6.0]])
NAMES = ("reversible_cost", "one_stream", "reversible_length", "deep_and_long")


@pytest.fixture(scope="module")
def records():
    return {name: recorded(name) for name in NAMES}


def test_peaks_of_checkpointed_layers_are_those_of_one_stream(records):
    peaks = ch14.peaks_by_length(records)
    single = records["one_stream"]["peaks"]
    for run in (run for run in single if run["way"] == "checkpointed"):
        assert peaks[run["length"]]["checkpointed"][run["depth"]] == run["MB"]
    two_streams = records["reversible_cost"]["memory"]["peaks"]
    stored = {
        run["depth"]: run["MB"]
        for run in two_streams
        if (run["attention"], run["way"]) == ("full attention", "stored")
    }
    assert peaks[2048]["stored"].items() >= stored.items() and stored
    for way, MB in records["deep_and_long"]["MB"].items():
        assert peaks[8192][way][16] == MB
    assert set(peaks[2048]["stored"]) == {1, 2, 4, 8, 16}


def test_what_is_saved_counts_once_and_without_weights():
    linear, x = nn.Linear(50, 50), torch.randn(2000, 50, requires_grad=True)
    assert ch14.megabytes_saved(linear, linear, x) == 0.4  # x; not the weights
    twice = ch14.megabytes_saved(linear, lambda x: linear(x) * x.T.T, x)
    assert twice == pytest.approx(0.8)  # x, once, and what the map gives


def test_estimates_give_the_peaks_that_they_were_scaled_from(records):
    peaks = ch14.peaks_by_length(records)
    found = ch14.gigabytes(ch14.scaled(peaks), 6, 8192, 256)
    weights = 6 * 12 * 256**2 * 16 / 1e9
    for way in ("stored", "checkpointed"):
        measured = peaks[8192][way][6] / 1000
        assert found[way] - weights == pytest.approx(measured)


def test_a_layer_takes_the_slope(records):
    table = {way: {2: 10.0, 6: 18.0, 8: 1.0, 16: 17.0} for way in ch14.WAYS}
    found = ch14.for_one_layer({2048: table, 8192: table})
    assert set(found[2048].values()) == set(found[8192].values()) == {2.0}


def undo(y1, y2, ahead=1):
    x2 = y2 - y1.relu()
    return y1 - torch.cat([torch.zeros(ahead), x2[:-ahead]]), x2


def test_an_undo_that_goes_wrong_is_named(capsys):
    y1 = START[0] + ch14.one_back(START[1])
    after = y1, START[1] + y1.relu()
    ch14.check_undo(undo, tuple(START), after)
    assert capsys.readouterr().out.count("✓") == 2
    with pytest.raises(AssertionError, match="undo: x1 should be"):
        ch14.check_undo(lambda *y: undo(*y, ahead=2), tuple(START), after)


def test_the_toy_stack_is_undone_unless_dropout_draws_again():
    for dropout in ("none", "replayed"):
        states, rebuilt, slopes = ch14.toy_stack(START, dropout, "reversible")
        for state, back in zip(states, rebuilt, strict=True):
            assert state.equal(back)
        assert slopes == ch14.toy_stack(START, dropout, "stored")[2]
    states, rebuilt, _ = ch14.toy_stack(START, "drawn again", "reversible")
    assert int((states[0] != rebuilt[0]).sum()) == 5
    assert rebuilt[0][0, 3] == 31


def test_gradients_of_the_toy_stack_are_those_of_its_formula():
    weights = torch.tensor(ch14.WEIGHTS, dtype=torch.float, requires_grad=True)
    x1, x2 = START
    for a, w in weights:
        x1 = x1 + a * ch14.one_back(x2)
        x2 = x2 + w * x1.relu()
    (x1 + x2).sum().backward()
    assert weights.grad.int().tolist() == ch14.toy_stack(START, "none", "stored")[2]


def forgetful(detached):
    class Forgetful(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x1, x2, blocks):
            ctx.blocks, ctx.given = blocks, (x1.detach(), x2.detach())
            for f, g in blocks:
                x1 = x1 + f(x2)
                x2 = x2 + g(x1)
            return x1, x2

        @staticmethod
        def backward(ctx, *slopes):
            start = [x.clone().requires_grad_() for x in ctx.given]
            with torch.enable_grad():
                x1, x2 = start
                for f, g in ctx.blocks:
                    x1 = x1 + f(x2.detach() if detached else x2)
                    x2 = x2 + g(x1)
            torch.autograd.backward((x1, x2), slopes)
            return start[0].grad, start[1].grad, None

    return Forgetful


def test_a_stack_with_wrong_gradients_is_caught(capsys):
    ch14.check_stack(forgetful(False))
    assert capsys.readouterr().out.count("✓") == 3
    with pytest.raises(AssertionError, match="Forgetful = stored"):
        ch14.check_stack(forgetful(True))


def test_pitfalls_that_do_not_stop_are_caught():
    pairs = [(nn.ReLU(), nn.ReLU())]
    ch14.check_pitfalls(forgetful(False), *START, pairs=pairs)
    with pytest.raises(AssertionError, match="it should stop"):
        learning = START.clone().requires_grad_()
        ch14.check_pitfalls(forgetful(False), *learning, pairs=pairs)


def test_an_error_is_a_share():
    assert ch14.relative(torch.tensor([3.0, 5.0]), torch.tensor([3.0, 4.0])) == 0.2
