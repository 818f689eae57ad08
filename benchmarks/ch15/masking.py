"""Chapter 15: what 80/10/10 buys over masks alone, and 15 % over 30 and 40 %.

Five BERTs learn from the functions of Python's library in as many steps: 15 % of tokens
are asked for as BERT did it (80 % masks, 10 % random tokens, 10 % as they are), 15 % by
masks alone, 30 and 40 % as BERT did it, and 60 % of which half are read as they are.
All are asked the same of held-out functions: 15 % hidden by masks ("masks"), and 15 %
asked for but shown as they are ("shown"), which tells whether a state still knows its
own token. Then each is fine-tuned with 500 labels, and read by a logistic regression,
as it is: there, nothing is masked.

Bands, for the means over the seeds: the loss behind masks is lower with 30 and 40 %
than with 15 % by 0.1 or more. Masks alone are within 0.15 of BERT's way behind masks,
but know fewer shown tokens than any other, by 0.1 or more; with half of them kept, 0.95
or more are known. Fine-tuned F1 follows what is shown: half kept is the best, by 0.02
or more above 15 % as BERT did it, and masks alone aren't above BERT's way by more than
0.03.
"""

from statistics import mean
from typing import Any

from annotated.recipes.classification import functions_task, measure, reader
from annotated.recipes.pretraining import (
    PRETRAINING_RECIPES,
    FrozenLinear,
    code_texts,
    cpu_seconds,
    few_labels,
    fine_tune,
    fine_tuning,
    guess,
    make_bert,
    pretrain,
    questions,
)
from benchmarks.record import SEEDS, read

BERTS_OWN, MASKS, HALF_KEPT = (0.8, 0.1, 0.1), (1.0, 0.0, 0.0), (0.4, 0.1, 0.5)
KINDS = {
    "15 %": (0.15, BERTS_OWN),
    "15 %, masks alone": (0.15, MASKS),
    "30 %": (0.30, BERTS_OWN),
    "40 %": (0.40, BERTS_OWN),
    "30 % masks, as many kept": (0.60, HALF_KEPT),
}
STEPS, LONG_STEPS, LABELS = 500, 250, 500


def run() -> dict[str, Any]:
    texts, task, rows = code_texts(), functions_task(), []
    recipe = PRETRAINING_RECIPES["code"]._replace(steps=STEPS, long_steps=LONG_STEPS)
    hidden = questions(texts.validation, texts.words)
    shown = questions(texts.validation, texts.words, shares=(0.0, 0.0, 1.0))
    for seed in SEEDS:
        few = few_labels(task._replace(words=texts.words), LABELS, seed)
        for kind, (rate, shares) in KINDS.items():
            bert = make_bert(texts.words, recipe, seed)
            changed = recipe._replace(masked=rate, shares=shares)
            history = pretrain(bert, texts, changed, seed)
            model, _ = fine_tune(bert, few, fine_tuning(LABELS), seed)
            row = {"kind": kind, "seed": seed}
            row |= {"masks": guess(bert, hidden), "shown": guess(bert, shown)}
            row["fine-tuned"] = measure(reader(model, few), few)["tuned"]
            row["frozen"] = measure(FrozenLinear(bert, few), few)["tuned"]
            row["cpu_seconds"] = round(cpu_seconds(history), 1)
            print(row, flush=True)
            rows.append(row)
    return {"recipe": recipe._asdict(), "labels": LABELS, "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, for means over the seeds, and what page 15 says."""
    rows = [[row for row in record["rows"] if row["kind"] == kind] for kind in KINDS]
    hidden = [mean(row["masks"]["loss"] for row in some) for some in rows]
    shown = [mean(row["shown"]["accuracy"] for row in some) for some in rows]
    tuned = [mean(row["fine-tuned"] for row in some) for some in rows]
    usual, alone, *more, _ = hidden
    assert max(more) < usual - 0.1 and abs(alone - usual) < 0.15
    usual, alone, *more, kept = shown
    assert alone < min(usual, *more) - 0.1 and kept > 0.95
    usual, alone, *more, kept = tuned
    nothing = mean(
        row["tuned"]
        for row in read("labels")["rows"]
        if (row["kind"], row["size"]) == ("scratch", LABELS)
    )
    # the page: masks alone are worse than nothing, BERT's way is no better
    assert kept > max(more) and alone < nothing - 0.05 and abs(usual - nothing) < 0.02
