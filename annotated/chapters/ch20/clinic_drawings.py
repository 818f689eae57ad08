"""Chapter 20: the clinic as an explorer, over the record of its patients."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from annotated.chapters.ch20.clinic import (
    DIAGNOSES,
    EXAMINATIONS,
    STEPS,
    WRONG,
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
    loss, best, first, last = p["loss"], p["floor"], p["curve"][0], p["curve"][-1]
    summaries = " Σ: the summary of four." if len(p["map"][0]) > len(p["map"]) else ""
    before = {
        "the best possible loss": f"The best possible is {best:.2f}. Its loss is "
        f"{loss:.2f}.",
        "the loss curve": f"From {first:.2f} to {last:.2f} in training; {loss:.2f} on "
        "held-out texts.",
        "the same text twice": "The logits of two calls:",
        "who sees whom": "A letter changes in all four rows at once, and random "
        "numbers stay the same.",
        "a row alone, and in a batch": "A row's logits, alone and with seven others, "
        "padded alike:",
        "an attention map": "The last layer, the mean of its heads. Down: a query; "
        f"across: the keys that it sees.{summaries}",
        "what it writes": "Three samples, with its owner's cache (^ start, . end, "
        "· padding).",
        "step by step, with a cache": "Logits read one by one, and all at once:",
        "one batch by heart": f"Eight texts, read 100 times: {p['heart']:.2f}.",
        "another seed": f"The best possible is {best:.2f}. With this seed the loss is "
        f"{loss:.2f}, with another {p['another']:.2f}.",
        "twice as many steps": f"The best possible is {best:.2f}. After {STEPS} steps "
        f"the loss is {loss:.2f}, after {2 * STEPS} it is {p['longer']:.2f}.",
    }
    told = findings(p).items()
    return {name: f"{before.get(name, '')} {said}".strip() for name, said in told}


def rounded(value: Any) -> Any:
    """Return a record's numbers shorter, and still the same in two decimals."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
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
            "wrong": WRONG,
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
        caption="Recorded, one seed each. In brackets: minutes on the clinic's clock. "
        f"A wrong diagnosis costs {WRONG}.",
    )


def dear_words(record: Mapping[str, Any]) -> str:
    """Return what the examinations that many order first tell, as a sentence."""
    told = {p["name"]: findings(p) for p in record["patients"]}

    def repeated(name: str) -> str:
        same = [f[name] == f["the best possible loss"] for f in told.values()]
        return f"({EXAMINATIONS[name]} minutes) for {sum(same)} of {len(same)}"

    def having(examination: str, sign: str) -> list[str]:
        return [n for n, f in told.items() if f[examination].startswith(sign)]

    seen = having("an attention map", "Some")
    missed = [n for n in having("who sees whom", "Logits") if n not in seen]
    return (
        "What many order first says little here. The verdict of the first loss is "
        f"repeated by **another seed** {repeated('another seed')} patients, and by "
        f"**more steps** {repeated('twice as many steps')}. "
        f"**An attention map** shows the leaks of {' and '.join(seen)}, and not "
        f"{' and '.join(missed)}'s."
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
