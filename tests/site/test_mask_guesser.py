"""Chapter 15's BERT guesses in a browser what it guesses in Python."""

import ast
import json
import re

import pytest
import torch

from annotated.bert import Bert, BertConfig
from annotated.chapters.ch15 import drawings as ch15
from annotated.chapters.ch15.drawings import HIDING, ORDERS
from annotated.data.functions import _Bare, _modules, tokens_of
from annotated.page.packed import unpack_bert
from annotated.recipes.pretraining import Tokens
from tests.site.explorer import results

pytestmark = pytest.mark.covers("15", "annotated/bert.", "data/functions.")

LONGEST = 40
MODULES = {"argparse", "ast", "difflib", "inspect", "json.decoder", "statistics"}
OWN = [
    "for i in ?(len(items)):",
    "with open(path, 'r') as ?:\n\treturn ?.read()",
    "x = [MASK] + [MASK]",
    "return strange ? 3.5e-2, r'\\d' ? other",
    "? ?",
]


@pytest.fixture(scope="module")
def explorer():
    """What a cell shows for a small model, which knows no `strange`."""
    torch.manual_seed(1)
    lines = [text.replace("?", "other") for text in (*HIDING, *OWN[:2])]
    words = Tokens([*map(tokens_of, lines), ("is", "not", "+")])
    sizes = {"d_model": 8, "heads": 2, "layers": 2, "d_ff": 12, "max_len": LONGEST}
    model = Bert(BertConfig(len(words), **sizes))
    for weight in model.parameters():
        weight.data += (0.7 if weight.dim() > 1 else 0.1) * torch.randn_like(weight)
    model.positions.table.data *= 4  # so that not every place gets the same guess
    return ch15.mask_guesser(model, words)._repr_html_()


@pytest.fixture(scope="module")
def data(explorer):
    return json.loads(re.search(r'explorer-data">(.*?)</script>', explorer)[1])


@pytest.fixture(scope="module")
def bert(data):
    model, words = unpack_bert(data["model"])
    return model.double(), words


@pytest.fixture(scope="module")
def guess(browser, data):
    page = browser.new_page()

    def evaluate(*texts, order=ORDERS[0], shown=False, best=ch15.BEST):
        states = [{"text": text, "order": order, "shown": shown} for text in texts]
        return results(page, "ch15/mask_guesser.js", states, data | {"best": best})

    yield evaluate
    page.close()


def plain(text):
    return text.replace("[MASK]", "?")


def test_its_logits_are_those_of_python(guess, bert, monkeypatch):
    """Logits are the logarithms of the chances, but for a number that all share."""
    model, words = bert
    monkeypatch.setattr(ch15, "BEST", len(words))
    texts = [*HIDING, *OWN]
    for order in ORDERS:
        found = guess(*texts, order=order, best=len(words))
        for text, result in zip(texts, found, strict=True):
            values = result["values"]
            wanted = ch15.guessed(model, words, plain(text), order)
            pairs = [*zip(values["guesses"], wanted["guesses"], strict=True)]
            if wanted["first"] is not None:
                pairs.append((values["again"], wanted["again"]))
            for mine, theirs in pairs:
                a, b = dict(mine), dict(theirs)
                assert a.keys() == b.keys() == {*words.symbols}
                special, ordinary = words.symbols[:5], words.symbols[5:]
                assert not any(a[symbol] or b[symbol] for symbol in special)
                logits = torch.tensor([[a[s], b[s]] for s in ordinary]).log()
                assert (logits[:, 0] - logits[:, 1]).abs().max() < 1e-4


def test_it_fills_in_as_python_does(guess, bert):
    texts, changes = [*HIDING, *OWN], set()
    for order in ORDERS:
        for text, result in zip(texts, guess(*texts, order=order), strict=True):
            values = result["values"]
            wanted = ch15.guessed(*bert, plain(text), order)
            assert values["tokens"] == [*wanted["tokens"]]
            assert values["unknown"] == wanted["unknown"]
            assert values["first"] == wanted["first"]
            assert len(values["guesses"]) == len(wanted["guesses"])
            if wanted["first"] is None:
                assert order == ORDERS[0] or len(wanted["guesses"]) == 1
                continue
            assert values["changed"] == wanted["changed"]
            assert values["kept"] == pytest.approx(wanted["kept"], abs=1e-6)
            assert [g[0] for g in values["again"]] == [g[0] for g in wanted["again"]]
            changes.add(values["changed"])
    assert changes == {True, False}


def test_tokens_are_those_of_python(guess):
    """Modules of the library, without comments and formatted strings."""
    sources = [
        ast.unparse(_Bare().visit(ast.parse(source)))
        for module, source in _modules()
        if module in MODULES
    ]
    assert len(sources) == len(MODULES)
    lines = [
        "x = 0xFf + 0b1_0 + 0o17 + 1_000.5e-3j + .5 + 1. + 2e5",
        "a **= b // c >> d <= e != f -> g := h ... @ i",
        "'it\\'s' + b\"x\" + rb'\\d' + '''a\n'b' ''' + u\"\"",
        "naïve_été = (a,\n    b)\n\n\nif x:\n\ty\n\tif z:\n\t\tw\nv",
        "a = b + \\\n    c",
        "    x = 1\n",
    ]
    texts = sources + lines
    for text, result in zip(texts, guess(*texts), strict=True):
        assert result["values"]["tokens"] == [*tokens_of(text)]


def test_what_python_would_not_read(guess):
    """Comments, typographic quotes, other spaces, brackets that don't match."""
    quoted, noted, wide, opened, closed = (
        result["values"]["tokens"]
        for result in guess(
            "x = \u2018it\u2019 + \u201cis\u201d ?",
            "# why\nx ? 1  # because\n\n",
            "x\u00a0=\u2003?\n",
            "x = f(a ?\nreturn x",
            "x = a ? b)\nreturn x",
        )
    )
    assert quoted == ["x", "=", '"…"', "+", '"…"', "?", "⏎"]
    assert noted == ["x", "?", "0", "⏎"]
    assert wide == ["x", "=", "?", "⏎"]
    assert opened == ["x", "=", "f", "(", "a", "?", "⏎", "return", "x", "⏎"]
    assert closed == ["x", "=", "a", "?", "b", ")", "⏎", "return", "x", "⏎"]


def test_what_it_cannot_guess_it_says(guess):
    for text, said in {
        " \n ": "Type a line of Python",
        "# only a ?": "Type a line of Python",
        "return x": "No token is hidden: type a ?",
        "return '?'": "No token is hidden",
        "? = ? + ?": "Hide one token or two: these are 3.",
        "x = 'it ?": "A string doesn't end.",
        "if x:\n        y\n    ?": "begins where no line before it does",
        f"f({'x, ' * 16}x) + ? ": "guess",
        f"f({'x, ' * 17}x) + ? ": "has 40 positions, and these are 41 tokens",
    }.items():
        [result] = guess(text)
        assert said in result["says"], text
        assert ("guesses" in result["values"]) == (said == "guess"), text
    [full] = guess("?" + "x" * 399)
    assert "takes 400 characters" in full["says"]


def test_special_tokens_are_no_tokens(guess):
    """But for [MASK], which is another ?."""
    [result] = guess("[CLS] + [MASK] + [PAD] + [UNK]")
    values = result["values"]
    assert values["tokens"].count("?") == 1
    for name in ("CLS", "PAD", "UNK"):
        at = values["tokens"].index(name)
        assert values["tokens"][at - 1] == "[" and values["unknown"][at]
    [glued] = guess("x = ??")
    assert glued["values"]["tokens"] == ["x", "=", "?", "?", "⏎"]
