"""annotated/training.py: one optimiser step for each group of batches, recorded."""

import itertools
import math
import time
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn

from annotated import training
from annotated.training import (
    LabelSmoothing,
    evaluate,
    evaluating,
    fit,
    noam_rate,
    noam_schedule,
)

KEYS = {"step", "loss", "learning_rate", "gradient_norm", "batches", "cpu_seconds"}


def squared_error(model, batch):
    inputs, targets = batch
    return (model(inputs) - targets).pow(2).mean()


def regression(steps: int) -> tuple[nn.Module, list]:
    """A linear model and batches that a linear map explains."""
    truth = torch.randn(5, 3)
    inputs = [torch.randn(17, 5) for _ in range(steps)]
    return nn.Linear(5, 3), [(x, x @ truth) for x in inputs]


class Pulled(nn.Module):
    """One row of parameters; with the loss `pull`, its gradient is the batch."""

    def __init__(self, size: int = 1):
        super().__init__()
        self.place = nn.Parameter(torch.zeros(size))


def pull(model, batch):
    return model.place @ batch


class Steep(torch.autograd.Function):
    """Zero, with any gradient."""

    @staticmethod
    def forward(ctx, x, gradient):
        ctx.save_for_backward(gradient)
        return x * 0

    @staticmethod
    def backward(ctx, output):
        (gradient,) = ctx.saved_tensors
        return output * gradient, None


def steep(model, batch):
    return Steep.apply(model.place, batch).sum()


def ones(count: int) -> list[Tensor]:
    return [torch.ones(1)] * count


def sgd(model, rate=1.0):
    return torch.optim.SGD(model.parameters(), lr=rate)


def halving(optimizer):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)


def column(history, name: str) -> list:
    return [record[name] for record in history]


# ---- a step ------------------------------------------------------------------


def test_gradients_do_not_add_up_from_step_to_step():
    model = Pulled(2)
    model.place.grad = torch.tensor([50.0, 50.0])  # left behind by something before
    fit(model, pull, [torch.tensor([3.0, 4.0])] * 3, sgd(model))
    assert model.place.tolist() == [-9.0, -12.0]


@pytest.mark.parametrize(
    ("clip", "moved"), [(0.5, [-0.3, -0.4]), (5.1, [-3.0, -4.0]), (None, [-3.0, -4.0])]
)
def test_clipping_shortens_a_long_gradient_and_keeps_its_direction(clip, moved):
    model = Pulled(2)
    extras = {} if clip is None else {"clip": clip}
    (record,) = fit(model, pull, [torch.tensor([3.0, 4.0])], sgd(model), **extras)
    assert model.place.tolist() == pytest.approx(moved, abs=1e-5)
    assert record["gradient_norm"] == pytest.approx(5.0), "the norm before clipping"


def test_the_gradient_is_that_of_what_the_optimiser_holds():
    model, more = nn.ModuleList([Pulled(), Pulled()]), nn.Parameter(torch.zeros(1))
    model[0].place.grad = torch.tensor([50.0])
    optimizer = torch.optim.SGD([model[1].place, more], lr=1.0)

    def loss(model, batch):
        return (model[0].place + model[1].place * 3 + more * 4).sum()

    (record,) = fit(model, loss, ones(1), optimizer, clip=0.5)
    assert record["gradient_norm"] == pytest.approx(5.0)
    assert [model[1].place.item(), more.item()] == pytest.approx([-0.3, -0.4], abs=1e-5)
    assert model[0].place.item() == 0 and model[0].place.grad.item() > 49


# ---- the record --------------------------------------------------------------


def test_a_record_for_each_step_counted_from_one():
    model, batches = regression(7)
    history = fit(model, squared_error, iter(batches), sgd(model, 0.1))
    assert column(history, "step") == [1, 2, 3, 4, 5, 6, 7]
    for record in history:
        assert set(record) == KEYS
        assert {type(value) for value in record.values()} <= {int, float}


def test_loss_and_rate_are_those_before_the_step():
    model = Pulled()
    groups = [{"params": [model.place], "lr": torch.tensor(1.0)}]
    groups += [{"params": [Pulled().place], "lr": 7.0}]
    optimizer = torch.optim.SGD(groups, lr=5.0)
    extras = {"schedule": halving(optimizer)}
    history = fit(model, pull, ones(3), optimizer, **extras)
    assert column(history, "loss") == [0.0, -1.0, -1.5]
    assert column(history, "learning_rate") == [1.0, 0.5, 0.25], "of the first group"
    assert extras["schedule"].get_last_lr()[0] == 0.125


def busy(seconds: float) -> None:
    began = time.process_time()
    while time.process_time() < began + seconds:
        math.sqrt(2)


def test_seconds_add_up_over_the_steps_without_on_step():
    def slow(model, batch):
        busy(0.05)
        return pull(model, batch)

    model = Pulled()
    fit(model, pull, ones(1), sgd(model))  # what the first step of a process costs
    extras = {"on_step": lambda step: busy(0.2)}
    seconds = column(fit(model, slow, ones(3), sgd(model), **extras), "cpu_seconds")
    steps = [b - a for a, b in itertools.pairwise([0.0, *seconds])]
    assert all(0.05 <= step < 0.2 for step in steps)


@pytest.mark.parametrize(
    ("kind", "total", "accumulate"), [(list, 5, 1), (list, 3, 2), (iter, None, 1)]
)
def test_the_bar_counts_steps(kind, total, accumulate, monkeypatch, capsys):
    bars, real = [], training.tqdm
    monkeypatch.setattr(
        training, "tqdm", lambda *a, **k: bars.append(real(*a, **k)) or bars[-1]
    )
    batches = (torch.ones(1) for _ in range(5)) if kind is iter else ones(5)
    model = Pulled()
    fit(model, pull, batches, sgd(model), accumulate=accumulate)
    (bar,) = bars
    assert (bar.n, bar.total, bar.disable) == (total or 5, total, True), "closed"
    assert "training: " in capsys.readouterr().err


# ---- modes and callbacks -----------------------------------------------------


def test_on_step_gets_the_step_and_may_evaluate():
    model, modes, seen = Pulled(), [], []
    model.eval()

    def loss(model, batch):
        modes.append(model.training)
        return pull(model, batch)

    def on_step(step):
        assert not model.training and not torch.is_grad_enabled()
        seen.append((step, model.place.item()))
        model.eval()  # and forgets to go back

    fit(model, loss, ones(3), sgd(model), on_step=on_step)
    assert seen == [(1, -1.0), (2, -2.0), (3, -3.0)]
    assert modes == [True] * 3 and model.training


def test_a_frozen_part_stays_frozen():
    model, modes = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), []
    model[1].eval()

    def loss(model, batch):
        modes.append([part.training for part in model.modules()])
        return model(batch).sum()

    batches = [torch.randn(4, 3)] * 3
    fit(model, loss, batches, sgd(model, 0.0), on_step=lambda step: model.train())
    assert modes == [[True, True, False]] * 3


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_evaluating_restores_all_modes_and_gradients(training, error):
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).train(training)
    model[1].train(not training)
    before = [part.training for part in model.modules()]
    with pytest.raises(error) if error else nullcontext(), evaluating(model):
        assert not any(part.training for part in model.modules())
        assert not torch.is_grad_enabled()
        if error:
            raise error
    assert [part.training for part in model.modules()] == before
    assert torch.is_grad_enabled()


# ---- several batches a step --------------------------------------------------


def ragged(sizes: list[int]) -> list[tuple]:
    """Batches of so many rows each, of one linear map with noise."""
    truth = torch.randn(5, 3).double()
    inputs = [torch.randn(size, 5, dtype=torch.float64) for size in sizes]
    return [(x, x @ truth + torch.randn(len(x), 3).double()) for x in inputs]


def joined(group: list[tuple]) -> tuple:
    return tuple(torch.cat(parts) for parts in zip(*group, strict=True))


def rows(batch) -> int:
    return len(batch[0])


def trained(batches, **settings):
    torch.manual_seed(7)
    model = nn.Linear(5, 3).double()
    history = fit(model, squared_error, batches, sgd(model, 0.3), **settings)
    return history, torch.cat([p.detach().flatten() for p in model.parameters()])


def assert_same_training(one, other) -> None:
    for quantity in ("step", "loss", "gradient_norm", "learning_rate"):
        found, wanted = column(one[0], quantity), column(other[0], quantity)
        assert found == pytest.approx(wanted, abs=1e-12), quantity
    torch.testing.assert_close(one[1], other[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("clip", [math.inf, 0.2])
def test_small_batches_together_are_the_step_of_the_large_one(clip):
    small = ragged([3, 8, 1, 5, 5, 2, 4, 9])  # the last group holds two
    large = [joined(small[i : i + 3]) for i in (0, 3, 6)]
    one = trained(small, accumulate=3, weight=rows, clip=clip)
    assert_same_training(one, trained(large, clip=clip))
    assert column(one[0], "batches") == [3, 6, 8]


def test_a_batch_that_counts_nothing_is_left_out():
    def mean_of_real(model, batch):
        return (model.place * batch[batch > 0]).mean()  # of none: NaN

    def real(batch):
        return (batch > 0).sum().item()

    batches = [torch.tensor(x) for x in ([1.0, 3.0], [0.0, 0.0], [8.0, 0.0])]
    model = Pulled()
    (record,) = fit(model, mean_of_real, batches, sgd(model), accumulate=3, weight=real)
    assert record["batches"] == 3 and model.place.item() == pytest.approx(-4)
    model = Pulled()
    with torch.no_grad():
        model.place.fill_(1.0)
    assert evaluate(model, mean_of_real, batches, weight=real) == pytest.approx(4)


def test_batches_of_one_group_count_alike_without_a_weight():
    small = ragged([3, 8])
    same_size = [tuple(p.repeat(24 // rows(b), 1) for p in b) for b in small]
    assert_same_training(trained(small, accumulate=2), trained([joined(same_size)]))


def test_the_schedule_and_on_step_count_steps_and_not_batches():
    model, drawn, seen = Pulled(), [], []

    def batches():
        for i in range(5):
            drawn.append(i)
            yield torch.ones(1)

    def on_step(step):
        seen.append((step, len(drawn)))  # batches are drawn when they are needed

    optimizer = sgd(model)
    settings = {"schedule": halving(optimizer), "on_step": on_step, "accumulate": 2}
    history = fit(model, pull, batches(), optimizer, **settings)
    assert column(history, "learning_rate") == [1.0, 0.5, 0.25]
    assert seen == [(1, 2), (2, 4), (3, 5)] and model.place.item() == -1.75


@pytest.mark.parametrize("given", [None, lambda batch: 1.0])
def test_a_loss_may_say_itself_what_a_batch_counts(given):
    def loss(model, batch):
        return (model.place - batch).mean()

    loss.batch_weight = len
    batches, model = [torch.ones(3), torch.zeros(1)], Pulled()
    mean = -0.5 if given else -0.75  # of two batches, or of four numbers
    assert evaluate(model, loss, batches, weight=given) == mean
    (record,) = fit(model, loss, batches, sgd(model), accumulate=2, weight=given)
    assert record["loss"] == mean


# ---- devices and precision ---------------------------------------------------


@pytest.mark.parametrize("run", [fit, evaluate])
def test_batches_go_where_the_model_is(run, monkeypatch):
    """No GPU here: the model is on a device that has no numbers, and no autocast."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    seen, model = [], nn.Linear(2, 2).to("meta")

    def loss(model, batch):
        seen.append(batch)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(model, loss, [{"one": torch.ones(2)}], *[sgd(model)] * (run is fit))
    assert seen[0]["one"].is_meta


@pytest.mark.parametrize("precision", [torch.bfloat16, None])
def test_mixed_precision_computes_in_it_and_keeps_parameters_single(precision):
    model, batches = regression(40)
    dtypes = []

    def loss(model, batch):
        output = model(batch[0])
        dtypes.append(output.dtype)
        return (output.float() - batch[1]).pow(2).mean()

    history = fit(model, loss, batches, sgd(model, 0.3), precision=precision)
    assert set(dtypes) == {precision or torch.float32}
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert history[-1]["loss"] < 0.05 * history[0]["loss"]


def test_half_precision_scales_the_loss_up_and_the_gradient_down_again():
    # float16 knows nothing below 6e-8: without scaling this gradient would be 0
    def faint(model, batch):
        return (model(batch).sum() * 1e-6).float() * 1e-3

    steps = []
    for precision in (torch.float16, None):
        torch.manual_seed(1)
        model = nn.Linear(4, 1, bias=False)
        before = model.weight.detach().clone()
        (record,) = fit(
            model, faint, [torch.ones(1, 4)], sgd(model, 1e9), precision=precision
        )
        steps.append(model.weight.detach() - before)
        assert record["gradient_norm"] == pytest.approx(2e-9, rel=0.02)
    torch.testing.assert_close(steps[0], steps[1], rtol=0.02, atol=0)
    assert steps[0].abs().min() > 0.9


def test_a_step_that_overflows_in_half_precision_is_left_out():
    model, seen = Pulled(), []
    batches = [torch.tensor([x]) for x in (1.0, math.inf, math.inf, 1.0)]
    optimizer = sgd(model)
    settings = {"schedule": halving(optimizer), "on_step": seen.append}
    history = fit(model, steep, batches, optimizer, precision=torch.float16, **settings)
    assert column(history, "learning_rate") == [1.0, 0.5, 0.5, 0.5]
    assert column(history, "gradient_norm") == [1, math.inf, math.inf, 1]
    assert seen == [1, 2, 3, 4] and model.place.item() == -1.5


def test_a_gradient_that_overflows_for_ever_stops():
    # the scale begins at 2¹⁶, so that it is 1 after sixteen halvings
    model, batches = Pulled(), [torch.tensor([math.nan])] * 60
    with pytest.raises(FloatingPointError, match="gradient norm nan at step 17"):
        fit(model, steep, batches, sgd(model), precision=torch.float16)
    assert model.place.item() == 0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("precision", [None, torch.bfloat16])
@pytest.mark.parametrize("loss", [pull, steep])
def test_a_loss_or_gradient_that_is_not_finite_stops_at_its_step(
    value, precision, loss
):
    model = Pulled()
    batches = [torch.tensor([x]) for x in (1.0, 1.0, value, 1.0)]
    with pytest.raises(FloatingPointError, match=r"^loss .* at step 3: likely"):
        fit(model, loss, batches, sgd(model), precision=precision)
    assert model.place.item() == -2.0, "the step that failed must not be taken"


def test_a_loss_that_is_not_finite_stops_whatever_its_gradient():
    model = Pulled()
    batches = [torch.tensor([x]) for x in (1.0, math.inf)]
    for precision in (None, torch.float16):
        with pytest.raises(FloatingPointError, match=r"^loss inf, gradient norm 1 at "):
            fit(
                model,
                lambda model, batch: model.place.sum() + batch.sum(),
                batches,
                sgd(model),
                precision=precision,
            )


# ---- evaluate ----------------------------------------------------------------


def test_evaluate_is_the_mean_over_batches_or_over_what_they_count():
    def value(model, batch):
        assert not model.training and not torch.is_grad_enabled()
        return batch.mean()

    model = nn.Linear(1, 1)
    batches = [torch.tensor([1.0, 3.0]), torch.tensor([8.0]), torch.zeros(3)]
    assert evaluate(model, value, batches) == pytest.approx(10 / 3)
    assert evaluate(model, value, iter(batches), weight=len) == pytest.approx(2.0)
    assert type(evaluate(model, value, batches)) is float and model.training


# ---- noam_rate, noam_schedule ------------------------------------------------


@pytest.mark.parametrize("width", [64, 512])
@pytest.mark.parametrize("warmup", [1, 7, 400])
@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_the_rate_is_equation_3(width, warmup, factor):
    for step in (1, 2, 6, 7, 8, 399, 400, 401, 5000):
        up, down = step / warmup**1.5, 1 / math.sqrt(step)
        wanted = factor / math.sqrt(width) * min(up, down)
        found = noam_rate(step, width, warmup, factor)
        assert found == pytest.approx(wanted, rel=1e-12), f"step {step}"


@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_step_n_of_a_real_optimiser_has_the_rate_of_n(factor):
    models = Pulled(), Pulled()
    optimizer = torch.optim.SGD([{"params": [m.place]} for m in models], lr=1.0)
    schedule = noam_schedule(optimizer, 64, 3, factor)

    def loss(model, batch):
        return sum(pull(model, batch) for model in models)

    history = fit(models[0], loss, ones(9), optimizer, schedule=schedule)
    wanted = [noam_rate(n, 64, 3, factor) for n in range(1, 10)]
    assert column(history, "learning_rate") == pytest.approx(wanted)
    for model in models:  # by the parameter that moved, not by what is said of it
        assert model.place.item() == pytest.approx(-sum(wanted), rel=1e-6)


# ---- LabelSmoothing ----------------------------------------------------------


V = 7
every_spread = pytest.mark.parametrize("spread", ["others", "all"])
every_pad = pytest.mark.parametrize("pad", [0, 4])
every_smoothing = pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])


def scored(pad: int = 0) -> tuple[Tensor, Tensor]:
    """Logits that ask for gradients, and targets with padding at three places."""
    logits = (3 * torch.randn(2, 5, V)).requires_grad_()
    target = torch.randint(0, V, (2, 5))
    target[target == pad] = (pad + 1) % V
    target[0, 1] = target[1, 3] = target[1, 4] = pad
    return logits, target


def smoothed_by_hand(target: int, pad: int, smoothing: float, spread: str) -> list:
    if target == pad:
        return [0.0] * V
    if spread == "all":
        return [smoothing / V + (1 - smoothing) * (s == target) for s in range(V)]
    row = [0.0 if s == pad else smoothing / (V - 2) for s in range(V)]
    row[target] = 1 - smoothing
    return row


@every_spread
@every_pad
@every_smoothing
def test_the_smoothed_target_symbol_by_symbol(spread, pad, smoothing):
    target = torch.tensor([[*range(V)], [pad] * V])
    found = LabelSmoothing(V, pad, smoothing, spread).distribution(target)
    assert found.shape == (2, V, V)
    for i in range(V):
        wanted = smoothed_by_hand(i, pad, smoothing, spread)
        assert found[0, i].tolist() == pytest.approx(wanted, abs=1e-7), f"target {i}"
        assert sum(wanted) == pytest.approx(float(i != pad))
    assert found[1].eq(0).all(), "padding has no target"


@every_spread
@every_pad
@every_smoothing
@pytest.mark.parametrize("shape", [(10,), (2, 5), (2, 1, 5), ()])
@pytest.mark.parametrize(
    ("dtype", "limit"),
    [(torch.float64, 1e-7), (torch.float32, 1e-6), (torch.bfloat16, 1e-2)],
)
def test_the_closed_form_is_the_divergence_term_by_term(
    spread, pad, smoothing, shape, dtype, limit
):
    """For logits of any leading shape; the target's own precision is single."""
    smooth = LabelSmoothing(V, pad, smoothing, spread)
    logits = (3 * torch.randn(*shape, V)).to(dtype).requires_grad_()
    target = torch.randint(0, V, shape)
    goal = smooth.distribution(target)
    assert goal.shape == (*shape, V)
    wide = torch.promote_types(dtype, torch.float32)
    cross = torch.where(goal > 0, goal * logits.to(wide).log_softmax(dim=-1), 0.0)
    divergence = torch.xlogy(goal, goal) - cross
    wanted = divergence.sum() / (target != pad).sum().clamp(min=1)
    found = smooth(logits, target)
    assert found.dtype == wide
    assert found.item() == pytest.approx(wanted.item(), rel=1e-6, abs=1e-6)
    gradients = [torch.autograd.grad(loss, logits)[0] for loss in (found, wanted)]
    torch.testing.assert_close(*gradients, rtol=limit, atol=limit)


@every_spread
def test_what_stands_at_padding_does_not_matter(spread):
    logits, target = scored()
    smooth = LabelSmoothing(V, spread=spread)
    changed = torch.where((target == 0)[..., None], 100 * torch.randn(V), logits)
    assert torch.equal(smooth(changed, target), smooth(logits, target))
    nothing = smooth(logits, torch.zeros_like(target))
    assert nothing.item() == 0 and torch.autograd.grad(nothing, logits)[0].eq(0).all()


def test_ids_may_be_integers_of_any_width():
    logits, target = scored()
    smooth = LabelSmoothing(V)
    assert torch.equal(smooth(logits, target.int()), smooth(logits, target))


@pytest.mark.parametrize(("smoothing", "never"), [(0.1, [0]), (0.0, [0, 2, 5])])
def test_an_impossible_symbol_costs_nothing_where_nobody_asks_for_it(smoothing, never):
    logits, target = torch.randn(1, 2, V), torch.tensor([[1, 3]])
    logits[..., never] = -math.inf
    loss = LabelSmoothing(V, smoothing=smoothing)(logits.requires_grad_(), target)
    assert loss.isfinite() and torch.autograd.grad(loss, logits)[0].isfinite().all()


@every_spread
@pytest.mark.parametrize("symbol", [1, 2])
@pytest.mark.parametrize("smoothing", [0.1, 0.95])
def test_an_impossible_symbol_costs_infinitely_where_it_is_asked_for(
    spread, symbol, smoothing
):
    logits, target = torch.randn(1, 2, V), torch.tensor([[1, 3]])
    logits[0, 0, symbol] = -math.inf
    assert LabelSmoothing(V, 0, smoothing, spread)(logits, target) == math.inf


# ---- honest mistakes ---------------------------------------------------------


def tried(batches=None, of=None, **settings):
    model, batches = Pulled(), ones(1) if batches is None else batches
    return fit(model, pull, batches, sgd(of or model), **settings)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tried(batches=iter(())), "batches must hold at least one batch, got"),
        (
            lambda: tried(ones(3), accumulate=2, weight=lambda batch: 0),
            "weight must not be 0 throughout step 1",
        ),
        (
            lambda: evaluate(Pulled(), pull, ones(2), weight=lambda batch: 0),
            "batches must hold at least one of weight > 0, got none",
        ),
        (lambda: tried(of=Pulled()), "optimizer must hold parameters that the loss"),
        (lambda: tried(accumulate=0), "accumulate must be an integer ≥ 1, got 0"),
        (lambda: noam_rate(0, 64, 4), "step must be an integer ≥ 1, got 0"),
        (lambda: noam_schedule(sgd(Pulled(), 0.5), 64, 4), r"lr=1.0, got \[0.5\]"),
        (lambda: LabelSmoothing(2), "size must be an integer ≥ 3, got 2"),
        (
            lambda: smooth(target=torch.tensor([[1, 7]])),
            "target must hold integers from 0 to 6, got 7",
        ),
        (
            lambda: LabelSmoothing(7).distribution(torch.tensor([[-1]])),
            "target must hold integers from 0 to 6, got -1",
        ),
        (lambda: smooth(logits=torch.randn(1, 2, 6)), "logits must have .*shape"),
    ],
)
def test_an_honest_mistake_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def smooth(logits=None, target=None):
    logits = torch.randn(1, 2, 7) if logits is None else logits
    target = torch.ones(1, 2, dtype=torch.long) if target is None else target
    return LabelSmoothing(7)(logits, target)
