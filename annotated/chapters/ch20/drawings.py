"""Chapter 20: what its page draws."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from annotated.chapters.ch20.slips import Slip, slips
from annotated.page.frames import Html, name_of, render, static
from annotated.page.records import dots, grouped

COLUMNS = ("Source", "Slip", "What you see", "Measured", "Repaired in")
ROW = Markup(
    '<tbody><tr><td>{0.source}, {0.section}</td><th scope="row">{0.title}</th>'
    '<td>{0.symptom}</td><td>{said}</td><td><a href="{0.page}.html">{place}</a></td>'
    '</tr><tr><td colspan="5"><details>'
    '<summary aria-label="Code and runs: {0.title}">Code and runs</summary>'
    '<pre tabindex="0" role="region" aria-label="Code: {0.title}">{code}</pre>'
    "<p>{numbers}.</p><p><b>Repair:</b> {0.repair} <b>Guard:</b> "
    "<code>{0.guard}</code>. <b>Family:</b> {0.family}.</p></details></td></tr></tbody>"
)
STYLE = """
.annotated-slips { font: 0.875rem/1.4 var(--at-sans); }
.annotated-slips [aria-label^=All] { max-height: 34rem; overflow: auto; }
.annotated-slips output { margin-left: 0.6rem; }
.annotated-slips table { border-collapse: collapse; width: 100%; }
.annotated-slips :is(td, th) { padding: 0.3rem 0.5rem; text-align: left; }
.annotated-slips tr { vertical-align: top; }
.annotated-slips tbody { border-top: 1px solid var(--at-rule); }
.annotated-slips pre { overflow-x: auto; font: 0.8125rem/1.4 var(--at-mono); }
.annotated-slips p code { overflow-wrap: anywhere; }
.annotated-slips button { all: unset; cursor: pointer; text-decoration: underline; }
.annotated-slips button:focus-visible { outline: 2px solid var(--at-link); }
.annotated-slips [aria-sort=ascending]::after { content: " ▲"; }
.annotated-slips [aria-sort=descending]::after { content: " ▼"; }
.annotated-slips [hidden] { display: none; }
@media (max-width: 540px) {
  .annotated-slips :is(thead, tbody:not([hidden])) { display: block; }
  .annotated-slips :is(table, tr, td, tbody th) { display: block; }
  .annotated-slips thead tr { display: flex; flex-wrap: wrap; }
  .annotated-slips pre { max-width: calc(100vw - 4rem); }
}"""


def slips_table(record: Mapping[str, Any]) -> Html:
    """Show all slips of the sources: a row each, which opens to its code and its runs.

    Args:
        record: that of the benchmark ``slips``.
    """
    runs = grouped(record["rows"], "slip")
    rows = [_row(slip, runs[slip.id,]) for slip in slips().values()]
    return opening_table("slips", COLUMNS, rows)


def opening_table(noun: str, columns: Sequence[str], rows: Sequence[Markup]) -> Html:
    """Show a table that is searched, sorted and scrolled, and whose rows open.

    Args:
        noun: what the rows are, for their count: all "slips".
        columns: names of the columns.
        rows: a body each, whose first row is the table's and whose second opens.
    """
    head = Markup().join(Markup('<th scope="col">{}</th>').format(c) for c in columns)
    table = Markup(
        '<div tabindex="0" role="region" aria-label="All {}">'
        "<table><thead><tr>{}</tr></thead>{}</table></div>"
    ).format(noun, head, Markup().join(rows))
    root = name_of("slips", table)
    script = f"((root) => {{\n{static('ch20/slips_table.js')}}})"
    run = f'<script>{script}(document.getElementById("{root}"));</script>'
    style = f"{render('tokens')}<style>{STYLE}</style>"
    box = f'<div class="annotated-slips" id="{root}" data-noun="{noun}">'
    return Html(f"{style}{box}{table}{run}</div>")


def _row(slip: Slip, runs: list[dict[str, Any]]) -> Markup:
    """Return a ``slip``, and what its ``runs`` with several seeds gave."""
    names = [name for name in runs[0] if name not in ("slip", "seed")]
    numbers = "; ".join(f"{n}: {dots((r[n] for r in runs), '.3g')}" for n in names)
    seeds = f"Seeds {dots(run['seed'] for run in runs)}: {numbers}"
    said = slip.said([{name: run[name] for name in names} for run in runs])
    place = slip.page.partition("_")[0].lstrip("0")  # 4c
    return ROW.format(slip, said=said, place=place, code=slip.code(), numbers=seeds)
