"""Chapter 20: every slip of the sources beside its repair, three seeds.

Expected: each differs from its repair by at least what ``slips.tsv`` says. Two kinds
are read from older records, of chapters 8 and 10; one trains, 250 steps a seed.
"""

from typing import Any

from annotated.chapters.ch20 import slips
from benchmarks.record import SEEDS


def run() -> dict[str, Any]:
    words = slips.slips()
    # the module as a whole: this record depends on every function of it
    assert {name.replace("-", "_") for name in words} <= set(vars(slips))
    pairs = [(name, seed) for name in words for seed in SEEDS]
    return {"rows": [{"slip": n, "seed": s} | slips.run(n, s) for n, s in pairs]}


def bands(record: dict[str, Any]) -> None:
    """Check that each slip differs from its repair."""
    words = slips.slips()
    for row in record["rows"]:
        assert abs(row["wrong"] - row["right"]) >= words[row["slip"]].least, row
