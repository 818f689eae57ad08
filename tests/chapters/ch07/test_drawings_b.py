"""ch07/drawings_b.py: Adam by hand is compared, and a wrong one refused."""

from annotated.chapters.ch07 import drawings_b as ch07b


def test_weights_in_a_running_mean_come_from_its_steps():
    found = ch07b.weights_present(0.5, 3)
    assert found.tolist() == [[0.5, 0, 0], [0.25, 0.5, 0], [0.125, 0.25, 0.5]]
