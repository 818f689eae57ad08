"""What only a GPU can tell this book: `make gpu`, or `python -m tools.gpu`.

It needs a CUDA card, PyTorch 2.9 or newer, and `annotated` beside `tools`; no
network, and no data but what ANNOTATED_DATA holds. It begins with the most valuable
measurement and stops after ten minutes; called again, it goes on where it stopped.
Each measurement is a record, `book/results/gpu/NAME.json`, written after every row.

    python -m tools.gpu                 what is missing
    python -m tools.gpu step decoding   some, from their beginning
    python -m tools.gpu --dry           everything once on the CPU, tiny: half a minute;
                                        its records go to `_build/gpu`
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from annotated import gpt2, sparse, train
from annotated.chapters.ch18.large import with_checkpoints
from annotated.data.datasets import DataError
from annotated.decoding import sample
from annotated.devices import to_device
from annotated.gpt import GPT, next_token_loss
from annotated.memory import training_memory
from tools import ROOT
from tools.rows import Piece, Work, go_on, versions

SECONDS, PIECE_SECONDS = (
    600,
    120,
)  # of one call; of a long run, which then goes on later


@dataclass(frozen=True)
class Card:
    """Where it runs; ``dry`` is on the CPU and tiny, to try all of this."""

    dry: bool

    @property
    def device(self) -> str:
        return "cpu" if self.dry else "cuda"

    def sized(self, real: Any, dry: Any) -> Any:
        return dry if self.dry else real

    def wait(self) -> None:
        if not self.dry:
            torch.cuda.synchronize()

    def measure(self, work: Callable[[], Any], repeats: int = 5) -> dict[str, Any]:
        """Return the milliseconds of a call, the least of some, and its peak bytes.

        The first call, which compiles and chooses kernels, isn't counted.
        """
        work()
        if not self.dry:
            torch.cuda.reset_peak_memory_stats()
        before = 0 if self.dry else torch.cuda.memory_allocated()
        times = []
        for _ in range(self.sized(repeats, 1)):
            self.wait()
            start = time.perf_counter()
            work()
            self.wait()
            times.append(1e3 * (time.perf_counter() - start))
        peak = None if self.dry else torch.cuda.max_memory_allocated()
        return {"ms": min(times), "before": before, "peak": peak}


# ---- attention by length -----------------------------------------------------------

WINDOW = 256  # positions, in the sparse ways
HEADS, HEAD = 8, 64
BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}


def written_out(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention as chapter 4 writes it: all scores at once."""
    scores = q @ k.mT / HEAD**0.5
    future = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -torch.inf).softmax(dim=-1) @ v


def masked(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The fused call with a mask that is a tensor."""
    t = q.shape[2]
    mask = torch.ones(t, t, dtype=torch.bool, device=q.device).tril()
    return F.scaled_dot_product_attention(q, k, v, mask)


def fused(backend: SDPBackend, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def flex(card: Card, length: int) -> Callable[..., Tensor]:
    """Return PyTorch's attention over the blocks of a causal window."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def sees(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (j <= i) & (i - j < WINDOW)

    blocks = create_block_mask(sees, None, None, length, length, device=card.device)
    call = flex_attention if card.dry else torch.compile(flex_attention)
    return partial(call, block_mask=blocks)


def our_blocks(card: Card, length: int) -> Callable[..., Tensor]:
    """Return chapter 17's attention over the blocks of the same window."""
    layout = sparse.block_layout(
        sparse.local_pattern(WINDOW), 64, length, device=card.device
    )
    return partial(sparse.block_sparse_attention, layout=layout)


def attention(card: Card) -> Iterator[Piece]:
    """17.3, 17b.4: time and memory of attention, forward and with the backward pass."""
    ways: dict[str, Callable[[int], Callable[..., Tensor]]] = {
        "written out": lambda length: written_out,
        "masked": lambda length: masked,
        **{
            f"fused, {name}": lambda length, one=backend: partial(fused, one)
            for name, backend in BACKENDS.items()
        },
        "flex, window": partial(flex, card),
        "our blocks, window": partial(our_blocks, card),
    }

    def work(way: str, length: int, backward: bool) -> dict[str, Any]:
        torch.manual_seed(0)
        shape = (1, HEADS, length, HEAD)
        kind = card.sized(torch.bfloat16, torch.float32)
        q, k, v = (
            torch.randn(shape, device=card.device, dtype=kind, requires_grad=backward)
            for _ in range(3)
        )
        attend = ways[way](length)

        def once() -> None:
            out = attend(q, k, v)
            if backward:
                torch.autograd.grad(out.sum(), (q, k, v))

        return card.measure(once)

    for power in card.sized(range(10, 17), range(8, 9)):
        for way in ways:
            for backward in (False, True):
                key = {"way": way, "length": 2**power, "backward": backward}
                yield key, partial(work, **key)


# ---- a training step ---------------------------------------------------------------

STEPS = {  # what is switched: precision of products, of autocast, and more
    "float32": {},
    "TF32": {"tf32": True},
    "bfloat16": {"kind": torch.bfloat16, "predicted": "mixed"},
    "float16": {"kind": torch.float16, "scaler": True},
    "bfloat16, compiled": {"kind": torch.bfloat16, "compiled": True},
    "bfloat16, checkpointed": {
        "kind": torch.bfloat16,
        "checkpointed": True,
        "predicted": "mixed",
    },
}


def step(card: Card) -> Iterator[Piece]:
    """18.1, 18.3, 18.6: a step of GPT-2 small, its time and its memory as predicted."""
    small = {"layers": 2, "d_model": 32, "heads": 2, "d_ff": 128, "vocab_size": 64}
    config = replace(gpt2.SIZES["small"], **card.sized({}, small), dropout=0.0)
    length = card.sized(1024, 16)

    def work(way: str, batch: int) -> dict[str, Any]:
        options = STEPS[way]
        torch.manual_seed(0)
        torch.set_float32_matmul_precision("high" if "tf32" in options else "highest")
        model = GPT(config)
        if "checkpointed" in options:
            with_checkpoints(model)
        model.to(card.device)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
        tokens = torch.randint(config.vocab_size, (batch, length + 1))
        rows = to_device((tokens[:, :-1], tokens[:, 1:]), card.device)
        scaler = torch.amp.GradScaler(card.device, enabled="scaler" in options)
        kind = options.get("kind")
        called: nn.Module = torch.compile(model) if "compiled" in options else model

        def once() -> None:
            with torch.autocast(card.device, kind) if kind else nullcontext():
                loss = next_token_loss(called, rows)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

        row = card.measure(once)
        row["tokens a second"] = 1e3 * batch * length / row["ms"]
        precision = options.get("predicted", None if kind else "float32")
        if precision:
            use = training_memory(
                config,
                batch,
                length,
                precision=precision,
                checkpointed="checkpointed" in options,
                foreach=True,
            )
            row["predicted"] = use.total
        return row

    for way in STEPS:
        for batch in card.sized((4, 16), (2,)):
            key = {"way": way, "batch": batch}
            yield key, partial(work, **key)


# ---- writing -----------------------------------------------------------------------


def decoding(card: Card) -> Iterator[Piece]:
    """16b, 11c: tokens a second with a cache and without, by batch."""
    small = {"layers": 2, "d_model": 32, "heads": 2, "d_ff": 128, "vocab_size": 64}
    config = replace(gpt2.SIZES["small"], **card.sized({}, small))

    def work(batch: int, cache: bool) -> dict[str, Any]:
        torch.manual_seed(0)
        model = GPT(config).to(card.device).eval()
        prompt = torch.zeros(batch, card.sized(64, 4), dtype=torch.long)
        count = card.sized(256, 4)
        once = partial(
            sample, model, prompt.to(card.device), max_new_tokens=count, cache=cache
        )
        row = card.measure(once, repeats=2)
        return row | {"tokens a second": 1e3 * batch * count / row["ms"]}

    for batch in card.sized((1, 8, 64), (1,)):
        for cache in (True, False):
            key = {"batch": batch, "cache": cache}
            yield key, partial(work, **key)


# ---- every recipe ------------------------------------------------------------------

TOLERANCE = 1e-3  # relatively: sums in single precision, in another order


def recipes(card: Card) -> Iterator[Piece]:
    """Each recipe's first loss and gradient, here and on the CPU, without dropout."""

    def first(task: str, device: str) -> tuple[float, float]:
        job = train.make_job(task, 1, 0, False)
        model = job.model.to(device).eval()
        loss = job.loss(model, to_device(next(iter(job.batches())), device))
        loss.backward()
        return loss.item(), nn.utils.get_total_norm(
            [p.grad for p in model.parameters() if p.grad is not None]
        ).item()

    def work(task: str) -> dict[str, Any]:
        here, there = first(task, card.device), first(task, "cpu")
        gap = max(abs(a - b) / abs(b) for a, b in zip(here, there, strict=True))
        return {"here": here, "cpu": there, "gap": gap, "agree": gap <= TOLERANCE}

    for task in card.sized(train.TASKS, ("copy", "numbers")):
        yield {"task": task}, partial(work, task)


# ---- runs of minutes ---------------------------------------------------------------


def runs(card: Card) -> Iterator[Piece]:
    """09, 11, 12: recipes with their GPU configuration, two minutes at a time.

    A run goes on from its checkpoint when this is called again.
    """

    def work(task: str) -> dict[str, Any]:
        folder = RUNS / ("dry" if card.dry else "") / task
        words = [sys.executable, "-m", "annotated.train", task]
        words += ["--device", card.device, "--folder", str(folder)]
        words += card.sized(["--precision", "bfloat16"], ["--steps", "3"])
        if (folder / "model.pt").exists():
            words += ["--resume", str(folder / "model.pt")]
        elif task in train.LARGE:
            words += ["--large"]
        try:
            done = subprocess.run(
                words, cwd=ROOT, timeout=PIECE_SECONDS, capture_output=True, text=True
            )
        except subprocess.TimeoutExpired:
            return {"unfinished": True}
        if done.returncode:
            return {"failed": done.stderr.strip().splitlines()[-1]}
        curve = (folder / "curve.csv").read_text().splitlines()
        every = -(-len(curve) // 200)
        return {"said": done.stdout.splitlines()[-1], "curve": curve[::every]}

    for task in card.sized(("copy", "translation", "text"), ("copy",)):
        yield {"task": task}, partial(work, task)


# ---- records -----------------------------------------------------------------------

MEASUREMENTS = {
    "attention": attention,
    "step": step,
    "decoding": decoding,
    "recipes": recipes,
    "runs": runs,
}
OUT, DRY = ROOT / "book" / "results" / "gpu", ROOT / "_build" / "gpu"
RUNS = DRY / "runs"  # with their checkpoints


def provenance(card: Card) -> dict[str, Any]:
    name = "CPU, dry" if card.dry else torch.cuda.get_device_name()
    return {
        "command": "python -m tools.gpu",
        "card": name,
        "memory": 0 if card.dry else torch.cuda.get_device_properties(0).total_memory,
        "cuda": torch.version.cuda,
        **versions(),
        "seed": 0,
    }


def tried(work: Work) -> dict[str, Any]:
    """What a piece of work gives, or why it doesn't; a result, too."""
    try:
        return work()
    except torch.OutOfMemoryError:
        return {"failed": "CUDA out of memory"}
    except (RuntimeError, ValueError, DataError) as error:
        return {"failed": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
    finally:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def measure(name: str, out: Path, card: Card, until: float, again: bool) -> bool:
    """Add what is missing of a record in `out`; return whether it is complete."""
    pieces = ((key, partial(tried, work)) for key, work in MEASUREMENTS[name](card))
    path = out / f"{name}.json"
    return go_on(path, pieces, provenance(card), "card", until, again)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=", ".join(MEASUREMENTS)
    )
    parser.add_argument("--dry", action="store_true", help="tiny, on the CPU")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args(words)
    if unknown := set(options.names) - set(MEASUREMENTS):
        parser.error(f"expected names from {[*MEASUREMENTS]}, got {unknown}")
    if not options.dry and not torch.cuda.is_available():
        print("No CUDA GPU here: nothing is measured. --dry tries it on the CPU.")
        return 1
    out = DRY if options.dry else OUT
    until = time.monotonic() + options.seconds
    left = [
        name
        for name in options.names or MEASUREMENTS
        if not measure(name, out, Card(options.dry), until, bool(options.names))
    ]
    print(f"{out}: complete" if not left else f"{out}: call again for {left}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
