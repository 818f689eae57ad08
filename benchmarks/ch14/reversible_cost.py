"""Chapter 14: what depth costs in memory and time, stored, checkpointed, reversible.

A stack of blocks reads one sequence, forward and backward. "stored" calls the blocks of
the reversible stack one by one, "checkpointed" puts a checkpoint at each block; all
three compute the same. Peers, with LSH attention of one round (chunks of 64), have ours
beside them with the same: reformer-pytorch, which can store instead
(``reverse_thres``), and transformers, which can't. ``make bench NAME=reversible_cost``
installs both.

Memory is the peak of a fresh process (``benchmarks/memory.py``); what a layer takes is
the slope between two depths, its parameters and their gradients included. Times are CPU
seconds, all in turn, and the medians and quartiles of the rounds' ratios.

Expected: with full attention reversible takes 4/3 of the time of stored, as the
backward pass of a product costs two products, and more with LSH attention, whose sorts
have no backward pass.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from annotated.chapters.ch14.reversible import STACKS, layers
from annotated.reformer import LSHSelfAttention
from benchmarks.memory import peak

LENGTH, D, HEADS, D_FF, CHUNK = 2048, 256, 4, 1024, 64
DEPTHS, PEERS_DEPTHS, DEPTH, ROUNDS = (1, 2, 4, 8, 16), (2, 8), 16, 3
Work = Callable[[], Any]


def ours(
    way: str, depth: int, lsh: bool = False, dropout: float = 0.0, length: int = LENGTH
) -> Work:
    """Return a forward and backward pass of our stack, after a short one."""
    torch.manual_seed(0)
    attention = partial(LSHSelfAttention, D, HEADS, CHUNK, rounds=1, causal=True)
    stack = layers(depth, D, HEADS, D_FF, dropout, attention if lsh else None)
    return _work(lambda x: sum(STACKS[way](stack, x, x)), stack, length)


def lucidrains(reverse: bool, depth: int) -> Work:
    """Return the same of reformer-pytorch's stack."""
    from reformer_pytorch import Reformer

    torch.manual_seed(0)
    options = {"bucket_size": CHUNK, "n_hashes": 1, "causal": True}
    threshold = 0 if reverse else 10**9
    model = Reformer(D, depth, heads=HEADS, reverse_thres=threshold, **options)
    return _work(model, model, LENGTH)


def hugging_face(depth: int) -> Work:
    """Return the same of transformers' stack."""
    from transformers import ReformerConfig
    from transformers.models.reformer.modeling_reformer import ReformerEncoder

    torch.manual_seed(0)
    config = ReformerConfig(
        attn_layers=["lsh"] * depth,
        hidden_size=D,
        num_attention_heads=HEADS,
        attention_head_size=D // HEADS,
        feed_forward_size=D_FF,
        num_hashes=1,
        num_buckets=2 * LENGTH // CHUNK,
        lsh_attn_chunk_length=CHUNK,
        is_decoder=True,
        hidden_dropout_prob=0.0,
        max_position_embeddings=LENGTH,
    )
    model = ReformerEncoder(config).train()
    return _work(lambda x: model(hidden_states=x)[0], model, LENGTH)


def _work(run: Callable[[Tensor], Tensor], model: torch.nn.Module, length: int) -> Work:
    def work(length: int = length) -> None:
        model.zero_grad()
        # reformer-pytorch wants an input with gradient; all get one
        run(torch.randn(1, length, D, requires_grad=True)).sum().backward()

    work(4 * CHUNK)
    model.zero_grad()
    return work


CONTENDERS: dict[str, tuple[Callable[..., Work], dict[str, Any]]] = {
    "stored": (ours, {"way": "stored"}),
    "checkpointed": (ours, {"way": "checkpointed"}),
    "reversible": (ours, {"way": "reversible"}),
}
WITH_LSH: dict[str, tuple[Callable[..., Work], dict[str, Any]]] = {
    "stored": (ours, {"way": "stored", "lsh": True}),
    "reversible": (ours, {"way": "reversible", "lsh": True}),
    "reformer-pytorch, stored": (lucidrains, {"reverse": False}),
    "reformer-pytorch, reversible": (lucidrains, {"reverse": True}),
    "transformers": (hugging_face, {}),
}


def memory() -> dict[str, Any]:
    """Return the peaks by depth, in turn, and how far the same peak varies."""
    runs = []
    for table, depths in ((CONTENDERS, DEPTHS), (WITH_LSH, PEERS_DEPTHS)):
        kind = "LSH attention" if table is WITH_LSH else "full attention"
        for depth in depths:
            for name, (make, options) in table.items():
                megabytes = peak(make, depth=depth, **options)
                runs.append({"attention": kind, "way": name, "depth": depth})
                runs[-1]["MB"] = round(megabytes, 2)
                print(runs[-1], flush=True)
    slopes = {}
    for kind, name in {(run["attention"], run["way"]): 0 for run in runs}:
        mine = [r for r in runs if (r["attention"], r["way"]) == (kind, name)]
        first, last = mine[-2], mine[-1]
        slope = (last["MB"] - first["MB"]) / (last["depth"] - first["depth"])
        slopes[f"{kind}: {name}"] = round(slope, 2)
    again = [peak(ours, way="reversible", depth=4) for _ in range(3)]
    return {"peaks": runs, "MB per layer": slopes, "one peak three times": again}


def seconds(table: dict, rounds: int = ROUNDS) -> dict[str, Any]:
    """Return CPU seconds at depth 16, all in turn, and ratios to what stores."""
    works = {name: make(depth=DEPTH, **more) for name, (make, more) in table.items()}
    times = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            began = time.process_time()
            work()
            times[name].append(time.process_time() - began)
    result = {name: _quartiles(of_name) for name, of_name in times.items()}
    ratios = {}
    for name in works:
        peer = name.startswith("reformer-pytorch")
        other = times["reformer-pytorch, stored" if peer else "stored"]
        pairs = zip(times[name], other, strict=True)
        ratios[name] = _quartiles([one / stored for one, stored in pairs])
    print(ratios, flush=True)
    return {"seconds": result, "ratios to stored": ratios}


def _quartiles(numbers: list[float]) -> list[float]:
    low, middle, high = statistics.quantiles(numbers, n=4, method="inclusive")
    return [round(number, 3) for number in (low, middle, high)]


def gradients(dtype: torch.dtype, depth: int = DEPTH) -> dict[str, float]:
    """Return how far the gradients are from those of what stores, relative."""
    torch.manual_seed(0)
    stack = layers(depth, D, HEADS, D_FF, dropout=0.1).to(dtype)
    x = torch.randn(1, LENGTH // 4, D, dtype=dtype)
    weights = torch.randn_like(x)
    found = {}
    for way in ("stored", "reversible"):
        torch.manual_seed(1)
        y1, y2 = STACKS[way](stack, x, x)
        loss = (y1 * weights).sum() + y2.square().sum()
        parts = torch.autograd.grad(loss, list(stack.parameters()))
        found[way] = torch.cat([part.flatten() for part in parts]).double()
    apart = found["reversible"] - found["stored"]
    return {"relative error": (apart.norm() / found["stored"].norm()).item()}


def run() -> dict[str, Any]:
    import reformer_pytorch  # noqa: F401
    import transformers

    config = {"length": LENGTH, "d_model": D, "heads": HEADS, "d_ff": D_FF}
    return {
        "config": config,
        "peers": {
            "reformer-pytorch": "1.4.4",
            "transformers": transformers.__version__,
        },
        "gradients": {
            str(dtype): gradients(dtype) for dtype in (torch.float64, torch.float32)
        },
        "memory": memory(),
        "time, depth 16": {
            "full attention": seconds(CONTENDERS),
            "LSH attention": seconds(WITH_LSH),
        },
    }


def bands(record: dict[str, Any]) -> None:
    """Check the bands that held, and what page 14c says of other Reformers."""
    slopes, timing = record["memory"]["MB per layer"], record["time, depth 16"]
    stored, checkpointed, reversible = (
        slopes[f"full attention: {way}"]
        for way in ("stored", "checkpointed", "reversible")
    )
    assert stored > 20 and reversible < stored / 4 and checkpointed < 15
    # the page: little more than the gradients of its weights
    assert 3.15 < reversible < 3.3
    forgetting = ("reversible", "reformer-pytorch, reversible", "transformers")
    assert all(slopes[f"LSH attention: {way}"] < 4 for way in forgetting)
    ratios = {
        name: each["ratios to stored"]["reversible"][1] for name, each in timing.items()
    }
    assert 1.2 < ratios["full attention"] < 1.36
    assert 1.25 < ratios["LSH attention"] < 1.42
    seconds = {way: timing["LSH attention"]["seconds"][way][1] for way in forgetting}
    assert min(seconds, key=seconds.get) == "reversible"
