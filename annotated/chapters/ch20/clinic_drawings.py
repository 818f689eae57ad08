"""Chapter 20: the clinic as an explorer, over the record of its patients."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from annotated.chapters.ch20.clinic import (
    DIAGNOSES,
    EXAMINATIONS,
    STEPS,
    findings,
    shortest,
)
from annotated.page.frames import Choice, Html, explorer, static
from annotated.page.notebook import show_table

UNDECIDED = "not yet"
DRAWN = """name complaint diagnosis curve loss floor twice reach read asked company
gradients map symbols writes cache heart another longer""".split()


def sentences(p: Mapping[str, Any]) -> dict[str, str]:
    """Return what the page says below each examination of a patient's record."""
    loss, first, last = p["loss"], p["curve"][0], p["curve"][-1]
    summaries = " Σ: the summary of four." if len(p["map"][0]) > len(p["map"]) else ""
    before = {
        "the best possible loss": f"Its loss is {loss:.2f}. Who knows the language's "
        f"rule reaches {p['floor']:.2f}.",
        "the loss curve": f"From {first:.2f} to {last:.2f} in training; {loss:.2f} on "
        "held-out texts.",
        "the same text twice": "The logits of two calls:",
        "a row alone, and in a batch": "A row's logits, alone and with seven others:",
        "an attention map": "The last layer, the mean of its heads. Down: a query; "
        f"across: the keys that it sees.{summaries}",
        "step by step, with a cache": "Logits read one by one, and all at once:",
        "one batch by heart": f"Eight texts, read 100 times: {p['heart']:.2f}.",
        "another seed": f"With another seed the loss is {p['another']:.2f}, with this "
        f"one {loss:.2f}.",
        "twice as many steps": f"After {2 * STEPS} steps the loss is "
        f"{p['longer']:.2f}, after {STEPS} it is {loss:.2f}.",
    }
    told = findings(p).items()
    return {name: f"{before.get(name, '')} {said}".strip() for name, said in told}


def rounded(value: Any) -> Any:
    """Return a record's numbers in three digits, as the page needs them."""
    if isinstance(value, float):
        return float(f"{value:.3g}")
    if isinstance(value, Mapping):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def clinic_explorer(record: Mapping[str, Any]) -> Html:
    """Let the reader examine a recorded patient, and say what is the matter.

    Args:
        record: that of the benchmark ``clinic``.
    """
    patients = record["patients"]
    shown, checks, names = [], [], [*EXAMINATIONS]
    for i, p in enumerate(patients):
        told = findings(p)
        way = shortest(patients, p["name"])
        one = {name: rounded(p[name]) for name in DRAWN} | {"way": way}
        shown.append(one | {"findings": told, "says": sentences(p)})
        asked = names[i % len(names)]
        state = {"patient": p["name"], "examination": asked, "diagnosis": UNDECIDED}
        minutes = sum(EXAMINATIONS[name] for name in way)
        values = {"finding": told[asked], "cost": EXAMINATIONS[asked]}
        checks.append((state, values | {"minutes": minutes}))
    return explorer(
        static("ch20/clinic.js"),
        {
            "patients": shown,
            "minutes": EXAMINATIONS,
            "undecided": UNDECIDED,
            "steps": STEPS,
            "room": 180,
        },
        [
            Choice("patient", "Whose model?", [p["name"] for p in patients]),
            Choice("examination", "Ask for", names),
            Choice("diagnosis", "It is", [UNDECIDED, *DIAGNOSES]),
        ],
        label="The clinic",
        checks=checks,
        question="What do you ask first? Every answer costs minutes.",
        caption="Recorded, one seed each. In brackets: minutes on the clinic's clock.",
    )


def ways_table(record: Mapping[str, Any]) -> Html:
    """Show, behind a click, each diagnosis, the shortest way, and what probes say."""
    rows: list[Sequence[str]] = []
    for p in record["patients"]:
        way = shortest(record["patients"], p["name"])
        minutes = sum(EXAMINATIONS[name] for name in way)
        failed = (name for name, state, _ in p["probes"] if state == "failed")
        rows.append((p["name"], p["diagnosis"], "; ".join(way), f"{minutes} min"))
        rows[-1] += (", ".join(failed) or "none",)
    header = ("", "what it is", "the shortest way", "costs", "probes that fail")
    fold = (
        "<details><summary>All diagnoses, and the shortest ways</summary>{}</details>"
    )
    return Html(Markup(fold).format(Markup(show_table(header, rows).text)))
