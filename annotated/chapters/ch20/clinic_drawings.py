"""Chapter 20: the clinic as an explorer, over the record of its patients."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from annotated.chapters.ch20.clinic import (
    DIAGNOSES,
    EXAMINATIONS,
    KEEP,
    LETTERS,
    STEPS,
    findings,
    repeats,
    shortest,
)
from annotated.page.frames import Choice, Html, explorer, static
from annotated.page.notebook import show_table

UNDECIDED = "not yet"
DRAWN = """name complaint diagnosis curve loss floor twice reach read asked company
gradients map symbols writes cache heart another longer""".split()


def sentences(p: Mapping[str, Any]) -> dict[str, str]:
    """Return what each examination of a patient's record says, in a sentence."""
    told = findings(p)
    sides = {
        "impossibly low": "Nobody can honestly be that good.",
        "the best possible": "Nothing is missing.",
        "above the best": "Something is missing.",
    }
    sees = {
        "nothing later": "No logit moves when a later symbol is changed.",
        "later letters": "Logits move when later symbols are changed.",
        "later letters of its chunk": "Logits move when later symbols are changed, but "
        "only within chunks of four.",
    }
    differ = {
        "differs": "They differ, by far more than rounding.",
        "the same": "They are the same, up to rounding.",
    }
    gradients = told["gradients, part by part"]
    ends = told["what it writes"].endswith("ends")
    stops = "Every text ends." if ends else "Not every text ends."
    summaries = " Σ: the summary of four." if len(p["map"][0]) > len(p["map"]) else ""
    first = p["curve"][0]
    return {
        "the best possible loss": f"Its loss is {p['loss']:.2f}. If you know the rule "
        f"of the language, you reach {p['floor']:.2f}. "
        + sides[told["the best possible loss"]],
        "the loss curve": f"From {first:.2f} to {p['curve'][-1]:.2f} in training; "
        f"{p['loss']:.2f} on held-out texts.",
        "the same text twice": "Two calls give exactly the same."
        if told["the same text twice"] == "the same"
        else "Two calls on the same text differ.",
        "who sees whom": sees[told["who sees whom"]],
        "what the loss asks for": f"It asks for {told['what the loss asks for']}.",
        "a row alone, and in a batch": "A row's logits, alone and with seven others: "
        + differ[told["a row alone, and in a batch"]],
        "gradients, part by part": "Every part gets a gradient."
        if gradients == "all"
        else f"Without a gradient: {gradients.removeprefix('none: ')}.",
        "an attention map": "The last layer, the mean of its heads. Down: a query; "
        f"across: the keys that it sees.{summaries}",
        "what it writes": f"{repeats(p['writes']):.0%} of letters repeat the one three "
        f"places back; of the language's, {KEEP + (1 - KEEP) / LETTERS:.0%}. {stops}",
        "step by step, with a cache": "Logits read one by one, and all at once: "
        + differ[told["step by step, with a cache"]],
        "one batch by heart": f"Eight texts, read 100 times: the loss is "
        f"{p['heart']:.2f}.",
        "another seed": f"With another seed the loss is {p['another']:.2f}, "
        f"with this one {p['loss']:.2f}.",
        "twice as many steps": f"After {2 * STEPS} steps the loss is "
        f"{p['longer']:.2f}, after {STEPS} it is {p['loss']:.2f}.",
    }


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
