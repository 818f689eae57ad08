"""annotated/checkpoints.py: resumed is as if never interrupted, to the last bit."""

import copy
import io
import os
import pickle
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest
import torch
from torch import Tensor, nn

from annotated import training
from annotated.checkpoints import (
    DamagedError,
    load_checkpoint,
    previous,
    resume_checkpoint,
    save_checkpoint,
)
from annotated.training import fit, noam_schedule


class Interrupted(BaseException):
    """As if the process had been killed."""


def make_model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))


def loss(model, batch):
    return (model(batch) - batch.sum(dim=-1, keepdim=True)).pow(2).mean().float()


def own_generator(count: int):
    generator = torch.Generator().manual_seed(5)
    for _ in range(count):
        yield torch.randn(6, 4, generator=generator)


def shared_generator(count: int):
    """Batches from the random numbers that dropout takes as well, and numpy's.

    (None of Python's: the type checker of our tests draws from those.)
    """
    for _ in range(count):
        yield torch.randn(6, 4) + numpy.random.random()


def run(batches, path=None, until=None, seed=0, count=23, on_step=None, **extras):
    """Eleven steps and a half; `until` interrupts."""
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0)
    schedule = noam_schedule(optimizer, d_model=400, warmup=6)

    def either(step):
        if on_step is not None:
            on_step()
        if step == until:
            raise Interrupted

    settings = {"schedule": schedule, "accumulate": 2, "on_step": either, "clip": 3.0}
    settings |= {"checkpoint": path, "save_every": path and 3} | extras
    return model, fit(model, loss, batches(count), optimizer, **settings)


def but_for_the_clock(history) -> list[str]:
    return [repr(record | {"cpu_seconds": None}) for record in history]  # NaN = NaN


# ---- resuming ----------------------------------------------------------------


@pytest.mark.parametrize("batches", [own_generator, shared_generator])
@pytest.mark.parametrize("until", [4, 5, 6, 7, 11])
@pytest.mark.parametrize("precision", [None, torch.float16])
def test_a_resumed_run_is_one_never_interrupted(batches, until, precision, tmp_path):
    path, extras = tmp_path / "new" / "run.pt", {"precision": precision}
    wanted_model, wanted = run(batches, **extras)
    with pytest.raises(Interrupted):
        run(batches, path, until, **extras)
    # the numbers of the second start must not matter
    seed = 9 if batches is own_generator else 0
    model, history = run(batches, path, seed=seed, **extras)
    assert but_for_the_clock(history) == but_for_the_clock(wanted)
    assert all(map(torch.equal, model.parameters(), wanted_model.parameters()))
    assert [record["step"] for record in history] == list(range(1, 13))
    seconds = [record["cpu_seconds"] for record in history]
    assert seconds == sorted(seconds), "seconds go on where they were"


def test_what_on_step_draws_is_drawn_once(tmp_path):
    extras = {"path": tmp_path / "run.pt", "on_step": lambda: torch.rand(1)}
    _, wanted = run(own_generator, **extras)
    extras["path"].unlink()
    with pytest.raises(Interrupted):
        run(own_generator, until=4, **extras)
    _, history = run(own_generator, seed=9, **extras)
    assert but_for_the_clock(history) == but_for_the_clock(wanted)


def test_a_finished_run_stays_finished_and_can_be_continued(tmp_path, capsys):
    path = tmp_path / "run.pt"
    _, wanted = run(own_generator, count=28)
    model, history = run(own_generator, path, count=22)
    again, other = run(own_generator, path, seed=9, count=22)
    assert other == history and all(
        map(torch.equal, model.parameters(), again.parameters())
    )
    assert capsys.readouterr().out == f"resuming after step 11 of {path}\n"
    _, longer = run(own_generator, path, seed=9, count=28)
    assert but_for_the_clock(longer) == but_for_the_clock(wanted)


@pytest.mark.parametrize(("first", "one", "other"), [(6, 2, 4), (5, 4, 4), (5, 2, 3)])
def test_as_many_batches_are_skipped_as_were_used(first, one, other, tmp_path):
    data, seen = [torch.full((1, 4), float(i)) for i in range(12)], []

    def watched(model, batch):
        seen.append(int(batch[0, 0]))
        return loss(model, batch)

    for count, accumulate in ((first, one), (12, other)):
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        settings = {"accumulate": accumulate, "checkpoint": tmp_path / "run.pt"}
        history = fit(model, watched, data[:count], optimizer, **settings)
    assert seen == [*range(12)]
    assert [record["step"] for record in history] == [*range(1, len(history) + 1)]


@pytest.mark.parametrize(("every", "wanted"), [(5, [5, 10, 12]), (None, [12])])
def test_it_saves_as_often_as_asked_and_at_the_end(
    every, wanted, tmp_path, monkeypatch
):
    saved, real = [], training.save_checkpoint

    def watch(*args, history, **kwargs):
        saved.append(len(history))
        real(*args, history=history, **kwargs)

    monkeypatch.setattr(training, "save_checkpoint", watch)
    run(own_generator, tmp_path / "run.pt", save_every=every)
    assert saved == wanted


def test_batches_that_end_before_the_checkpoint_are_refused(tmp_path):
    path = tmp_path / "run.pt"
    run(own_generator, path)
    with pytest.raises(ValueError, match=r"^batches end before step 12 of .*run\.pt$"):
        run(own_generator, path, count=22)


# ---- save_checkpoint, load_checkpoint ----------------------------------------


def stepped(seed: int):
    """Model, optimiser with a state of its own, and schedule, after two steps."""
    torch.manual_seed(seed)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0)
    schedule = noam_schedule(optimizer, 400, 6)
    history = fit(model, loss, own_generator(2), optimizer, schedule=schedule)
    return {"model": model, "optimizer": optimizer, "schedule": schedule}, history


@pytest.fixture
def saved(tmp_path):
    """A checkpoint, what it was saved from, and its history."""
    parts, history = stepped(0)
    path = tmp_path / "c.pt"
    save_checkpoint(path, **parts, history=history)
    return path, parts, history


def assert_same(one, other) -> None:
    """States, however deep."""
    if isinstance(one, Tensor):
        assert torch.equal(one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_same(one[name], other[name])
    elif not callable(one):
        assert one == other


def test_everything_comes_back(saved):
    path, parts, history = saved
    others, _ = stepped(1)
    assert load_checkpoint(str(path), **others) == history
    for name, part in parts.items():
        assert_same(part.state_dict(), others[name].state_dict())
    assert [*path.parent.iterdir()] == [path]


def test_a_model_alone_comes_back_without_what_trained_it(saved):
    path, parts, history = saved
    model = make_model()
    before = torch.get_rng_state(), str(numpy.random.get_state())
    assert load_checkpoint(path, model) == history
    assert_same(model.state_dict(), parts["model"].state_dict())
    assert torch.equal(torch.get_rng_state(), before[0])
    assert str(numpy.random.get_state()) == before[1]


def test_random_numbers_go_on_where_they_were(tmp_path):
    def draw():
        numbers = [random.random(), random.gauss(0, 1), numpy.random.random()]
        return [*numbers, numpy.random.normal(), *torch.randn(3).tolist()]

    parts, _ = stepped(0)
    random.gauss(0, 1)  # both keep a second number for the next call
    numpy.random.normal()
    save_checkpoint(tmp_path / "c.pt", **parts)
    wanted = draw()
    assert draw() != wanted
    load_checkpoint(tmp_path / "c.pt", **parts)
    assert draw() == wanted


def test_skipping_comes_before_random_numbers_are_restored(saved):
    path, parts, _ = saved
    save_checkpoint(path, **parts, history=saved[2])
    wanted = torch.rand(3)
    batches = shared_generator(5)
    load_checkpoint(path, **parts, skip=batches)
    assert torch.equal(torch.rand(3), wanted)
    assert len([*batches]) == 3, "as many are left out as were used"


@pytest.mark.parametrize(("then", "now"), [(3, 1), (1, 3), (2, 0)])
def test_there_may_be_more_gpus_or_fewer_than_there_were(
    then, now, tmp_path, monkeypatch
):
    parts, restored = stepped(0)[0], []
    states = [torch.full((16,), i) for i in range(then)]
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: states)
    monkeypatch.setattr(torch.cuda, "set_rng_state_all", restored.extend)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: now)
    save_checkpoint(tmp_path / "c.pt", **parts)
    load_checkpoint(tmp_path / "c.pt", **parts)
    assert [int(state[0]) for state in restored] == [*range(min(then, now))]


# ---- killed while saving -----------------------------------------------------

WRITE = torch.save


def write_half(content, file):
    """torch.save, killed in the middle."""
    whole = io.BytesIO()
    WRITE(content, whole)
    data = whole.getvalue()[: len(whole.getvalue()) // 2]
    if hasattr(file, "write"):
        file.write(data)
        file.flush()
    else:
        Path(file).write_bytes(data)
    raise Interrupted


def refuse(*_):
    raise Interrupted


KILLED = {
    "save": [(torch, "save", write_half)],
    "fsync": [(os, "fsync", refuse)],
    "replace": [
        (module, name, refuse)
        for module, name in ((Path, "replace"), (os, "replace"), (os, "rename"))
    ],
}


@pytest.mark.parametrize("when", KILLED)
def test_a_process_killed_while_saving_leaves_the_previous_checkpoint(
    when, saved, monkeypatch
):
    path, parts, history = saved
    wanted = copy.deepcopy(parts["model"].state_dict())
    with monkeypatch.context() as patch:
        for change in KILLED[when]:
            patch.setattr(*change)
        with torch.no_grad():
            parts["model"][0].weight.zero_()
        with pytest.raises(Interrupted):
            save_checkpoint(path, **parts, history=[])
    others, _ = stepped(1)
    assert load_checkpoint(path, **others) == history
    assert_same(others["model"].state_dict(), wanted)
    save_checkpoint(path, **parts, history=[])  # whatever was left beside it
    assert load_checkpoint(path, **others) == []


def test_it_is_on_the_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    calls, sync, replace = [], os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append("sync"), sync(file)))
    monkeypatch.setattr(
        Path, "replace", lambda *args: (calls.append("replace"), replace(*args))
    )
    save_checkpoint(tmp_path / "c.pt", **stepped(0)[0])
    assert calls == ["sync", "replace"]


# ---- the one before ----------------------------------------------------------


@pytest.fixture
def twice(saved):
    """Two checkpoints of one run, of which the earlier has one record less."""
    path, parts, history = saved
    save_checkpoint(path, **parts, history=history[:-1])
    save_checkpoint(path, **parts, history=history)
    return path, parts, history


def test_the_checkpoint_before_is_kept(twice):
    path, parts, history = twice
    assert load_checkpoint(path, **parts) == history
    assert previous(path).name == "c.pt.before"
    assert load_checkpoint(previous(path), **parts) == history[:-1]
    assert sorted(path.parent.iterdir()) == [path, previous(path)]


@pytest.mark.parametrize("place", [0, 0.01, 0.2, 0.4, 0.6, 0.8, 0.99])
@pytest.mark.parametrize("way", ["ends there", "a bit flipped"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_used(
    place, way, twice, capsys
):
    path, parts, history = twice
    data = bytearray(path.read_bytes())
    at = int(place * len(data))
    if way == "ends there":
        data = data[:at]
    else:
        start = data.find(parts["model"][0].weight.detach().numpy().tobytes())
        assert start > 0
        data[start + int(place * 128)] ^= 1  # 8 · 4 numbers of 4 bytes
    path.write_bytes(data)
    with pytest.raises(DamagedError, match=r"c\.pt is not a checkpoint, or a damaged"):
        load_checkpoint(path, **parts)
    others, _ = stepped(1)
    assert resume_checkpoint(str(path), **others) == history[:-1]
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{path} is not a checkpoint, or a damaged one: ")
    assert second == f"going on from the one before, {path}.before"
    assert third == f"resuming after step 1 of {path}.before"
    # it never becomes the one before
    assert Path(f"{path}.damaged").read_bytes() == data
    save_checkpoint(path, **parts, history=history)
    assert load_checkpoint(previous(path), **parts) == history[:-1]


@pytest.mark.parametrize("after", ["save", "damage"])
def test_killed_while_copying_both_are_whole(after, twice, monkeypatch, capsys):
    path, parts, history = twice

    def half(source, target):
        data = Path(source).read_bytes()
        Path(target).write_bytes(data[: len(data) // 2])
        raise Interrupted

    if after == "damage":
        path.write_bytes(b"")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", half)
        with pytest.raises(Interrupted):
            if after == "save":
                save_checkpoint(path, **parts, history=[])
            else:
                resume_checkpoint(path, **parts)
    assert load_checkpoint(previous(path), **parts) == history[:-1]
    wanted = history if after == "save" else history[:-1]
    assert resume_checkpoint(path, **parts) == wanted


def test_without_the_file_a_run_begins_anew(twice):
    path, parts, history = twice
    path.unlink()
    assert resume_checkpoint(path, **parts) == []
    save_checkpoint(path, **parts, history=history)
    assert not previous(path).exists(), "it is of another run"


def test_without_a_whole_checkpoint_it_says_which_is_damaged(saved, twice, capsys):
    path, parts, _ = twice
    for file in (previous(path), path):
        file.write_bytes(b"")
    with pytest.raises(DamagedError, match=r"c\.pt\.before is not a checkpoint"):
        resume_checkpoint(path, **parts)
    assert f"{path} is not a checkpoint" in capsys.readouterr().out
    previous(path).unlink()
    with pytest.raises(DamagedError, match=r"c\.pt is not a checkpoint"):
        resume_checkpoint(path, **parts)


def test_the_one_before_does_not_hide_another_run(twice):
    path, parts, _ = twice
    with pytest.raises(ValueError, match="is of another optimizer") as caught:
        resume_checkpoint(path, **adagrad(parts))
    assert not isinstance(caught.value, DamagedError) and path.exists()


def test_a_damaged_file_costs_steps_but_changes_no_loss(tmp_path, capsys):
    path = tmp_path / "run.pt"
    _, wanted = run(own_generator)
    with pytest.raises(Interrupted):
        run(own_generator, path, 7)
    path.write_bytes(path.read_bytes()[:1000])
    _, history = run(own_generator, path, seed=9)
    assert "resuming after step 3" in capsys.readouterr().out
    assert but_for_the_clock(history) == but_for_the_clock(wanted)


# ---- files that are refused --------------------------------------------------


class Spring:
    """A pickle that runs code when it is read."""

    calls = []

    @classmethod
    def jump(cls, *args):
        cls.calls.append(args)

    def __reduce__(self):
        return Spring.jump, ("code ran",)


@pytest.mark.parametrize("kind", ["torch", "pickle"])
def test_a_strangers_file_cannot_run_code(kind, tmp_path):
    path = tmp_path / "c.pt"
    content = {"model": Spring(), "history": [], "kinds": {}}
    if kind == "torch":
        torch.save(content, path)
    else:
        path.write_bytes(pickle.dumps(content, protocol=2))
    pickle.loads(pickle.dumps(Spring()))
    assert Spring.calls == [("code ran",)], "the trap works"
    Spring.calls.clear()
    message = r"c\.pt is not a checkpoint, or a damaged one: "
    with pytest.raises(ValueError, match=message):
        load_checkpoint(path, make_model())
    assert Spring.calls == []


@pytest.mark.parametrize("content", [[1, 2], {"0.weight": torch.ones(3)}])
def test_a_file_that_is_no_checkpoint_says_so(content, tmp_path):
    torch.save(content, tmp_path / "c.pt")
    with pytest.raises(
        ValueError, match=r"c\.pt is not a checkpoint, or a damaged one: "
    ):
        load_checkpoint(tmp_path / "c.pt", make_model())
    with pytest.raises(FileNotFoundError, match="none"):
        load_checkpoint(tmp_path / "none.pt", make_model())


class Remembering:
    """A loss that adds up what it has seen."""

    def __init__(self, seen=0.0):
        self.seen = seen

    def __call__(self, model, batch):
        self.seen += batch.sum().item()
        return loss(model, batch) * self.seen

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


def adagrad(parts):
    other = torch.optim.Adagrad(parts["model"].parameters(), lr=1.0)
    return parts | {"optimizer": other, "schedule": noam_schedule(other, 400, 6)}


def other_config(parts):
    parts["model"].config = {"heads": 4}
    return parts


MISTAKES = {
    "optimizer: it was saved with Adam, but this one is Adagrad": adagrad,
    "model: it was saved with None, but this one is {'heads': 4}": other_config,
    "loss: it was saved with None, but this one is Remembering": lambda parts: (
        parts | {"loss": Remembering()}
    ),
    "schedule: it was saved with LambdaLR, but this one is StepLR": lambda parts: (
        parts | {"schedule": torch.optim.lr_scheduler.StepLR(parts["optimizer"], 2)}
    ),
    "schedule: it was saved with LambdaLR, but this one is None": lambda parts: (
        parts | {"schedule": None}
    ),
    "scaler: it was saved with None, but this one is GradScaler": lambda parts: (
        parts | {"scaler": torch.amp.GradScaler("cpu")}
    ),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_checkpoint_of_another_run_is_refused_and_changes_nothing(message, saved):
    path, before = saved[0], stepped(1)[0]
    parts = MISTAKES[message](stepped(1)[0])
    with pytest.raises(ValueError) as caught:
        load_checkpoint(path, **parts)
    assert str(caught.value) == f"{path} is of another {message}"
    assert_same(parts["model"].state_dict(), before["model"].state_dict())


# ---- configs -----------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    heads: int = 2
    rate: float = 0.5
    cutoffs: tuple[int, ...] = (3, 5)
    norm: str | None = None


@dataclass(frozen=True)
class Newer:
    """As Config, with fields more and one field less."""

    heads: int
    width: int
    cutoffs: tuple[int, ...] = (3, 5)
    norm: str | None = None
    activation: Callable = nn.ReLU
    bias: bool = True


def configured(config, path=None) -> nn.Module:
    """A model with a config, saved if there is a path."""
    model = make_model()
    model.config = config
    if path is not None:
        save_checkpoint(path, model, torch.optim.SGD(model.parameters(), lr=1.0))
    return model


def as_text(config, path) -> None:
    """Save as an earlier version did: the config as its repr, no state of the loss."""
    configured(config, path)
    content = torch.load(path, weights_only=True)
    content["kinds"]["model"] = str(config)
    torch.save(content, path)


@pytest.mark.parametrize("save", [configured, as_text])
@pytest.mark.parametrize("was", [Config(), Config(4, norm="pre", cutoffs=())])
def test_a_model_of_the_same_config_is_loaded(was, save, tmp_path):
    save(was, tmp_path / "c.pt")
    model = configured(replace(was))
    load_checkpoint(tmp_path / "c.pt", model)
    saved = torch.load(tmp_path / "c.pt", weights_only=True)
    assert_same(model.state_dict(), saved["model"])


@pytest.mark.parametrize("save", [configured, as_text])
def test_the_fields_that_differ_are_named_and_no_others(save, tmp_path):
    save(Config(heads=4, cutoffs=()), tmp_path / "c.pt")
    with pytest.raises(ValueError) as caught:
        load_checkpoint(tmp_path / "c.pt", configured(Config()))
    assert str(caught.value) == (
        f"{tmp_path / 'c.pt'} is of another model: it was saved with "
        "{'heads': 4, 'cutoffs': ()}, but this one is "
        "{'heads': 2, 'cutoffs': (3, 5)}"
    )


@pytest.mark.parametrize("save", [configured, as_text])
def test_a_field_that_the_file_does_not_know_had_its_default(save, tmp_path):
    save(Config(heads=4), tmp_path / "c.pt")
    load_checkpoint(tmp_path / "c.pt", configured(Newer(heads=4, width=7)))
    given = "{'activation': 'GELU', 'bias': False}"
    with pytest.raises(ValueError, match=f"but this one is {given}$"):
        load_checkpoint(
            tmp_path / "c.pt", configured(Newer(4, 7, activation=nn.GELU, bias=False))
        )


def test_a_function_in_a_config_is_saved_by_its_name(tmp_path):
    configured(Newer(2, 7, activation=nn.GELU), tmp_path / "c.pt")
    load_checkpoint(tmp_path / "c.pt", configured(Newer(2, 7, activation=nn.GELU)))
    with pytest.raises(ValueError, match=r"{'activation': 'GELU'}, but .*'ReLU'}$"):
        load_checkpoint(tmp_path / "c.pt", configured(Newer(2, 7)))


@pytest.mark.parametrize("config", [None, {"heads": 4}, SimpleNamespace(heads=4)])
@pytest.mark.parametrize("save", [configured, as_text])
def test_a_config_that_is_not_a_dataclass_is_compared_as_a_whole(
    config, save, tmp_path
):
    save(config, tmp_path / "c.pt")
    load_checkpoint(tmp_path / "c.pt", configured(config))
    with pytest.raises(ValueError, match="of another model: it was saved with"):
        load_checkpoint(tmp_path / "c.pt", configured(Config()))


# ---- the state of a loss -----------------------------------------------------


WRAPPED = {
    "plain": lambda model: model,
    "compiled": lambda model: torch.compile(model, backend="eager"),
    "parallel": nn.DataParallel,
    "compiled, then parallel": lambda model: nn.DataParallel(torch.compile(model)),
    "parallel, then compiled": lambda model: torch.compile(nn.DataParallel(model)),
}


def wrapped(kind: str, seed: int) -> tuple[nn.Module, nn.Module]:
    """A model with a config, and what is saved or loaded of it."""
    torch.manual_seed(seed)
    model = make_model()
    model.config = Config(4)
    return model, WRAPPED[kind](model)


@pytest.mark.parametrize("kind", WRAPPED)
@pytest.mark.parametrize("back", [False, True])
def test_compiled_and_parallel_models_load_into_plain_ones_and_back(
    kind, back, tmp_path
):
    save, load = ("plain", kind) if back else (kind, "plain")
    (one, saved), (other, loaded) = wrapped(save, 1), wrapped(load, 2)
    path, sgd = tmp_path / "model.pt", partial(torch.optim.SGD, lr=1.0)
    save_checkpoint(path, saved, sgd(saved.parameters()))
    load_checkpoint(path, loaded, sgd(loaded.parameters()))
    assert all(map(torch.equal, other.parameters(), one.parameters()))


def test_an_older_file_has_the_names_of_a_compiled_model(tmp_path):
    (one, saved), (other, _) = wrapped("compiled", 1), wrapped("plain", 2)
    path, optimizer = tmp_path / "model.pt", torch.optim.Adam(one.parameters())
    save_checkpoint(path, one, optimizer)
    torch.save(torch.load(path) | {"model": saved.state_dict()}, path)
    load_checkpoint(path, other)
    assert all(map(torch.equal, other.parameters(), one.parameters()))


@pytest.mark.parametrize("until", [1, 4, 7])
def test_a_loss_goes_on_with_its_own_state(until, tmp_path):
    data = [torch.full((1, 4), float(i + 1)) for i in range(9)]

    def losses(count, path=None):
        torch.manual_seed(0)
        model = make_model().eval()
        model[1].p = 0.0
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        history = fit(model, Remembering(), data[:count], optimizer, checkpoint=path)
        return [record["loss"] for record in history]

    losses(until, tmp_path / "run.pt")
    assert losses(9, tmp_path / "run.pt") == losses(9)


def test_a_checkpoint_from_before_the_loss_was_saved_says_so(saved):
    path, parts, history = saved
    content = torch.load(path, weights_only=True)
    content["kinds"].pop("loss")
    torch.save(content, path)
    loss = Remembering(7.0)
    with pytest.warns(UserWarning, match=r"c\.pt holds no state of the loss"):
        assert load_checkpoint(path, **parts, loss=loss) == history
    assert loss.seen == 7.0
