"""annotated/recipes/ddp.py: a script of its own, as torchrun starts it."""

import pytest
import torch
from torch import distributed, nn

from annotated.page.pair import launch
from annotated.recipes import ddp


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


def alone(path, ranks):
    """Play one process of the script, and note the seeds, the epochs and the files."""
    seen = {"seed": [], "epoch": [], "rows": []}
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
        patch.setattr(distributed, "init_process_group", lambda _: None)
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
