"""ch15/drawings.py: its proofs, counts, and what the guesser guesses."""

import ast
import json
import re

import pytest
import torch
from torch.nn import functional as F

from annotated.attention import record_attention
from annotated.bert import Bert, BertConfig, mask_tokens
from annotated.chapters.ch15 import drawings as ch15
from annotated.chapters.ch15.drawings import HIDING
from annotated.data.functions import tokens_of
from annotated.data.wordpiece import cut_word
from annotated.masks import padding_mask
from annotated.page.packed import pack_bert, unpack_bert
from annotated.recipes.pretraining import Tokens

# ---- hide and guess ------------------------------------------------------------


def hide(tokens, mask, ordinary, rate=0.15, shares=(0.8, 0.1, 0.1)):
    special = [i for i in range(int(ordinary[-1]) + 1) if i not in ordinary]
    return mask_tokens(tokens, int(ordinary[-1]) + 1, mask, special, rate, shares)


def test_hiding_is_proved_by_its_shares(capsys):
    ch15.check_hide(hide)
    assert capsys.readouterr().out.count("✓") == 2
    for wrong in (
        lambda *given: hide(*given, rate=0.2),
        lambda *given: hide(*given, shares=(1.0, 0.0, 0.0)),
        lambda *given: hide(*given, shares=(0.8, 0.2, 0.0)),
    ):
        with pytest.raises(AssertionError):
            ch15.check_hide(wrong)

    def all_padding(tokens, mask, ordinary):
        read, asked = hide(tokens, mask, ordinary)
        return read, asked | (tokens == 0)

    with pytest.raises(AssertionError, match="padding"):
        ch15.check_hide(all_padding)


# ---- the model -----------------------------------------------------------------


def encode(bert, tokens, segments):
    x = bert.embedding.weight[tokens] + bert.segments.weight[segments]
    x = bert.norm(x + bert.positions.table[: tokens.shape[1]])
    return bert.encoder(x, padding_mask(tokens))


def guess(bert, states):
    x = bert.transform_norm(F.gelu(bert.transform(states)))
    return x @ bert.embedding.weight.T + bert.output.bias


def test_the_model_is_proved_against_pytorch(capsys, monkeypatch):
    ch15.check_bert(encode, guess)
    assert capsys.readouterr().out.count("✓") == 2
    with pytest.raises(AssertionError):
        ch15.check_bert(lambda b, t, s: encode(b, t, 0 * s), guess)
    with pytest.raises(AssertionError):
        ch15.check_bert(encode, lambda b, x: guess(b, x) - b.output.bias)
    shown = Bert.forward

    def unmasked(self, tokens, segments=None, mask=None):
        return shown(self, tokens, segments, torch.ones(1, 1, 1, 1).bool())

    monkeypatch.setattr(Bert, "forward", unmasked)
    with pytest.raises(AssertionError, match=r"nn\.TransformerEncoder"):
        ch15.check_bert(
            lambda b, t, s: b(t, s),  # as wrong as the module
            guess,
        )


def test_parameters_are_counted_part_by_part():
    config = BertConfig(11, d_model=6, heads=2, layers=3, d_ff=10, max_len=7)
    parts, model = ch15.parameter_count(config), Bert(config)

    def number(*modules):
        return sum(p.numel() for module in modules for p in module.parameters())

    tables = model.embedding, model.positions, model.segments, model.norm
    assert parts["embeddings"] == number(*tables)
    assert parts["layers"] == number(model.encoder)
    assert parts["pooler"] == number(model.pooler)
    heads = number(model.transform, model.transform_norm, model.follows) + 11
    assert parts["heads"] == heads


def test_cutting_is_proved(capsys):
    ch15.check_cut(cut_word)
    assert "1,364 words" in capsys.readouterr().out
    with pytest.raises(AssertionError):
        ch15.check_cut(lambda word, pieces: [word] if word in pieces else ["[UNK]"])


# ---- learning ------------------------------------------------------------------


def test_attention_to_neighbours_is_that_of_each_head():
    torch.manual_seed(0)
    sizes = {"d_model": 8, "heads": 2, "layers": 2, "d_ff": 8, "max_len": 9}
    model = Bert(BertConfig(11, dropout=0.5, **sizes)).double()
    for weight in model.parameters():
        weight.data += torch.randn_like(weight)
    tokens = torch.randint(1, 11, (3, 5))
    shares = ch15.neighbour_shares(model, tokens)
    assert model.training, "as it was"
    with record_attention(model.eval()) as maps:
        model(tokens)
    for shown, one in zip(shares.chunk(2), maps.values(), strict=True):
        for head in range(2):
            weights = one[0][:, head]
            near = [
                weights[b, i, j].item()
                for b in range(3) for i in range(5) for j in (i - 1, i + 1)
                if 0 <= j < 5
            ]  # fmt: skip
            assert shown[head].item() == pytest.approx(sum(near) / 15)


# ---- guess what is hidden --------------------------------------------------------


def filled(text, hidden):
    for token in hidden:
        text = text.replace("?", token, 1)
    return text


@pytest.fixture
def bert():
    """A small BERT that reads all suggestions."""
    torch.manual_seed(1)
    words = Tokens([tokens_of(filled(*one)) for one in HIDING.items()])
    sizes = {"d_model": 8, "heads": 2, "layers": 2, "d_ff": 12, "max_len": 32}
    model = Bert(BertConfig(len(words), **sizes)).eval()
    for weight in model.parameters():
        weight.data += (0.7 if weight.dim() > 1 else 0.1) * torch.randn_like(weight)
    model.positions.table.data *= 4  # so that not every place gets the same guess
    return model, words


def test_a_packed_bert_is_the_same_but_for_rounding(bert):
    model, words = bert
    packed = pack_bert(model, words)
    rounded, again = unpack_bert(json.loads(json.dumps(packed)))
    assert again.symbols == words.symbols and rounded.config == model.config
    assert packed["config"]["norm"] == "post", "as the browser reads it"
    assert not rounded.training and rounded.output.weight is rounded.embedding.weight
    for name, weight in model.state_dict().items():
        room = weight.abs().amax(dim=-1, keepdim=True) / 254 if weight.dim() == 2 else 0
        difference = (rounded.state_dict()[name] - weight).abs()
        assert (difference <= room + 1e-6).all(), name
    ids = words.ids([tokens_of("def f(*args):\n    return args[key]")])
    states = model(ids), rounded(ids)
    exact, near = model.guess_tokens(states[0]), rounded.guess_tokens(states[1])
    assert 0 < (exact - near).square().mean().sqrt() < 0.05 * exact.std()
    assert pack_bert(rounded, again) == packed
    sizes = {name: len(packed[name]) for name in ("whole", "real")}
    numbers = sum(weight.numel() for weight in model.parameters())
    assert sizes["whole"] < 4 / 3 * numbers + 4, "a byte for a number, each once"


def test_what_is_hidden_was_python():
    for text, hidden in HIDING.items():
        assert text.count("?") == len(hidden) in (1, 2)
        ast.parse(re.sub("return", "yield", filled(text, hidden)))
