"""The map of the book: the Transformer and what grew out of it, each part a link.

The directive ``{map}`` draws it in two halves: on a phone one stands above the other; a
chapter that is not there yet is drawn and not linked. Each chapter has a strip of all
chapters below its title, in which its own is open and says what it is about.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath

from docutils import nodes
from docutils.parsers.rst import Directive
from jinja2 import Environment

HEIGHT = 360
WIDTHS = 340, 262  # of the two drawings


@dataclass(frozen=True)
class Part:
    """A box of the map: its chapter, what stands in it, and where it is."""

    chapter: int
    label: str
    x: int
    y: int
    width: int = 135
    height: int = 36

    @property
    def lines(self) -> list[str]:
        return self.label.split("\n")


TRANSFORMER = [
    Part(1, "recurrent networks\nwith attention", 16, 30, 135, 50),
    # from the inputs upwards
    Part(5, "embeddings and positions", 16, 284, 285),
    Part(2, "self-attention", 16, 230),
    Part(4, "masked self-attention", 166, 230),
    Part(3, "multi-head attention", 16, 180),
    Part(3, "cross-attention", 166, 180),
    Part(6, "residuals, norms, feed-forward", 16, 130, 285),
    Part(7, "the training recipe", 166, 58),
    Part(8, "the copy task", 166, 10),
]
OFFSPRING = [
    Part(9, "translation", 5, 14, 122, 30),
    Part(10, "classification", 5, 68, 122, 30),
    Part(15, "BERT", 135, 68, 122, 30),
    Part(11, "text generation", 5, 122, 122, 30),
    Part(16, "GPT-2", 135, 122, 122, 30),
    Part(12, "Transformer-XL", 5, 176, 122, 30),
    Part(13, "LSH attention", 135, 176, 122, 30),
    Part(14, "reversible layers", 5, 212, 122, 30),
    Part(17, "sparse attention", 135, 212, 122, 30),
    Part(18, "large models", 5, 266, 122, 30),
    Part(19, "many at a time", 135, 266, 122, 30),
    Part(20, "errata, executed", 5, 320, 252, 30),
]
GROUPS = [
    (6, "encoder and decoder"),
    (60, "the encoder alone"),
    (114, "the decoder alone"),
    (168, "longer, leaner"),
    (258, "larger, faster"),
    (312, "what goes wrong"),
]
# from the bottom of one box to the top of another
ARROWS = [
    "M83 338v-14", "M233 338v-14", "M83 284v-16", "M233 284v-16", "M83 230v-12",
    "M233 230v-12", "M83 180v-12", "M233 180v-12", "M233 130v-34", "M233 58v-10",
    "M151 198h13", "M83 80v34",
]  # fmt: skip

TEMPLATE = """
{%- macro boxes(parts) %}
{%- for part in parts %}
{%- if part.link %}<a href="{{ part.link }}">{% else %}<g>{% endif %}
<g class="part{{ ' absent' if not part.link }}">
<rect x="{{ part.x }}" y="{{ part.y }}" width="{{ part.width }}"
 height="{{ part.height }}" rx="5"/>
<text text-anchor="middle">
{%- for line in part.lines %}
<tspan x="{{ part.x + part.width / 2 }}" y="{{ part.middle + 13 * loop.index0 }}">
{{- line }}{% if loop.last %} <tspan class="number">{{ part.chapter }}</tspan>
{%- endif %}</tspan>{% endfor %}</text></g>
{%- if part.link %}</a>{% else %}</g>{% endif %}
{%- endfor %}
{%- endmacro %}
<nav class="annotated-map" id="the-map" aria-label="Map of the book">
<div class="drawing" role="group" aria-label="The Transformer, and what grew out of it">
<svg viewBox="0 -8 {{ widths[0] }} {{ height }}" role="group"
 aria-label="The Transformer">
<defs><marker id="map-head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6"
 markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor"/></marker>
</defs>
<g aria-hidden="true">
<rect class="frame" x="4" y="118" width="309" height="156" rx="10"/>
<text class="note" x="310" y="113" text-anchor="end">layers, N times</text>
<text class="note" x="83" y="350" text-anchor="middle">source</text>
<text class="note" x="233" y="350" text-anchor="middle">target so far</text>
{%- for path in arrows %}
<path class="arrow" d="{{ path }}" marker-end="url(#map-head)"/>{% endfor %}
<path class="arrow onward" d="M316 166h20" marker-end="url(#map-head)"/></g>
{{- boxes(transformer) }}
</svg>
<svg viewBox="0 -8 {{ widths[1] }} {{ height }}" role="group"
 aria-label="What grew out of it">
<g aria-hidden="true">
{%- for y, text in groups %}
<text class="note" x="5" y="{{ y }}">{{ text }}</text>{% endfor %}</g>
{{- boxes(offspring) }}
</svg></div>
{%- if laboratory %}
<p><a href="{{ laboratory }}">The laboratory</a>: train a Transformer on the page, and
 take its parts away.</p>{% endif %}</nav>
"""
STRIP = """
<nav class="annotated-strip" aria-label="Where this chapter stands">
{%- for number, link, names in chapters %}
<a href="{{ link }}" title="{{ names }}"
{%- if number == here %} aria-current="true"
{%- else %} aria-label="{{ number }} {{ names }}"{% endif -%}
>{{ number }}{% if number == here %} {{ names }}{% endif %}</a>
{%- endfor %}
<a class="whole" href="{{ whole }}">the map</a></nav>
"""
_environment = Environment(autoescape=True)
_map, _strip = (_environment.from_string(text.strip()) for text in (TEMPLATE, STRIP))


def chapter_of(docname: str) -> int | None:
    """The number of the chapter that a page belongs to: of `notebooks/02b_…` too."""
    path = PurePosixPath(docname)
    number = path.name[:2]
    inside = path.parent.name in ("notebooks", "exercises")
    return int(number) if inside and number.isdigit() else None


def pages_of(app, docname: str) -> dict[int, str]:
    """The links from a page to all main chapters that are there, by number."""
    pages = {
        chapter_of(name): name
        for name in sorted(app.env.found_docs, reverse=True)
        if name.startswith("notebooks/") and chapter_of(name)
    }
    relative = app.builder.get_relative_uri
    return {n: relative(docname, pages[n]) or "#" for n in sorted(pages)}


def map_html(app, docname: str) -> str:
    """The map as a page shows it."""
    links = pages_of(app, docname)

    def drawn(part: Part) -> dict:
        middle = part.y + part.height / 2 + 4 - 6.5 * (len(part.lines) - 1)
        shown = {"lines": part.lines, "middle": middle}
        return {**vars(part), **shown, "link": links.get(part.chapter)}

    laboratory = "book/laboratory" in app.env.found_docs
    return _map.render(
        laboratory=laboratory
        and app.builder.get_relative_uri(docname, "book/laboratory"),
        transformer=[drawn(part) for part in TRANSFORMER],
        offspring=[drawn(part) for part in OFFSPRING],
        groups=GROUPS, arrows=ARROWS, widths=WIDTHS, height=HEIGHT,
    )  # fmt: skip


def strip_html(app, docname: str, here: int) -> str:
    """The strip of all chapters, of which chapter ``here`` says what it is about."""
    labels: dict[int, list[str]] = {}
    for part in [*TRANSFORMER, *OFFSPRING]:
        labels.setdefault(part.chapter, []).append(part.label.replace("\n", " "))
    return _strip.render(
        chapters=[
            (number, link, " and ".join(labels[number]))
            for number, link in pages_of(app, docname).items()
        ],
        here=here,
        whole=app.builder.get_relative_uri(docname, app.config.root_doc) + "#the-map",
    )


class map_node(nodes.General, nodes.Element):
    """Where the map will stand, once all pages are known."""


class MapDirective(Directive):
    """The map, large."""

    def run(self):
        return [map_node()]


def put_in(app, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html":
        return
    for node in list(doctree.findall(map_node)):
        node.replace_self(nodes.raw("", map_html(app, docname), format="html"))
    here = chapter_of(docname)
    if here and docname.startswith("notebooks/"):
        title = next(iter(doctree.findall(nodes.title)), None)
        if title is not None:
            small = nodes.raw("", strip_html(app, docname, here), format="html")
            title.parent.insert(title.parent.index(title) + 1, small)


def setup(app):
    app.add_node(map_node)
    app.add_directive("map", MapDirective)
    app.connect("doctree-resolved", put_in)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
