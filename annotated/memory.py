"""Where the memory of a training step goes: predicted from a config, and measured.

For a GPT-2 without dropout, whose attention is the fused kernel. Letters: b batch, t
length, d model width, v vocabulary, h heads (``book/notation.md``).
"""

import math
from bisect import bisect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.profiler import ProfilerActivity, profile, record_function

from annotated import require
from annotated.gpt import GPTConfig
from annotated.gpt2 import count_parameters, require_gpt2

#: bytes of a number of the stream, and of a product. "mixed" is ``torch.autocast`` to
#: bfloat16, whose weights stay in single precision; "bfloat16" has nothing else
PRECISIONS = {"float32": (4, 4), "mixed": (4, 2), "bfloat16": (2, 2)}
#: numbers that an optimiser keeps of each parameter; AdamW is as Adam
OPTIMIZERS = {"adam": 2, "sgd": 0}
# tensors of the inner width that a network's backward pass needs: what enters a GELU
# and what leaves it; of a ReLU, one is enough
INNER = {"relu": 1, "gelu": 2, "gelu_tanh": 2}


class MemoryUse(NamedTuple):
    """Bytes in use at one moment, by what they are for."""

    parameters: int  #: the weights themselves
    gradients: int  #: of the parameters
    optimizer: int  #: what it keeps from step to step
    activations: int  #: what the backward pass will need
    temporary: int  #: gone soon after

    @property
    def total(self) -> int:
        """Return all of it."""
        return sum(self)


def kept_activations(
    config: GPTConfig, batch: int, length: int, precision: str = "float32"
) -> dict[str, int]:
    """Return the bytes that autograd keeps of a forward pass, by part of the model.

    Args:
        config: of a GPT-2, without dropout.
        batch: number b of sequences.
        length: number t of tokens in each.
        precision: one of ``PRECISIONS``.

    Returns:
        "embedding", "block" (each of them) and "output", the loss included.
    """
    require_gpt2(config)
    require.count(batch=batch, length=length)
    require.at_most(length=length, max_len=config.max_len)
    require.choice([0.0], dropout=config.dropout)
    require.choice(PRECISIONS, precision=precision)
    wide, narrow = PRECISIONS[precision]
    mixed = wide > narrow  # then autocast makes copies, of inputs and of weights
    tokens, d = batch * length, config.d_model
    inner, logits = tokens * config.d_ff, tokens * config.vocab_size
    stream = tokens * d
    norm = wide * (stream + 2 * tokens)  # its input, a mean and a deviation each
    reads = narrow * stream * (3 if mixed else 1)  # what q, k and v are made from
    heads = narrow * 4 * stream  # queries, keys, values, and what attention gives
    sums = 4 * tokens * config.heads  # of the softmax, their logarithms
    network = narrow * (stream + INNER[config.activation] * inner)
    copies = _copies(config) if mixed else 0
    table = narrow * d * config.vocab_size if mixed else 0
    return {
        "embedding": 8 * tokens,  # the ids
        "block": 2 * norm + reads + heads + sums + network + copies,
        # log-probabilities, targets, and by how much the loss was divided
        "output": norm + narrow * stream + table + wide * (logits + 1) + 8 * tokens,
    }


def _copies(config: GPTConfig) -> int:
    """Return the bytes of a block's matrices in bfloat16."""
    return 2 * (4 * config.d_model**2 + 2 * config.d_model * config.d_ff)


def memory_timeline(
    config: GPTConfig,
    batch: int,
    length: int,
    *,
    precision: str = "float32",
    checkpointed: bool = False,
    optimizer: str = "adam",
    accumulating: bool = False,
    foreach: bool = False,
    shards: int = 1,
    stage: int = 0,
) -> dict[str, MemoryUse]:
    """Return the bytes in use in a training step, moment by moment.

    Gradients are made anew in each step: before the backward pass there are none.

    Arguments as :func:`kept_activations`.

    Args:
        batch: sequences in each process.
        length: tokens in each.
        checkpointed: whether of each block only the input is kept, and the rest
            computed again when the backward pass comes by.
        optimizer: one of ``OPTIMIZERS``.
        accumulating: whether gradients of an earlier batch are still there.
        foreach: whether the update takes all parameters at once, as it does on a GPU.
        shards: number of processes that share what ``stage`` says.
        stage: of ZeRO (Rajbhandari et al., 2020): 1 shares what the optimiser keeps, 2
            gradients too, 3 parameters too. The block that is gathered for a moment
            isn't counted.

    Returns:
        Moments in their order: "block 1, forward", …, "logits", "loss" (where its
        backward pass begins), "block n, backward", …, "embedding" (where it ends) and
        "update".
    """
    kept = kept_activations(config, batch, length, precision)
    require.choice(OPTIMIZERS, optimizer=optimizer)
    require.count(shards=shards)
    require.count(0, 3, stage=stage)
    c, (wide, narrow) = config, PRECISIONS[precision]
    mixed, blocks = wide > narrow, range(1, c.layers + 1)
    entry, logits = (wide * batch * length * n for n in (c.d_model, c.vocab_size))
    inner = narrow * batch * length * c.d_ff
    table = wide * c.vocab_size * c.d_model
    weights = wide * count_parameters(c)
    one, two = (count_parameters(replace(c, layers=n)) for n in (1, 2))
    block = wide * (two - one)
    states = OPTIMIZERS[optimizer] * weights

    def moment(gradients: int, activations: int, temporary: int) -> MemoryUse:
        shared = [weights, weights if accumulating else gradients, states]
        for i, first in enumerate((3, 2, 1)):  # the stage that shares it
            if stage >= first:
                shared[i] = -(-shared[i] // shards)
        return MemoryUse(*shared, activations, temporary)

    held = entry if checkpointed else kept["block"]
    moments = {}
    for i in blocks:
        use = kept["embedding"] + i * held
        moments[f"block {i}, forward"] = moment(0, use, entry)
    use += kept["output"]
    extra = logits
    if mixed:  # in both precisions, and copies of weights stay until autocast ends
        extra += logits // 2 + (c.layers * _copies(c) if checkpointed else 0)
    moments["logits"] = moment(0, use, extra)
    moments["loss"] = moment(0, use, 2 * logits)
    for i in reversed(blocks):
        use = kept["embedding"] + (i - 1) * held + kept["block"]
        use -= (INNER[c.activation] - 1) * inner  # what left the GELU has gone
        gradients = weights - i * block
        moments[f"block {i}, backward"] = moment(gradients, use, entry + 2 * inner)
    # the table's gradient as output, as input, and their sum
    moments["embedding"] = moment(weights, kept["embedding"], 2 * table)
    whole = weights if foreach else 2 * table
    if stage:  # each process updates its own share
        whole = -(-whole // shards)
    update = whole if OPTIMIZERS[optimizer] else 0
    moments["update"] = moment(weights, 0, update)
    return moments


def training_memory(
    config: GPTConfig, batch: int, length: int, **options: Any
) -> MemoryUse:
    """Return the bytes in use at the fullest moment of a training step.

    Arguments as :func:`memory_timeline`.

    Args:
        options: as there.
    """
    moments = memory_timeline(config, batch, length, **options)
    return max(moments.values(), key=lambda use: use.total)


def largest_batch(config: GPTConfig, length: int, room: float, **options: Any) -> int:
    """Return how many sequences fit into a batch; 0 if not even one does.

    Arguments as :func:`memory_timeline`.

    Args:
        room: bytes that there are.
        options: as there.
    """
    require.positive(room=room)
    one, two = (memory_timeline(config, n, length, **options) for n in (1, 2))
    most = math.inf
    for first, second in zip(one.values(), two.values(), strict=True):
        left, each = room - first.total, second.total - first.total
        if left < 0:
            return 0
        if each:  # every moment grows by as much with each sequence
            most = min(most, 1 + left // each)
    return int(most)


def kept_bytes(model: nn.Module, loss: Callable[[], Any]) -> int:
    """Return how many bytes autograd keeps of a forward pass, counted.

    Parameters, which are there anyway, don't count, and a storage that is kept several
    times counts once.

    Args:
        model: whose parameters they are.
        loss: makes the forward pass.
    """
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def keep(x: torch.Tensor) -> torch.Tensor:
        kept[x.untyped_storage().data_ptr()] = x  # alive, so that no address returns
        return x

    with saved_tensors_hooks(keep, lambda x: x):
        loss()
    storages = (x.untyped_storage() for at, x in kept.items() if at not in own)
    return sum(storage.nbytes() for storage in storages)


def profiled_bytes(*works: Callable[[], Any]) -> list[list[int]]:
    """Return how many bytes PyTorch holds after each time it takes some or frees some.

    The profiler's count, on a CPU, of what was asked for since the first work began;
    what the operating system gives for it may be more.

    Args:
        works: what to run, one after the other.

    Returns:
        A list for each of them.
    """
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        for work in works:
            with record_function("a work begins"):
                work()
    changes, begins = [], []
    waiting = list(seen.profiler.kineto_results.experimental_event_tree())
    while waiting:
        event = waiting.pop()
        waiting += event.children
        if event.name == "a work begins":
            begins.append(event.start_time_ns)
        elif event.name == "[memory]":
            changes.append((event.start_time_ns, event.typed[1].alloc_size))
    held = [[] for _ in works]
    total = 0
    for when, size in sorted(changes):
        total += size
        held[bisect(sorted(begins), when) - 1].append(total)
    return held
