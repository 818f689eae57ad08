"""Chapter 01: four dates need more room. Is it enough to widen the one vector?

Without attention, on lines of one to four dates as in ``dates``, with a vector four
times as wide (512 numbers, where the page has 128), for 800 steps. One seed, because
it takes eight minutes.

Band, from the runs of ``dates`` (128 numbers, 800 steps: no line of four dates read
exactly): less than half of the lines of four dates, which attention reads at 99.6 % or
more with the narrow states.
"""

from typing import Any

import torch

from annotated.batches import batches, date_pairs
from annotated.chapters.ch01.dates import DATES, date_symbols, train_date_reader
from annotated.seq2seq import AttentionDecoder, RNNEncoder, Seq2Seq, exact_matches

TIMES = 4


def one(seed: int, dates: tuple[int, int] = (1, 4), each: int = 500) -> dict[str, Any]:
    """Train a wide model without attention; test it by the dates in a line."""
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
    """Train one wide model."""
    return {"config": DATES, "lines": [one(seed=0)]}


def bands(record: dict[str, Any]) -> None:
    """Check that a wide vector reads lines of two dates, and none of four."""
    exact = record["lines"][0]["exact"]
    assert exact["4"] < 0.01 and exact["2"] > 0.9
