"""Chapter 18: what ``torch.compile`` changes. It needs a C++ compiler.

Numbers: the same model in float64 is the measure, and how far plain float32 lies from
it is the yardstick. Time: CPU seconds of forward and backward passes over 16 windows of
64, plain and compiled in turn, and of the first pass, which compiles. Recompiles: how
many graphs are compiled as batches of these lengths come along, one after another, with
``dynamic=None`` (the default) and ``dynamic=False``; the backend only counts them.
"""

import time
from statistics import median
from typing import Any

import torch

from annotated.chapters.ch18.large import LARGE_RECIPE, large_model
from annotated.data.text import CHARACTERS
from annotated.gpt import next_token_loss

LENGTHS = (64, 48, 57, 33, 64, 20, 48, 61)
REPEATS = 15


def draw(length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return random ids, and targets."""
    ids = torch.randint(len(CHARACTERS), (LARGE_RECIPE.batch, length + 1))
    return ids[:, :-1], ids[:, 1:]


def gradients(model: torch.nn.Module, batch: Any, run: Any) -> tuple:
    """Return logits and gradients, each as one long row."""
    model.zero_grad()
    next_token_loss(run, batch).backward()
    logits = run(batch[0]).detach().flatten()
    parts = [p.grad.flatten() for p in model.parameters()]
    return logits.double(), torch.cat(parts).double()


def compilations(dynamic: bool | None) -> list[int]:
    """Return how many graphs were compiled after each length."""
    count, model = [0], large_model()

    def backend(graph: Any, inputs: Any) -> Any:
        count[0] += 1
        return graph

    torch._dynamo.reset()
    compiled, seen = torch.compile(model, backend=backend, dynamic=dynamic), []
    with torch.no_grad():
        for length in LENGTHS:
            compiled(draw(length)[0])
            seen.append(count[0])
    return seen


def run() -> dict[str, Any]:
    torch.manual_seed(0)
    model, exact, batch = large_model(), large_model().double(), draw(64)
    began = time.perf_counter()
    compiled = torch.compile(model)
    found = gradients(model, batch, compiled)
    result: dict[str, Any] = {"first seconds": time.perf_counter() - began}
    plain, wide = gradients(model, batch, model), gradients(exact, batch, exact)
    names = ("logits", "gradient")
    for name, a, b, c in zip(names, plain, found, wide, strict=True):
        result[name] = {
            "plain to float64": ((a - c).norm() / c.norm()).item(),
            "compiled to float64": ((b - c).norm() / c.norm()).item(),
            "compiled to plain": ((b - a).norm() / a.norm()).item(),
            "numbers that differ": (a != b).double().mean().item(),
        }
    times: dict[str, list[float]] = {"plain": [], "compiled": []}
    for _ in range(REPEATS):
        for name, call in (("plain", model), ("compiled", compiled)):
            began = time.process_time()
            model.zero_grad()
            next_token_loss(call, batch).backward()
            times[name].append(time.process_time() - began)
    result |= {"seconds": times, "lengths": LENGTHS}
    result["graphs"] = {
        "default": compilations(None),
        "dynamic=False": compilations(False),
    }
    print(result, flush=True)
    return result


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, and that the page can say "times as long"."""
    for name in ("logits", "gradient"):
        one = record[name]
        assert one["compiled to float64"] < 4 * one["plain to float64"]
    assert record["graphs"]["default"][-1] == 2
    assert record["graphs"]["dynamic=False"][-1] == len(set(LENGTHS))
    plain, compiled = record["seconds"]["plain"], record["seconds"]["compiled"]
    assert median(compiled) > median(plain)
