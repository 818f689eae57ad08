"""Chapter 12's checks name what a reader broke; its drawings draw what was computed."""

from functools import partial

import pytest
import torch
from torch.nn import functional as F

from annotated.chapters.ch12 import drawings as ch12
from annotated.transformer_xl import relative_shift, update_memory


def line_of(x, before=1):
    return F.pad(x, (before, 1 - before)).flatten(-2)


SHIFTS = {
    "row 1 should begin with 12 11 10, but it is 13 12 11": (
        lambda x: line_of(x)[x.shape[0] - 1 : -1].unflatten(-1, x.shape)
    ),
    "row 3 should begin with 34 33 32 31 30, but it is 0 34": (
        lambda x: torch.cat([relative_shift(x)[:-1], line_of(x)[None, -6:-1]])
    ),
    "should begin with 12 11 10, but it is 12 11 99": (
        lambda x: relative_shift(x.where(x != 10, 99.0))
    ),
    "the shape is": lambda x: relative_shift(x)[:, :1],
}


@pytest.mark.parametrize("message", SHIFTS)
def test_a_wrong_shift_is_told_its_row(message):
    with pytest.raises(AssertionError, match=message):
        ch12.check_shifts(mine=SHIFTS[message])


def test_zeros_behind_the_rows_do_too(capsys):
    def behind(x):
        begin = x.shape[0] - 1
        return line_of(x, before=0)[begin : begin + x.numel()].unflatten(-1, x.shape)

    ch12.check_shifts(behind=behind, given=relative_shift)
    assert capsys.readouterr().out.startswith("✓ behind, given and the module's agree")


MEMORIES = {
    "mem_len=0: 0 should be kept, not 10": (
        lambda old, new, m: torch.cat([old, new], dim=-2)[..., -m:, :].detach()
    ),
    "should be detached": (
        lambda old, new, m: torch.cat([old, new], -2)[:, max(0, 10 - m) :]
    ),
    "should keep the last, in their order": (
        lambda old, new, m: update_memory(new, old, m)
    ),
}


@pytest.mark.parametrize("message", MEMORIES)
def test_a_wrong_memory_is_told_what_to_keep(message):
    with pytest.raises(AssertionError, match=message):
        ch12.check_memory(MEMORIES[message])


def test_a_right_memory_passes():
    ch12.check_memory(update_memory)


def read_in_order(model, batches, optimizer, keep=True, step=True):
    memories = None
    for tokens, target in batches:
        losses, new = model.loss(tokens, target, memories)
        memories = new if keep else None
        optimizer.zero_grad()
        losses.mean().backward()
        if step:
            optimizer.step()


def test_a_loop_is_compared_with_the_one_that_trains(capsys):
    ch12.check_loop(read_in_order)
    assert "✓ without detach(), it stops: Trying to" in capsys.readouterr().out
    for broken in ({"keep": False}, {"step": False}):
        with pytest.raises(AssertionError, match="the loop = fit"):
            ch12.check_loop(partial(read_in_order, **broken))


def states_needed(n, segment, memory, layers, late=0):
    p = torch.arange(n)
    first = p // segment * segment - memory + late
    sees = (p >= first[:, None]) & (p <= p[:, None])
    levels = [p == n - 1]
    for _ in range(layers):
        levels.append(sees[levels[-1]].any(dim=0))
    return levels


def test_what_models_feel_decides_which_states_are_needed():
    late = r"segments of 4, memory 4, 1 layers.*\[16, 17, .*, but \[17, 18, "
    with pytest.raises(AssertionError, match=late):
        ch12.check_reach(lambda *sizes: states_needed(*sizes, late=1))


def attention(q, k, values, r, u, v):
    t, s = len(q), len(k)
    distance = (torch.arange(s)[s - t :, None] - torch.arange(s)).clamp(min=0)
    position = ((q + v)[:, None] * r[s - 1 - distance]).sum(-1)
    scores = ((q + u) @ k.T + position) / q.shape[-1] ** 0.5
    hidden = ~torch.ones(t, s).tril(s - t).bool()
    return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ values


def test_a_head_by_hand_is_compared_with_the_modules():
    ch12.check_attention(attention)
    with pytest.raises(AssertionError, match="a head of the module"):
        ch12.check_attention(lambda q, k, x, r, u, v: attention(q, k, x, r, v, u))
    with pytest.raises(AssertionError, match="a head of the module"):
        ch12.check_attention(lambda q, k, x, r, u, v: attention(q, k, x, r, u, 0 * v))


def test_states_must_be_those_of_the_text():
    levels = states_needed(24, 4, 4, 2)
    with pytest.raises(ValueError, match=r"levels must have 5 states, got 24"):
        ch12.reach("hello", levels, 4, 4)
