"""annotated/recipes/rates.py: learning rates of four shapes."""

import pytest

from annotated.recipes.rates import RATE_SHAPES, train_deep


@pytest.mark.parametrize(
    ("shape", "shares"),
    [
        ("constant", [1, 1, 1, 1]),
        ("climbing, then constant", [0.5, 1, 1, 1]),
        ("falling", [1, 1, 0.5, 0.25]),
        ("climbing, then falling", [0.5, 1, 0.5, 0.25]),
    ],
)
def test_a_rate_climbs_for_forty_steps_or_falls_after_them(shape, shares):
    assert [RATE_SHAPES[shape](n) for n in (20, 40, 160, 640)] == shares


def test_step_n_of_the_deep_model_has_the_rate_of_n():
    history = train_deep(lambda n: n / 1000, 3, 4, "cpu")
    assert [r["learning_rate"] for r in history] == [0.001, 0.002, 0.003, 0.004]
