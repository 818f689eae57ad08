"""ch18/drawings.py: how far tricks are off, and what is drawn of them."""

import pytest
import torch
from torch import nn

from annotated.chapters.ch18 import drawings as ch18
from annotated.chapters.ch18.large import large_model
from annotated.gpt import next_token_loss

COMPILED = {"gradient": {"compiled to plain": 1e-7}}
PARTS = ch18.line_batches(("abc", "a long line of text", "no"))
(WHOLE,) = ch18.joined(PARTS, 3)


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


def test_gaps_of_right_and_wrong():
    found = ch18.gaps(PARTS, WHOLE, COMPILED)
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
    assert right["compiled"] == 1e-7
    assert wrong["compiled"] is None


# ---- a batch in pieces ---------------------------------------------------------


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


# ---- half the bits -------------------------------------------------------------


def test_bits_of_numbers():
    assert ch18.bits_of(1.0, torch.float16) == ("0", "01111", "0" * 10)
    assert ch18.bits_of(-1.5, torch.bfloat16) == ("1", "01111111", "1000000")
    assert ch18.bits_of(0.1, torch.float32) == (
        *("0", "01111011"),
        "10011001100110011001101",
    )
    assert ch18.bits_of(1e9, torch.float16) == ("0", "1" * 5, "0" * 10)


def test_gradients_of_logits_are_those_of_the_loss():
    found = ch18.logit_gradients(50, 8, rows=4)
    draws = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 50, generator=draws).requires_grad_()
    right = torch.zeros(4, dtype=torch.int64)
    loss = nn.functional.cross_entropy(logits, right, reduction="sum") / 8
    loss.backward()
    torch.testing.assert_close(found.view(4, 50), logits.grad.abs())


def test_a_small_model_needs_no_scale(capsys, monkeypatch):
    ch18.check_float16(PARTS[1])
    assert capsys.readouterr().out.count("✓") == 1
    gaps = iter((0.03, 0.02))
    monkeypatch.setattr(ch18, "off", lambda found, wanted: next(gaps))
    with pytest.raises(AssertionError, match=r"off by 0\.030, scaled by 0\.020"):
        ch18.check_float16(PARTS[1])


# ---- the update that disappears ------------------------------------------------


def test_paths_of_a_weight():
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


# ---- compute it twice, compile it ----------------------------------------------


def test_three_ways_to_store():
    models = ch18.stored_or_not(0.2)
    assert [m.config.dropout for m in models.values()] == [0.2] * 3
    kept = [m.blocks.layers[0] for m in models.values()]
    assert not hasattr(kept[0], "preserve")
    assert [one.preserve for one in kept[1:]] == [True, False]
