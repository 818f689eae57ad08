"""Chapter 01: are four dates too much for one vector because it is narrow?

No attention, the lines of ``dates``, a vector of 512 numbers in place of 128, for 800
steps; one seed, because it takes eight minutes.

Band: less than half of the lines of four dates, of which the narrow vector reads none
and attention at least 99.6 %.
"""

from typing import Any

import torch

from annotated.batches import batches, date_pairs
from annotated.chapters.ch01.dates import DATES, date_symbols, train_date_reader
from annotated.seq2seq import AttentionDecoder, RNNEncoder, Seq2Seq, exact_matches

TIMES = 4


def one(seed: int, dates: tuple[int, int] = (1, 4), each: int = 500) -> dict[str, Any]:
    hidden, width = TIMES * DATES["hidden"], DATES["embedding"]
    train = date_pairs(DATES["pairs"], "train", seed, dates=dates)
    source, target = date_symbols(train)
    torch.manual_seed(seed)
    encoder = RNNEncoder(len(source), width, hidden)
    decoder = AttentionDecoder(len(target), width, hidden, 2 * hidden)
    model = Seq2Seq(encoder, decoder)
    history = train_date_reader(model, train, (source, target), 2, seed)
    exact = {}
    for count in range(dates[0], dates[1] + 1):
        test = date_pairs(each, "test", seed, dates=(count, count))
        hits = exact_matches(model, batches(test, source, target, 250))
        exact[str(count)] = hits.double().mean().item()
    return {
        "numbers": 2 * hidden,
        "seed": seed,
        "steps": len(history),
        "parameters": sum(p.numel() for p in model.parameters()),
        "final_loss": sum(r["loss"] for r in history[-20:]) / 20,
        "cpu_seconds": history[-1]["cpu_seconds"],
        "exact": exact,
    }


def run() -> dict[str, Any]:
    return {"config": DATES, "lines": [one(seed=0)]}


def bands(record: dict[str, Any]) -> None:
    """Check that a wide vector reads lines of two dates, and none of four."""
    exact = record["lines"][0]["exact"]
    assert exact["4"] < 0.01 and exact["2"] > 0.9
