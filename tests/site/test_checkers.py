"""The checks of a page must be able to fail: each is shown a page with its fault."""

import re
from collections import defaultdict

import matplotlib.pyplot as plt
import pytest

from annotated.page.frames import Choice, Slider, Text, explorer
from annotated.page.play import play
from book._ext.pages import SHARED
from tests.site import checkers
from tests.site.browser import built_pages, served, visiting

pytestmark = pytest.mark.covers()


def bar(height):
    figure, axes = plt.subplots(figsize=(1, 4 - height))
    axes.bar([0], [height])
    axes.set_xticks([])
    return figure


SLIDER = play(
    bar, label="height", alt=lambda height: f"A bar of {height}", height=[1, 2, 3]
).frames_html()
EXPLORER = explorer(
    """const x = state.x, row = [x, x * x];
    const svg = view.svg(40, 40, `the square of ${x}`);
    view.add(svg, "rect", { width: x, height: x, fill: "currentColor" });
    view.add(svg, "text", { x: 5, y: 35, text: x });
    return { values: { square: x * x, row, parity: x % 2 ? "odd" : "even" }, says: "" };
    """,
    {},
    [Slider("x", "side", [2, 3]), Choice("c", "sign", "+-"), Text("t", "name", "")],
    label="Squares",
    checks=[({"x": 3}, {"square": 9.00001, "row": [3, 9], "parity": "odd"})],
)
CLIP = re.search('<clipPath id="[^"]+"', SLIDER)[0]
DOT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)
SOUND = f"""<!doctype html><html lang="en"><head>
<meta charset="utf-8"><title>A page</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>
  body {{ background: var(--at-paper); color: var(--at-ink) }}
  a {{ color: currentcolor }}
  .note {{ background: #fff; color: #111 }}
  [data-theme=dark] .note {{ background: #111; color: #eee }}
  @media (max-width: 400px) {{ .note {{ color: #222 }} }}
</style></head><body>
<a href="#main-content">Skip to main content</a>
<main id="main-content"><article><h1>A page</h1>
<p class="note">A note with <a href="#there" style="color: inherit">a link</a></p>
<span class="math"><mjx-container>x</mjx-container></span>
<img alt="A dot of one pixel" src="data:image/png;base64,{DOT}">
<div id="there" style="width: 300px; overflow: auto">wide</div>
{SLIDER}{SHARED.sub("", EXPLORER.text)}
<div class="cell_input"><pre>print(1)</pre></div>
<div class="cell_output"><div class="output stream"><pre>1</pre></div></div>
</article></main></body></html>"""
ELSEWHERE = "http://192.0.2.1/x"  # an address kept for examples
END = "</body>"

# check, what it says, and the fault: what stands in the sound page, what instead
FAULTS = [
    ("heading", "no <h1>", "<h1>", "<h1 hidden>"),
    ("images", "has no alt text", 'alt="A dot of one pixel"', 'alt=""'),
    ("images", "a file name", "A dot of one pixel", "dot.png"),
    ("formulas", "not typeset", "<mjx-container>x</mjx-container>", r"\(x\)"),
    ("formulas", "error: Bad", ">x<", '>x<mjx-merror data-mjx-error="Bad"/><'),
    ("widgets", "loaded ['http", END, '<script src="html-manager/embed.js"></script>'),
    ("skip link", "no skip link", "<a href", "<a href='#'>Home</a><a href"),
    ("skip link", "to be seen", "<a href", "<a style='position:fixed;top:-9em' href"),
    ("skip link", "does not lead", 'href="#main-content"', 'href="#"'),
    ("axe, light", "label:", '<label for="play-', '<b id="'),
    ("axe, dark", "color-contrast:", "color: #eee", "color: #444"),
    ("axe, phone", "color-contrast:", "color: #222", "color: #ccc"),
    ("drawings", "height, height 0: none of", CLIP, f'{CLIP} visibility="hidden"'),
    ("drawings", "is elsewhere", CLIP, "<clipPath"),
    ("drawings", "x 1: none of 1 marks", 'height: x, fill: "',
     'height: x, fill: x > 2 ? "none" : "'),
    ("drawings", "x 0: nothing is drawn", "const svg = view.svg(40",
     "if (x < 3) return {}; const svg = view.svg(40"),
    ("drawings", "it holds NaN", "width: x,", "width: NaN,"),
    ("drawings", "9.0 px", "text: x }", "text: x, style: 'font-size: 9px' }"),
    ("drawings", "8 px outside", "y: 35", "y: 45"),
    ("drawings", "says too little", "the square of", "square"),
    ("drawings", "more than once", "<h1>", '<h1 id="there">'),
    ("drawings", "2 drawings are shown", "<figure class=",
     '<figure style="visibility: visible" class='),
    ("edges", "-9 and -9 px off", "<pre>1", '<pre style="margin: 0 9px 0 -9px">1'),
    ("focus", 'style="outline: none', "color: inherit", "outline: none"),
    ("slider 0", "shows frames", "frame.hidden = i !==", "i !=="),
    ("slider 0", "shows frames", "i !== index", "i < index"),
    ("slider 0", "shows frames", 'type="range" min', 'type="range" disabled min'),
    ("slider 0", "a click", 'type="range" min',
     'type="range" style="pointer-events: none" min'),
    ("slider 0", "3 frames for controls", 'max="2"', 'max="1"'),
    ("slider 0", "no label", '<label for="play-', '<b id="'),
    ("explorer 0, numbers", "square is 9, Python says 9.01", "9.00001", "9.01"),
    ("explorer 0, numbers", "parity is", '"parity": "odd"', '"parity": "Odd"'),
    ("explorer 0, numbers", "row is", "row = [x, x * x]", "row = [x]"),
    ("explorer 0, numbers", "cube is undefined", '"square": 9', '"cube": 9'),
    ("explorer 0, numbers", "holds no checks", "explorer-checks", "explorer-nothing"),
    ("explorer 0, numbers", "without values", '"values": {', '"values": {}, "no": {'),
    ("explorer 0, keyboard", "no focus", "<select", '<select onfocus="this.blur()"'),
    ("explorer 0, keyboard", "changes nothing", '"input", update', '"wheel", update'),
    ("drawings", "Squares: its height", '"even" }, says: ""',
     '"even" }, says: "said ".repeat(x ** 6)'),
    ("drawings", "height: its height", "block !important; visibility: hidden", "none"),
    ("drawings on a phone", "Squares: its height", "svg(40, 40,",
     "svg(40, view.width() < 400 ? 40 * x : 40,"),
    ("sideways on a phone", "px wide", "width: 300px", "width: 900px"),
    ("sideways on a phone", "900 px", "width: 300px; overflow: auto",
     "width: 900px; position: absolute; left: 0"),
    ("drawings on a phone", "9.0 px", "text: x }",
     "text: x, style: view.width() < 400 && 'font-size: 9px' }"),
    ("other hosts", ELSEWHERE, END, f'<script src="{ELSEWHERE}"></script>'),
    ("other hosts", ELSEWHERE, END, f'<script>fetch("{ELSEWHERE}")</script>'),
    ("other hosts", "/outside.js", END, '<script src="/outside.js"></script>'),
    ("requests that fail", "404", END, '<script src="missing.js"></script>'),
    ("errors", "uncaught", END, '<script>throw new Error("broken")</script>'),
    ("errors", "console", END, '<script>console.error("broken")</script>'),
    ("errors", "e not ready", END, '<p class="annotated-explorer" id="e"></p>'),
    ("from the disk", "fetches", END, '<script>fetch("page.html")</script>'),
    ("from the disk", "module", END, '<script type="module"></script>'),
]  # fmt: skip


def broken_pages() -> list[list[tuple[str, str, str, str]]]:
    """The faults on as few pages as hold no two of one check, or in one place."""
    pages = []
    for fault in FAULTS:
        for page in pages:
            checks, places = {one[0] for one in page}, {one[2] for one in page} - {END}
            if fault[0] not in checks and fault[2] not in places:
                page.append(fault)
                break
        else:
            pages.append([fault])
    return pages


@pytest.fixture
def findings(browser, tmp_path, monkeypatch):
    """All that is found wrong with a page, given as HTML: check -> faults."""
    monkeypatch.setattr("tests.site.browser.WAIT_MS", 500)

    def visited(html: str) -> dict[str, str]:
        (tmp_path / "page.html").write_text(html, encoding="utf-8")
        with served(tmp_path) as base, visiting(browser, base) as visit:
            found = [*checkers.first_sight(visit, "page.html")]
            found += checkers.in_use(visit, "page.html")
        several = defaultdict(list)  # some are tried at both visits
        for check, wrong in found:
            several[check] += wrong
        return {check: "; ".join(wrong) for check, wrong in several.items()}

    return visited


def test_nothing_is_wrong_with_a_sound_page(findings):
    found = findings(SOUND)
    assert not any(found.values())
    assert {check for check, *_ in FAULTS} == set(found)


@pytest.mark.parametrize("faults", broken_pages())
def test_faults_are_found(findings, faults):
    page = SOUND
    for _, _, good, bad in faults:
        assert good in page
        page = page.replace(good, bad + good if good == END else bad, 1)
    found = findings(page)
    missed = [fault for fault in faults if fault[1] not in found[fault[0]]]
    assert missed == []


def test_visit_from_the_disk_notices_the_same(browser, tmp_path):
    (tmp_path / "page.html").write_text(f'<script src="{ELSEWHERE}"></script>')
    with visiting(browser, tmp_path.as_uri() + "/") as visit:
        visit.open("page.html")
        assert visit.blocked == [ELSEWHERE]


def test_built_pages_leaves_out_templates_and_the_redirect(tmp_path):
    for name in ["index.html", "search.html", "book/a.html", "_static/macros.html"]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert built_pages(tmp_path) == ["book/a.html", "search.html"]
