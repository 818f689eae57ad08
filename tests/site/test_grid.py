"""The mask builder's grid: by mouse, by keyboard, and back to where it was."""

import pytest

from tests.site.browser import visiting

PAGE = "notebooks/04_masks.html"
EXPLORER = 'section[aria-label="Mask builder"]'


@pytest.fixture(scope="module")
def builder(browser, base):
    with visiting(browser, base) as opened:
        opened.open(PAGE)
        yield opened.page.locator(EXPLORER)


@pytest.fixture(autouse=True)
def fresh(builder):
    builder.evaluate("(node) => node.explorer.set({cells: []})")


def cell(builder, row: int, column: int):
    return builder.locator(f'button[data-row="{row}"][data-column="{column}"]')


def switched(builder) -> list[list[int]]:
    return builder.evaluate("(node) => node.explorer.state.cells")


def visible(builder, row: int, column: int) -> bool:
    mask = builder.evaluate("(node) => node.explorer.values().mask")
    return mask[row][column]


def test_a_click_turns_a_place_and_a_second_one_turns_it_back(builder):
    before = visible(builder, 0, 3)
    cell(builder, 0, 3).click()
    assert switched(builder) == [[0, 3]]
    assert visible(builder, 0, 3) is not before
    pressed = cell(builder, 0, 3).get_attribute("aria-pressed")
    assert pressed == str(not before).lower()
    cell(builder, 0, 3).click()
    assert switched(builder) == [] and visible(builder, 0, 3) is before


def test_arrows_move_and_space_switches(builder):
    cell(builder, 0, 0).focus()
    keyboard = builder.page.keyboard
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "Space"):
        keyboard.press(key)
    assert switched(builder) == [[1, 2]]
    for key in ("End", "Enter", "ArrowRight", "Home", "ArrowUp", "Space"):
        keyboard.press(key)  # nothing lies beyond the end of a row
    assert switched(builder) == [[0, 0], [1, 2], [1, 5]]


def test_one_stop_for_the_tab_key_follows_the_focus(builder):
    cell(builder, 2, 5).click()
    stops = builder.locator('.annotated-grid button[tabindex="0"]')
    assert stops.count() == 1
    assert stops.get_attribute("data-row") == "2"
    assert stops.get_attribute("data-column") == "5"


def test_clicks_can_be_undone_at_once(builder):
    for column in range(3):
        cell(builder, 4, column).click()
    assert len(switched(builder)) == 3
    builder.locator(".annotated-reset").click()
    assert switched(builder) == []


def test_a_click_ends_with_the_mask_that_it_was_made_in(builder):
    cell(builder, 4, 3).click()
    builder.locator('select[data-name="hiding"]').select_option(index=1)
    assert switched(builder) == [[4, 3]]  # the same mask, hidden in another way
    builder.locator('input[data-name="length"]').focus()
    for _ in range(2):
        builder.page.keyboard.press("ArrowLeft")
    assert switched(builder) == [] and visible(builder, 4, 3)
    assert not visible(builder, 4, 4)  # padding
    builder.evaluate("(node) => node.explorer.set({length: 6})")
    builder.locator('select[data-name="hiding"]').select_option(index=2)


def test_every_place_says_what_it_is(builder):
    said = cell(builder, 1, 0).get_attribute("aria-label")
    assert said.startswith("query 2 cat, key 1 the: 1, visible")
    cell(builder, 1, 0).click()
    said = cell(builder, 1, 0).get_attribute("aria-label")
    assert said.startswith("query 2 cat, key 1 the: 0, hidden")
    assert said.endswith(cell(builder, 1, 0).inner_text())


def test_the_weights_follow(builder):
    cell(builder, 0, 0).click()  # nothing is left for the first query
    values = builder.evaluate("(node) => node.explorer.values()")
    assert values["empty"] == [0, 5]  # the last one has none from the start
    assert values["weights"][0] == [1 / 6] * 6
    assert "No key is left for the queries 1 (the), 6" in builder.inner_text()
