"""annotated/memory.py: what is predicted is what PyTorch counts."""

import math
from dataclasses import replace

import pytest
import torch

from annotated.chapters.ch18.large import with_checkpoints
from annotated.gpt import GPT, GPTConfig, next_token_loss
from annotated.gpt2 import SIZES
from annotated.memory import (
    PRECISIONS,
    MemoryUse,
    kept_activations,
    kept_bytes,
    largest_batch,
    memory_timeline,
    profiled_bytes,
    training_memory,
)

# no two sizes are alike
TINY = GPTConfig(31, d_model=14, heads=7, layers=3, d_ff=11, max_len=13)
BATCH, LENGTH = 3, 5


class Run:
    """A model that is trained as it was predicted."""

    def __init__(self, config, batch, length, **options):
        torch.manual_seed(0)
        self.model, self.options = GPT(config), options
        if options.get("precision") == "bfloat16":
            self.model.bfloat16()
        if options.get("checkpointed"):
            with_checkpoints(self.model)
        kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
        self.optimizer = kind[options.get("optimizer", "adam")](
            self.model.parameters(), foreach=options.get("foreach", False)
        )
        tokens = torch.randint(config.vocab_size, (batch, length + 1))
        self.batch = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
        self.forward()

    def forward(self):
        mixed = self.options.get("precision") == "mixed"
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            self.loss = next_token_loss(self.model, self.batch)

    def backward(self):
        self.loss.backward()
        del self.loss

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad()

    def step(self):
        self.forward()
        self.backward()
        self.update()


@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh"])
def test_what_autograd_keeps_is_predicted_to_the_byte(
    activation, precision, checkpointed
):
    config = replace(TINY, activation=activation)
    options = {"precision": precision, "checkpointed": checkpointed}
    run = Run(config, BATCH, LENGTH, **options)
    counted = kept_bytes(run.model, run.forward)
    moments = memory_timeline(config, BATCH, LENGTH, **options)
    assert counted == moments["loss"].activations == moments["logits"].activations
    if not checkpointed:
        parts = kept_activations(config, BATCH, LENGTH, precision)
        assert counted == sum(parts.values()) + 2 * parts["block"]


def test_a_storage_that_is_kept_twice_counts_once():
    x = torch.randn(5, requires_grad=True)
    layer = torch.nn.Linear(5, 5)
    assert kept_bytes(layer, lambda: layer(x)) == 20  # its input, and no weights
    assert kept_bytes(layer, lambda: (y := x.exp()) * y.view(5)) == 20
    assert kept_bytes(layer, lambda: x.exp() + x.cos()) == 40


def test_every_work_has_its_own_bytes():
    kept = []
    first, second = profiled_bytes(
        lambda: kept.append(torch.ones(1000)),
        lambda: kept.append(torch.ones(2000).exp()),
    )
    assert first == [4000] and second == [12000, 20000, 12000]


WIDE = GPTConfig(96, d_model=64, heads=4, layers=3, d_ff=256, max_len=64)
LOGITS = replace(WIDE, vocab_size=1024, activation="gelu_tanh")
HEAVY = GPTConfig(2000, d_model=128, heads=8, layers=3, d_ff=512, max_len=32)
# where it is fullest, for each of them
CASES = [
    (WIDE, 16, 64, {}, "block 3, backward"),
    (WIDE, 16, 64, {"checkpointed": True}, "block 3, backward"),
    (WIDE, 16, 64, {"precision": "mixed"}, "loss"),
    (WIDE, 16, 64, {"precision": "bfloat16"}, "block 3, backward"),
    (WIDE, 16, 64, {"optimizer": "sgd"}, "block 3, backward"),
    (LOGITS, 16, 64, {}, "loss"),
    (LOGITS, 16, 64, {"checkpointed": True}, "loss"),
    (LOGITS, 16, 64, {"accumulating": True}, "loss"),
    (LOGITS, 16, 64, {"precision": "mixed", "checkpointed": True}, "loss"),
    (HEAVY, 2, 32, {}, "embedding"),
    (HEAVY, 2, 32, {"precision": "bfloat16"}, "embedding"),
    (HEAVY, 2, 32, {"optimizer": "sgd"}, "embedding"),
    (HEAVY, 2, 32, {"foreach": True}, "update"),
    (replace(HEAVY, vocab_size=96, layers=6), 4, 32, {"checkpointed": True},
     "block 1, backward"),
    (replace(HEAVY, vocab_size=500, layers=6, max_len=128), 8, 128,
     {"checkpointed": True, "precision": "mixed"}, "logits"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "batch", "length", "options", "fullest"), CASES)
def test_the_peak_is_what_the_profiler_sees(config, batch, length, options, fullest):
    run = Run(config, batch, length, **options)
    moments = memory_timeline(config, batch, length, **options)
    if not options.get("accumulating"):
        run.backward()
        run.update()
    before = moments["loss"]
    held = before.parameters + before.gradients + before.optimizer
    held += 2 * 8 * batch * length  # ids and targets
    run.forward()
    if options.get("accumulating"):
        run.backward()
        run.forward()
    del run.loss
    (seen,) = profiled_bytes(run.step)
    predicted = training_memory(config, batch, length, **options)
    print({name: use.total for name, use in moments.items()}, held + max(seen))
    # a processor without bfloat16 multiplies copies
    room = 0.1 if options.get("precision") == "bfloat16" else 0.05
    assert predicted.total == pytest.approx(held + max(seen), rel=room)
    assert predicted == moments[fullest]


def test_moments_follow_the_profiler():
    """Each moment is as full as it was predicted, not only the fullest."""
    run = Run(LOGITS, 16, 64)
    run.backward()
    run.update()
    forward, backward, update = profiled_bytes(run.forward, run.backward, run.update)
    moments = memory_timeline(LOGITS, 16, 64)
    held = moments["loss"].parameters + moments["loss"].optimizer + 2 * 8 * 16 * 64
    for seen, names in (
        (forward, ["logits"]), (backward, ["loss"]), (update, ["update"])
    ):  # fmt: skip
        for name in names:
            assert moments[name].total == pytest.approx(held + max(seen), rel=0.01)
    assert [*moments] == [
        *(f"block {i}, forward" for i in (1, 2, 3)), "logits", "loss",
        *(f"block {i}, backward" for i in (3, 2, 1)), "embedding", "update",
    ]  # fmt: skip
    falling = [use.total for name, use in moments.items() if "backward" in name]
    assert falling == sorted(falling, reverse=True)
    after = moments["block 1, forward"]
    assert after.activations - after.temporary < max(forward) / 3


def test_parameters_gradients_and_adam_take_16_bytes_each():
    number = sum(p.numel() for p in GPT(TINY).parameters())
    last = memory_timeline(TINY, 1, 1)["update"]
    assert last[:3] == (4 * number, 4 * number, 8 * number)
    mixed = memory_timeline(TINY, 1, 1, precision="mixed")["update"]
    assert sum(mixed[:3]) == 16 * number
    half = memory_timeline(TINY, 1, 1, precision="bfloat16", optimizer="sgd")["update"]
    assert half == MemoryUse(2 * number, 2 * number, 0, 0, 0)
    begun = memory_timeline(TINY, 1, 1, accumulating=True)
    assert all(use.gradients == 4 * number for use in begun.values())


def test_who_holds_what():
    def parts(stage):
        options = {"shards": 8, "stage": stage}
        return memory_timeline(SIZES["small"], 1, 1024, **options)["update"][:3]

    weights = 4 * 124_439_808
    assert parts(0) == (weights, weights, 2 * weights)
    assert parts(1) == (weights, weights, weights // 4)
    assert parts(2) == (weights, weights // 8, weights // 4)
    assert parts(3) == (weights // 8, weights // 8, weights // 4)
    for foreach, whole in ((True, weights), (False, 8 * 768 * 50_257)):
        for stage, shards in ((0, 1), (1, 8), (3, 8)):  # each updates its own share
            options = {"foreach": foreach, "shards": 8, "stage": stage}
            last = memory_timeline(SIZES["small"], 1, 1024, **options)["update"]
            assert last.temporary == whole // shards
    uneven = memory_timeline(TINY, 1, 1, shards=7, stage=3)["update"]
    assert uneven.parameters == -(-memory_timeline(TINY, 1, 1)["update"][0] // 7)


def test_the_largest_batch_that_fits():
    options = {"checkpointed": True, "foreach": True}
    config = replace(TINY, max_len=64)
    for batch in (1, 2, 3, 16, 37):
        room = training_memory(config, batch, 64, **options).total
        assert largest_batch(config, 64, room, **options) == batch
        assert largest_batch(config, 64, room - 1, **options) == batch - 1
    for room in (math.inf, math.nan):
        with pytest.raises(ValueError, match="room must be a number"):
            largest_batch(config, 64, room)


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"dropout": 0.1}, {}, "dropout"),
        ({"activation": "swiglu"}, {}, "activation"),
        ({"kv_heads": 1}, {}, "kv_heads"),
        ({"bias": False}, {}, "bias"),
        ({}, {"length": 14}, "length must be at most max_len"),
        ({}, {"precision": "float16"}, "precision"),
        ({}, {"optimizer": "muon"}, "optimizer"),
        ({}, {"shards": 0}, "shards"),
        ({}, {"stage": 4}, "stage"),
        ({}, {"batch": 0}, "batch"),
    ],
)
def test_what_was_not_verified_is_refused(changes, options, message):
    with pytest.raises(ValueError, match=message):
        training_memory(replace(TINY, **changes), **{"batch": 2, "length": 3} | options)
    if changes:
        with pytest.raises(ValueError, match=message):
            kept_activations(replace(TINY, **changes), 2, 3)
