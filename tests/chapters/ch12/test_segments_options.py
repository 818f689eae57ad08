"""ch12/segments_options.py: what page 12c tries, and what was recorded."""

from dataclasses import replace
from math import log

import pytest
import torch

from annotated.chapters.ch12 import segments_options as recipe
from annotated.chapters.ch12.segments import SEGMENTS
from annotated.chapters.ch12.segments_options import (
    AttachedXL,
    attention_entropy,
    bits_at,
    last_output,
    reach_model,
    reached_by_change,
    reached_by_gradient,
    remembered,
    swapped_update,
    times_added,
)
from annotated.segments import segments
from annotated.transformer_xl import TransformerXL, update_memory


@pytest.mark.parametrize("mem_len, twice", [(4, []), (8, [2]), (16, [2, 3, 4])])
def test_doubled_positions_stay_until_they_slide_out(mem_len, twice):
    right, swapped = (
        remembered([4] * 9, mem_len, ext_len=2, update=update)
        for update in ("right", "swapped")
    )
    assert all(len(set(kept)) == len(kept) for kept in right)
    doubled = [n for n, kept in enumerate(swapped, 1) if len(set(kept)) < len(kept)]
    assert doubled == twice


@pytest.mark.parametrize("memory", [0, 3, 8])
def test_swapped_lengths_are_harmless_without_extension(memory):
    generator = torch.Generator().manual_seed(0)
    old, new = (torch.randn(2, n, 3, generator=generator) for n in (memory, 5))
    for mem_len in (2, 6, 20):
        found = swapped_update(old, new, mem_len)
        assert torch.equal(found, update_memory(old, new, mem_len))
    assert not swapped_update(old, new.requires_grad_(), 4).requires_grad


def test_positions_pile_up_in_place_and_are_double_in_a_copy():
    assert times_added(2, mem_len=6, count=4, in_place=True) == [4, 4, 3, 3, 2, 2]
    assert times_added(2, mem_len=6, count=4, in_place=False) == [2] * 6
    assert times_added(2, 6, 4, in_place=False, positioned=False) == [1] * 6
    assert times_added(2, 6, 4, in_place=True, positioned=False) == [3, 3, 2, 2, 1, 1]
    assert times_added(2, mem_len=6, count=1, in_place=True) == []


def test_only_raw_queries_sharpen_as_the_stream_grows():
    steady = [attention_entropy(growth, normalised=True) for growth in (1, 10, 100)]
    assert max(steady) - min(steady) < 0.01
    raw = [attention_entropy(growth, normalised=False) for growth in (1, 10, 100)]
    assert raw[0] == pytest.approx(steady[0], abs=0.02) == pytest.approx(1.74, abs=0.02)
    assert raw[1] < 0.4 and raw[2] < 0.05
    assert attention_entropy(0.0, normalised=False, keys=5) == pytest.approx(log(5))


@pytest.mark.parametrize("layers", [1, 3])
def test_a_change_reaches_layers_times_memory_and_a_gradient_the_segment(layers):
    text = torch.arange(20) % 7
    seen = 4 * (layers + 1)
    for kind, reach in ((TransformerXL, 4), (AttachedXL, seen)):
        model = reach_model(kind, layers=layers)
        changed = reached_by_change(model, text, 4)
        assert changed.tolist() == [False] * (20 - seen) + [True] * seen
        gradient = reached_by_gradient(model, text, 4)
        assert (gradient > 0).tolist() == [False] * (20 - reach) + [True] * reach


def test_attached_memory_is_that_of_the_model():
    text = torch.arange(13) % 5
    one, other = reach_model(TransformerXL), reach_model(AttachedXL)
    assert torch.equal(last_output(one, text, 4), last_output(other, text, 4))
    whole = reach_model(TransformerXL, mem_len=20)
    near = whole(text[None])[0][0, -1]
    torch.testing.assert_close(last_output(whole, text, 4), near, rtol=0, atol=1e-4)


def test_hooks_are_gone_afterwards():
    model = reach_model(TransformerXL)
    assert not model.training
    reached_by_gradient(model, torch.arange(6), 3)
    assert not model.embedding._forward_hooks


def test_bits_by_other_lengths(monkeypatch):
    text = torch.randint(0, 96, (81,), generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(recipe, "library_ids", lambda split: text)
    monkeypatch.setitem(SEGMENTS, "batch", 2)
    model = reach_model(TransformerXL)
    before = model.config
    found = bits_at(model, 10, 20, clamp_len=5)
    assert model.config == before
    model.config = replace(before, mem_len=20, clamp_len=5)
    memories, total = None, []
    for tokens, target in segments(text, 2, 10):
        losses, memories = model.loss(tokens, target, memories)
        total.append(losses)
    assert found == pytest.approx(torch.cat(total, 1).mean().item() / log(2), abs=1e-5)
    model.config = before
    assert bits_at(model, 10, 20) != found
    assert bits_at(model, 7, 80) == pytest.approx(bits_at(model, 40, 80), abs=1e-5)
