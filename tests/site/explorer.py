"""An explorer alone on a page, and what a reader does with it."""

from typing import Any

from playwright.sync_api import Locator, Page

from annotated.page.frames import static

RUN = """([states, data]) => {
    %s;
    const kept = {}, node = { setAttribute: () => null };
    const view = {
        once: (name, make) => (kept[name] ??= make()), width: () => 600,
        svg: () => node, add: () => node, text: () => node, rect: () => node,
        loader: () => node, control: () => node,
    };
    return states.map((state) => (function () { %s })());
}"""


def results(page: Page, script: str, states: list[dict], data: dict) -> list[dict]:
    """What an explorer's script returns for states, one by one; nothing is drawn."""
    return page.evaluate(RUN % (static("numbers.js"), static(script)), [states, data])


class Explorer:
    """The first explorer of a page: its controls, its drawing, and what it says."""

    def __init__(self, page: Page):
        self.page = page
        self.root = page.locator(".annotated-explorer[data-ready]").first
        self.root.wait_for()
        self.button = self.root.locator(".annotated-load")

    def put(self, **state: Any) -> dict[str, Any]:
        """Set controls; return what the explorer computes then."""
        return self.root.evaluate(
            "(it, state) => { it.explorer.set(state); return it.explorer.values(); }",
            state,
        )

    @property
    def values(self) -> dict[str, Any]:
        return self.put()

    @property
    def state(self) -> dict[str, Any]:
        return self.root.evaluate("(it) => it.explorer.state")

    @property
    def says(self) -> str:
        return self.root.locator(".annotated-says > span").inner_text()

    @property
    def height(self) -> float:
        return self.root.bounding_box()["height"]

    def control(self, name: str) -> Locator:
        return self.root.locator(f"[data-name={name}]")

    def press(self, name: str, *keys: str) -> None:
        """Press keys on a control."""
        self.control(name).focus()
        for key in keys:
            self.page.keyboard.press(key)

    def drawn(self, selector: str) -> Locator:
        """Elements of the drawing."""
        return self.root.locator(f".annotated-view {selector}")

    def words(self, selector: str = "text") -> list[str]:
        return self.drawn(selector).all_text_contents()

    def boxes(self, selector: str) -> list[list[float]]:
        """Left, right, top and bottom of elements of the drawing."""
        return self.drawn(selector).evaluate_all(
            "all => all.map((one) => { const b = one.getBBox();"
            " return [b.x, b.x + b.width, b.y, b.y + b.height]; })"
        )
