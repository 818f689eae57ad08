"""ch07/drawings_b.py: Adam by hand is compared, and a wrong one refused."""

import pytest

from annotated.chapters.ch07 import drawings_b as ch07b
from tests.defined import defined


@pytest.mark.parametrize("proof", [ch07b.check_adam, ch07b.check_memory])
def test_adam_passes_and_adam_without_its_correction_does_not(proof, capsys):
    proof(defined("07b_adam", "adam_moves"))
    assert "✓" in capsys.readouterr().out
    correction = "m / (1 - betas[0] ** n)", "m"
    with pytest.raises(AssertionError):
        ch07b.check_adam(defined("07b_adam", "adam_moves", mistake=correction))


def test_weights_in_a_running_mean_come_from_its_steps():
    found = ch07b.weights_present(0.5, 3)
    assert found.tolist() == [[0.5, 0, 0], [0.25, 0.5, 0], [0.125, 0.25, 0.5]]
