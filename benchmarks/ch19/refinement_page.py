"""Chapter 19: the two models that the built page loads, with eight bits a weight.

They are those of the first seed, which learned for the same time: one writes symbol by
symbol, the other in rounds, here in four. What the page loads is written too.

Bands, on 1000 words of the test split: with eight bits neither rate of either model
changes by more than 1 %.
"""

from typing import Any

from annotated.data.spelling import spelling_words
from annotated.page.packed import answers_text, pack_model, unpack_model, unpack_refiner
from annotated.recipes.refinement import refinement_errors
from annotated.recipes.translation import spelling_errors, spelling_task
from benchmarks.ch19._models import trained
from benchmarks.record import ROOT

FILE = ROOT / "annotated" / "page" / "static" / "refinement_model.js"
NAMES = {"autoregressive": "symbol by symbol", "mask-predict": "in rounds"}
TESTED = 1000


def run() -> dict[str, Any]:
    cutter, rows, scripts = spelling_task().cutter, [], []
    held_out = spelling_words("test")  # with more, it would be above 2.5 MB
    for kind, name in NAMES.items():
        model, _ = trained(kind, 0)
        answers = "" if scripts else answers_text(held_out, cutter)
        scripts.append(pack_model(name, model, cutter, answers))
        if kind == "autoregressive":
            measure, small = spelling_errors, unpack_model(scripts[-1])[0]
        else:
            measure, small = refinement_errors, unpack_refiner(scripts[-1])[0]
        for bits, one in ((32, model), (8, small)):
            row = {"model": kind, "bits": bits} | measure(one, cutter, most=TESTED)
            rows.append(row)
            print(row, flush=True)
    text = "".join(scripts)
    FILE.write_text(text, "utf-8")
    return {"tested": TESTED, "bytes": len(text.encode()), "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands."""
    assert record["bytes"] < 2.5e6
    full, eight = ([row for row in record["rows"] if row["bits"] == n] for n in (32, 8))
    for one, other in zip(full, eight, strict=True):
        for kind in ("phonemes", "words"):
            assert abs(one[kind] - other[kind]) <= 0.01
