"""Chapter 10's models judge sentences in a browser as they do in Python."""

import json
import unicodedata

import pytest

from annotated.chapters.ch10 import drawings as ch10
from annotated.page.frames import static
from annotated.page.packed import unpack_films
from annotated.recipes.classification import words_of
from tests.site.explorer import results

pytestmark = pytest.mark.covers("10", "classification")

READ = [
    "a smart film with a stupid title",
    "It's NOT bad — really; I'd see it again!",
    "  Amélie\u2019s \u201cnaïve\u201d café, 2nd visit: 5 stars_ (or so?)  ",
    "funny",
    "zxq vvv qqj",
    "good, " * 31 + "bad.",
]


@pytest.fixture(scope="module")
def models():
    bag, encoder, words = unpack_films(static(ch10.MODELS))
    return bag.double(), encoder.double(), words


@pytest.fixture(scope="module")
def judge(browser):
    """Judge sentences, one after the other, with the models or without."""
    data = {"name": "films", "ways": ch10.WAYS, "most": 64, "letters": ch10.LETTERS}
    data |= {"known": [{"words": ["a", "film"]}], "full": {"bag": 25, "encoder": 5}}
    data |= {"before": "load them", "room": 285, "button": "load", "loaded": "there"}
    data |= {"decides": 0.5}
    page = browser.new_page()
    page.add_script_tag(content=static(ch10.MODELS))
    page.evaluate("globalThis.loadedModels = annotatedModels")

    def evaluate(*sentences, by=ch10.WAYS[0], loaded=True):
        states = [{"sentence": one, "by": by} for one in sentences]
        page.evaluate(
            "annotatedModels = loadedModels" if loaded else "annotatedModels = {}"
        )
        return results(page, "ch10/film_reader.js", states, data)

    yield evaluate
    page.close()


def near(found, wanted):
    return found == pytest.approx(wanted, abs=1e-4)


def test_it_judges_as_python_does(judge, models):
    for sentence, result in zip(READ, judge(*READ), strict=True):
        values = result["values"]
        plain = sentence.translate(str.maketrans("\u2019\u201c\u201d", '\'""'))
        wanted = ch10.judged(*models, plain)
        assert values["words"] == wanted["words"] == list(words_of(plain))
        assert values["unknown"] == wanted["unknown"]
        assert near(values["bag"]["logit"], wanted["bag"]["logit"])
        assert near(values["bag"]["weights"], wanted["bag"]["weights"].tolist())
        assert near(values["encoder"]["logit"], wanted["encoder"]["logit"])
        for name in ("received", "changes"):
            assert near(values["encoder"][name], wanted["encoder"][name].tolist())
        assert sum(values["encoder"]["received"]) == pytest.approx(1)


def test_words_are_those_of_python(judge):
    """Each character that Python's Unicode knows, in three places."""
    every = (chr(i) for i in range(33, 0x2FFF) if i not in range(0x7F, 0xA1))
    quotes = "\u2018\u2019\u201c\u201d"  # are made straight
    known = [c for c in every if unicodedata.category(c) != "Cn" and c not in quotes]
    assert len(known) > 9000
    texts = [f"A{c}b {c}, {c}{c}" for c in known]
    for text, result in zip(texts, judge(*texts, loaded=False), strict=True):
        assert result["values"]["words"] == list(words_of(text)), ascii(text)


def test_what_it_cannot_read_it_says(judge):
    empty, strange, fits, long = judge(" ", "zxq vvv", "x " * 64, "x " * 65)
    assert "Type a sentence" in empty["says"] and empty["values"]["words"] == []
    assert "They know none of these words" in strange["says"]
    assert "In the bag" not in strange["says"]
    assert "logit" in fits["values"]["bag"]
    assert "64 words and signs, and these are 65" in long["says"]
    assert "bag" not in long["values"]
    [full] = judge("film" * 100)
    assert "takes 400 characters" in full["says"]


def test_without_the_models_it_judges_the_suggestions_alone(judge):
    [own] = judge("my own sentence", loaded=False)
    assert own["says"] == "load them" and not own["values"]["loaded"]


@pytest.fixture
def shown(site, browser):
    page = browser.new_page()
    page.goto((site / "notebooks" / "10_text_classification.html").as_uri())
    yield page.get_by_label("Judge a sentence on a film", exact=True)
    page.close()


def test_the_page_loads_it_from_a_disk(shown):
    says = shown.locator(".annotated-says span")
    assert "both say no" in says.inner_text()
    field = shown.locator("textarea")
    field.fill("a wonderful holiday")
    assert "load the models" in says.inner_text()
    height = shown.evaluate("(it) => it.offsetHeight")
    shown.locator(".annotated-load").click()
    shown.get_by_text("The models are loaded").wait_for(timeout=20_000)
    assert "“wonderful” pulls most" in says.inner_text()
    assert shown.evaluate("(it) => it.offsetHeight") == height
    shown.get_by_role("button", name="it never gets boring").click()
    assert field.input_value() == "it never gets boring"
    assert "“boring” pulls most" in says.inner_text()
    assert shown.locator("svg").count() == 1


def test_a_missing_file_is_said(shown):
    says = shown.locator(".annotated-says span")
    shown.page.evaluate("document.documentElement.dataset.content_root = 'gone/'")
    shown.locator(".annotated-load").click()
    shown.get_by_text("They could not be loaded").wait_for(timeout=20_000)
    shown.locator("textarea").fill("a wonderful holiday")
    assert "load the models" in says.inner_text()


def test_loaded_models_give_what_the_page_brings(shown):
    shown.locator(".annotated-load").click()
    shown.get_by_text("The models are loaded").wait_for(timeout=20_000)
    checks = json.loads(
        shown.locator("script.annotated-explorer-checks").text_content()
    )
    assert len(checks) == len(ch10.SENTENCES)
    for check in checks:
        shown.evaluate("(it, state) => it.explorer.set(state)", check["state"])
        values = shown.evaluate("(it) => it.explorer.values()")
        for model, wanted in check["values"].items():
            if isinstance(wanted, dict):
                for name, numbers in wanted.items():
                    assert near(values[model][name], numbers)
        assert values["loaded"] and values["words"] == check["values"]["words"]
