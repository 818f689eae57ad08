"""Page 18b: what two processes do, run for real. The page starts them from a cell.

Each process imports this file anew, so it holds little besides. Letters: n processes.
"""

import io
import time
from collections.abc import Callable
from contextlib import nullcontext, redirect_stderr
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from annotated.chapters.ch18 import ddp

SHORT, LONG = 4, 36  #: tokens of the two sequences whose means are averaged
SECONDS = 2.0  #: that a process waits for the others, before it gives up
REFUSED = (ChildFailedError, RuntimeError, OSError)  #: no network, not even its own


def launch(
    work: Callable[..., Any], *args: Any, n: int = 2, prints: str | None = None
) -> list[Any]:
    """Return what ``work(*args)`` returns in each of ``n`` processes.

    It's what the command torchrun does, for a function instead of a module.

    Args:
        work: a function of a module that the processes can import.
        prints: a folder for what they print; without one, it appears as always.
    """
    redirects = Std.OUT if prints else Std.NONE
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=n,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        run_id="page 18b",
        max_restarts=0,
        monitor_interval=0.1,
        logs_specs=DefaultLogsSpecs(prints, redirects),
    )
    made = elastic_launch(config, work)(*args)
    return [made[rank] for rank in range(n)]


def two_processes() -> dict[str, Any]:
    """Return what two processes find out; where they can't be started, the record."""
    try:
        with redirect_stderr(io.StringIO()):
            first, second = launch(experiments)
    except REFUSED:
        return on_record("pair")
    for name in ("by tokens", "parameters after"):
        assert first[name] == second[name], "the copies have drifted apart"
    both = {n: [first["checkpointed"][n], g] for n, g in second["checkpointed"].items()}
    other = {name: second[name] for name in ("joined", "waits")}
    return first | other | {"checkpointed": both}


def script(n: int) -> dict[str, Any]:
    """Run the script of ``ddp.py``; where that can't be, the record.

    Returns:
        What it ``prints``, and the ``weights`` of each process.
    """
    try:
        with TemporaryDirectory() as folder, redirect_stderr(io.StringIO()):
            made = launch(ddp.main, f"{folder}/ddp.pt", n=n, prints=folder)
            said = [p.read_text() for p in sorted(Path(folder).rglob("stdout.log"))]
    except REFUSED:
        return on_record("script")[f"{n}"]
    return {"prints": "".join(said).rstrip(), "weights": made}


def on_record(name: str) -> Any:
    """Return what was recorded under a ``name``, and say that it was."""
    from annotated.page.notebook import recorded  # not in each process

    print("processes can't be started here; these numbers are recorded")
    return recorded("processes")[name]


# ---- what each process does --------------------------------------------------------


def experiments() -> dict[str, Any]:
    """Return what all of it finds, in one of two processes."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", timeout=timedelta(seconds=60))
    found = averaged() | accumulated() | {"joined": joined()}
    found |= {"checkpointed": checkpointed(), "unused": unused(), "waits": waits()}
    distributed.destroy_process_group()
    return found


def small_model() -> nn.Module:
    """Return a linear map of one weight, which starts at 0."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    return model


def losses(model: nn.Module, numbers: Tensor) -> Tensor:
    """Return (w·x − 2)² for each number x: its slope at w = 0 is −4x."""
    return (model(numbers[:, None])[:, 0] - 2) ** 2


def share_of(rank: int) -> Tensor:
    """Return the tokens of a process, ``(tokens,)``: few ones, or many threes."""
    return torch.ones(SHORT) if rank == 0 else torch.full((LONG,), 3.0)


def averaged() -> dict[str, Any]:
    """Return the gradients of unequal shares, as DDP has them and as they should be.

    And what the parameter is after a step, to see that the copies agree.
    """
    rank, n = distributed.get_rank(), distributed.get_world_size()
    own, found = share_of(rank), {}
    count = torch.tensor(float(len(own)))
    distributed.all_reduce(count)
    for name, weight in (("mean of means", 1.0), ("by tokens", n * len(own) / count)):
        model = DistributedDataParallel(small_model())
        (losses(model, own).mean() * weight).backward()
        found[name] = model.module.weight.grad.item()
        with torch.no_grad():
            model.module.weight -= 0.01 * model.module.weight.grad
    found["parameters after"] = model.module.weight.item()
    return found


def accumulated() -> dict[str, Any]:
    """Return the bytes that DDP exchanges for two batches, and the gradient's error."""
    rank, found, gradients = distributed.get_rank(), {}, []
    batches = torch.randn(2, 8, 64, generator=torch.Generator().manual_seed(rank))
    for name in ("every batch", "the last alone"):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
        model, sizes = DistributedDataParallel(model), []
        model.register_comm_hook(sizes, counting)
        for i, batch in enumerate(batches):
            wait = name == "the last alone" and i == 0
            with model.no_sync() if wait else nullcontext():
                model(batch).pow(2).mean().backward()
        found[name] = sum(sizes)
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    found["parameters"] = sum(p.numel() for p in model.parameters())
    one, other = gradients
    found["gap"] = ((one - other).abs().max() / one.abs().max()).item()
    return found


def counting(
    sizes: list[int], bucket: distributed.GradBucket
) -> torch.futures.Future[Tensor]:
    """Note how many bytes of gradients a bucket has, and exchange it as always."""
    sizes.append(bucket.buffer().numel() * bucket.buffer().element_size())
    return allreduce_hook(None, bucket)


def joined() -> dict[str, list[float]]:
    """Return the gradients of each step where one process has a batch more.

    Each batch is the number 1, whose gradient is −4: whatever differs is the average.
    """
    rank, found = distributed.get_rank(), {}
    for name, initial in (("divided by all", True), ("by those left", False)):
        model, seen = DistributedDataParallel(small_model()), []
        with Join([model], divide_by_initial_world_size=initial):
            for _ in range(2 + rank):
                model.zero_grad()
                losses(model, torch.ones(1)).mean().backward()
                seen.append(model.module.weight.grad.item())
        found[name] = seen
    return found


def checkpointed() -> dict[str, float]:
    """Return a gradient of a checkpointed layer that is used twice, of this process."""
    found = {}
    for name, reentrant in (("reentrant", True), ("not reentrant", False)):
        torch.manual_seed(0)
        model = DistributedDataParallel(UsedTwice(reentrant))
        numbers = torch.full((2, 4), 1.0 + distributed.get_rank(), requires_grad=True)
        model(numbers).sum().backward()
        found[name] = model.module.layer.weight.grad[0, 0].item()
    return found


class UsedTwice(nn.Module):
    """A layer that is applied twice, checkpointed each time (chapter 18).

    Args:
        reentrant: which of PyTorch's two kinds of checkpoint.
    """

    def __init__(self, reentrant: bool):
        super().__init__()
        self.layer, self.reentrant = nn.Linear(4, 4), reentrant

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x``, ``(…, 4)``, after both times."""
        for _ in range(2):
            x = checkpoint(self.layer, x, use_reentrant=self.reentrant)
        return x


class HalfUsed(nn.Module):
    """A layer that is used, and one that isn't (chapter 18)."""

    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(1, 1), nn.Linear(1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x``, ``(…, 1)``, after the first."""
        return self.used(x)


def unused() -> dict[str, Any]:
    """Return DDP's names of weights, and in which step it stops if some aren't used."""
    found: dict[str, Any] = {}
    for name, find in (("by default", False), ("find_unused_parameters", True)):
        model = DistributedDataParallel(HalfUsed(), find_unused_parameters=find)
        found["names"], found[name] = list(model.state_dict()), None
        for step in (1, 2):
            try:
                model(torch.ones(1, 1)).sum().backward()
            except RuntimeError as error:
                assert "Expected to have finished reduction" in str(error), error
                found[name] = step
    return found


def waits() -> str:
    """Return what a process says that waits for a batch that the other doesn't have."""
    group = distributed.new_group(timeout=timedelta(seconds=SECONDS))
    model, said = DistributedDataParallel(small_model(), process_group=group), ""
    try:
        for _ in range(2 + distributed.get_rank()):
            losses(model, torch.ones(1)).mean().backward()
        time.sleep(2 * SECONDS)  # it's through; by default the other waits half an hour
    except RuntimeError as error:
        said = str(error)
    return said
