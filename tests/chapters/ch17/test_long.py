"""ch17/long.py: six ways differ where they should, and nowhere else."""

import pytest
import torch
from torch.nn import functional as F

from annotated.attention import MultiHeadAttention
from annotated.chapters.ch17 import long
from annotated.chapters.ch17.long import (
    WAYS,
    Learner,
    WrittenOutAttention,
    batches_for,
    bits,
    long_model,
    parts_of,
    pass_over,
    take_turns,
)

T = 2 * long.SEGMENT
IDS = torch.arange(40_000) * 7 % 90


def batch(rows=2, length=T):
    row = IDS[: rows * (length + 1)].view(rows, -1)
    return row[:, :-1], row[:, 1:]


@pytest.mark.parametrize("way", WAYS)
def test_no_way_sees_the_future(way):
    model, (tokens, target) = long_model(way, T), batch(1)
    with torch.no_grad():
        torch.manual_seed(0)
        before = torch.cat([*parts_of(model, (tokens, target))], 1)
        other = tokens.clone()
        other[:, -1] += 1
        torch.manual_seed(0)
        after = torch.cat([*parts_of(model, (other, target))], 1)
    assert before.shape == (1, T)
    assert not torch.allclose(before[:, -1], after[:, -1])
    if way != "LSH":  # what's hidden there sorts others elsewhere
        torch.testing.assert_close(before[:, :-1], after[:, :-1])


def test_written_out_is_fused():
    one, x = WrittenOutAttention(8, 2, causal=True), torch.randn(2, 9, 8)
    other = MultiHeadAttention(8, 2, causal=True)
    other.load_state_dict(one.state_dict())
    torch.testing.assert_close(one(x), other(x))
    with pytest.raises(ValueError, match="mask must be None"):
        one(x, mask=torch.ones(1, 1, 9, 9, dtype=torch.bool))


def test_written_out_fused_and_sparse_begin_with_the_same_numbers():
    models = [long_model(way, T, seed=3) for way in ("written out", "fused", "sparse")]
    first, *others = (model.state_dict() for model in models)
    for other in others:
        assert other.keys() == first.keys()
        assert all(torch.equal(other[name], first[name]) for name in first)
    again = long_model("fused", T, seed=4).state_dict()
    assert not torch.equal(again["embedding.weight"], first["embedding.weight"])


def test_sizes_are_alike():
    sizes = [sum(p.numel() for p in long_model(w, T).parameters()) for w in WAYS]
    assert max(sizes) < 1.15 * min(sizes)


def test_a_pass_over_segments_is_the_mean_of_all():
    model, pair = long_model("Transformer-XL", T), batch()
    parts = [*parts_of(model, pair)]
    assert [part.shape for part in parts] == [(2, long.SEGMENT)] * 2
    mean = torch.cat(parts, 1).mean()
    wanted = torch.autograd.grad(mean, [*model.parameters()], allow_unused=True)
    pass_over(model, pair)
    for parameter, gradient in zip(model.parameters(), wanted, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    alone, _ = model.loss(pair[0][:, long.SEGMENT :], pair[1][:, long.SEGMENT :])
    assert not torch.allclose(parts[1], alone)  # it remembers


def test_bits_are_those_of_the_text():
    model, pairs = long_model("fused", T), [batch(2), batch(1)]
    logits = [model(tokens) for tokens, _ in pairs]
    losses = [F.cross_entropy(x.mT, p[1]) for x, p in zip(logits, pairs, strict=True)]
    wanted = (2 * losses[0] + losses[1]) / 3 / torch.tensor(2.0).log()
    assert bits(model, pairs) == pytest.approx(wanted.item(), rel=1e-5)


def test_every_way_reads_as_many_characters_a_step():
    for way in WAYS:
        tokens, target = next(batches_for(way, IDS, 1024, 3, seed=0))
        assert tokens.numel() == long.READ
        assert torch.equal(tokens[:, 1:], target[:, :-1])
    first, second = (
        pair[0]
        for pair, _ in zip(batches_for(way, IDS, 1024, 9, 0), "ab", strict=False)
    )
    assert torch.equal(second[:, 0], (first[:, -1] + 7) % 90)  # one continues the other
    assert not torch.equal(next(batches_for(way, IDS, 1024, 9, 1))[0], first)


@pytest.mark.parametrize("way", ["sparse", "Transformer-XL"])
def test_a_learner_learns_until_its_time_is_spent(way, monkeypatch):
    monkeypatch.setattr(long, "READ", 4 * T)
    ticks = iter(range(10**6))
    monkeypatch.setattr(long.time, "process_time", lambda: next(ticks))
    learner = Learner(way, IDS, T, 1e-2, 30, seed=0)
    before, rates = bits(learner.model, [batch()]), []
    step = learner._step

    def watched(pair):
        step(pair)
        rates.append(learner._optimizer.param_groups[0]["lr"])

    learner._step = watched
    learner.learn(until=10)
    assert learner.steps == learner.seconds == 10
    learner.learn(until=100)
    assert learner.steps == learner.seconds == 30
    assert bits(learner.model, [batch()]) < before - 1
    assert rates[:2] == [1e-2 / 20, 2e-2 / 20]
    assert rates[-1] == pytest.approx(1e-2 * 2 / 30) and max(rates) <= 1e-2
    if way == "Transformer-XL":
        assert learner._memories.shape[2] == long.SEGMENT


def test_learners_take_turns(monkeypatch):
    calls = []

    class Fake:
        def __init__(self, name):
            self.name, self.seconds, self.limit = name, 0.0, 2.0

        def learn(self, until):
            calls.append(self.name)
            self.seconds = min(until, self.limit)

    take_turns({name: Fake(name) for name in "ab"}, 1.0)
    assert calls == [*"abab"]
