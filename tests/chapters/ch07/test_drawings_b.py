"""ch07/drawings_b.py: Adam by hand is compared, and a wrong one refused."""

import pytest

from annotated.chapters.ch07 import drawings_b as ch07b


def adam(gradients, betas=(0.9, 0.98), eps=1e-9, correct=True):
    m = u = 0.0
    for n, g in enumerate(gradients, start=1):
        m = betas[0] * m + (1 - betas[0]) * g
        u = betas[1] * u + (1 - betas[1]) * g**2
        part = [1 - beta**n if correct else 1.0 for beta in betas]
        yield m / part[0] / ((u / part[1]) ** 0.5 + eps)


@pytest.mark.parametrize("proof", [ch07b.check_adam, ch07b.check_memory])
def test_adam_passes_and_adam_without_its_correction_does_not(proof, capsys):
    proof(adam)
    assert "✓" in capsys.readouterr().out
    with pytest.raises(AssertionError):
        ch07b.check_adam(lambda *given: adam(*given, correct=False))


def test_weights_in_a_running_mean_come_from_its_steps():
    found = ch07b.weights_present(0.5, 3)
    assert found.tolist() == [[0.5, 0, 0], [0.25, 0.5, 0], [0.125, 0.25, 0.5]]
