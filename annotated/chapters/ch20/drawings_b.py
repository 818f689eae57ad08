"""Page 20b: a fault with its probe's answer, the table of thirty, and what adds up."""

from collections.abc import Mapping
from math import log2

import torch
from markupsafe import Markup

from annotated.chapters.ch20.drawings import STYLE, opening_table
from annotated.chapters.ch20.faults import FAULTS
from annotated.chapters.ch20.public import PublicFault, ask, public_faults
from annotated.chapters.ch20.scorers import blended
from annotated.gpt import GPT
from annotated.page.diagrams import Drawing
from annotated.page.frames import Html, render
from annotated.page.notebook import show_table
from annotated.probes import Outcome

COLUMNS = ("Report", "Year", "What was wrong", "What it did", "Probe")
ROW = Markup(
    '<tbody><tr><th scope="row"><a href="{0.url}">{report}</a></th><td>{0.year}</td>'
    "<td>{0.wrong}</td><td>{0.effect}</td><td>{0.family}</td></tr>"
    '<tr><td colspan="5"><details>'
    '<summary aria-label="Code, and what the probe says: {0.report}">'
    "Code, and what the probe says</summary>{opened}</details></td></tr></tbody>"
)
OPENED = Markup(
    '<pre tabindex="0" role="region" aria-label="Code: {}">{}</pre><p>{}</p>'
)


def told(name: str) -> Html:
    """Show the lines that re-create a fault, and what its probe says of them.

    Args:
        name: of the fault, in the corpus.
    """
    style = f"{render('tokens')}<style>{STYLE}</style>"
    opened = OPENED.format(name, FAULTS[name].code, ask(name))
    return Html(f'{style}<div class="annotated-slips">{opened}</div>')


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
    opened = OPENED.format(one.report, one.code, said)
    return ROW.format(one, report=report, opened=opened)


LETTERS = "abcd"
WRITTEN = "ababa"  # after which the next letter is asked for


def sums_table(sums: Mapping[str, float]) -> Html:
    """Show to what the chances add up, by scorer, and what they claim too much."""
    rows = [
        (name, f"{total:.4f}", f"{round(log2(total), 2) + 0.0:.2f}".replace("-", "−"))
        for name, total in sums.items()
    ]
    return show_table(
        ("scorer", "sum over all texts", "bits for free, per text"),
        rows,
        "All 1,024 texts of five tokens, out of four. Last column: log₂ of the sum, "
        "which it would lose if it were divided by it; below 0, it wastes some.",
    )


def next_letter(model: GPT, share: float, for_all: bool, total: float) -> Html:
    """Draw what a model with a cache gives each letter that may come next.

    Args:
        model: gives logits of four letters, (b, t, v).
        share: how much the cache counts.
        for_all: whether the cache is asked for every letter.
        total: to what the chances of all texts add up.
    """
    text = torch.tensor([[LETTERS.index(letter) for letter in WRITTEN + "a"]])
    scored = blended(model, text, share, for_all)[0, -1].tolist()
    alone = blended(model, text, 0.0, for_all)[0, -1].tolist()
    drawing = Drawing(350, 206)
    drawing.text(0, 16, f"written: {' '.join(WRITTEN)}", anchor="start", code=True)
    for i, letter in enumerate(LETTERS):
        top = 30 + 32 * i
        drawing.text(10, top + 17, letter, code=True)
        drawing.frame(28, top, 240 * scored[i], 24, shade=0.6, outline=False)
        drawing.frame(28, top, 240 * alone[i], 24, dashed=True)
        drawing.text(286, top + 17, f"{scored[i]:.2f}", anchor="start")
    right = abs(sum(scored) - 1) < 1e-9
    sign = "✓" if right else "✗"
    drawing.text(
        0,
        176,
        f"{sign} these four add up to {sum(scored):.2f}",
        anchor="start",
        bold=True,
    )
    drawing.text(0, 198, f"all 1,024 texts add up to {total:.4f}", anchor="start")
    named = ", ".join(f"{n} {s:.2f}" for n, s in zip(LETTERS, scored, strict=True))
    return drawing.figure(
        alt=f"Bars of the four letters that may come next: {named}.",
        caption="Dashed: the model alone. Filled: with the cache.",
    )
