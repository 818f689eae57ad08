"""Chapter 19: mask-predict learns what the autoregressive model wrote.

Kim and Rush (2016) call it distillation. Of each word there is one pronunciation,
written greedily, instead of all that the dictionary has, for as many steps; three
seeds, each with a teacher of its own. 1000 words of the test split are written in
rounds, and all its words that have several right answers of one length: an answer is
mixed if each sound stands there in a right one, and the whole in none.

Band, for each seed: one round has fewer words wrong after distillation than before.
"""

import random
from collections.abc import Sequence
from typing import Any

from annotated.data.spelling import spelling_words
from annotated.recipes.translation import spelling_task
from annotated.refinement import mask_predict
from benchmarks.ch19._models import DISTILLED, trained, written_task
from benchmarks.ch19.refinement_more import TESTED, rates, write

SEEDS = (0, 1, 2)


def run() -> dict[str, Any]:
    cutter, known = spelling_task().cutter, spelling_words("train")
    tested = spelling_words("test")
    words = random.Random(0).sample(sorted(tested), TESTED)
    several = {
        word: answers
        for word, answers in tested.items()
        if len(answers) > 1 and len({len(one) for one in answers}) == 1
    }
    pairs, rows, teachers = spelling_task().pairs, [], []
    for seed in SEEDS:
        trained("autoregressive", seed)  # whose answers are learned
        written = written_task(seed).pairs
        right = sum(sounds in known[word] for word, sounds in written) / len(written)
        teachers.append({"seed": seed, "written_right": right})
        print(teachers[-1], flush=True)
        for name in ("mask-predict", DISTILLED):
            model, _ = trained(name, seed)
            learned = "dictionary" if name == "mask-predict" else "model"
            for rounds in (1, 2, 4, 10):
                row = {"seed": seed, "learned from": learned, "rounds": rounds}
                outputs = write(model, cutter, words, mask_predict, rounds=rounds)
                row |= rates(outputs, words)
                outputs = write(model, cutter, [*several], mask_predict, rounds=rounds)
                kinds = list(map(kind_of, outputs, several.values()))
                for kind in ("right", "mixed"):
                    row[f"several_{kind}"] = kinds.count(kind) / len(kinds)
                rows.append(row)
                print(row, flush=True)
    sources = len({word for word, _ in pairs})
    targets = {"dictionary": len(pairs) / sources, "model": 1.0}
    facts = {"targets": targets, "several": len(several), "teachers": teachers}
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
    once = {
        (row["seed"], row["learned from"]): row["words"]
        for row in record["rows"]
        if row["rounds"] == 1
    }
    for seed in SEEDS:
        assert once[seed, "model"] < once[seed, "dictionary"]
