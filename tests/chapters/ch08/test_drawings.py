"""ch08/drawings.py: its drawings draw what ran, its checks find what didn't."""

from functools import partial

import pytest
import torch
from torch.nn import functional as F

from annotated.chapters.ch08 import drawings as ch08
from annotated.page.notebook import recorded
from annotated.recipes.copy_task import COPY, SeesAhead, copy_batches
from annotated.transformer import Transformer, TransformerConfig
from tests.defined import defined

CONFIG = TransformerConfig(11, 11, **COPY)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Transformer(CONFIG).eval()


def test_only_letters_in_their_place_are_framed():
    for written in ("fae.", "fadd."):
        shown = ch08.beside("fad.", written).text
        assert shown.count("var(--at-right)") == 3


def test_by_hand_writes_what_the_weights_fetch():
    symbols = F.one_hot(torch.tensor([1, 6, 1, 4]), 11).float()
    picture = ch08.by_hand("afad", torch.eye(4)[[3, 2, 1]], symbols)._repr_html_()
    assert "comes next: daf" in picture and "columns a d f" in picture


def test_the_first_loss_is_that_of_the_page_and_another_is_refused(capsys):
    source, target = next(copy_batches(seed=0, steps=1, size=128))
    loss, guide = ch08.first_loss(CONFIG, source, target[:, :-1], target[:, 1:])
    assert abs(loss - guide) < 0.5
    ch08.check_first_losses(CONFIG, source, target, loss)
    said = capsys.readouterr().out
    assert "3.40 (3.40)" in said and "tied embeddings 4.52" in said
    with pytest.raises(AssertionError):
        ch08.check_first_losses(CONFIG, source, target, loss + 0.003)


def test_orders_are_held_to_what_ran_without_positions(capsys):
    rows = recorded("ablations")["rows"]
    counts = torch.tensor([[0, 1, 1], [0, 2, 0]])
    with pytest.raises(AssertionError):
        ch08.check_orders(counts, 1.17, rows)
    ch08.check_orders(torch.ones(2, 6, dtype=torch.long), 1.17, rows)
    assert "allows 1.79 nats" in capsys.readouterr().out


generate, _ = defined("08_copy_task", "generate", "START")


def test_a_loop_that_writes_something_else_is_refused(model, capsys):
    source = torch.tensor([[1, *range(2, 11)], [1] * 10])
    ch08.check_generate(generate, [model], source)
    assert capsys.readouterr().out.count("✓") == 1
    with pytest.raises(AssertionError, match="the loop writes"):
        ch08.check_generate(partial(generate, start=2), [model], source)
    weight, (first,) = model.output.weight.data, generate(model, source[:1], 1)
    weight[[first, 3]] = weight[[3, first]]  # now that is a c, and ends the sequence
    with pytest.raises(AssertionError, match="the loop writes"):
        ch08.check_generate(lambda *given, end: generate(*given), [model], source)


def test_weights_come_back_to_an_8_bit_step(model):
    twin = SeesAhead(CONFIG)
    packed, copy = ch08.rounded(twin)
    weight, back = twin.output.weight, copy.output.weight
    step = weight.abs().amax(dim=1, keepdim=True) / 127
    assert ((back - weight).abs() <= 0.51 * step).all()
    assert type(copy) is SeesAhead and not copy.training
    assert {"shapes", "whole", "real"} == packed.keys()
