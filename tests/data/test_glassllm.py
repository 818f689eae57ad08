"""data/glassllm.py: a trained model in our blocks, as its own package runs it."""

from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy
import pytest
import torch

from annotated.data.datasets import DataError
from annotated.data.glassllm import (
    CONFIG,
    FILES,
    SPECIALS,
    decode,
    encode,
    glass_model,
    merges,
    to_llama,
    vocabulary,
)
from annotated.decoding import sample
from annotated.gpt import GPT, GPTConfig
from annotated.weights import load_llama, read_safetensors

FOLDER = files("annotated") / "vendor" / "glassllm"


@cache
def reference() -> dict[str, numpy.ndarray]:
    file = numpy.load(Path(__file__).parents[1] / "references" / "glassllm.npz")
    return {name: file[name] for name in file.files}


def state() -> dict[str, torch.Tensor]:
    return read_safetensors(FOLDER / "model.safetensors")


# ---- the weights ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "off"), [(torch.float64, 2e-6), (torch.float32, 1e-4)]
)
def test_logits_are_those_of_its_own_forward(dtype, off):
    model, wanted = glass_model().to(dtype), torch.from_numpy(reference()["logits"])
    assert not model.training
    with torch.no_grad():
        found = model(torch.from_numpy(reference()["ids"]))
    found = found[:, reference()["positions"]].float()
    assert wanted.abs().max() > 18  # so that little is off by rounding
    torch.testing.assert_close(found, wanted, rtol=0, atol=off)


@pytest.mark.parametrize("cache", [True, False])
def test_it_writes_on_as_its_own_package_does(cache):
    prompt = torch.from_numpy(reference()["prompt"])[None]
    options = {"max_new_tokens": 60, "top_k": 1, "cache": cache}
    written = sample(glass_model(), prompt, **options)[0].tolist()
    assert written == reference()["written"].tolist()
    assert decode(written).startswith(" the\nQueen to the Queen, and she found it")


def test_names_and_order_are_those_of_llama():
    """Queries and keys of a head: first its even rows, then the odd ones."""
    config = GPTConfig(5, d_model=8, heads=2, layers=1, d_ff=3, kv_heads=1)
    shapes = {"E": (5, 8), "norm_f.gamma": (8,), "blocks.0.attn.W_K": (8, 4)}
    given = {name: torch.randn(*shape) for name, shape in shapes.items()}
    given["blocks.0.attn.W_Q"] = torch.randn(8, 8)
    given["blocks.0.attn.W_V"] = torch.randn(8, 4)
    made = to_llama(given, config)
    layer = "model.layers.0.self_attn."
    order = [0, 2, 1, 3]
    assert torch.equal(
        made[f"{layer}k_proj.weight"], given["blocks.0.attn.W_K"].T[order]
    )
    both = [*order, *(4 + i for i in order)]
    assert torch.equal(
        made[f"{layer}q_proj.weight"], given["blocks.0.attn.W_Q"].T[both]
    )
    assert torch.equal(made[f"{layer}v_proj.weight"], given["blocks.0.attn.W_V"].T)
    assert torch.equal(made["model.embed_tokens.weight"], given["E"])
    assert torch.equal(made["model.norm.weight"], given["norm_f.gamma"])
    assert len(made) == len(given)


def test_an_unknown_matrix_is_named():
    changed = state() | {"more": torch.ones(2)}
    with pytest.raises(ValueError, match="more is not expected"):
        load_llama(to_llama(changed, CONFIG), CONFIG)


def test_it_is_a_gpt_of_this_book():
    model = glass_model()
    assert type(model) is GPT and model.config == CONFIG
    assert model.output.weight is model.embedding.weight


# ---- the tokens ----------------------------------------------------------------


def texts(name: str) -> list[str]:
    return [bytes.fromhex(str(one)).decode() for one in reference()[name]]


def test_tokens_are_those_of_its_own_package():
    ends = numpy.cumsum(reference()["lengths"])[:-1]
    coded = numpy.split(reference()["coded"], ends)
    assert len(coded) == 300
    for text, ids, back in zip(texts("texts"), coded, texts("decoded"), strict=True):
        assert encode(text) == ids.tolist(), repr(text)
        assert decode(ids.tolist()) == back


def test_the_vocabulary():
    tokens = list(vocabulary())
    assert len(tokens) == 1024 == CONFIG.vocab_size
    assert len(merges()) == 932 and merges()[:2] == (("▁", "t"), ("h", "e"))
    assert tuple(tokens[:4]) == SPECIALS
    assert [tokens[i] for i in encode("said Alice.\n")] == ["s", "aid", "▁Alice.", "\n"]


def test_what_it_does_not_know():
    assert encode("a4我")[-1] == 1
    assert decode([0, 2, 1, 3]) == decode(torch.tensor([0, 2, 1, 3])) == "⁇"
    assert 0 not in encode("<pad>")
    assert encode("") == [] and decode([]) == ""


@pytest.mark.parametrize("ids", [[5, 1024], [5, -1]])
def test_ids_that_are_none_are_named(ids):
    with pytest.raises(ValueError, match=r"ids\[1\] must be an integer from 0 to 1023"):
        decode(ids)


# ---- the files -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "read"),
    [("model.safetensors", glass_model), ("tokenizer.json", merges.__wrapped__)],
)
def test_a_damaged_file_is_refused(name, read, monkeypatch):
    monkeypatch.setitem(FILES, name, "0" * 64)
    with pytest.raises(DataError, match=f"{name} is not the file"):
        read()
