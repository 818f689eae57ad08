"""annotated/training.py: one optimiser step a batch, recorded as it was."""

import math
import time

import pytest
import torch
from torch import nn

from annotated.training import fit

KEYS = {"step", "loss", "gradient_norm", "cpu_seconds"}


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


def test_after_is_called_with_the_number_of_steps_taken():
    model, seen = Pulled(1), []

    def after(step):
        seen.append((step, model.place.item()))

    fit(model, pull, [torch.ones(1)] * 3, sgd(model), after=after)
    assert seen == [(1, -1.0), (2, -2.0), (3, -3.0)]


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
@pytest.mark.parametrize("clip", [0, 0.0, -1.0, math.nan])
def test_clip_must_be_positive(clip):
    model, batches = regression(1)
    with pytest.raises(ValueError, match=f"^clip must be positive, got {clip}$"):
        fit(model, squared_error, batches, sgd(model), clip=clip)


@pytest.mark.bad_input
@pytest.mark.parametrize("empty", [[], iter(())])
def test_there_must_be_a_batch(empty):
    model, _ = regression(1)
    with pytest.raises(
        ValueError, match=r"^batches must hold at least one batch, got n"
    ):
        fit(model, squared_error, empty, sgd(model))
