"""The speller of chapter 09 writes in a browser what the model in Python writes."""

import random

import pytest
import torch

from annotated.chapters.ch09 import drawings as ch09
from annotated.data.spelling import spelling_words
from annotated.page.frames import static
from annotated.page.packed import unpack_model
from annotated.search import beam_search, cached_greedy_decode, log_probabilities
from tests.site.explorer import results

pytestmark = pytest.mark.covers("09", "data/spelling", "annotated/search.")

WORDS = random.Random(9).sample(sorted(spelling_words("test")), 50)


@pytest.fixture(scope="module")
def model():
    return unpack_model(static(ch09.MODEL))


@pytest.fixture(scope="module")
def spell(browser):
    page = browser.new_page()
    page.add_script_tag(content=static(ch09.MODEL))
    data = {"name": "spelling", "searches": ch09.SEARCHES, "heads": ["all heads"]}
    data["most"] = ch09.LETTERS

    def evaluate(*words, search=ch09.SEARCHES[0]):
        look = {"search": search, "look": "all heads"}
        states = [{"word": word, **look} for word in words]
        return results(page, "ch09/speller.js", states, data)

    yield evaluate
    page.close()


def sources(model, cutter):
    return [torch.tensor([cutter.source.encode(word)]) for word in WORDS]


def test_it_writes_greedily_what_python_writes(spell, model):
    trained, cutter = model
    exact = trained.double()
    for source, result in zip(sources(*model), spell(*WORDS), strict=True):
        options = ch09.WRITE | {"max_new_tokens": min(64, 2 * source.shape[1] + 10)}
        written = cached_greedy_decode(exact, source, **options)
        values = result["values"]
        assert values["written"] == " ".join(cutter.target.decode(written[0]))
        with torch.no_grad():
            logits = exact(source, ch09.shifted(written))[0]
        assert torch.allclose(
            torch.tensor(values["logits"]).double(), logits, atol=1e-4
        )


def test_its_beam_finds_what_python_finds(spell, model):
    trained, cutter = model
    exact = trained.double()
    results = spell(*WORDS, search=ch09.SEARCHES[1])
    for source, result in zip(sources(*model), results, strict=True):
        options = ch09.WRITE | {"max_new_tokens": min(64, 2 * source.shape[1] + 10)}
        found = beam_search(
            exact, source, beam=4, n_best=4, alpha=0.0, stop="first", **options
        )[0]
        several = [" ".join(cutter.target.decode(one.tokens)) for one in found]
        values = result["values"]
        assert values["several"] == several and values["written"] == several[0]
        best = torch.tensor([found[0].tokens])
        total = log_probabilities(exact, source, best, start=1).item()
        assert abs(values["total"] - total) < 1e-4


def test_attention_of_the_first_step_is_that_of_python(spell, model):
    maps, _ = ch09.cross_maps(model[0].float(), model[1], WORDS[0])
    [result] = spell(WORDS[0])
    wanted = maps[:, :, 0].mean(dim=(0, 1))
    assert torch.allclose(torch.tensor(result["values"]["first"]), wanted, atol=1e-4)


def test_what_it_cannot_read_it_says(spell):
    empty, accent, digit, long = spell("  ", "na\u00efve", "c3po", "a" * 41)
    assert empty["values"]["written"] == "" and "Type a word" in empty["says"]
    assert accent["values"]["strange"] == "\u00ef" and "never met" in accent["says"]
    assert digit["values"]["strange"] == "3"
    assert "at most 40 letters" in long["says"]
    [spaces] = spell("ice cream")
    assert "One word at a time" in spaces["says"]
    [upper] = spell("LIVE ")
    [lower] = spell("live")
    assert upper["values"]["written"] == lower["values"]["written"] != ""


def test_it_knows_the_answers_for_words_that_it_never_saw(spell):
    known = spelling_words("test")
    for word, result in zip(WORDS, spell(*WORDS), strict=True):
        answers = [" ".join(answer) for answer in known[word]]
        assert result["values"]["answers"] == answers
        assert f"the dictionary says {' or '.join(answers)}." in result["says"]
    trained, nobody, longest = spell("live", "thorrowmere", "a" * ch09.LETTERS)
    assert trained["values"]["answers"] == nobody["values"]["answers"] == []
    assert "isn't one of the test words" in nobody["says"]
    assert "never saw" not in trained["says"]
    assert "No more than 40 letters" in longest["says"]


def test_the_page_loads_it_from_a_disk(site, browser):
    page = browser.new_page()
    page.goto((site / "notebooks" / "09_translation.html").as_uri())
    speller = page.get_by_label("Pronounce a word", exact=True)
    speller.locator(".annotated-load").click()
    says = speller.locator(".annotated-says", has_text="The model says")
    says.wait_for(timeout=20_000)
    assert speller.locator("svg").count() == 1
    word = speller.locator("input").first
    word.fill("tomato")
    speller.get_by_text("It never saw this word; the dictionary says").wait_for()
    word.fill("naïve")
    speller.get_by_text("The model has never met “ï”").wait_for()
    assert "Loading" not in speller.inner_text()
    page.close()
