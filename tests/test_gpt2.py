"""annotated/gpt2.py: sizes, how weights begin, and official ones where they are."""

import dataclasses

import pytest
import torch

from annotated.gpt import GPT, GPTConfig
from annotated.gpt2 import SIZES, count_parameters, initialise

SMALL = GPTConfig(31, d_model=64, heads=4, layers=8, d_ff=256, max_len=16)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("small", 124_439_808),
        ("medium", 354_823_168),
        ("large", 774_030_080),
        ("xl", 1_557_611_200),
    ],
)
def test_the_formula_counts_what_the_module_has(name, count):
    with torch.device("meta"):
        model = GPT(SIZES[name])
    assert sum(p.numel() for p in model.parameters()) == count
    assert count_parameters(SIZES[name]) == count
    assert SIZES[name].d_ff == 4 * SIZES[name].d_model


@pytest.mark.parametrize(
    "changes",
    [
        {"tied": False},
        {"bias": False},
        {"norm_kind": "rms"},
        {"positions": "rotary"},
        {"kv_heads": 2},
        {"activation": "swiglu"},
    ],
)
def test_what_is_no_gpt2_is_not_counted(changes):
    name, value = next(iter(changes.items()))
    with pytest.raises(ValueError, match=rf"config.{name} must be.*{value}"):
        count_parameters(dataclasses.replace(SMALL, **changes))
    as_many = dataclasses.replace(SMALL, kv_heads=SMALL.heads, activation="gelu")
    assert count_parameters(as_many) == count_parameters(SMALL)


@pytest.mark.parametrize("scaled", [True, False])
def test_weights_begin_as_gpt2_began(scaled):
    model = GPT(SMALL)
    for p in model.parameters():
        p.data.fill_(7.0)  # nothing may stay
    norms = {n for n, _ in model.named_parameters() if "norm" in n}
    assert initialise(model, std=0.1, scaled=scaled) is model
    for name, p in model.named_parameters():
        if name in norms:
            assert (p == 7).all(), name
        elif name.endswith("bias"):
            assert not p.any(), name
        else:
            writes = name.endswith(("output_map.weight", "outer.weight"))
            wanted = 0.1 / 4 if writes and scaled else 0.1  # √(2 · 8) is 4
            assert p.std().item() == pytest.approx(wanted, rel=0.08), name
            assert abs(p.mean().item()) < 0.1 * wanted, name
    assert model.output.weight is model.embedding.weight


def test_a_rotary_model_has_no_table_to_draw():
    model = GPT(dataclasses.replace(SMALL, positions="rotary", bias=False))
    initialise(model, std=0.03)
    assert model.embedding.weight.std().item() == pytest.approx(0.03, rel=0.1)


def test_a_deviation_is_above_0():
    with pytest.raises(ValueError, match="std must be"):
        initialise(GPT(SMALL), std=0.0)
