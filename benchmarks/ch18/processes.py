"""Chapter 18b: two processes beside one: losses, kills, bytes on the wire, time.

Chapter 8's copy task, by ``torchrun --nproc-per-node 2 -m annotated.train copy``, two
gloo processes of one thread each.

- losses: of one process and of two, step by step.
- kills: each process shot (``kill -9``) before several steps of eleven, with a file
  after every third; the resumed run against two processes that nobody shot.
- bytes: what the loopback device sent for an all-reduce of P numbers, the least of five
  rounds (others may use it, too).
- time: seconds of the clock for one training step, by batch, in turns: rank 0 alone
  takes a step with the whole batch while rank 1 waits, and then both take one together.
  Of each of three rounds of 60 turns the shortest, which others on the machine disturb
  least.

Bands: losses differ by less than 1e-5 relative; a resumed run has exactly the losses of
its like; two processes send 8P bytes for an all-reduce (2 · (n − 1)/n · 4P each), up to
5 % more for headers; two processes take 0.5 to 0.8 of the time of one with the largest
batch, and 0.9 or more with the smallest.
"""

import csv
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from annotated.chapters.ch18.pair import launch, script, two_processes
from annotated.recipes.copy_task import COPY, VOCAB, copy_batches, next_symbol_loss
from annotated.train import share
from annotated.transformer import Transformer, TransformerConfig

STEPS, KILLED, SAVED = 30, 11, 3  # of the losses; of a run that is killed; saved every
KILLS = [(rank, step) for rank in (0, 1) for step in (2, 5, 8, 11)]
BATCHES, TURNS, ROUNDS = (8, 32, 128, 512), 60, 3
FIRST = 3  # steps that are not counted: allocations, buckets
REDUCTIONS = 100
LOOPBACK = Path("/sys/class/net/lo/statistics/tx_bytes")


def torchrun(*words: str, processes: int = 2) -> str:
    """Return what a command says, run in several processes."""
    start = ["-m", "torch.distributed.run", "--standalone"]
    start += ["--nproc-per-node", str(processes), "-m", *words]
    done = subprocess.run(
        [sys.executable, *start],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and words[0] != "benchmarks.killed":
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout + done.stderr


def losses(folder: Path) -> list[float]:
    """Return the losses of a run."""
    with (folder / "curve.csv").open(newline="") as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


def trained(folder: Path) -> dict[str, Any]:
    """Return the losses of one process and of two."""
    found = {}
    for name, n in (("one", 1), ("two", 2)):
        words = ["copy", "--steps", str(STEPS), "--folder", str(folder / name)]
        torchrun("annotated.train", *words, processes=n)
        found[name] = losses(folder / name)
    return found


def kills(folder: Path) -> list[dict[str, Any]]:
    """Return how far each resumed run is from one that wasn't killed."""
    words = ["copy", "--steps", str(KILLED), "--save-every", str(SAVED), "--folder"]
    torchrun("annotated.train", *words, str(folder / "whole"))
    whole, rows = losses(folder / "whole"), []
    for rank, step in KILLS:
        own = folder / f"{rank}-{step}"
        said = torchrun("benchmarks.killed", f"{rank}", f"{step}", *words, str(own))
        killed = "Signal 9 (SIGKILL)" in said
        if (own / "model.pt").exists():
            go_on = ["copy", "--resume", str(own / "model.pt")]
        else:  # nothing was saved yet: begin anew
            go_on = [*words, str(own)]
        said = torchrun("annotated.train", *go_on)
        after = re.search(r"resuming after step (\d+)", said)
        pairs = zip(losses(own), whole, strict=True)
        rows.append({"rank": rank, "step": step, "killed": killed})
        rows[-1]["resumed after"] = int(after[1]) if after else 0
        rows[-1]["gap"] = max(abs(one - other) for one, other in pairs)
        print(rows[-1], flush=True)
    return rows


def reduced(size: int) -> int:
    """Return what the loopback device sent while ``size`` numbers were all-reduced."""
    distributed.init_process_group("gloo")
    numbers, least = torch.ones(size), 0
    for _ in range(5):
        distributed.barrier()
        before = int(LOOPBACK.read_text())
        for _ in range(REDUCTIONS):
            distributed.all_reduce(numbers)
        distributed.barrier()
        sent = int(LOOPBACK.read_text()) - before
        least = min(least or sent, sent)
    distributed.destroy_process_group()
    return round(least / REDUCTIONS)


def learner(parallel: bool) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Return chapter 8's model, wrapped or not, and what changes it."""
    torch.manual_seed(0)
    model: nn.Module = Transformer(TransformerConfig(VOCAB, VOCAB, **COPY))
    if parallel:
        model = DistributedDataParallel(model)
    return model, torch.optim.Adam(model.parameters(), 1e-3)


def take(learner: tuple[nn.Module, torch.optim.Optimizer], batch: Any) -> None:
    """Take a training step."""
    model, optimizer = learner
    optimizer.zero_grad()
    next_symbol_loss(model, batch).backward()
    optimizer.step()


def turns(size: int) -> dict[str, list[float]]:
    """Return the seconds of the clock of one process's steps and of two's, by turns."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    alone, together = learner(parallel=False), learner(parallel=True)
    found: dict[str, list[float]] = {"one": [], "two": []}
    for batch in copy_batches(0, TURNS, size):
        mine = share(batch, rank, world)
        for name in found:
            distributed.barrier()
            began = time.perf_counter()
            if name == "two":
                take(together, mine)
            elif rank == 0:
                take(alone, batch)
            found[name].append(time.perf_counter() - began)
    distributed.destroy_process_group()
    return found


def times() -> list[dict[str, Any]]:
    """Return the times of one process and of two, by batch."""
    rows = []
    for size in BATCHES:
        row: dict[str, Any] = {"batch": size, "one, wall": [], "two, wall": []}
        for _ in range(ROUNDS):
            both = launch(turns, size)
            for name in ("one", "two"):
                slower = [
                    max(turn)
                    for turn in zip(*(made[name] for made in both), strict=True)
                ]
                row[f"{name}, wall"].append(round(min(slower[FIRST:]), 5))
        rows.append(row)
        print(row, flush=True)
    return rows


def run() -> dict[str, Any]:
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **COPY))
    size = sum(p.numel() for p in model.parameters())
    with tempfile.TemporaryDirectory() as folder:
        found = {"parameters": size, "seed": 0}
        found |= {"losses": trained(Path(folder)), "kills": kills(Path(folder))}
    found["pair"] = two_processes()  # for where a page can't start them
    found["script"] = {f"{n}": script(n) for n in (1, 2)}
    found["bytes"] = max(launch(reduced, size)) if LOOPBACK.exists() else None
    return found | {"times": times()}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands of time; other programs disturb the shortest least."""
    few, *_, many = record["times"]
    shares = [min(row["two, wall"]) / min(row["one, wall"]) for row in (few, many)]
    assert 0.5 <= shares[1] <= 0.8
    assert shares[0] > 1  # the band was 0.9; the page: two "take 1.2 times as long"
