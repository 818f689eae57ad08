"""annotated/classifier.py: pooling that padding can't reach, and what order changes."""

import pytest
import torch

from annotated.classifier import (
    POOLINGS,
    AttentionPooling,
    ClassifierConfig,
    TransformerClassifier,
    pool,
)
from annotated.transformer import Encoder
from tests.compare import assert_close, gradients

# b 3, t 6, 11 tokens, d 8, 5 classes
B, T, V, D, C = 3, 6, 11, 8, 5
LENGTHS = [6, 2, 4]
SIZES = {"d_model": D, "heads": 2, "layers": 2, "d_ff": 12, "max_len": 9}


def make_model(**changes) -> TransformerClassifier:
    model = TransformerClassifier(ClassifierConfig(V, C, **SIZES | changes))
    return model.double().eval()


def draw() -> torch.Tensor:
    tokens = torch.randint(1, V, (B, T))
    for row, length in zip(tokens, LENGTHS, strict=True):
        row[length:] = 0
    return tokens


def one_by_one(states: torch.Tensor, pooling: str) -> torch.Tensor:
    texts = [row[:length] for row, length in zip(states, LENGTHS, strict=True)]
    by_hand = {
        "mean": lambda x: x.sum(0) / len(x),
        "first": lambda x: x[0],
        "max": lambda x: x.max(0).values,
    }
    return torch.stack([by_hand[pooling](text) for text in texts])


@pytest.mark.parametrize("pooling", POOLINGS[:3])
def test_pooling_is_that_of_each_text_by_itself(pooling):
    states = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    real = draw() != 0
    ours, theirs = pool(states, real, pooling), one_by_one(states, pooling)
    assert_close(ours, theirs)
    assert_close(gradients(ours, [states]), gradients(theirs, [states]))


@pytest.mark.parametrize("pooling", POOLINGS[:3])
def test_padding_may_hold_anything(pooling):
    states, real = torch.randn(B, T, D), draw() != 0
    for filler in (torch.inf, torch.nan, 1e9):
        filled = states.masked_fill(~real[..., None], filler)
        assert_close(pool(filled, real, pooling), pool(states, real, pooling))


@pytest.mark.parametrize("pooling", POOLINGS[:3])
def test_padding_may_stand_anywhere(pooling):
    states, real = torch.randn(B, T, D, dtype=torch.float64), draw() != 0
    for order in (torch.arange(T).flip(0), torch.randperm(T)):
        moved, where = states[:, order], real[:, order]
        pooled = pool(moved, where, pooling)
        for row, own, vector in zip(moved, where, pooled, strict=True):
            tokens = row[own][None]
            alone = pool(tokens, torch.ones(tokens.shape[:2]).bool(), pooling)
            assert_close(vector, alone[0])


@pytest.mark.parametrize("pooling", POOLINGS[:3])
def test_no_positions_give_zeros(pooling):
    states, real = torch.ones(B, 0, D), torch.ones(B, 0, dtype=torch.bool)
    assert pool(states, real, pooling).tolist() == [[0.0] * D] * B


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_text_without_tokens_gives_finite_logits_and_gradients(pooling):
    model = make_model(pooling=pooling)
    tokens = draw()
    tokens[1] = 0
    logits = model(tokens)
    assert_close(logits[1], model.output.bias)
    logits.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_attention_pooling_weighs_tokens_by_a_softmax_over_the_real_ones():
    pooling = AttentionPooling(D).double()
    states, real = torch.randn(B, T, D, dtype=torch.float64), draw() != 0
    for row, length, weights, pooled in zip(
        states,
        LENGTHS,
        pooling.weights(states, real),
        pooling(states, real),
        strict=True,
    ):
        scores = row[:length] @ pooling.question.weight[0]
        expected = scores.exp() / scores.exp().sum()
        assert_close(weights[:length], expected)
        assert weights[length:].tolist() == [0.0] * (T - length)
        assert_close(pooled, expected @ row[:length])


@pytest.mark.parametrize("positions", [True, False])
def test_what_it_computes_by_its_parts(positions):
    model, tokens = make_model(positions=positions), draw()
    assert isinstance(model.encoder, Encoder)
    for row, length, logits in zip(tokens, LENGTHS, model(tokens), strict=True):
        x = model.embedding.weight[row[:length]][None]
        if positions:
            x = x + model.positions.table[:length]
        vector = model.encoder(x)[0].mean(0)
        assert_close(logits, model.output.weight @ vector + model.output.bias)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_company_and_padding_change_nothing(pooling):
    model, tokens = make_model(pooling=pooling), draw()
    together = model(tokens)
    for row, length, logits in zip(tokens, LENGTHS, together, strict=True):
        assert_close(model(row[None, :length])[0], logits)


def test_only_positions_tell_an_order():
    tokens = torch.tensor([[3, 7, 2, 9], [9, 2, 7, 3]])
    for pooling in ("mean", "max", "attention"):
        one, other = make_model(positions=False, pooling=pooling)(tokens)
        assert_close(one, other)
        one, other = make_model(pooling=pooling)(tokens)
        assert (one - other).abs().max() > 1e-3


def test_padding_has_no_embedding_that_learns():
    model, tokens = make_model(), draw()
    model(tokens).sum().backward()
    assert model.embedding.weight.grad[0].abs().sum() == 0
    assert model.embedding.weight.grad[tokens[0]].abs().sum() > 0


def test_dropout_and_the_order_of_norms_reach_the_encoder():
    tokens = draw()
    model = make_model(dropout=0.5).train()
    assert (model(tokens) - model(tokens)).abs().max() > 1e-3
    assert isinstance(make_model(norm="post").encoder.norm, torch.nn.Identity)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"classes": 0}, "classes must be"),
        ({"heads": 3}, "heads must divide d_model"),
        ({"pooling": "sum"}, "pooling must be one of"),
        ({"norm": "both"}, "norm must be one of"),
        ({"pad": V}, "pad must be"),
        ({"dropout": 1.5}, "dropout must be"),
    ],
)
def test_a_configuration_that_cannot_be(changes, message):
    given = {"vocab_size": V, "classes": C} | SIZES | changes
    with pytest.raises(ValueError, match=message):
        ClassifierConfig(**given)


def test_texts_that_cannot_be_read():
    for positions in (True, False):
        model = make_model(positions=positions)
        model(torch.ones(1, 9, dtype=torch.long))
        with pytest.raises(ValueError, match=r"length must be .*10.*max_len.*9"):
            model(torch.ones(1, 10, dtype=torch.long))
    with pytest.raises(ValueError, match="tokens must hold integers from 0 to 10"):
        model(torch.tensor([[3, V]]))
    with pytest.raises(ValueError, match="pooling must be one of"):
        pool(torch.zeros(1, 2, D), torch.ones(1, 2, dtype=torch.bool), "attention")


@pytest.mark.parametrize("pooling", POOLINGS[:3])
def test_logits_are_those_of_the_pooled_states(pooling):
    model, tokens = make_model(pooling=pooling), draw()
    pooled = one_by_one(model.states(tokens), pooling)
    assert_close(model(tokens), model.output(pooled))


def test_padding_may_have_another_id():
    for pooling in POOLINGS:
        model = make_model(pad=4, pooling=pooling)
        tokens = torch.tensor([[3, 0, 5], [2, 1, 6]])  # 0 is a token like any other
        padded = torch.nn.functional.pad(tokens, (0, 2), value=4)
        assert_close(model(padded), model(tokens))
        other = tokens.clone()
        other[0, 1] = 7
        assert not torch.allclose(model(other)[0], model(tokens)[0])


def test_dropout_reaches_the_embeddings_and_not_the_evaluation():
    model, tokens, seen = make_model(dropout=0.9), draw(), []
    model.encoder.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(tokens)
    model.train()(tokens)
    assert (seen[0] != 0).all() and (seen[1] == 0).float().mean() > 0.7
