"""Chapter 19's words in rounds: a browser writes what the models in Python write."""

import random

import pytest
import torch

from annotated.chapters.ch19 import drawings as ch19
from annotated.data.spelling import spelling_words
from annotated.page.frames import static
from annotated.refinement import diffusion_sample, mask_predict
from annotated.search import cached_greedy_decode
from tests.site.explorer import Explorer

pytestmark = pytest.mark.covers("19", "annotated/refinement", "annotated/search.")

KNOWN = spelling_words("test")
WORDS = random.Random(19).sample([w for w in sorted(KNOWN) if len(w) <= 16], 8)


@pytest.fixture(scope="module")
def models():
    return ch19.models()


@pytest.fixture(scope="module")
def shown(browser):
    page = browser.new_page(viewport={"width": 700, "height": 900})
    page.set_content(f"<main>{ch19.writer().text}</main>")
    page.add_script_tag(content=static(ch19.FILE))
    yield Explorer(page)
    page.close()


def test_it_writes_what_python_writes(shown, models):
    masked, causal, cutter = models
    for word, rounds in zip(WORDS, (1, 3, 4, 10) * 2, strict=True):
        source = torch.tensor([cutter.source.encode(word)])
        best = masked.guess_length(*masked.encode(source)).argmax(dim=1)
        options = {"rounds": rounds, "length": best}
        first, *others, _ = ch19.ORDERS
        done = {first: mask_predict(masked, source, **options)}
        for name in others:
            order = {"order": ch19.ORDERS[name], "temperature": 0.0}
            done[name] = diffusion_sample(masked, source, **order, **options)
        for name, right in done.items():
            values = shown.put(word=word, rounds=rounds, order=name)
            said = " ".join(cutter.target.decode(right.tokens[0]))
            assert values["written"] == said, (word, name)
            assert values["passes"][0] == len(right.rounds)
            sure = right.rounds[-1].logs[0].exp()
            assert torch.allclose(torch.tensor(values["sure"]), sure.float(), atol=1e-3)
        written = cached_greedy_decode(
            causal, source, start=1, end=2, max_new_tokens=2 * len(word) + 10
        )
        assert values["other"] == " ".join(cutter.target.decode(written[0]))
        assert values["passes"][1] == written.shape[1]
        assert values["answers"] == [" ".join(answer) for answer in KNOWN[word]]


def test_pass_by_pass_masks_fall_and_nothing_moves(shown):
    state = {"word": "angeline", "rounds": 4, "order": "surest first", "passes": 0}
    n, high = shown.put(**state)["n"], shown.height
    hidden = "rect[fill='var(--at-weight)']"
    assert shown.drawn(hidden).count() == n
    for i in range(1, 5):
        shown.put(passes=i)
        masks = [n - -(-n * r // 4) for r in range(1, i + 1)]  # of each row
        assert shown.drawn(hidden).count() == sum(masks)
        assert shown.height == high
    longer = shown.put(length=ch19.LENGTHS[2])
    assert longer["n"] == n + 1
    assert len(longer["written"].split()) == n + 1
    shown.put(length=ch19.LENGTHS[1])


def test_what_it_cannot_read_it_says(shown):
    for word, piece in (("", "Type a word"), ("c3po", "never met “3”")):
        shown.put(word=word)
        assert piece in shown.says


def test_the_page_loads_both_from_a_disk(site, browser):
    page = browser.new_page()
    page.goto((site / "notebooks" / "19_non_autoregressive.html").as_uri())
    writer = page.get_by_label("A word in rounds", exact=True)
    writer.locator(".annotated-load").first.click()
    writer.locator(".annotated-says", has_text="In rounds:").wait_for(timeout=20_000)
    page.close()
