"""ch05/distance.py: what was recorded is what page 5c trains."""

import pytest
import torch

from annotated.chapters.ch05.distance import (
    ALiBiAttention,
    T5Attention,
    neighbours_named,
    t5_bucket,
)
from annotated.chapters.ch05.reading import POSITIONS


def test_buckets_are_exact_near_by_and_shared_far_away():
    distances = torch.tensor([0, 1, 7, 8, 11, 12, 31, 32, 90, 91, 128, 10_000])
    wanted = [0, 1, 7, 8, 8, 9, 11, 12, 14, 15, 15, 15]
    assert t5_bucket(-distances).tolist() == wanted
    assert t5_bucket(distances[1:]).tolist() == [16 + b for b in wanted[1:]]
    assert t5_bucket(torch.tensor([-21, -20]), furthest=24).tolist() == [15, 14]


def test_alibi_costs_a_slope_for_each_step_away():
    offset = torch.tensor([[0, 1, 2], [-1, 0, 1], [-2, -1, 0]])
    bias = ALiBiAttention(16, heads=2).bias(offset)
    assert torch.equal(bias[0], -offset.abs() / 16)
    assert torch.equal(bias[1], -offset.abs() / 256)


@pytest.mark.parametrize("kind", [ALiBiAttention, T5Attention])
def test_biased_attention_is_attention_with_the_bias_as_its_mask(kind):
    layer, x = kind(16, heads=2), torch.randn(3, 5, 16)
    mask = torch.ones(3, 1, 1, 5, dtype=torch.bool)
    mask[0, ..., 3:] = False
    q, k, v = layer.project(x)
    offset = torch.arange(5) - torch.arange(5)[:, None]
    bias = layer.bias(offset).expand(3, -1, -1, -1).masked_fill(~mask, -torch.inf)
    heads = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    expected = layer.output_map(heads.transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(x, mask=mask), expected)


@pytest.mark.parametrize("kind", [ALiBiAttention, T5Attention])
def test_with_more_keys_the_queries_are_the_last(kind):
    layer, x = kind(16, heads=2), torch.randn(3, 5, 16)
    torch.testing.assert_close(layer(x[:, 3:], x), layer(x)[:, 3:])


def test_t5_tells_left_from_right_and_alibi_does_not():
    offset = torch.arange(5) - torch.arange(5)[:, None]
    alibi, t5 = (
        kind(16, heads=2).bias(offset) for kind in (ALiBiAttention, T5Attention)
    )
    assert torch.equal(alibi, alibi.mT) and not torch.allclose(t5, t5.mT)


def test_t5_looks_its_numbers_up():
    layer = T5Attention(16, heads=2, furthest=24)
    offset = torch.arange(40) - torch.arange(40)[:, None]
    table, bucket = layer.table.weight, t5_bucket(offset, furthest=24)
    for head, query, key in [(0, 3, 7), (1, 30, 2), (1, 0, 39)]:
        number = table[bucket[query, key], head]
        assert layer.bias(offset)[head, query, key] == number


class Neighbour(torch.nn.Module):
    """Names the symbol before each one, or the one after."""

    def __init__(self, shift: int):
        super().__init__()
        self.shift = shift

    def forward(self, tokens, mask):
        named = tokens.roll(self.shift, dims=1)
        return torch.nn.functional.one_hot(named, POSITIONS["symbols"]).float()


def test_both_neighbours_are_told_from_others():
    before, either = neighbours_named(Neighbour(1), 30)
    assert before.tolist() == [1.0] * 29 and either == 1
    before, either = neighbours_named(Neighbour(-1), 30)
    assert before.mean() < 0.3 and either == 1
    before, either = neighbours_named(Neighbour(2), 30)
    assert before.mean() < 0.3 and either < 0.5
