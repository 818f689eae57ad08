"""annotated/recipes/parts.py: parts are taken away from every layer."""

import pytest
import torch
from torch import nn

from annotated.recipes.copy_task import (
    COPY,
    VOCAB,
    copy_batches,
)
from annotated.recipes.parts import take_away
from annotated.transformer import Transformer, TransformerConfig


def sizes_of(model: Transformer) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits for one source in its order and turned round, over the same target."""
    model = model.double().eval()
    source, target = next(copy_batches(0, 1, 2))
    turned = torch.cat([source[:, :1], source[:, 1:].flip(1)], dim=1)
    return model(source, target).detach(), model(turned, target).detach()


@pytest.mark.parametrize(
    ("part", "norms"),
    [
        ("residual", 12),
        ("norm", 0),
        ("network", 8),
        ("encoder", 7),
        ("self-attention", 10),
        ("positions", 12),
    ],
)
def test_a_part_is_taken_out_of_every_layer(part, norms):
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **COPY | {"layers": 2}))
    whole, turned = sizes_of(model)
    assert not torch.allclose(whole, turned)
    assert take_away(model, part) is model
    without, turned = sizes_of(model)
    assert without.isfinite().all() and not torch.allclose(whole, without)
    assert torch.allclose(without, turned) == (part == "positions")
    left = sum(isinstance(module, nn.LayerNorm) for module in model.modules())
    assert left == norms


def test_a_decoder_without_its_self_attention_sees_the_last_symbol_alone():
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **COPY)).eval()
    source, target = next(copy_batches(0, 1, 2))
    changed = target.clone()
    changed[:, 0] = 2
    assert not torch.equal(model(source, target)[:, 1:], model(source, changed)[:, 1:])
    take_away(model, "self-attention")
    assert torch.equal(model(source, target)[:, 1:], model(source, changed)[:, 1:])
    self_attention = model.encoder.layers[0].attention
    assert sum(p.numel() for p in self_attention.parameters()) > 0


def test_without_its_encoder_the_memory_is_the_embedded_source():
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **COPY)).eval()
    source, _ = next(copy_batches(0, 1, 2))
    memory, mask = take_away(model, "encoder").encode(source)
    x = model.source_embedding(source) * COPY["d_model"] ** 0.5
    assert torch.equal(memory, model.positions(x))
    assert torch.equal(mask[:, 0, 0], source != 0)


def test_parts_are_taken_away_in_any_order():
    config = TransformerConfig(VOCAB, VOCAB, **COPY)
    parts = ("residual", "norm", "network", "encoder", "self-attention")
    source, target = next(copy_batches(0, 1, 2))
    logits = []
    for several in (parts, parts[::-1]):
        torch.manual_seed(0)
        model = take_away(Transformer(config), *several)
        logits.append(model(source, target))
        maps = [p for name, p in model.named_parameters() if "decoder" in name]
        assert len(maps) == 8  # of the cross-attention, and nothing else
    assert torch.equal(*logits) and logits[0].std() > 0.01


def test_without_its_addition_a_residual_forgets_what_came_in():
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **COPY))
    take_away(model, "residual")
    x = torch.randn(1, 2, COPY["d_model"])
    for layer in (*model.encoder.layers, *model.decoder.layers):
        for residual in layer.residuals:
            assert torch.equal(residual(x, torch.zeros_like), torch.zeros_like(x))
            assert torch.equal(residual(x, lambda y: y), residual.norm(x))


def test_only_what_there_is_can_be_taken_away():
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **COPY))
    with pytest.raises(ValueError, match="'decoder'"):
        take_away(model, "decoder")
