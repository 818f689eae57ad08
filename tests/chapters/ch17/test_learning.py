"""ch17/learning.py: what models under patterns see, and what they copied."""

from itertools import product

import pytest

from annotated.chapters.ch17 import learning as ch17_learning
from annotated.chapters.ch17.patterns import (
    SIDE,
    copy_patterns,
    image_patterns,
)
from annotated.sparse import local_pattern

DISTANCES = (5, 12, 16, 21)


@pytest.fixture(scope="module")
def copies():
    rows = []
    for name, layers, distance in product(copy_patterns(), (1, 2), DISTANCES):
        reach = 0.0 if name == "dilated" and distance == 5 else 1.0
        right = 0.06 if reach == 0 else 0.99 if layers == 1 else 0.98
        if name == "fixed, by head":
            reach = 0.2 if layers == 1 else 1.0
            right = 0.23 if layers == 1 else 0.31 if distance > 8 else 0.9
        row = {"pattern": name, "layers": layers, "distance": distance, "reach": reach}
        for seed in range(3 if reach else 1):
            rows.append(row | {"seed": seed, "right": right + 0.02 * (seed == 2)})
    longer = [{"right": right} for right in (0.5, 0.7, 0.6)]
    config = {"symbols": 16, "stride": 8, "longer": 2000, "steps": {"1": 7, "2": 9}}
    return {"config": config, "rows": rows, "longer": longer}


# ---- copying ---------------------------------------------------------------------


def test_the_limit_is_what_is_heard_and_guesses_of_the_rest():
    assert ch17_learning.limit(0.0, 16) == 1 / 16
    assert ch17_learning.limit(1.0, 16) == 1.0
    assert ch17_learning.limit(0.5, 4) == pytest.approx(0.625)


def test_percent_is_one_number_or_the_lowest_and_the_highest():
    assert ch17_learning.percent([0.501, 0.499]) == "50"
    assert ch17_learning.percent([0.9, 0.314, 0.5]) == "31–90"


def test_facts_of_copying_are_sorted_by_what_can_be_heard(copies):
    facts = ch17_learning.copy_facts(copies)
    assert facts["unheard"] == [0.06, 0.06]
    assert max(facts["short"]) == pytest.approx(0.25 - 0.23)
    assert set(facts["one layer"]) == {0.99, 1.01}
    assert set(facts["two layers"]) == {0.98, 1.0}
    assert len(facts["fixed"]) == 9 and max(facts["fixed"]) == pytest.approx(0.33)
    assert facts["longer"] == [0.5, 0.7, 0.6]


# ---- glyphs ----------------------------------------------------------------------


def test_a_pixel_sees_its_row_or_its_column():
    target = 9 * SIDE + 9
    named = image_patterns()
    seen = {
        name: ch17_learning.seen_pixels(heads, target) for name, heads in named.items()
    }
    assert seen["everything"] == [*range(target)]
    assert seen["row"] == [*range(target - 8, target)]
    above = [9 + SIDE * row for row in range(9)]
    assert seen["column"] == [*above, target - 1]
    assert seen["row and column"] == sorted({*seen["row"], *above})
    off = {pixel - 1 for pixel in above}
    assert seen["column of the pixel read"] == sorted({*seen["row"], *off})
    apart = (local_pattern(1), local_pattern(2))
    assert ch17_learning.seen_pixels(apart, 5) == [3, 4]
