"""Page 20b: a fault with its probe's answer, the table of thirty, and what adds up."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from annotated.chapters.ch20.drawings import opening_table
from annotated.chapters.ch20.public import PublicFault, ask, code, public_faults
from annotated.page.diagrams import Drawing
from annotated.page.frames import Html
from annotated.probes import Outcome

COLUMNS = ("Report", "Year", "What was wrong", "What it did", "Probe")
ROW = Markup(
    '<tbody><tr><th scope="row"><a href="{0.url}">{report}</a></th><td>{0.year}</td>'
    "<td>{0.wrong}</td><td>{0.effect}</td><td>{0.family}</td></tr>"
    '<tr><td colspan="5"><details><summary>{0.fault}: re-created, and what the probe '
    'says</summary><pre tabindex="0" role="region" aria-label="Code: {0.fault}">{code}'
    "</pre><p>{said}</p></details></td></tr></tbody>"
)
TOLD = Markup('<pre tabindex="0" role="region" aria-label="Code">{}</pre><p>{}</p>')


def told(name: str) -> Html:
    """Show the lines that re-create a fault, and what its probe says of them.

    Args:
        name: of the fault, in the corpus.
    """
    return Html(TOLD.format(code(name), ask(name)))


def answers() -> dict[str, Outcome]:
    """Return what the probe of each public fault says, by the fault's name."""
    return {one.fault: ask(one.fault) for one in public_faults()}


def public_table(said: Mapping[str, Outcome]) -> Html:
    """Show all public faults: a row each, which opens to its code and its probe.

    Args:
        said: what the probes say, by the fault's name.
    """
    rows = [_row(one, said[one.fault]) for one in public_faults()]
    return opening_table("faults", COLUMNS, rows)


def _row(one: PublicFault, said: Outcome) -> Markup:
    report = Markup("/<wbr>").join(one.report.split("/"))  # breaks on a phone
    return ROW.format(one, report=report, code=one.code(), said=str(said))
