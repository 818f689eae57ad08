"""annotated/training.py: one optimiser step a group of batches, recorded as it was."""

import contextlib
import copy
import dataclasses
import io
import itertools
import math
import os
import pickle
import random
import re
import time
from pathlib import Path
from typing import NamedTuple

import numpy
import pytest
import torch
from torch import Tensor, nn

from annotated import training
from annotated.training import (
    LabelSmoothing,
    evaluate,
    fit,
    load_checkpoint,
    noam_rate,
    noam_schedule,
    save_checkpoint,
)

KEYS = {"step", "loss", "learning_rate", "gradient_norm", "batches", "cpu_seconds"}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


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

    def __init__(self, size: int):
        super().__init__()
        self.place = nn.Parameter(torch.zeros(size))


def pull(model, batch):
    return model.place @ batch


class Interrupted(BaseException):
    """As if the process had been killed."""


def sgd(model, rate=1.0):
    return torch.optim.SGD(model.parameters(), lr=rate)


# ---- what is learned ---------------------------------------------------------


def test_the_loss_falls():
    model, batches = regression(60)
    history = fit(model, squared_error, batches, sgd(model, 0.3))
    assert history[-1]["loss"] < 0.05 * history[0]["loss"]


def test_a_step_is_the_optimisers_own():
    model, (batch, *_) = regression(1)
    before = [p.detach().clone() for p in model.parameters()]
    gradients = torch.autograd.grad(squared_error(model, batch), [*model.parameters()])
    fit(model, squared_error, [batch], sgd(model, 0.3))
    for parameter, old, gradient in zip(
        model.parameters(), before, gradients, strict=True
    ):
        torch.testing.assert_close(parameter.detach(), old - 0.3 * gradient)


def test_gradients_do_not_add_up_from_step_to_step():
    model = Pulled(2)
    model.place.grad = torch.tensor([50.0, 50.0])  # left behind by something before
    fit(model, pull, [torch.tensor([3.0, 4.0])] * 3, sgd(model))
    assert model.place.tolist() == [-9.0, -12.0]


def test_the_same_seed_gives_the_same_bits():
    def run():
        torch.manual_seed(3)
        model, batches = regression(5)
        history = fit(model, squared_error, batches, sgd(model, 0.1))
        return [record["loss"] for record in history]

    assert run() == run()


# ---- clipping ----------------------------------------------------------------


def test_clipping_shortens_the_whole_gradient_and_keeps_its_direction():
    model = Pulled(2)
    history = fit(model, pull, [torch.tensor([3.0, 4.0])], sgd(model), clip=0.5)
    assert model.place.tolist() == pytest.approx([-0.3, -0.4], abs=1e-5)
    assert history[0]["gradient_norm"] == pytest.approx(5.0), "the norm before clipping"


def test_clipping_leaves_a_short_gradient_alone():
    model = Pulled(2)
    fit(model, pull, [torch.tensor([3.0, 4.0])], sgd(model), clip=5.1)
    assert model.place.tolist() == [-3.0, -4.0]


def test_nothing_is_clipped_unless_asked_for():
    model = Pulled(2)
    history = fit(model, pull, [torch.tensor([3e6, 4e6])], sgd(model))
    assert model.place.tolist() == [-3e6, -4e6]
    assert history[0]["gradient_norm"] == pytest.approx(5e6)


def halves() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))


def mean_square(model, batch):
    return 0.01 * (model(batch) - 1).float().pow(2).mean()


@pytest.mark.parametrize("precision", [None, torch.float16])
def test_the_gradient_is_that_of_what_the_optimiser_holds(precision):
    # the first layer's own gradients are never cleared, and never unscaled
    model, batch = halves(), torch.randn(4, 3)
    model[0].bias.grad = torch.full((3,), 50.0)
    weight, head = model[1].weight.detach().clone(), sgd(model[1], 1e-3)
    history = fit(model, mean_square, [batch] * 6, head, precision=precision)
    norms = [record["gradient_norm"] for record in history]
    assert norms == pytest.approx([norms[0]] * 6, rel=1e-2)
    assert not torch.equal(model[1].weight, weight)
    if precision is None:
        kept = model[0].bias.grad.tolist()
        assert kept == pytest.approx([50.0] * 3, abs=1.0), (
            "others' gradients are not ours"
        )


def test_what_the_loss_itself_learns_is_clipped_too():
    model, more = Pulled(1), nn.Parameter(torch.zeros(1))
    groups = [{"params": [model.place]}, {"params": [more]}]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    history = fit(
        model,
        lambda model, batch: (model.place * batch[0] + more * batch[1]).sum(),
        [torch.tensor([3.0, 4.0])],
        optimizer,
        clip=0.5,
    )
    assert history[0]["gradient_norm"] == pytest.approx(5.0)
    assert model.place.item() == pytest.approx(-0.3, abs=1e-5)
    assert more.item() == pytest.approx(-0.4, abs=1e-5)


def test_the_norm_is_the_same_number_with_clipping_and_without():
    norms = []
    for clip in (None, 1e9):
        torch.manual_seed(2)
        model, batches = regression(5)
        history = fit(model, squared_error, batches, sgd(model, 0.1), clip=clip)
        norms.append([record["gradient_norm"] for record in history])
    assert norms[0] == norms[1]


def test_sparse_gradients_have_a_norm():
    table = nn.Embedding(5, 3, sparse=True)
    history = fit(table, lambda m, b: m(b).sum(), [torch.tensor([1, 1, 2])], sgd(table))
    assert history[0]["gradient_norm"] == pytest.approx(math.sqrt(3 * 4 + 3))


# ---- the record --------------------------------------------------------------


def test_a_record_a_step_counted_from_one():
    model, batches = regression(7)
    history = fit(model, squared_error, batches, sgd(model, 0.1))
    assert [record["step"] for record in history] == [1, 2, 3, 4, 5, 6, 7]
    for record in history:
        assert set(record) == KEYS
        assert {type(value) for value in record.values()} <= {int, float}


def test_the_loss_recorded_is_the_one_before_the_step():
    model = Pulled(1)
    history = fit(model, pull, [torch.tensor([2.0])] * 3, sgd(model))
    assert [record["loss"] for record in history] == [0.0, -4.0, -8.0]


def test_seconds_add_up_over_the_steps():
    model, batches = regression(3)

    def slow(model, batch):
        busy(0.05)
        return squared_error(model, batch)

    seconds = [r["cpu_seconds"] for r in fit(model, slow, batches, sgd(model, 0.1))]
    assert seconds[0] >= 0.05
    assert seconds[1] >= seconds[0] + 0.05
    assert seconds[2] >= seconds[1] + 0.05


def busy(seconds: float) -> None:
    began = time.process_time()
    while time.process_time() < began + seconds:
        math.sqrt(2)


def test_seconds_spent_afterwards_do_not_count():
    model, batches = regression(3)
    fit(model, squared_error, batches, sgd(model, 0.1))  # what the first run costs
    history = fit(
        model, squared_error, batches, sgd(model, 0.1), after=lambda step: busy(0.2)
    )
    assert history[-1]["cpu_seconds"] < 0.2


def test_batches_may_come_one_by_one():
    model, batches = regression(4)
    assert len(fit(model, squared_error, iter(batches), sgd(model, 0.1))) == 4


def test_the_rate_is_that_of_the_first_group():
    one, other = Pulled(1), Pulled(1)
    groups = [{"params": [one.place], "lr": 0.5}, {"params": [other.place], "lr": 2.0}]
    history = fit(one, pull, [torch.ones(1)], torch.optim.SGD(groups, lr=1.0))
    assert history[0]["learning_rate"] == 0.5


def test_a_rate_that_is_a_tensor_is_recorded_as_it_was_at_its_step():
    model = Pulled(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=torch.tensor(1.0))
    schedule = noam_schedule(optimizer, 64, 4)
    history = fit(model, pull, [torch.ones(1)] * 3, optimizer, schedule=schedule)
    wanted = [noam_rate(n, 64, 4) for n in (1, 2, 3)]
    assert [record["learning_rate"] for record in history] == pytest.approx(wanted)


def test_batches_are_counted_as_they_are_used():
    model = Pulled(1)
    history = fit(model, pull, [torch.ones(1)] * 5, sgd(model), accumulate=2)
    assert [record["batches"] for record in history] == [2, 4, 5]


# ---- the bar -----------------------------------------------------------------


@pytest.fixture
def bars(monkeypatch):
    made, real = [], training.tqdm

    class Kept(real):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.shown = not self.disable  # closing sets it
            made.append((self, self.n, self.total))

    monkeypatch.setattr(training, "tqdm", Kept)
    return made


@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_bar_counts_steps_where_the_batches_have_a_length(bars, accumulate, capsys):
    model, batches = regression(5)
    fit(model, squared_error, batches, sgd(model, 0.1), accumulate=accumulate)
    steps = math.ceil(5 / accumulate)
    ((bar, begin, total),) = bars
    assert (begin, bar.n, total) == (0, steps, steps) and bar.shown and bar.disable
    assert "training: 100%" in (said := capsys.readouterr().err)
    assert f"{steps}/{steps}" in said


def test_the_bar_has_no_total_where_there_is_no_length(bars):
    model, batches = regression(5)
    walk = (batch for batch in batches)
    fit(model, squared_error, walk, sgd(model, 0.1))
    assert bars[0][0].n == 5 and bars[0][2] is None


def test_the_bar_begins_at_the_resumed_step(bars, tmp_path, capsys):
    batches = [torch.ones(1)] * 7
    for count in (4, 7):
        model = Pulled(1)
        settings = {"accumulate": 2, "checkpoint": tmp_path / "run.pt"}
        fit(model, pull, batches[:count], sgd(model), **settings)
    assert [(begin, total) for _, begin, total in bars] == [(0, 2), (2, 4)]
    (message,) = capsys.readouterr().out.splitlines()
    assert message == f"going on from step 2 of {tmp_path / 'run.pt'}"


def test_the_bar_is_closed_after_an_exception(bars):
    model, batches = regression(3)

    def after(step):
        raise Interrupted

    with pytest.raises(Interrupted):
        fit(model, squared_error, batches, sgd(model, 0.1), after=after)
    assert bars[0][0].disable


# ---- schedule, modes, callbacks ----------------------------------------------


def test_the_schedule_moves_after_each_step():
    model = Pulled(1)
    optimizer = sgd(model)
    halve = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    fit(model, pull, [torch.ones(1)] * 3, optimizer, schedule=halve)
    assert model.place.item() == -(1 + 0.5 + 0.25), "the first step has the first rate"
    assert halve.get_last_lr() == [0.125]


def test_training_mode_holds_from_the_first_step_to_the_end():
    model, batches = regression(3)
    model.eval()
    modes = []

    def loss(model, batch):
        modes.append(model.training)
        return squared_error(model, batch)

    fit(model, loss, batches, sgd(model, 0.1), after=lambda step: model.eval())
    assert modes == [True] * 3, "`after` may evaluate; the next step must train"
    assert model.training


def test_a_part_that_is_in_evaluation_mode_stays_so():
    def loss(model, batch):
        modes.append([part.training for part in model.modules()])
        return model(batch).sum()

    def unfreeze(step):
        model.eval() if step == 1 else model.train()

    for whole, wanted in ((True, [True, True, False]), (False, [True, True, True])):
        model, modes = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), []
        model[1].eval()
        model.training = whole
        fit(model, loss, [torch.randn(4, 3)] * 3, sgd(model, 0.0), after=unfreeze)
        modes.append([part.training for part in model.modules()])
        assert modes == [wanted] * 4


def test_after_is_called_with_the_number_of_steps_taken():
    model, seen = Pulled(1), []

    def after(step):
        seen.append((step, model.place.item()))

    fit(model, pull, [torch.ones(1)] * 3, sgd(model), after=after)
    assert seen == [(1, -1.0), (2, -2.0), (3, -3.0)]


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
    return history, [p.detach() for p in model.parameters()]


def assert_same_training(one, other) -> None:
    (history, parameters), (others, wanted) = one, other
    for quantity in ("step", "loss", "gradient_norm", "learning_rate"):
        assert [r[quantity] for r in history] == pytest.approx(
            [r[quantity] for r in others], abs=1e-12
        ), quantity
    for parameter, expected in zip(parameters, wanted, strict=True):
        torch.testing.assert_close(parameter, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("clip", [None, 0.2])
def test_small_batches_together_are_the_step_of_the_big_one(clip):
    small = ragged([3, 8, 1, 5, 5, 2, 4, 9])  # the last group holds two
    big = [joined(small[i : i + 3]) for i in (0, 3, 6)]
    one = trained(small, accumulate=3, weight=rows, clip=clip)
    assert_same_training(one, trained(big, clip=clip))
    assert len(one[0]) == 3


def test_batches_of_one_group_count_alike_without_a_weight():
    small = ragged([3, 8])
    twice = small[0][0].repeat(8, 1), small[0][1].repeat(8, 1)
    thrice = small[1][0].repeat(3, 1), small[1][1].repeat(3, 1)
    assert_same_training(
        trained(small, accumulate=2), trained([joined([twice, thrice])])
    )


def test_a_weight_changes_nothing_where_batches_go_alone():
    batches = ragged([3, 8, 1])
    assert_same_training(trained(batches, weight=rows), trained(batches))


@pytest.mark.parametrize("dropped", [0, 1])
def test_a_batch_that_weighs_nothing_is_not_run(dropped):
    batches = [torch.tensor([math.nan])] * 3
    batches[1 - dropped] = torch.tensor([2.0])
    seen, model = [], Pulled(1)

    def loss(model, batch):
        seen.append(batch.item())
        return pull(model, batch)

    weight = torch.nan_to_num  # NaN weighs nothing
    history = fit(model, loss, batches[:2], sgd(model), accumulate=2, weight=weight)
    assert seen == [2.0] and model.place.item() == -2.0
    assert history[0]["batches"] == 2
    assert evaluate(model, loss, batches, weight=weight) == -4.0
    assert seen == [2.0, 2.0]


def test_the_schedule_and_after_count_steps_and_not_batches():
    model, seen = Pulled(1), []
    optimizer = sgd(model)
    halve = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    batches = [torch.ones(1)] * 5
    settings = {"schedule": halve, "after": seen.append, "accumulate": 2}
    history = fit(model, pull, batches, optimizer, **settings)
    assert seen == [1, 2, 3] == [record["step"] for record in history]
    assert [record["learning_rate"] for record in history] == [1.0, 0.5, 0.25]
    assert model.place.item() == -1.75


def test_batches_are_drawn_when_they_are_needed():
    drawn, steps = [], []

    def walk():
        for i in range(6):
            drawn.append(i)
            yield torch.ones(1)

    model = Pulled(1)
    settings = {"accumulate": 2, "after": lambda step: steps.append(len(drawn))}
    fit(model, pull, walk(), sgd(model), **settings)
    assert steps == [2, 4, 6]


# ---- devices and precision ---------------------------------------------------


class Fed(NamedTuple):
    inputs: Tensor
    name: str
    parts: dict


def places(batch) -> set[str]:
    if isinstance(batch, Tensor):
        return {batch.device.type}
    if isinstance(batch, str | int):
        return set()
    values = batch.values() if isinstance(batch, dict) else batch
    return set().union(*(places(part) for part in values))


@pytest.mark.parametrize(
    "batch",
    [
        torch.ones(2),
        (torch.ones(2), torch.ones(3)),
        [torch.ones(2), [torch.ones(3)], 7],
        {"one": torch.ones(2), "other": (torch.ones(3), "text")},
        Fed(torch.ones(2), "name", {"deep": [torch.ones(3)]}),
    ],
    ids=lambda batch: type(batch).__name__,
)
@pytest.mark.parametrize("run", ["fit", "evaluate"])
def test_batches_go_where_the_model_is(batch, run, monkeypatch):
    """No GPU here: the model is on a device that has no numbers, and no autocast."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())
    seen = []

    def loss(model, batch):
        seen.append(batch)
        raise Interrupted

    model = nn.Linear(2, 2).to("meta")
    with pytest.raises(Interrupted):
        if run == "fit":
            fit(model, loss, [batch], sgd(model))
        else:
            evaluate(model, loss, [batch])
    (moved,) = seen
    assert places(moved) == {"meta"}
    assert type(moved) is type(batch), "a batch keeps its kind"
    assert places(batch) == {"cpu"}, "and the caller's own stays"
    if isinstance(batch, Fed):
        assert moved.name == "name" and moved.inputs.shape == (2,)
    if isinstance(batch, dict):
        assert list(moved) == ["one", "other"] and moved["other"][1] == "text"
    if isinstance(batch, list):
        assert moved[2] == 7


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
    assert {p.grad.dtype for p in model.parameters()} == {torch.float32}
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
        history = fit(
            model,
            faint,
            [torch.ones(1, 4)],
            sgd(model, 1e9),
            **{"precision": precision},
        )
        steps.append(model.weight.detach() - before)
        assert history[0]["gradient_norm"] == pytest.approx(2e-9, rel=0.02)
    torch.testing.assert_close(steps[0], steps[1], rtol=0.02, atol=0)
    assert steps[0].abs().min() > 0.9


def test_a_step_that_overflows_in_half_precision_is_left_out():
    model = Pulled(1)
    batches = [torch.ones(1), torch.tensor([math.inf]), torch.ones(1)]

    def loss(model, batch):  # finite, and its gradient is not
        return Steep.apply(model.place, batch).sum()

    history = fit(model, loss, batches, sgd(model), precision=torch.float16)
    assert len(history) == 3
    assert history[1]["gradient_norm"] == math.inf
    assert model.place.item() == -2.0


@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize("precision", [None, torch.float16])
def test_a_norm_that_overflows_stops_before_finite_gradients_are_spoiled(
    clip, precision
):
    model = nn.Linear(3, 2)
    before = model.weight.detach().clone()

    def loss(model, batch):  # each gradient is finite, the sum of squares is not
        return (model.weight * 1e30).sum().float()

    message = "^the gradient's norm is inf at step 1, though the loss is "
    with pytest.raises(FloatingPointError, match=message):
        extras = {"clip": clip, "precision": precision}
        fit(model, loss, [torch.ones(1)], sgd(model, 1e-30), **extras)
    assert torch.equal(model.weight, before)
    if clip is None:
        assert model.weight.grad.isfinite().all(), "touched, and nobody asked for it"


def test_the_schedule_waits_for_steps_that_are_left_out():
    model = Pulled(1)
    batches = [torch.tensor([x]) for x in (1.0, math.inf, math.inf, 1.0)]
    optimizer, seen = sgd(model), []
    halve = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    settings = {"schedule": halve, "after": seen.append, "precision": torch.float16}

    def loss(model, batch):
        return Steep.apply(model.place, batch).sum()

    history = fit(model, loss, batches, optimizer, **settings)
    assert [record["learning_rate"] for record in history] == [1.0, 0.5, 0.5, 0.5]
    assert seen == [1, 2, 3, 4] and halve.get_last_lr() == [0.25]


@pytest.mark.parametrize(("good", "stop"), [(0, 20), (3, 23)])
def test_a_gradient_that_overflows_for_ever_stops(good, stop):
    model, seen = Pulled(1), []
    batches = [torch.ones(1)] * good + [torch.tensor([math.nan])] * 60

    def loss(model, batch):
        return Steep.apply(model.place, batch).sum()

    message = f"^the gradient's norm is nan at step {stop}, and 20 steps in a row were"
    with pytest.raises(FloatingPointError, match=message):
        extras = {"precision": torch.float16, "after": seen.append}
        fit(model, loss, batches, sgd(model), **extras)
    assert seen == [*range(1, stop)] and model.place.item() == -good


def test_nineteen_steps_in_a_row_may_be_left_out():
    model = Pulled(1)
    batches = ([torch.tensor([math.nan])] * 19 + [torch.ones(1)]) * 2

    def loss(model, batch):
        return Steep.apply(model.place, batch).sum()

    fit(model, loss, batches, sgd(model), precision=torch.float16)
    assert model.place.item() == -2.0


def test_in_bfloat16_the_loss_is_not_scaled_and_no_step_left_out(tmp_path):
    model, path = Pulled(1), tmp_path / "run.pt"
    settings = {"precision": torch.bfloat16, "checkpoint": path}

    def loss(model, batch):
        return Steep.apply(model.place, batch).sum()

    fit(model, loss, [torch.ones(1)], sgd(model), **settings)
    assert "scaler" not in torch.load(path, weights_only=True)
    with pytest.raises(FloatingPointError, match="norm is nan at step 2, though"):
        fit(
            model,
            loss,
            [torch.ones(1), torch.tensor([math.nan])],
            sgd(model),
            **settings,
        )


class Steep(torch.autograd.Function):
    """Zero, and its gradient is what one likes."""

    @staticmethod
    def forward(ctx, x, gradient):
        ctx.save_for_backward(gradient)
        return x * 0

    @staticmethod
    def backward(ctx, output):
        (gradient,) = ctx.saved_tensors
        return output * gradient, None


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_stops_at_its_step(value):
    model = Pulled(1)
    batches = [torch.tensor([x]) for x in (1.0, 1.0, value, 1.0)]

    def loss(model, batch):
        return Steep.apply(model.place, batch).sum()

    message = r"^the gradient's norm is (nan|inf) at step 3, though the loss is "
    with pytest.raises(FloatingPointError, match=message):
        fit(model, loss, batches, sgd(model))
    assert model.place.item() == -2.0, "the step that failed must not be taken"


# ---- evaluate ----------------------------------------------------------------


def value(model, batch):
    return batch.mean()


def test_evaluate_is_the_mean_over_batches_or_over_what_they_count():
    model = nn.Linear(1, 1)
    batches = [torch.tensor([1.0, 3.0]), torch.tensor([8.0]), torch.zeros(3)]
    assert evaluate(model, value, batches) == pytest.approx(10 / 3)
    assert evaluate(model, value, iter(batches), weight=len) == pytest.approx(2.0)
    assert type(evaluate(model, value, batches)) is float


@pytest.mark.parametrize("training", [True, False])
def test_evaluate_turns_dropout_and_gradients_off_and_training_on_again(training):
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).train(training)
    seen = []

    def loss(model, batch):
        seen.append((model.training, model[1].training, torch.is_grad_enabled()))
        return model(batch).sum()

    evaluate(model, loss, [torch.ones(3)] * 2)
    assert seen == [(False, False, False)] * 2
    assert {module.training for module in model.modules()} == {training}
    assert torch.is_grad_enabled()
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize("training", [True, False])
def test_evaluate_restores_the_mode_after_an_exception(training):
    model = nn.Linear(3, 3).train(training)

    def loss(model, batch):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(model, loss, [torch.ones(3)])
    assert model.training is training and torch.is_grad_enabled()


def test_evaluate_leaves_a_frozen_part_frozen():
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).train()
    model[1].eval()
    evaluate(model, lambda model, batch: model(batch).sum(), [torch.ones(3)])
    assert model.training and not model[1].training


# ---- checkpoints: going on as if nothing had happened ------------------------


def make_dropping() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))


def dropping_loss(model, batch):
    return (model(batch) - batch.sum(dim=-1, keepdim=True)).pow(2).mean()


def own_generator(count: int):
    generator = torch.Generator().manual_seed(5)
    for _ in range(count):
        yield torch.randn(6, 4, generator=generator)


def everybodys_generator(count: int):
    """Batches from the random numbers that dropout takes as well, and numpy's.

    (None of Python's: our type checker draws from those whenever it sees a list.)
    """
    for _ in range(count):
        yield torch.randn(6, 4) + numpy.random.random()


def long_run(walk, path=None, until=None, seed=0, count=23, **extras):
    """Eleven steps and a half; `until` interrupts."""
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    random.seed(seed)
    model = make_dropping()
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0)
    schedule = noam_schedule(optimizer, d_model=400, warmup=6)

    def after(step):
        if step == until:
            raise Interrupted

    settings = {"schedule": schedule, "accumulate": 2, "after": after, "clip": 3.0}
    settings |= {"checkpoint": path, "save_every": path and 3} | extras
    history = fit(model, dropping_loss, walk(count), optimizer, **settings)
    return model, history


def same_but_for_the_clock(history) -> list[tuple]:
    return [tuple(v for k, v in r.items() if k != "cpu_seconds") for r in history]


@pytest.mark.parametrize("walk", [own_generator, everybodys_generator])
@pytest.mark.parametrize("until", [4, 5, 6, 7, 11])
def test_a_resumed_run_has_the_losses_of_one_never_interrupted(walk, until, tmp_path):
    path = tmp_path / "run.pt"
    wanted_model, wanted = long_run(walk)
    with pytest.raises(Interrupted):
        long_run(walk, path, until)
    # the numbers of the second start must not matter
    model, history = long_run(walk, path, seed=0 if walk is not own_generator else 9)
    assert same_but_for_the_clock(history) == same_but_for_the_clock(wanted)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, wanted_model.get_parameter(name)), name
    assert [record["step"] for record in history] == list(range(1, 13))
    seconds = [record["cpu_seconds"] for record in history]
    assert seconds == sorted(seconds), "seconds go on where they were"


def test_saving_changes_nothing_of_the_training(tmp_path):
    _, wanted = long_run(everybodys_generator)
    _, saved = long_run(everybodys_generator, tmp_path / "run.pt")
    assert same_but_for_the_clock(saved) == same_but_for_the_clock(wanted)


def test_what_after_draws_is_drawn_once(tmp_path):
    path = tmp_path / "run.pt"

    def run(until=None, seed=0):
        def after(step):
            torch.rand(1)
            if step == until:
                raise Interrupted

        return long_run(own_generator, path, seed=seed, after=after)[1]

    wanted = run()
    path.unlink()
    with pytest.raises(Interrupted):
        run(until=4)
    assert same_but_for_the_clock(run(seed=9)) == same_but_for_the_clock(wanted)


def test_what_is_finished_stays_finished(tmp_path):
    path = tmp_path / "run.pt"
    model, history = long_run(own_generator, path)
    again, other = long_run(own_generator, path, seed=9)
    assert other == history
    assert all(map(torch.equal, model.parameters(), again.parameters()))


def test_a_longer_walk_goes_on_from_a_finished_one(tmp_path):
    path = tmp_path / "run.pt"
    _, wanted = long_run(own_generator, count=28)
    long_run(own_generator, path, count=22)
    _, history = long_run(own_generator, path, seed=9, count=28)
    assert same_but_for_the_clock(history) == same_but_for_the_clock(wanted)


@pytest.mark.parametrize(("first", "one", "other"), [(6, 2, 4), (5, 4, 4), (5, 2, 3)])
def test_as_many_batches_are_skipped_as_were_used(first, one, other, tmp_path):
    data, seen = [torch.tensor([float(i)]) for i in range(12)], []

    def loss(model, batch):
        seen.append(int(batch.item()))
        return pull(model, batch)

    for count, accumulate in ((first, one), (12, other)):
        model = Pulled(1)
        settings = {"accumulate": accumulate, "checkpoint": tmp_path / "run.pt"}
        history = fit(model, loss, data[:count], sgd(model), **settings)
    assert seen == [*range(12)]
    assert [record["step"] for record in history] == [*range(1, len(history) + 1)]


class Drawing(list):
    """Batches that draw a random number before the first of them, as a DataLoader."""

    def __iter__(self):
        torch.rand(1)
        return super().__iter__()


def test_a_run_saved_before_its_first_step_draws_what_the_other_drew(tmp_path):
    path, runs = tmp_path / "run.pt", []
    for resumed in (False, True):
        torch.manual_seed(4)
        model = make_dropping()
        optimizer = sgd(model, 0.1)
        if resumed:
            save_checkpoint(path, model, optimizer)
            torch.manual_seed(5)
        settings = {"checkpoint": path} if resumed else {}
        batches = Drawing([torch.ones(6, 4)] * 3)
        runs.append(fit(model, dropping_loss, batches, optimizer, **settings))
    assert same_but_for_the_clock(runs[0]) == same_but_for_the_clock(runs[1])


def test_half_precision_goes_on_with_its_scale(tmp_path):
    path = tmp_path / "run.pt"
    extras = {"precision": torch.float16, "save_every": None}

    def loss(model, batch):
        return pull(model, batch).float()

    def run(batches):
        model = Pulled(1)
        return fit(model, loss, batches, sgd(model), checkpoint=path, **extras)

    run([torch.ones(1)] * 2)
    saved = torch.load(path, weights_only=True)
    assert saved["scaler"]["scale"] > 8.0
    saved["scaler"]["scale"] = 8.0
    torch.save(saved, path)
    run([torch.ones(1)] * 3)
    assert torch.load(path, weights_only=True)["scaler"]["scale"] == 8.0


@pytest.mark.parametrize(("every", "wanted"), [(2, [2, 4, 5]), (None, [5]), (9, [5])])
def test_it_saves_as_often_as_asked_and_at_the_end(
    every, wanted, tmp_path, monkeypatch
):
    saved, real = [], training.save_checkpoint

    def watch(path, *args, history, **kwargs):
        saved.append(len(history))
        real(path, *args, history=history, **kwargs)

    monkeypatch.setattr(training, "save_checkpoint", watch)
    model = Pulled(1)
    settings = {"checkpoint": tmp_path / "run.pt", "save_every": every}
    fit(model, pull, [torch.ones(1)] * 5, sgd(model), **settings)
    assert saved == wanted


def test_a_run_of_ones_own_is_resumed_without_a_scaler(tmp_path):
    parts, history = stepped(0)
    save_checkpoint(tmp_path / "c.pt", **parts, history=history)
    parts, _ = stepped(1)
    settings = {"schedule": parts["schedule"], "checkpoint": tmp_path / "c.pt"}
    args = parts["model"], dropping_loss, own_generator(3), parts["optimizer"]
    assert [r["step"] for r in fit(*args, **settings)] == [1, 2, 3]


# ---- save_checkpoint, load_checkpoint ----------------------------------------


def stepped(seed: int):
    """Model, optimiser with a state of its own, and schedule, after two steps."""
    torch.manual_seed(seed)
    model = make_dropping()
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0)
    schedule = noam_schedule(optimizer, 400, 6)
    history = fit(model, dropping_loss, own_generator(2), optimizer, schedule=schedule)
    return {"model": model, "optimizer": optimizer, "schedule": schedule}, history


def assert_same(one, other) -> None:
    """States, however deep."""
    if isinstance(one, Tensor):
        assert torch.equal(one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_same(one[name], other[name])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for part, another in zip(one, other, strict=True):
            assert_same(part, another)
    elif not callable(one):
        assert one == other


def test_everything_comes_back(tmp_path):
    parts, history = stepped(0)
    others, _ = stepped(1)
    save_checkpoint(tmp_path / "c.pt", **parts, history=history)
    assert load_checkpoint(str(tmp_path / "c.pt"), **others) == history
    for name, part in parts.items():
        assert_same(part.state_dict(), others[name].state_dict())
    assert [path.name for path in tmp_path.iterdir()] == ["c.pt"]


def test_a_model_alone_comes_back_without_what_trained_it(tmp_path):
    parts, history = stepped(0)
    save_checkpoint(tmp_path / "c.pt", **parts, history=history)
    model = make_dropping()
    before = torch.get_rng_state(), str(numpy.random.get_state())
    assert load_checkpoint(tmp_path / "c.pt", model) == history
    assert_same(model.state_dict(), parts["model"].state_dict())
    after = torch.get_rng_state(), str(numpy.random.get_state())
    assert_same(before, after)


def test_random_numbers_go_on_where_they_were(tmp_path):
    def draw():
        numbers = [random.random(), random.gauss(0, 1), numpy.random.random()]
        return [*numbers, numpy.random.normal(), *torch.randn(3).tolist()]

    parts, _ = stepped(0)
    random.gauss(0, 1)  # both keep a second number for the next call
    numpy.random.normal()
    save_checkpoint(tmp_path / "c.pt", **parts)
    wanted = draw()
    assert draw() != wanted
    load_checkpoint(tmp_path / "c.pt", **parts)
    assert draw() == wanted


def test_skipping_comes_before_random_numbers_are_set_back(tmp_path):
    parts, history = stepped(0)
    save_checkpoint(tmp_path / "c.pt", **parts, history=history)
    wanted = torch.rand(3)
    walk = everybodys_generator(5)
    load_checkpoint(tmp_path / "c.pt", **parts, skip=walk)
    assert torch.equal(torch.rand(3), wanted)
    assert len([*walk]) == 3, "as many are left out as were used"


def test_numbers_of_numpy_are_saved_as_pythons(tmp_path):
    path = tmp_path / "run.pt"
    for make in (
        lambda o: noam_schedule(o, 512, 4, numpy.float64(2)),
        lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda i: numpy.exp(-i)),
    ):
        path.unlink(missing_ok=True)
        for count in (2, 4):
            model = Pulled(1)
            optimizer = torch.optim.SGD(model.parameters(), lr=numpy.float64(1))
            settings = {"schedule": make(optimizer), "checkpoint": path}
            history = fit(model, pull, [torch.ones(1)] * count, optimizer, **settings)
        assert len(history) == 4
    assert type(noam_rate(1, 512, 4, numpy.float64(2))) is float


class Extra(Pulled):
    """A model that keeps something of its own."""

    def __init__(self, extra):
        super().__init__(1)
        self.extra = extra

    def get_extra_state(self):
        return self.extra

    def set_extra_state(self, extra):
        self.extra = extra


def test_what_could_not_be_loaded_again_is_not_saved(tmp_path):
    path, model = tmp_path / "c.pt", Extra({"count": numpy.int64(3)})
    save_checkpoint(path, model, sgd(model))
    other = Extra(None)
    load_checkpoint(path, other)
    assert other.extra == {"count": 3} and type(other.extra["count"]) is int
    before, model.extra = path.read_bytes(), Path("somewhere")
    message = "^states must hold tensors and plain numbers, or the checkpoint could "
    with pytest.raises(ValueError, match=message):
        save_checkpoint(path, model, sgd(model))
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


def test_a_models_own_state_keeps_the_versions_of_its_parts(tmp_path):
    model = nn.BatchNorm1d(3)
    save_checkpoint(tmp_path / "c.pt", model, sgd(model))
    saved = torch.load(tmp_path / "c.pt", weights_only=True)["model"]
    assert saved._metadata[""] == {"version": 2}


def test_it_is_written_beside_its_place(tmp_path, monkeypatch):
    names = []

    def watch(content, file):
        names.append(file.name)
        WRITE(content, file)

    monkeypatch.setattr(torch, "save", watch)
    for name in ("run.a", "run.b"):
        save_checkpoint(tmp_path / name, **stepped(0)[0])
    assert names == [str(tmp_path / "run.a.part"), str(tmp_path / "run.b.part")]


@pytest.mark.parametrize("when", ["torch.save", "fsync", "replace"])
def test_a_saving_that_fails_leaves_nothing_behind(when, tmp_path, monkeypatch):
    monkeypatch.setattr(*KILLED[when])
    with pytest.raises(Interrupted):
        save_checkpoint(tmp_path / "c.pt", **stepped(0)[0])
    assert [*tmp_path.iterdir()] == []


def write_half(content, file):
    """torch.save, killed in the middle."""
    whole = io.BytesIO()
    WRITE(content, whole)
    data = whole.getvalue()[: len(whole.getvalue()) // 2]
    if hasattr(file, "write"):
        file.write(data)
        file.flush()
    else:
        Path(file).write_bytes(data)
    raise Interrupted


def refuse(*_):
    raise Interrupted


WRITE = torch.save
KILLED = {"torch.save": (torch, "save", write_half), "fsync": (os, "fsync", refuse)}
KILLED |= {"replace": (Path, "replace", refuse)}


@pytest.mark.parametrize("when", KILLED)
def test_who_is_killed_while_saving_leaves_the_previous_checkpoint(
    when, tmp_path, monkeypatch
):
    path = tmp_path / "c.pt"
    parts, history = stepped(0)
    save_checkpoint(path, **parts, history=history)
    wanted = copy.deepcopy(parts["model"].state_dict())
    with monkeypatch.context() as patch:
        patch.setattr(*KILLED[when])
        if when == "replace":
            patch.setattr(os, "replace", refuse)
            patch.setattr(os, "rename", refuse)
        with torch.no_grad():
            parts["model"][0].weight.zero_()
        with pytest.raises(Interrupted):
            save_checkpoint(path, **parts, history=[])
    others, _ = stepped(1)
    assert load_checkpoint(path, **others) == history
    assert_same(others["model"].state_dict(), wanted)
    save_checkpoint(path, **parts, history=[])
    assert load_checkpoint(path, **others) == [], (
        "what was left does not stand in the way"
    )


def test_what_is_written_is_on_the_disk_before_it_takes_its_place(
    tmp_path, monkeypatch
):
    calls, sync, replace = [], os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append("sync"), sync(file)))
    monkeypatch.setattr(
        Path, "replace", lambda *args: (calls.append("replace"), replace(*args))
    )
    save_checkpoint(tmp_path / "c.pt", **stepped(0)[0])
    assert calls == ["sync", "replace"]


def test_a_run_interrupted_while_saving_goes_on_from_the_saving_before(
    tmp_path, monkeypatch
):
    path = tmp_path / "run.pt"
    _, wanted = long_run(own_generator)
    real, saved = training.torch.save, []

    def second_time(content, file):
        saved.append(len(content["history"]))
        (write_half if len(saved) == 2 else real)(content, file)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", second_time)
        with pytest.raises(Interrupted):
            long_run(own_generator, path)
    assert saved == [3, 6]
    _, history = long_run(own_generator, path, seed=9)
    assert same_but_for_the_clock(history) == same_but_for_the_clock(wanted)


class Sprung:
    calls = []

    @classmethod
    def spring(cls, *args):
        cls.calls.append(args)


class Spring:
    """A pickle that runs code when it is read."""

    def __reduce__(self):
        return Sprung.spring, ("code ran",)


@pytest.mark.parametrize("kind", ["torch", "pickle"])
def test_a_file_from_somebody_else_cannot_run_code(kind, tmp_path):
    path = tmp_path / "c.pt"
    content = {"model": Spring(), "history": [], "random": {}}
    if kind == "torch":
        torch.save(content, path)
    else:
        path.write_bytes(pickle.dumps(content))
    pickle.loads(pickle.dumps(Spring()))
    assert Sprung.calls == [("code ran",)], "the trap works"
    Sprung.calls.clear()
    message = r"c\.pt is no checkpoint, or a damaged one: "
    with pytest.raises(ValueError, match=message):
        load_checkpoint(path, make_dropping())
    assert Sprung.calls == []


def assert_damaged(path: Path, data: bytes, parts: dict) -> None:
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"c\.pt is no checkpoint, or a damaged one: "):
        load_checkpoint(path, **parts)


@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, 0.99])
def test_a_file_without_its_end_says_so(keep, tmp_path):
    path, (parts, history) = tmp_path / "c.pt", stepped(0)
    save_checkpoint(path, **parts, history=history)
    data = path.read_bytes()
    size = keep if isinstance(keep, int) else int(keep * len(data))
    assert_damaged(path, data[:size], parts)


@pytest.mark.parametrize("text", ["", "{}", "these are no numbers\n"])
def test_a_file_of_text_says_so(text, tmp_path):
    assert_damaged(tmp_path / "c.pt", text.encode(), stepped(0)[0])


def test_a_missing_file_and_a_missing_folder_are_named(tmp_path):
    parts, _ = stepped(0)
    message = r"^path must be a checkpoint, and there is none at .*c\.pt$"
    with pytest.raises(FileNotFoundError, match=message):
        load_checkpoint(tmp_path / "c.pt", **parts)
    message = r"^path must lie in a folder that exists, got .*none.c\.pt$"
    with pytest.raises(FileNotFoundError, match=message):
        save_checkpoint(tmp_path / "none" / "c.pt", **parts)


def never(model, batch):
    raise AssertionError("trained before its place was looked at")


def test_the_place_is_looked_at_before_the_first_step(tmp_path, monkeypatch):
    model, file = Pulled(1), tmp_path / "file"
    file.write_text("no folder")
    args = model, never, [torch.ones(1)], sgd(model)
    for folder in (tmp_path / "none", file):
        message = r"^checkpoint must lie in a folder that exists, got .*run\.pt$"
        with pytest.raises(FileNotFoundError, match=message):
            fit(*args, checkpoint=folder / "run.pt")
        with pytest.raises(FileNotFoundError, match=r"^path must lie in a folder th"):
            save_checkpoint(folder / "run.pt", model, sgd(model))
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    message = r"^checkpoint must lie in a folder that can be written to, got .*run\.pt$"
    with pytest.raises(PermissionError, match=message):
        fit(*args, checkpoint=tmp_path / "run.pt")


def test_what_a_checkpoint_does_not_hold_is_named(tmp_path):
    path, (parts, _) = tmp_path / "c.pt", stepped(0)
    save_checkpoint(path, parts["model"], parts["optimizer"])
    with pytest.raises(ValueError, match=r"c\.pt holds no schedule$"):
        load_checkpoint(path, **parts)
    for foreign in ([1, 2], parts["model"].state_dict()):
        torch.save(foreign, path)
        message = "c.pt holds no config, no history, no kinds, no model, no optimizer, "
        with pytest.raises(ValueError, match=message + "no random, no schedule$"):
            load_checkpoint(path, **parts)
    torch.save({"history": [], "random": {}, "config": {}, "kinds": {}}, path)
    with pytest.raises(ValueError, match=r"c\.pt holds no model$"):
        load_checkpoint(path, parts["model"])


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    parts, _ = stepped(0)
    save_checkpoint(tmp_path / "c.pt", **parts)
    for other in (nn.Linear(4, 8), nn.Sequential(nn.Linear(3, 8))):
        with pytest.raises(ValueError, match=r"c\.pt is of another model: .*Error"):
            load_checkpoint(tmp_path / "c.pt", other)


def test_batches_that_end_before_the_checkpoint_are_refused(tmp_path):
    path = tmp_path / "run.pt"
    long_run(own_generator, path)
    message = r"^batches end before step 12 of .*run\.pt$"
    with pytest.raises(ValueError, match=message):
        long_run(own_generator, path, count=22)
    with pytest.raises(ValueError, match=message):
        long_run(own_generator, path, count=0)


def everything(parts: dict) -> dict:
    """All that a checkpoint could change."""
    states = {name: part.state_dict() for name, part in parts.items()}
    states["random"] = training._random_state()
    del states["random"]["python"]  # the type checker of our tests draws from it
    return copy.deepcopy(states)


def assert_refused(path: Path, parts: dict, message: str, **extras) -> None:
    before = everything(parts)
    with pytest.raises(ValueError, match=message):
        load_checkpoint(path, **parts, **extras)
    assert_same(everything(parts), before)


def spoil(path: Path, change) -> None:
    content = torch.load(path, weights_only=True)
    change(content)
    torch.save(content, path)


def saved(folder: Path) -> Path:
    parts, history = stepped(0)
    save_checkpoint(folder / "c.pt", **parts, history=history)
    return folder / "c.pt"


def test_a_refused_model_leaves_all_as_it_was(tmp_path):
    path, (parts, _) = saved(tmp_path), stepped(1)
    # the first layer has the shapes that were saved
    parts["model"] = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    assert_refused(path, parts, r"c\.pt is of another model: RuntimeError: ")


def test_a_refused_optimiser_leaves_all_as_it_was(tmp_path):
    path, (parts, _) = saved(tmp_path), stepped(1)
    first = parts["model"][0].parameters()
    parts["optimizer"] = torch.optim.Adam(first, lr=1.0)
    parts["schedule"] = noam_schedule(parts["optimizer"], 400, 6)
    assert_refused(path, parts, r"c\.pt is of another optimizer: ValueError: ")


@pytest.mark.parametrize("missing", ["torch", "numpy", "python"])
def test_refused_random_states_leave_all_as_it_was(missing, tmp_path):
    path, (parts, _) = saved(tmp_path), stepped(1)
    spoil(path, lambda content: content["random"].pop(missing))
    message = rf"c\.pt holds random states that cannot be set: KeyError: '{missing}'$"
    assert_refused(path, parts, message)


def test_refused_batches_leave_all_as_it_was(tmp_path):
    path, (parts, _) = saved(tmp_path), stepped(1)
    walk = everybodys_generator(1)
    message = r"^batches end before step 2 of .*c\.pt$"
    assert_refused(path, parts, message, skip=walk)


@pytest.mark.parametrize("key", ["batches", "cpu_seconds"])
def test_records_without_their_numbers_are_refused(key, tmp_path):
    path, (parts, _) = saved(tmp_path), stepped(1)
    message = r"c\.pt has records without batches and cpu_seconds$"
    for change in (
        lambda content: content["history"][-1].update({key: "2"}),
        lambda content: content["history"][-1].pop(key),
        lambda content: content.update(history=[1, 2]),
    ):
        spoil(path, change)
        assert_refused(path, parts, message, skip=own_generator(5))


def test_half_precision_asks_for_its_scale(tmp_path):
    path, (parts, _) = saved(tmp_path), stepped(1)
    parts["scaler"] = torch.amp.GradScaler("cpu")
    assert_refused(path, parts, r"c\.pt holds no scaler$")


def test_a_scaler_that_is_refused_leaves_all_as_it_was(tmp_path):
    path, (parts, history) = tmp_path / "c.pt", stepped(0)
    parts["scaler"] = torch.amp.GradScaler("cpu")
    save_checkpoint(path, **parts, history=history)
    spoil(path, lambda content: content.update(scaler={}))
    others, _ = stepped(1)
    others["scaler"] = torch.amp.GradScaler("cpu", init_scale=8.0)
    assert_refused(path, others, r"c\.pt is of another scaler: RuntimeError: ")


@pytest.mark.parametrize("kind", ["AdamW", "SGD", "Adagrad"])
def test_the_state_of_another_optimiser_is_refused(kind, tmp_path):
    path, (parts, _) = saved(tmp_path), stepped(1)
    other = getattr(torch.optim, kind)(parts["model"].parameters(), lr=1.0)
    parts |= {"optimizer": other, "schedule": noam_schedule(other, 400, 6)}
    message = (
        f"of another optimizer: it holds the state of Adam, and this one is {kind}"
    )
    assert_refused(path, parts, message)


def test_the_state_of_another_schedule_is_refused(tmp_path):
    path, (parts, _) = saved(tmp_path), stepped(1)
    other = torch.optim.lr_scheduler.StepLR(parts["optimizer"], 2)
    message = "of another schedule: it holds the state of LambdaLR, and this .* StepLR$"
    assert_refused(path, parts | {"schedule": other}, message)


def test_training_goes_on_with_a_schedule_or_without_one(tmp_path):
    path, (parts, _) = saved(tmp_path), stepped(1)
    del parts["schedule"]
    message = r"c\.pt holds a schedule, and none is given that could go on with it$"
    assert_refused(path, parts, message)
    save_checkpoint(path, **parts)
    assert_refused(path, stepped(1)[0], r"c\.pt holds no schedule$")
    load_checkpoint(saved(tmp_path), parts["model"])  # a model alone has no schedule


@dataclasses.dataclass(frozen=True)
class Shape:
    heads: int = 2
    tied: bool = False
    bend: object = torch.relu  # nothing that a checkpoint could hold
    rate: float = numpy.float64(0.5)


def test_a_checkpoint_of_another_config_is_refused(tmp_path):
    path, (parts, _) = tmp_path / "c.pt", stepped(0)
    parts["model"].config = Shape()
    save_checkpoint(path, **parts)
    held = torch.load(path, weights_only=True)["config"]
    assert held == {"heads": 2, "tied": False, "rate": 0.5}
    assert load_checkpoint(path, **parts) == []
    parts["model"].config = Shape(heads=4, tied=True)
    message = "has the config heads=2 and not 4, tied=False and not True$"
    assert_refused(path, parts, r"c\.pt is of another model: it " + message)
    for other in ({"heads": 4}, Shape, None):  # no config that we know
        parts["model"].config = other
        save_checkpoint(path, **parts)
        assert torch.load(path, weights_only=True)["config"] == {}


class Many:
    """As many GPUs as one likes, and what their generators were set to."""

    def __init__(self, monkeypatch, count):
        self.found = {}
        for name, thing in {
            "is_available": lambda: count > 0,
            "device_count": lambda: count,
            "get_rng_state_all": lambda: [torch.full((16,), i) for i in range(count)],
            "set_rng_state": lambda state, device: self.found.update({device: state}),
        }.items():
            monkeypatch.setattr(torch.cuda, name, thing)


@pytest.mark.parametrize(("then", "now"), [(3, 1), (1, 3), (2, 2), (2, 0), (0, 2)])
def test_there_may_be_more_gpus_or_fewer_than_there_were(
    then, now, tmp_path, monkeypatch
):
    parts, _ = stepped(0)
    Many(monkeypatch, then)
    save_checkpoint(tmp_path / "c.pt", **parts)
    gpus = Many(monkeypatch, now)
    load_checkpoint(tmp_path / "c.pt", **parts)
    assert sorted(gpus.found) == [*range(min(then, now))]


def test_a_file_that_is_spoiled_in_any_way_says_so(tmp_path, monkeypatch):
    path, (parts, _) = saved(tmp_path), stepped(1)
    # what crafted and cut files have been seen to raise
    for error in (ValueError, TypeError, AttributeError, KeyError, EOFError):

        def broken(*_, error=error, **__):
            raise error("as the file has it")

        monkeypatch.setattr(torch, "load", broken)
        message = r"c\.pt is no checkpoint, or a damaged one: '?as the file has it'?$"
        assert_refused(path, parts, message)


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


def test_the_rate_rises_to_its_peak_at_the_end_of_the_warmup_and_then_falls():
    rates = [noam_rate(step, 512, 40) for step in range(1, 200)]
    assert rates.index(max(rates)) == 40 - 1
    assert max(rates) == pytest.approx(1 / math.sqrt(512 * 40), rel=1e-12)
    assert all(a < b for a, b in itertools.pairwise(rates[:40]))
    assert all(a > b for a, b in itertools.pairwise(rates[39:]))
    assert rates[9] == pytest.approx(rates[39] / 4), "a straight line from 0"
    assert rates[159] == pytest.approx(rates[39] / 2), "four times as late, half"


def test_the_factor_is_one_unless_said_otherwise():
    assert noam_rate(5, 64, 9) == noam_rate(5, 64, 9, 1.0)


def test_the_papers_own_peak():
    assert noam_rate(4000, 512, 4000) == pytest.approx(6.99e-4, rel=1e-3)


@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_step_n_of_a_real_optimiser_has_the_rate_of_n(factor):
    model = Pulled(1)
    optimizer = sgd(model)
    schedule = noam_schedule(optimizer, 64, 3, factor)
    settings = {"schedule": schedule}
    history = fit(model, pull, [torch.ones(1)] * 9, optimizer, **settings)
    wanted = [noam_rate(n, 64, 3, factor) for n in range(1, 10)]
    assert [record["learning_rate"] for record in history] == pytest.approx(wanted)
    # and by the parameter that was moved, not by what is said of it
    assert model.place.item() == pytest.approx(-sum(wanted), rel=1e-6)


def test_the_rate_that_an_earlier_schedule_began_with_does_not_matter():
    model = Pulled(1)
    optimizer = sgd(model, 0.5)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    optimizer.param_groups[0]["lr"] = 1.0
    schedule = noam_schedule(optimizer, 64, 3)
    history = fit(model, pull, [torch.ones(1)] * 5, optimizer, schedule=schedule)
    wanted = [noam_rate(n, 64, 3) for n in range(1, 6)]
    assert [record["learning_rate"] for record in history] == pytest.approx(wanted)


def test_all_groups_of_parameters_follow_the_schedule():
    one, other = Pulled(1), Pulled(1)
    optimizer = torch.optim.SGD([{"params": [m.place]} for m in (one, other)], lr=1.0)
    noam_schedule(optimizer, 64, 3)
    rates = [group["lr"] for group in optimizer.param_groups]
    assert rates == pytest.approx([noam_rate(1, 64, 3)] * 2)


# ---- LabelSmoothing ----------------------------------------------------------


SPREADS = ["others", "all"]
every_spread = pytest.mark.parametrize("spread", SPREADS)
V = 7


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
@pytest.mark.parametrize("pad", [0, 4])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
def test_the_smoothed_target_symbol_by_symbol(spread, pad, smoothing):
    target = torch.tensor([[*range(V)], [pad] * V])
    rows = LabelSmoothing(V, pad, smoothing, spread).distribution(target)
    assert rows.shape == (2, V, V)
    for i in range(V):
        wanted = smoothed_by_hand(i, pad, smoothing, spread)
        assert rows[0, i].tolist() == pytest.approx(wanted, abs=1e-7), f"target {i}"
        total = rows[0, i].sum().item()
        assert total == pytest.approx(0.0 if i == pad else 1.0, abs=1e-6)
    assert rows[1].eq(0).all(), "padding has no target"


@every_spread
@pytest.mark.parametrize("pad", [0, 4])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
def test_the_loss_is_the_divergence_of_dense_rows(spread, pad, smoothing):
    logits, target = scored(pad)
    loss = LabelSmoothing(V, pad, smoothing, spread)(logits, target)
    other = logits.detach().clone().requires_grad_()
    real = target != pad
    dense = torch.tensor(
        [smoothed_by_hand(s, pad, smoothing, spread) for s in target[real].tolist()]
    )
    wanted = nn.KLDivLoss(reduction="sum")(other[real].log_softmax(-1), dense)
    wanted = wanted / real.sum()
    torch.testing.assert_close(loss, wanted)
    assert loss.shape == ()
    for one in (loss, wanted):
        one.backward()
    torch.testing.assert_close(logits.grad, other.grad)
    assert logits.grad[~real].eq(0).all(), "padding teaches nothing"


@pytest.mark.parametrize("pad", [0, 4])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
def test_spread_over_all_it_is_pytorchs_but_for_a_constant(smoothing, pad):
    logits, target = scored(pad)
    loss = LabelSmoothing(V, pad, smoothing, "all")(logits, target)
    other = logits.detach().clone().requires_grad_()
    theirs = nn.CrossEntropyLoss(ignore_index=pad, label_smoothing=smoothing)
    wanted = theirs(other.flatten(0, 1), target.flatten())
    row = smoothed_by_hand((pad + 1) % V, pad, smoothing, "all")
    entropy = -sum(q * math.log(q) for q in row if q)
    assert loss.item() == pytest.approx(wanted.item() - entropy, abs=1e-5)
    for one in (loss, wanted):
        one.backward()
    torch.testing.assert_close(logits.grad, other.grad)


@every_spread
def test_the_loss_is_zero_where_the_prediction_is_the_target(spread):
    smooth = LabelSmoothing(V, smoothing=0.2, spread=spread)
    target = torch.tensor([[3, 5, 0]])
    perfect = smooth.distribution(target).clamp(min=1e-30).log()
    assert smooth(perfect, target).item() == pytest.approx(0.0, abs=1e-6)
    assert smooth(perfect + torch.randn(1, 3, V), target) > 0.01


@every_spread
def test_what_stands_at_padding_does_not_matter(spread):
    logits, target = scored()
    smooth = LabelSmoothing(V, spread=spread)
    changed = torch.where((target == 0)[..., None], 100 * torch.randn(V), logits)
    assert torch.equal(smooth(changed, target), smooth(logits, target))
    shorter = smooth(logits[:1, :1], target[:1, :1])
    longer = smooth(logits[:1, :2], target[:1, :2])
    torch.testing.assert_close(shorter, longer, msg="a mean over the real tokens")


@every_spread
def test_a_batch_of_padding_alone_gives_zero(spread):
    logits = torch.randn(2, 3, V, requires_grad=True)
    loss = LabelSmoothing(V, spread=spread)(logits, torch.zeros(2, 3).long())
    assert loss.item() == 0
    loss.backward()
    assert logits.grad.eq(0).all()


def test_one_tenth_is_shared_among_others_unless_said_otherwise():
    logits, target = scored()
    named = LabelSmoothing(V, pad=0, smoothing=0.1, spread="others")
    assert torch.equal(LabelSmoothing(V)(logits, target), named(logits, target))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32])
def test_targets_may_be_whole_numbers_of_any_kind(dtype):
    logits, target = scored()
    smooth = LabelSmoothing(V)
    assert torch.equal(smooth(logits, target.to(dtype)), smooth(logits, target))


def test_logits_of_half_precision_are_smoothed_in_single():
    logits, target = scored()
    half = logits.detach().bfloat16().requires_grad_()
    loss = LabelSmoothing(V)(half, target)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, LabelSmoothing(V)(half.float(), target))
    loss.backward()
    assert half.grad.dtype == torch.bfloat16 and half.grad.isfinite().all()


def test_logits_of_double_precision_are_smoothed_in_double():
    logits, target = scored()
    double = logits.detach().double().requires_grad_()
    smooth = LabelSmoothing(V)
    assert smooth(double, target).dtype == torch.float64
    assert torch.autograd.gradcheck(lambda x: smooth(x, target), double)


@pytest.mark.parametrize(("smoothing", "never"), [(0.1, [0]), (0.0, [0, 2, 5])])
def test_a_symbol_that_is_never_said_costs_nothing_where_nobody_asks_for_it(
    smoothing, never
):
    logits, target = torch.randn(1, 2, V), torch.tensor([[1, 3]])
    logits[..., never] = -math.inf
    logits.requires_grad_()
    loss = LabelSmoothing(V, smoothing=smoothing)(logits, target)
    assert loss.isfinite()
    loss.backward()
    assert logits.grad.isfinite().all()


def test_smoothing_has_no_parameters_and_leaves_its_inputs_alone():
    logits, target = scored()
    before = logits.detach().clone(), target.clone()
    smooth = LabelSmoothing(V)
    smooth(logits, target)
    assert torch.equal(logits, before[0]) and torch.equal(target, before[1])
    assert not [*smooth.parameters()] and not smooth.state_dict()


# ---- when it goes wrong ------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_stops_at_its_step(value):
    model = Pulled(1)
    batches = [torch.tensor([x]) for x in (1.0, 1.0, value, 1.0)]
    message = "^the loss is (nan|-?inf) at step 3;"
    with pytest.raises(FloatingPointError, match=message):
        fit(model, pull, batches, sgd(model))
    assert model.place.item() == -2.0, "the step that failed must not be taken"


@pytest.mark.bad_input
@pytest.mark.parametrize("clip", [0, 0.0, -1.0, math.nan, "1", True, [1.0]])
def test_clip_must_be_positive(clip):
    model, batches = regression(1)
    message = f"^clip must be positive, got {re.escape(repr(clip))}$"
    with pytest.raises(ValueError, match=message):
        fit(model, squared_error, batches, sgd(model), clip=clip)


@pytest.mark.bad_input
@pytest.mark.parametrize("empty", [[], iter(())])
def test_there_must_be_a_batch(empty):
    model, _ = regression(1)
    with pytest.raises(
        ValueError, match=r"^batches must hold at least one batch, got n"
    ):
        fit(model, squared_error, empty, sgd(model))


@pytest.mark.bad_input
@pytest.mark.parametrize("number", [0, -1, 2.0, "2", False, True])
def test_batches_a_step_and_steps_a_saving_are_whole_numbers(number, tmp_path):
    model, batches = regression(1)
    settings = {"checkpoint": tmp_path / "run.pt"}
    for name in ("accumulate", "save_every"):
        message = f"^{name} must be a whole number from 1 on, got {number!r}$"
        with pytest.raises(ValueError, match=message):
            fit(model, squared_error, batches, sgd(model), **settings | {name: number})


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("result", "error", "found"),
    [
        (lambda m: 0.5, TypeError, "loss must return a tensor, got float"),
        (lambda m: (m.place, 1), TypeError, "loss must return a tensor, got tuple"),
        (
            lambda m: m.place * 2,
            ValueError,
            "loss must return one number, got the shape (3,)",
        ),
    ],
    ids=["float", "tuple", "vector"],
)
def test_a_loss_is_a_tensor_with_one_number(result, error, found):
    model = Pulled(3)
    for run in (
        lambda: fit(model, lambda m, _: result(m), [torch.ones(1)], sgd(model)),
        lambda: evaluate(model, lambda m, _: result(m), [torch.ones(1)]),
    ):
        with pytest.raises(error) as caught:
            run()
        assert str(caught.value) == found


@pytest.mark.bad_input
def test_a_loss_depends_on_something_that_is_learned():
    model, batches = Pulled(1), [torch.ones(1)]
    with pytest.raises(ValueError, match=r"^loss must depend on parameters that "):
        fit(model, lambda model, batch: batch.sum(), batches, sgd(model))
    message = "^optimizer must hold parameters that the loss depends on; "
    for precision in (None, torch.float16):
        with pytest.raises(ValueError, match=message):
            fit(model, pull, batches, sgd(Pulled(1)), precision=precision)


@pytest.mark.bad_input
def test_schedule_and_optimiser_are_of_kinds_that_fit_together():
    model, batches = Pulled(1), [torch.ones(1)]
    optimizer = sgd(model)
    with pytest.raises(ValueError, match=r"^optimizer must step without a closure, "):
        fit(model, pull, batches, torch.optim.LBFGS(model.parameters()))
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    with pytest.raises(ValueError, match=r"^schedule must step without a measure, "):
        fit(model, pull, batches, optimizer, schedule=plateau)
    other = noam_schedule(sgd(Pulled(1)), 64, 4)
    with pytest.raises(ValueError, match=r"^schedule must move the rate of optimizer"):
        fit(model, pull, batches, optimizer, schedule=other)
    assert model.place.item() == 0.0


@pytest.mark.bad_input
def test_sparse_gradients_are_not_clipped():
    table = nn.Embedding(5, 3, sparse=True)
    with pytest.raises(ValueError, match=r"^clip must be None for .* got 1.0$"):
        batches = [torch.tensor([1])]
        fit(table, lambda m, b: m(b).sum(), batches, sgd(table), clip=1.0)


@pytest.mark.bad_input
def test_parameters_in_half_precision_are_not_scaled():
    model, batches = nn.Linear(5, 3).half(), regression(1)[1]
    message = r"^precision=torch.float16 needs parameters in single precision, "
    with pytest.raises(ValueError, match=message):
        fit(model, squared_error, batches, sgd(model), precision=torch.float16)


@pytest.mark.bad_input
def test_whole_numbers_may_be_numpys():
    assert noam_rate(*map(numpy.int64, (3, 64, 4))) == noam_rate(3, 64, 4)
    model = Pulled(1)
    settings = {"accumulate": numpy.int64(2), "clip": numpy.float32(9)}
    assert len(fit(model, pull, [torch.ones(1)] * 4, sgd(model), **settings)) == 2
    LabelSmoothing(numpy.int64(7), numpy.int64(3), numpy.float32(0.5))


@pytest.mark.bad_input
@pytest.mark.parametrize("precision", [torch.float32, torch.int8, "bfloat16"])
def test_precision_is_one_of_two(precision):
    model, batches = regression(1)
    message = "^precision must be torch.bfloat16, torch.float16 or None, got "
    with pytest.raises(ValueError, match=message) as caught:
        fit(model, squared_error, batches, sgd(model), precision=precision)
    assert str(caught.value).endswith(repr(precision))


@pytest.mark.bad_input
def test_saving_needs_a_place():
    model, batches = regression(1)
    message = "^save_every=2 needs a checkpoint to save to$"
    with pytest.raises(ValueError, match=message):
        fit(model, squared_error, batches, sgd(model), save_every=2)


@pytest.mark.bad_input
def test_the_batches_of_a_step_weigh_something():
    batches = [torch.tensor([1.0]), torch.tensor([2.0])]
    count = iter([1, 1, 0, 0])
    settings = {"accumulate": 2, "weight": lambda batch: next(count)}
    model = Pulled(1)
    message = "^the batches of step 2 weigh 0.0 in all$"
    with pytest.raises(ValueError, match=message):
        fit(model, pull, batches * 2, sgd(model), **settings)


@pytest.mark.bad_input
@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("run", ["fit", "evaluate"])
def test_a_weight_is_finite_and_not_negative(wrong, run):
    count, model = iter([3, wrong]), Pulled(1)
    given = {"weight": lambda batch: next(count)}
    message = f"^weight must give a finite number from 0 on, got {wrong}$"
    with pytest.raises(ValueError, match=message):
        if run == "fit":
            fit(model, pull, [torch.ones(1)] * 2, sgd(model), accumulate=2, **given)
        else:
            evaluate(model, pull, [torch.ones(1)] * 2, **given)
    assert model.place.item() == 0.0


@pytest.mark.bad_input
@pytest.mark.parametrize("weights", [[], [0, 0]])
def test_what_is_evaluated_weighs_something(weights):
    count = iter(weights)
    batches, model = [torch.ones(1)] * len(weights), Pulled(1)
    message = "^batches must hold something that counts, got a weight of 0.0 in"
    with pytest.raises(ValueError, match=message):
        evaluate(model, pull, batches, weight=lambda batch: next(count))
    assert model.training


@pytest.mark.bad_input
@pytest.mark.parametrize("value", [0, -1, 2.0, "2", None, True])
@pytest.mark.parametrize("name", ["step", "d_model", "warmup"])
def test_step_width_and_warmup_are_whole_numbers(name, value):
    message = f"^{name} must be a whole number from 1 on, got {value!r}$"
    given = {"step": 1, "d_model": 64, "warmup": 4} | {name: value}
    with pytest.raises(ValueError, match=message):
        noam_rate(**given)
    if name != "step":
        del given["step"]
        with pytest.raises(ValueError, match=message):
            noam_schedule(sgd(Pulled(1)), **given)


@pytest.mark.bad_input
@pytest.mark.parametrize("factor", [0, -1.0, math.nan, math.inf, "1", True])
def test_the_factor_is_positive(factor):
    message = f"^factor must be positive and finite, got {factor!r}$"
    with pytest.raises(ValueError, match=message):
        noam_rate(1, 64, 4, factor)
    with pytest.raises(ValueError, match=message):
        noam_schedule(sgd(Pulled(1)), 64, 4, factor)


@pytest.mark.bad_input
@pytest.mark.parametrize("rates", [[0.5], [1.0, 0.001], [0.0]])
def test_the_schedule_multiplies_a_rate_of_one(rates):
    groups = [{"params": [nn.Parameter(torch.ones(1))], "lr": r} for r in rates]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    message = r"^optimizer must be made with lr=1.0, .* got "
    with pytest.raises(ValueError, match=message) as caught:
        noam_schedule(optimizer, 64, 4)
    assert str(caught.value).endswith(str(sorted(rates)))
    assert [group["lr"] for group in optimizer.param_groups] == rates


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 2}, "size must be a whole number from 3 on, got 2"),
        ({"size": 7.0}, "size must be a whole number from 3 on, got 7.0"),
        ({"pad": -1}, "pad must be an id from 0 to 6, got -1"),
        ({"pad": 7}, "pad must be an id from 0 to 6, got 7"),
        ({"pad": None}, "pad must be an id from 0 to 6, got None"),
        ({"pad": True}, "pad must be an id from 0 to 6, got True"),
        ({"smoothing": "0.1"}, "smoothing must be in [0, 1), got '0.1'"),
        ({"smoothing": False}, "smoothing must be in [0, 1), got False"),
        ({"smoothing": 1.0}, "smoothing must be in [0, 1), got 1.0"),
        ({"smoothing": -0.1}, "smoothing must be in [0, 1), got -0.1"),
        ({"smoothing": math.nan}, "smoothing must be in [0, 1), got nan"),
        ({"spread": "none"}, 'spread must be "others" or "all", got \'none\''),
    ],
)
def test_smoothing_has_numbers_in_their_range(given, message):
    with pytest.raises(ValueError) as caught:
        LabelSmoothing(**{"size": 7} | given)
    assert str(caught.value) == message


@pytest.mark.bad_input
@pytest.mark.parametrize(("wrong", "found"), [(7, "1 to 7"), (-1, "-1 to 1")])
def test_targets_stay_within_the_vocabulary(wrong, found):
    target = torch.tensor([[1, wrong]])
    message = f"^target must hold ids from 0 to 6, got {found}$"
    with pytest.raises(ValueError, match=message):
        LabelSmoothing(7).distribution(target)
    with pytest.raises(ValueError, match=message):
        LabelSmoothing(7)(torch.randn(1, 2, 7), target)


@pytest.mark.bad_input
def test_targets_are_whole_numbers():
    target = torch.ones(1, 2)
    message = r"^target must be a tensor of whole numbers, got torch.float32$"
    with pytest.raises(TypeError, match=message):
        LabelSmoothing(7).distribution(target)
    with pytest.raises(TypeError, match=message):
        LabelSmoothing(7)(torch.randn(1, 2, 7), target)


@pytest.mark.bad_input
@pytest.mark.parametrize("shape", [(2, 3, 6), (2, 3, 8), (2, 2, 7), (6, 7), (1, 3, 7)])
def test_logits_have_a_row_for_each_target(shape):
    target = torch.ones(2, 3, dtype=torch.long)
    message = r"^logits must have the shape \(2, 3, 7\), got "
    with pytest.raises(ValueError, match=message) as caught:
        LabelSmoothing(7)(torch.randn(shape), target)
    assert str(caught.value).endswith(str(shape))
