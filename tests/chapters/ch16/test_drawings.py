"""ch16/drawings.py: tokens, perplexities, beginnings and what is said of them."""

import json
import re
from math import exp, log
from pathlib import Path

import pytest
import torch
from bs4 import BeautifulSoup

from annotated.chapters.ch16 import drawings as ch16
from annotated.chapters.ch16.drawings import DEPTHS, TINY, norm, random_state
from annotated.data.byte_bpe import END_OF_TEXT, gpt2_tokenizer
from annotated.gpt import GPT
from annotated.gpt2 import initialise
from annotated.recipes.gpt2 import short_tokenizer

ROOT = Path(__file__).resolve().parents[3]


def record(name):
    return json.loads((ROOT / "book" / "results" / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def tokenizer():
    return gpt2_tokenizer()


def soup(html):
    return BeautifulSoup(html.text, "html.parser")


def cells(html):
    return [
        [cell.text for cell in row.select("th, td")] for row in soup(html).select("tr")
    ]


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


def test_a_row_holds_each_token_and_its_rank(tokenizer):
    tokens = [" unh", "app", "ily", "中"]
    row = soup(ch16.tokens_row([t.encode() for t in tokens], tokenizer.ranks))
    words = [t.text for t in row.select("text")]
    ranks = [str(tokenizer.ranks[t.encode()]) for t in tokens]
    shown = [t.replace(" ", "␣") for t in tokens]
    assert words == [x for pair in zip(shown, ranks, strict=True) for x in pair]
    assert not row.select("[stroke-dasharray]")
    half = soup(ch16.tokens_row(["中".encode()[:1]], tokenizer.ranks))
    assert half.select("[stroke-dasharray]")


def test_long_texts_take_several_rows(tokenizer):
    drawing = soup(ch16.hero(tokenizer, "words " * 30)).select_one("svg")
    frames = drawing.select("rect")
    assert max(float(f["x"]) + float(f["width"]) for f in frames) <= 349
    _, _, _, high = map(float, drawing["viewbox"].split())
    assert max(float(f["y"]) + 40 for f in frames) < high
    assert len({f["y"] for f in frames}) > 2


def test_the_hero_says_what_it_shows(tokenizer):
    text = str(soup(ch16.hero(tokenizer)))
    assert ch16.HERO in text and "in 15 tokens" in text and "Dashed" in text


def test_languages_are_counted(tokenizer):
    html = ch16.languages_figure(tokenizer).text
    for name, sentence in ch16.SENTENCES.items():
        assert f"{name} {len(tokenizer.encode(sentence))}" in html
    most = max(len(tokenizer.encode(s)) for s in ch16.SENTENCES.values())
    assert f"{most / 13:.0f} times" in html


def test_the_tokenizer_in_the_page_has_all_tokens(tokenizer):
    html = soup(ch16.tokenizer_explorer(tokenizer))
    data = next(
        found
        for script in html.select("script[type='application/json']")
        if "tokens" in (found := json.loads(script.string))
    )
    tokens = data["tokens"].split(" ")
    assert len(tokens) == 50_256 and tokens[262] == "Ġthe" and data["end"] == 50_256
    assert [*data["letters"]][ord("a")] == "a" and len(data["letters"]) == 256


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


# ---- one number of nats ------------------------------------------------------------


def test_one_number_of_nats_has_three_perplexities():
    rows = cells(ch16.perplexities_table(30.0, "an ägg", 4))
    units = {"tokens": 4, "words": 2, "bytes": 7}
    for row, (name, n) in zip(rows[1:], units.items(), strict=True):
        assert row[0] == f"by {name}" and row[1] == str(n)
        short, long = f"{exp(30 / n):.2f}", f"{exp(30 / n) / 1e6:.1f} million"
        assert row[2] == (long if n < 5 else short)
        assert row[3] == f"{30 / n / log(2):.3f}"


def tokens_record(best=2.0, most=2.2, longer=2.6):
    rows = [
        {"tokens": size, "context": context, "seed": seed, "bits": bits + 0.01 * seed}
        for size, context, bits in [
            (256, 64, 2.5),
            (1024, 64, best),
            (4096, 64, most),
            (256, 102, longer),
        ]
        for seed in (0, 1, 2)
    ]
    return {"rows": rows, "recipe": {"model": {"max_len": 64}}}


def test_what_tokens_are_worth_is_said():
    said = ch16.tokens_said(tokens_record())
    assert "With 1,024 tokens" in said and "is 0.50 bits per byte better" in said
    assert "it's 0.10 worse" in said and "The best vocabulary has 1,024" in said
    figure = ch16.tokens_figure(tokens_record()).text
    assert "1024 tokens, context 64: 2.00 · 2.01 · 2.02" in figure
    assert "windows of 102" in figure


@pytest.mark.parametrize(
    "changes",
    [{"best": 2.42, "most": 2.45}, {"longer": 2.4}, {"best": 2.2, "most": 2.1}],
)
def test_what_is_no_longer_so_is_not_said(changes):
    with pytest.raises(AssertionError):
        ch16.tokens_said(tokens_record(**changes))


def test_the_recorded_run_holds_what_is_said():
    assert "bits per byte better" in ch16.tokens_said(record("tokens"))


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


def test_a_random_state_has_the_official_names_and_shapes():
    state = random_state(TINY)
    assert state["h.2.attn.c_attn.weight"].shape == (24, 72)
    assert state["h.0.mlp.c_proj.weight"].shape == (60, 24)
    assert state["wpe.weight"].shape == (16, 24) and len(state) == 4 + 3 * 12
    assert state["ln_f.weight"].mean() > 0.7 > abs(state["ln_f.bias"].mean())
    assert all(x.dtype == torch.float64 for x in state.values())
    assert not torch.equal(random_state(TINY, 1)["wte.weight"], state["wte.weight"])


def test_norms_have_official_names():
    torch.manual_seed(0)
    x, w = torch.randn(4, 7), {"n.weight": torch.randn(7), "n.bias": torch.randn(7)}
    wanted = torch.nn.functional.layer_norm(x, (7,), w["n.weight"], w["n.bias"])
    assert torch.allclose(norm(w, "n", x), wanted, atol=1e-5)
    tiny = torch.tensor([[1e-3, -1e-3]])
    w = {"n.weight": torch.ones(2), "n.bias": torch.zeros(2)}
    wanted = torch.nn.functional.layer_norm(tiny, (2,))
    assert torch.allclose(norm(w, "n", tiny), wanted, atol=1e-6)


# ---- beginnings ----------------------------------------------------------------------


def test_first_losses_are_of_knowing_nothing_and_of_boasting():
    torch.manual_seed(0)
    rows = cells(ch16.first_losses(torch.randint(50_257, (60,))))
    good, bad, wanted = (float(row[1]) for row in rows[1:])
    assert abs(good - wanted) < 0.5 and wanted == 10.8 and bad > 300
    assert [row[2] for row in rows[1:]] == ["0%", "100%", ""]


def test_gelu_is_drawn_with_its_dip():
    assert "dips to -0.17" in ch16.gelu_figure().text


@pytest.mark.slow
def test_the_stream_grows_only_without_the_factor(capsys):
    figure, ends = ch16.stream_figure()
    ch16.check_ends(ends)
    assert "✓" in capsys.readouterr().out
    assert "pre-norm, 1/√N: 0." in figure.text
    assert all(len(one) == len(DEPTHS) for one in ends.values()) and len(ends) == 4
    plain, factored = ends["pre-norm"], ends["pre-norm, 1/√N"]
    for wrong in (
        {"pre-norm": factored, "pre-norm, 1/√N": factored},
        {"pre-norm": plain, "pre-norm, 1/√N": plain},
    ):
        with pytest.raises(AssertionError):
            ch16.check_ends(wrong)


def depth_record(few=0.2, many=0.3):
    return {
        "recipe": {"steps": 300},
        "rows": [
            {"layers": n, "rate": r, "seed": s, "scaled": scaled}
            | {"bits": 3.0 + r + s + (0.0 if scaled else gap + 0.1 * s)}
            for n, gap in ((4, few), (32, many))
            for r in (0.01, 0.003)
            for s in (0, 1)
            for scaled in (True, False)
        ],
    }


def test_what_the_factor_does_to_training_is_said():
    said = ch16.depth_said(depth_record())
    assert (
        "by 0.20 to 0.30 bits per byte with 4 blocks, by 0.30 to 0.40 with 32" in said
    )
    assert "300 steps at rates of 0.003 and 0.01" in said
    assert "lower in every pair" in ch16.depth_said(record("depth"))


@pytest.mark.parametrize(("few", "many"), [(-0.01, 0.05), (0.02, 0.5)])
def test_the_factor_is_not_said_to_help_where_it_does_not(few, many):
    with pytest.raises(AssertionError):
        ch16.depth_said(depth_record(few, many))


def test_a_walk_goes_from_the_prompt_to_the_next_token():
    torch.manual_seed(0)
    config = TINY.__class__(300, d_model=8, heads=2, layers=1, d_ff=8, max_len=16)
    short = short_tokenizer(300)
    html = ch16.walk(GPT(config).eval(), short, "if x").text
    assert "What happens between “if x” and the next token?" in html
    assert '"tokens": [["i", "f", "␣", "x"]]' in html


def test_what_enters_is_kept_by_the_factor():
    shares = ch16.embedding_shares()
    assert shares[False] < 0.03 and 0.1 < shares[True] < 0.25


# ---- sizes and official weights ------------------------------------------------


def test_four_sizes_are_counted():
    rows = cells(ch16.sizes_table())
    assert rows[1][:4] == ["small", "12 × 768, 12 heads", "124,439,808", "117M"]
    assert rows[4][2] == "1,557,611,200" and rows[1][4] == "32%"


def test_a_missing_model_is_said_to_be_missing(tokenizer):
    assert "aren't on the machine" in ch16.continuations(None, tokenizer).text


def test_prompts_go_on_with_the_likeliest_tokens(tokenizer):
    torch.manual_seed(0)
    config = TINY.__class__(50_257, d_model=8, heads=2, layers=1, d_ff=8, max_len=64)
    model = initialise(GPT(config), 0.5).eval()
    prompt = "Hi,\nthere"
    rows = cells(ch16.continuations(model, tokenizer, [prompt]))
    ids = tokenizer.encode(prompt)
    with torch.no_grad():
        for _ in range(8):
            ids += [model(torch.tensor([ids]))[0, -1].argmax().item()]
    wanted = tokenizer.decode(ids[len(tokenizer.encode(prompt)) :])
    assert rows[1][0] == "Hi, ⏎ there"
    assert re.sub(r"\s", "", rows[1][1]) == re.sub(r"\s", "", wanted)
    assert END_OF_TEXT not in rows[1][0]
