"""ch07/drawings.py: what it computes, and what its proofs refuse."""

import pytest
import torch

from annotated.chapters.ch07 import drawings as ch07


def test_batches_by_tokens_hold_all_and_no_rectangle_is_too_large():
    lengths = [9, 3, 2, 5, 3, 6, 12, 1]
    groups = ch07.by_tokens(lengths, 12)
    assert sorted(length for group in groups for length in group) == sorted(lengths)
    assert max(len(group) * max(group) for group in groups) == 12
    assert groups[0] == [1, 2, 3, 3]  # 12 positions are still allowed


def test_targets_by_loops_keep_one_minus_epsilon_and_nothing_for_padding():
    rows = ch07.target_by_loops(torch.tensor([2, 0]), 5, 0.3)
    wanted = [[0, 0.1, 0.7, 0.1, 0.1], [0] * 5]
    assert torch.allclose(rows, torch.tensor(wanted, dtype=torch.double))


def test_each_sentence_or_each_token_weighs_the_same():
    weights = ch07.weights_of(torch.tensor([[3, 0, 0], [1, 4, 5]]))
    assert weights["tokens"].tolist() == [[0.25, 0, 0], [0.25] * 3]
    assert torch.allclose(weights["sentences"].sum(1), torch.tensor([0.5, 0.5]))


def test_a_floor_by_position_is_below_that_of_all_symbols():
    overall, by_position = ch07.floors()
    assert overall == pytest.approx(2.274, abs=1e-3)
    assert by_position == pytest.approx(1.122, abs=1e-3)


def test_a_run_has_collapsed_if_its_outputs_hardly_differ():
    rows = [{"differ": [0.5, 0.02, 0.009]}, {"differ": [0.5, 0.001, 0.2]}]
    assert [ch07.alike(rows, step) for step in (0, 1, -1)] == [0, 1, 1]


def test_ends_of_a_sweep_are_sorted_by_norm_shape_and_rate():
    rows = [
        {"norm": norm, "shape": "constant", "height": rate, "end": end}
        for norm, rate, end in [("post", 1, 0.5), ("pre", 1, 0.7), ("post", 1, 0.6)]
    ]
    assert ch07.ends({"rows": rows}) == {("constant", 1): [0.5, 0.6]}
    assert ch07.ends({"rows": rows}, "pre") == {("constant", 1): [0.7]}


def test_a_run_is_on_the_line_if_it_knows_no_more_than_frequencies():
    rows = [{"losses": [3.0, end]} for end in (2.28, 2.2, 2.1, 1.3)]
    assert ch07.on_line(rows) == 2
