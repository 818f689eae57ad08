"""ch14/reversible.py: ways agree, and one pair has no inverse."""

import pytest
import torch
from torch import nn

from annotated.attention import MultiHeadAttention
from annotated.chapters.ch14.reversible import (
    REFORMER_RECIPES,
    STACKS,
    checkpointed,
    layers,
    reformer,
    run_reformer_recipe,
)
from annotated.reformer import LSHSelfAttention

T, D = 7, 8


def test_three_ways_are_one_function():
    stack, x = layers(3, D, 2, 11, dropout=0.2).double(), torch.randn(2, 1, T, D)
    x1, x2 = x.double()
    found = {}
    for way, run in STACKS.items():
        torch.manual_seed(1)
        y1, y2 = run(stack, x1, x2)
        loss = (y1 * torch.arange(D)).sum() + y2.square().sum()
        found[way] = [y1, y2, *torch.autograd.grad(loss, list(stack.parameters()))]
    for way in STACKS:
        for one, other in zip(found[way], found["stored"], strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


def test_the_three_ways_store_most_little_and_least():
    from torch.autograd.graph import saved_tensors_hooks

    def kept(way, depth):
        stack, sizes = layers(depth, D, 2, 11), []
        own = {p.data_ptr() for p in stack.parameters()}

        def pack(tensor):
            if tensor.data_ptr() not in own:
                sizes.append(tensor.numel())
            return tensor

        x1, x2 = torch.randn(2, 1, T, D, requires_grad=True)
        with saved_tensors_hooks(pack, lambda tensor: tensor):
            ends = STACKS[way](stack, x1, x2)
        del ends
        return sum(sizes)

    slopes = {way: (kept(way, 5) - kept(way, 2)) / 3 for way in STACKS}
    assert slopes["reversible"] == 0
    assert slopes["stored"] > 5 * T * D


def test_a_checkpoint_stands_at_each_block():
    stack, calls = layers(2, D, 2, 11), []
    stack.blocks[0].register_forward_pre_hook(lambda *_: calls.append(0))
    stack.blocks[1].register_forward_pre_hook(lambda *_: calls.append(1))
    x = torch.randn(1, T, D, requires_grad=True)
    ends = checkpointed(stack, x, x)
    assert calls == [0, 1]
    sum(ends).sum().backward()
    assert len(calls) > 2


def test_layers_read_normalised_streams_by_the_attention_given():
    stack = layers(2, D, 2, 11, 0.25, nn.Identity)
    block = stack.blocks[1]
    assert isinstance(block.f[0], nn.LayerNorm) and isinstance(block.f[1], nn.Identity)
    assert block.g[1].inner.out_features == 11
    assert block.f[2].p == block.g[2].p == 0.25
    attention = layers(1, D, 2, 11).blocks[0].f[1]
    assert isinstance(attention, MultiHeadAttention) and attention.causal


# ---- the language model ----------------------------------------------------------


@pytest.mark.slow
def test_a_recipe_trains_a_reformer():
    small = {"model": {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8}}
    small["model"] |= {"max_len": 128, "chunk": 16, "rounds": 1}
    model, history, bits = run_reformer_recipe("16k", steps=3, **small)
    assert len(history) == 3 and 4 < bits < 9
    assert isinstance(model.blocks.blocks[0].f[1], LSHSelfAttention)
    mixed = {"steps": 1, "precision": torch.bfloat16}  # as on a GPU
    model, _, _ = run_reformer_recipe("16k", "all", **mixed, **small)
    attention = model.blocks.blocks[0].f[1]
    assert isinstance(attention, MultiHeadAttention) and attention.causal


def test_models_of_recipes():
    model = reformer(REFORMER_RECIPES["16k"], 96, "LSH", seed=1)
    assert model.config.max_len == 16_384
    assert model.config.rounds == model.blocks.blocks[0].f[1].rounds == 1
    again = reformer(REFORMER_RECIPES["16k"], 96, "LSH", seed=1)
    assert torch.equal(model.output.weight, again.output.weight)
    with pytest.raises(ValueError, match="attention must be one of 'LSH', 'all'"):
        reformer(REFORMER_RECIPES["16k"], 96, "some", seed=1)
    with pytest.raises(ValueError, match="name must be one of"):
        run_reformer_recipe("32k")
    with torch.device("meta"):
        model = reformer(REFORMER_RECIPES["64k"], 256, "LSH", seed=0)
    assert 15e6 < sum(p.numel() for p in model.parameters()) < 25e6
