"""PyTorch's modules with our weights: each number is where it belongs."""

import pytest
import torch
from torch import nn

from annotated.masks import causal_mask, length_mask
from annotated.page.references import nn_transformer, torch_weights
from annotated.transformer import (
    DecoderLayer,
    EncoderLayer,
    Transformer,
    TransformerConfig,
)

either_norm = pytest.mark.parametrize("norm", ["pre", "post"])


def config(norm, **changes):
    settings = {"d_model": 8, "heads": 2, "d_ff": 12, "layers": 2, "dropout": 0.0}
    return TransformerConfig(11, 13, **settings, norm=norm, max_len=9, **changes)


def redrawn(module):
    """Every parameter another: gains of 1 and biases of 0 hide what is swapped."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_()
    return module.double()


@either_norm
def test_pytorchs_layers_load_them_by_name_and_compute_the_same(norm):
    settings = {"dropout": 0.0, "batch_first": True, "norm_first": norm == "pre"}
    x, memory = (torch.randn(3, n, 8).double() for n in (4, 5))
    mask = length_mask(torch.tensor([5, 2, 3]), 5)
    ours = redrawn(EncoderLayer(config(norm)))
    theirs = nn.TransformerEncoderLayer(8, 2, 12, **settings).double()
    theirs.load_state_dict(torch_weights(ours))
    hidden = ~mask[:, 0, 0]
    torch.testing.assert_close(
        theirs.train()(memory, src_key_padding_mask=hidden), ours(memory, mask)
    )
    ours = redrawn(DecoderLayer(config(norm)))
    theirs = nn.TransformerDecoderLayer(8, 2, 12, **settings).double()
    theirs.load_state_dict(torch_weights(ours))
    masks = {"tgt_mask": ~causal_mask(4)[0, 0], "memory_key_padding_mask": hidden}
    torch.testing.assert_close(
        theirs(x, memory, **masks), ours(x, memory, causal_mask(4), mask)
    )


def tokens():
    source, target = torch.randint(1, 11, (3, 7)), torch.randint(1, 13, (3, 6))
    source[1, 4:], source[2, 6:], target[0, 3:] = 0, 0, 0
    return source, target


@pytest.mark.parametrize(
    "model",
    [
        Transformer(config("pre")),
        Transformer(config("post", activation="gelu", norm_epsilon=0.5)),
    ],
    ids=["pre", "post"],
)
def test_the_whole_computes_what_the_model_does_with_the_models_parameters(model):
    redrawn(model)
    source, target = tokens()
    reference = nn_transformer(model)
    ours, theirs = model(source, target), reference(source, target)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    upstream = torch.randn_like(ours)
    pairs = [
        torch.autograd.grad(logits, [*model.parameters()], upstream)
        for logits in (ours, theirs)
    ]
    torch.testing.assert_close(*pairs, rtol=1e-9, atol=1e-9)
    with torch.no_grad():
        model.decoder.layers[1].cross_attention.key_map.weight.mul_(2)
    assert not torch.allclose(theirs, reference(source, target)), "a copy of weights"


@either_norm
def test_it_is_not_the_model_that_answers(norm):
    model = redrawn(Transformer(config(norm)))
    source, target = tokens()
    reference = nn_transformer(model)
    before = reference(source, target)
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.forward = None
    torch.testing.assert_close(reference(source, target), before)


def test_the_state_of_the_generator_is_left_alone():
    model = Transformer(config("pre"))
    state = torch.get_rng_state()
    nn_transformer(model)(*tokens())
    after = torch.get_rng_state()
    torch.set_rng_state(state)
    tokens()
    assert torch.equal(torch.get_rng_state(), after)


@pytest.mark.parametrize(
    "parts", [{"activation": "swiglu"}, {"norm_kind": "rms"}, {"bias": False}]
)
def test_parts_without_a_counterpart_are_refused(parts):
    with pytest.raises(RuntimeError, match=r"gate|norm|bias"):
        nn_transformer(Transformer(config("post", **parts)))(*tokens())
