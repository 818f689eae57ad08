"""annotated/page/records.py: runs by what they have in common."""

import torch

from annotated.page.records import dots, grouped, mean_of, percent, span


def test_runs_of_a_group_stay_in_order_and_none_gets_lost():
    rows = [{"way": w, "seed": s} for s, w in enumerate(("b", "a", "b"))]
    rows.append({"way": "b", "steps": 2})
    runs = grouped(iter(rows), "way", "steps")
    assert list(runs) == [("b", None), ("a", None), ("b", 2)]
    assert [row["seed"] for row in runs["b", None]] == [0, 2]
    assert grouped(rows, "way").keys() == {("b",), ("a",)}


def test_numbers_stand_in_a_row():
    assert dots([0.5, 1], ".0%") == "50% · 100%" and dots(iter([3])) == "3"


def test_means_are_of_the_runs_that_have_the_same_entries():
    rows = [
        {"kind": kind, "bits": bits} for kind, bits in (("a", 1), ("b", 5), ("a", 2))
    ]
    assert mean_of(rows, "bits", "kind") == {("a",): 1.5, ("b",): 5}


def test_spans_have_one_number_if_they_look_the_same():
    assert span([1.001, 0.999], ".2f") == "1.00" and span([2, 1, 3]) == "1 to 3"


def test_shares_are_percentages():
    assert percent(0.5, 1 / 3) == "50 %, 33 %" and percent(torch.tensor(0.07)) == "7 %"
