"""ch03/drawings.py: what its pictures compute, and what its checks refuse."""

import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from annotated.attention import MultiHeadAttention, scaled_dot_product_attention
from annotated.chapters.ch03 import drawings as ch03
from annotated.recipes.several_heads import SIDE, Giving, MissingLetter
from tests.defined import defined
from tests.shown import soup


def text_of(html) -> str:
    return soup(html).get_text(" ")


split, multi_head = defined("03_multi_head_attention", "split", "multi_head")


def straight(x, memory, W_q, W_k, W_v, W_o, heads):
    """Split by a view alone."""
    maps = (x, W_q), (memory, W_k), (memory, W_v)
    b, t, d = x.shape
    parts = ((y @ W.T).reshape(b, heads, -1, d // heads) for y, W in maps)
    answers, _ = scaled_dot_product_attention(*parts)
    return answers.reshape(b, t, d) @ W_o.T


def doubled(*given):
    """The maps of as many heads, each of the whole width."""
    return multi_head(*given) + 0 * multi_head(*given)


X = torch.zeros(5, 6)
X[0, 3] = X[2, 4] = X[4, 5] = 1  # where the nouns stand
X[0, 0] = X[2, 1] = X[1, 2] = 2
MAPS = [*torch.randn(3, 6, 6, generator=torch.Generator().manual_seed(1))]


def test_attention_is_compared_with_loops(capsys):
    swapped = X.clone()
    maps = [*MAPS, torch.eye(6)]
    own = multi_head(X[None], X[None], *maps, 3)[0]
    own[1] = torch.cat([own[1, :4], own[1, :2]])  # as if mary were susan
    with pytest.raises(AssertionError, match="one by one"):
        ch03.check_multi_head(multi_head, X, swapped, own, *maps)
    one = torch.zeros(5, 6)  # a toy whose names are all alike
    alike = multi_head(one[None], one[None], *maps, 3)[0]
    ch03.check_multi_head(multi_head, one, one, alike, *maps)
    assert capsys.readouterr().out.count("✓") == 5
    with pytest.raises(AssertionError, match="equal to loops"):
        ch03.check_multi_head(straight, one, one, alike, *maps)


def test_costs_are_counted():
    ch03.check_costs(multi_head)
    with pytest.raises(AssertionError, match="1 heads"):
        ch03.check_costs(doubled)


def test_the_class_is_compared_with_pytorch(monkeypatch):
    ch03.check_class()
    right = MultiHeadAttention.attend

    def unmasked(self, q, k, v, mask=None):
        return right(self, q, k, v)

    monkeypatch.setattr(MultiHeadAttention, "attend", unmasked)
    with pytest.raises(AssertionError, match="causal: nn"):
        ch03.check_class()


def test_heads_that_flip_a_guess_are_named(monkeypatch):
    def guess(model, text, removed=()):
        return {"guess": " " if 2 in removed else "r"}

    monkeypatch.setattr(ch03, "guess", guess)
    said = text_of(ch03.flips(MissingLetter(MultiHeadAttention(64, 8))))
    assert "the guess is r; without head 2 it's ␣." in said
    monkeypatch.setattr(ch03, "guess", lambda *given: {"guess": "r"})
    said = text_of(ch03.flips(MissingLetter(MultiHeadAttention(64, 8))))
    assert "no single head flips it" in said


def test_neighbours_and_the_rest_are_all_the_weight():
    average = torch.full((8, 2 * SIDE + 1), 0.0)
    average[:, SIDE + 1], average[:, 0] = 0.7, 0.3
    cells = soup(ch03.neighbours(average)).select(".annotated-cell")
    assert [cell.text for cell in cells[:6]] == ["0", "0", "0", "0.7", "0", "0.3"]
    average[5] = F.one_hot(torch.tensor(3), 2 * SIDE + 1)  # far to the left
    picture = soup(ch03.neighbours(average))
    cells = picture.select(".annotated-cell")
    assert [cell.text for cell in cells[:6]] == ["0", "0", "0", "0", "0", "1"]
    said = picture.get_text(" ")
    assert re.search(r"head 5\b.*head 0\b.*head 7\b", said, re.DOTALL)


def test_three_heads_are_watched_while_they_learn():
    torch.manual_seed(0)
    by_step = ch03.learning(Giving(3))  # as if it were trained
    assert list(by_step) == [0, 25, 50, 100, 200, 400]
    assert torch.equal(by_step[400][0], by_step[0][0]) and max(by_step[0][1]) < 0.2
    assert min(by_step[200][1]) > 0.5
    # means over sentences, in which a place has its head or hasn't
    nouns = [0, 2, 4]
    assert by_step[25][0].amax(dim=0)[nouns].min() < 0.4
    assert by_step[200][0].amax(dim=0)[nouns].min() > 0.7
    trained = torch.eye(5)[[4, 2, 0]]
    said = text_of(ch03.part_ways(trained, [1.0, 0.5, 0.2]))
    assert "who verb what to whom" in said and "whom 20%" in said
    apart, together = (trained, [1, 1, 1]), (trained[[0, 0, 2]], [0.4, 0.3, 0.6])
    said = text_of(ch03.parted({0: together, 25: together, 50: apart, 100: apart}))
    assert "from step 50 on" in said and "what waits longest" in said
    assert "30% of its answers" in said


def test_heads_that_start_alike_are_seen_to_stay_alike(monkeypatch):
    tokens = torch.tensor([[0, 48, 8, 49, 1]])
    ch03.check_alike(tokens)

    def apart(model, **given):
        nn.init.normal_(model.attention.query_map.weight)

    monkeypatch.setattr(ch03, "train_giving", apart)
    with pytest.raises(AssertionError, match="started alike"):
        ch03.check_alike(tokens)


def test_even_weights_forget_an_order_and_uneven_ones_do_not(monkeypatch):
    tokens = torch.tensor([[0, 48, 8, 49, 1]])
    ch03.check_orders(Giving(1), tokens)
    monkeypatch.setattr(ch03.nn.init, "zeros_", lambda weight: weight)  # uneven
    with pytest.raises(AssertionError, match="all six orders"):
        ch03.check_orders(Giving(1), tokens)


def test_a_rank_below_the_width_is_refused():
    ch03.check_rank(torch.randn(100, 64).double())
    with pytest.raises(AssertionError, match="rank 3"):
        ch03.check_rank(torch.randn(3, 64).double())


def test_lengths_repeated_the_wrong_way_put_weight_on_padding():
    lengths = torch.tensor([3, 9])
    right = lengths.repeat_interleave(3)
    ways = {"repeat": lengths.repeat(3), "repeat_interleave": right}
    rows = text_of(ch03.on_padding(lengths, ways)).split()
    assert rows[-3:] == ["0%", "0%", "0%"]
    with pytest.raises(AssertionError, match="repeat: "):
        ch03.on_padding(lengths, {"repeat": right})


def test_weights_that_do_not_get_flatter_are_refused():
    sorted_weights = defined("03b_layouts", "sorted_weights")
    ch03.check_temperature(sorted_weights)
    with pytest.raises(AssertionError):
        ch03.check_temperature(
            lambda heads, divisor: sorted_weights(heads, 512 // heads)
        )


def test_an_einsum_that_forgets_the_memory_is_refused():
    x, W = torch.randn(2, 5, 12), torch.randn(3, 3, 4, 12)
    W_o = torch.randn(12, 3, 4)

    def by_module(x, memory):
        return multi_head(x, memory, *W.flatten(1, 2), W_o.flatten(1), 3)

    ch03.check_einsum(by_module, x, *W, W_o)
    with pytest.raises(AssertionError, match="cross"):
        ch03.check_einsum(lambda x, memory: by_module(x, x), x, *W, W_o)
