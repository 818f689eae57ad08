"""annotated/gpt.py: chapter 06's block under a causal mask, and nothing else."""

import pytest
import torch

from annotated.attention import MultiHeadAttention
from annotated.gpt import GPT, GPTConfig, next_token_loss
from annotated.masks import (
    causal_mask,
    count_positions,
    document_mask,
    padding_mask,
)
from annotated.positions import RotaryMultiHeadAttention
from annotated.training import evaluate
from annotated.transformer import EncoderLayer

# b 3, t 5, d 8 in 2 heads, 13 tokens, a context of 7
B, T, D, V, CONTEXT = 3, 5, 8, 13, 7


def make_model(**changes) -> GPT:
    given = {"d_model": D, "heads": 2, "layers": 3, "d_ff": 12, "max_len": CONTEXT}
    model = GPT(GPTConfig(V, **given | changes)).double().eval()
    with torch.no_grad():  # parameters that begin at 0 or 1 would hide a fault
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1 or "table" in name:
                parameter.add_(torch.randn_like(parameter) * 0.5)
            else:
                parameter.mul_(2.0)
    return model


def draw_tokens() -> torch.Tensor:
    return torch.randint(V, (B, T))


# ---- what it computes -----------------------------------------------------------


def test_its_block_is_the_encoder_layer_of_chapter_06_under_a_causal_mask():
    model, tokens = make_model(), draw_tokens()
    assert [type(layer) for layer in model.blocks.layers] == [EncoderLayer] * 3
    x = model.embedding.weight[tokens] + model.positions.table[:T]
    for layer in model.blocks.layers:
        x = layer(x, causal_mask(T))
    wanted = model.blocks.norm(x) @ model.embedding.weight.T
    assert torch.allclose(model(tokens), wanted, atol=1e-12)


def test_the_loss_counts_the_targets_that_are_asked_for():
    model, tokens = make_model(), draw_tokens()
    short = tokens.clone()
    short[:2, 1:], short[2] = -100, -100  # padding is no target
    both = torch.cat([tokens, tokens]), torch.cat([tokens, short])
    parts = [(tokens, tokens), (tokens, short)]
    assert [next_token_loss.batch_weight(part) for part in parts] == [B * T, 2]
    whole = next_token_loss(model, both).item()
    assert evaluate(model, next_token_loss, parts) == pytest.approx(whole)


def test_no_position_sees_what_comes_later_and_each_sees_all_before():
    model, tokens = make_model(), draw_tokens()
    before = model(tokens)
    for place in range(T):
        changed = tokens.clone()
        changed[:, place] = (changed[:, place] + 1) % V
        moved = (model(changed) != before).any(dim=-1)  # (b, t)
        assert not moved[:, :place].any()
        assert moved[:, place:].all()


def test_a_later_start_takes_later_positions():
    model, tokens = make_model(), draw_tokens()
    wanted = model.embedding.weight[tokens] + model.positions.table[2 : 2 + T]
    assert torch.equal(model.embed(tokens, start=2), wanted)


BOTH = pytest.mark.parametrize("positions", ["learned", "rotary"])


@BOTH
def test_texts_padded_on_either_side_are_read_as_if_alone(positions):
    model, pad = make_model(positions=positions), 5
    texts = [[3, 7], [1, 2, 3, 4], [9, 9, 8]]
    rows = [[5, 5, 5, 3, 7], [1, 2, 3, 4, 5], [5, 9, 9, 8, 5]]
    mask = padding_mask(torch.tensor(rows), pad)
    logits = model(torch.tensor(rows), mask, count_positions(mask))
    for row, seen, text in zip(logits, mask[:, 0, 0], texts, strict=True):
        torch.testing.assert_close(row[seen], model(torch.tensor([text]))[0])


@BOTH
def test_documents_packed_in_a_row_are_read_as_if_alone(positions):
    model = make_model(positions=positions)
    texts = [[3, 7, 1], [4, 4], [6]]
    documents = torch.tensor([[0, 0, 0, 1, 1, 2]])
    mask = document_mask(documents)
    logits = model(torch.tensor([[3, 7, 1, 4, 4, 6]]), mask, count_positions(mask))
    for i, text in enumerate(texts):
        alone = model(torch.tensor([text]))[0]
        torch.testing.assert_close(logits[documents == i], alone)


def test_positions_may_be_any_of_the_context():
    model, tokens = make_model(), draw_tokens()
    places = torch.randint(CONTEXT, tokens.shape)
    wanted = model.embedding.weight[tokens] + model.positions.table[places]
    assert torch.equal(model.embed(tokens, positions=places), wanted)
    for wrong in (-1, CONTEXT):
        with pytest.raises(ValueError, match=f"positions .*0 to 6, got {wrong}"):
            model(tokens, positions=places.clone().fill_(wrong))


def test_the_output_is_the_embedding():
    model = make_model()
    assert model.output.weight is model.embedding.weight and model.output.bias is None
    c, d = model.config, D
    block = 4 * (d * d + d) + (d * c.d_ff + c.d_ff) + (c.d_ff * d + d) + 2 * 2 * d
    wanted = V * d + CONTEXT * d + c.layers * block + 2 * d
    assert sum(p.numel() for p in model.parameters()) == wanted


def test_matrices_begin_as_those_of_chapter_06():
    model = GPT(GPTConfig(96, d_model=128, d_ff=256, max_len=64))
    assert model.embedding.weight.std().item() == pytest.approx(128**-0.5, rel=0.05)
    assert model.positions.table.std().item() == pytest.approx(0.02, rel=0.05)
    for name, parameter in model.blocks.named_parameters():
        if parameter.dim() > 1:
            wanted = (2 / sum(parameter.shape)) ** 0.5
            assert parameter.std().item() == pytest.approx(wanted, rel=0.05), name


def test_dropout_is_in_the_sum_and_in_the_blocks_and_nowhere_in_evaluation():
    model, tokens = make_model(dropout=0.4), draw_tokens()
    assert torch.equal(model(tokens), model(tokens))
    model.train()
    assert (model.embed(tokens) == 0).double().mean() == pytest.approx(0.4, abs=0.15)
    model.dropout.eval()
    assert (model.embed(tokens) != 0).all()
    assert not torch.equal(model(tokens), model(tokens)), "in the blocks too"
    assert all(layer.attention.dropout == 0.4 for layer in model.blocks.layers)
    plain = make_model().train()
    assert torch.equal(plain(tokens), plain(tokens))


MODERN = {
    "activation": "swiglu",
    "norm_kind": "rms",
    "norm_epsilon": 1e-3,
    "bias": False,
    "positions": "rotary",
    "rotary_base": 50.0,
    "kv_heads": 1,
    "tied": False,
}


def test_a_model_of_today_is_a_config():
    model = make_model(**MODERN)
    for layer in model.blocks.layers:
        attention = layer.attention
        assert isinstance(attention, RotaryMultiHeadAttention) and attention.causal
        assert attention.base == 50.0 and attention.kv_heads == 1
        assert attention.query_map.bias is None
        assert layer.feed_forward.gate.bias is None
        assert isinstance(layer.residuals[0].norm, torch.nn.RMSNorm)
    assert isinstance(model.blocks.norm, torch.nn.RMSNorm)
    assert model.blocks.norm.eps == 1e-3 and model.positions is None
    assert model.output.weight is not model.embedding.weight
    tokens = draw_tokens()
    order = tokens.flip(1)
    assert not torch.allclose(model(tokens)[:, -1], model(order)[:, -1], atol=1e-3)
    with pytest.raises(ValueError, match="length must be at most max_len, got length="):
        model(torch.zeros(1, CONTEXT + 1).long())


def test_an_output_of_its_own_begins_as_the_embedding_does():
    model = GPT(GPTConfig(500, d_model=128, tied=False))
    for table in (model.output.weight, model.embedding.weight):
        assert table.std().item() == pytest.approx(128**-0.5, rel=0.05)


class Other(MultiHeadAttention):
    """Another kind of attention."""


def test_attention_may_be_another():
    config = make_model().config
    model = GPT(config, lambda: Other(D, config.heads, causal=True))
    assert [type(x.attention) for x in model.blocks.layers] == [Other] * config.layers


def test_the_loss_is_the_mean_of_all_positions():
    model, tokens, targets = make_model(), draw_tokens(), draw_tokens()
    logs = model(tokens).log_softmax(dim=-1)
    own = [-logs[i, j, targets[i, j]] for i in range(B) for j in range(T)]
    loss = next_token_loss(model, (tokens, targets))
    assert torch.allclose(loss, torch.stack(own).mean())


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"heads": 5}, ValueError, "heads must divide d_model, got heads=5 and d_m"),
        ({"layers": 0}, ValueError, "layers must be an integer ≥ 1, got 0"),
        ({"max_len": 0}, ValueError, "max_len must be an integer ≥ 1, got 0"),
        ({"d_ff": 2.5}, TypeError, "d_ff must be an integer ≥ 1, got 2.5"),
        ({"dropout": 1.0}, ValueError, r"dropout must be a number in \[0, 1\), got 1"),
        ({"positions": "none"}, ValueError, "positions must be one of 'learned', 'rot"),
        ({"rotary_base": 0}, ValueError, "rotary_base must be a number above 0"),
        ({"norm_kind": "batch"}, ValueError, "norm_kind must be one of 'layer', 'rms'"),
    ],
)
def test_a_config_that_cannot_be_is_named(given, error, message):
    with pytest.raises(error, match=message):
        GPTConfig(V, **given)


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        (torch.zeros(1, 8).long(), ValueError, "length must be at most max_len, got"),
        (torch.full((1, 2), V), ValueError, f"tokens must hold .* 0 to 12, got {V}"),
        (torch.full((1, 2), -1), ValueError, "tokens must hold .* 0 to 12, got -1"),
        (torch.zeros(1, 2), TypeError, "tokens must be a tensor of integers, got to"),
        (torch.zeros(2).long(), ValueError, r"tokens must have the shape \(b, t\)"),
    ],
)
def test_an_honest_mistake_is_named(tokens, error, message):
    with pytest.raises(error, match=message):
        make_model()(tokens)
