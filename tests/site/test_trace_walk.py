"""The walk through a trace: keys and buttons step, and nothing moves."""

import pytest
import torch

from annotated.chapters.ch16.trace_walk import trace_walk
from annotated.gpt import GPT, GPTConfig
from annotated.trace import trace
from annotated.transformer import Transformer, TransformerConfig

WIDTHS = {"page": 700, "phone": 390}
WORDS = [f"word{i}" for i in range(20)]
TOKENS = torch.tensor([[3, 7, 1, 4, 9, 12, 2, 5]])
PAIR = torch.tensor([[5, 2, 8, 0, 0, 0]]), torch.tensor([[1, 6, 7]])
SIZES = {"d_model": 32, "heads": 4, "layers": 2, "d_ff": 150}

SIZES_OF_TEXT = "all => all.map((x) => parseFloat(getComputedStyle(x).fontSize))"


def gpt():
    torch.manual_seed(0)
    return GPT(GPTConfig(20, **SIZES, activation="gelu_tanh")).eval()


def transformer():
    torch.manual_seed(0)
    return Transformer(TransformerConfig(20, 20, **SIZES)).eval()


@pytest.fixture(scope="module", params=WIDTHS.values(), ids=WIDTHS)
def opened(browser, request):
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    texts = [
        trace_walk(gpt(), TOKENS, names=[WORDS]).text,
        trace_walk(transformer(), *PAIR, names=[WORDS, WORDS]).text,
    ]
    errors = []
    page.on("pageerror", lambda error: errors.append(error))
    page.set_content(f"<main>{''.join(texts)}</main>")
    page.locator(".annotated-explorer[data-ready]").nth(1).wait_for()
    yield page
    assert not errors
    page.close()


@pytest.fixture
def walk(opened):
    one = opened.locator(".annotated-explorer").first
    put(one, step=1, position=8, head=1)
    return one


def put(walk, **state):
    walk.evaluate("(one, state) => one.explorer.set(state)", state)


def values(walk):
    return walk.evaluate("one => one.explorer.values().numbers")


def card(walk):
    return walk.locator(".walk-card.walk-now")


def test_keys_and_buttons_step(walk, opened):
    steps = trace(gpt(), TOKENS)
    walk.locator(".annotated-view").focus()
    for i in range(1, 12):
        opened.keyboard.press("ArrowRight")
        title = card(walk).locator(".walk-title").inner_text()
        assert title.lower() == steps[i].operation
        assert card(walk).count() == 1
        place = card(walk).locator(".walk-place").inner_text()
        assert place.startswith(f"{steps[i].place} · ")
    assert place.endswith("10 of 11")
    opened.keyboard.press("ArrowLeft")
    opened.keyboard.press("ArrowUp")
    before, after = walk.locator(".walk-buttons button").all()
    after.click()
    after.click()
    before.click()
    assert walk.locator("[data-name=step]").input_value() == "11"
    assert walk.evaluate("one => one.explorer.state.step") == 12
    put(walk, step=len(steps))
    after.click(force=True)
    assert walk.evaluate("one => one.explorer.state.step") == len(steps)
    assert after.get_attribute("aria-disabled") == "true"
    assert before.get_attribute("aria-disabled") == "false"


def test_values_are_those_of_python(walk):
    steps = trace(gpt(), TOKENS)
    for i, step in enumerate(steps, 1):
        for position, head in ((8, 1), (3, 4)):
            put(walk, step=i, position=position, head=head)
            value = step.value[0]
            if step.operation == "logits":
                wanted = value[position - 1].softmax(-1).topk(10).values
            elif step.operation in ("scores", "visible scores", "weights"):
                wanted = value[head - 1, position - 1]
                wanted = wanted.masked_fill(wanted == -torch.inf, 0.0)
            else:
                rows = value.transpose(0, 1).flatten(1) if value.dim() == 3 else value
                every = 2 if rows.shape[1] == 150 else 1
                wanted = rows[position - 1, ::every][:5]
            assert values(walk) == pytest.approx(wanted.tolist(), abs=1e-3)


def test_the_map_says_where_you_are_and_jumps(walk):
    current = walk.locator(".walk-map [aria-current]")
    assert current.inner_text() == "embedding"
    walk.locator(".walk-map button[aria-label='block 2, feed-forward']").click()
    assert card(walk).locator(".walk-place").inner_text() == (
        "block 2, feed-forward · 1 of 5"
    )
    assert current.get_attribute("aria-label") == "block 2, feed-forward"
    box, here = (one.bounding_box() for one in (walk.locator(".walk-map"), current))
    assert box["x"] <= here["x"]
    assert here["x"] + here["width"] <= box["x"] + box["width"] + 1


def test_a_tap_follows_a_position_and_a_head(walk):
    weights = next(
        i for i, s in enumerate(trace(gpt(), TOKENS), 1) if s.operation == "weights"
    )
    put(walk, step=weights)
    targets = walk.locator(".walk-picture rect[style*=pointer]")
    assert targets.count() == 8 + 4
    targets.nth(1).click()
    assert walk.locator("[data-name=position] + output").inner_text() == "2"
    targets.nth(8 + 2).click()
    assert walk.locator("[data-name=head] + output").inner_text() == "3"
    says = walk.locator(".annotated-says span").inner_text()
    row = trace(gpt(), TOKENS)[weights - 1].value[0, 2, 1]
    best = int(row.argmax())
    word = WORDS[TOKENS[0, best]]
    assert says == (
        f"Head 3: “word7” puts {100 * row[best]:.0f} % of its weight on “{word}” "
        f"(position {best + 1})."
    )


@pytest.mark.parametrize("number", [0, 1])
def test_nothing_moves_or_is_drawn_outside(opened, number):
    walk = opened.locator(".annotated-explorer").nth(number)
    heights = set()
    count = walk.evaluate("one => one.querySelectorAll('.walk-card').length")
    for step in range(1, count + 1):
        put(walk, step=step)
        heights.add(round(walk.bounding_box()["height"], 1))
        svg = walk.locator(".walk-picture svg")
        width, height = (float(svg.get_attribute(name)) for name in ("width", "height"))
        boxes = svg.locator("text, rect").evaluate_all(
            "all => all.filter((one) => !one.closest('defs')).map((one) => {"
            " const b = one.getBoundingClientRect(),"
            " s = one.closest('svg').getBoundingClientRect();"
            " return [b.left - s.left, b.right - s.left, b.top - s.top,"
            " b.bottom - s.top]; })"
        )
        for left, end, top, bottom in boxes:
            assert left >= -1 and end <= width + 1, step
            assert top >= -1 and bottom <= height + 1, step
        small = svg.locator("text").evaluate_all(SIZES_OF_TEXT)
        assert min(small) >= 12
        formula = card(walk).locator(".walk-formula")
        assert formula.evaluate("one => one.scrollWidth <= one.clientWidth + 1"), step
        sizes = card(walk).locator("mi, mn, mtext").evaluate_all(SIZES_OF_TEXT)
        assert min(sizes) >= 12
    assert len(heights) == 1


def test_hidden_keys_are_hatched_and_rows_of_the_decoder_are_the_targets(opened):
    walk = opened.locator(".annotated-explorer").nth(1)
    steps = trace(transformer(), *PAIR)
    step = next(
        i
        for i, s in enumerate(steps, 1)
        if s.place == "decoder layer 1, cross-attention"
        and s.operation == "visible scores"
    )
    put(walk, step=step, position=6, head=1)
    texts = walk.locator(".walk-picture text").all_text_contents()
    assert texts[1:10] == [
        *(WORDS[i] for i in (5, 2, 8, 0, 0, 0)),
        *(WORDS[i] for i in (1, 6, 7)),
    ]
    # three keys of padding, for three queries in five pictures
    assert walk.locator(".walk-picture rect[fill^=url]").count() == 3 * 3 * 5
    assert "“word7” may see" in walk.locator(".annotated-says span").inner_text()
