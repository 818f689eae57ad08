"""annotated/gpt2.py: sizes, how weights begin, and official ones where they are."""

import dataclasses
from math import log

import pooch
import pytest
import torch
from torch.nn import functional as F

from annotated import gpt2
from annotated.chapters.ch16.drawings import TINY, random_state
from annotated.data import datasets
from annotated.data.datasets import DataError, File
from annotated.gpt import GPT, GPTConfig
from annotated.gpt2 import SIZES, count_parameters, initialise, official_gpt2
from annotated.weights import load_gpt2
from tools.rxnmapper import safetensors

SMALL = GPTConfig(31, d_model=64, heads=4, layers=8, d_ff=256, max_len=16)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("small", 124_439_808),
        ("medium", 354_823_168),
        ("large", 774_030_080),
        ("xl", 1_557_611_200),
    ],
)
def test_the_formula_counts_what_the_module_has(name, count):
    with torch.device("meta"):
        model = GPT(SIZES[name])
    assert sum(p.numel() for p in model.parameters()) == count
    assert count_parameters(SIZES[name]) == count
    assert SIZES[name].d_ff == 4 * SIZES[name].d_model


def test_it_counts_widths_that_are_no_multiples():
    config = GPTConfig(13, d_model=6, heads=2, layers=3, d_ff=17, max_len=11)
    counted = sum(p.numel() for p in GPT(config).parameters())
    assert count_parameters(config) == counted


@pytest.mark.parametrize(
    "changes",
    [
        {"tied": False},
        {"bias": False},
        {"norm_kind": "rms"},
        {"positions": "rotary"},
    ],
)
def test_what_is_no_gpt2_is_not_counted(changes):
    name, value = next(iter(changes.items()))
    with pytest.raises(ValueError, match=rf"config.{name} must be.*{value}"):
        count_parameters(dataclasses.replace(SMALL, **changes))


@pytest.mark.parametrize("scaled", [True, False])
def test_weights_begin_as_gpt2_began(scaled):
    torch.manual_seed(0)
    model = GPT(SMALL)
    for p in model.parameters():
        p.data.fill_(7.0)  # nothing may stay
    norms = {n for n, _ in model.named_parameters() if "norm" in n}
    assert initialise(model, std=0.1, scaled=scaled) is model
    for name, p in model.named_parameters():
        if name in norms:
            assert (p == 7).all(), name
        elif name.endswith("bias"):
            assert not p.any(), name
        else:
            writes = name.endswith(("output_map.weight", "outer.weight"))
            wanted = 0.1 / 4 if writes and scaled else 0.1  # √(2 · 8) is 4
            assert p.std().item() == pytest.approx(wanted, rel=0.08), name
            assert abs(p.mean().item()) < 0.1 * wanted, name
    assert model.output.weight is model.embedding.weight


def test_a_rotary_model_has_no_table_to_draw():
    model = GPT(dataclasses.replace(SMALL, positions="rotary", bias=False))
    initialise(model, std=0.03)
    assert model.embedding.weight.std().item() == pytest.approx(0.03, rel=0.1)


def test_a_deviation_is_above_0():
    with pytest.raises(ValueError, match="std must be"):
        initialise(GPT(SMALL), std=0.0)


def test_the_first_loss_is_that_of_knowing_nothing():
    torch.manual_seed(0)
    model = initialise(GPT(dataclasses.replace(SIZES["small"], layers=1)))
    ids = torch.randint(50_257, (1, 65))
    with torch.no_grad():
        loss = F.cross_entropy(model(ids[:, :-1])[0], ids[0, 1:]).item()
    assert loss == pytest.approx(log(50_257), abs=0.5)


# ---- official weights --------------------------------------------------------------


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache in which a tiny file stands for OpenAI's."""
    monkeypatch.setenv("ANNOTATED_DATA", str(tmp_path))
    state = {name: x.float() for name, x in random_state(TINY).items()}
    (tmp_path / "gpt2").mkdir()
    path = tmp_path / "gpt2" / "model.safetensors"
    path.write_bytes(safetensors(state))
    nowhere = ("https://nowhere.invalid/model.safetensors",)
    file = File(
        path.name, nowhere, path.stat().st_size, f"sha256:{pooch.file_hash(path)}"
    )
    row = dataclasses.replace(datasets.REGISTRY["gpt2"], files=(file,))
    monkeypatch.setitem(datasets.REGISTRY, "gpt2", row)
    monkeypatch.setitem(gpt2.SIZES, "small", TINY)
    return path, state


def test_official_weights_are_read_where_they_are(cache):
    _, state = cache
    tokens = torch.arange(9)[None]
    found, wanted = official_gpt2(), load_gpt2(state, TINY)
    assert not found.training and torch.equal(found(tokens), wanted(tokens))


def test_without_the_file_there_is_no_model_and_no_download(cache):
    path, _ = cache
    path.unlink()
    assert official_gpt2() is None
    with pytest.raises(DataError, match=r"gpt2: cannot download model\.safetensors"):
        official_gpt2(download=True)


def test_a_damaged_file_is_refused(cache):
    path, _ = cache
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="cannot download"):
        official_gpt2()


def test_the_registry_names_the_right_file():
    (file,) = datasets.REGISTRY["gpt2"].files
    assert file.size == 548_105_171 and file.checksum.startswith("sha256:248dfc39")
    assert all("607a30d783dfa663caf39e06633721c8d4cfcd7e" in m for m in file.mirrors)
