"""GPT-2's tokenizer cuts in a browser as it does in Python."""

import pytest

from annotated.chapters.ch16 import drawings as ch16
from annotated.data.byte_bpe import END_OF_TEXT, gpt2_tokenizer
from tests.data.test_byte_bpe import hard_strings

pytestmark = pytest.mark.covers("16", "data/byte_bpe")

TYPE = """(texts) => texts.map((text) => {
  const area = document.querySelector("textarea");
  area.value = text;
  area.dispatchEvent(new Event("input"));
  return document.querySelector(".annotated-explorer").explorer.values();
})"""


@pytest.fixture(scope="module", params=(700, 340), ids=("page", "phone"))
def page(browser, request):
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    html = ch16.tokenizer_explorer(gpt2_tokenizer()).text
    page.set_content(f"<main>{html}</main>")
    page.locator(".annotated-explorer[data-ready]").wait_for()
    yield page
    page.close()


def test_ids_are_those_of_python(page):
    """A text area has its own ends of lines, and takes 300 characters from a reader."""
    tokenizer = gpt2_tokenizer()
    texts = [t for t in hard_strings(600) if "\r" not in t and "\0" not in t]
    for text, values in zip(texts, page.evaluate(TYPE, texts), strict=True):
        assert values["ids"] == tokenizer.encode(text), repr(text)
        assert values["bytes"] == len(text.encode())
        assert values["characters"] == len(text)


def test_the_special_token_is_one_where_it_is_allowed(page):
    (typed,) = page.evaluate(TYPE, [f"a{END_OF_TEXT}{END_OF_TEXT} b"])
    page.locator("input[type=checkbox]").check()
    (special,) = page.evaluate(TYPE, [f"a{END_OF_TEXT}{END_OF_TEXT} b"])
    page.locator("input[type=checkbox]").uncheck()
    assert len(typed["ids"]) == 15 and special["ids"] == [64, 50256, 50256, 275]
