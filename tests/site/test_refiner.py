"""The models of chapter 19 write in a browser what they write in Python."""

import random

import pytest
import torch

from annotated.data.spelling import spelling_words
from annotated.page.frames import static
from annotated.page.packed import unpack_model, unpack_refiner
from annotated.refinement import diffusion_sample, mask_predict
from annotated.search import cached_greedy_decode

pytestmark = pytest.mark.covers("19", "data/spelling", "annotated/refinement.")

FILE = "refinement_model.js"
WORDS = random.Random(19).sample(sorted(spelling_words("test")), 5)
ASK = """([name, call, words, args]) => {
    %s; %s;
    const packed = globalThis.annotatedModels[name], model = refiner(packed, numbers);
    return words.map((word) => {
        const ids = [...word].map((one) => packed.source.indexOf(one));
        const source = model.readSource(ids), refines = model.mask !== null;
        const [length] = refines ? model.likeliest(model.lengths(source), 1) : [0];
        const calls = {
            greedy: () => model.greedy(source, 40).map(({ id }) => id),
            lengths: () => model.lengths(source),
            maskPredict: (rounds) => model.maskPredict(source, length, rounds),
            diffuse: (...rest) => model.diffuse(source, length, ...rest),
            decode: (ids) => model.decode(source, ids).logits.map(
                (row) => row.map((z) => (z === -Infinity ? null : z))),
        };
        return calls[call](...args);
    });
}"""


@pytest.fixture(scope="module")
def ask(browser):
    page = browser.new_page()
    page.add_script_tag(content=static(FILE))
    script = ASK % (static("numbers.js"), static("ch19/refiner.js"))
    yield lambda *question: page.evaluate(script, list(question))
    page.close()


@pytest.fixture(scope="module")
def models():
    first, second = static(FILE).splitlines()
    return unpack_model(first), unpack_refiner(second)


def sources(cutter):
    return [torch.tensor([cutter.source.encode(word)]) for word in WORDS]


def test_symbol_by_symbol(ask, models):
    model, cutter = models[0]
    found = ask("symbol by symbol", "greedy", WORDS, [])
    options = {"start": 1, "end": 2, "max_new_tokens": 40}
    for source, ids in zip(sources(cutter), found, strict=True):
        written = cached_greedy_decode(model.double(), source, **options)
        assert ids == written[0].tolist()


def test_lengths_and_logits(ask, models):
    model, cutter = models[1]
    ids = [model.mask, 5, model.mask, 9, model.mask]
    found = ask("in rounds", "lengths", WORDS, [])
    logits = ask("in rounds", "decode", WORDS, [ids])
    for i, source in enumerate(sources(cutter)):
        with torch.no_grad():
            memory = model.double().encode(source)
            wanted = model.guess_length(*memory)[0].exp()
            scores = model.decode(torch.tensor([ids]), *memory)[0]
        torch.testing.assert_close(
            torch.tensor(found[i]).double(), wanted, atol=1e-4, rtol=0
        )
        for row, right in zip(logits[i], scores.tolist(), strict=True):
            for one, other in zip(row, right, strict=True):
                assert (one is None) == (other == -float("inf"))
                assert one is None or abs(one - other) < 1e-4


@pytest.mark.parametrize("rounds", [1, 3, 10])
@pytest.mark.parametrize("order", ["mask-predict", "surest", "blocks"])
def test_rounds(ask, models, order, rounds):
    model, cutter = models[1]
    model.double()
    if order == "mask-predict":
        found = ask("in rounds", "maskPredict", WORDS, [rounds])
    else:
        found = ask("in rounds", "diffuse", WORDS, [rounds, order, {"block": 2}])
    for source, result in zip(sources(cutter), found, strict=True):
        if order == "mask-predict":
            wanted = mask_predict(model, source, rounds=rounds)
            assert abs(result["score"] - wanted.score.item()) < 1e-4
        else:
            options = {"order": order, "block": 2, "temperature": 0.0}
            wanted = diffusion_sample(model, source, rounds=rounds, **options)
        assert result["written"] == wanted.tokens[0].tolist()
        for one, other in zip(result["rounds"], wanted.rounds, strict=True):
            assert one["read"] == other.read[0].tolist()
            assert one["written"] == other.written[0].tolist()
