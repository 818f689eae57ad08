"""recipes/text_models.py: none sees what comes later, each is its slow loop."""

import pytest
import torch

from annotated.masks import causal_mask
from annotated.recipes.text import TEXT_MODELS, text_model
from annotated.recipes.text_models import (
    ConvolutionText,
    GRUText,
    PastAverage,
    influence,
    path_length,
)

V = 96


def draw_tokens(b: int = 3, t: int = 20, size: int = V) -> torch.Tensor:
    return torch.randint(size, (b, t))


# ---- models ------------------------------------------------------------------------


def test_attention_that_asks_nothing_is_the_mean_of_the_past():
    attention = PastAverage(8, 2).double()
    x = torch.randn(2, 6, 8, dtype=torch.float64)
    values = attention.value_map(x)
    means = torch.stack([values[:, : i + 1].mean(dim=1) for i in range(6)], dim=1)
    wanted = attention.output_map(means)
    assert torch.allclose(attention(x, mask=causal_mask(6)), wanted)
    model = text_model("average", V)
    kinds = {type(layer.attention) for layer in model.blocks.layers}
    assert kinds == {PastAverage} and len(model.blocks.layers) == 2


@pytest.mark.parametrize("way", TEXT_MODELS)
def test_no_model_sees_what_comes_later(way):
    model, tokens = text_model(way, V), draw_tokens()
    before = model(tokens)
    assert before.shape == (3, 20, V)
    for place in (0, 7, 19):
        changed = tokens.clone()
        changed[:, place] = (changed[:, place] + 1) % V
        moved = (model(changed) - before).abs().amax(dim=(0, 2)) > 1e-6
        assert not moved[:place].any() and moved[place], f"{place=}"
        if way != "convolution":
            assert moved[place:].all()


def test_a_recurrent_model_is_the_unit_of_pytorch_step_by_step():
    model, tokens = GRUText(V, 8), draw_tokens()
    cell = torch.nn.GRUCell(8, 8)
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights = {name: getattr(model.rnn, f"{name}_l0") for name in names}
    cell.load_state_dict(weights)
    state, rows = torch.zeros(3, 8), []
    for place in range(20):
        x = model.embedding.weight[tokens[:, place]] * 8**0.5
        state = cell(x, state)
        rows.append(state @ model.embedding.weight.T)
    assert torch.allclose(model(tokens), torch.stack(rows, dim=1), atol=1e-5)


def test_a_layer_of_convolution_is_a_slow_sum():
    model, tokens = ConvolutionText(V, 8, layers=2, kernel=3).double(), draw_tokens()
    x = model.embedding.weight[tokens]
    for i in range(2):
        y, out = torch.relu(model.norms[i](x)), []
        for place in range(20):
            total = model.maps[i].bias + torch.zeros(3, 8, dtype=torch.float64)
            for step in range(3):
                there = place - (2 - step) * 2**i
                if there >= 0:
                    total = total + y[:, there] @ model.maps[i].weight[..., step].T
            out.append(total)
        x = x + torch.stack(out, dim=1)
    wanted = model.norms[2](x) @ model.embedding.weight.T
    assert torch.allclose(model(tokens), wanted)


# ---- what depends on length ----------------------------------------------------------


def test_paths_are_as_long_as_the_models_make_them():
    assert [path_length("attention", n) for n in (0, 1, 60)] == [1, 1, 1]
    assert [path_length("recurrent", n) for n in (0, 1, 60)] == [1, 2, 61]
    wanted = {0: 1, 4: 1, 5: 2, 12: 2, 13: 3, 28: 3, 29: 4, 60: 4, 61: 5}
    assert {n: path_length("convolution", n) for n in wanted} == wanted


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_a_path_of_a_convolution_is_one_that_its_layers_have(layers):
    model, tokens = ConvolutionText(V, 8, layers=layers), draw_tokens(1, 70)
    seen = influence(model, tokens) > 0
    reach = [n for n in range(70) if path_length("convolution", n) <= layers]
    assert seen.nonzero().flatten().tolist() == reach


def test_influence_is_a_gradient_with_the_nearest_first():
    model, tokens = text_model("attention", V), draw_tokens()
    x = model.embedding(tokens).detach().requires_grad_()
    stream = model.positions(x)
    last = model.output(model.blocks(stream, causal_mask(20)))[:, -1]
    last.max(dim=-1).values.sum().backward()
    wanted = x.grad.norm(dim=-1).mean(dim=0).flip(0)
    assert torch.allclose(influence(model, tokens), wanted, atol=1e-6)
    assert all(p.grad is None for p in model.parameters())
    assert not model.embedding._forward_hooks


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: path_length("average", 3), "way must be one of .* got 'average'"),
        (lambda: path_length("attention", -1), "distance must be an .* ≥ 0, got -1"),
    ],
)
def test_an_honest_mistake_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
