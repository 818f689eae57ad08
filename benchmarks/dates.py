"""Chapter 01: reading dates, by way of attending, over three seeds."""

import hashlib
import math
import time
from typing import Any

import torch

from annotated.data import Vocabulary, batches, date_pairs
from annotated.recipes import DATES, one_cycle
from annotated.recurrent_attention import (
    AdditiveAttention,
    DotAttention,
    LocationSensitiveAttention,
)
from annotated.seq2seq import (
    AttentionDecoder,
    RNNEncoder,
    Seq2Seq,
    exact_matches,
    teacher_forcing_loss,
)
from annotated.training import fit

SEEDS = (0, 1, 2)
# name: (attention, which state asks, width of a query beyond the state)
WAYS = {
    "none": (None, "previous"),
    "additive": (AdditiveAttention, "previous"),
    "additive, current state": (AdditiveAttention, "current"),
    "additive, state and output": (AdditiveAttention, "previous+output"),
    "dot": (None, "previous"),
    "general": (DotAttention, "previous"),
    "location-sensitive": (LocationSensitiveAttention, "previous"),
}


def build(way: str, source: Vocabulary, target: Vocabulary) -> Seq2Seq:
    """Return the untrained model of a way of attending."""
    embedding, hidden = DATES["embedding"], DATES["hidden"]
    memory = 2 * hidden
    kind, query = WAYS[way]
    size = hidden + (embedding if query == "previous+output" else 0)
    if way == "dot":
        # a plain dot product needs a state as wide as an annotation
        attention, state = DotAttention(), memory
    else:
        state = hidden
        attention = None
        if kind is DotAttention:
            attention = kind(size, memory)
        elif kind is not None:
            attention = kind(size, memory, hidden)
    encoder = RNNEncoder(len(source), embedding, hidden)
    decoder = AttentionDecoder(len(target), embedding, state, memory, attention, query)
    return Seq2Seq(encoder, decoder)


def one(
    way: str, seed: int, dates: tuple[int, int], epochs: int = 1, each: int = 2000
) -> dict[str, Any]:
    """Train one model; test it on unseen dates, by the number of dates in a line."""
    train = date_pairs(DATES["pairs"], "train", seed, dates=dates)
    tests = {
        count: date_pairs(each, "test", seed, dates=(count, count))
        for count in range(dates[0], dates[1] + 1)
    }
    source = Vocabulary("".join(text for text, _ in train))
    target = Vocabulary("0123456789- ")
    torch.manual_seed(seed)
    model = build(way, source, target)
    steps = epochs * math.ceil(len(train) / DATES["batch"])
    optimizer, schedule = one_cycle(model, DATES["rate"], steps)
    training = (
        batch
        for epoch in range(epochs)
        for batch in batches(train, source, target, DATES["batch"], seed + epoch)
    )
    history = fit(
        model,
        teacher_forcing_loss,
        training,
        optimizer,
        schedule=schedule,
        clip=DATES["clip"],
    )
    began = time.process_time()
    exact = {
        str(count): exact_matches(model, batches(test, source, target, 250))
        .double()
        .mean()
        .item()
        for count, test in tests.items()
    }
    return {
        "way": way,
        "seed": seed,
        "dates": list(dates),
        "steps": steps,
        "parameters": sum(p.numel() for p in model.parameters()),
        "final_loss": sum(r["loss"] for r in history[-20:]) / 20,
        "cpu_seconds": history[-1]["cpu_seconds"],
        "test_cpu_seconds": time.process_time() - began,
        "tested": each,
        "exact": exact,
        "data_sha256": hashlib.sha256(repr(train).encode()).hexdigest(),
    }


def run() -> dict[str, Any]:
    """Run all ways on single dates, and three ways on lines of one to four."""
    single = []
    for way in WAYS:
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
