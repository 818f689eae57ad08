"""ch17/pattern_drawings.py: what is drawn is what the masks hold."""

import pytest
import torch

from annotated.chapters.ch17 import pattern_drawings as patterns
from annotated.sparse import layers_to_reach

T, L = 24, 4


def by_hand(name, i, j, causal=True):
    """Whether i sees j, in other words."""
    if causal and j > i:
        return False
    apart, half = abs(i - j), T // 2
    return {
        "full": True,
        "window": apart < L,
        "dilated": apart in (0, 2, 4, 6),
        "strided": apart < L or apart % L == 0,
        "fixed": i // L == j // L or j % L == L - 1,
        "window + global": apart < L or {i, j} & {0, half} != set(),
    }[name]


@pytest.mark.parametrize("causal", [True, False])
def test_patterns_are_what_their_names_say(causal):
    found = patterns.named(T, L, causal)
    assert len(found) == 6
    for name, pattern in found.items():
        mask = pattern.mask(T)[0, 0]
        wanted = [[by_hand(name, i, j, causal) for j in range(T)] for i in range(T)]
        assert torch.equal(mask, torch.tensor(wanted)), name


def test_a_share_is_rounded_and_only_all_is_all():
    words = [patterns.share(part, 300) for part in (110, 299, 300)]
    assert words == ["37\u00a0%", "99\u00a0%", "100\u00a0%"]


@pytest.mark.parametrize(("t", "stride"), [(16, 4), (64, 8), (61, 8)])
def test_all_three_uses_reach_everything_in_two_layers(t, stride):
    found = patterns.uses(t, stride)
    assert [layers_to_reach(masks) for masks in found.values()] == [2, 2, 2]
    near, every = found["one step per layer"]
    assert layers_to_reach([every, near]) == 2  # the far step first
    assert near[-1].sum() == stride
    assert torch.equal(found["both in every head"][0], near | every)
    assert torch.equal(found["one step per head"][0][0, 1], every)
