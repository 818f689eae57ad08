"""ch15/drawings.py: its drawings draw what ran, and its sentences say it."""

import ast
import json
import re
from pathlib import Path

import pytest
import torch
from markupsafe import escape
from torch import nn
from torch.nn import functional as F

from annotated.attention import record_attention
from annotated.bert import Bert, BertConfig, mask_tokens
from annotated.chapters.ch15 import drawings as ch15
from annotated.chapters.ch15.drawings import HIDING, ORDERS
from annotated.data.functions import tokens_of
from annotated.data.wordpiece import cut_word
from annotated.masks import padding_mask
from annotated.page.packed import pack_bert, unpack_bert
from annotated.recipes.pretraining import Tokens

RESULTS = Path(__file__).parents[3] / "book" / "results"


def recorded(name):
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def html(shown):
    return shown._repr_html_()


def alt(shown):
    return re.search(r'(?:alt|aria-label)="([^"]+)"', html(shown))[1]


def cells(shown):
    return re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", html(shown))


# ---- hide and guess ------------------------------------------------------------


def test_the_opening_hides_the_right_side_once():
    text = html(ch15.gap())
    assert text.count("stroke-dasharray") == 2, "two tokens behind the gap"
    assert text.count(">None<") == text.count(">:<") == 1, "seen from both sides"
    assert text.count(">source<") == 2 and text.count(">?<") == 2


def test_what_is_asked_for_stands_below_what_is_read():
    asked = torch.tensor([False, True, True, True])
    shown = ch15.hidden_row(["def", "f", "(", ")"], ["def", "[MASK]", "if", ")"], asked)
    text = html(shown)
    assert text.count(">def<") == 1 and text.count(">)<") == 2
    assert text.count(">f<") == text.count(">[MASK]<") == text.count(">if<") == 1
    assert text.count('fill="var(--at-right)"') == 1, "it stayed"
    assert text.count('fill="var(--at-wrong)"') == 1, "a random one"
    assert text.count('fill="var(--at-this)"') == 1, "a mask"
    assert alt(shown) == "Read: def [MASK] if ). Asked for: f, (, )."
    shown = ch15.hidden_row(["a", "b"], ["a", "[MASK]"], asked[:2], answers=False)
    assert ">b<" not in html(shown) and html(shown).count(">?<") == 1
    assert alt(shown) == "Read: a [MASK]. Asked for: 1 tokens."


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


def test_three_embeddings_are_added():
    text = html(ch15.inputs_picture())
    assert text.count(">A<") == 4 and text.count(">B<") == 3
    assert text.count(">[SEP]<") == 2 and text.count(">6<") == 1


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


def test_the_sizes_are_those_of_the_literature():
    found = cells(ch15.counts_table())
    assert found[9:18] == "base 12 768 23.8 85.1 0.6 0.6 109.5 110.1".split()
    assert found[18:27] == "large 24 1024 31.8 302.3 1.0 1.1 335.1 336.2".split()


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


def test_the_line_and_the_head_are_said():
    shares = [torch.tensor([0.06, x]) for x in (0.06, 0.07, 0.1, 0.3, 0.5)]
    shown = ch15.plateau_figure([8.0, 4.2, 3.9, 3.8, 2.5], 4.0, shares, 20)
    assert "to the line, 4.00 nats" in alt(shown) and "ends at 2.50" in alt(shown)
    assert "rises to 50%, and passes a fifth at step 60, when the loss is 3.80" in (
        alt(shown)
    )


def test_delays_are_those_of_the_record():
    record = recorded("plateau")
    said = alt(ch15.delays_figure(record))
    assert "The learning rate, the base run: 1.67 · 1.56 · 1.66" in said
    assert "The batch, a quarter, at full length: 3.30" in said
    assert ch15.delays_said(record)
    bare = "three times the rate, no warm-up"
    other = [
        row | ({"left": 300} if row["kind"] == bare else {}) for row in record["rows"]
    ]
    with pytest.raises(AssertionError):
        ch15.delays_said(record | {"rows": other})


def test_neighbours_are_those_of_the_record():
    record = recorded("neighbours")
    assert "neighbours alone: 1.61 · 1.74 · 1.64" in alt(ch15.neighbours_figure(record))
    said = ch15.neighbours_said(record)
    assert (
        "after 160 steps the loss is 2.2 to 2.3, where it's usually 3.4 to 3.5" in said
    )
    assert "2.4 to 2.5 after 400 steps instead of 1.9 to 2.1" in said
    other = [
        row | {"losses": [*row["losses"][:-1], 2.0]} if row["kind"] == "hidden" else row
        for row in record["rows"]
    ]
    with pytest.raises(AssertionError):
        ch15.neighbours_said(record | {"rows": other})


def test_ways_to_hide_are_those_of_the_record():
    record, labels = recorded("masking"), recorded("labels")
    text = " ".join(cells(ch15.masking_table(record, labels)))
    assert "0.65 · 0.64 · 0.60" in text, "from nothing"
    for row in record["rows"]:
        assert f"{row['masks']['loss']:.2f}" in text
        assert f"{row['shown']['accuracy']:.0%}" in text
        assert f"{row['fine-tuned']:.2f}" in text
    said = ch15.masking_said(record, labels)
    assert "33% of the cases" in said and "gets 0.55" in said
    assert "without any pretraining (0.63)" in said
    other = [row | {"fine-tuned": 0.7} for row in record["rows"]]
    with pytest.raises(AssertionError):
        ch15.masking_said(record | {"rows": other}, labels)


def test_pairs_are_those_of_the_record():
    record = recorded("next")
    found = cells(ch15.pairs_table(record))
    for kind, name in (("next", "does it follow?"), ("order", "which comes first?")):
        row = found[found.index(name) :]
        runs = [run for run in record["rows"] if run["kind"] == kind]
        assert row[1] == " · ".join(f"{run['topic']:.0%}" for run in runs)
        assert row[2] == " · ".join(f"{run['model']:.0%}" for run in runs)
    assert ch15.pairs_said(record)
    other = [
        row | ({"model": 0.7} if row["kind"] == "next" else {})
        for row in record["rows"]
    ]
    with pytest.raises(AssertionError):
        ch15.pairs_said(record | {"rows": other})


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


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("if source ? ? None:\n    return source", [2, 3]),
        ("def __exit__(self, *?):\n    self.close(*?)", [6, 16]),
        ("try:\n    return data[key]\n? ?:\n    return None", [11, 12]),
    ],
)
def test_hidden_tokens_are_guessed_at_once_and_one_after_the_other(bert, text, places):
    model, words = bert
    assert text in HIDING
    ids = torch.tensor(words.row(tokens_of(filled(text, HIDING[text]))))
    ids[places] = words.mask

    def chances(ids):
        logits = model.guess_tokens(model(ids[None]))[0, :, 5:]  # none is special
        return nn.functional.pad(logits.softmax(dim=-1), (5, 0))

    at_once = chances(ids)[places]
    best = at_once.argmax(dim=-1)
    assert best[0] != best[1]
    surer = at_once.max(dim=-1).values.argmax().item()
    for order, first in zip(ORDERS, (None, 0, 1, surer), strict=True):
        found = ch15.guessed(model, words, text, order)
        assert [i for i, t in enumerate(found["tokens"]) if t == "?"] == places
        assert not any(found["unknown"]) and found["first"] == first
        for row, guesses in zip(at_once, found["guesses"], strict=True):
            assert len(guesses) == ch15.BEST
            for symbol, chance in guesses:
                right = row[words.symbols.index(symbol)]
                assert chance == pytest.approx(right.item())
            values = [chance for _, chance in guesses]
            assert values == sorted(values, reverse=True)
            assert values[0] == row.max().item()
        if first is None:
            assert "again" not in found
            continue
        after = ids.clone()
        after[places[first]] = best[first]
        again, before = chances(after)[places[1 - first]], best[1 - first]
        symbol, chance = found["again"][0]
        assert symbol == words.symbols[again.argmax()]
        assert chance == pytest.approx(again.max().item())
        assert found["kept"] == pytest.approx(again[before].item())
        assert found["changed"] == (again.argmax() != before).item()


def test_one_hidden_token_is_never_filled_in(bert):
    found = ch15.guessed(*bert, "return ?.strange", ORDERS[3])
    assert found["tokens"] == ("return", "?", ".", "strange", "⏎")
    assert found["unknown"] == [False, False, False, True, False]
    assert len(found["guesses"]) == 1 and found["first"] is None


def test_the_guesser_brings_all_that_its_script_asks_for(bert):
    text = html(ch15.mask_guesser(*bert))
    data, checks = (
        json.loads(re.search(rf'explorer-{name}">(.*?)</script>', text)[1])
        for name in ("data", "checks")
    )
    assert data["model"] == pack_bert(*bert) and data["orders"] == ORDERS
    assert data["model"]["config"]["norm"] == "post"
    for one in data["known"]:
        assert one["text"].count("?") == len(one["hidden"]) in (1, 2)
        ast.parse(re.sub("return", "yield", filled(one["text"], one["hidden"])))
        shown = str(escape(one["text"]))
        assert f'annotated-code">{shown}</button>' in text
    assert len(data["known"]) == 6
    model, words = unpack_bert(data["model"])
    model.double()
    states = [check["state"] for check in checks]
    assert {state["order"] for state in states} == {*ORDERS}
    assert {state["text"] for state in states} == {*HIDING}
    for check in checks:
        state, values = check["state"], check["values"]
        wanted = ch15.guessed(model, words, state["text"], state["order"])
        assert values == json.loads(json.dumps(wanted))


# ---- few labels ----------------------------------------------------------------


def test_both_learning_curves_are_drawn():
    shown = ch15.few_labels_figure(*map(recorded, ("labels", "films", "borrowed")))
    said = alt(shown)
    assert "functions: macro F1, %, pretrained: 53 to 76" in said
    assert "functions: macro F1, %, encoder: 54 to 74" in said
    assert "pairs of sentences: right, %, pretrained: 75 to 83" in said
    assert "pairs of sentences: right, %, scratch" not in said


def test_what_few_labels_gain_is_said():
    record = recorded("labels")
    said = ch15.few_labels_said(record)
    assert "0.677 from nothing, 0.711 after shuffled functions, and 0.723" in said
    other = [
        row | {"tuned": row["tuned"] - 0.05 * (row["kind"] == "pretrained")}
        for row in record["rows"]
    ]
    with pytest.raises(AssertionError):
        ch15.few_labels_said(record | {"rows": other})
