"""Where one is in the book: cards of its chapters, and a strip below each title.

The directive ``{cards}`` shows the chapters that it names, `2: what it is` a line,
each with a picture. Below the title of a chapter's pages, a strip of the numbers of all
chapters marks that one.
"""

import math
import re
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import yaml
from docutils import nodes
from docutils.parsers.rst import Directive
from jinja2 import Environment

WIDTH, HEIGHT = 200, 92  # of a picture
LETTER = 8.4  # of code, 14 pixels high, is as wide
SOLID = ' style="fill:var(--at-paper);stroke-opacity:.8"'


def box(x, y, width, height, weight=None, style=""):
    """A rectangle: an attention weight's, or empty."""
    fill = "none" if weight is None else "var(--at-weight)"
    shown = "" if weight is None else f' fill-opacity="{weight}"'
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="2" fill="{fill}"'
        f'{shown} stroke="currentColor" stroke-opacity=".25"{style}/>'
    )


def text(x, y, words, style=""):
    return f'<text x="{x}" y="{y}"{style}>{words}</text>'


def path(d, colour="currentColor", width=1.5, opacity=1.0):
    return (
        f'<path d="{d}" fill="none" stroke="{colour}" stroke-width="{width}" '
        f'stroke-opacity="{opacity}"/>'
    )


def look(x, to, y, weight):
    """An arc from one place of a line to another, as thick as it looks there."""
    high = y - 6 - min(46, abs(x - to) * 0.42)
    return path(f"M{x} {y}Q{(x + to) / 2} {high} {to} {y}", "var(--at-weight)",
                0.8 + 4 * weight, 0.35 + 0.6 * weight)  # fmt: skip


def letters(x, y, words, weights):
    """Letters on squares that are as dark as the weights."""
    return "".join(
        box(x + LETTER * 1.5 * i, y - 14, LETTER * 1.5, 19, weight)
        + text(x + LETTER * 1.5 * (i + 0.5), y, letter, ' text-anchor="middle"')
        for i, (letter, weight) in enumerate(zip(words, weights, strict=True))
    )


def matrix(x, y, size, rows, hidden=False):
    return "".join(
        box(x + size * j, y + size * i, size, size, weight)
        if weight is not None
        else box(x + size * j, y + size * i, size, size)
        + (path(f"M{x + size * j} {y + size * (i + 1)}l{size} {-size}", opacity=0.35)
           if hidden else "")
        for i, row in enumerate(rows)
        for j, weight in enumerate(row)
    )  # fmt: skip


def curve(points):
    return "M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in points)


def dates():
    seen = [0, 0, 0, 0.25, 0.75, 0.55, 0.2, 0.05, 0, 0, 0, 0, 0]
    return (
        letters(18, 30, "16 lipca 2024", seen)
        + path("M78 38V64", "var(--at-weight)", 3, 0.6)
        + text(28, 80, "2024-<tspan font-weight='700'>07</tspan>")
    )


def words():
    places = {"Anna": 26, "told": 70, "Eva": 109, "she": 142, "won": 178}
    weights = {"Anna": 0.9, "told": 0.15, "Eva": 0.5}
    return "".join(
        text(x, 80, word, ' text-anchor="middle"') for word, x in places.items()
    ) + "".join(look(142, places[word], 62, weight) for word, weight in weights.items())


def heads():
    n = range(5)
    kinds = (
        lambda i, j: float(j == max(i - 1, 0)),
        lambda i, j: 0.9 if j == 0 else 0.05,
        lambda i, j: 0.8 if abs(i - j) == 2 else 0.1,
        lambda i, j: 0.2,
    )
    return "".join(
        matrix(4 + 49 * h, 24, 8.6, [[kind(i, j) for j in n] for i in n])
        for h, kind in enumerate(kinds)
    )


def mask():
    rows = [
        [round(1 / (1 + i), 2) if j <= i else None for j in range(6)] for i in range(6)
    ]
    return matrix(58, 6, 13.5, rows, hidden=True)


def clocks():
    drawn = ""
    for i in range(4):
        x, angle = 27 + 49 * i, 2 * math.pi * 7 / 4 ** (i + 0.6)
        drawn += f'<circle cx="{x}" cy="46" r="20" fill="none" stroke="currentColor"/>'
        tip = f"{x + 17 * math.sin(angle):.1f} {46 - 17 * math.cos(angle):.1f}"
        drawn += path(f"M{x} 46L{tip}", "var(--at-this)", 3)
    return drawn


def stacks():
    encoder = "feed-forward", "attention"
    decoder = "feed-forward", "cross-attention", "attention"
    drawn = path("M48 90V3H100V46H106", width=3, opacity=0.3)
    drawn += path("M152 90V3", width=3, opacity=0.3)
    for x, names in ((4, encoder), (108, decoder)):
        for i, name in enumerate(names):
            y = 10 + 56 / (len(names) - 1) * i
            drawn += box(x, y, 88, 20, style=SOLID)
            drawn += text(x + 44, y + 14, name, ' text-anchor="middle" class="small"')
    return drawn


def losses():
    steps = range(0, 181, 6)
    falls = [(10 + x, 12 + 66 * (1 - math.exp(-x / 38))) for x in steps]
    stuck = [(10 + x, 12 + 26 * (1 - math.exp(-x / 15))) for x in steps]
    return (
        path("M10 4V84H192", opacity=0.35)
        + path(curve(stuck), "var(--at-other)", 2.5)
        + path(curve(falls), "var(--at-this)", 3)
    )


def copying():
    drawn = ""
    for row, word in enumerate(("aaaaaa", "fadace", "facade")):
        for i, letter in enumerate(word):
            right = letter == "facade"[i]
            colour = "var(--at-right)" if right else "var(--at-muted)"
            style = f' text-anchor="middle" style="fill:{colour}"'
            drawn += text(40 + 24 * i, 24 + 27 * row, letter, style)
    return drawn


def saying():
    seen = [0.75, 0.3, 0, 0, 0.1, 0, 0]
    return (
        letters(38, 30, "thought", seen)
        + path("M50 38V64", "var(--at-weight)", 3, 0.6)
        + text(38, 80, "<tspan font-weight='700'>TH</tspan> AO T")
    )


def sorting():
    drawn = matrix(8, 14, 14, ((0.2,), (0.9,), (0.1,), (0.6,), (0.3,)))
    for i, (mark, chance) in enumerate((("A", 0.2), ("B", 0.9), ("C", 0.6))):
        y = 24 + 24 * i
        drawn += path(f"M28 49L88 {y}", "var(--at-weight)", 2.5, chance)
        drawn += text(94, y + 5, mark) + box(112, y - 7, 70 * chance, 13, 0.85)
    return drawn


def following():
    chances = (("n", 0.82), ("i", 0.12), ("t", 0.05))
    return text(8, 20, "for i in ra_") + "".join(
        text(92, 44 + 20 * i, letter)
        + box(106, 33 + 20 * i, 84 * chance, 13, 0.85)
        for i, (letter, chance) in enumerate(chances)
    )  # fmt: skip


def segments():
    drawn = ""
    for i in range(12):
        x, old = 8 + 15.5 * i, i < 6
        drawn += box(x, 66, 13, 13, 0.25 if old else 0.8)
        drawn += box(x, 14, 13, 13, 0.25 if old else 0.8)
    drawn += "".join(
        path(f"M{8 + 15.5 * 9 + 6.5} 27L{8 + 15.5 * j + 6.5} 65", "var(--at-weight)",
             1.6, 0.25 + 0.06 * j)
        for j in range(3, 10)
    )  # fmt: skip
    return drawn + path("M99.5 6V86", opacity=0.7)


def wheel():
    drawn = '<circle cx="60" cy="46" r="40" fill="none" stroke="currentColor"/>'
    for i in range(4):
        a = math.pi * (i / 4 + 0.06)
        u, v = 40 * math.cos(a), 40 * math.sin(a)
        drawn += path(f"M{60 + u:.1f} {46 + v:.1f}L{60 - u:.1f} {46 - v:.1f}",
                      opacity=0.35)  # fmt: skip
    for i, angle in enumerate((12, 30, 100, 118, 131, 205, 290, 305)):
        a = math.radians(angle)
        shade = (0.25, 1, 0.5, 0.8)[int((angle - 11) // 45) % 4]
        x, y = 60 + 40 * math.cos(a), 46 + 40 * math.sin(a)
        drawn += (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" stroke="currentColor" '
                  f'fill="var(--at-weight)" fill-opacity="{shade}"/>')  # fmt: skip
        drawn += box(118 + 18 * (i % 4), 24 + 26 * (i // 4), 15, 15, shade)
    return drawn


def streams():
    boxes = ((58, 12, "F"), (128, 58, "G"))
    drawn = path("M6 22H194", width=2) + path("M6 68H194", width=2)
    drawn += path("M36 68L58 36M82 30L104 64", "var(--at-this)", 2.5)
    drawn += path("M108 22L128 60M152 64L174 26", "var(--at-this)", 2.5)
    for x, y, name in boxes:
        drawn += box(x, y, 24, 22, style=SOLID)
        drawn += text(x + 12, y + 16, name, ' text-anchor="middle"')
    return drawn


def gaps():
    shown = "for", "i", "in", "", "(n)"
    drawn, x = "", 6
    for token in shown:
        wide = LETTER * len(token) + 10 if token else 40
        drawn += box(x, 34, wide, 24, 0.75 if not token else 0.1)
        drawn += text(x + wide / 2, 51, token or "?", ' text-anchor="middle"')
        x += wide + 2
    return drawn + text(6, 82, "range? reversed?", ' class="small"')


def pieces():
    drawn, x = "", 4
    for i, (token, number) in enumerate(
        (("un", 403), ("h", 71), ("app", 1324), ("ily", 813))
    ):
        wide = max(LETTER * len(token), 8 * len(str(number))) + 8
        drawn += box(x, 24, wide, 24, 0.1 + 0.2 * (i % 2))
        drawn += text(x + wide / 2, 41, token, ' text-anchor="middle"')
        drawn += text(x + wide / 2, 68, number, ' text-anchor="middle" class="small"')
        x += wide + 4
    return drawn


def jumps():
    rows = [
        [0.85 if 0 <= i - j < 3 or (i >= j and (i - j) % 3 == 0) else None
         for j in range(9)]
        for i in range(9)
    ]  # fmt: skip
    drawn = matrix(12, 5, 9.2, rows)
    for i in range(9):
        drawn += box(112, 5 + 9.2 * i, 7, 7, 0.85 if i in (2, 5, 6, 7, 8) else None)
    for i in (2, 5):
        drawn += path(f"M121 {8.5 + 9.2 * i}Q{190 - 9 * i} {20 + 7 * i} 121 82",
                      "var(--at-weight)", 2, 0.75)  # fmt: skip
    return drawn


def halves():
    drawn = ""
    for y, name in ((8, "half a batch"), (56, "the other half")):
        drawn += box(8, y, 76, 28, 0.25) + text(14, y + 19, "model")
        drawn += text(94, y + 19, name, ' class="small"')
    return drawn + path("M30 36V56M46 56V36", "var(--at-this)", 3)


def rounds():
    """A word in three rounds; what is doubted is hidden and written again."""
    drawn = ""
    for i, word in enumerate(("      ", "su d y", "sunday")):
        for j, letter in enumerate(word):
            x, y = 28 + 24 * j, 4 + 29 * i
            drawn += box(x, y, 22, 24, 0.75 if letter == " " else 0.1)
            drawn += text(x + 11, y + 17, letter.strip(), ' text-anchor="middle"')
    return drawn


def leaks():
    """Who sees whom, with what should not be seen, and a loss that falls too far."""
    size, n = 9.2, range(9)
    drawn = matrix(12, 5, size, [[0.5 if j <= i else None for j in n] for i in n])
    for i in n:
        for j in range(i + 1, 3 * (i // 3 + 1)):
            red = ' style="fill:var(--at-wrong)"'
            drawn += box(12 + size * j, 5 + size * i, size, size, 1, red)
    drawn += path("M112 40H192", "var(--at-other)")
    fall = "M112 12C126 36 134 40 146 42S158 78 192 80"
    return drawn + path(fall, "var(--at-wrong)", 3)


PICTURES = {
    1: dates, 2: words, 3: heads, 4: mask, 5: clocks, 6: stacks, 7: losses,
    8: copying, 9: saying, 10: sorting, 11: following, 12: segments, 13: wheel,
    14: streams, 15: gaps, 16: pieces, 17: jumps, 18: halves,
    19: rounds, 20: leaks,
}  # fmt: skip

CARDS = """
<nav class="annotated-cards" aria-label="{{ label }}">
{%- for card in cards %}
<a href="{{ card.link }}">
<svg viewBox="0 0 {{ width }} {{ height }}" aria-hidden="true">{{ card.picture | safe }}
</svg>
<b>{{ card.title }}</b> <span>{{ card.about }}</span></a>
{%- endfor %}
</nav>
"""
STRIP = """
<nav class="annotated-strip" aria-label="Chapters">
{%- for number, link, name in chapters %}
<a href="{{ link }}" title="{{ name }}" aria-label="{{ number }} {{ name }}"
{%- if number == here %} aria-current="true"{% endif %}>{{ number }}</a>
{%- endfor %}</nav>
"""
_environment = Environment(autoescape=True)
_cards, _strip = (_environment.from_string(text.strip()) for text in (CARDS, STRIP))


def chapter_of(docname: str) -> int | None:
    """The number of the chapter that a page belongs to: of `notebooks/02b_…` too."""
    path = PurePosixPath(docname)
    number = path.name[:2]
    inside = path.parent.name in ("notebooks", "exercises")
    return int(number) if inside and number.isdigit() else None


def chapters(app, docname: str) -> dict[int, tuple[str, str]]:
    """The link from a page to each main chapter that is there, and its title."""
    pages = {
        chapter_of(name): name
        for name in sorted(app.env.found_docs, reverse=True)
        if name.startswith("notebooks/") and chapter_of(name)
    }
    return {
        number: (
            app.builder.get_relative_uri(docname, pages[number]) or "#",
            re.sub(r"^\d+\. ", "", app.env.titles[pages[number]].astext()),
        )
        for number in sorted(pages)
    }


def cards_html(app, docname: str, label: str, about: dict[int, str]) -> str:
    """Cards of chapters, by number: what each is ``about``."""
    known = chapters(app, docname)
    return _cards.render(
        cards=[
            {
                "link": known[n][0],
                "title": f"{n}. {known[n][1]}",
                "about": sentence,
                "picture": PICTURES[n](),
            }
            for n, sentence in about.items()
        ],
        label=label, width=WIDTH, height=HEIGHT,
    )  # fmt: skip


def strip_html(app, docname: str, here: int) -> str:
    """The strip of all chapters, of which chapter ``here`` is marked."""
    known = chapters(app, docname)
    return _strip.render(chapters=[(n, *known[n]) for n in known], here=here)


class cards_node(nodes.General, nodes.Element):
    """Where cards will stand, once all pages are known."""


class CardsDirective(Directive):
    """Cards of chapters: ``number: what it is about`` a line, under a label."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self):
        about = yaml.safe_load("\n".join(self.content))
        return [cards_node(label=self.arguments[0], about=about)]


def put_in(app, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html":
        return
    for node in list(doctree.findall(cards_node)):
        html = cards_html(app, docname, node["label"], node["about"])
        node.replace_self(nodes.raw("", html, format="html"))
    here = chapter_of(docname)
    if here and docname.startswith("notebooks/"):
        title = next(iter(doctree.findall(nodes.title)), None)
        if title is not None:
            small = nodes.raw("", strip_html(app, docname, here), format="html")
            title.parent.insert(title.parent.index(title) + 1, small)


def also_written(app, env) -> Iterable[str]:
    """Pages to write although their sources are as they were: all, after a new title.

    The first page always, since Sphinx copies styles and scripts with a page.
    """
    titles = {name: title.astext() for name, title in env.titles.items()}
    known, env.titles_written = getattr(env, "titles_written", None), titles
    return [app.config.root_doc] if titles == known else env.found_docs


def version() -> int:
    """A number that changes with the extensions: then all pages are read again."""
    root = Path(__file__).parents[2]
    files = [*root.glob("book/_ext/*.py"), *root.glob("tools/*.py")]
    return zlib.crc32(b"".join(file.read_bytes() for file in sorted(files)))


def setup(app):
    app.add_node(cards_node)
    app.add_directive("cards", CardsDirective)
    app.connect("doctree-resolved", put_in)
    app.connect("env-updated", also_written)
    safe = {"parallel_read_safe": True, "parallel_write_safe": True}
    return {"env_version": version(), **safe}
