"""Chapter 01: reading dates, by way of attending, over three seeds."""

import hashlib
import time
from typing import Any

from annotated.batches import batches, date_pairs
from annotated.chapters.ch01.dates import (
    DATE_READERS,
    DATES,
    date_reader,
    date_symbols,
    train_date_reader,
)
from annotated.seq2seq import exact_matches
from benchmarks.record import SEEDS


def one(
    way: str, seed: int, dates: tuple[int, int], epochs: int = 1, each: int = 2000
) -> dict[str, Any]:
    train = date_pairs(DATES["pairs"], "train", seed, dates=dates)
    tests = {
        count: date_pairs(each, "test", seed, dates=(count, count))
        for count in range(dates[0], dates[1] + 1)
    }
    symbols = date_symbols(train)
    model = date_reader(way, *symbols, seed)
    history = train_date_reader(model, train, symbols, epochs, seed)
    began = time.process_time()
    exact = {
        str(count): exact_matches(model, batches(test, *symbols, 250))
        .double()
        .mean()
        .item()
        for count, test in tests.items()
    }
    return {
        "way": way,
        "seed": seed,
        "dates": list(dates),
        "steps": len(history),
        "parameters": sum(p.numel() for p in model.parameters()),
        "final_loss": sum(r["loss"] for r in history[-20:]) / 20,
        "cpu_seconds": history[-1]["cpu_seconds"],
        "test_cpu_seconds": time.process_time() - began,
        "tested": each,
        "exact": exact,
        "data_sha256": hashlib.sha256(repr(train).encode()).hexdigest(),
    }


def run() -> dict[str, Any]:
    single = []
    for way in DATE_READERS:
        for seed in SEEDS:
            single.append(one(way, seed, (1, 1)))
            print(single[-1], flush=True)
    lines = []
    # the last one spends the CPU time that attention costs on more steps instead
    for way, epochs in (("additive", 2), ("dot", 2), ("none", 2), ("none", 4)):
        for seed in SEEDS:
            lines.append(one(way, seed, (1, 4), epochs, each=500))
            print(lines[-1], flush=True)
    return {"config": DATES, "single": single, "lines": lines}


def bands(record: dict[str, Any]) -> None:
    """Check what pages 1 and 1b say of each way, for every seed."""
    assert record["config"] == DATES
    for run in record["lines"]:
        if run["way"] == "none":  # one vector
            assert run["exact"]["4"] < 0.5 * run["exact"]["1"]
        elif run["way"] == "additive":
            assert min(run["exact"].values()) >= 0.998
    least = {"additive": 0.999, "location-sensitive": 1.0, "none": 0.0}
    for run in record["single"]:
        way, share = run["way"], run["exact"]["1"]
        assert share >= least.get(way, 0.995 if way.startswith("additive") else 0.0)
        assert share < 0.94 or way != "none"
