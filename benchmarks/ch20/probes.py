"""Chapter 20: which fault is found by which probe, and whether a sound model alarms.

Every fault of the corpus, and sound models: of this book, of PyTorch, and, with random
weights, of `transformers` (``make bench NAME=probes`` installs it). All probes are
asked, with what the model's row tells them. CPU seconds are of one thread. Memory is
what a process of its own had at most, above what it had with the model loaded, and that
of a forward pass of the same tokens that keeps what a backward pass needs.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from annotated import probes
from annotated.chapters.ch20 import faults, sound
from annotated.gpt import GPT, GPTConfig

MEMORY = {"vocab_size": 256, "d_model": 256, "heads": 4, "layers": 4, "d_ff": 1024}
ROWS, LENGTH = 8, 64


def ask(make: Callable[[], sound.Case]) -> dict[str, Any]:
    """Ask all probes, and return what they say, and their CPU seconds."""
    f, tokens, told = make()
    began = time.process_time()
    report = probes.probe(f, tokens, **told)
    seconds = round(time.process_time() - began, 2)
    states = {one.name: one.state for one in report.outcomes}
    said = {one.name: one.said for one in report.failures}
    return {"seconds": seconds, "states": states, "said": said}


def peers() -> dict[str, Callable[[], sound.Case]]:
    """Return the models of `transformers`, which must be installed."""
    import transformers

    transformers.logging.set_verbosity_error()
    return {name: partial(sound.peer, name) for name in sound.PEERS}


def peak() -> int:
    """Return the most bytes that this process ever had in memory (Linux)."""
    with open("/proc/self/status", encoding="utf-8") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def memory() -> dict[str, int]:
    """Return bytes that a forward pass and all probes take beside the model."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = GPT(GPTConfig(**MEMORY, max_len=LENGTH))
    tokens = torch.randint(256, (ROWS, LENGTH))
    model(tokens[:1, :4]).sum().backward()  # loads what it needs
    model.zero_grad()
    before = peak()
    logits = model(tokens)
    forward = peak() - before
    del logits
    probes.probe(model, tokens)
    return {"forward": forward, "probes": peak() - before}


def run() -> dict[str, Any]:
    corpus = vars(faults)["FAULTS"]  # the module as a whole: each class is a row
    found, passed = [], []
    for row in corpus.values():
        found.append({"name": row.name, "family": row.family, "what": row.what})
        found[-1] |= {"report": row.report} | ask(row.make)
        print(row.family, row.name, sorted(found[-1]["said"]), flush=True)
    for name, make in (sound.ours() | peers()).items():
        passed.append({"name": name} | ask(make))
        print(name, sorted(passed[-1]["said"]), passed[-1]["seconds"], flush=True)
    code = "import json; from benchmarks.ch20.probes import memory; "
    child = [sys.executable, "-c", code + "print(json.dumps(memory()))"]
    bytes_ = subprocess.run(child, capture_output=True, text=True, check=True).stdout
    return {"faults": found, "sound": passed, "memory": json.loads(bytes_)}


def bands(record: dict[str, Any]) -> None:
    hits: dict[str, list[bool]] = {}
    for row in record["faults"]:
        hits.setdefault(row["family"], []).append(row["family"] in row["said"])
    every = [hit for family in hits.values() for hit in family]
    assert len(every) >= 80 and sum(every) >= 0.95 * len(every)
    assert all(sum(family) >= 0.9 * len(family) for family in hits.values())
    assert len(record["sound"]) >= 30
    assert not any(row["said"] for row in record["sound"])
    assert max(row["seconds"] for row in record["sound"]) < 10
    assert record["memory"]["probes"] < 3 * record["memory"]["forward"]
