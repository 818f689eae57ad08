"""What a page in the browser must satisfy. Each check returns what is wrong with it."""

from collections.abc import Iterator
from math import prod
from pathlib import Path

from playwright.sync_api import Page, TimeoutError

from book._ext.pages import alt_problem
from tests.site.browser import Visit
from tools.vendor import TEST_VENDOR

DRAWINGS = Path(__file__).with_name("drawings.js").read_text(encoding="utf-8")
AXE = (TEST_VENDOR / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
# Without preload: axe would fetch imported style sheets, from addresses it gets wrong.
AXE_OPTIONS = {"resultTypes": ["violations"], "preload": False}
PHONE = (360, 740)  # small, even for a phone
USUAL_PHONE = (390, 844)  # down to this width, letters have 12 pixels


def first_sight(visit: Visit, address: str) -> Iterator[tuple[str, list[str]]]:
    """Visit a page as it opens, in light; yield each check with what it finds wrong.

    All drawings are seen in all states, and explorers compute what Python does.
    """
    page = visit.page
    visit.open(address)
    heading = page.locator("main h1:visible").count()
    yield "heading", [] if heading else ["no <h1> is to be seen"]
    yield "images", images(page)
    yield "formulas", mathematics(page)
    yield "widgets", widget_manager(visit)
    set_theme(page, "light")
    yield "axe, light", axe(page)
    open_everything(page)
    yield "drawings", drawings(page)
    yield "edges", edges(page)
    for number in range(page.locator(".annotated-explorer").count()):
        yield f"explorer {number}, numbers", explorer_checks(page, number)
    yield from requests(visit)


def in_use(visit: Visit, address: str) -> Iterator[tuple[str, list[str]]]:
    """Visit a page and use it, unfolded; then in the dark, and on a phone."""
    page = visit.page
    visit.open(address)
    yield "skip link", skip_link(page)
    open_everything(page)
    yield "focus", focus(page)
    yield from uses(page)
    set_theme(page, "dark")
    yield "axe, dark", axe(page)

    narrow(page, *PHONE)
    set_theme(page, "light")
    offer_the_way_back(page)
    yield "sideways on a phone", sideways(page)
    yield "axe, phone", axe(page)
    narrow(page, *USUAL_PHONE)
    yield "drawings on a phone", drawings(page)
    yield from requests(visit)


def requests(visit: Visit) -> Iterator[tuple[str, list[str]]]:
    """What went wrong with the page's requests and scripts so far."""
    yield "other hosts", visit.blocked
    yield "requests that fail", visit.failed
    yield "errors", visit.errors
    yield "from the disk", needs_a_server(visit)


def uses(page: Page) -> Iterator[tuple[str, list[str]]]:
    """Use every slider and explorer of a page."""
    for number in range(page.locator(".annotated-frames").count()):
        yield f"slider {number}", slider(page, number)
    for number in range(page.locator(".annotated-explorer").count()):
        yield f"explorer {number}, keyboard", explorer_keyboard(page, number)


def axe(page: Page) -> list[str]:
    """The accessibility faults that axe-core finds, one line an element."""
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(AXE)
    report = page.evaluate("(options) => axe.run(document, options)", AXE_OPTIONS)
    return [
        f"{fault['id']}: {node['target']} {node['html'][:160]}"
        for fault in report["violations"]
        for node in fault["nodes"]
    ]


def drawings(page: Page) -> list[str]:
    """What is wrong with the drawings, in all states; see drawings.js."""
    seen = page.evaluate(DRAWINGS)
    problems = {alt: alt_problem(alt) for alt in seen["alts"]}
    badly = [f"{alt!r} {problem}" for alt, problem in problems.items() if problem]
    return seen["wrong"] + badly


def images(page: Page) -> list[str]:
    pictures = page.evaluate(
        """() => [...document.querySelectorAll("article img")].map((image) =>
            [image.getAttribute("alt"), image.getAttribute("src") || ""])"""
    )
    checked = [(source[:60], alt_problem(alt, source)) for alt, source in pictures]
    return [f"image {source} {problem}" for source, problem in checked if problem]


def mathematics(page: Page) -> list[str]:
    """Formulas that MathJax left as TeX, or that it could not read."""
    return page.evaluate(
        """() => [
            ...[...document.querySelectorAll(".math")]
                .filter((formula) => !formula.querySelector("mjx-container"))
                .map((formula) => "not typeset: " + formula.textContent.slice(0, 80)),
            ...[...document.querySelectorAll("mjx-merror, [data-mjx-error]")]
                .map((error) => "error: " + (error.dataset.mjxError
                    || error.textContent).slice(0, 80)),
        ]"""
    )


def set_theme(page: Page, theme: str) -> None:
    """Switch as the theme's own button does, and let two frames pass."""
    page.evaluate(
        """async (theme) => {
            document.documentElement.dataset.mode = theme;
            document.documentElement.dataset.theme = theme;
            for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
        }""",
        theme,
    )


def open_everything(page: Page) -> None:
    """Unfold details, dropdown admonitions and the menus of the header."""
    page.evaluate(
        """() => {
            document.querySelectorAll("details").forEach((d) => { d.open = true; });
            document.querySelectorAll(".toggle-hidden .toggle-button")
                .forEach((button) => button.click());
            document.querySelectorAll(".dropdown-menu")
                .forEach((menu) => menu.classList.add("show"));
        }"""
    )


def narrow(page: Page, width: int, height: int) -> None:
    """Narrow the window, and wait for the theme, which looks again after 300 ms."""
    if page.viewport_size != {"width": width, "height": height}:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(700)


def offer_the_way_back(page: Page) -> None:
    """Scroll down and up a little: the theme then shows its button "Back to top"."""
    page.evaluate(
        """async () => {
            for (const y of [1000, 800]) {
                window.scrollTo(0, y);
                await new Promise((done) => setTimeout(done, 100));
            }
        }"""
    )


def edges(page: Page) -> list[str]:
    """What is printed and doesn't stand right below its code, as wide as that."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".cell_input + .cell_output")].flatMap(
            (output) => {
                const code = output.previousElementSibling.querySelector("pre");
                const prints = output.querySelector(":scope > .output.stream pre");
                if (!code || !prints) return [];
                const [above, below] =
                    [code, prints].map((e) => e.getBoundingClientRect());
                const off = ["left", "right"].map((side) => below[side] - above[side]);
                return above.height && off.some((by) => Math.abs(by) > 1)
                    ? [`printed text is ${off.join(" and ")} px off its code`] : [];
            }).slice(0, 3)"""
    )


def sideways(page: Page) -> list[str]:
    """What is wider than the window and neither wraps nor scrolls in its own box."""
    return page.evaluate(
        """() => {
            const wide = [], root = document.documentElement;
            if (root.scrollWidth > root.clientWidth)
                wide.push(`the page is ${root.scrollWidth} px wide in a window of `
                    + `${root.clientWidth} px`);
            const boxed = (element) => {
                for (let box = element.parentElement; box; box = box.parentElement)
                    if (["auto", "scroll"].includes(getComputedStyle(box).overflowX))
                        return true;
                return false;
            };
            for (const element of document.querySelectorAll("main article *")) {
                const {right, width, height} = element.getBoundingClientRect();
                const style = getComputedStyle(element);
                // text for screen readers only is clipped to a pixel
                const shown = width > 1 && height > 1 && style.visibility === "visible"
                    && style.clip === "auto" && style.clipPath === "none"
                    && !element.closest("mjx-assistive-mml");
                if (shown && right > root.clientWidth + 1 && !boxed(element))
                    wide.push(`${Math.round(right)} px: `
                        + element.outerHTML.slice(0, 120));
            }
            return wide.slice(0, 10);
        }"""
    )


def widget_manager(visit: Visit) -> list[str]:
    """A megabyte of scripts, to be loaded by the pages that hold widgets alone."""
    view = 'script[type="application/vnd.jupyter.widget-view+json"]'
    expected = min(visit.page.locator(view).count(), 1)
    loaded = [url for url in visit.loaded if "/html-manager/embed.js" in url]
    files = ((url, url.rpartition("/")[2]) for url in visit.loaded)
    other = [url for url, name in files if "require" in name and ".html" not in name]
    if len(loaded) == expected and not other:
        return []
    return [f"expected {expected} widget manager(s), loaded {loaded + other}"]


def needs_a_server(visit: Visit) -> list[str]:
    """What a browser refuses to a page opened from the disk (file://)."""
    modules = visit.page.locator("script[type=module]")
    found = [f"fetches {url}" for url in visit.fetched]
    return found + ["a script of the type module"] * modules.count()


def skip_link(page: Page) -> list[str]:
    """The first stop of the Tab key must be seen, and lead past menu and buttons."""
    page.locator("body").press("Tab")
    link = page.locator(":focus")
    if not link.count() or link.inner_text() != "Skip to main content":
        return ["the first stop of the Tab key is no skip link"]
    box = link.bounding_box()
    if box["y"] < 0 or box["height"] < 10 or box["width"] < 50:
        return [f"the skip link is not to be seen: {box}"]
    page.keyboard.press("Enter")
    try:  # the address follows a moment later on a busy machine
        page.wait_for_function("location.hash === '#main-content'", timeout=5_000)
    except TimeoutError:
        return ["the skip link does not lead to #main-content"]
    return []


FOCUS = """() => {
    const kinds = new Map();
    const stops = "a[href], button, input, select, textarea, summary, [tabindex]";
    for (const stop of document.querySelectorAll(stops)) {
        if (stop.tabIndex < 0 || stop.disabled) continue;
        if (!stop.checkVisibility({visibilityProperty: true})) continue;
        const {tagName, type, parentElement} = stop;
        const looks = ["class", "style", "role"].map((name) => stop.getAttribute(name));
        const kind = JSON.stringify([tagName, type, looks, parentElement.className]);
        if (!kinds.has(kind)) kinds.set(kind, stop);
    }
    const hidden = (stop) => {
        stop.focus({preventScroll: true});
        const {outlineStyle, outlineWidth, boxShadow} = getComputedStyle(stop);
        const outlined = outlineStyle !== "none" && parseFloat(outlineWidth) > 0;
        return document.activeElement !== stop || !(outlined || boxShadow !== "none");
    };
    const wrong = [...kinds.values()].filter(hidden);
    document.activeElement.blur();
    return wrong.map((stop) => stop.outerHTML.slice(0, 120));
}"""


def focus(page: Page) -> list[str]:
    """Give the focus to one thing of each kind; report those that do not show it."""
    page.keyboard.press("Tab")  # from here on the focus is a keyboard's, and is shown
    hidden = page.evaluate(FOCUS)
    # a button in focus explains itself in a bubble; wait for it to go
    page.mouse.move(0, 0)
    page.wait_for_function("!document.querySelector('.tooltip')")
    return hidden


FRAMES = """(slider) => [...slider.querySelectorAll(".annotated-frame")]
    .flatMap((frame, number) =>
        frame.checkVisibility({ visibilityProperty: true }) ? [number] : [])"""


CHOSEN = """(box) => [...box.querySelectorAll("[data-name]")].map((input) =>
    input.tagName === "SELECT" ? [input.selectedIndex, input.options.length]
    : input.type === "checkbox" ? [Number(input.checked), 2]
    : [Number(input.value), Number(input.max) + 1])"""


def slider(page: Page, number: int) -> list[str]:
    """Move the controls of the n-th box of frames by keyboard, one also by mouse."""
    box = page.locator(".annotated-frames").nth(number)
    controls, wrong = box.locator("[data-name]"), []
    frames = box.locator(".annotated-frame").count()
    if frames < 2 or frames != prod(size for _, size in box.evaluate(CHOSEN)):
        wrong.append(f"{frames} frames for controls {box.evaluate(CHOSEN)}")
    for n in range(controls.count()):
        control = controls.nth(n)
        if not control.evaluate("(input) => input.labels.length"):
            wrong.append(f"control {n} has no label")
        control.scroll_into_view_if_needed()
        control.focus()
        last = box.evaluate(CHOSEN)[n][1] - 1
        kind = control.evaluate("(input) => input.type")
        right = "ArrowRight" if kind == "range" else "ArrowDown"
        moves = [("Home", 0), (right, min(1, last)), ("End", last)]
        if kind == "checkbox":
            on = control.is_checked()
            moves = [("Space", int(not on)), ("Space", int(on))]
        for key, wanted in moves:
            page.keyboard.press(key)
            at = box.evaluate(CHOSEN)
            index = 0
            for place, size in at:  # as itertools.product counts
                index = index * size + place
            if at[n][0] != wanted or box.evaluate(FRAMES) != [index]:
                wrong.append(
                    f"after the key {key} control {n} of {at} shows frames "
                    f"{box.evaluate(FRAMES)}, expected [{index}]"
                )
    if box.locator("input[type=range]").count():
        control = box.locator("input[type=range]").first
        place = control.bounding_box()
        page.mouse.click(place["x"] + 2, place["y"] + place["height"] / 2)
        if control.input_value() != "0":
            wrong.append("a click at the left end doesn't move the slider there")
    wrong += box.evaluate(
        """(slider) => [...slider.querySelectorAll(".annotated-frame img")]
            .filter((image) => !image.complete || !image.naturalWidth)
            .map((image) => "picture does not load: " + image.alt)"""
    )
    return wrong


CHECKS = """(explorer) => {
    const close = (a, b) => typeof b === "number" && typeof a === "number"
        ? Math.abs(a - b) <= 1e-4 * Math.max(1, Math.abs(b))
        : Array.isArray(b) ? Array.isArray(a) && a.length === b.length
            && b.every((item, i) => close(a[i], item))
        : b !== null && typeof b === "object" ? a !== null && typeof a === "object"
            && Object.keys(b).every((key) => close(a[key], b[key]))
        : a === b;
    if (explorer.dataset.ready !== "true") return ["is not ready"];
    const text = explorer.querySelector("script.annotated-explorer-checks");
    const checks = text ? JSON.parse(text.textContent) : [];
    if (!checks.length) return ["holds no checks"];
    const wrong = [];
    for (const {state, values} of checks) {
        if (!Object.keys(values).length) wrong.push("a check without values");
        explorer.explorer.set(state);
        const found = explorer.explorer.values();
        for (const [key, expected] of Object.entries(values))
            if (!close(found[key], expected))
                wrong.push(`${JSON.stringify(state)}: ${key} is `
                    + `${JSON.stringify(found[key])}, Python says `
                    + JSON.stringify(expected));
    }
    return wrong;
}"""


def explorer_checks(page: Page, number: int) -> list[str]:
    """Compare the n-th explorer's values with those that Python computed."""
    return page.locator(".annotated-explorer").nth(number).evaluate(CHECKS)


# a cell of a grid is reached by the arrow keys, from the one that Tab stops at
CONTROLS = (
    ":is(input:not([type=hidden]), select, textarea, button, [tabindex])"
    ":not([tabindex='-1'])"
)
KEYS = {
    "range": ["ArrowRight", "ArrowLeft"],
    "number": ["ArrowUp", "ArrowDown"],
    "select-one": ["ArrowDown", "ArrowUp"],
    "radio": ["ArrowRight", "ArrowLeft"],
    "checkbox": ["Space"],
    "text": ["End", "a"],
    "search": ["End", "a"],
    "textarea": ["End", "a"],
}
STATE = """(explorer) => JSON.stringify(
    [explorer.explorer.state, explorer.explorer.values()])"""


def explorer_keyboard(page: Page, number: int) -> list[str]:
    """Use every control of the n-th explorer by keyboard; each must change it."""
    explorer = page.locator(".annotated-explorer").nth(number)
    if explorer.get_attribute("data-ready") != "true":
        return ["is not ready"]
    controls = explorer.locator(CONTROLS)
    wrong, moved = [], False
    for index in range(controls.count()):
        control = controls.nth(index)
        if not (control.is_visible() and control.is_enabled()):
            continue
        kind = control.evaluate("(control) => control.type || 'custom'")
        before = explorer.evaluate(STATE)
        control.focus()
        if not control.evaluate("(control) => control === document.activeElement"):
            wrong.append(f"control {index} ({kind}) takes no focus")
            continue
        changed = False
        # a button may be for an end that is already reached: it need not change much
        for key in KEYS.get(kind, ["Enter", "ArrowRight", "Space"]):
            page.keyboard.press(key)
            changed = changed or explorer.evaluate(STATE) != before
        moved = moved or changed
        if not changed and kind in KEYS:
            wrong.append(f"control {index} ({kind}) changes nothing by keyboard")
    if not moved:
        wrong.append("nothing in it can be changed by keyboard")
    return wrong
