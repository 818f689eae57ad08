"""ch16/drawings.py: tokens, the model by hand, and how it begins."""

import pytest
import torch

from annotated.chapters.ch16 import drawings as ch16
from annotated.chapters.ch16.drawings import TINY, norm
from annotated.data.byte_bpe import gpt2_tokenizer
from annotated.recipes.gpt2 import stream_by_depth
from tests.shown import cells


@pytest.fixture(scope="module")
def tokenizer():
    return gpt2_tokenizer()


# ---- tokens ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b" the", "␣the"),
        (b"\n", "⏎"),
        ("中".encode(), "中"),
        ("中".encode()[:2], "·e4·b8"),
    ],
)
def test_a_token_is_text_or_bytes(token, text):
    assert ch16.token_text(token) == text


def test_texts_come_back_and_the_proof_notices(tokenizer, capsys, monkeypatch):
    ch16.check_tokenizer(tokenizer)
    assert capsys.readouterr().out.count("✓") == 2
    monkeypatch.setattr(ch16, "find_spec", lambda name: None)
    ch16.check_tokenizer(tokenizer)
    assert capsys.readouterr().out.count("✓") == 1
    wrong = type("Wrong", (), {"encode": lambda s, t: [1], "decode": lambda s, i: "x"})
    with pytest.raises(AssertionError):
        ch16.check_tokenizer(wrong())


def test_other_ids_are_noticed(tokenizer):
    class Swapped:
        ranks = tokenizer.ranks

        def encode(self, text):
            return tokenizer.encode(text)[::-1]

        def decode(self, ids):
            return tokenizer.decode(ids[::-1])

    with pytest.raises(AssertionError):
        ch16.check_tokenizer(Swapped())


# ---- the model ---------------------------------------------------------------------


def linear(w, name, x):
    return x @ w[f"{name}.weight"] + w[f"{name}.bias"]


def read(w, tokens, heads, gelu="tanh"):
    x = w["wte.weight"][tokens] + w["wpe.weight"][: len(tokens)]
    past = torch.ones(len(x), len(x)).tril().bool()
    for i in range(TINY.layers):
        q, k, v = linear(w, f"h.{i}.attn.c_attn", norm(w, f"h.{i}.ln_1", x)).chunk(3, 1)
        q, k, v = (y.unflatten(-1, (heads, -1)).transpose(0, 1) for y in (q, k, v))
        scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
        mixed = scores.masked_fill(~past, -torch.inf).softmax(-1) @ v
        x = x + linear(w, f"h.{i}.attn.c_proj", mixed.transpose(0, 1).flatten(1))
        inner = linear(w, f"h.{i}.mlp.c_fc", norm(w, f"h.{i}.ln_2", x))
        inner = torch.nn.functional.gelu(inner, approximate=gelu)
        x = x + linear(w, f"h.{i}.mlp.c_proj", inner)
    return norm(w, "ln_f", x) @ w["wte.weight"].T


def test_the_model_by_hand_is_the_module():
    state, model, tokens = ch16.small_official()
    wanted = model(tokens[None])[0]
    assert torch.allclose(read(state, tokens, TINY.heads), wanted, atol=1e-9)
    other = read(state, tokens, TINY.heads, "none")
    assert not torch.allclose(other, wanted, atol=1e-6)
    assert all(p.dtype == torch.float64 for p in model.parameters())


def test_pytorchs_encoder_is_asked_for_itself(capsys):
    _, model, tokens = ch16.small_official()
    ch16.check_encoder(model, tokens)
    assert "gradients" in capsys.readouterr().out
    model.blocks.layers[0].attention.causal = False
    with pytest.raises(AssertionError, match="TransformerEncoder"):
        ch16.check_encoder(model, tokens)


# ---- beginnings ----------------------------------------------------------------------


def test_first_losses_are_of_knowing_nothing_and_of_boasting():
    rows = cells(ch16.first_losses(torch.randint(50_257, (60,))))
    good, bad, wanted = (float(row[1]) for row in rows[1:])
    assert abs(good - wanted) < 0.5 and wanted == 10.8 and bad > 300
    assert [row[2] for row in rows[1:]] == ["0%", "100%", ""]


def test_a_stream_that_grows_with_the_factor_too_is_noticed(monkeypatch):
    monkeypatch.setattr(
        ch16, "stream_by_depth", lambda order, n, _: stream_by_depth(order, n, False)
    )
    with pytest.raises(AssertionError):
        ch16.stream_figure()


def test_what_enters_is_kept_by_the_factor():
    shares = ch16.embedding_shares()
    assert shares[False] < 0.03 and 0.1 < shares[True] < 0.25
