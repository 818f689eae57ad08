"""Chapter 19: mask-predict learns what the autoregressive model wrote.

Kim and Rush (2016) call it distillation. Of each word there is one pronunciation,
written greedily, instead of all that the dictionary has, for as many steps; one seed.
1000 words of the test split are written in rounds, and all its words that have several
right answers of one length: an answer is mixed if each sound stands there in a right
one, and the whole in none.

Band: one round has fewer words wrong after distillation than before.
"""

import random
from collections.abc import Sequence
from typing import Any

from annotated.data.spelling import spelling_words
from annotated.recipes.translation import spelling_task
from annotated.refinement import mask_predict
from benchmarks.ch19._models import DISTILLED, trained, written_task
from benchmarks.ch19.refinement_more import TESTED, rates, write


def run() -> dict[str, Any]:
    cutter = spelling_task().cutter
    trained("autoregressive", 0)  # whose answers are learned
    words = random.Random(0).sample(sorted(spelling_words("test")), TESTED)
    pairs, written = spelling_task().pairs, written_task(0).pairs
    sources, rows = len({word for word, _ in pairs}), []
    several = {
        word: answers
        for word, answers in spelling_words("test").items()
        if len(answers) > 1 and len({len(one) for one in answers}) == 1
    }
    for name in ("mask-predict", DISTILLED):
        model, _ = trained(name, 0)
        for rounds in (1, 2, 4, 10):
            row = {"learned from": "dictionary" if name == "mask-predict" else "model"}
            outputs = write(model, cutter, words, mask_predict, rounds=rounds)
            row |= {"rounds": rounds} | rates(outputs, words)
            outputs = write(model, cutter, list(several), mask_predict, rounds=rounds)
            kinds = list(map(kind_of, outputs, several.values()))
            for kind in ("right", "mixed"):
                row[f"several_{kind}"] = kinds.count(kind) / len(kinds)
            rows.append(row)
    targets = {"dictionary": len(pairs) / sources, "model": len(written) / len(written)}
    known = spelling_words("train")
    right = sum(sounds in known[word] for word, sounds in written) / len(written)
    facts = {"targets": targets, "written_right": right, "several": len(several)}
    return facts | {"rows": rows}


def kind_of(output: tuple, answers: Sequence[tuple]) -> str:
    """Return "right", "mixed" (from several of the answers), or "wrong"."""
    if output in answers:
        return "right"
    if len(output) != len(answers[0]):
        return "wrong"
    columns = zip(output, *answers, strict=True)
    return "mixed" if all(one in rest for one, *rest in columns) else "wrong"


def bands(record: dict[str, Any]) -> None:
    """Check this record's band."""
    before, after = (
        next(
            row["words"]
            for row in record["rows"]
            if (row["learned from"], row["rounds"]) == (name, 1)
        )
        for name in ("dictionary", "model")
    )
    assert after < before
