"""Chapter 15: next sentences against their order, on the same pairs.

Neighbouring sentences of Python's docstrings. Of half of the pairs the second one is
replaced by a sentence of another document ("next"), or the two change places ("order").
A BERT learns hidden tokens and pairs together. Beside it, "topic": a pair is said to
follow if its words are as alike as a limit (the cosine of their rarities); and how
often the most frequent answer is right.

Bands, for the means over the seeds, on held-out pairs: topic alone is right on 0.62 to
0.82 of the next sentences and on 0.48 to 0.52 of the orders, where it can't know. The
model is below topic alone on next sentences, between 0.50 and 0.70: to find words in
common it would have to compare all words of both, which 1200 steps hardly teach. On
orders it is between 0.48 and 0.62, by words such as "It" at the beginning.
"""

from typing import Any

from annotated.bert import next_sentence_pairs, sentence_order_pairs
from annotated.recipes.common import one_cycle
from annotated.recipes.pretraining import (
    PRETRAINING_RECIPES,
    make_bert,
    pair_accuracy,
    pair_batches,
    pair_loss,
    prose_sentences,
    prose_texts,
    rarity,
    topic_accuracy,
)
from annotated.training import fit
from benchmarks.record import SEEDS

MAKERS = {"next": next_sentence_pairs, "order": sentence_order_pairs}
STEPS = 1200


def run() -> dict[str, Any]:
    words, rows = prose_texts().words, []
    recipe = PRETRAINING_RECIPES["prose"]._replace(steps=STEPS, size=32, masked=0.15)
    documents = {s: prose_sentences(s) for s in ("train", "validation", "test")}
    weights = rarity(documents["train"])
    for seed in SEEDS:
        for kind, maker in MAKERS.items():
            pairs = {s: maker(several, seed) for s, several in documents.items()}
            held = pairs["validation"] + pairs["test"]
            topic, limit = topic_accuracy(pairs["train"], held, weights)
            model = make_bert(words, recipe, seed)
            optimizer, schedule = one_cycle(model, recipe.rate, recipe.steps)
            batches = pair_batches(pairs["train"], words, recipe, seed)
            options = {"schedule": schedule, "clip": 1.0}
            history = fit(model, pair_loss, batches, optimizer, **options)
            row = {"kind": kind, "seed": seed, "topic": topic, "limit": limit}
            row["model"] = pair_accuracy(model, held, words)
            row["seen"] = pair_accuracy(model, pairs["train"][:2000], words)
            follow = sum(pair.label == 0 for pair in held) / len(held)
            row["always"] = max(follow, 1 - follow)
            row["cpu_seconds"] = round(history[-1]["cpu_seconds"], 1)
            print(row, flush=True)
            rows.append(row)
    return {
        "recipe": recipe._asdict(),
        "pairs": {"train": len(pairs["train"]), "held out": len(held)},
        "rows": rows,
    }


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, for every seed, and what page 15 says."""
    for row in record["rows"]:
        if row["kind"] == "order":
            assert abs(row["topic"] - 0.5) < 0.02 and 0.5 < row["model"] < 0.56
        else:
            assert 0.5 < row["model"] < 0.65 and 0.7 < row["topic"] < 0.82
            assert row["seen"] > 0.8  # the page: it knows its training pairs by heart
