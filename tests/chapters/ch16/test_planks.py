"""ch16/planks.py: one part replaced at a time, at GPT-2's size."""

import pytest
import torch

from annotated.attention import MultiHeadAttention
from annotated.chapters.ch16.planks import (
    GPT2_PARTS,
    KV_HEADS,
    PLANKS,
    PLANKS_RECIPE,
    WINDOW,
    plank_config,
    plank_model,
    seconds_per_step,
)
from annotated.positions import RotaryMultiHeadAttention
from annotated.variants import QueryKeyNormAttention, SlidingWindowAttention

PARTS = [name for name in PLANKS if name.split(",")[0] != "GPT-2"]
ATTENTIONS = {
    "rotary": [RotaryMultiHeadAttention],
    "QK-norm": [QueryKeyNormAttention],
    "window": [SlidingWindowAttention],
    "all but the window": [RotaryMultiHeadAttention, QueryKeyNormAttention],
    "all": [
        RotaryMultiHeadAttention,
        QueryKeyNormAttention,
        SlidingWindowAttention,
    ],
}


def size(model):
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", PARTS)
def test_sizes_are_alike_but_for_a_third_of_a_percent(name):
    whole = size(plank_model("GPT-2"))
    assert abs(size(plank_model(name)) / whole - 1) < 0.003
    wide = {"d_model": 128, "layers": 2}
    whole = size(plank_model("GPT-2", **wide))
    assert abs(size(plank_model(name, **wide)) / whole - 1) < 0.003


def test_controls_have_a_quarter_more_or_less_in_their_networks():
    widths = [plank_config(f"GPT-2, {way}").d_ff for way in ("smaller", "larger")]
    assert widths == [192, 320] and GPT2_PARTS["d_ff"] == 256


@pytest.mark.parametrize("name", PLANKS)
def test_a_part_is_the_only_one_that_differs(name):
    config, plain = plank_config(name), plank_config("GPT-2")
    differ = {
        field
        for field in vars(config)
        if getattr(config, field) != getattr(plain, field)
    }
    assert differ - {"d_ff"} == set(PLANKS[name].changes) - {"d_ff"}
    kinds = [MultiHeadAttention, *ATTENTIONS.get(name, [])]
    others = {kind for one in ATTENTIONS.values() for kind in one} - set(kinds)
    for layer in plank_model(name).blocks.layers:
        attention = layer.attention
        assert all(isinstance(attention, kind) for kind in kinds)
        assert not any(isinstance(attention, kind) for kind in others)
        assert attention.causal
        shared = config.kv_heads or config.heads
        assert attention.kv_heads == shared
        assert (attention.query_map.bias is not None) == config.bias
        if SlidingWindowAttention in kinds:
            assert attention.window == WINDOW


def test_shared_heads_and_all_the_parts():
    assert plank_config("grouped").kv_heads == KV_HEADS == 2
    changed = vars(plank_config("all")).items() - vars(plank_config("GPT-2")).items()
    assert {name for name, _ in changed} == {
        *("norm_kind", "positions", "activation", "kv_heads", "bias", "d_ff")
    }


def test_the_angles_are_those_of_the_configuration():
    attention = plank_model("all", rotary_base=500.0).blocks.layers[0].attention
    assert attention.base == 500.0


def test_a_seed_is_of_the_parameters():
    one, again, other = (plank_model("SwiGLU", seed) for seed in (3, 3, 4))
    assert torch.equal(one.embedding.weight, again.embedding.weight)
    assert not torch.equal(one.embedding.weight, other.embedding.weight)


@torch.no_grad()
def test_models_read_what_the_recipe_gives_them():
    ids = torch.randint(96, (2, PLANKS_RECIPE.model["max_len"]))
    for name in PLANKS:
        assert torch.isfinite(plank_model(name)(ids)).all()


def test_steps_are_timed_for_each_model():
    times = seconds_per_step(["GPT-2", "window"], repeats=2)
    assert list(times) == ["GPT-2", "window"]
    assert all(len(one) == 2 and min(one) > 0 for one in times.values())


def test_a_part_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="name"):
        plank_config("latent")
