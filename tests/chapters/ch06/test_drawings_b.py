"""ch06/drawings_b.py: measurements hold where they should, and not elsewhere."""

import pytest
import torch

from annotated.chapters.ch06 import drawings_b as ch06b


def slopes(fades=0.35):
    """Gradients as the page finds them: post-norm's decoder fades by layers."""
    made = {}
    for stack in ("encoder", "decoder"):
        for norm in ("pre", "post"):
            for depth in (2, 4, 8, 16, 32):
                whole = torch.full(
                    (depth,), (2 / depth) ** 0.5 if norm == "pre" else 1.0
                )
                if (stack, norm) == ("decoder", "post"):
                    whole = torch.exp(fades * torch.arange(1.0 - depth, 1))
                for seed in (0, 1, 2):
                    made[stack, norm, depth, seed] = whole
    return made


def test_gradients_that_do_not_fade_are_not_what_the_page_says():
    ch06b.by_depth(slopes())
    with pytest.raises(AssertionError):
        ch06b.by_depth(slopes(fades=0.0))


def test_what_is_let_through_and_what_collapses_is_held_to_the_text():
    even = dict.fromkeys(ch06b.KINDS, 0.99)
    passed = dict.fromkeys([("pre", False), ("pre", True), "unlike"], even)
    passed["post", False] = even | {"cross-attention": 0.7}
    passed["post", True] = dict.fromkeys(ch06b.KINDS, 0.7)
    ch06b.passed_table(passed)
    with pytest.raises(AssertionError):
        ch06b.passed_table(passed | {("post", False): even})
    bare = dict.fromkeys(ch06b.KINDS, 0.7) | {"cross-attention": 0.99}
    with pytest.raises(AssertionError):  # all of it comes through
        ch06b.passed_table(passed | {("post", False): even, ("post", True): bare})
    apart, equal = ({"encoder": x, "decoder": x} for x in (0.5, 1e-5))
    words = {("pre", 32): [apart], ("post", 6): [apart], ("post", 32): [equal]}
    ch06b.ends_table(words)
    with pytest.raises(AssertionError):
        ch06b.ends_table(words | {("post", 32): [apart]})
