"""ch06/drawings_b.py: measurements hold where they should, and not elsewhere."""

import pytest
import torch
from bs4 import BeautifulSoup
from torch import nn

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


def nearly(x, eps=1e-6):
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)


def said(html):
    soup = BeautifulSoup(html.text, "html.parser")
    return soup.select_one("[role=img]")["aria-label"]


def test_gradients_that_do_not_fade_are_not_what_the_page_says(capsys):
    ch06b.check_fading(slopes())
    assert "post-norm" in capsys.readouterr().out
    with pytest.raises(AssertionError):
        ch06b.check_fading(slopes(fades=0.0))


def test_plots_say_where_gradients_end():
    assert "from 1e+00 at the last layer to 2e-05 at the first" in said(
        ch06b.by_depth(slopes())
    )
    assert "falls to 0.25 at 32 layers" in said(ch06b.law(slopes()))


def test_a_norm_that_is_right_is_not_nearly_right():
    rows = BeautifulSoup(ch06b.nearly_table(nearly).text, "html.parser")
    assert rows.select("tbody tr")[0].select("td")[0].text in ("93.5%", "93.6%")
    with pytest.raises(AssertionError):
        ch06b.nearly_table(lambda x: nn.functional.layer_norm(x, x.shape[-1:]))
    with pytest.raises(AssertionError):
        ch06b.nearly_table(lambda x: nearly(x) / 2)
    assert "0.00" in ch06b.moves_table().text


def test_what_is_let_through_and_what_collapses_is_held_to_the_text(capsys):
    even = dict.fromkeys(ch06b.KINDS, 0.99)
    passed = dict.fromkeys([("pre", False), ("pre", True), "unlike"], even)
    passed["post", False] = even | {"cross-attention": 0.7}
    passed["post", True] = dict.fromkeys(ch06b.KINDS, 0.7)
    ends = torch.tensor([1e-5, 1.0]), torch.tensor([0.2, 1.0])
    ch06b.check_passed(passed, *ends)
    assert "lets 0.69 through, 31 of them 8e-06" in capsys.readouterr().out
    assert "0.70" in ch06b.passed_table(passed).text
    with pytest.raises(AssertionError):
        ch06b.check_passed(passed | {("post", False): even}, *ends)
    bare = dict.fromkeys(ch06b.KINDS, 0.7) | {"cross-attention": 0.99}
    with pytest.raises(AssertionError):  # all of it comes through
        ch06b.check_passed(
            passed | {("post", False): even, ("post", True): bare}, *ends
        )
    apart, equal = ({"encoder": x, "decoder": x} for x in (0.5, 1e-5))
    words = {("pre", 32): [apart], ("post", 6): [apart], ("post", 32): [equal]}
    assert "1e-05" in ch06b.ends_table(words).text
    with pytest.raises(AssertionError):
        ch06b.ends_table(words | {("post", 32): [apart]})
