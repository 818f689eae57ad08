"""annotated/train.py: the command trains, goes on, translates, and names mistakes."""

import csv
import errno
import json
import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from annotated import train as command
from annotated.recipes import classification, refinement, translation
from annotated.train import main, share, write_whole

ROOT = Path(__file__).parents[1]
WORDS = {"cat": "K AE T", "act": "AE K T", "tack": "T AE K", "tact": "T AE K T"}


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    """Four words, a model of one layer, and nothing that writes into the repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANNOTATED_DATA", str(tmp_path / "nothing"))
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    answers = {word: (tuple(sounds.split()),) for word, sounds in WORDS.items()}
    monkeypatch.setattr(translation, "spelling_words", lambda split: answers)
    monkeypatch.setattr(
        translation,
        "spelling_pairs",
        lambda split, every: [(word, one[0]) for word, one in answers.items()],
    )
    recipe = translation.TRANSLATION_RECIPES["spelling"]
    sizes = {"d_model": 32, "heads": 2, "layers": 1, "d_ff": 32, "max_len": 32}
    model = recipe.model | sizes
    changed = recipe._replace(model=model, tokens=20, steps=60, rate=1e-2)
    monkeypatch.setitem(translation.TRANSLATION_RECIPES, "spelling", changed)


def losses(folder: Path | str) -> list[float]:
    with (Path(folder) / "curve.csv").open(newline="") as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


def test_it_learns_words_and_says_them(tmp_path, capsys):
    assert main(["spelling"]) == 0
    folder = tmp_path / "runs" / "spelling"
    assert sorted(path.name for path in folder.iterdir()) == [
        "curve.csv", "curve.png", "model.pt", "task.json",
    ]  # fmt: skip
    assert len(losses(folder)) == 60 and losses(folder)[-1] < 0.1
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    said = capsys.readouterr()
    assert "step 60, loss 0.0" in said.out and "phonemes 0, words 0" in said.out
    assert "60/60" in said.err or "60 steps" in said.err, "no progress"
    told = json.loads((folder / "task.json").read_text())  # what ids mean
    assert told["source"] == sorted("cakt") and told["target"] == ["AE", "K", "T"]
    assert told["task"] == told["recipe"] == "spelling" and told["merges"] == []
    assert told["seed"] == 0 and told["large"] is False
    lines = ["tact", "", "cat", "Act", "c1at", "123", "", "tack"]
    Path("words.txt").write_text("\n".join(lines) + "\n")
    model = str(folder / "model.pt")
    for beam in ("1", "3"):
        words = ["spelling", "--resume", model, "--translate", "words.txt"]
        assert main([*words, "--beam", beam]) == 0
        said = capsys.readouterr()
        wanted = [WORDS.get(one, "") for one in "tact,,cat,act,cat,,,tack".split(",")]
        assert said.out.split("\n") == [*wanted, ""]
        assert "line 5: left out '1', never seen" in said.err
        assert "line 6: left out '123'" in said.err


def test_it_learns_numbers_and_says_them(monkeypatch, capsys):
    asked = []

    def few(split, size):
        asked.append(split)
        return [71, 280, 1000, 80_021]

    monkeypatch.setattr(translation, "numbers_of", few)
    monkeypatch.setattr(command, "numbers_of", few)
    recipe = translation.NUMBER_WORDS._replace(tokens=60, steps=60)
    monkeypatch.setattr(command, "NUMBER_WORDS", recipe)
    assert main(["numbers"]) == 0
    assert "step 60, loss 0.0" in (said := capsys.readouterr().out)
    assert "exact 1;" in said and asked == ["train", "test"]
    lines = ["one thousand", "Eighty thousand and  twenty-one", "", "70 thousand"]
    Path("numbers.txt").write_text("\n".join(lines))
    model = ["--resume", "runs/numbers/model.pt", "--translate", "numbers.txt"]
    assert main(["numbers", *model]) == 0
    said = capsys.readouterr()
    first, second, *_ = said.out.split("\n")
    assert (first, second) == ("mille", "quatre-vingt mille vingt et un")
    assert "line 4: left out '70', never seen" in said.err
    assert main(["spelling", *model]) == 1
    assert "is of the task 'numbers', not 'spelling'" in capsys.readouterr().err


@pytest.mark.parametrize("kind", command.REFINED)
def test_it_learns_to_write_all_at_once(kind, monkeypatch, capsys):
    answers = {word: (tuple(sounds.split()),) for word, sounds in WORDS.items()}
    monkeypatch.setattr(refinement, "spelling_words", lambda split: answers)
    spelling = translation.TRANSLATION_RECIPES["spelling"]
    for module in (command, refinement):
        monkeypatch.setattr(module, "REFINEMENT", spelling)
    assert main([kind, "--steps", "60"]) == 0
    assert ", phonemes 0." in capsys.readouterr().out
    curve = losses(f"runs/{kind}")
    assert len(curve) == 60 and sum(curve[-20:]) < sum(curve[:20])
    Path("words.txt").write_text("tact\n\nAct\n")
    model = ["--resume", f"runs/{kind}/model.pt", "--translate", "words.txt"]
    assert main([kind, *model]) == 0
    first, second, third, _ = capsys.readouterr().out.split("\n")
    assert set(first.split()) <= {"AE", "K", "T"} >= set(third.split()) and not second
    assert main(["spelling", *model]) == 1
    assert f"is of the task '{kind}', not 'spelling'" in capsys.readouterr().err


def test_the_last_line_needs_no_end_and_an_empty_file_has_no_line(capsys):
    assert main(["spelling", "--steps", "2"]) == 0
    for text, count in (("cat\ncat", 2), ("cat\ncat\n\n", 3), ("", 0)):
        Path("words.txt").write_text(text)
        capsys.readouterr()
        model = ["--resume", "runs/spelling/model.pt"]
        assert main(["spelling", *model, "--translate", "words.txt"]) == 0
        assert capsys.readouterr().out.count("\n") == count


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(monkeypatch, capsys):
    assert main(["copy", "--steps", "8", "--seed", "3", "--folder", "whole"]) == 0
    batches = command.copy_batches

    def cut(*given):
        for i, batch in enumerate(batches(*given)):
            if i == 5:
                raise KeyboardInterrupt
            yield batch

    monkeypatch.setattr(command, "copy_batches", cut)
    words = ["copy", "--steps", "8", "--seed", "3", "--folder", "cut"]
    with pytest.raises(KeyboardInterrupt):
        main([*words, "--save-every", "2"])
    monkeypatch.setattr(command, "copy_batches", batches)
    # seed and steps are those of its beginning
    assert main(["copy", "--resume", "cut/model.pt"]) == 0
    assert "resuming after step 4" in capsys.readouterr().out
    assert losses("cut") == losses("whole")
    # into another folder; the old one stays
    assert main(["copy", "--resume", "cut/model.pt", "--folder", "other"]) == 0
    assert "resuming after step 8" in capsys.readouterr().out, "begun anew"
    assert losses("other") == losses("whole")


@pytest.mark.parametrize("folder", ["there", "elsewhere"])
def test_it_goes_on_from_the_checkpoint_before(folder, capsys):
    words = ["copy", "--steps", "5", "--save-every", "2", "--folder"]
    assert main([*words, "whole"]) == 0
    assert main([*words, "there"]) == 0
    model = Path("there/model.pt")
    model.write_bytes(model.read_bytes()[:1000])
    capsys.readouterr()
    assert main(["copy", "--resume", "there/model.pt", "--folder", folder]) == 0
    said = capsys.readouterr().out
    assert f"{folder}/model.pt is not a checkpoint, or a damaged one" in said
    assert f"resuming after step 4 of {folder}/model.pt.before" in said
    assert losses(folder) == losses("whole")


@pytest.mark.parametrize("task", ["copy", "numbers", "spelling", "text", "films"])
def test_each_task_makes_its_own_model(task, monkeypatch):
    monkeypatch.setitem(command.LABELLED, "films", order_task_with_validation)
    jobs = [command.make_job(task, 3, seed) for seed in (5, 5, 6)]
    for job in jobs:
        job.model.eval()  # dropout draws
        assert len(list(job.batches())) == job.steps == 3
    first, same, _ = (next(iter(job.batches())) for job in jobs)
    loss, again, other = (job.loss(job.model, first) for job in jobs)
    assert loss == again == jobs[1].loss(jobs[1].model, same) != other


def test_a_classifier_is_told_by_its_marks(monkeypatch, capsys):
    monkeypatch.setitem(command.LABELLED, "films", order_task_with_validation)
    assert main(["films", "--steps", "200"]) == 0
    said = capsys.readouterr().out
    assert "step 200, loss 0.0" in said and "accuracy 1, macro 1, micro 1" in said
    told = json.loads(Path("runs/films/task.json").read_text())
    assert told["labels"] == ["praise"] and told["words"][:2] == [",", "a"]


def order_task_with_validation():
    task = classification.order_task()
    for some in (task.texts, task.answers):
        some["validation"] = some["test"] = some["train"]
    return task


def test_reviews_have_a_larger_model_for_a_gpu(monkeypatch):
    reviews = [(f"a <br /> good film {i}", i % 2) for i in range(40)]
    monkeypatch.setattr(classification, "imdb", lambda split: reviews)
    layers = [
        len(command.make_job("imdb", 1, 0, large).model.encoder.layers)
        for large in (False, True)
    ]
    assert layers == [1, 6]
    task = classification.imdb_task(longest=3)
    assert task.texts["validation"] == [("a", "good", "film")] * 4
    assert task.answers["validation"].flatten().tolist() == [1.0] * 4  # 9, 19, 29, 39
    assert [len(task.texts[s]) for s in ("train", "test")] == [36, 40]
    with pytest.raises(SystemExit):
        main(["films", "--large"])


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_precision_is_used(precision, monkeypatch):
    seen = []
    fit = command.fit
    monkeypatch.setattr(
        command, "fit", lambda *a, **k: seen.append(k["precision"]) or fit(*a, **k)
    )
    assert main(["spelling", "--steps", "2", "--precision", precision]) == 0
    assert seen == [command.PRECISIONS[precision]]


# ---- several processes ---------------------------------------------------------


def test_shares_are_disjoint_and_together_the_whole():
    batch = torch.arange(10).view(5, 2), torch.arange(5)
    one, other = share(batch, 0, 2), share(batch, 1, 2)
    assert one[1].tolist() == [0, 2, 4] and other[1].tolist() == [1, 3]
    assert one[0].tolist() == [[0, 1], [4, 5], [8, 9]]
    assert share(batch, 0, 1)[1].tolist() == [0, 1, 2, 3, 4]


def test_each_share_counts_by_its_symbols(monkeypatch):
    """In one process: what DistributedDataParallel would take the mean of."""
    model, batch = torch.nn.Linear(1, 1), (torch.tensor([[1.0], [2.0], [5.0]]),)
    job = command.Job(model, lambda m, b: m(b[0]).mean(), lambda b: len(b[0]), *4 * [0])
    losses, slopes = [], []
    monkeypatch.setattr(command.distributed, "get_world_size", lambda: 2)
    for rank in (0, 1):
        monkeypatch.setattr(command.distributed, "get_rank", lambda rank=rank: rank)
        other = model(share(batch, 1 - rank, 2)[0]).mean() * (2, 4)[rank] / 3
        summed = lambda whole, other=other: whole.add_(other.detach())  # noqa: E731
        monkeypatch.setattr(command.distributed, "all_reduce", summed)
        loss = command.shared_loss(job, model)(model, batch)
        slopes.append(torch.autograd.grad(loss, model.weight)[0])
        losses.append(loss.item())
    assert losses == pytest.approx(2 * [model(batch[0]).mean().item()], rel=1e-5)
    assert torch.mean(torch.stack(slopes)).item() == pytest.approx(8 / 3)


def test_each_process_has_other_masks_and_the_same_state(monkeypatch):
    model, batch, masks = torch.nn.Linear(1, 1), (torch.ones(2, 1),), {}

    def dropped(_, batch):
        masks.setdefault(rank, []).append(F.dropout(torch.ones(64)).tolist())
        return model(batch[0]).mean()

    job = command.Job(model, dropped, lambda b: len(b[0]), *4 * [0])
    monkeypatch.setattr(command.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(command.distributed, "all_reduce", lambda _: None)
    states = []
    for rank in (0, 1):
        monkeypatch.setattr(command.distributed, "get_rank", lambda rank=rank: rank)
        torch.manual_seed(0)
        loss = command.shared_loss(job, model)
        for _ in range(2):
            loss(model, batch)
        states.append(torch.get_rng_state())
    assert len({tuple(one) for each in masks.values() for one in each}) == 4
    assert torch.equal(*states)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cooking"], "invalid choice: 'cooking' (choose from"),
        (["copy", "--steps", "0"], "--steps must be at least 1"),
        (["spelling", "--beam", "0"], "--beam must be at least 1"),
        (["copy", "--translate", "x"], "--translate needs --resume CHECKPOINT"),
        (["copy", "--resume", "none.pt"], "--resume: there is no file none.pt"),
        (["copy", "--precision", "int4"], "invalid choice: 'int4'"),
    ],
)
def test_a_wrong_command_is_named(words, message, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert message in capsys.readouterr().err


def test_a_missing_data_set_is_named(capsys, monkeypatch):
    from annotated.data import datasets

    def unreachable(name, *files):
        raise datasets.DataError(f"{name}: cannot download train.en.gz")

    monkeypatch.setattr(datasets, "fetch", unreachable)
    assert main(["translation"]) == 1
    said = capsys.readouterr().err
    assert "annotated.train: multi30k: cannot download train.en.gz" in said
    assert "disk" not in said


def test_what_cannot_be_translated_is_named(capsys):
    assert main(["copy", "--steps", "1"]) == 0
    Path("words.txt").write_text("cat\n")
    model = ["--resume", "runs/copy/model.pt", "--translate", "words.txt"]
    assert main(["copy", *model]) == 1
    assert "the task 'copy' translates nothing" in capsys.readouterr().err
    assert main(["spelling", *model]) == 1
    assert "is of the task 'copy', not 'spelling'" in capsys.readouterr().err
    Path("runs/copy/task.json").unlink()
    assert main(["copy", *model]) == 1
    assert "task.json must lie beside runs/copy/model.pt" in capsys.readouterr().err
    assert main(["spelling", "--steps", "1"]) == 0
    Path("words.txt").write_text("cat\n" + "a" * 33 + "\n")
    model = ["--resume", "runs/spelling/model.pt", "--translate", "words.txt"]
    assert main(["spelling", *model]) == 1
    assert "text 2 has 33 pieces, and at most 32 fit" in capsys.readouterr().err


@contextmanager
def disk_of(size: int):
    """No file may grow beyond ``size`` bytes, whoever writes it."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("size", [10_000, 100_000])
def test_a_full_disk_is_named_and_the_last_checkpoint_stays(size, capsys):
    assert main(["copy", "--steps", "4"]) == 0
    files = {path: path.read_bytes() for path in Path("runs/copy").iterdir()}
    with disk_of(size):
        assert main(["copy", "--resume", "runs/copy/model.pt"]) == 1
    said = capsys.readouterr().err
    assert "File too large: the disk is full" in said
    assert "--resume runs/copy/model.pt" in said
    assert files == {path: path.read_bytes() for path in Path("runs/copy").iterdir()}
    with disk_of(size):  # half a copy would be taken for a checkpoint
        assert main(["copy", "--resume", "runs/copy/model.pt", "--folder", "new"]) == 1
    assert not list(Path("new").iterdir())


def test_neither_a_run_nor_another_checkpoint_takes_the_place_of_a_folders_own(capsys):
    assert main(["copy", "--steps", "2"]) == 0
    model = Path("runs/copy/model.pt")
    before, other = model.read_bytes(), model.with_name("other.pt")
    other.write_bytes(before[:3000])
    resumed = ["--resume", str(other)]
    for words in ([], resumed, [*resumed, "--folder", "runs/copy"]):
        with pytest.raises(SystemExit):
            main(["copy", *words])
        said = capsys.readouterr().err
        assert "runs/copy/model.pt exists: --resume runs/copy/" in said
    assert model.read_bytes() == before


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("nonsense", "nonsense"),
        ("meta", "meta"),
    ],
)
def test_a_device_that_cannot_be_used_is_named(device, message, capsys):
    assert main(["copy", "--steps", "1", "--device", device]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"annotated.train: --device {device} can't be used: ")
    assert message in said.partition("used:")[2] and said.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda fields: "{", "task.json must be JSON: Expecting"),
        (lambda fields: [fields], "task.json must say which task it is of"),
        (lambda fields: {"task": "spelling"}, "task.json must hold 'steps' as this"),
        (lambda fields: fields | {"seed": "0"}, "task.json must hold 'seed' as this"),
        (lambda fields: fields | {"merges": 1}, "task.json must hold 'merges' as this"),
        (lambda fields: b"\xff\xfe{", "task.json must be text in UTF-8"),
    ],
)
def test_a_task_that_is_not_as_it_was_written_is_named(change, message, capsys):
    assert main(["spelling", "--steps", "1"]) == 0
    path = Path("runs/spelling/task.json")
    changed = change(json.loads(path.read_text()))
    if not isinstance(changed, bytes | str):
        changed = json.dumps(changed)
    path.write_bytes(changed if isinstance(changed, bytes) else changed.encode())
    assert main(["spelling", "--resume", "runs/spelling/model.pt"]) == 1
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_a_text_may_begin_with_a_mark_and_must_be_utf8(capsys):
    assert main(["spelling", "--steps", "1"]) == 0
    model = ["--resume", "runs/spelling/model.pt", "--translate", "words.txt"]
    Path("words.txt").write_bytes("cat\n".encode("utf-8-sig"))
    assert main(["spelling", *model]) == 0
    assert "left out" not in capsys.readouterr().err
    Path("words.txt").write_bytes("cät\n".encode("latin-1"))
    assert main(["spelling", *model]) == 1
    said = capsys.readouterr().err
    assert said.startswith("annotated.train: words.txt must be text in UTF-8: ")


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "curve.csv"
    write_whole(path, b"old")

    def full(self, content):
        self.open("wb").write(content[:2])
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="full"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


# ---- several processes, which take longest: last ---------------------------------


def torchrun(*words: str) -> subprocess.CompletedProcess:
    port = 20_000 + os.getpid() % 20_000
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
        + ["--master-port", str(port), "-m", *words],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_two_processes_have_the_losses_of_one():
    words = ["copy", "--steps", "6", "--folder"]
    assert main([*words, "one"]) == 0
    done = torchrun("annotated.train", *words, "two")
    assert done.returncode == 0, done.stderr
    assert losses("two") == pytest.approx(losses("one"), rel=1e-5)
    assert done.stdout.count("step 6, loss") == 1, "one process speaks"


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "step", "resumed"), [(0, 6, 4), (1, 4, 2)])
def test_either_process_may_be_killed(rank, step, resumed):
    words = ["copy", "--steps", "7", "--save-every", "2", "--folder"]
    assert main([*words, "one"]) == 0
    # the other hears of it at its next exchange; both end
    killed = torchrun("benchmarks.killed", f"{rank}", f"{step}", *words, "two")
    assert killed.returncode != 0 and "Signal 9 (SIGKILL)" in killed.stderr
    if rank == 0:  # and the file it saved last is lost, too
        Path("two/model.pt").write_bytes(b"")
        resumed -= 2
    done = torchrun("annotated.train", "copy", "--resume", "two/model.pt")
    assert done.returncode == 0, done.stderr
    assert f"resuming after step {resumed} of two/model.pt" in done.stdout
    assert losses("two") == pytest.approx(losses("one"), rel=1e-5)
