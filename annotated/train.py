"""python -m annotated.train TASK: train a model of the book in a terminal, and use it.

It is the chapters' own recipes and their own loop, :func:`annotated.training.fit`. In
the folder of a run stand ``model.pt`` (the checkpoint), ``model.pt.before`` (the one
before it), ``task.json`` (what its ids mean), ``curve.csv`` and ``curve.png``.

    python -m annotated.train spelling
    python -m annotated.train films
    python -m annotated.train translation --device cuda --precision bfloat16
    python -m annotated.train spelling --resume runs/spelling/model.pt
    python -m annotated.train spelling --resume runs/spelling/model.pt --translate FILE
    torchrun --nproc-per-node 2 -m annotated.train copy

A run that is resumed has the seed and the number of steps that it began with. Under
torchrun each process takes its share of every batch (``DistributedDataParallel``), and
the losses are those of one process, as far as dropout doesn't draw other numbers.
"""

import argparse
import csv
import errno
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import LambdaLR

from annotated.batches import Vocabulary
from annotated.checkpoints import Record, load_checkpoint, previous
from annotated.data.number_words import numbers_of
from annotated.data.text import random_windows
from annotated.gpt import next_token_loss
from annotated.recipes.classification import (
    CLASSIFICATION_RECIPES,
    IMDB_RECIPES,
    films_task,
    functions_task,
    imdb_task,
    label_loss,
    labelled_batches,
    make_classifier,
    measure,
    reader,
)
from annotated.recipes.common import one_cycle
from annotated.recipes.copy_task import (
    COPY,
    COPY_TRAINING,
    VOCAB,
    copy_batches,
    copy_rate,
    exact_copies,
    next_symbol_loss,
)
from annotated.recipes.refinement import (
    REFINEMENT,
    STEPS,
    MaskedLoss,
    refine,
    refinement_errors,
    refinement_model,
)
from annotated.recipes.text import (
    TEXT_RECIPES,
    bits_per_character,
    read_text,
    text_model,
)
from annotated.recipes.translation import (
    NUMBER_WORDS,
    TRANSLATION_RECIPES,
    Cutter,
    Recipe,
    TranslationLoss,
    WordCutter,
    exact_numbers,
    number_words_task,
    spelling_errors,
    spelling_task,
    translate,
    translation_batches,
    translation_model,
    translation_task,
)
from annotated.refinement import MaskedTransformer
from annotated.training import Loss, evaluating, fit
from annotated.transformer import Transformer, TransformerConfig

LABELLED = {"functions": functions_task, "films": films_task, "imdb": imdb_task}
REFINED = ("mask-predict", "diffusion")  # write the sounds of a word all at once
TASKS = ("copy", "numbers", "spelling", *REFINED, "translation", "text", *LABELLED)
LARGE = ("translation", "text", "imdb")  # have a second configuration
# fields of task.json: those of every run, and those of one that translates
SETTINGS = {"steps": int | None, "seed": int, "large": bool}
CUTTING = {"recipe": str, "source": list, "target": list, "merges": list}
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # a disk, or what one may use of it
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass
class Job:
    """A model, what it learns from, and how its result is measured."""

    model: nn.Module  #: untrained
    loss: Loss  #: a mean over the symbols of a batch
    size: Callable[[Any], float]  #: number of these symbols
    batches: Callable[[], Iterable[Any]]  #: as many as there are steps
    rate: float  #: the highest learning rate
    steps: int  #: of the optimiser
    result: Callable[[nn.Module], dict[str, float]]  #: of the trained model
    shape: Callable[[int], float] | None = None  #: of the rate; one cycle if not given
    meaning: dict[str, Any] = field(default_factory=dict)  #: what ids stand for


# ---- the tasks -----------------------------------------------------------------


def copy_job(steps: int | None, seed: int) -> Job:
    """Return chapter 08's task, on board: number of ``steps``, and a ``seed``."""
    steps = steps or COPY_TRAINING["steps"]
    torch.manual_seed(seed)
    return Job(
        Transformer(TransformerConfig(VOCAB, VOCAB, **COPY)),
        next_symbol_loss,
        lambda batch: int((batch[1][:, 1:] != 0).sum()),
        lambda: copy_batches(seed, steps, COPY_TRAINING["batch"]),
        COPY_TRAINING["rate"],
        steps,
        lambda model: {"right of 1000": exact_copies(model, seed + 1000)},
        lambda done: copy_rate(done, steps),
    )


def text_job(steps: int | None, seed: int, recipe: str = "library") -> Job:
    """Return chapter 11's text, by default the one on board.

    Args:
        steps: number of steps; the recipe's if not given.
        seed: of model and windows.
        recipe: one of ``TEXT_RECIPES``.
    """
    r = TEXT_RECIPES[recipe]
    text, steps, length = read_text(r.text), steps or r.steps, r.model["max_len"]
    return Job(
        text_model("attention", text.size, seed, r),
        next_token_loss,
        lambda batch: batch[1].numel(),
        lambda: random_windows(text.train, length, r.batch, steps, seed),
        r.rate,
        steps,
        lambda model: {"bits": bits_per_character(model, text.validation, length)},
    )


def translation_recipe(name: str) -> Recipe:
    """Return one of ``TRANSLATION_RECIPES`` by its ``name``, or that of "numbers"."""
    return NUMBER_WORDS if name == "numbers" else TRANSLATION_RECIPES[name]


def translation_job(steps: int | None, seed: int, recipe: str = "multi30k") -> Job:
    """Return chapter 09's translation: of words into sounds, of numbers, of sentences.

    Args:
        steps: number of steps; the recipe's if not given.
        seed: of model and batches.
        recipe: as for :func:`translation_recipe`.
    """
    r = translation_recipe(recipe)
    task = number_words_task() if recipe == "numbers" else translation_task(r)
    cutter, steps = task.cutter, steps or r.steps

    def result(model: nn.Module) -> dict[str, float]:
        if r.task == "spelling":
            return spelling_errors(model, cutter)
        if r.task == "numbers":
            right = exact_numbers(model, cutter, numbers_of("test", 2000))
            return {"exact": sum(right) / len(right)}
        return {}

    return Job(
        translation_model(r, cutter, seed),
        TranslationLoss(r, cutter),
        lambda batch: int((batch.labels != Vocabulary.pad).sum()),
        lambda: translation_batches(task, r.tokens, steps, seed),
        r.rate,
        steps,
        result,
        meaning={
            "recipe": recipe,
            "source": cutter.source.symbols[3:],
            "target": cutter.target.symbols[3:],
            "merges": cutter.merges,
        },
    )


def refinement_job(steps: int | None, seed: int, kind: str) -> Job:
    """Return chapter 19's spelling to sound, by a model that refines.

    Args:
        steps: number of steps; the recipe's if not given.
        seed: of model and batches.
        kind: one of ``REFINED``.
    """
    task, steps, loss = spelling_task(), steps or STEPS[kind], MaskedLoss(kind)
    return Job(
        refinement_model(kind, task.cutter, seed),
        loss,
        loss.batch_weight,
        lambda: translation_batches(task, REFINEMENT.tokens, steps, seed),
        REFINEMENT.rate,
        steps,
        lambda model: refinement_errors(model, task.cutter),
        meaning={
            "recipe": kind,
            "source": task.cutter.source.symbols[3:],
            "target": task.cutter.target.symbols[3:],
            "merges": [],
        },
    )


def classification_job(
    steps: int | None, seed: int, name: str, recipe: str | None = None
) -> Job:
    """Return one of chapter 10's tasks, of texts with labels.

    Args:
        steps: number of steps; the recipe's if not given.
        seed: of model and batches.
        name: one of ``LABELLED``.
        recipe: of the model; the one of this ``name`` if not given.
    """
    r = (CLASSIFICATION_RECIPES | IMDB_RECIPES)[recipe or name]
    task, steps = LABELLED[name](), steps or r.steps

    def result(model: nn.Module) -> dict[str, float]:
        return {
            k: v
            for k, v in measure(reader(model, task), task).items()
            if k in ("accuracy", "macro", "micro")
        }

    return Job(
        make_classifier("encoder", task, r, seed),
        label_loss,
        lambda batch: batch[1].numel(),
        lambda: labelled_batches(task, r.size, steps, seed),
        r.rate,
        steps,
        result,
        meaning={"labels": task.labels, "words": task.words.symbols[2:]},
    )


def make_job(task: str, steps: int | None, seed: int, large: bool = False) -> Job:
    """Return the job of a ``task``: ``steps``, a ``seed``, a ``large`` model or not."""
    if task == "copy":
        return copy_job(steps, seed)
    if task == "text":
        return text_job(steps, seed, "shakespeare" if large else "library")
    if task in ("numbers", "spelling"):
        return translation_job(steps, seed, task)
    if task in REFINED:
        return refinement_job(steps, seed, task)
    if task in LABELLED:
        gpu = "imdb, GPU" if large and task == "imdb" else None
        return classification_job(steps, seed, task, gpu)
    return translation_job(steps, seed, "multi30k, GPU" if large else "multi30k")


# ---- several processes ---------------------------------------------------------


def share(batch: Any, rank: int, world: int) -> Any:
    """Return every ``world``-th row of a ``batch`` of tensors, from ``rank`` on."""
    rows = [tensor[rank::world] for tensor in batch]
    return batch._make(rows) if hasattr(batch, "_make") else tuple(rows)


def shared_loss(job: Job, model: nn.Module) -> Loss:
    """Return the loss of which each process computes its share.

    ``DistributedDataParallel`` takes the mean of all processes' gradients. For it to be
    the gradient of the whole batch, each counts by its number of symbols. The value is
    that of the whole batch, the same in all processes.

    Each has dropout masks of its own, and yet all random states stay equal, so that the
    first one's checkpoint restores them all.

    Args:
        job: what is trained.
        model: the same model, wrapped.
    """
    rank, world = distributed.get_rank(), distributed.get_world_size()
    device = next(model.parameters()).device
    gpus = [device] if device.type == "cuda" else []

    def loss(_: nn.Module, batch: Any) -> Tensor:
        own = share(batch, rank, world)
        weight = world * job.size(own) / job.size(batch)
        if not len(own[0]):  # fewer rows than processes: one reads along, for nothing
            own = share(batch, 0, len(batch[0]))
        number = int(torch.randint(2**62, ()))  # the same in all processes
        with torch.random.fork_rng(gpus):
            torch.manual_seed(number + rank)
            part = job.loss(model, own) * weight
        whole = part.detach().clone()
        distributed.all_reduce(whole)
        return part + (whole / world - part.detach())

    return loss


# ---- files ---------------------------------------------------------------------


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` to a ``path``: all of it, or nothing."""
    beside = path.with_name(path.name + ".part")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_curve(folder: Path, history: list[Record]) -> None:
    """Write a ``history`` into a ``folder``, as numbers and as a picture."""
    from matplotlib.figure import Figure  # without a window, whatever the backend

    table = io.StringIO(newline="")
    writer = csv.DictWriter(table, history[0])
    writer.writeheader()
    writer.writerows(history)
    write_whole(folder / "curve.csv", table.getvalue().encode())
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="step", ylabel="loss (nats per prediction)")
    axes.plot(*([record[name] for record in history] for name in ("step", "loss")))
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    write_whole(folder / "curve.png", picture.getvalue())


def read_utf8(path: Path) -> str:
    """Return the text of the file at ``path``, without a byte order mark.

    Raises:
        ValueError: if it is no UTF-8.
    """
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be text in UTF-8: {error}") from error


def read_task(checkpoint: Path, task: str) -> dict[str, Any]:
    """Return what ``task.json`` says, which must lie beside a ``checkpoint``.

    Raises:
        ValueError: if it isn't there, says another ``task``, or isn't as this command
            writes it.
    """
    path = checkpoint.parent / "task.json"
    if not path.is_file():
        raise ValueError(f"{path} must lie beside {checkpoint}: it says what ids mean")
    text = read_utf8(path)
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} must be JSON: {error}") from error
    if not isinstance(fields, dict) or "task" not in fields:
        raise ValueError(f"{path} must say which task it is of")
    if fields["task"] != task:
        named = fields["task"]
        raise ValueError(f"{checkpoint} is of the task {named!r}, not {task!r}")
    for name, kind in (SETTINGS | (CUTTING if "source" in fields else {})).items():
        if name not in fields or not isinstance(fields[name], kind):
            raise ValueError(f"{path} must hold {name!r} as this command writes it")
    return fields


def load_translator(checkpoint: Path, task: str) -> tuple[Transformer, Cutter]:
    """Return a trained model, and what cuts its texts.

    Args:
        checkpoint: ``model.pt`` of a run; ``task.json`` must lie beside it.
        task: "numbers", "spelling", "translation" or one of ``REFINED``.

    Raises:
        ValueError: if the run is of another task, or of one that translates nothing.
    """
    fields = read_task(checkpoint, task)
    if "source" not in fields:
        raise ValueError(f"the task {task!r} translates nothing")
    source, target = Vocabulary(fields["source"]), Vocabulary(fields["target"])
    kind = WordCutter if task == "numbers" else Cutter
    cutter = kind(source, target, [tuple(pair) for pair in fields["merges"]])
    if task in REFINED:
        model = refinement_model(task, cutter)
    else:
        model = translation_model(translation_recipe(fields["recipe"]), cutter)
    load_checkpoint(checkpoint, model)
    return model, cutter


def translate_lines(
    model: Transformer, cutter: Cutter, lines: list[str], beam: int
) -> Iterator[str]:
    """Translate line by line; an empty line stays empty.

    Args:
        model: a trained one.
        cutter: of its task.
        lines: one text each.
        beam: as for :func:`annotated.recipes.translation.translate`.

    Yields:
        The translation of each line.
    """
    for number, line in enumerate(lines, start=1):
        if unknown := cutter.unknown(line):
            print(f"line {number}: left out {unknown!r}, never seen", file=sys.stderr)
    with evaluating(model):
        if isinstance(model, MaskedTransformer):
            yield from refine(model, cutter, lines)
        else:
            yield from translate(model, cutter, lines, beam)


# ---- the command ---------------------------------------------------------------


def parse(words: list[str] | None) -> argparse.Namespace:
    """Return the options that the ``words`` of a command line ask for."""
    parser = argparse.ArgumentParser(
        prog="python -m annotated.train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("task", metavar="TASK", choices=TASKS, help=", ".join(TASKS))
    add("--steps", type=int, help="number of steps; the recipe's by default")
    add("--seed", type=int, default=0)
    add("--large", action="store_true", help="the configuration for a GPU")
    add("--device", default="cpu", help="cpu, cuda, cuda:1, mps …")
    add("--precision", choices=PRECISIONS, default="float32")
    add("--folder", type=Path, help="of this run; runs/TASK by default")
    add("--save-every", type=int, default=200, metavar="STEPS")
    add("--resume", type=Path, metavar="CHECKPOINT", help="go on with it, or use it")
    add(
        "--translate", type=Path, metavar="FILE", help="one text a line; needs --resume"
    )
    add("--beam", type=int, default=1, help="width of the search")
    options = parser.parse_args(words)
    if options.translate and not options.resume:
        parser.error("--translate needs --resume CHECKPOINT")
    for name in ("steps", "save_every", "beam"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if options.large and options.task not in LARGE:
        parser.error(f"--large is of {', '.join(LARGE)}; {options.task} has one size")
    if options.resume and not options.resume.is_file():
        parser.error(f"--resume: there is no file {options.resume}")
    options.folder = options.folder or (
        options.resume.parent if options.resume else Path("runs") / options.task
    )
    there = options.folder / "model.pt"
    other = not options.resume or options.resume.resolve() != there.resolve()
    if other and not options.translate and there.exists():
        parser.error(f"{there} exists: --resume {there}, or choose another --folder")
    return options


def usable_device(name: str, world: int = 1) -> torch.device:
    """Return the device of a ``name``; of ``world`` processes each has its own GPU.

    Raises:
        ValueError: if there is no such device, or none that computes.
    """
    try:
        device = torch.device(name)
        if device.type == "cuda" and world > 1:
            device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:  # in PyTorch's many words
        reason = str(error).partition("\n")[0]
        raise ValueError(f"--device {name} can't be used: {reason}") from error
    return device


def train(options: argparse.Namespace) -> None:
    """Train as ``options`` say, in one process or in each of several."""
    if options.resume:
        fields = read_task(options.resume, options.task)
        for name in SETTINGS:
            setattr(options, name, fields[name])
    rank = int(os.environ.get("RANK", "0"))
    world = int(os.environ.get("WORLD_SIZE", "1"))
    device = usable_device(options.device, world)
    job = make_job(options.task, options.steps, options.seed, options.large)
    model, loss = job.model.to(device), job.loss
    optimizer, schedule = one_cycle(model, job.rate, job.steps)
    if job.shape:
        optimizer = torch.optim.Adam(model.parameters(), job.rate, betas=(0.9, 0.98))
        schedule = LambdaLR(optimizer, job.shape)
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as own:
        if world > 1:
            distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
            loss = shared_loss(job, DistributedDataParallel(model))
        # all processes save the same: the first one's file is enough
        checkpoint = (Path(own) if rank else options.folder) / "model.pt"
        if options.resume:
            start = options.resume
            if start.resolve() != checkpoint.resolve():
                write_whole(checkpoint, start.read_bytes())
                if previous(start).exists():
                    write_whole(previous(checkpoint), previous(start).read_bytes())
        if not rank:
            fields = {"task": options.task} | job.meaning
            fields |= {name: getattr(options, name) for name in SETTINGS}
            content = json.dumps(fields, ensure_ascii=False).encode()
            write_whole(options.folder / "task.json", content)
        if world > 1:
            distributed.barrier()  # nobody saves before all have read
        quiet = io.StringIO() if rank else None  # one bar is enough
        with (
            redirect_stdout(quiet) if rank else nullcontext(),
            redirect_stderr(quiet) if rank else nullcontext(),
        ):
            history = fit(
                model,
                loss,
                job.batches(),
                optimizer,
                schedule=schedule,
                clip=1.0,
                precision=PRECISIONS[options.precision],
                checkpoint=checkpoint,
                save_every=options.save_every,
            )
    if not rank:
        write_curve(options.folder, history)
        with evaluating(model):
            result = job.result(model)
        measured = [f"{name} {value:.4g}" for name, value in result.items()]
        steps, loss = len(history), history[-1]["loss"]
        summary = ", ".join([f"step {steps}", f"loss {loss:.4f}", *measured])
        print(f"{summary}; see {options.folder}")
    if world > 1:
        distributed.barrier()
        distributed.destroy_process_group()


def _full_disk(error: BaseException | None) -> OSError | None:
    """Return the error of a full disk that ``error`` came of, if it did.

    Where a disk is full, PyTorch ends its file, which fails too, in words of its own.
    """
    while error and not (isinstance(error, OSError) and error.errno in FULL):
        error = error.__context__
    return error


def main(words: list[str] | None = None) -> int:
    """Do what a command line asks for, given as ``words`` or taken from the terminal.

    Returns:
        0, or 1 after a message that says what is wrong.
    """
    options = parse(words)
    try:
        if not options.translate:
            train(options)
            return 0
        model, cutter = load_translator(options.resume, options.task)
        lines = read_utf8(options.translate).split("\n")
        if not lines[-1]:
            lines.pop()  # the end of the last line begins no other
        model.to(usable_device(options.device))
        for line in translate_lines(model, cutter, lines, options.beam):
            print(line)
        return 0
    except (OSError, RuntimeError) as error:
        full = _full_disk(error)
        if isinstance(error, RuntimeError) and not full:
            raise
        problem = str(full or error)
        if full:
            for name in ("model.pt.part", "model.pt.before.part"):
                (options.folder / name).unlink(missing_ok=True)
            problem += (
                ": the disk is full. What was saved before is whole; make room, and go "
                f"on with --resume {options.folder / 'model.pt'}"
            )
    except (ValueError, FloatingPointError) as error:
        problem = str(error)
    print(f"annotated.train: {problem}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
