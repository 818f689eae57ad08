"""The laboratory's page: a run from http and from a disk, and what may go wrong."""

import itertools
import re

import pytest

from tests.site.browser import visiting
from tests.site.checkers import axe

pytestmark = pytest.mark.covers("laboratory")

PAGE = "book/laboratory.html"
RUN_MS = 900_000  # for what never ends: a run takes seconds on an idle core


@pytest.fixture
def visit(browser, base):
    with visiting(browser, base) as opened:
        opened.open(PAGE)
        yield opened
        assert opened.errors == opened.blocked == opened.failed == []


@pytest.fixture
def page(visit):
    return visit.page


def status(page) -> str:
    return page.locator(".lab-status").inner_text()


def button(page, name: str):
    return page.get_by_role("button", name=name, exact=True)


def choose(page, experiment: str) -> None:
    page.locator(f".lab-steps input[value={experiment}]").check()


def current(page) -> str:
    return page.locator(".lab-steps :checked").input_value()


def finished(page) -> str:
    button(page, "Train").wait_for(timeout=RUN_MS)
    return status(page)


def trained(page) -> str:
    button(page, "Train").click()
    return finished(page)


def going(page) -> None:
    button(page, "Train").click()
    page.locator(".lab-status", has_text="step").wait_for()


def cut_short(page, steps: int = 25) -> None:
    """Let experiment 1 end soon, and choose it."""
    page.evaluate(f"laboratoryFile.experiments.whole.changes.steps = {steps}")
    choose(page, "own")
    choose(page, "whole")


def train_briefly(page) -> None:
    page.evaluate("laboratoryFile.experiments.whole.changes.steps = 25")
    choose(page, "whole")
    trained(page)


def drawn(page) -> bool:
    """Whether a curve of this experiment has begun."""
    points = page.locator("polyline.lab-new").evaluate_all(
        "all => all.map((one) => one.getAttribute('points'))"
    )
    return any(" " in one for one in points)


def table(page) -> list[list[str]]:
    """The runs so far, the newest first: number, experiment, guess, seed, steps …"""
    rows = page.locator(".lab-scroll[aria-label='Your runs'] tbody tr").all()
    return [row.locator("th, td").all_inner_texts() for row in rows]


def switches(page) -> None:
    page.get_by_text("All switches", exact=True).click()


def short(page) -> None:
    """Switches with which a run of all steps is quick."""
    switches(page)
    page.get_by_label("Width").select_option("16")
    page.get_by_label("Heads").select_option("1")


def in_sight(page) -> bool:
    """Whether a whole round is in the window at once."""
    names = ".lab-stage .lab-word .lab-written .lab-buttons .lab-judged .lab-status "
    names += ".lab-answer .lab-charts"
    boxes = [page.locator(name).first.bounding_box() for name in names.split()]
    height = page.viewport_size["height"]
    return all(0 <= box["y"] and box["y"] + box["height"] <= height for box in boxes)


def heads(page) -> None:
    page.get_by_text("Head by head", exact=True).click()


def stage_letters(page) -> list[str]:
    """What stands left and right on the stage."""
    letters = page.locator(".lab-field text:not(.lab-side)").all()
    found = [(float(one.get_attribute("x")), one.text_content()) for one in letters]
    left = min(x for x, _ in found)
    sides = [[text for x, text in found if (x == left) == side] for side in (1, 0)]
    return ["".join(side) for side in sides]


def learns(visit) -> None:
    page = visit.page
    assert status(page) == "Nothing is trained yet."
    button(page, "Train").click()
    found = re.match(
        r".* learned the task in (\d+) steps .* writes (\d+) of 1000", finished(page)
    )
    steps, right = map(int, found.groups())
    assert 100 <= steps <= 300 and right >= 990
    page.locator(".lab-verdict", has_text="✓ right").wait_for()
    assert "bigfaced → decafgib" in page.locator(".lab-written").inner_text()
    assert in_sight(page)
    assert stage_letters(page) == ["bigfaced■", "decafgib"]
    assert page.locator(".lab-when").inner_text() == f"step {steps}"
    heads(page)
    canvases = page.locator(".lab-maps canvas")
    canvases.first.wait_for()  # the browser tells later that it was opened
    assert canvases.count() == 4
    (row,) = table(page)
    assert row[:5] == ["1", "The whole model\neverything on", "–", "1", str(steps)]
    fits = "(node) => node.scrollWidth <= node.clientWidth"
    assert page.locator(".lab-scroll[aria-label='Your runs']").evaluate(fits)


def test_it_learns_over_http(visit):
    learns(visit)
    assert axe(visit.page) == []


def test_it_learns_from_a_disk(browser, site):
    with visiting(browser, site.as_uri() + "/") as visit:
        visit.open(PAGE)
        learns(visit)
        assert visit.errors == visit.blocked == []


def test_train_and_stop_by_keyboard_and_again(page):
    button(page, "Train").focus()
    page.keyboard.press("Enter")
    page.locator(".lab-status", has_text="step").wait_for()
    page.keyboard.press("Enter")
    assert "stopped after" in finished(page)
    assert button(page, "Train").evaluate("(node) => node === document.activeElement")
    button(page, "Another seed").focus()
    page.keyboard.press("Enter")
    page.locator(".lab-status", has_text="step").wait_for()
    page.keyboard.press("Space")  # the button that stops has the focus
    assert "stopped after" in finished(page)
    found = table(page)
    assert [row[3] for row in found] == ["2", "1"]
    assert all(row[4].endswith(", stopped") for row in found)
    assert page.locator("polyline.lab-old").count() == 0  # half a run is no reference


def test_a_screen_reader_hears_little(page):
    listen = """() => {
      const live = document.querySelector(".annotated-laboratory > [role=status]");
      window.heard = [];
      new MutationObserver(() => window.heard.push(live.textContent))
        .observe(live, { childList: true });
    }"""
    page.evaluate(listen)
    short(page)
    said = trained(page)
    page.wait_for_timeout(500)  # whatever was still to be shown, or said
    heard = page.evaluate("window.heard")
    seconds = page.evaluate("performance.now()") / 1000
    assert heard[0] == "Training."
    assert heard[-1].startswith(f"{said} Words right of 1000: ")
    assert sum("it wrote" in words for words in heard) == 1
    assert len(heard) <= 2 + seconds / 8


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("Learning rate", "fast", "“fast” won’t do. It must be a number above 0"),
        ("Learning rate", "-1", "“-1” won’t do."),
        ("Learning rate", "", "Learning rate: nothing is filled in."),
        ("Seed", "1.5", "It must be a whole number"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused(page, field, typed, said):
    switches(page)
    page.get_by_role("textbox", name=field).fill(typed)
    button(page, "Train").click()
    assert said in page.get_by_role("alert").inner_text()
    assert (
        page.get_by_role("textbox", name=field).get_attribute("aria-invalid") == "true"
    )
    assert status(page) == "Nothing is trained yet."
    page.get_by_role("textbox", name=field).fill("1")
    page.keyboard.press("Tab")
    assert page.locator("[role=alert]").all_text_contents() == ["", ""]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("headac", "Your word has 6 letters. Type a word of exactly 8 letters. Still"),
        (
            "headachesss",
            "knows only a to j, so “s” won’t do. Still showing bigfaced.",
        ),
        ("aaaaaaaaaa", "Your word has 10 letters"),
        ("", "Type a word of exactly 8 letters."),
        ("HEAD 123", "so a space won’t do."),
    ],
)
def test_a_word_that_it_cannot_read(page, typed, said):
    button(page, "Train").click()
    page.locator(".lab-written", has_text="bigfaced → ").wait_for()
    word = page.get_by_label("A word of 8 letters")
    word.fill(typed)
    trouble = page.locator(f"#{word.get_attribute('aria-describedby')}")
    assert said in trouble.inner_text()
    word.fill("headache")
    assert trouble.inner_text() == ""
    page.locator(".lab-written", has_text="headache → ").wait_for()


def test_a_run_that_diverges_says_so(page):
    short(page)
    page.get_by_label("Normalisation").select_option("none")
    page.get_by_role("textbox", name="Learning rate").fill("10")
    said = trained(page)
    assert "isn’t a number" in said or "has exploded" in said
    assert not re.search(r"\d{7}", said)  # however large the loss, its number is short


HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_a_hidden_tab_pauses(page):
    going(page)
    page.evaluate(HIDE, True)
    page.wait_for_timeout(500)
    paused = status(page)
    page.wait_for_timeout(700)
    assert status(page) == paused
    page.evaluate(HIDE, False)
    assert "learned the task" in finished(page)


def test_leaving_the_page_stops_it(page):
    going(page)
    page.evaluate("dispatchEvent(new Event('pagehide'))")
    assert status(page).startswith("Stopped, because you left the page.")
    page.wait_for_timeout(300)
    assert page.workers == []
    going(page)  # it can begin anew


def test_own_switches_have_no_answer_and_a_question_of_their_own(page):
    switches(page)
    page.get_by_label("Residuals", exact=True).uncheck()
    assert current(page) == "own"
    choose(page, "warmup")
    assert page.get_by_label("Residuals", exact=True).is_checked()
    assert not page.get_by_label("Warm-up", exact=True).is_checked()
    assert page.get_by_label("Normalisation").input_value() == "post"


def test_own_switches_are_compared_with_what_differs_in_one_thing(page):
    def train() -> list[str]:
        trained(page)
        return page.locator(".lab-key-old").all_inner_texts()

    trained(page)
    choose(page, "rate")
    page.evaluate("laboratoryFile.experiments.rate.changes.steps = 25")
    assert train() == ["the whole model (run 1)"]
    choose(page, "own")
    page.get_by_label("Width").select_option("16")
    page.get_by_label("Heads").select_option("1")
    assert train() == ["the whole model (run 1)"]
    page.get_by_label("Heads").select_option("4")
    assert train() == ["the same, but heads: 1 (run 3)"]
    button(page, "Another seed").click()
    finished(page)
    keys = page.locator(".lab-key-old").all_inner_texts()
    assert keys == ["the same, but seed: 1 (run 4)"]


STATE = """() => [".lab-judged", ".lab-answer"].map((name) => {
  const node = document.querySelector(name);
  return name === ".lab-answer" ? !node.hidden : node.textContent;
})"""


def marked(page) -> dict[str, str]:
    """The guesses that are marked, by what is seen on them."""
    sign = (
        "node => JSON.parse(getComputedStyle(node, '::after').content.split(' /')[0])"
    )
    cards = page.locator(".lab-guesses label:is(.lab-hit, .lab-miss)").all()
    return {card.evaluate(sign): card.inner_text() for card in cards}


def test_a_guess_is_judged_and_the_answer_opens_when_the_run_ends(page):
    assert page.locator(".lab-answer").is_hidden()
    page.get_by_label("at the first letter, then the second").check()
    assert page.evaluate(STATE) == ["", False]
    trained(page)
    said, opened = page.evaluate(STATE)
    right = "at the last letter, then the one before."
    assert said == f"Not quite. The answer: {right}" and opened
    assert marked(page) == {
        "✗": "at the first letter, then the second",
        "✓": "at the last letter, then the one before",
    }
    page.get_by_label("at the last letter, then the one before").check()
    button(page, "Train").click()
    assert page.evaluate(STATE) == ["", False] and marked(page) == {}
    finished(page)
    assert marked(page) == {"✓": "at the last letter, then the one before"}
    assert page.evaluate(STATE) == [
        "You were right: at the last letter, then the one before.",
        True,
    ]
    trained(page)
    again, _ = page.evaluate(
        STATE
    )  # who has been told isn't told as if for the first time
    assert again == "Once more: at the last letter, then the one before."


def test_two_experiments_are_not_mixed(page):
    going(page)
    choose(page, "mask")
    assert button(page, "Train").is_visible()  # the run was stopped
    said = status(page)
    assert re.fullmatch(
        r"Run 1 \(The whole model\) was stopped after \d+ steps, because you chose "
        r"another experiment. Make your guess, then press Train. It trains two models: "
        r".*",
        said,
    )
    page.wait_for_timeout(500)
    assert status(page) == said and page.evaluate(STATE) == ["", False]
    assert page.locator(".lab-when").inner_text() == "untrained"
    assert not drawn(page)
    (row,) = table(page)
    assert row[1].startswith("The whole model") and "stopped" in row[4]


def test_a_late_frame_does_not_bring_the_old_run_back(page):
    going(page)
    page.evaluate(
        "() => { window.late = [];"
        " window.requestAnimationFrame = (frame) => late.push(frame); }"
    )
    page.wait_for_function("late.length > 0", polling=50)
    choose(page, "warmup")
    said = status(page)
    page.evaluate(  # long after the last one
        "() => { performance.now = () => 1e9; late.forEach((frame) => frame()); }"
    )
    assert status(page) == said and "you chose another experiment" in said
    assert not drawn(page)


def test_a_letter_that_is_pointed_at_says_where_it_looked(page):
    trained(page)
    page.locator(".lab-verdict").wait_for()
    page.locator(".lab-written span").nth(2).hover()
    lit = page.locator(".lab-lit")
    assert lit.inner_text() == "c"
    assert page.get_by_text(
        re.compile(r"^For c: head 1 looks most at . at place \d .*; head 4")
    ).is_visible()
    page.mouse.move(0, 0)
    assert lit.count() == 0
    page.get_by_role("group", name="What it writes").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert lit.inner_text() == "e"
    page.keyboard.press("Tab")
    assert lit.count() == 0


def test_words_that_it_got_wrong_are_at_hand(page):
    failing = button(page, "One it got wrong")
    button(page, "Train").click()
    finished(page)  # 997 of 1000
    words = []
    for _ in range(4):
        failing.click()
        words.append(page.get_by_label("A word of 8 letters").input_value())
        page.locator(".lab-written", has_text=f"{words[-1]} → ").wait_for()
        page.locator(".lab-verdict", has_text="✗").wait_for()
    assert len(set(words)) == 3 and words[3] == words[0]
    page.get_by_label("Back through the training").fill("1")
    failing.click()  # the mistake of the trained model, not of a half-trained one
    assert re.fullmatch(r"step \d{3}", page.locator(".lab-when").inner_text())
    page.locator(".lab-written", has_text=f"{words[1]} → ").wait_for()
    assert page.locator(".lab-written .lab-right").count() >= 4
    choose(page, "rate")
    button(page, "Train").click()
    assert failing.is_hidden()


def test_without_the_mask_it_is_seen_to_peek_and_to_write_rubbish(page):
    choose(page, "mask")
    heads(page)
    button(page, "Train").click()
    button(page, "Skip the comparison").click()
    caption = page.locator(".lab-caption")
    page.locator(".lab-caption", has_text="This is how it trains").wait_for()
    view = page.locator("select:has(option[value='training'])")
    assert view.input_value() == "training"
    assert "the outlined square is the letter to be predicted" in caption.inner_text()
    assert "0 of 200" in finished(page)
    right = page.locator(".lab-written span:not(.lab-verdict)").all_inner_texts()
    given, written = stage_letters(page)
    assert given == "▶decafgib" and written.removesuffix("■") == "".join(right)
    assert written != "decafgib" and page.locator(".lab-field text.lab-wrong").count()
    strong = """all => Math.max(...all.map((one) => +one.style.strokeOpacity))"""
    assert page.locator(".lab-ahead").evaluate_all(strong) > 0.5
    peeks = page.locator(".lab-pointed").inner_text()
    assert int(re.search(r"gives it (\d+).% of its weight", peeks)[1]) > 30
    view.select_option("decoder.attention")  # as it writes: nothing is ahead
    assert page.locator(".lab-ahead").evaluate_all(strong) == 0
    assert stage_letters(page)[1] == written
    view.select_option("training")
    page.get_by_text("The attention in words").click()
    words = page.get_by_text("Head 1 looks most at these").inner_text()
    assert words.count("place") == 9  # the whole answer, whatever it wrote
    view.select_option("encoder.attention")
    assert "A row for each letter of the word, a" in caption.inner_text()


def test_without_its_control_an_experiment_trains_that_first(page):
    choose(page, "rate")
    button(page, "Train").click()
    page.locator(".lab-status", has_text="Run 1 (the whole model): step").wait_for()
    assert status(page).startswith("First the grey curve")
    page.locator(".lab-status", has_text="Run 2 (Learning rate").wait_for(
        timeout=RUN_MS
    )
    assert page.locator(".lab-key-old").all_inner_texts() == ["the whole model (run 1)"]
    button(page, "Stop").click()
    finished(page)
    button(page, "Train").click()  # it's there now
    page.locator(".lab-status", has_text="Run 3 (Learning rate").wait_for()
    button(page, "Stop").click()
    assert [row[0] for row in table(page)] == ["3", "2", "1"]
    assert page.locator("polyline.lab-old").count() == 2


def test_a_control_that_is_stopped_ends_the_experiment(page):
    choose(page, "rate")
    button(page, "Train").click()
    page.locator(".lab-status", has_text="First the grey").wait_for()
    button(page, "Stop").click()
    assert "Run 1 (the whole model): stopped" in finished(page)
    page.wait_for_timeout(500)
    assert button(page, "Train").is_visible() and len(table(page)) == 1


def test_a_word_in_the_text_shows_its_meaning_in_place(page):
    at = page.url, page.evaluate("scrollY")
    term = button(page, "attention")
    term.click()
    meaning = page.locator(".lab-meaning:visible")
    assert "spreads a weight of 100 %" in meaning.inner_text()
    assert (page.url, page.evaluate("scrollY")) == at
    word, box = term.bounding_box(), meaning.bounding_box()
    column = page.locator(".lab-question").bounding_box()
    assert 0 <= box["y"] - (word["y"] + word["height"]) < 8  # right below its word
    assert box["width"] > 200 and box["x"] > column["x"] - 1  # not over the drawing
    page.keyboard.press("Escape")
    assert meaning.count() == 0


def test_every_marked_word_has_a_meaning(page):
    for name in page.locator(".lab-steps input").evaluate_all(
        "all => all.map((one) => one.value)"
    ):
        choose(page, name)
        meanings = page.locator(".lab-meaning").all_text_contents()
        assert all(len(meaning) > 20 for meaning in meanings)
        assert "undefined" not in "".join(meanings)


def test_an_untrained_model_writes_on_the_stage(page):
    page.locator(".lab-verdict", has_text="✗ it should be decafgib").wait_for()
    assert status(page) == "Nothing is trained yet." and table(page) == []
    left, right = stage_letters(page)
    assert left == "bigfaced■" and right != "decafgib"
    looks = "all => all.filter((one) => +one.style.strokeOpacity > 0).length"
    seen = page.locator(".lab-field path").evaluate_all(looks)
    assert len(right) <= seen <= 4 * len(right)  # of 9 × 4 a letter: no cobweb
    assert page.locator(".lab-when").inner_text() == "untrained"


def test_a_part_of_the_drawing_is_a_switch(page):
    part = page.locator(".lab-decoder").get_by_role("button", name="causal mask")
    assert part.get_attribute("aria-pressed") == "true"
    part.click()
    assert part.get_attribute("aria-pressed") == "false"
    assert current(page) == "own"
    switches(page)
    assert not page.get_by_label("Causal mask in training").is_checked()
    for box in (".lab-encoder", ".lab-decoder"):  # both have positions
        page.locator(box).get_by_role("button", name="positions").click()
        chosen = page.locator("select[id$=-positions]").input_value()
        pressed = page.locator(".lab-chip", has_text="positions").evaluate_all(
            "all => all.map((one) => one.ariaPressed)"
        )
        assert pressed == ["true" if chosen != "none" else "false"] * 2
    assert chosen == "sinusoidal"


def changed(page) -> str:
    return page.locator(".lab-changed span").inner_text()


def ends_with(page, end: str) -> None:
    """Wait for the address: the browser tells of a new one a little later."""
    page.wait_for_url(lambda url: url.endswith(end), timeout=5000)


def test_the_address_opens_what_it_shares(visit):
    page = visit.page
    page.locator(".lab-decoder").get_by_role("button", name="÷ √k").click()
    switches(page)
    page.get_by_label("Layers").select_option("3")
    shared = "experiment=own&layers=3&scaled=false"
    ends_with(page, f"#{shared}")
    visit.open(f"{PAGE}#{shared}&rate=no&heads=7&foo=1")
    assert current(page) == "own"
    assert page.get_by_label("Layers").input_value() == "3"
    assert page.get_by_label("Heads").input_value() == "4"  # of 7 there is no choice
    scaled = page.locator(".lab-chip", has_text="÷ √k").first
    assert scaled.inner_text() == "no ÷ √k"
    assert scaled.get_attribute("aria-pressed") == "false"
    assert changed(page) == "Switched: layers: 3, no ÷ √k."
    said = page.get_by_role("alert").filter(has_text="In the address").inner_text()
    for wrong in ("Learning rate can’t be “no”", "Heads can’t be “7”", "“foo”"):
        assert wrong in said
    ends_with(page, f"#{shared}")  # what it couldn't use is gone
    visit.open(f"{PAGE}#experiment=banana")
    assert "There is no experiment “banana”" in page.get_by_role("alert").inner_text()


def test_a_finished_experiment_keeps_its_answer(page):
    cut_short(page)
    page.get_by_label("everywhere at once").check()
    said = trained(page)
    assert page.locator(".lab-guesses").is_enabled()
    wrote = page.locator(".lab-written").inner_text()
    page.locator(".lab-decoder").get_by_role("button", name="residuals").click()
    assert page.locator(".lab-answer").is_hidden()  # another model
    assert page.locator(".lab-when").inner_text() == "untrained"
    choose(page, "whole")
    assert status(page) == said and page.locator(".lab-answer").is_visible()
    assert page.get_by_label("everywhere at once").is_checked()
    assert page.locator(".lab-judged").inner_text().startswith("Not quite.")
    assert page.locator(".lab-written").inner_text() == wrote
    assert button(page, "Next").is_visible()
    word = page.get_by_label("A word of 8 letters")
    word.fill("headache")  # the model of that run answers
    page.locator(".lab-written", has_text="headache → ").wait_for()
    step = page.get_by_role("radio", name="1. The whole model, done", exact=True)
    assert step.is_checked() and page.locator(".lab-done").count() == 1


def test_no_guess_is_made_while_it_trains(page):
    going(page)
    assert page.get_by_label("everywhere at once").is_disabled()
    button(page, "Stop").click()
    finished(page)
    assert page.get_by_label("everywhere at once").is_enabled()


def test_the_slider_begins_with_the_model_that_knows_nothing(page):
    page.locator(".lab-verdict", has_text="✗ it should be decafgib").wait_for()
    before = page.locator(".lab-written").inner_text()
    cut_short(page, 50)
    trained(page)
    assert page.locator(".lab-when").inner_text() == "step 50"
    after = page.locator(".lab-written").inner_text()
    back = page.get_by_label("Back through the training")
    back.fill("0")
    assert page.locator(".lab-when").inner_text() == "untrained"
    page.locator(".lab-written", has_text=before).wait_for()
    page.get_by_label("A word of 8 letters").fill("headache")  # any word, at any step
    page.locator(".lab-written", has_text="headache → ").wait_for()
    assert page.locator(".lab-when").inner_text() == "untrained"
    page.get_by_label("A word of 8 letters").fill("bigfaced")
    page.locator(".lab-written", has_text=before).wait_for()
    button(page, "Play the training again").click()
    page.locator(".lab-when", has_text="step 50").wait_for()
    page.locator(".lab-written", has_text=after).wait_for()


def test_any_word_can_be_trained_for(visit):
    page = visit.page
    page.locator(".lab-verdict").wait_for()
    page.get_by_label("A word of 8 letters, a to j").fill("hello")
    page.locator(".lab-trouble", has_text="knows only a to j").wait_for()
    button(page, "Train one for any word").click()
    word = page.get_by_label("A word of 3 to 8 letters")
    page.locator(".lab-written", has_text="hello → ").wait_for()
    assert word.input_value() == "hello" and current(page) == "own"
    said = "words: any, 3 to 8 letters, learning rate: 0.01 (which suits them)"
    assert changed(page) == f"Switched: {said}."
    ends_with(page, "#experiment=own&words=any&rate=0.01&word=hello")
    page.locator(".lab-status", has_text="of at most 2000").wait_for()
    button(page, "Stop").click()
    visit.open(f"{PAGE}#experiment=own&words=any")
    page.get_by_label("A word of 3 to 8 letters").fill("zoe")
    page.locator(".lab-written", has_text="zoe → ").wait_for()
    button(page, "Everything back on").click()
    assert page.get_by_label("A word of 8 letters, a to j").is_visible()


def test_no_letters_overlap_and_layers_are_drawn(page):
    choose(page, "mask")  # the longest column: what is written, and what comes next
    page.locator(".lab-field .lab-ahead").first.wait_for(state="attached")
    tiles = page.locator(".lab-field .lab-tile").evaluate_all(
        """all => all.map((one) => one.getBBox())
            .map(({ x, y, height }) => [x, y, y + height])"""
    )
    for x in {tile[0] for tile in tiles}:
        column = sorted(tile[1:] for tile in tiles if tile[0] == x)
        gaps = [low - high for (_, high), (low, _) in itertools.pairwise(column)]
        assert len(gaps) > 7 and min(gaps) >= 1
    heads = page.locator(".lab-box b")
    assert heads.all_inner_texts() == ["encoder", "decoder"]
    choose(page, "residual")
    assert heads.all_inner_texts() == ["encoder × 2", "decoder × 2"]


def test_the_keyboard_goes_on_from_train_to_next(page):
    page.evaluate("laboratoryFile.experiments.whole.changes.steps = 25")
    choose(page, "whole")
    button(page, "Train").focus()
    page.keyboard.press("Enter")
    finished(page)
    page.locator(":focus", has_text="Next").wait_for()
    page.keyboard.press("Enter")
    assert current(page) == "mask"


def test_on_a_phone_held_sideways_train_and_verdict_are_in_sight(browser, base):
    with visiting(browser, base, viewport={"width": 844, "height": 390}) as visit:
        page = visit.page
        visit.open(PAGE)
        train_briefly(page)
        page.wait_for_timeout(1500)  # it scrolls smoothly
        for sign in (".lab-judged", ".lab-train", ".lab-field"):
            at = page.locator(sign).bounding_box()
            assert at["y"] >= 0 and at["y"] + at["height"] <= 390


def test_one_round_is_on_one_screen(browser, base):
    for height, width in ((700, 1200), (720, 1280)):
        size = {"width": width, "height": height}
        with visiting(browser, base, viewport=size) as visit:
            visit.open(PAGE)
            for name in (".lab-stage", ".lab-word", ".lab-guesses", ".lab-charts"):
                box = visit.page.locator(name).bounding_box()
                assert 0 <= box["y"] and box["y"] + box["height"] <= height, name
            button(visit.page, "Train").click()
            finished(visit.page)
            visit.page.locator(".lab-verdict", has_text="✓ right").wait_for()
            visit.page.wait_for_timeout(500)
            assert in_sight(visit.page)


def test_it_waits_goes_a_step_and_goes_back(page):
    button(page, "Train").click()
    page.locator(".lab-when", has_text="step").wait_for()
    page.wait_for_function(  # two looks at least
        "document.querySelector('.lab-scrub input').max > 0", polling=50
    )
    button(page, "Pause").click()
    page.wait_for_timeout(500)
    before = int(re.search(r"step (\d+) of", status(page))[1])
    page.wait_for_timeout(500)
    button(page, "One step").click()
    page.locator(".lab-status", has_text=f"step {before + 1} of").wait_for()
    page.get_by_label("Back through the training").fill("0")
    assert page.locator(".lab-when").inner_text() == "untrained"
    button(page, "Go on").click()
    assert "learned the task" in finished(page)
    assert button(page, "Pause").is_hidden()


def test_the_comparison_can_be_skipped(page):
    choose(page, "rate")
    button(page, "Train").click()
    page.locator(".lab-status", has_text="First the grey").wait_for()
    button(page, "Skip the comparison").click()
    page.locator(".lab-status", has_text="Run 2 (Learning rate").wait_for()
    assert button(page, "Skip the comparison").is_hidden()
    assert page.locator(".lab-key-old").all_inner_texts() == [""]
    button(page, "Stop").click()
    finished(page)


def test_a_switch_that_is_put_back_leads_back_to_the_experiment(visit):
    page = visit.page
    cut_short(page)
    trained(page)
    part = page.locator(".lab-decoder .lab-chip", has_text="norms")
    part.click()
    assert current(page) == "own"
    assert page.get_by_label("hardly a word").is_visible()
    part.click()
    assert current(page) == "whole"
    ends_with(page, "#experiment=whole")
    assert page.get_by_label("everywhere at once").is_visible()
    assert page.locator(".lab-answer").is_visible()


def test_the_guess_comes_before_the_parts_by_keyboard(page):
    page.locator(".lab-steps :checked").focus()
    page.keyboard.press("Tab")  # the word in the question
    page.keyboard.press("Tab")
    active = "document.activeElement.type"
    assert page.evaluate(active) == "radio"
    page.keyboard.press("Tab")
    assert button(page, "Train").evaluate("(node) => node === document.activeElement")


def test_experiments_are_chosen_by_keyboard_and_named(page):
    page.locator(".lab-steps :checked").focus()
    page.keyboard.press("ArrowRight")
    assert current(page) == "mask"
    ends_with(page, "#experiment=mask")
    name = "2. Without the causal mask"
    assert page.get_by_role("radio", name=name, exact=True).is_checked()
    assert page.locator(".lab-title").inner_text() == name
    steps = page.get_by_role("radiogroup", name="Experiment").get_by_role("radio")
    assert steps.count() == 10
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")  # round to the last
    assert current(page) == "own"
    assert page.locator(".lab-title").inner_text() == "Your own switches"


@pytest.mark.parametrize("width", [390, 800, 1200])
def test_the_letters_of_the_curves_keep_their_size(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.wait_for_timeout(500)  # they are drawn again
    scales = page.locator(".lab-charts > figure > svg").evaluate_all(
        "all => all.map((one) => one.getScreenCTM().a)"
    )
    assert len(scales) == 2 and all(abs(scale - 1) < 0.01 for scale in scales)


def test_each_switch_is_explained(page):
    page.get_by_text("What the words mean").click()
    terms = page.locator("details dt").all_inner_texts()
    switches(page)
    labels = page.locator(".lab-switches label").all()
    assert len(terms) == len(labels) + 12
    assert terms == sorted(terms, key=str.lower)
    assert all(label.get_attribute("title") for label in labels)


def test_a_phone_starts_smaller_and_says_so(browser, base):
    with visiting(browser, base, viewport={"width": 390, "height": 844}) as visit:
        visit.open(PAGE)
        lefts = """(label) => {
          const range = document.createRange();
          range.selectNodeContents(label.lastChild);
          return Array.from(range.getClientRects(), (line) => Math.round(line.x));
        }"""
        label = visit.page.get_by_text("at the last letter, then the one before")
        assert len(set(label.evaluate(lefts))) == 1  # no line begins below the circle
        note = "words have 6 letters instead of 8"
        assert visit.page.get_by_text(note).is_visible()
        button(visit.page, "Train").click()
        box = visit.page.locator(".lab-field")
        visit.page.locator(".lab-status", has_text="step").wait_for()
        visit.page.wait_for_timeout(1000)
        at = box.bounding_box()
        assert at["y"] >= 0 and at["y"] + at["height"] <= 844  # in sight
        assert "learned the task" in finished(visit.page)
        width = "document.documentElement.scrollWidth <= innerWidth"
        assert visit.page.evaluate(width)
        assert axe(visit.page) == []
