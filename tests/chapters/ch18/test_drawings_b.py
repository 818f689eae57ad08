"""ch18/drawings_b.py: a ring, who holds what, and what is said of the record."""

from itertools import pairwise

import pytest

from annotated.chapters.ch18 import drawings_b as ch18b

TIMES = [
    {"batch": size, "one, wall": one, "two, wall": two}
    for size, one, two in (
        (8, [0.01, 0.008, 0.012], [0.012, 0.014, 0.01]),
        (512, [0.2, 0.2, 0.6], [0.12, 0.4, 0.1]),
    )
]
RECORD = {"times": TIMES}


# ---- pictures ------------------------------------------------------------------


def test_a_bucket_goes_when_its_layer_is_through_and_the_wire_is_free():
    assert ch18b.sends(3, 10, 4, wait=False) == [10, 20, 30]
    assert ch18b.sends(3, 10, 15, wait=False) == [10, 25, 40]
    assert ch18b.sends(3, 10, 4, wait=True) == [30, 34, 38]


# ---- tables --------------------------------------------------------------------


def test_losses_differ_relative_to_the_first():
    assert ch18b.gaps([2.0, -4.0], [2.0, -3.0]) == 0.25
    assert ch18b.gaps([2.0, 2.0], [2.0, 3.0]) == 0.5


def test_bytes_of_a_ring():
    assert ch18b.bytes_exchanged(10, 1) == 0
    assert ch18b.bytes_exchanged(10, 2) == 40
    assert ch18b.bytes_exchanged(10, 4) == 60


def test_what_each_process_holds():
    found = {mode: sum(parts.values()) for mode, parts in ch18b.held(4).items()}
    assert found == {"DDP": 16, "ZeRO-1": 10, "ZeRO-2": 7, "ZeRO-3, FSDP": 4}


# ---- the ring ------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_ring_adds_up_everything(n):
    numbers = [[7**p * (i + 1) for i in range(n)] for p in range(n)]
    total = [sum(column) for column in zip(*numbers, strict=True)]
    seen = ch18b.ring(numbers)
    assert len(seen) == 2 * (n - 1) + 1
    assert seen[0] == numbers and seen[-1] == [total] * n
    half = [
        number == wanted
        for row in seen[n - 1]
        for number, wanted in zip(row, total, strict=True)
    ]
    assert sum(half) == n, "each process has one whole sum after adding up"
    for before, after in pairwise(seen):
        changed = [a != b for a, b in zip(before, after, strict=True)]
        assert all(changed), "everyone gets something in every step"
        for one, other in zip(before, after, strict=True):
            assert sum(a != b for a, b in zip(one, other, strict=True)) == 1


# ---- what is said --------------------------------------------------------------


def test_how_many_times_as_fast():
    assert ch18b.gains(RECORD) == pytest.approx({8: 0.8, 512: 2})
