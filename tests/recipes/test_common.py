"""annotated/recipes/common.py: the optimisers and learning rates of several recipes."""

import pytest
from torch import nn

from annotated.recipes.common import one_cycle, paper_adam


def rates_of(optimizer, schedule, steps):
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return rates


@pytest.mark.parametrize("steps", [2, 3, 10, 19])
def test_one_cycle_of_a_few_steps_comes_to_its_rate(steps):
    rates = rates_of(*one_cycle(nn.Linear(1, 1), 0.5, steps), steps)
    assert rates[0] < 0.05 and rates[1] == max(rates) == 0.5


def test_one_cycle_rises_for_a_tenth_of_the_steps():
    rates = rates_of(*one_cycle(nn.Linear(1, 1), 0.5, 100), 100)
    assert max(rates) == pytest.approx(0.5) and rates.index(max(rates)) == 9
    assert rates[0] < 0.1 and rates[-1] < 1e-3


def test_the_optimiser_is_that_of_the_paper():
    optimizer, _ = paper_adam(nn.Linear(2, 2), lambda n: 0.5)
    group = optimizer.param_groups[0]
    assert (group["betas"], group["eps"], group["lr"]) == ((0.9, 0.98), 1e-9, 0.5)


def test_step_n_has_the_rate_of_n():
    made = paper_adam(nn.Linear(2, 2), lambda n: n / 1000)
    assert rates_of(*made, 3) == [0.001, 0.002, 0.003]
