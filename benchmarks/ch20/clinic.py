"""Chapter 20: twelve small models, trained as their owners did, and all examinations.

One seed each, and another in "another seed": a reader looks at one patient, as in life.

Expected: each patient shows what their diagnosis says, and nobody else's sign; three
examinations at most tell each from the others; a cause that isn't a lack of training
isn't cured by twice as many steps.
"""

from typing import Any

from annotated.chapters.ch20.clinic import (
    CHUNK,
    EXAMINATIONS,
    PATIENTS,
    examine,
    findings,
    shortest,
)


def run() -> dict[str, Any]:
    patients = []
    for patient in PATIENTS:
        patients.append(examine(patient))
        print(patient.name, patients[-1]["loss"], flush=True)
    return {"patients": patients}


def bands(record: dict[str, Any]) -> None:
    """Check that each patient has the signs of their diagnosis."""
    patients = {p["name"]: p for p in record["patients"]}
    told = {name: findings(p) for name, p in patients.items()}

    def having(examination: str, finding: str) -> set[str]:
        return {n for n, f in told.items() if f[examination].startswith(finding)}

    signs = {
        ("who sees whom", "Logits move when later letters change, but only"): "Bo",
        ("who sees whom", "Logits move when later letters change."): "Chen Lea",
        ("what the loss asks for", "It asks for the same"): "Dana",
        ("what the loss asks for", "It asks for the one after the next"): "Emre",
        ("what the loss asks for", "It asks for the next, and padding"): "Fay",
        ("what the loss asks for", "It asks for the next, but no end"): "Kofi",
        ("the same text twice", "They differ"): "Gita",
        ("gradients, part by part", "There's none for: queries, keys."): "Jun",
    }
    for (examination, finding), names in signs.items():
        assert having(examination, finding) == {*names.split()}, (finding, CHUNK)
    assert having("step by step, with a cache", "They differ") >= {"Hugo"}
    assert "Ines" in having("a row alone, and in a batch", "They differ")
    # what a low loss hides, and what a long training doesn't cure
    best = "the best possible loss"
    assert {"Bo", "Dana", "Fay"} <= having(best, "Nobody")
    assert {"Ada", "Gita", "Hugo"} <= having(best, "Nothing")
    assert "Jun" in having(best, "Something")
    assert "Lea" in having("the loss curve", "Held-out texts cost more")
    ways = {name for p in patients for name in _way(record, p)}
    dear = {"an attention map", "another seed", "twice as many steps"}
    assert not ways & dear, "the page: they are in no shortest way"
    minutes = {n: sum(EXAMINATIONS[e] for e in _way(record, n)) for n in patients}
    assert max(minutes.values()) <= 10, minutes


def _way(record: dict[str, Any], name: str) -> list[str]:
    return shortest(record["patients"], name)
