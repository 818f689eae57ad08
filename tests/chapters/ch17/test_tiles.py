"""ch17/tiles.py: tile by tile, attention is what it is written out."""

import pytest
import torch
from torch.nn import functional as F

from annotated.attention import scaled_dot_product_attention
from annotated.chapters.ch17.tiles import TiledAttention, forward_tiles, tiles
from annotated.sparse import Pattern

T, S, K, V = 11, 13, 5, 3
PATTERNS = {
    "causal": Pattern(low=0),
    "all": Pattern(),
    "empty rows": Pattern(low=3, high=4),
    "nobody": Pattern(low=99),
}


@pytest.fixture
def inputs():
    draws = torch.Generator().manual_seed(0)
    shapes = ((2, 7, T, K), (2, 7, S, K), (2, 7, S, V))
    q, k, v = (torch.randn(shape, generator=draws).double() for shape in shapes)
    return 4 * q, k, v  # scores far from each other


def mask_of(sees):
    return sees(torch.arange(T)[:, None], torch.arange(S))


@pytest.mark.parametrize("size", [1, 4, 13, 50])
@pytest.mark.parametrize("sees", PATTERNS.values(), ids=PATTERNS)
def test_output_and_log_sum_exp(inputs, sees, size):
    q, k, v = inputs
    mask = mask_of(sees)
    found, lse = forward_tiles(q, k, v, sees, size)
    expected, _ = scaled_dot_product_attention(q, k, v, mask)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    scores = (q @ k.mT / K**0.5).masked_fill(~mask, -torch.inf)
    expected = scores.logsumexp(dim=-1, keepdim=True)
    torch.testing.assert_close(lse, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [1, 4, 50])
@pytest.mark.parametrize("sees", PATTERNS.values(), ids=PATTERNS)
def test_gradients(inputs, sees, size):
    results = []
    for attend in (
        lambda q, k, v: TiledAttention.apply(q, k, v, sees, size),
        lambda q, k, v: scaled_dot_product_attention(q, k, v, mask_of(sees))[0],
    ):
        qkv = [x.clone().requires_grad_() for x in inputs]
        output = attend(*qkv)
        upstream = torch.arange(output.numel()).reshape(output.shape).cos().double()
        results.append([output, *torch.autograd.grad(output, qkv, upstream)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


def test_scores_that_would_overflow():
    q, k, v = torch.randn(3, 9, 4).mul(200)
    found, _ = forward_tiles(q, k, v, Pattern(), 2)
    expected = F.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)


def test_tiles_that_nobody_sees_are_never_computed(inputs):
    q, k, _ = inputs
    walked = [(r.start, c.start) for r, c, _ in tiles(q, k, Pattern(low=0), 4)]
    assert walked == [(a, b) for a in (0, 4, 8) for b in (0, 4, 8) if b <= a]
    assert [s.shape[-2:] for *_, s in tiles(q, k, Pattern(), 9)] == [
        (9, 9),
        (9, 4),
        (2, 9),
        (2, 4),
    ]


def test_nothing_large_is_saved(inputs):
    q, k, v = (x.requires_grad_() for x in inputs)
    shapes = []

    def note(tensor):
        shapes.append(tuple(tensor.shape[-2:]))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        TiledAttention.apply(q, k, v, Pattern(), 4)
    assert sorted(shapes) == sorted([(T, K), (S, K), (S, V), (T, V), (T, 1)])


def test_a_tile_has_a_size(inputs):
    with pytest.raises(ValueError, match="size"):
        forward_tiles(*inputs, Pattern(), 0)
