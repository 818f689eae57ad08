"""annotated/bert.py: embeddings, the encoder of chapter 6, and its two answers."""

import pytest
import torch

from annotated.attention import record_attention
from annotated.bert import (
    Bert,
    BertConfig,
    mask_tokens,
    next_sentence_pairs,
    pair_ids,
    sentence_order_pairs,
)
from annotated.masks import length_mask
from annotated.transformer import Encoder
from tests.compare import assert_close

# b 2, t 5, 13 tokens, d 6 in 3 heads, 7 positions
B, T, V, D, MOST = 2, 5, 13, 6, 7
SIZES = {"d_model": D, "heads": 3, "layers": 2, "d_ff": 10, "max_len": MOST}


def make_model(**changes) -> Bert:
    given = SIZES | {"dropout": 0.0} | changes
    model = Bert(BertConfig(V, **given)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


def draw(length: int = T) -> torch.Tensor:
    return torch.randint(1, V, (B, length))


def test_what_it_computes_by_its_parts():
    model, tokens = make_model(), draw()
    segments = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1]])
    x = model.embedding.weight[tokens] + model.positions.table[:T]
    x = x + model.segments.weight[segments]
    mean, spread = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    x = (x - mean) / (spread + 1e-12).sqrt()
    x = x * model.norm.weight + model.norm.bias
    assert isinstance(model.encoder, Encoder)
    states = model(tokens, segments)
    assert_close(states, model.encoder(x))
    inner = torch.nn.functional.gelu(model.transform(states))
    logits = model.transform_norm(inner) @ model.embedding.weight.T + model.output.bias
    assert_close(model.guess_tokens(states), logits)
    assert_close(model.guess_tokens(states[0, 2]), logits[0, 2])
    pooled = torch.tanh(model.pooler(states[:, 0]))
    assert_close(model.pool(states), pooled)
    assert_close(model.guess_next(states), model.follows(pooled))


def test_without_a_token_there_is_nothing_to_pool():
    model = make_model()
    with pytest.raises(ValueError, match="states must hold a first one"):
        model.guess_next(model(draw(0)))


def test_all_tokens_are_of_the_first_segment_unless_said_otherwise():
    model, tokens = make_model(), draw()
    assert torch.equal(model(tokens), model(tokens, torch.zeros_like(tokens)))
    assert not torch.allclose(model(tokens), model(tokens, torch.ones_like(tokens)))


@pytest.mark.parametrize("pad", [0, 3])
def test_padding_is_not_seen(pad):
    model, tokens = make_model(pad=pad), draw()
    tokens[tokens == pad] = pad + 1
    longer = torch.nn.functional.pad(tokens, (0, 2), value=pad)
    assert_close(model(longer)[:, :T], model(tokens))


def test_padding_in_front_is_refused():
    model = make_model(pad=3)
    rows = torch.tensor([[3, 5, 6], [3, 3, 3], [4, 3, 5], [3, 3, 1], [7, 8, 3]])
    with pytest.raises(ValueError, match=r"padding first in rows \[0, 3\]"):
        model(rows)
    model(rows[[1, 2, 4]])  # nothing but padding, or padding in between, is no shift


def test_a_mask_may_be_given():
    model, tokens = make_model(), draw()
    mask = length_mask(torch.tensor([3, 3]), T)
    assert_close(model(tokens, mask=mask)[:, :3], model(tokens[:, :3]))


def test_narrow_embeddings_are_added_and_normalised_before_they_are_widened():
    model, tokens = make_model(embedding_width=4), draw()
    sums = model.embedding.weight[tokens] + model.positions.table[:T]
    x = torch.nn.functional.layer_norm(sums + model.segments.weight[0], (4,), eps=1e-12)
    x = x * model.norm.weight + model.norm.bias
    states = model(tokens)
    assert_close(states, model.encoder(x @ model.widen.weight.T + model.widen.bias))
    inner = torch.nn.functional.gelu(model.transform(states))
    assert inner.shape[-1] == 4
    logits = model.transform_norm(inner) @ model.embedding.weight.T + model.output.bias
    assert_close(model.guess_tokens(states), logits)
    # where the width is the model's own there is a map all the same, as in ALBERT
    assert make_model(embedding_width=D).widen.weight.shape == (D, D)
    assert not [*make_model().widen.parameters()]


def test_one_layer_may_do_the_work_of_all():
    model, tokens = make_model(shared=True, layers=3), draw()
    (only,) = {*model.encoder.layers}
    assert len(model.encoder.layers) == 3
    mask = length_mask(torch.tensor([3, 5]), T)
    x = torch.randn(B, T, D, dtype=torch.float64)
    assert_close(model.encoder(x, mask), only(only(only(x, mask), mask), mask))
    with record_attention(model) as maps:
        model(tokens)
    (calls,) = maps.values()
    assert len(calls) == 3
    one = Bert(BertConfig(V, **SIZES | {"layers": 1}))
    count = sum(p.numel() for p in model.parameters())
    assert count == sum(p.numel() for p in one.parameters())


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        # 110 million: those of the encoder, its embeddings and its pooler
        (BertConfig(), 109_482_240),
        # papers round it to 340 million, with its heads
        (BertConfig(d_model=1024, heads=16, layers=24, d_ff=4096), 335_141_888),
        # Lan et al. (2020), table 1: 12 million
        (BertConfig(30_000, embedding_width=128, shared=True), 11_683_584),
    ],
)
def test_models_have_as_many_parameters_as_the_papers_say(config, wanted):
    with torch.device("meta"):
        model = Bert(config)
    heads = [model.transform, model.transform_norm, model.follows]
    extra = sum(p.numel() for head in heads for p in head.parameters())
    extra += model.output.bias.numel()
    assert sum(p.numel() for p in model.parameters()) - extra == wanted
    assert config.activation == "gelu" and config.norm_epsilon == 1e-12


def test_matrices_begin_small_and_biases_at_zero():
    model = Bert(BertConfig(500, 60, 3, 2, 100))
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            wanted = 0.02 if parameter.numel() > 1000 else parameter.std().item()
            assert parameter.std().item() == pytest.approx(wanted, rel=0.1), name
        else:
            value = 0.0 if name.endswith("bias") else 1.0
            assert (parameter == value).all(), name


def test_dropout_is_in_the_sum_and_in_training_alone():
    model, tokens = make_model(dropout=0.5), draw()
    assert torch.equal(model(tokens), model(tokens))
    assert model.dropout.p == 0.5
    seen = []
    model.dropout.register_forward_hook(lambda m, args, output: seen.append(output))
    model.train()(tokens)
    assert 0.2 < (seen[0] == 0).double().mean() < 0.8


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"heads": 4}, "heads must divide d_model, got heads=4 and d_model=6"),
        ({"segments": 0}, "segments must be an integer ≥ 1, got 0"),
        ({"pad": V}, "pad must be an integer from 0 to 12, got 13"),
        ({"dropout": 1.0}, r"dropout must be a number in \[0, 1\), got 1"),
        ({"embedding_width": 0}, "embedding_width must be an integer ≥ 1, got 0"),
        ({"activation": "elu"}, "activation must be one of 'relu', "),
    ],
)
def test_a_config_that_cannot_be_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        BertConfig(V, **SIZES | given)


PAIR = torch.ones(1, 2, dtype=torch.long)


@pytest.mark.parametrize(
    ("tokens", "segments", "message"),
    [
        (torch.full((1, 2), V), None, "tokens must hold integers from 0 to 12, got 13"),
        (torch.ones(1, 8).long(), None, "length must be at most max_len, got length=8"),
        (PAIR, 2 * PAIR, "segments must hold integers from 0 to 1, got 2"),
        (PAIR, PAIR[:, :1], r"segments must have the shape \(b, t\) with t=2"),
    ],
)
def test_what_does_not_fit_is_named(tokens, segments, message):
    with pytest.raises(ValueError, match=message):
        make_model()(tokens, segments)


# ---- what it is asked ----------------------------------------------------------

SPECIAL = (0, 1, 2, 5)  # 5 is the mask
MANY = torch.arange(V).repeat(6000, 1)  # each token, 6000 times


def hide(**changes):
    given = {"rate": 0.4, "generator": torch.Generator().manual_seed(1)} | changes
    return mask_tokens(MANY, V, given.pop("mask", 5), SPECIAL, **given)


def share(of: torch.Tensor) -> float:
    return of.double().mean().item()


def test_what_is_asked_for_is_hidden_in_three_ways():
    tokens = MANY.clone()
    read, asked = hide()
    assert torch.equal(MANY, tokens), "what was given stays as it was"
    assert torch.equal(read[~asked], tokens[~asked])
    ordinary = [i for i in range(V) if i not in SPECIAL]
    assert not asked[:, SPECIAL].any()
    for i in ordinary:
        assert share(asked[:, i]) == pytest.approx(0.4, abs=0.03)
    inside, answers = read[asked], tokens[asked]
    assert share(inside == 5) == pytest.approx(0.8, abs=0.01)
    # of the random ones, one in nine is the token itself
    assert share(inside == answers) == pytest.approx(0.1 + 0.1 / 9, abs=0.01)
    others = inside[(inside != 5) & (inside != answers)]
    drawn = others.bincount(minlength=V).double() / len(others)
    wanted = [i not in SPECIAL for i in range(V)]
    assert torch.equal(drawn > 0, torch.tensor(wanted))
    assert drawn[ordinary].min() > 0.7 / 9 and drawn.max() < 1.3 / 9


@pytest.mark.parametrize(
    ("shares", "masks", "same"),
    [((1, 0, 0), 1.0, 0.0), ((0, 1, 0), 0.0, 1 / 9), ((0, 0, 1), 0.0, 1.0),
     ((0.5, 0.2, 0.3), 0.5, 0.3 + 0.2 / 9)],
)  # fmt: skip
def test_the_shares_are_arguments(shares, masks, same):
    read, asked = hide(shares=shares)
    assert share(read[asked] == 5) == pytest.approx(masks, abs=0.015)
    assert share(read[asked] == MANY[asked]) == pytest.approx(same, abs=0.015)


def test_all_may_be_asked_for():
    _, asked = hide(rate=1.0)
    assert torch.equal(asked, ~torch.isin(MANY, torch.tensor(SPECIAL)))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_what_is_read_are_ids_like_those_given(dtype):
    read, _ = mask_tokens(MANY.to(dtype), V, 5, SPECIAL, rate=0.5)
    assert read.dtype == dtype


def test_fifteen_in_a_hundred_unless_said_otherwise():
    read, asked = mask_tokens(MANY, V, 5, SPECIAL)
    assert share(asked[:, 3]) == pytest.approx(0.15, abs=0.02)
    assert share(read[asked] == 5) == pytest.approx(0.8, abs=0.015)
    assert not hide(rate=0.0)[1].any()


def test_the_mask_itself_is_special_even_if_nobody_says_so():
    read, asked = mask_tokens(MANY, V, 5, (), rate=0.5, shares=(0, 1, 0))
    assert not asked[:, 5].any() and not (read[:, :5] == 5).any()


def test_a_generator_decides_alone():
    first, again = hide(), hide()
    other = hide(generator=torch.Generator().manual_seed(2))
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first[1], other[1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rate": 1.1}, r"rate must be a number in \[0, 1\], got 1.1"),
        ({"rate": -0.1}, r"rate must be a number in \[0, 1\], got -0.1"),
        ({"shares": (0.8, 0.1, 0.2)}, r"shares must be .* add up to 1, got \(0.8"),
        ({"shares": (1.2, -0.2, 0.0)}, "shares must be .* add up to 1"),
        ({"shares": (0.5, 0.5)}, "shares must be three numbers"),
        ({"mask": 400}, "mask must be an integer from 0 to 12, got 400"),
    ],
)
def test_a_way_to_hide_that_cannot_be_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        hide(**given)


def test_something_must_be_left_to_draw():
    with pytest.raises(ValueError, match="special must leave a token to draw"):
        mask_tokens(MANY, V, 5, range(V))


# ---- pairs ---------------------------------------------------------------------

DOCUMENTS = [
    [(f"{name}{i}",) for i in range(size)]
    for name, size in (("a", 40), ("b", 30), ("c", 1), ("d", 30))
]


def test_half_of_the_next_sentences_are_from_elsewhere():
    pairs = next_sentence_pairs([*DOCUMENTS, []], seed=3)
    assert len(pairs) == 39 + 29 + 29
    firsts = [one for document in DOCUMENTS for one in document[:-1]]
    assert [pair.first for pair in pairs] == firsts
    homes = set()
    for (first,), (second,), label in pairs:
        follows = (first[0], int(first[1:]) + 1) == (second[0], int(second[1:]))
        assert follows == (label == 0)
        assert (first[0] != second[0]) == label
        homes |= {second} if label else set()
    assert {one[0] for one in homes} == set("abcd")
    assert not {one[1:] for one in homes} <= {"0", "1"}, "any of its sentences"
    assert 30 < sum(pair.label for pair in pairs) < 67
    assert pairs == next_sentence_pairs(DOCUMENTS, 3) != next_sentence_pairs(DOCUMENTS)


def test_half_of_the_neighbours_are_turned_round():
    pairs = sentence_order_pairs([*DOCUMENTS, []], seed=3)
    for (first,), (second,), label in pairs:
        assert first[0] == second[0]
        assert int(second[1:]) - int(first[1:]) == (-1 if label else 1)
    assert pairs == sentence_order_pairs(DOCUMENTS, seed=3)
    assert pairs != sentence_order_pairs(DOCUMENTS)
    others = next_sentence_pairs(DOCUMENTS, seed=3)
    assert [pair.label for pair in pairs] == [pair.label for pair in others]
    for pair, other in zip(pairs, others, strict=True):
        assert pair == other if not pair.label else pair.second == other.first


def test_one_document_has_no_elsewhere():
    with pytest.raises(ValueError, match=r"documents must hold at least 2 .*got 1"):
        next_sentence_pairs([DOCUMENTS[0], []])
    assert sentence_order_pairs([]) == []


def test_a_pair_is_one_row_with_two_segments():
    ids, segments = pair_ids([7, 8], [9], start=2, end=3)
    assert ids == [2, 7, 8, 3, 9, 3]
    assert segments == [0, 0, 0, 0, 1, 1]
