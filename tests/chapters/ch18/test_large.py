"""ch18/large.py: the tricks of large models, done right and wrong."""

import pytest
import torch

from annotated.chapters.ch18 import large
from annotated.chapters.ch18.large import (
    STORING,
    WAYS,
    held_out_bits,
    large_model,
    plain_step,
    rule_of,
    scaled_step,
    stochastic_bfloat16,
    train_checkpointed,
    train_halves,
    training,
    with_checkpoints,
)
from annotated.data.text import CHARACTERS
from annotated.gpt import next_token_loss
from annotated.recipes.text import bits_per_character

IDS = torch.arange(3000) * 7 % len(CHARACTERS)


def batch(rows=2, length=12, seed=0):
    draws = torch.Generator().manual_seed(seed)
    ids = torch.randint(len(CHARACTERS), (rows, length + 1), generator=draws)
    return ids[:, :-1], ids[:, 1:]


def gradient(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def test_a_model_is_of_its_seed():
    one, again, other = (large_model(seed) for seed in (3, 3, 4))
    assert torch.equal(one.embedding.weight, again.embedding.weight)
    assert not torch.equal(one.embedding.weight, other.embedding.weight)
    assert large_model(dropout=0.25).config.dropout == 0.25


def test_a_run_follows_its_schedule_and_returns_its_losses():
    model = large_model()
    optimizer = rule_of("SGD", model, 1.0)
    rates, norms = [], []

    def step(loss):
        loss.backward()
        norms.append(gradient(model).norm().item())
        rates.append(optimizer.param_groups[0]["lr"])
        model.zero_grad()
        optimizer.step()  # of no gradient

    losses = training(model, IDS, step, optimizer, 0.5, 0, steps=20)
    assert len(losses) == 20 and max(rates) == pytest.approx(0.5)
    assert rates.index(max(rates)) == 1 and rates[-1] < 0.01
    # nothing was updated, so if no gradient is carried on, norms stay alike
    assert max(norms) < 1.5 * min(norms)


def test_autocast_reaches_the_loss():
    model = large_model()
    for precision in (None, torch.bfloat16):
        seen = []
        hook = model.blocks.layers[0].feed_forward.register_forward_hook(
            lambda *call, seen=seen: seen.append(call[2].dtype)
        )
        rule = rule_of("SGD", model, 1.0)
        step = plain_step(model, rule)
        training(model, IDS, step, rule, 0.1, 0, steps=20, precision=precision)
        hook.remove()
        assert set(seen) == {precision or torch.float32}


@pytest.mark.parametrize(("name", "kind"), [("SGD", "SGD"), ("AdamW", "AdamW")])
def test_rules(name, kind):
    rule = rule_of(name, large_model(), 0.25)
    group = rule.param_groups[0]
    assert type(rule).__name__ == kind and group["lr"] == 0.25
    assert group["weight_decay"] == 0
    assert group.get("momentum", 0.9) == 0.9
    with pytest.raises(ValueError, match="name"):
        rule_of("Muon", large_model(), 0.25)


def test_a_plain_step_clips_at_one():
    model = large_model()
    before = [p.detach().clone() for p in model.parameters()]
    step = plain_step(model, torch.optim.SGD(model.parameters(), 1.0))
    step(1000 * next_token_loss(model, batch()))
    moved = [(p - q).flatten() for p, q in zip(model.parameters(), before, strict=True)]
    assert torch.cat(moved).norm().item() == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize(("first", "length"), [(True, 0.5), (False, 0.5 / 1024)])
def test_the_order_of_clipping(first, length):
    model = large_model().double()
    before = [p.detach().clone() for p in model.parameters()]
    rule = torch.optim.SGD(model.parameters(), 1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1)
    step = scaled_step(model, rule, scaler, first, clip=0.5)
    step(10 * next_token_loss(model, batch()))
    moved = [(p - q).flatten() for p, q in zip(model.parameters(), before, strict=True)]
    assert torch.cat(moved).norm().item() == pytest.approx(length, rel=1e-3)
    assert scaler.get_scale() == 2048  # it was told of a good step


def test_random_rounding_is_fair_and_exact_numbers_stay():
    draws = torch.Generator().manual_seed(0)
    for value in (1.001, -1.001, 3.3e-5):
        rounded = stochastic_bfloat16(torch.full((40_000,), value), draws)
        assert rounded.dtype == torch.bfloat16
        ends = rounded.float().unique()
        assert len(ends) == 2 and ends.min() < value < ends.max()
        error = (ends.max() - ends.min()).item() * 0.5 / 200
        assert rounded.double().mean().item() == pytest.approx(value, abs=5 * error)
    exact = torch.tensor([1.0, -0.5, 0.0, 384.0])
    assert torch.equal(stochastic_bfloat16(exact, draws).float(), exact)


def test_ways_keep_their_kinds_of_weights():
    for way in WAYS:
        model, losses = train_halves(way, IDS, 3e-3, 0, steps=12)
        half = way not in ("float32", "autocast")
        wanted = torch.bfloat16 if half else torch.float32
        assert model.embedding.weight.dtype == wanted
        assert losses[-1] < losses[0] - 0.02 or way in ("bfloat16", "nearest")
    with pytest.raises(ValueError, match="way"):
        train_halves("float8", IDS, 3e-3, 0)


@pytest.mark.slow
def test_tiny_steps_move_a_weight_if_anything_keeps_them():
    gains = {}
    for way in ("float32", "bfloat16", "nearest", "stochastic", "master"):
        model, _ = train_halves(way, IDS, 3e-5, 0, steps=60)
        gains[way] = (model.blocks.norm.weight.float() - 1).abs()
    assert gains["bfloat16"].max() == gains["nearest"].max() == 0
    assert gains["float32"].min() > 0
    assert gains["stochastic"].max() > 0
    # a copy that remembers: enough small steps to reach the number below 1
    model, _ = train_halves("master", IDS, 3e-4, 0, steps=60)
    other, _ = train_halves("bfloat16", IDS, 3e-4, 0, steps=60)
    assert (model.blocks.norm.weight.float() - 1).abs().max() > 0
    assert (other.blocks.norm.weight.float() - 1).abs().max() == 0


def test_checkpoints_store_less_and_draw_the_same():
    found = []
    for change in (None, True, False):
        model = large_model(dropout=0.3)
        if change is not None:
            assert with_checkpoints(model, preserve=change) is model
        torch.manual_seed(1)
        kept = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda x, kept=kept: kept.append(x.nbytes) or x, lambda x: x
        ):
            loss = next_token_loss(model, batch())
        loss.backward()
        found.append((loss.item(), gradient(model), sum(kept)))
    (loss, wanted, all_), (same, again, few), (also, wrong, _) = found
    assert loss == same == also and few < all_ / 2
    torch.testing.assert_close(again, wanted, rtol=0, atol=1e-6)
    assert (wrong - wanted).norm() > 0.05 * wanted.norm()


@pytest.mark.slow
def test_training_with_checkpoints():
    losses = {w: train_checkpointed(w, IDS, 0, 0.3, steps=20)[1] for w in STORING}
    assert losses["stored"] == pytest.approx(losses["checkpointed"], abs=1e-4)
    assert losses["stored"][0] == losses["drawn again"][0]
    assert losses["stored"][3:] != pytest.approx(losses["drawn again"][3:], abs=1e-4)
    model, _ = train_checkpointed("checkpointed", IDS, 0, steps=20)
    assert model.config.dropout == 0.1
    with pytest.raises(ValueError, match="way"):
        train_checkpointed("forgotten", IDS, 0)


def test_bits_of_held_out_text(monkeypatch):
    model, seen = large_model().bfloat16(), []
    ids = torch.arange(30_000) % len(CHARACTERS)

    def note(model, ids, length):
        seen.append((next(model.parameters()).dtype, len(ids), length))
        return bits_per_character(model, ids[:500], length)

    monkeypatch.setattr(large, "bits_per_character", note)
    assert 5 < held_out_bits(model, ids) < 9
    assert seen == [(torch.float32, 20_000, 64)]
