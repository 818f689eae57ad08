"""ch18/ddp.py: a script of its own, as torchrun starts it."""

import pytest
import torch
from torch import distributed, nn

from annotated.chapters.ch18 import ddp
from annotated.chapters.ch18.pair import launch
from tests.pretended_gpu import OnGPU, on_gpu, pretended_gpu


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("ddp") / "ddp.pt"
    return path, launch(ddp.main, f"{path}", n=2)


def test_rank_0_saves_what_both_have(made):
    path, (first, second) = made
    saved = torch.load(path, weights_only=True)
    flat = nn.utils.parameters_to_vector(saved.values()).tolist()
    assert first == second == flat


def test_it_learns_to_add_up(made):
    path, _ = made
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    model.load_state_dict(torch.load(path, weights_only=True))
    x = torch.randn(500, 4, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        error = (model(x)[:, 0] - x.sum(dim=1)).pow(2).mean()
    assert error < 0.5, "4 without a model: the variance of four numbers' sum"


def alone(path, ranks, gpus=0):
    """Play one process of the script, and note what it sets up, its seeds and rows."""
    seen = {"seed": [], "epoch": [], "rows": [], "backend": [], "device": []}
    with pytest.MonkeyPatch.context() as patch:
        sampler = ddp.DistributedSampler

        class Noted(sampler):
            def __init__(self, data):
                super().__init__(data, num_replicas=ranks[1], rank=ranks[0])

            def set_epoch(self, epoch):
                seen["epoch"].append(epoch)
                super().set_epoch(epoch)

            def __iter__(self):
                rows = list(super().__iter__())
                seen["rows"].append(rows)
                return iter(rows)

        patch.setattr(ddp, "DistributedSampler", Noted)
        patch.setattr(ddp, "DistributedDataParallel", lambda model: model)
        patch.setenv("LOCAL_RANK", f"{ranks[0]}")
        patch.setenv("LOCAL_WORLD_SIZE", f"{ranks[1]}")
        patch.setattr(torch.cuda, "device_count", lambda: gpus)
        patch.setattr(torch.cuda, "set_device", seen["device"].append)
        patch.setattr(distributed, "init_process_group", seen["backend"].append)
        patch.setattr(distributed, "destroy_process_group", lambda: None)
        patch.setattr(distributed, "get_rank", lambda: ranks[0])
        patch.setattr(distributed, "get_world_size", lambda: ranks[1])
        patch.setattr(torch, "manual_seed", seen["seed"].append)
        ddp.main(f"{path}")
    return seen


def test_rank_1_neither_prints_nor_saves(tmp_path, capsys):
    first = alone(tmp_path / "0.pt", (0, 2))
    assert (tmp_path / "0.pt").exists() and "epoch 2" in capsys.readouterr().out
    second = alone(tmp_path / "1.pt", (1, 2))
    assert not (tmp_path / "1.pt").exists() and not capsys.readouterr().out
    assert (first["seed"], second["seed"]) == ([0], [1]), "dropout of its own"
    assert first["epoch"] == second["epoch"] == [0, 1, 2]
    for mine, others in zip(first["rows"], second["rows"], strict=True):
        assert sorted(mine + others) == list(range(256))
    assert first["rows"][0] != first["rows"][1], "shuffled anew"


def test_a_process_with_too_few_gpus_stays_on_the_cpu(tmp_path):
    seen = alone(tmp_path / "1.pt", (1, 2), gpus=1)
    assert (seen["backend"], seen["device"]) == (["gloo"], [])


def test_with_a_gpu_for_each_process_all_is_on_it(tmp_path, monkeypatch):
    devices = set()

    def move(thing, device):
        devices.add(device)
        return OnGPU(thing) if isinstance(thing, torch.Tensor) else on_gpu(thing)

    with pretended_gpu():  # raises where something is left on the CPU
        for kind in (torch.Tensor, nn.Module):
            monkeypatch.setattr(kind, "to", move)
        seen = alone(tmp_path / "1.pt", (1, 2), gpus=2)
    assert (seen["backend"], seen["device"]) == (["nccl"], ["cuda:1"])
    assert devices == {"cuda:1"}
