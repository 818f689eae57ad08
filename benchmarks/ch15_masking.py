"""Chapter 15: what 80/10/10 buys over masks alone, and 15 % over 30 and 40 %.

Five BERTs learn from the functions of Python's library in as many steps: 15 % of tokens
hidden as BERT did it (80 % masks, 10 % random tokens, 10 % as they are), 15 % hidden by
masks alone, 15 % by random tokens alone, and 30 and 40 % as BERT did it. All are asked
the same of held-out functions: 15 % hidden by masks ("masks"), and 15 % asked for but
shown as they are ("shown"), which tells whether a state still knows its own token. Then
each is fine-tuned with 500 labels, and read by a logistic regression, as it is: there,
nothing is masked.

Bands, before the run, for the means over the seeds:
BANDS
"""

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
from benchmarks.record import SEEDS

BERTS_OWN, MASKS, RANDOM = (0.8, 0.1, 0.1), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
KINDS = {
    "15 %": (0.15, BERTS_OWN),
    "15 %, masks alone": (0.15, MASKS),
    "15 %, random tokens alone": (0.15, RANDOM),
    "30 %": (0.30, BERTS_OWN),
    "40 %": (0.40, BERTS_OWN),
}
STEPS, LONG_STEPS, LABELS = 500, 250, 500


def run() -> dict[str, Any]:
    """Pretrain every kind with every seed."""
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
