"""What a reader does with explorers, one by one; and drawings follow the numbers.

What holds for all of them is seen on their pages (checkers.py): they compute what
Python does in the states that they name, draw something in every state, keep their
height, and can be used by keyboard.
"""

import json
import random
from itertools import pairwise, product

import pytest
import torch

from annotated.chapters.ch04 import drawings as ch04
from annotated.chapters.ch15 import drawings_b as ch15b
from annotated.chapters.ch16 import drafting
from annotated.chapters.ch16 import drawings_b as ch16b
from annotated.chapters.ch16 import drawings_c as ch16c
from annotated.chapters.ch16.trace_walk import trace_walk
from annotated.chapters.ch17 import drawings_b as ch17b
from annotated.chapters.ch17 import pattern_explorer
from annotated.chapters.ch18 import drawings_b as ch18b
from annotated.chapters.ch18 import memory_calculator
from annotated.chapters.ch20 import clinic_drawings
from annotated.data.glassllm import glass_model
from annotated.data.reactions import HEAD, LAYER, attention_maps, links, reaction_model
from annotated.gpt import GPT, GPTConfig
from annotated.memory import memory_timeline
from annotated.trace import trace
from annotated.transformer import Transformer, TransformerConfig
from tests.site.explorer import Explorer
from tools import ROOT

covers = pytest.mark.covers


@pytest.fixture(scope="module")
def alone(browser):
    """Open explorers, each once: `alone(make)` shows what `make` returns."""
    opened = {}

    def show(make) -> Explorer:
        if make not in opened:
            page = browser.new_page(viewport={"width": 700, "height": 900})
            page.set_content(f"<main>{make().text}</main>")
            opened[make] = Explorer(page)
        return opened[make]

    yield show
    for shown in opened.values():
        shown.page.close()


# ---- buttons that walk ---------------------------------------------------------


def guesses():
    model = glass_model()
    drafts = drafting.drafts(model, drafting.texts(model, 16))
    shares = {name: 0.1 * i for i, name in enumerate(drafts)}
    return ch16c.steps_explorer(model, drafts, shares)


LONG = 200  # not a multiple of all strides, and a mask can be counted
WINDOWS = product((2, 4, 8, 16, 32), (None, 4, 8, 16), (False, True))
RECORD = {
    "rows": [
        {"window": w, "stride": s, "global": g, "bits": 2 + n / 50 + seed, "seed": seed}
        for n, (w, s, g) in enumerate(WINDOWS)
        for seed in range(1 + (w < 16))
    ]
    + [
        {"window": w, "stride": s, "global": "every 8th", "bits": 3 + w / 50, "seed": 0}
        for w, s in product((1, 4), (None, 8))
    ]
}


def patterns():
    return pattern_explorer.pattern_explorer(RECORD, LONG)


WALKS = {
    "step": (ch18b.ring_explorer, {"processes": "5"}),
    "tile": (ch17b.walk_explorer, {"size": 2, "causal": True}),
    "reading": (guesses, {"draft": "pairs, averaged", "guesses": 3}),
    "layers": (patterns, {"window": 8, "stride": "none", "global": "none"}),
}


@covers("16", "17", "18")
@pytest.mark.parametrize("name", WALKS)
def test_a_button_walks_to_the_end_and_begins_anew(alone, name):
    make, state = WALKS[name]
    shown = alone(make)
    shown.put(**state)
    shown.press(name, "Home")
    slider, high = shown.control(name), shown.height
    last = int(slider.get_attribute("max"))
    for step in range(last + 1):
        assert slider.input_value() == str(step)
        assert shown.button.inner_text().startswith("back") == (step == last)
        assert shown.height == high
        shown.button.click()
    assert slider.input_value() == "0"
    shown.press(name, "End")
    assert slider.input_value() == str(last)
    shown.button.focus()
    shown.page.keyboard.press("Enter")
    assert slider.input_value() == "0"


@covers("18")
def test_the_ring_draws_what_was_sent_and_what_is_complete(alone):
    shown, n = alone(ch18b.ring_explorer), 4
    for step in range(2 * (n - 1) + 1):
        values = shown.put(processes=f"{n}", step=step)
        assert shown.drawn("rect[stroke-width='2.5']").count() == values["complete"]
        assert shown.drawn("polygon").count() == (n if step else 0), "arrows"
        added = sum(one.startswith("+ ") for one in shown.words())
        assert added == (n if 0 < step < n else 0)


@covers("17")
@pytest.mark.parametrize(("size", "causal"), [(2, True), (4, False), (8, True)])
def test_a_tile_shows_its_scores_and_forgets_those_before(alone, size, causal):
    shown = alone(ch17b.walk_explorer)
    scores, _ = ch17b.walk_numbers()

    def places(a, b):
        rows, columns = (range(one * size, (one + 1) * size) for one in (a, b))
        return [(i, j) for i in rows for j in columns if j <= i or not causal]

    order = ch17b.walk_order(size, causal)
    for tile, (a, b) in enumerate(order, start=1):
        shown.put(size=size, causal=causal, tile=tile)
        [(left, right, top, bottom)] = shown.boxes(".tile")
        inside = [
            word
            for word, (x, end, y, low) in zip(
                shown.words(), shown.boxes("text"), strict=True
            )
            if left < (x + end) / 2 < right and top < (y + low) / 2 < bottom
        ]
        seen = [
            f"{scores[place].item():.1f}".replace("-", "−") for place in places(a, b)
        ]
        assert inside == seen
        done = sum(len(places(*before)) for before in order[: tile - 1])
        assert shown.drawn(".forgotten").count() == done


@covers("16", "drafting")
@pytest.mark.parametrize("draft", ["any token", "the first layer"])
def test_each_guess_is_kept_refused_or_dropped(alone, draft):
    shown = alone(guesses)
    run = shown.root.locator(".annotated-explorer-data").text_content()
    for number, one in enumerate(json.loads(run)["runs"][draft]["3"], start=1):
        shown.put(draft=draft, guesses=3, reading=number)
        words, refused = shown.words(), one["kept"] < len(one["guesses"])
        assert words.count("✓ kept") == one["kept"]
        assert words.count(f"✗ → {ch16c.spaced(one['more'])}") == refused
        dropped = len(one["guesses"]) - one["kept"] - refused
        assert words.count("dropped") == dropped


# ---- patterns, tiles, processes: what is drawn is what was computed --------------


@covers("17", "sparse")
@pytest.mark.parametrize("causal", [True, False])
def test_every_pattern_is_that_of_the_module(alone, causal):
    shown, bits = alone(patterns), pattern_explorer.trained(RECORD)
    several = product(
        pattern_explorer.WINDOWS, pattern_explorer.STRIDES, pattern_explorer.GLOBALS
    )
    for n, (window, stride, some) in enumerate(several):
        state = {"window": window, "stride": stride, "global": some}
        state |= {"causal": causal, "layers": n % 5 + 1}
        wanted = pattern_explorer.values_of(state, LONG)
        mask = pattern_explorer.pattern_of(state, LONG).mask(LONG)
        assert shown.put(**state) == wanted, state
        assert wanted["long"] == mask.sum()
        short = pattern_explorer.STRIDES[stride], pattern_explorer.GLOBALS[some]
        known = causal and f"{window} {short[0]} {short[1]}" in bits
        assert shown.drawn("circle[r='7']").count() == known, (
            "a dot for what was trained"
        )
        assert ("none trained" in shown.words()) == (not known)


@covers("17")
@pytest.mark.parametrize("size", ch17b.TILES)
def test_bars_and_arrows_are_as_long_and_thick_as_their_numbers(alone, size):
    shown = alone(trips)
    shown.put(size=size)
    products, out, tiled = ch17b.pace(8192, 64, size, ch17b.A100)
    numbers = [ch17b.tile_bytes(64, size) / 1024, 163, products, tiled, out]
    widths = [right - left for left, right, *_ in shown.boxes("rect.bar")]
    for start, end in ((0, 2), (2, 5)):  # a scale for KB, and one for ms
        scale = widths[start] / numbers[start]
        wanted = [scale * number for number in numbers[start:end]]
        assert widths[start:end] == pytest.approx(wanted, rel=1e-4)
    lanes = ch17b.trips(8192, 64) + ch17b.trips(8192, 64, size)
    arrows = shown.drawn("line").evaluate_all(
        "all => all.map((one) => [one.x1.baseVal.value < one.x2.baseVal.value,"
        " Number(one.getAttribute('stroke-width'))])"
    )
    assert [right for right, _ in arrows] == [into for *_, into in lanes]
    thick = [1.2 + 3 * count / (2 * 8192**2) for _, count, _ in lanes]
    assert [one for _, one in arrows] == pytest.approx(thick)


def trips():
    return ch17b.trips_explorer(8192, 64)


@covers("18")
@pytest.mark.parametrize("n", ch18b.COUNTS)
def test_a_divided_part_has_one_owner_and_a_copied_one_is_everywhere(alone, n):
    shown = alone(ch18b.holds_explorer)
    shown.put(stage="ZeRO-1", processes=n)
    held = shown.boxes(".held")
    assert len(held) == 3 * n
    weights, averages = held[:n], held[2 * n :]
    for one in weights:
        assert one[:2] == pytest.approx(weights[0][:2])
    starts = [one[0] for one in averages]
    assert starts == sorted({*starts}), "each owns another part, from the left"
    for before, after in pairwise(averages) if n <= 16 else ():
        assert after[0] == pytest.approx(before[1], abs=0.01)
        assert after[2] >= before[3], "in a row of its own"
    # Adam's two averages are twice as wide as the weights
    whole = averages[-1][1] - averages[0][0]
    assert whole == pytest.approx(2 * (weights[0][1] - weights[0][0]), abs=0.05)


# ---- a model that sets the sliders -----------------------------------------------


PRESETS = [
    (ch16b.cache_explorer, ch16b, ch16b.cache_bytes, "length"),
    (
        memory_calculator.memory_calculator,
        memory_calculator,
        memory_calculator.memory_bytes,
        "batch",
    ),
]


@covers("16", "18", "memory_calculator")
@pytest.mark.parametrize(("make", "module", "computed", "other"), PRESETS)
def test_a_model_sets_the_sliders_and_a_slider_makes_it_ones_own(
    alone, make, module, computed, other
):
    shown = alone(make)
    for name, sizes in module.MODELS.items():
        shown.control("model").select_option(name)
        state = shown.state
        assert {key: state[key] for key in sizes} == sizes
        for key in sizes:
            output = shown.control(key).locator("xpath=following-sibling::output")
            assert output.inner_text() == str(sizes[key])
        assert shown.values == computed(state)
    shown.press(other, "End")  # which is no size of a model's
    assert shown.control("model").input_value() == name
    shown.press("layers", "Home")
    assert shown.control("model").input_value() == module.OWN
    own = shown.state
    assert own["layers"] == module.CHOICES["layers"][0]
    assert own["width"] == sizes["width"] and shown.values == computed(own)
    shown.control("model").select_option(name)
    shown.control("model").select_option(module.OWN)
    assert shown.state == state | {"model": module.OWN, other: own[other]}


def drawn_at_random(seed: int) -> dict:
    rng = random.Random(seed)
    return {
        "model": memory_calculator.OWN,
        **{name: rng.choice(all_) for name, all_ in memory_calculator.CHOICES.items()},
        "precision": rng.choice([*memory_calculator.PRECISIONS]),
        "shared": rng.choice(memory_calculator.STAGES),
        "checkpointed": rng.random() < 0.5,
        "accumulating": rng.random() < 0.3,
    }


MEDIUM = memory_calculator.START | memory_calculator.MODELS["GPT-2 medium"]
MEMORY = covers("18", "memory_calculator", "annotated/memory")


@MEMORY
def test_any_setting_takes_as_much_memory_as_in_python(alone):
    shown = alone(memory_calculator.memory_calculator)
    for seed in range(40):
        state = drawn_at_random(seed)
        assert shown.put(**state) == memory_calculator.memory_bytes(state), seed


@MEMORY
def test_what_stood_there_before_stays_as_an_outline(alone):
    shown = alone(memory_calculator.memory_calculator)
    outline, before = shown.drawn("polyline"), "Before your last change, it was"
    shown.put(model="GPT-2 small", **memory_calculator.MODELS["GPT-2 small"])
    shown.put(**MEDIUM | {"checkpointed": True})
    shown.put(checkpointed=False)
    assert f"{before} 16 GB." in shown.says and outline.count() == 2
    for _ in range(3):  # a slider that goes on is compared with where it began
        shown.press("layers", "ArrowLeft")
        assert f"{before} 40 GB." in shown.says
    shown.put(**MEDIUM)
    assert "That's as before." in shown.says and outline.count() == 0
    small = MEDIUM | {"model": "GPT-2 small"} | memory_calculator.MODELS["GPT-2 small"]
    shown.put(**small | {"batch": 1})
    shown.put(precision="autocast to bfloat16")  # both are 2.7 GB
    assert "That's 19 MB more than before." in shown.says
    shown.put(**MEDIUM | {"processes": 8, "shared": memory_calculator.STAGES[2]})
    assert "There are no gradients to share at that moment." in shown.says


@MEMORY
def test_the_outline_is_the_timeline(alone):
    shown = alone(memory_calculator.memory_calculator)
    shown.put(**MEDIUM)
    config, options = memory_calculator.asked(MEDIUM)
    moments = [*memory_timeline(config, 16, 1024, **options).values()]
    shapes = [
        [float(pair.split(",")[1]) for pair in shape.get_attribute("points").split()]
        for shape in shown.drawn("polygon").all()
    ]
    order = ("parameters", "optimizer", "gradients", "activations", "temporary")
    assert len(shapes) == len(order)
    count = len(shapes[0]) // 2  # lower edge, and the upper one backwards
    assert count == len(moments) + 3  # before the step, and after it twice
    upper = [ys[count:][::-1][1:-2] for ys in shapes]
    foot = shapes[0][0]
    scale = (foot - min(upper[-1])) / max(use.total for use in moments)
    for part, ys in enumerate(upper, start=1):
        sums = [sum(getattr(use, name) for name in order[:part]) for use in moments]
        wanted = [foot - scale * size for size in sums]
        assert ys == pytest.approx(wanted, abs=0.2)


# ---- reactions: a tap on an atom ---------------------------------------------------


def reaction_map():
    return ch15b.map_explorer(reaction_model())


@covers("15", "data/reactions")
@pytest.mark.parametrize("kind", ["esterification", "Cope rearrangement", "indole"])
def test_a_tap_shows_what_an_atom_looks_at(alone, kind):
    shown, drawn = alone(reaction_map), ch15b.drawn_reactions()
    shown.root.locator("select").first.select_option(kind)
    (one,) = (r for r in ch15b.reactions() if r.kind == kind and r.text in drawn)
    maps = attention_maps(reaction_model(), one.text)
    found = links(maps, one.text)[LAYER, HEAD].tolist()
    right = [i in may for i, may in zip(found, one.right(), strict=True)]
    for atom in (0, 4, len(found) - 1):
        shown.drawn("circle[fill=transparent]").nth(atom).click()
        asked = {"linked": found[atom], "right": right[atom]}
        assert shown.values == {"count": sum(right), **asked}
        link = shown.drawn("line[stroke^='var']")  # bonds have the text's colour
        wanted = f"var(--at-{'right' if right[atom] else 'wrong'})"
        assert [a.get_attribute("stroke") for a in link.all()] == [wanted]
    shown.press("atom", "End")
    assert shown.control("atom").input_value() == str(len(found))


# ---- the walk through a trace --------------------------------------------------------


WORDS = [f"word{i}" for i in range(20)]
TOKENS = torch.tensor([[3, 7, 1, 4, 9, 12, 2, 5]])
PAIR = torch.tensor([[5, 2, 8, 0, 0, 0]]), torch.tensor([[1, 6, 7]])
SIZES = {"d_model": 32, "heads": 4, "layers": 2, "d_ff": 150}
TRACED = covers("06", "16", "trace")


def gpt_steps():
    torch.manual_seed(0)
    model = GPT(GPTConfig(20, **SIZES, activation="gelu_tanh")).eval()
    return model, trace(model, TOKENS)


def gpt_walk():
    return trace_walk(gpt_steps()[0], TOKENS, names=[WORDS])


def transformer_steps():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(20, 20, **SIZES)).eval()
    return model, trace(model, *PAIR)


def transformer_walk():
    return trace_walk(transformer_steps()[0], *PAIR, names=[WORDS, WORDS])


@TRACED
def test_keys_buttons_and_a_map_step_through_a_trace(alone):
    shown, (_, steps) = alone(gpt_walk), gpt_steps()
    shown.put(step=1, position=8, head=1)
    card = shown.root.locator(".walk-card.walk-now")
    shown.root.locator(".annotated-view").focus()
    for i in range(1, 12):
        shown.page.keyboard.press("ArrowRight")
        assert card.locator(".walk-title").inner_text().lower() == steps[i].operation
        place = card.locator(".walk-place").inner_text()
        assert place.startswith(f"{steps[i].place} · ")
    before, after = shown.root.locator(".walk-buttons button").all()
    after.click()
    assert shown.state["step"] == 13
    before.click()
    assert shown.state["step"] == 12
    shown.put(step=len(steps))
    after.click(force=True)
    assert shown.state["step"] == len(steps)
    assert after.get_attribute("aria-disabled") == "true"
    there = shown.root.locator(".walk-map button[aria-label='block 2, feed-forward']")
    there.click()
    assert card.locator(".walk-place").inner_text() == "block 2, feed-forward · 1 of 5"
    assert there.get_attribute("aria-current")


@TRACED
def test_a_tap_follows_a_position_and_a_head(alone):
    shown, (_, steps) = alone(gpt_walk), gpt_steps()
    step = next(i for i, s in enumerate(steps) if s.operation == "weights")
    slider = shown.root.locator("[data-name=head]")
    shown.put(step=1)
    assert slider.is_disabled()  # a step without heads
    shown.put(step=step + 1)
    assert slider.is_enabled()
    targets = shown.root.locator(".walk-picture rect[style*=pointer]")
    assert targets.count() == 8 + 4
    targets.nth(1).click()
    targets.nth(8 + 2).click()
    assert (shown.state["position"], shown.state["head"]) == (2, 3)
    row = steps[step].value[0, 2, 1]
    best = int(row.argmax())
    assert shown.says == (
        f"Head 3: “word7” puts {100 * row[best]:.0f} % of its weight on "
        f"“{WORDS[TOKENS[0, best]]}” (position {best + 1})."
    )


@TRACED
def test_hidden_keys_are_hatched_and_rows_of_the_decoder_are_the_targets(alone):
    shown, (_, steps) = alone(transformer_walk), transformer_steps()
    place = "decoder layer 1, cross-attention"
    (step,) = (
        i
        for i, s in enumerate(steps, 1)
        if s.place == place and s.operation == "visible scores"
    )
    shown.put(step=step, position=6, head=1)
    texts = shown.root.locator(".walk-picture text").all_text_contents()
    assert texts[1:10] == [WORDS[i] for i in (*PAIR[0][0], *PAIR[1][0])]
    # three keys of padding, for three queries in five pictures
    hatched = shown.root.locator(".walk-picture rect[fill^=url]")
    assert hatched.count() == 3 * 3 * 5


# ---- the mask builder's grid --------------------------------------------------------


@pytest.fixture
def mask(alone):
    shown = alone(ch04.mask_builder)
    shown.put(cells=[])
    return shown


def cell(mask, row: int, column: int):
    return mask.root.locator(f'button[data-row="{row}"][data-column="{column}"]')


@covers("04")
def test_a_click_turns_a_place_and_a_second_one_turns_it_back(mask):
    before = mask.values["mask"][0][3]
    cell(mask, 0, 3).click()
    assert mask.state["cells"] == [[0, 3]]
    assert mask.values["mask"][0][3] is not before
    pressed = cell(mask, 0, 3).get_attribute("aria-pressed")
    assert pressed == str(not before).lower()
    cell(mask, 0, 3).click()
    assert mask.state["cells"] == [] and mask.values["mask"][0][3] is before
    for column in range(3):
        cell(mask, 4, column).click()
    mask.root.locator(".annotated-reset").click()
    assert mask.state["cells"] == []


@covers("04")
def test_arrows_move_space_switches_and_tab_finds_the_last_place(mask):
    cell(mask, 0, 0).focus()
    keyboard = mask.page.keyboard
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "Space"):
        keyboard.press(key)
    assert mask.state["cells"] == [[1, 2]]
    for key in ("End", "Enter", "ArrowRight", "Home", "ArrowUp", "Space"):
        keyboard.press(key)  # nothing lies beyond the end of a row
    assert mask.state["cells"] == [[0, 0], [1, 2], [1, 5]]
    stop = mask.root.locator('.annotated-grid button[tabindex="0"]')
    assert stop.count() == 1
    assert [stop.get_attribute(f"data-{one}") for one in ("row", "column")] == [
        "0",
        "0",
    ]


@covers("04")
def test_a_click_ends_with_the_mask_that_it_was_made_in(mask):
    cell(mask, 4, 3).click()
    mask.control("hiding").select_option(index=1)
    assert mask.state["cells"] == [[4, 3]]  # the same mask, hidden in another way
    mask.press("length", "ArrowLeft", "ArrowLeft")
    assert mask.state["cells"] == [] and mask.values["mask"][4][3]
    assert not mask.values["mask"][4][4]  # padding
    mask.put(length=6)
    mask.control("hiding").select_option(index=2)


@covers("04")
def test_every_place_says_what_it_is_and_the_weights_follow(mask):
    mask.put(length=5)
    place = cell(mask, 1, 0)
    said = place.get_attribute("aria-label")
    assert said.startswith("query 2 cat, key 1 the: 1, visible")
    place.click()
    said = place.get_attribute("aria-label")
    assert said.startswith("query 2 cat, key 1 the: 0, hidden")
    assert said.endswith(place.inner_text())
    cell(mask, 0, 0).click()  # nothing is left for the first query
    values = mask.values
    assert 0 in values["empty"] and values["weights"][0] == [1 / 6] * 6


# ---- the clinic ----------------------------------------------------------------


def clinic():
    record = json.loads((ROOT / "book/results/clinic.json").read_text("utf-8"))
    return clinic_drawings.clinic_explorer(record)


def order(shown, name, key="Enter"):
    shown.put(examination=name)
    shown.root.get_by_role("button", name="order it").focus()
    shown.page.keyboard.press(key)


def decide(shown, diagnosis) -> str:
    shown.put(diagnosis=diagnosis)
    shown.root.get_by_role("button", name="decide").click()
    return shown.says


@covers("20")
def test_the_clock_counts_what_is_ordered_once(alone):
    shown = alone(clinic)
    shown.put(patient="Bo")
    high, drawn = shown.height, set()
    assert "Bo: 0 minutes" in shown.words()
    spent = 0
    for name, minutes in clinic_drawings.EXAMINATIONS.items():
        for _ in range(2):  # who asks again gets the same answer for nothing
            order(shown, name)
            assert shown.words()[0] == f"Bo: {spent + minutes} minute" + "s" * (
                spent + minutes > 1
            )
        spent += minutes
        assert f"✓ {name} ({minutes})" in shown.words()
        assert shown.height == high
        drawn.add(tuple(shown.words()[-3:]))
    assert len(drawn) > 6 and shown.drawn("*").count() > 20
    shown.put(patient="Chen")
    assert shown.words()[0] == "Chen: 0 minutes"
    shown.put(patient="Bo")
    assert shown.words()[0] == f"Bo: {spent} minutes"
    shown.root.get_by_role("button", name="begin anew").click()
    assert shown.words()[0] == "Bo: 0 minutes"


@covers("20")
def test_a_diagnosis_is_judged_and_a_shorter_way_named(alone):
    shown = alone(clinic)
    shown.put(patient="Dana")
    shown.root.get_by_role("button", name="begin anew").click()
    assert decide(shown, "not yet").startswith("Choose")
    right = "its label is the symbol that it reads"
    assert decide(shown, right).startswith("Order something first")
    assert shown.words()[0] == "Dana: 0 minutes"
    order(shown, "another seed", key="Space")
    assert decide(shown, "it overfits").startswith("No, and 30 minutes are lost.")
    assert "tells the two apart" in decide(shown, "padding counts in its loss")
    said = decide(shown, right)
    assert said.startswith("Right, after 120 minutes") and "2 minutes" in said
    assert "so far 6 of the other patients answer alike" in said
    order(shown, "what the loss asks for")
    assert "Look again at “what the loss" in decide(shown, "padding counts in its loss")
    assert shown.words()[0] == "Dana: 152 minutes"
    shown.root.get_by_role("button", name="begin anew").click()
    order(shown, "what the loss asks for")
    assert "No way is shorter" in decide(shown, right)
    prices = shown.control("examination").locator("option").all_text_contents()
    assert prices[0] == "the best possible loss (1 min)"
