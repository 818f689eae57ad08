"""ch16/drafting.py: tables, layers, and readings step by step."""

import pytest
import torch
from torch import nn

from annotated.chapters.ch16 import drafting
from annotated.chapters.ch16 import drawings_c as ch16c
from annotated.data.datasets import DataError
from annotated.data.glassllm import decode, encode, glass_model
from annotated.speculative import acceptance, speculative_sample

P = torch.tensor([0.1, 0.2, 0.3, 0.4])
Q = torch.tensor([0.4, 0.3, 0.2, 0.1])
V = 4


@pytest.fixture(scope="module")
def model():
    return glass_model()


@pytest.fixture(scope="module")
def texts(model):
    return drafting.texts(model, 8)


@pytest.fixture(scope="module")
def drafts(model, texts):
    return drafting.drafts(model, texts)


def table(chances):
    return nn.Embedding.from_pretrained(chances.log())


# ---- drafts --------------------------------------------------------------------


def test_a_missing_file_is_named(monkeypatch, capsys):
    def fails():
        raise DataError("gone")

    assert drafting.model().config.layers == 4
    monkeypatch.setattr(drafting, "glass_model", fails)
    assert drafting.model() is None
    assert "is not in this installation" in capsys.readouterr().out


def test_texts_fill_the_context_and_differ_by_seed(model, texts):
    (start,) = encode("\n")
    assert texts.shape == (8, 128) and (texts[:, 0] == start).all()
    assert not torch.equal(texts[0], texts[1])
    assert torch.equal(drafting.texts(model, 8), texts)
    assert not torch.equal(drafting.texts(model, 8, seed=1), texts)


def test_pairs_are_counted():
    counts = drafting.count_pairs(torch.tensor([[0, 1, 0, 1], [2, 2, 3, 0]]), V)
    wanted = [[0, 2, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]]
    assert counts.tolist() == wanted


def test_probabilities_are_added_up_by_the_token_before():
    rows = torch.stack([P, Q, P.flip(0), Q.flip(0)])
    sums = drafting.add_chances(table(rows), torch.tensor([[0, 1, 0, 3], [1, 1, 1, 2]]))
    wanted = torch.stack([2 * P, 4 * Q, 0 * P, 0 * P])
    torch.testing.assert_close(sums, wanted)


def test_first_layers_are_the_models(model):
    tokens = torch.tensor([encode("said the Queen")])
    for count in (1, 3):
        x = model.embed(tokens)
        for layer in model.blocks.layers[:count]:
            x = layer(x)
        wanted = model.output(model.blocks.norm(x))
        draft = drafting.first_layers(model, count)
        torch.testing.assert_close(draft(tokens), wanted)
        assert not draft.training
    assert torch.equal(drafting.first_layers(model, 4)(tokens), model(tokens))


def test_a_table_has_no_zero():
    counts = torch.tensor([[3.0, 0, 0, 1], [0] * 4, [0, 2, 0, 0], [0] * 4])
    found = drafting.as_draft(counts)(torch.arange(V)).softmax(dim=-1)
    every = torch.tensor([3.1, 2.1, 0.1, 1.1]) / 6.4
    wanted = counts + 5 * every
    torch.testing.assert_close(found, wanted / wanted.sum(dim=1, keepdim=True))


def test_averaged_pairs_are_another_table(drafts):
    one, other = (drafts[f"pairs, {how}"].weight for how in ("counted", "averaged"))
    assert (one - other).abs().max() > 1


def test_drafts_get_better(model, drafts):
    assert [*drafts] == [*ch16c.NAMES]
    others = drafting.texts(model, 4, seed=1)
    shares = [drafting.kept_share(one, model, others) for one in drafts.values()]
    layers = shares[4:]
    assert layers == sorted(layers) and shares[7] == pytest.approx(1)
    assert shares[:4] == sorted(shares[:4])
    rows = [drafts[n].weight.softmax(dim=-1) for n in ("any token", "frequent tokens")]
    torch.testing.assert_close(rows[0], torch.full((1024, 1024), 1 / 1024))
    assert (rows[1] == rows[1][0]).all() and rows[1].std() > 1e-4
    assert [len(drafts[f"{n} layers"].blocks.layers) for n in (2, 3)] == [2, 3]
    assert len(drafts["1 layer"].blocks.layers) == 1


def test_what_a_guess_costs(model, drafts):
    costs = [drafting.cost_of(one, model) for one in drafts.values()]
    assert costs[:4] == [1024 / 852_608] * 4 and costs[7] == 1
    one = 128 * (128 + 64 + 64 + 128) + 3 * 128 * 341 + 2 * 128  # weights of a layer
    assert costs[4] == pytest.approx((1024 * 128 + 128 + one) / 852_608)
    assert costs[5] - costs[4] == pytest.approx(one / 852_608)


def test_how_often_a_guess_is_kept():
    draft, target = table(Q.expand(V, V)), table(P.expand(V, V))
    tokens = torch.tensor([[0, 1, 2]])
    assert drafting.kept_share(draft, target, tokens) == pytest.approx(0.6)
    sharp = [x**2 / (x**2).sum() for x in (Q, P)]
    wanted = acceptance(*sharp).item()
    assert drafting.kept_share(draft, target, tokens, 0.5) == pytest.approx(wanted)
    assert drafting.kept_share(draft, target, tokens, 0) == 0
    rows = torch.stack([P, Q, P, P])
    assert drafting.kept_share(table(rows), target, tokens, 0) == pytest.approx(1 / 2)


# ---- one reading after another -------------------------------------------------


@pytest.mark.parametrize("name", ["pairs, averaged", "2 layers", "the model itself"])
def test_readings_are_those_of_the_module(model, drafts, name):
    exact, draft = glass_model().double(), drafts[name]
    draft = exact if draft is model else drafting.first_layers(exact, 2).double()
    if name == "pairs, averaged":
        draft = nn.Embedding.from_pretrained(drafts[name].weight.double())
    prompt, options = torch.tensor([encode("said")]), {"max_new_tokens": 30}
    for seed in range(3):
        seen = drafting.readings(exact, draft, prompt, guesses=3, seed=seed, **options)
        draws = torch.Generator().manual_seed(seed)
        options |= {"guesses": 3}
        found = speculative_sample(exact, draft, prompt, generator=draws, **options)
        options.pop("guesses")
        assert [one["kept"] for one in seen] == found.kept
        text = "".join(
            "".join(token for token, *_ in one["guesses"][: one["kept"]]) + one["more"]
            for one in seen
        )
        assert text == decode(found.tokens[0].tolist())
        assert all(len(one["guesses"]) <= 3 for one in seen)


def test_a_guess_comes_with_both_probabilities():
    rows = torch.eye(1024)[torch.arange(1, 1025) % 1024]  # each token's next number
    sure = nn.Embedding.from_pretrained((rows + 1e-12).log())
    half = nn.Embedding.from_pretrained((rows + rows.roll(1, 1) + 1e-12).log())
    prompt, options = torch.tensor([[9]]), {"max_new_tokens": 6, "guesses": 2}
    for one in drafting.readings(half, sure, prompt, **options):
        assert [(q, p) for _, q, p in one["guesses"]] == (
            [(1.0, 0.5)] * len(one["guesses"])
        )
    whole = drafting.readings(sure, half, prompt, **options)
    assert {(q, p) for one in whole for _, q, p in one["guesses"]} <= (
        {(0.5, 1.0), (0.5, 0.0)}
    )
