"""Chapter 19's explorer of words: what a reader does with it."""

import random

import pytest
import torch

from annotated.chapters.ch19 import drawings as ch19
from annotated.data.spelling import spelling_words
from annotated.page.frames import static
from annotated.refinement import diffusion_sample, mask_predict
from tests.site.explorer import Explorer

pytestmark = pytest.mark.covers("19", "annotated/refinement.")

KNOWN = spelling_words("test")
WORDS = random.Random(19).sample([w for w in sorted(KNOWN) if len(w) <= 16], 4)


@pytest.fixture(scope="module")
def shown(browser):
    page = browser.new_page(viewport={"width": 700, "height": 900})
    page.set_content(f"<main>{ch19.writer().text}</main>")
    page.add_script_tag(content=static(ch19.FILE))
    yield Explorer(page)
    page.close()


def test_each_order_writes_what_python_writes(shown):
    masked, _, cutter = ch19.models()
    for word, rounds in zip(WORDS, (1, 3, 4, 10), strict=True):
        source = torch.tensor([cutter.source.encode(word)])
        for name, order in ch19.ORDERS.items():
            values = shown.put(word=word, rounds=rounds, order=name)
            options = {"rounds": rounds, "length": torch.tensor([values["n"]])}
            if order == "least sure":
                right = mask_predict(masked, source, **options)
            elif order != "random":
                options |= {"order": order, "temperature": 0.0}
                right = diffusion_sample(masked, source, **options)
            said = " ".join(cutter.target.decode(right.tokens[0]))
            assert values["written"] == said or order == "random", (word, name)
            assert values["passes"][0] == min(rounds, len(right.rounds))
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
    assert longer["n"] == n + 1 == len(longer["written"].split())


def test_what_it_cannot_read_it_says(shown):
    for word, piece in (("", "Type a word"), ("c3po", "never met “3”")):
        shown.put(word=word, length=ch19.LENGTHS[1])
        assert piece in shown.says


def test_the_page_loads_both_from_a_disk(site, browser):
    page = browser.new_page()
    page.goto((site / "notebooks" / "19_non_autoregressive.html").as_uri())
    writer = page.get_by_label("A word in rounds", exact=True)
    writer.locator(".annotated-load").first.click()
    says = writer.locator(".annotated-says", has_text="In rounds:")
    says.wait_for(timeout=20_000)
    assert "passes over" in says.inner_text()
    named = ("In rounds: ", "Symbol by symbol: ")
    drawn = writer.locator("svg text.strong").all_text_contents()
    assert [any(one.startswith(name) for one in drawn) for name in named] == [True] * 2
    page.close()
