"""annotated/recipes/copy_task.py: the copy task, and how it can fail."""

import pytest
import torch
from torch import nn

from annotated.recipes.copy_task import (
    COPY,
    COPY_END,
    COPY_TRAINING,
    VOCAB,
    SeesAhead,
    Shifted,
    copy_batches,
    copy_rate,
    exact_copies,
    next_symbol_loss,
    train_copy,
    with_end,
)
from annotated.recipes.rates import DEEP
from annotated.transformer import Transformer, TransformerConfig
from benchmarks.record import read as recorded


def test_the_copy_task_has_its_recorded_losses():
    run = recorded("copy_task")["main"][0]
    torch.manual_seed(run["seed"])
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **COPY))
    batches = copy_batches(run["seed"], 8, COPY_TRAINING["batch"])
    steps = COPY_TRAINING["steps"]  # the schedule's; only a few are taken
    losses = [record["loss"] for record in train_copy(model, batches, steps)]
    assert losses == pytest.approx(run["losses"][:8], rel=2e-3)
    assert sum(p.numel() for p in model.parameters()) == run["parameters"]


def test_the_rate_of_the_copy_task_goes_up_stays_and_goes_down():
    rates = [copy_rate(done, 250) for done in range(250)]
    assert rates[:3] == [0.02, 0.04, 0.06] and rates[49:151] == [1.0] * 102
    assert rates[199:201] == pytest.approx([0.51, 0.5]) and rates[-1] == 0.01
    assert copy_rate(249, 250, fall=0) == 1.0 == copy_rate(299, 500)
    assert copy_rate(0, 250, warmup=1) == 1.0 == copy_rate(3, 250, warmup=4)


def test_the_loss_is_the_mean_over_the_next_symbols():
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **DEEP))
    source, target = next(copy_batches(0, 1, 5, length=8, shortest=3))
    logits = model(source, target[:, :-1]).log_softmax(dim=-1)
    wanted = [
        -logits[i, j, symbol]
        for i, row in enumerate(target[:, 1:].tolist())
        for j, symbol in enumerate(row)
        if symbol
    ]
    loss = next_symbol_loss(model, (source, target))
    torch.testing.assert_close(loss, torch.stack(wanted).mean())


def test_an_end_follows_the_last_symbol():
    target = torch.tensor([[1, 5, 0, 0], [1, 2, 3, 4]])
    assert with_end(target).tolist() == [[1, 5, COPY_END, 0, 0], [1, 2, 3, 4, COPY_END]]
    one, other = (next(copy_batches(1, 1, 6, end=end)) for end in (True, False))
    assert torch.equal(one[0], other[0]) and torch.equal(one[1], with_end(other[1]))


class Copies(nn.Module):
    """Writes each source once more, but makes a mistake in those that end in 2."""

    def __init__(self):
        super().__init__()
        self.output = nn.Linear(1, 1)
        self.config = TransformerConfig(VOCAB, VOCAB, **COPY)

    def encode(self, source):
        return source, None

    def decode(self, target, source, mask):
        step = target.shape[1]
        wrong = (source[:, -1] == 2) & (step == 4)
        symbols = source[:, 1 : step + 1].masked_fill(wrong[:, None], 1)
        return torch.nn.functional.one_hot(symbols, VOCAB).float()


def test_a_sequence_counts_only_without_a_fault():
    source, _ = next(copy_batches(7, 1, 200))
    wrong = (source[:, -1] == 2) & (source[:, 4] != 1)
    assert 0 < wrong.sum() < 40
    assert exact_copies(Copies(), seed=7, count=200) == 200 - wrong.sum()


def test_the_mistake_sees_ahead_and_the_model_does_not():
    config = TransformerConfig(VOCAB, VOCAB, **COPY)
    source, target = next(copy_batches(0, 1, 2))
    changed = target.clone()
    changed[:, -1] = target[:, -1] % 10 + 1
    for kind in (Transformer, SeesAhead):
        model = kind(config).eval()
        same = torch.equal(model(source, target)[:, 0], model(source, changed)[:, 0])
        assert same == (kind is Transformer)


def test_positions_are_shifted_in_training_alone():
    positions, x = Shifted(8, 32), torch.zeros(1, 3, 8)
    positions.offset = 4
    moved = positions(x)
    plain = positions.eval()(x)
    assert torch.equal(moved, positions(x, start=4)) and not torch.equal(moved, plain)
