"""The map of the book: the Transformer and what grew out of it, each part a link.

The directive ``{map}`` draws it large. Each chapter gets it small below its title, with
the chapter's own parts lit; a chapter that is not there yet is drawn and not linked.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath

from docutils import nodes
from docutils.parsers.rst import Directive
from jinja2 import Environment

WIDTH, HEIGHT = 786, 396


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


PARTS = [
    Part(1, "recurrent networks\nwith attention", 5, 205, 130, 50),
    # the Transformer, from its inputs upwards
    Part(5, "embeddings and positions", 180, 320, 285),
    Part(2, "self-attention", 180, 266),
    Part(4, "masked self-attention", 330, 266),
    Part(3, "multi-head attention", 180, 216),
    Part(3, "cross-attention", 330, 216),
    Part(6, "residuals, norms, feed-forward", 180, 166, 285),
    Part(7, "the training recipe", 330, 94),
    Part(8, "the copy task", 330, 46),
    # what grew out of it
    Part(9, "translation", 530, 36, 122, 30),
    Part(10, "classification", 530, 90, 122, 30),
    Part(15, "BERT", 660, 90, 122, 30),
    Part(11, "text generation", 530, 144, 122, 30),
    Part(16, "GPT-2", 660, 144, 122, 30),
    Part(12, "Transformer-XL", 530, 198, 122, 30),
    Part(13, "LSH attention", 660, 198, 122, 30),
    Part(14, "reversible layers", 530, 234, 122, 30),
    Part(17, "sparse attention", 660, 234, 122, 30),
    Part(18, "large models", 530, 288, 122, 30),
    Part(19, "many at a time", 660, 288, 122, 30),
    Part(20, "errata, executed", 530, 342, 252, 30),
]
GROUPS = [
    (530, 28, "encoder and decoder"),
    (530, 82, "the encoder alone"),
    (530, 136, "the decoder alone"),
    (530, 190, "longer, leaner"),
    (530, 280, "larger, faster"),
    (530, 334, "what goes wrong"),
]
# from the bottom of one box to the top of another
ARROWS = [
    "M247 374v-14", "M397 374v-14", "M247 320v-16", "M397 320v-16", "M247 266v-12",
    "M397 266v-12", "M247 216v-12", "M397 216v-12", "M397 166v-34", "M397 94v-10",
    "M315 234h13", "M135 230h30", "M480 200h40",
]  # fmt: skip

TEMPLATE = """
{%- if here %}<div class="annotated-map small">
{%- else %}<nav class="annotated-map" id="the-map" aria-label="Map of the book">
{%- endif %}
<svg viewBox="0 0 {{ width }} {{ height }}" role="{{ 'img' if here else 'group' }}"
 aria-label="{{ alt }}">
<defs><marker id="map-head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6"
 markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor"/></marker>
</defs>
<g aria-hidden="true">
<rect class="frame" x="168" y="154" width="309" height="156" rx="10"/>
<text class="note" x="172" y="150">layers, N times</text>
<text class="note" x="247" y="388" text-anchor="middle">source</text>
<text class="note" x="397" y="388" text-anchor="middle">target so far</text>
{%- for x, y, text in groups %}
<text class="note" x="{{ x }}" y="{{ y }}">{{ text }}</text>{% endfor %}
{%- for path in arrows %}
<path class="arrow" d="{{ path }}" marker-end="url(#map-head)"/>{% endfor %}</g>
{%- for part in parts %}
{%- if part.link and not here %}<a href="{{ part.link }}">{% else %}<g>{% endif %}
<g class="part{{ ' lit' if part.lit }}{{ ' absent' if not part.link }}">
<rect x="{{ part.x }}" y="{{ part.y }}" width="{{ part.width }}"
 height="{{ part.height }}" rx="5"/>
<text text-anchor="middle">
{%- for line in part.lines %}
<tspan x="{{ part.x + part.width / 2 }}" y="{{ part.middle + 13 * loop.index0 }}">
{{- line }}{% if loop.last %} <tspan class="number">{{ part.chapter }}</tspan>
{%- endif %}</tspan>{% endfor %}</text></g>
{%- if part.link and not here %}</a>{% else %}</g>{% endif %}
{%- endfor %}
</svg>
{%- if here %}
<p>You are here: {{ names }}.<br><a href="{{ whole }}">The whole map</a></p></div>
{%- else %}</nav>{% endif %}
"""
_template = Environment(autoescape=True).from_string(TEMPLATE.strip())


def chapter_of(docname: str) -> int | None:
    """The number of the chapter that a page belongs to: of `notebooks/02b_…` too."""
    path = PurePosixPath(docname)
    number = path.name[:2]
    inside = path.parent.name in ("notebooks", "exercises")
    return int(number) if inside and number.isdigit() else None


def map_html(app, docname: str, here: int | None = None) -> str:
    """The map as a page shows it; with the parts of chapter ``here`` lit, small."""
    pages = {
        chapter_of(name): name
        for name in sorted(app.env.found_docs, reverse=True)
        if name.startswith("notebooks/") and chapter_of(name)
    }
    parts = []
    for part in PARTS:
        link = pages.get(part.chapter)
        parts.append(
            {
                **vars(part),
                "lines": part.lines,
                "middle": part.y + part.height / 2 + 4 - 6.5 * (len(part.lines) - 1),
                "link": link and (app.builder.get_relative_uri(docname, link) or "#"),
                "lit": part.chapter == here,
            }
        )
    labels = [part.label.replace("\n", " ") for part in PARTS if part.chapter == here]
    alt = "The Transformer, and what grew out of it"
    if here:
        alt += f"; you are here: chapter {here}, {' and '.join(labels)}"
    return _template.render(
        parts=parts, groups=GROUPS, arrows=ARROWS, alt=alt, here=here,
        names=" and ".join(labels), width=WIDTH, height=HEIGHT,
        whole=app.builder.get_relative_uri(docname, app.config.root_doc) + "#the-map",
    )  # fmt: skip


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
            small = nodes.raw("", map_html(app, docname, here), format="html")
            title.parent.insert(title.parent.index(title) + 1, small)


def setup(app):
    app.add_node(map_node)
    app.add_directive("map", MapDirective)
    app.connect("doctree-resolved", put_in)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
