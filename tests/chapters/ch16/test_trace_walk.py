"""ch16/trace_walk.py: what is packed is the trace, formulas are drawn."""

import json
import re
from xml.etree import ElementTree

import pytest
import torch
from bs4 import BeautifulSoup

from annotated.chapters.ch16 import trace_walk as module
from annotated.chapters.ch16.trace_walk import mathml, trace_walk, values_of, words_of
from annotated.gpt import GPT, GPTConfig
from annotated.page.frames import unpack
from annotated.trace import MAPS, OTHERS, trace
from annotated.transformer import Transformer, TransformerConfig

V = 13
WORDS = [f"w{i}" for i in range(V)]
OTHER_WORDS = [f"v{i}" for i in range(V)]
TOKENS = torch.tensor([[3, 7, 1, 4, 9]])
PAIR = torch.tensor([[5, 2, 8, 0, 0, 0]]), torch.tensor([[1, 6, 7]])
SIZES = {"d_model": 24, "heads": 4, "layers": 2, "d_ff": 300}
TODAY = {
    "positions": "rotary",
    "norm_kind": "rms",
    "activation": "swiglu",
    "kv_heads": 2,
    "bias": False,
}


def gpt(**options) -> GPT:
    torch.manual_seed(0)
    return GPT(GPTConfig(V, **SIZES, **options)).eval()


def transformer() -> Transformer:
    torch.manual_seed(0)
    return Transformer(TransformerConfig(V, V, **SIZES)).eval()


def contents(walk) -> dict:
    soup = BeautifulSoup(walk.text, "html.parser")
    read = {
        name: json.loads(soup.select_one(f"script.annotated-explorer-{name}").string)
        for name in ("data", "checks")
    }
    return read | {"soup": soup}


# ---- formulas --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("latex", "inside"),
    [
        ("Q", "<mi>Q</mi>"),
        ("0.5 - j'", "<mn>0.5</mn><mo>−</mo><mi>j</mi><mo>′</mo>"),
        (
            "W_{q}^\\top",
            "<msubsup><mi>W</mi><mrow><mi>q</mi></mrow><mo>⊤</mo></msubsup>",
        ),
        ("@_p^2", "<msubsup><mo>@</mo><mi>p</mi><mn>2</mn></msubsup>"),
        ("x^2", "<msup><mi>x</mi><mn>2</mn></msup>"),
        ("x^2_1", "<msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup>"),
        ("x_1", "<msub><mi>x</mi><mn>1</mn></msub>"),
        (
            r"\sum_{j} A",
            "<munder><mo>∑</mo><mrow><mi>j</mi></mrow></munder><mi>A</mi>",
        ),
        (
            r"\frac{1}{k}",
            "<mfrac><mrow><mn>1</mn></mrow><mrow><mi>k</mi></mrow></mfrac>",
        ),
        (r"\sqrt{d}", "<msqrt><mrow><mi>d</mi></mrow></msqrt>"),
        (
            r"\hat{X}",
            "<mover accent='true'><mrow><mi>X</mi></mrow><mo>^</mo></mover>",
        ),
        (r"\overline x", "<mover accent='true'><mi>x</mi><mo>‾</mo></mover>"),
        (r"\text{a < b_c}", "<mtext>a\xa0&lt;\xa0b_c</mtext>"),
        (r"\mathrm{softmax}", "<mtext>softmax</mtext>"),
        (r"\exp \leftarrow \Phi", "<mi>exp</mi><mo>←</mo><mi>Φ</mi>"),
        (r"a \, b", '<mi>a</mi><mspace width="0.17em"></mspace><mi>b</mi>'),
        ("(<", '<mo stretchy="false">(</mo><mo>&lt;</mo>'),
    ],
)
def test_a_formula_is_mathml(latex, inside):
    wanted = f'<math displaystyle="true"><mrow>{inside}</mrow></math>'
    assert mathml(latex) == wanted
    ElementTree.fromstring(mathml(latex))


def test_every_equation_of_a_trace_is_drawn():
    rights = [right for *_, right in OTHERS.values()]
    for right in rights:
        drawn = mathml(right.replace("@", r"\hat{X}").replace("#", "U"))
        text = "".join(ElementTree.fromstring(drawn).itertext())
        assert not re.search(r"[\\{}@#_^]{2}|\\", text)
    assert len(rights) > 15 and MAPS


@pytest.mark.parametrize(
    ("latex", "words"),
    [
        (r"\int x", "command must be one of .* got 'int'"),
        ("x}", "latex must close what it opens, got 'x}'"),
        ("{x", "latex must close what it opens, got '{x'"),
        ("x_", "latex must go on after its last mark"),
        (r"\frac{x}", "latex must go on after its last mark"),
    ],
)
def test_a_formula_that_cannot_be_drawn(latex, words):
    with pytest.raises(ValueError, match=words):
        mathml(latex)


# ---- what is packed --------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, TODAY], ids=["of 2019", "of today"])
def test_what_is_packed_is_the_trace(options):
    model = gpt(**options)
    walk = contents(trace_walk(model, TOKENS, names=[WORDS]))
    steps, data = trace(model, TOKENS), walk["data"]
    assert data["tokens"] == [["w3", "w7", "w1", "w4", "w9"]]
    assert len(data["steps"]) == len(steps) > 30
    for item, step in zip(data["steps"], steps, strict=True):
        card = data["cards"][item["card"]]
        assert item["place"] == step.place
        assert card["title"].lower() == step.operation
        assert card["words"] == words_of(step, steps) != ""
        assert card["math"] == mathml(step.equation)
        assert card["symbol"] == mathml(step.symbol)
        assert card["file"] == f"{step.source.file}, line {step.source.line}"
        assert "".join(card["code"]) == step.source.text
        assert card["code"][1] == step.source.part
        value = step.value[0]
        if step.operation == "logits":
            assert item["kind"] == "logits" and len(item["best"]) == 5
            chances = value.softmax(-1)
            for row, best in zip(chances, item["best"], strict=True):
                assert [name for name, _ in best] == [
                    WORDS[i] for i in row.argsort(descending=True)[:10]
                ]
                assert sum(p for _, p in best) == pytest.approx(
                    row.topk(10).values.sum().item(), abs=1e-4
                )
            continue
        packed = unpack(item["value"])
        if step.operation in ("scores", "visible scores", "weights"):
            assert item["kind"] == "map"
            hidden = value == -torch.inf
            assert item["hidden"] == [
                "".join(str(int(x)) for x in row) for row in hidden[0]
            ]
            torch.testing.assert_close(
                packed, value.masked_fill(hidden, 0.0), atol=2e-4, rtol=0
            )
            continue
        assert item["kind"] == "rows"
        if value.dim() == 3:
            value = torch.cat(list(value), dim=-1)
            assert item["groups"] == step.value.shape[1]
        else:
            assert item["groups"] == 1
        assert item["width"] == value.shape[1]
        assert item["every"] == (3 if value.shape[1] == 300 else 1)
        shown = value[:, :: item["every"]]
        torch.testing.assert_close(packed, shown, atol=2e-4, rtol=1e-4)
        top = shown.abs().flatten().sort().values
        assert top[int(0.95 * len(top))] * 0.99 <= item["top"] <= top[-1] * 1.01


def test_shapes_are_without_the_batch():
    model = gpt()
    data = contents(trace_walk(model, TOKENS, names=[WORDS]))["data"]
    cards = {card["title"]: card for card in data["cards"]}
    assert (cards["Token vectors"]["given"], cards["Token vectors"]["shape"]) == (
        "(5,)",
        "(5, 24)",
    )
    assert cards["Scores"]["given"] == "(4, 5, 6) and (5, 24)"
    assert cards["Scores"]["shape"] == "(4, 5, 5)"


def test_layers_share_their_cards():
    data = contents(trace_walk(gpt(), TOKENS, names=[WORDS]))["data"]
    kept = [json.dumps(card) for card in data["cards"]]
    assert len(set(kept)) == len(kept) < 20
    titles = [data["cards"][item["card"]]["title"] for item in data["steps"]]
    assert titles.count("Weights") == 2


def test_rows_and_columns_are_of_the_right_tokens():
    names = [WORDS, OTHER_WORDS]
    data = contents(trace_walk(transformer(), *PAIR, names=names))["data"]
    assert data["tokens"] == [["w5", "w2", "w8", "w0", "w0", "w0"], ["v1", "v6", "v7"]]
    for item in data["steps"]:
        title = data["cards"][item["card"]]["title"]
        decodes = item["place"].startswith(("decoder", "target", "output"))
        crossed = "cross" in item["place"]
        of_memory = crossed and title in ("Keys", "Values")
        assert item["rows"] == (decodes and not of_memory)
        if item["kind"] == "map":
            assert item["columns"] == (decodes and not crossed)
            rows, columns = (data["tokens"][item[x]] for x in ("rows", "columns"))
            assert item["value"]["shape"] == [4, len(rows), len(columns)]
        elif item["kind"] == "rows":
            assert item["value"]["shape"][0] == len(data["tokens"][item["rows"]])
        else:
            assert item["best"][0][0][0] in OTHER_WORDS


def test_values_of_another_head_and_a_position_beyond_the_end():
    names = [WORDS, OTHER_WORDS]
    model = transformer()
    data = contents(trace_walk(model, *PAIR, names=names))["data"]
    steps = trace(model, *PAIR)
    for item, step in zip(data["steps"], steps, strict=True):
        if step.operation == "weights":
            for head, position in ((3, 2), (9, 6)):
                found = values_of(item, data["tokens"], position, head)["numbers"]
                last = step.value.shape[2]
                row = step.value[0, min(head, 4) - 1, min(position, last) - 1]
                torch.testing.assert_close(torch.tensor(found), row, atol=1e-4, rtol=0)
    found = values_of(data["steps"][-1], data["tokens"], 2, 1)["numbers"]
    wanted = steps[-1].value[0, 1].softmax(-1).topk(10).values
    torch.testing.assert_close(torch.tensor(found), wanted, atol=1e-4, rtol=0)


def test_controls_and_where_it_begins():
    walk = contents(trace_walk(gpt(), TOKENS, names=[WORDS]))
    controls = {one["data-name"]: one for one in walk["soup"].select("[data-name]")}
    values = {n: json.loads(one["data-values"]) for n, one in controls.items()}
    count = len(walk["data"]["steps"])
    assert values["step"] == list(range(1, count + 1))
    assert (
        values["position"] == [1, 2, 3, 4, 5] and controls["position"]["value"] == "4"
    )
    assert values["head"] == [1, 2, 3, 4]
    first = walk["data"]["steps"][int(controls["step"]["value"])]
    assert walk["data"]["cards"][first["card"]]["title"] == "Weights"
    assert first["place"] == "block 1, attention"


def test_words_are_those_of_the_model():
    model = gpt(**TODAY)
    steps = trace(model, TOKENS)
    words = {step.operation: words_of(step, steps) for step in steps}
    assert words["queries"] == "Each position asks: 4 heads × 6 numbers."
    assert "offers: 2 heads × 6 numbers" in words["keys"]
    assert words["shared values"] == "Each head of values serves 2 heads of queries."
    assert words["gates"].endswith("24 numbers become 300 gates.")
    assert words_of(steps[2]._replace(operation="cumsum"), steps) == ""
    steps = trace(gpt(positions="rotary", kv_heads=1), TOKENS)
    shared = next(step for step in steps if step.operation == "shared values")
    assert words_of(shared, steps) == "Each head of values serves 4 heads of queries."


def test_every_operation_of_our_models_has_words():
    steps = trace(transformer(), *PAIR)
    assert all(words_of(step, steps) for step in steps)


def test_what_is_refused(monkeypatch):
    model = gpt()
    with pytest.raises(ValueError, match=r"names must be one list .* got 2 and 1"):
        trace_walk(model, TOKENS, names=[WORDS, WORDS])
    with pytest.raises(ValueError, match="one sequence each, got 2"):
        trace_walk(model, TOKENS.repeat(2, 1), names=[WORDS])
    monkeypatch.setattr(module, "MOST_BYTES", 20_000)
    with pytest.raises(ValueError, match=r"fit into 20,000 bytes, got .* shorten"):
        trace_walk(model, TOKENS, names=[WORDS])
