"""Chapter 18: the memory of a training step, predicted from the config and measured.

A process makes a GPT-2 and its optimiser, and trains it for two steps on one thread.
"counted" is the peak by PyTorch's profiler, "resident" how far the process's resident
memory rose (``benchmarks/memory.py``), libraries' scratch space included. Three models,
each in single precision, with checkpointed blocks and with ``torch.autocast``; a small
one besides in bfloat16 alone, with SGD, and with two batches for an update. A timeline
holds the profiler's count through the second step of one of them.
"""

from collections.abc import Callable
from dataclasses import asdict, replace
from math import isclose
from typing import Any

import torch

from annotated.chapters.ch18.large import with_checkpoints
from annotated.gpt import GPT, GPTConfig, next_token_loss
from annotated.gpt2 import SIZES
from annotated.memory import memory_timeline, profiled_bytes, training_memory
from benchmarks.memory import peak

_SHAPE = {"d_model": 256, "heads": 4, "layers": 6, "d_ff": 1024, "max_len": 256}
#: a model, sequences in a batch, tokens in each
MODELS: dict[str, tuple[GPTConfig, int, int]] = {
    "characters": (GPTConfig(96, **_SHAPE, activation="gelu_tanh"), 16, 256),
    "tokens": (GPTConfig(8192, **_SHAPE, activation="gelu_tanh"), 8, 256),
    "GPT-2 small": (SIZES["small"], 1, 1024),
}
OPTIONS: list[dict[str, Any]] = [{}, {"checkpointed": True}, {"precision": "mixed"}]
MORE: list[dict[str, Any]] = [
    {"precision": "mixed", "checkpointed": True},
    {"precision": "bfloat16"},
    {"optimizer": "sgd"},
    {"accumulating": True},
]


class Training:
    """A model, what trains it and a batch; each step is several works."""

    def __init__(self, config: GPTConfig, batch: int, length: int, **options: Any):
        torch.manual_seed(0)
        self.options = options
        self.model = GPT(config)
        if options.get("precision") == "bfloat16":
            self.model.bfloat16()
        if options.get("checkpointed"):
            with_checkpoints(self.model)
        kind = torch.optim.SGD if "optimizer" in options else torch.optim.Adam
        self.optimizer = kind(self.model.parameters(), lr=1e-4)
        tokens = torch.randint(config.vocab_size, (batch, length + 1))
        self.batch = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def forward(self) -> None:
        mixed = self.options.get("precision") == "mixed"
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            self.loss = next_token_loss(self.model, self.batch)

    def backward(self) -> None:
        self.loss.backward()
        del self.loss

    def update(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()

    def step(self) -> None:
        for _ in range(2 if self.options.get("accumulating") else 1):
            self.forward()
            self.backward()
        self.update()


def training(name: str, **options: Any) -> Callable[[], None]:
    """Return two steps of a model of ``MODELS``, after two of a tiny one."""
    tiny = Training(replace(MODELS["characters"][0], layers=1), 1, 8, **options)
    for _ in range(2):
        tiny.step()

    def work() -> None:
        large = Training(*MODELS[name], **options)
        large.step()
        large.step()

    return work


def timeline(name: str) -> dict[str, Any]:
    """Return what is held through the second step, with the parts of the prediction."""
    config, batch, length = MODELS[name]
    large = Training(config, batch, length)
    large.step()
    seen = profiled_bytes(large.forward, large.backward, large.update)
    moments = memory_timeline(config, batch, length)
    before = moments["loss"].parameters + moments["loss"].optimizer
    before += 16 * batch * length  # ids and targets
    names = ("forward", "backward", "update")
    return {
        "model": name,
        "held before": before,
        "seen": dict(zip(names, seen, strict=True)),
        "moments": {name: use._asdict() for name, use in moments.items()},
    }


def run() -> dict[str, Any]:
    rows = []
    for name, (config, batch, length) in MODELS.items():
        for options in OPTIONS + (MORE if name == "tokens" else []):
            predicted = training_memory(config, batch, length, **options)
            moments = memory_timeline(config, batch, length, **options)
            (seen,) = profiled_bytes(training(name, **options))
            rows.append({
                "model": name,
                "options": options,
                "moment": next(n for n, use in moments.items() if use == predicted),
                "predicted": predicted._asdict(),
                "total": predicted.total,
                "counted": max(seen),
                "resident": round(1e6 * peak(training, name=name, **options)),
            })  # fmt: skip
            row = rows[-1]
            row["off"] = {
                key: round(predicted.total / row[key] - 1, 4)
                for key in ("counted", "resident")
            }
            print(row, flush=True)
    worst = {
        key: max((row["off"][key] for row in rows), key=abs)
        for key in ("counted", "resident")
    }
    again = [peak(training, name="tokens") for _ in range(3)]
    return {
        "config": {
            name: {"config": asdict(config), "batch": batch, "length": length}
            for name, (config, batch, length) in MODELS.items()
        },
        "rows": rows,
        "worst": worst,
        "one resident peak three times, MB": again,
        "timeline": timeline("tokens"),
    }


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, and that its predictions are today's."""
    for row in record["rows"]:
        assert abs(row["total"] / row["counted"] - 1) < 0.05
        assert abs(row["total"] / row["resident"] - 1) < 0.1
        config, batch, length = MODELS[row["model"]]
        moments = memory_timeline(config, batch, length, **row["options"])
        assert moments[row["moment"]]._asdict() == row["predicted"]
    # the timeline agrees at both turning points and at the end of each phase
    told = record["timeline"]
    seen, moments = told["seen"], told["moments"]
    for phase, name in (("forward", "logits"), ("backward", "loss")):
        counted = told["held before"] + max(seen[phase])
        assert isclose(sum(moments[name].values()), counted, rel_tol=0.01)
    gradients = moments["update"]["gradients"]
    assert isclose(seen["backward"][-1], gradients, rel_tol=0.01)
    assert seen["update"][-1] == 0
